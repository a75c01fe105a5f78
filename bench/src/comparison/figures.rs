//! The paper's figures 2, 4, 5 and 6, from what was measured here, with what it published beside them. How a line is
//! drawn is `plot`'s.

use super::cell::{
    Cell, Contestant, ElementSize, Extent, FileSystem, PartitionState, ReadDemand, WritePolicy, cells,
};
use super::outcome::{CellOutcome, ResultStore};
use super::{MIB, zones};
use crate::BenchError;
use crate::plot::{Line, Plot, Style};
use std::path::Path;

/// What makes the data.
pub const COMMAND: &str = "make beside (or HOLDFAST_CELLS=daily make beside, an hour)";

/// What the paper says, by figure and line.
const REFERENCE: &str = include_str!("../../reference/mahanaxar.toml");

/// Seconds that a point of a line over a cycle is made from: the drive does one thing after the other.
const WINDOW: usize = 8;

const EXT2: Contestant = Contestant::Flat(FileSystem::Ext2, WritePolicy::InPlace);
const STRICT: Contestant = Contestant::Flat(FileSystem::Ext2, WritePolicy::Priority);
/// The same on the file systems of today, which the paper has not.
const STRICT_TODAY: [Contestant; 2] = [
    Contestant::Flat(FileSystem::Ext4, WritePolicy::Priority),
    Contestant::Flat(FileSystem::Xfs, WritePolicy::Priority),
];
const LARGE: ElementSize = ElementSize::Fixed(60 << 20);
const MIDDLE: ElementSize = ElementSize::Fixed(1 << 20);
const OFFER: u32 = 60;

/// A figure: its file's name, and the plot, if there is anything to draw in it.
pub type Figure = (&'static str, Option<Plot>);

/// A published line.
fn published(figure: &str, line: &str) -> Result<Vec<(f64, f64)>, BenchError> {
    let wrong = |said: String| BenchError::during("reading the published figures")(said);
    let table: toml::Table = REFERENCE.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    let points = table.get(figure).and_then(|table| table.get(line)).and_then(toml::Value::as_array);
    points
        .into_iter()
        .flatten()
        .map(|point| {
            let point = point.as_array()?;
            Some((number(point.first()?)?, number(point.get(1)?)?))
        })
        .collect::<Option<Vec<_>>>()
        .filter(|points| !points.is_empty())
        .ok_or_else(|| wrong(format!("no line {line} in {figure}")))
}

/// Draws what there is data for.
pub fn all(store: &ResultStore) -> Result<Vec<Figure>, BenchError> {
    Ok(vec![
        ("figure-2", rates(store)?),
        ("figure-4", readers(store, &[Contestant::Holdfast, EXT2], true)?),
        ("figure-4-others", readers(store, &others(), false)?),
        ("figure-5a", first_cycle(store)?),
        ("figure-5b", later_cycles(store)?),
        ("figure-6", small(store)?),
    ])
}

/// Writes them to a folder, each with its data; the names of those for which there is none.
pub fn write(store: &ResultStore, folder: &Path) -> Result<Vec<&'static str>, BenchError> {
    let mut missing = Vec::new();
    for (name, plot) in all(store)? {
        let Some(plot) = plot else {
            missing.push(name);
            continue;
        };
        plot.write(folder, name)?;
    }
    Ok(missing)
}

fn others() -> Vec<Contestant> {
    let mut all: Vec<Contestant> = Vec::new();
    for cell in cells(Extent::All) {
        if cell.size == LARGE && !all.contains(&cell.who) && cell.who != EXT2 {
            all.push(cell.who);
        }
    }
    all
}

fn ours(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), colour, style: Style::Ours, points }
}

fn theirs(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: format!("{name}, paper"), colour, style: Style::Theirs, points }
}

fn plot(title: &str, across: &str, lines: Vec<Line>) -> Option<Plot> {
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    lines.iter().any(|line| line.style == Style::Ours).then(|| Plot {
        title: title.to_owned(),
        across: across.to_owned(),
        up: "MiB/s".to_owned(),
        lines,
    })
}

/// Figure 2.
fn rates(store: &ResultStore) -> Result<Option<Plot>, BenchError> {
    let zones = zones::of(store).unwrap_or_default();
    let line = |get: fn(&zones::Zone) -> f64| zones.iter().map(|zone| (zone.0, get(zone))).collect();
    let lines = vec![
        ours("reading", 0, line(|zone| zone.2)),
        theirs("reading", 0, published("drive", "read")?),
        ours("writing", 1, line(|zone| zone.1)),
        theirs("writing", 1, published("drive", "write")?),
    ];
    Ok(plot("The drive: rate over place", "place on the drive, 0 outside", lines))
}

