//! Runs a cell: prepares what its contestant needs (or takes what the cell before left), lets it work in real time while
//! every second is noted, and runs it again where the machine was too slow.

use super::cell::{Cell, Contestant, PartitionState, ReadDemand, WritePolicy};
use super::database::Database;
use super::flat_files::FlatFiles;
use super::holdfast::HoldfastContestant;
use super::opponent::{Rules, run};
use super::outcome::{CellOutcome, HeadTimes, Tick};
use super::stand::{Stand, StandSetup};
use super::tally::Tally;
use crate::emulated::figure;
use crate::{BenchError, Scale};
use std::time::Duration;

/// Times that a cell is run before it is given up.
const MOST: u32 = 4;

/// A contestant on its partition.
#[derive(Debug)]
enum Prepared {
    Holdfast(Box<HoldfastContestant>),
    Flat(Box<FlatFiles>),
    Database(Box<Database>),
}

/// The stand and what is on it.
#[derive(Debug)]
pub struct Stage {
    // Dropped in this order.
    prepared: Option<(Cell, Prepared)>,
    stand: Stand,
}

impl Stage {
    /// An empty one.
    pub fn new(setup: StandSetup) -> Result<Self, BenchError> {
        Ok(Self { prepared: None, stand: Stand::new(setup)? })
    }

    /// The drive.
    pub fn stand(&self) -> &Stand {
        &self.stand
    }

    /// Runs a cell until it counts; `None` when the machine was too slow each time.
    pub fn play(&mut self, cell: &Cell) -> Result<Option<CellOutcome>, BenchError> {
        for discarded in 0..MOST {
            let (outcome, too_slow) = self.once(cell)?;
            if !too_slow {
                return Ok(Some(CellOutcome { discarded, ..outcome }));
            }
            println!("{}: the machine was too slow, discarded", cell.key());
        }
        Ok(None)
    }

    fn prepare(&mut self, cell: &Cell) -> Result<(), BenchError> {
        let kept = self.prepared.as_ref().is_some_and(|(other, _)| other.shares(cell));
        if kept {
            if let Some((_, Prepared::Flat(files))) = &mut self.prepared {
                files.renew()?;
            }
            return Ok(());
        }
        // What was there is taken down first: there is one device.
        self.prepared = None;
        let Cell { who, size, state, .. } = *cell;
        let prepared = match who {
            Contestant::Holdfast => Prepared::Holdfast(Box::new(HoldfastContestant::prepare(
                &self.stand,
                size,
                state,
                cell.offer,
            )?)),
            Contestant::Flat(kind, manner) => {
                Prepared::Flat(Box::new(FlatFiles::prepare(&self.stand, kind, manner, size, state)?))
            }
            Contestant::Database => {
                Prepared::Database(Box::new(Database::prepare(&self.stand, size, state)?))
            }
        };
        self.prepared = Some((*cell, prepared));
        Ok(())
    }

    /// Once; whether the machine was too slow.
    fn once(&mut self, cell: &Cell) -> Result<(CellOutcome, bool), BenchError> {
        self.prepare(cell)?;
        let (setup, stand) = (*self.stand.setup(), &self.stand);
        let Some((_, prepared)) = &mut self.prepared else {
            return Err(BenchError::Accounting("nothing was prepared".into()));
        };
        let time = match cell.state {
            PartitionState::Aged => setup.time,
            // A fresh partition is one for a cycle.
            PartitionState::Fresh => {
                let cycle = setup.bytes as f64 * 0.9 / (f64::from(cell.offer) * super::MIB);
                setup.time.min(Duration::from_secs_f64(cycle))
            }
        };
        let manner = match cell.who {
            Contestant::Flat(_, manner) => manner,
            Contestant::Holdfast | Contestant::Database => WritePolicy::InPlace,
        };
        let rules = Rules {
            size: cell.size,
            offer: f64::from(cell.offer) * super::MIB,
            ask: cell.ask,
            priority: matches!(manner, WritePolicy::Priority | WritePolicy::Direct),
            memory: setup.memory,
            sync_bytes: if manner == WritePolicy::Direct { 1 } else { setup.sync_bytes },
        };
        match prepared {
            Prepared::Holdfast(ours) => {
                let running = ours.start()?;
                let (outcome, too_slow) =
                    timed(stand, time, cell.ask, |tally| running.run(stand, &rules, tally))?;
                Ok((CellOutcome { dense: ours.dense(), ..outcome }, too_slow))
            }
            Prepared::Flat(files) => {
                let outcome = timed(stand, time, cell.ask, |tally| {
                    run(&rules, tally, &mut files.shelf(), |gate| files.read(gate))?;
                    Ok(String::new())
                });
                files.renew()?;
                outcome
            }
            Prepared::Database(database) => {
                let (mut writer, mut reader) = database.open()?;
                let outcome = timed(stand, time, cell.ask, |tally| {
                    run(&rules, tally, &mut writer, |gate| reader.read(gate))?;
                    Ok(String::new())
                });
                writer.end()?;
                outcome
            }
        }
    }
}

/// Lets the drive keep to its model for so long, while `work` works and every second is noted. `work` returns soon after
/// the time is over, while the drive is fast again, and says what there is to note.
fn timed(
    stand: &Stand,
    time: Duration,
    ask: ReadDemand,
    work: impl FnOnce(&Tally) -> Result<String, BenchError>,
) -> Result<(CellOutcome, bool), BenchError> {
    let drive = stand.drive();
    stand.be_timed()?;
    let figures = || {
        let report = drive.report()?;
        let get = |name: &str| Ok::<_, BenchError>(figure(&report, name)? as u64);
        let head = HeadTimes {
            read: get("read_us")?,
            to_read: get("to_read_us")?,
            write: get("write_us")?,
            to_write: get("to_write_us")?,
        };
        Ok::<_, BenchError>((get("written_bytes")?, get("read_bytes")?, head))
    };
    let before = figures()?;
    let tally = Tally::lasting(time);
    let tally = if stand.setup().scale == Scale::Real { tally.leading() } else { tally };
    let (worked, watched) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            tally.lead();
            let mut ticks = Vec::new();
            let mut note = || {
                let (written, read, head) = figures()?;
                let (counts, head) = (tally.counts(), Some(head));
                let (drive_written, drive_read) = (written - before.0, read - before.1);
                ticks.push(Tick { counts, drive_written, drive_read, head });
                Ok::<_, BenchError>(())
            };
            let mut second = 1.0;
            while tally.wait(|| tally.seconds() >= second) {
                note()?;
                second += 1.0;
            }
            if tally.seconds() > second - 0.5 || second < 2.0 {
                note()?;
            }
            let too_slow = drive.too_slow()?;
            stand.be_fast()?;
            Ok::<_, BenchError>((ticks, too_slow))
        });
        let worked = work(&tally);
        if worked.is_err() {
            tally.stop();
        }
        (worked, watch.join())
    });
    let watched = watched.unwrap_or_else(|_| Err(BenchError::Accounting("the watch panicked".into())));
    let note = worked?;
    let (mut ticks, too_slow) = watched?;
    // What turned out to be lost when the books were closed was lost.
    if let Some(last) = ticks.last_mut() {
        last.counts.lost = tally.counts().lost;
    }
    let too_slow = (too_slow || tally.was_late()) && stand.setup().scale == Scale::Real;
    let lead_in = stand.setup().lead_in.as_secs_f64();
    Ok((CellOutcome::new(time.as_secs_f64(), lead_in, ask, ticks, note), too_slow))
}
