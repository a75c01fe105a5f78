//! Outcome of a cell, and the folder in which outcomes stay: a small file a cell, so that a comparison that was broken
//! off goes on where it was.

use super::MIB;
use super::cell::{Cell, ReadDemand};
use super::tally::Counts;
use crate::BenchError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A second of a cell: all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// The contestant's books.
    pub counts: Counts,
    /// What the drive wrote, whatever it was.
    pub drive_written: u64,
    /// What the drive read.
    pub drive_read: u64,
    /// What its head did, where that was noted.
    pub head: Option<HeadTimes>,
}

/// What a drive's head has done, in microseconds; what is in none of these it rested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadTimes {
    /// It went over what was read.
    pub read: u64,
    /// It went to where something was to be read.
    pub to_read: u64,
    /// It went over what was written.
    pub write: u64,
    /// It went to where something was to be written.
    pub to_write: u64,
}

const COLUMNS: [&str; 10] = [
    "offered",
    "lost",
    "durable",
    "read",
    "drive_written",
    "drive_read",
    "read_us",
    "to_read_us",
    "write_us",
    "to_write_us",
];

impl Tick {
    fn row(&self) -> Value {
        let Counts { offered, lost, durable, read } = self.counts;
        let mut row = vec![offered, lost, durable, read, self.drive_written, self.drive_read];
        if let Some(HeadTimes { read, to_read, write, to_write }) = self.head {
            row.extend([read, to_read, write, to_write]);
        }
        json!(row)
    }

    fn of(row: &Value) -> Option<Self> {
        let get = |at: usize| row.get(at)?.as_u64();
        let counts = Counts { offered: get(0)?, lost: get(1)?, durable: get(2)?, read: get(3)? };
        let head = || Some(HeadTimes { read: get(6)?, to_read: get(7)?, write: get(8)?, to_write: get(9)? });
        Some(Self { counts, drive_written: get(4)?, drive_read: get(5)?, head: head() })
    }
}

/// A cell that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct CellOutcome {
    /// How long it was.
    pub seconds: f64,
    /// The part of it before rates were taken.
    pub lead_in: f64,
    /// Its seconds.
    pub ticks: Vec<Tick>,
    /// Bytes a second that became durable.
    pub written: f64,
    /// Bytes a second that the reader got.
    pub read: f64,
    /// Bytes of payload in a byte of the medium: of small elements much more has to be read.
    pub dense: f64,
    /// Runs before this one that did not count, because the machine was too slow for the drive's model.
    pub discarded: u32,
    /// What else is to be known.
    pub note: String,
}

impl CellOutcome {
    /// From its seconds. Rates are taken behind the `lead_in`. Of what a reader got the part counts that it had asked for by
    /// then: large elements come whole.
    pub fn new(seconds: f64, lead_in: f64, ask: ReadDemand, ticks: Vec<Tick>, note: String) -> Self {
        let mut outcome =
            Self { seconds, lead_in, ticks, written: 0.0, read: 0.0, dense: 1.0, discarded: 0, note };
        let asked = |second: usize| ask.bytes().map_or(f64::INFINITY, |rate| rate * second as f64);
        outcome.written = outcome.rate(|_, tick| tick.counts.durable as f64);
        outcome.read = outcome.rate(|second, tick| (tick.counts.read as f64).min(asked(second)));
        outcome
    }

    /// The seconds behind the lead-in, and how many they are.
    fn steady(&self) -> &[Tick] {
        self.ticks.get((self.lead_in as usize).saturating_sub(1)..).unwrap_or_default()
    }

    /// A second, of something that is counted: the slope of the line that lies nearest to all seconds behind the lead-in,
    /// for counts come in steps, and the first and last second say where in one they lie.
    fn rate(&self, get: impl Fn(usize, &Tick) -> f64) -> f64 {
        let steady = self.steady();
        let before = self.ticks.len() - steady.len();
        if steady.len() < 8 {
            return get(self.ticks.len(), &self.last()) / self.seconds;
        }
        let middle = (steady.len() - 1) as f64 / 2.0;
        let (mut over, mut under) = (0.0, 0.0);
        for (second, tick) in steady.iter().enumerate() {
            let aside = second as f64 - middle;
            over += aside * get(before + second + 1, tick);
            under += aside * aside;
        }
        over / under
    }