/// Figure 4: what is written and read over what the reader asks for.
fn readers(store: &ResultStore, who: &[Contestant], paper: bool) -> Result<Option<Plot>, BenchError> {
    let mut lines = Vec::new();
    for (n, who) in who.iter().enumerate() {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        for asked in (0..=12).step_by(2) {
            let ask = ReadDemand::Rate(asked);
            let cell = Cell { who: *who, size: LARGE, state: PartitionState::Aged, offer: OFFER, ask };
            if let Some(outcome) = store.outcome(&cell) {
                written.push((f64::from(asked), outcome.written / MIB));
                read.push((f64::from(asked), outcome.read / MIB));
            }
        }
        lines.push(ours(&format!("{who} writing"), n, written));
        lines.push(ours(&format!("{who} reading"), n, read));
    }
    if paper {
        for (n, name) in ["mahanaxar", "ext2"].into_iter().enumerate() {
            lines.push(theirs(
                &format!("{name} writing"),
                n,
                published("figure4", &format!("{name}_write"))?,
            ));
            lines.push(theirs(&format!("{name} reading"), n, published("figure4", &format!("{name}_read"))?));
        }
    }
    let title = "60 MiB elements, 60 MiB/s arriving, aged";
    Ok(plot(title, "reading asked for, MiB/s", lines))
}

/// What a drive did over a cycle, behind the lead-in: its writing or reading, in MiB/s.
fn over_cycle(outcome: &CellOutcome, bytes: u64, get: fn(&super::outcome::Tick) -> u64) -> Vec<(f64, f64)> {
    let ticks = outcome.ticks.get(outcome.lead_in as usize..).unwrap_or_default();
    let later = ticks.iter().skip(WINDOW);
    ticks
        .iter()
        .zip(later)
        .map(|(from, to)| {
            let at = u64::midpoint(from.drive_written, to.drive_written) as f64 / bytes as f64;
            (at, (get(to) - get(from)) as f64 / MIB / WINDOW as f64)
        })
        .collect()
}

/// Bytes of the partition.
const PARTITION: u64 = 3 << 30;

fn cycle(store: &ResultStore, cell: &Cell, colour: usize, writing: bool) -> Vec<Line> {
    let Some(outcome) = store.outcome(cell) else { return Vec::new() };
    let who = cell.who;
    let mut lines = vec![ours(
        &format!("{who} reading"),
        colour,
        over_cycle(&outcome, PARTITION, |tick| tick.drive_read),
    )];
    if writing {
        let written = over_cycle(&outcome, PARTITION, |tick| tick.drive_written);
        lines.insert(0, ours(&format!("{who} writing"), colour, written));
    }
    lines
}

const ACROSS: &str = "cycles of the partition; what the drive did, over 8 s";

/// Figure 5 (a).
fn first_cycle(store: &ResultStore) -> Result<Option<Plot>, BenchError> {
    let cell =
        |who| Cell { who, size: LARGE, state: PartitionState::Fresh, offer: OFFER, ask: ReadDemand::All };
    let mut lines = cycle(store, &cell(Contestant::Holdfast), 0, true);
    lines.extend(cycle(store, &cell(STRICT), 1, true));
    lines.push(theirs("both writing", 6, published("figure5a", "both_write")?));
    Ok(plot("60 MiB elements, strict priority, first cycle", ACROSS, lines))
}

/// Figure 5 (b).
fn later_cycles(store: &ResultStore) -> Result<Option<Plot>, BenchError> {
    let cell =
        |who| Cell { who, size: LARGE, state: PartitionState::Aged, offer: OFFER, ask: ReadDemand::All };
    let mut lines = cycle(store, &cell(Contestant::Holdfast), 0, false);
    lines.extend(cycle(store, &cell(STRICT), 1, false));
    for (n, who) in STRICT_TODAY.into_iter().enumerate() {
        lines.extend(cycle(store, &cell(who), n + 2, false));
    }
    lines.push(theirs("mahanaxar reading", 0, published("figure5b", "mahanaxar_read")?));
    lines.push(theirs("ext2 reading", 1, published("figure5b", "ext2_read")?));
    Ok(plot("60 MiB elements, strict priority, after several cycles", ACROSS, lines))
}

/// The highest rate at which a contestant lost nothing and did not fall behind; the lowest that was tried if it always
/// did.
fn sustained(store: &ResultStore, who: Contestant, size: ElementSize) -> Option<(Cell, CellOutcome)> {
    let mut tried: Vec<(Cell, CellOutcome)> = cells(Extent::All)
        .into_iter()
        .filter(|cell| {
            (cell.who, cell.size, cell.state, cell.ask) == (who, size, PartitionState::Aged, ReadDemand::All)
        })
        .filter_map(|cell| Some((cell, store.outcome(&cell)?)))
        .collect();
    tried.sort_by_key(|(cell, _)| cell.offer);
    let kept_up = |(cell, outcome): &(Cell, CellOutcome)| {
        outcome.last().counts.lost == 0 && outcome.written >= 0.97 * f64::from(cell.offer) * MIB
    };
    let best = tried.iter().rposition(kept_up).unwrap_or(0);
    (best < tried.len()).then(|| tried.swap_remove(best))
}

