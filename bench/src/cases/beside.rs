//! Holdfast, file systems and a database side by side on the emulated drive, cell by cell. A cell that was run is kept
//! in a folder (`HOLDFAST_RESULTS`, else `bench/results`) and not run again: a comparison that was broken off goes on
//! where it was. `HOLDFAST_CELLS` says how much is run: `daily`, `all`, or `none`; `HOLDFAST_SECONDS` how long a cell
//! is; `HOLDFAST_ONLY` keeps the cells whose name contains it.

use crate::comparison::cell::{Cell, ElementSize, Extent, ReadDemand, cells};
use crate::comparison::outcome::{CellOutcome, ResultStore};
use crate::comparison::runner::Stage;
use crate::comparison::stand::StandSetup;
use crate::comparison::{MIB, zones};
use crate::report::Report;
use crate::{BenchError, Scale, row};

/// Runs the cells that are missing, and prints the table of all.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let extent = match std::env::var("HOLDFAST_CELLS") {
        _ if scale == Scale::Tiny => Extent::Tiny,
        Err(_) => Extent::All,
        Ok(text) => text.parse().map_err(BenchError::skipped)?,
    };
    if extent == Extent::None {
        return Err(BenchError::skipped("HOLDFAST_CELLS=none; `make beside` runs it, which takes hours"));
    }
    let only = std::env::var("HOLDFAST_ONLY").unwrap_or_default();
    let all: Vec<Cell> = cells(extent).into_iter().filter(|cell| cell.key().contains(&only)).collect();
    let setup = StandSetup::new(scale);
    // What a tiny run finds out is nobody's.
    let folder =
        tempfile::tempdir().map_err(BenchError::file(&std::env::temp_dir(), "make a folder in it"))?;
    let store = scale.pick(ResultStore::at(folder.path()), ResultStore::usual());
    if only.is_empty() {
        zones::measure(&store, &setup)?;
    }
    let missing = store.missing(&all);
    println!(
        "{} of {} cells are there, in {}",
        all.len() - missing.len(),
        all.len(),
        store.folder().display()
    );
    let mut stage = None;
    let mut failed = 0;
    for (number, cell) in missing.iter().enumerate() {
        let stage = match &mut stage {
            Some(stage) => stage,
            none => none.insert(Stage::new(setup)?),
        };
        match stage.play(cell) {
            Ok(Some(outcome)) => {
                if scale == Scale::Tiny {
                    check(cell, &outcome)?;
                }
                if scale == Scale::Real {
                    println!("{}/{} {}", number + 1, missing.len(), line(cell, &outcome, &setup));
                }
                store.put(&cell.key(), &outcome.json(cell))?;
            }
            Ok(None) => println!("{}: given up for now, the machine is too slow", cell.key()),
            Err(BenchError::Skipped { reason }) => println!("{}: skipped: {reason}", cell.key()),
            // The others can still be run; a tiny run is a test.
            Err(error) if scale == Scale::Tiny => return Err(error),
            Err(error) => {
                failed += 1;
                println!("{}: {error}", cell.key());
            }
        }
    }
    drop(stage);
    let mut report = Report::new("beside", scale);
    report.table(&table(&store, &all, &setup));
    report.finish()?;
    match failed {
        0 => Ok(()),
        count => Err(BenchError::Accounting(format!("{count} cells failed"))),
    }
}

/// The books must balance, whatever the rates are.
fn check(cell: &Cell, outcome: &CellOutcome) -> Result<(), BenchError> {
    let last = outcome.last();
    let counts = last.counts;
    let wrong = |what: &str| Err(BenchError::Accounting(format!("{}: {what}: {last:?}", cell.key())));
    if counts.offered == 0 {
        return wrong("nothing arrived");
    }
    if counts.lost + counts.durable > counts.offered {
        return wrong("more is lost or durable than arrived");
    }
    if cell.ask == ReadDemand::Rate(0) && counts.read > 0 {
        return wrong("something was read that nobody asked for");
    }
    if cell.size == ElementSize::Fixed(64 << 10) && counts.durable > last.drive_written + (4 << 20) {
        return wrong("more is durable than was written");
    }
    Ok(())
}

fn line(cell: &Cell, outcome: &CellOutcome, setup: &StandSetup) -> String {
    let [useful, left, head, time] = shares(cell, outcome, setup);
    let CellOutcome { written, read, discarded, note, .. } = outcome;
    format!(
        "{}: {:.1} MiB/s written, {:.1} read, {:.2} % lost, {} MiB pending, {useful} of use, {left} of the rest read, \
         head at work {head}, of what writing left {time} for readers, {discarded} discarded. {note}",
        cell.key(),
        written / MIB,
        read / MIB,
        outcome.lost_share() * 100.0,
        outcome.last().counts.pending() >> 20,
    )
}

/// The share of the drive's time that was of use, and of what writing left the share that the reader got, by payload; and both
/// by what the head did.
fn shares(cell: &Cell, outcome: &CellOutcome, setup: &StandSetup) -> [String; 4] {
    let (write, read) = setup.rates();
    let (by_payload, by_head) = (outcome.shares(write, read, cell.size.mean()), outcome.head_shares());
    let show = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    // Where nobody reads, readers have no part.
    let of_readers = |share: Option<f64>| show(share.filter(|_| cell.ask != ReadDemand::Rate(0)));
    [
        show(by_payload.map(|shares| shares.0)),
        of_readers(by_payload.map(|shares| shares.1)),
        show(by_head.map(|shares| shares.0)),
        of_readers(by_head.map(|shares| shares.1)),
    ]
}

fn table(store: &ResultStore, all: &[Cell], setup: &StandSetup) -> Vec<Vec<String>> {
    let mut rows = vec![row![
        "contestant",
        "elements",
        "partition",
        "arrives",
        "asked for",
        "written",
        "read",
        "lost",
        "pending, MiB",
        "drive's time of use",
        "of the rest, read",
        "head at work",
        "of the rest, readers'",
        "discarded"
    ]];
    for cell in all {
        let Cell { who, size, state, offer, ask } = cell;
        let figures = store.outcome(cell).map_or(
            row!["–", "–", "–", "–", "–", "–", "–", "–", "–"],
            |outcome| {
                let [useful, left, head, time] = shares(cell, &outcome, setup);
                let lost = format!("{:.2} %", outcome.lost_share() * 100.0);
                let show = |rate: f64| format!("{:.1}", rate / MIB);
                row![
                    show(outcome.written),
                    show(outcome.read),
                    lost,
                    outcome.last().counts.pending() >> 20,
                    useful,
                    left,
                    head,
                    time,
                    outcome.discarded
                ]
            },
        );
        rows.push([row![who, size, state, offer, ask], figures].concat());
    }
    rows
}