    /// What became of the drive's time behind the lead-in, where it writes and reads at these rates: the share that was
    /// of use, written by it or got by the reader; and of what writing left, the share that the reader got. An `element`
    /// comes whole: what the drive has read of the one under way counts, as far as it can be of that.
    ///
    /// These are sums from the first second to the last, not slopes: what the drive did not write in that time it could have
    /// read, wherever in a turn the time begins and ends. A slope gets what little writing leaves wrong by a fifth where
    /// turns take four seconds.
    pub fn shares(&self, write: f64, read: f64, element: u64) -> Option<(f64, f64)> {
        let steady = self.steady();
        let time = steady.len().checked_sub(1).filter(|seconds| *seconds > 0)? as f64;
        let (first, last) = (steady.first()?, steady.last()?);
        let over = |get: fn(&Tick) -> u64| (get(last) - get(first)) as f64 / time;
        let writing = over(|tick| tick.drive_written) / write;
        let got = over(|tick| tick.counts.read) / self.dense;
        let parts = over(|tick| tick.drive_read);
        let element = element as f64 / self.dense / time;
        let reading = parts.clamp(got - element, got + element) / read;
        Some((writing + reading, reading / (1.0 - writing)))
    }

    /// What became of the head's time behind the lead-in: the share in which it read, went to where a reader wanted it to
    /// be, or wrote; and of what writing left, the share that was the reader's.
    pub fn head_shares(&self) -> Option<(f64, f64)> {
        let steady = self.steady();
        let time = steady.len().checked_sub(1).filter(|seconds| *seconds > 0)? as f64;
        let (first, last) = (steady.first()?.head?, steady.last()?.head?);
        let over = |from: u64, to: u64| (to - from) as f64 / 1e6 / time;
        let reading = over(first.read + first.to_read, last.read + last.to_read);
        let writing = over(first.write, last.write);
        Some((writing + reading, reading / (1.0 - writing)))
    }

    /// At the end.
    pub fn last(&self) -> Tick {
        self.ticks.last().copied().unwrap_or_default()
    }

    /// The share of what arrived that was lost.
    pub fn lost_share(&self) -> f64 {
        let Counts { offered, lost, .. } = self.last().counts;
        if offered == 0 { 0.0 } else { lost as f64 / offered as f64 }
    }

    /// For people and programs.
    pub fn json(&self, cell: &Cell) -> Value {
        let last = self.last().counts;
        json!({
            "cell": cell.key(),
            "contestant": cell.who.to_string(), "element": cell.size.to_string(), "state": cell.state.to_string(),
            "offer_mib_s": cell.offer, "ask_mib_s": cell.ask.to_string(),
            "seconds": self.seconds, "lead_in": self.lead_in,
            "write_mib_s": round(self.written / MIB), "read_mib_s": round(self.read / MIB),
            "offered": last.offered, "lost": last.lost, "pending": last.pending(),
            "dense": self.dense, "discarded_runs": self.discarded, "note": self.note,
            "columns": COLUMNS,
            "ticks": self.ticks.iter().map(Tick::row).collect::<Vec<_>>(),
        })
    }

    /// From what [`CellOutcome::json`] made.
    pub fn of(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name)?.as_f64();
        let text = |name: &str| value.get(name)?.as_str();
        let ask = match text("ask_mib_s")? {
            "all" => ReadDemand::All,
            rate => ReadDemand::Rate(rate.parse().ok()?),
        };
        let ticks = value.get("ticks")?.as_array()?.iter().map(Tick::of).collect::<Option<_>>()?;
        // Rates are made anew: how they are taken may have changed since.
        let outcome = Self::new(number("seconds")?, number("lead_in")?, ask, ticks, text("note")?.to_owned());
        let dense = number("dense").unwrap_or(1.0);
        Some(Self { dense, discarded: value.get("discarded_runs")?.as_u64()? as u32, ..outcome })
    }
}

fn round(rate: f64) -> f64 {
    (rate * 1000.0).round() / 1000.0
}

/// The folder.
#[derive(Clone, Debug)]
pub struct ResultStore(PathBuf);