/// Figure 6.
fn small(store: &ResultStore) -> Result<Option<Plot>, BenchError> {
    let cell = Cell {
        who: Contestant::Holdfast,
        size: MIDDLE,
        state: PartitionState::Aged,
        offer: OFFER,
        ask: ReadDemand::All,
    };
    let mut lines = cycle(store, &cell, 0, true);
    if let Some((cell, _)) = sustained(store, STRICT, MIDDLE) {
        let mut more = cycle(store, &cell, 1, true);
        for line in &mut more {
            line.name = format!("{} (at {})", line.name, cell.offer);
        }
        lines.extend(more);
    }
    for (n, who) in STRICT_TODAY.into_iter().enumerate() {
        lines.extend(cycle(store, &Cell { who, ..cell }, n + 2, true));
    }
    for (n, name) in ["mahanaxar", "ext2"].into_iter().enumerate() {
        lines.push(theirs(&format!("{name} writing"), n, published("figure6", &format!("{name}_write"))?));
        lines.push(theirs(&format!("{name} reading"), n, published("figure6", &format!("{name}_read"))?));
    }
    Ok(plot("1 MiB elements, strict priority", ACROSS, lines))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Tick;
    use super::super::tally::Counts;
    use super::*;

    fn put(store: &ResultStore, cell: &Cell, share: f64) {
        let rate = f64::from(cell.offer) * MIB;
        let all = |rate: f64, n: u32| (rate * f64::from(n)) as u64;
        let ticks = (1..=60).map(|n| Tick {
            counts: Counts {
                offered: all(rate, n),
                lost: all(rate * (1.0 - share), n),
                durable: all(rate * share, n),
                read: all(5.0 * MIB, n),
            },
            drive_written: all(rate * share, n),
            drive_read: all(5.0 * MIB, n),
            head: None,
        });
        let outcome = CellOutcome::new(60.0, 12.0, cell.ask, ticks.collect(), String::new());
        store.put(&cell.key(), &outcome.json(cell)).unwrap();
    }

    #[test]
    fn what_was_not_measured_is_not_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let store = ResultStore::at(&folder.path().join("results"));
        let figures = folder.path().join("figures");
        let missing = write(&store, &figures).unwrap();
        assert_eq!((missing.len(), figures.exists()), (6, false));
        let cell = Cell {
            who: EXT2,
            size: LARGE,
            state: PartitionState::Aged,
            offer: OFFER,
            ask: ReadDemand::Rate(2),
        };
        put(&store, &cell, 0.95);
        let missing = write(&store, &figures).unwrap();
        assert!(!missing.contains(&"figure-4") && missing.contains(&"figure-5a"));
        let csv = std::fs::read_to_string(figures.join("figure-4.csv")).unwrap();
        assert!(csv.contains("\"ext2 writing\",measured,2.0000,57.0000\n"), "{csv}");
        assert!(csv.contains("\"ext2 writing, paper\",published,10.0000,57.0000\n"), "{csv}");
        assert!(!csv.contains("holdfast"), "{csv}");
    }

    #[test]
    fn the_figures_of_the_documentation_show_what_was_measured_for_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        let drawn = tempfile::tempdir().unwrap();
        let missing = write(&ResultStore::at(&folder.join("measured")), drawn.path()).unwrap();
        assert!(missing.is_empty(), "{missing:?}");
        for entry in std::fs::read_dir(drawn.path()).unwrap() {
            let name = entry.unwrap().file_name();
            let read = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
            assert!(read(&folder) == read(drawn.path()), "{name:?} is an old one: run make figures");
        }
    }

    #[test]
    fn the_sustained_rate_is_the_highest_without_loss() {
        let folder = tempfile::tempdir().unwrap();
        let store = ResultStore::at(folder.path());
        assert!(sustained(&store, STRICT, MIDDLE).is_none());
        let cell = |offer| Cell {
            who: STRICT,
            size: MIDDLE,
            state: PartitionState::Aged,
            offer,
            ask: ReadDemand::All,
        };
        for (offer, share) in [(60, 0.6), (45, 0.9), (40, 1.0), (35, 1.0)] {
            put(&store, &cell(offer), share);
        }
        assert_eq!(sustained(&store, STRICT, MIDDLE).unwrap().0, cell(40));
        put(&store, &cell(40), 0.5);
        put(&store, &cell(35), 0.5);
        assert_eq!(sustained(&store, STRICT, MIDDLE).unwrap().0, cell(35));
    }

    #[test]
    fn a_cycle_is_drawn_at_the_drive_s_rates() {
        let folder = tempfile::tempdir().unwrap();
        let store = ResultStore::at(folder.path());
        let cell = Cell {
            who: STRICT,
            size: LARGE,
            state: PartitionState::Fresh,
            offer: OFFER,
            ask: ReadDemand::All,
        };
        put(&store, &cell, 1.0);
        let plot = first_cycle(&store).unwrap().unwrap();
        let line = plot.lines.iter().find(|line| line.name == "ext2-priority writing").unwrap();
        assert!(line.points.iter().all(|point| (point.1 - 60.0).abs() < 0.01), "{line:?}");
        let (first, last) = (line.points[0].0, line.points[line.points.len() - 1].0);
        assert!((first - 17.0 * 60.0 / 3072.0).abs() < 0.01 && last > 1.0, "{first} {last}");
    }
}