impl ResultStore {
    /// The one that `HOLDFAST_RESULTS` names, or `bench/results` of the clone that this was built in.
    pub fn usual() -> Self {
        let named = std::env::var_os("HOLDFAST_RESULTS").map(PathBuf::from);
        Self(named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("results")))
    }

    /// Another one.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Keeps something; it is there whole or not at all.
    pub fn put(&self, name: &str, value: &Value) -> Result<(), BenchError> {
        let (path, begun) = (self.path(name), self.0.join(format!("{name}.begun")));
        std::fs::create_dir_all(&self.0).map_err(BenchError::file(&self.0, "make it"))?;
        let text = format!("{}\n", value.to_string().replace("],[", "],\n["));
        std::fs::write(&begun, text).map_err(BenchError::file(&begun, "write it"))?;
        std::fs::rename(&begun, &path).map_err(BenchError::file(&path, "rename to it"))
    }

    /// What was kept; what cannot be understood is as if it were not there.
    pub fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).ok()?).ok()
    }

    /// A cell's outcome.
    pub fn outcome(&self, cell: &Cell) -> Option<CellOutcome> {
        CellOutcome::of(&self.get(&cell.key())?)
    }

    /// The cells that are missing, in their order.
    pub fn missing(&self, cells: &[Cell]) -> Vec<Cell> {
        cells.iter().filter(|cell| self.outcome(cell).is_none()).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Extent, cells};
    use super::*;

    fn outcome() -> CellOutcome {
        let tick = |n: u64| Tick {
            counts: Counts { offered: 100 * n, lost: 10 * n, durable: 80 * n, read: 5 * n },
            drive_written: 90 * n,
            drive_read: 6 * n,
            head: Some(HeadTimes { read: 1 + n, to_read: 2, write: 3 * n, to_write: n }),
        };
        CellOutcome::new(3.0, 0.0, ReadDemand::All, (1..=3).map(tick).collect(), "best effort".to_owned())
    }

    /// Writes 256 MiB in four seconds and reads 49 in a half, again and again; before that it only reads.
    fn steps(seconds: u64, phase: u64) -> CellOutcome {
        let tick = |n: u64| {
            let tenths = (n * 10).saturating_sub(80) + phase;
            let (rounds, part) = (tenths / 45, tenths % 45);
            let written = (256 * rounds + 64 * part.min(40) / 10) << 20;
            let read = (800 + 49 * rounds + 49 * part.saturating_sub(40) / 5) << 20;
            Tick {
                counts: Counts { offered: written, lost: 0, durable: written, read },
                drive_written: written,
                drive_read: read,
                head: None,
            }
        };
        CellOutcome::new(
            seconds as f64,
            8.0,
            ReadDemand::All,
            (1..=seconds).map(tick).collect(),
            String::new(),
        )
    }

    #[test]
    fn rates_are_those_behind_the_lead_in_wherever_in_a_step_a_cell_ends() {
        assert_eq!((outcome().written, outcome().read), (80.0, 5.0));
        assert!((outcome().lost_share() - 0.1).abs() < 1e-9);
        for seconds in 40..=45 {
            for phase in [0, 11, 23, 44] {
                let outcome = steps(seconds, phase);
                let (written, read) = (outcome.written / MIB, outcome.read / MIB);
                assert!((written / 56.9 - 1.0).abs() < 0.015, "{seconds} {phase} {written}");
                assert!((read / 10.9 - 1.0).abs() < 0.06, "{seconds} {phase} {read}");
            }
        }
    }

    #[test]
    fn what_a_reader_got_before_it_asked_for_it_does_not_count() {
        // Elements of 60 bytes, 2 bytes a second asked for.
        let tick = |n: u64| Tick {
            counts: Counts { read: 60 * n.div_ceil(30), ..Counts::default() },
            ..Tick::default()
        };
        let outcome =
            CellOutcome::new(45.0, 9.0, ReadDemand::Rate(2), (1..=45).map(tick).collect(), String::new());
        assert!(outcome.read > 2.0, "of megabytes it got less than asked for");
        let tick = |n: u64| Tick {
            counts: Counts { read: (60 * n.div_ceil(30)) << 20, ..Counts::default() },
            ..Tick::default()
        };
        let outcome =
            CellOutcome::new(45.0, 9.0, ReadDemand::Rate(2), (1..=45).map(tick).collect(), String::new());
        assert!((outcome.read / MIB - 2.0).abs() < 1e-6, "{}", outcome.read / MIB);
    }

    #[test]
    fn the_drive_s_time_is_shared_between_writing_and_reading() {
        for phase in [0, 11, 23, 44] {
            for seconds in 40..45 {
                let outcome = steps(seconds, phase);
                let (all, left) = outcome.shares(64.0 * MIB, 98.0 * MIB, 0).unwrap();
                assert!((all - 1.0).abs() < 0.01 && (left - 1.0).abs() < 0.02, "{phase} {all} {left}");
                let (all, left) = outcome.shares(128.0 * MIB, 98.0 * MIB, 0).unwrap();
                assert!((all - 0.556).abs() < 0.02 && (left - 0.2).abs() < 0.04, "{phase} {all} {left}");
            }
        }
        assert!(
            CellOutcome::new(1.0, 0.0, ReadDemand::All, Vec::new(), String::new())
                .shares(1.0, 1.0, 0)
                .is_none()
        );
    }

    #[test]
    fn going_where_a_reader_wants_to_be_is_the_reader_s_time() {
        // Of a second 0.7 go to writing, 0.06 to getting there, 0.14 to reading, 0.07 to getting there.
        let tick = |n: u64| Tick {
            head: Some(HeadTimes {
                read: 140_000 * n,
                to_read: 70_000 * n,
                write: 700_000 * n,
                to_write: 60_000 * n,
            }),
            ..Tick::default()
        };
        let outcome =
            CellOutcome::new(40.0, 8.0, ReadDemand::All, (1..=40).map(tick).collect(), String::new());
        let (all, left) = outcome.head_shares().unwrap();
        assert!((all - 0.91).abs() < 1e-9 && (left - 0.7).abs() < 1e-9, "{all} {left}");
        assert!(steps(40, 0).head_shares().is_none(), "that was not noted");
    }

    #[test]
    fn large_elements_and_what_describes_small_ones_are_a_part_of_reading() {
        // 49 of 98 MiB/s are read all the while, and given in pieces of 60.
        let outcome = |seconds: u64, dense: f64| {
            let tick = |n: u64| Tick {
                counts: Counts { read: ((49.0 * dense) as u64 * n / 60 * 60) << 20, ..Counts::default() },
                drive_read: (49 * n) << 20,
                ..Tick::default()
            };
            let ticks = (1..=seconds).map(tick).collect();
            CellOutcome {
                dense,
                ..CellOutcome::new(seconds as f64, 8.0, ReadDemand::All, ticks, String::new())
            }
        };
        for seconds in 40..45 {
            for dense in [1.0, 36.0 / 49.0] {
                let (_, left) = outcome(seconds, dense).shares(64.0 * MIB, 98.0 * MIB, 60 << 20).unwrap();
                assert!((left - 0.5).abs() < 0.01, "{seconds} {dense} {left}");
            }
        }
        // What was read for nothing was of no use.
        let mut waste = outcome(40, 1.0);
        for (n, tick) in waste.ticks.iter_mut().enumerate() {
            tick.drive_read *= 2;
            tick.counts.read = (30 * n as u64) << 20;
        }
        let (_, left) = waste.shares(64.0 * MIB, 98.0 * MIB, 1 << 20).unwrap();
        assert!((left - 30.0 / 98.0).abs() < 0.01, "{left}");
    }

    #[test]
    fn a_comparison_that_was_broken_off_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = ResultStore::at(&folder.path().join("results"));
        let all = cells(Extent::Tiny);
        assert_eq!(store.missing(&all), all);
        let outcome = CellOutcome { discarded: 2, ..outcome() };
        store.put(&all[1].key(), &outcome.json(&all[1])).unwrap();
        // Killed while it wrote: the file has its name only when it is whole. And one that something else spoiled.
        std::fs::write(store.folder().join(format!("{}.begun", all[2].key())), "{\"sec").unwrap();
        std::fs::write(store.path(&all[3].key()), "{\"seconds\":3}").unwrap();
        let missing = store.missing(&all);
        assert_eq!(missing.len(), all.len() - 1);
        assert!(!missing.contains(&all[1]) && missing.contains(&all[2]) && missing.contains(&all[3]));
        assert_eq!(store.outcome(&all[1]), Some(outcome.clone()));
        let without = outcome.ticks.iter().map(|tick| Tick { head: None, ..*tick }).collect();
        let outcome = CellOutcome { ticks: without, ..outcome };
        store.put(&all[1].key(), &outcome.json(&all[1])).unwrap();
        assert_eq!(store.outcome(&all[1]), Some(outcome), "from before that was noted");
    }
}
