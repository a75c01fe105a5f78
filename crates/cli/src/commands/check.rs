//! `holdfast check`: every byte of every slot against its checksums; and a lost superblock rebuilt.

use crate::args::RingArg;
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{BLOCK, ByteSize, Sequence, SlotNo};
use holdfast_base::{clean, counted, grouped};
use holdfast_client::json::{CheckedRing, DamagedPlace, RebuiltRing};
use holdfast_client::orders;
use holdfast_client::session::ring_failure;
use holdfast_format::{PartHeader, Superblock};
use holdfast_media::{Access, Device, PlainDisk};
use holdfast_planning::guarantee;
use holdfast_protocol::wire::Purpose;
use holdfast_reader::{Item, Plan, RingReader, Selection};
use holdfast_ring::{
    Blocking, CHECK_QUANTUM, Depth, SlotLook, SlotStatus, as_journaled, check_slot, find_superblock, recover,
    write_superblocks,
};
use indicatif::ProgressBar;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Instead of a recovery string: look for it in the journal.
const FIND: &str = "find";

/// Verify every byte of a ring, or rebuild its superblock from the recovery string
#[derive(clap::Args, Debug)]
#[command(after_help = "Exits with 1 if there is damage; every damaged place is named.\n\n\
    Examples:\n  holdfast check lab.hf\n  holdfast check --geometry holdfast1:afg4… /dev/sdb")]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Rebuild a lost superblock from this recovery string of `format`, or from the one in the journal (find)
    #[arg(long, value_name = "STRING|find")]
    geometry: Option<String>,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = args.ring.path()?;
    if let Some(text) = &args.geometry {
        return rebuild(&path, text, out);
    }
    let mut check = Check { out, tally: Tally::default(), elements: None };
    check.superblocks(&path)?;
    let mut reader = holdfast_client::session::open(&path)?;
    let status = reader.status().map_err(|error| ring_failure(&error))?;
    let holds = status.ring.holds;
    let guarantee = guarantee::seen(&path, reader.superblock(), &status);
    if reader.is_live() {
        check.through_recorder(&mut reader)?;
    } else {
        check.directly(&path, &mut reader)?;
    }
    let Check { out, tally, elements } = check;
    if out.is_json() {
        let Tally { slots, bytes, damaged, expired, .. } = tally;
        out.object(&CheckedRing { slots, bytes, elements, damaged, expired, holds, guarantee })?;
    } else if !tally.is_void() {
        out.line(format_args!("{}", tally.text()))?;
        for line in guarantee::lines(guarantee.as_ref()) {
            out.line(line)?;
        }
    }
    if tally.is_void() {
        return Err(Failure::failed(tally.text()).at_path(&path).advice(
            "the recorder overwrites the ring faster than it can be read beside it: hold a range and check again, \
             or check when nothing is recorded",
        ));
    }
    if tally.damaged > 0 { Err(Failure::said(Kind::Failed)) } else { Ok(()) }
}

/// What was verified, and what could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    slots: u64,
    bytes: u64,
    damaged: u64,
    /// Slots that were overwritten before they could be read: nothing is known of them.
    expired: u64,
    /// Slots of those read that only the journal has.
    journal: u64,
}

impl Tally {
    /// Takes everything planned as read.
    fn planned(&mut self, plan: &Plan) {
        self.slots = plan.slots.len() as u64;
        self.bytes = plan.bytes;
    }

    /// Takes out what of the plan was not, whole.
    fn expired(&mut self, plan: &Plan, from: Sequence, to: Sequence) {
        for slot in plan.slots.iter().filter(|slot| (from..=to).contains(&slot.sequence)) {
            self.slots = self.slots.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(slot.bytes);
            self.expired += 1;
        }
    }

    /// Nothing can be said of the ring: there was data, and none of it was read.
    fn is_void(&self) -> bool {
        self.slots == 0 && self.damaged == 0 && self.expired > 0
    }

    fn text(&self) -> String {
        if self.is_void() {
            let they = if self.expired == 1 { "it" } else { "they" };
            let slots = counted(self.expired, "slot");
            return format!("nothing was verified, {slots} expired before {they} could be read");
        }
        let found = match self.damaged {
            0 => "sound".to_owned(),
            damaged => counted(damaged, "damaged place"),
        };
        let bytes = ByteSize(self.bytes);
        let journal = match self.journal {
            0 => String::new(),
            all if all == self.slots => " (in the journal only)".to_owned(),
            open => format!(" ({} of them in the journal only)", grouped(open)),
        };
        if self.expired > 0 {
            let (slots, all) = (grouped(self.slots), counted(self.slots + self.expired, "slot"));
            let others = if self.expired == 1 { "the other one" } else { "the others" };
            return format!(
                "{slots} of {all} checked{journal}, {bytes}: {found}; {others} expired meanwhile"
            );
        }
        format!("{}{journal}, {bytes}: {found}", counted(self.slots, "slot"))
    }
}

struct Check<'o> {
    out: &'o mut Out,
    tally: Tally,
    elements: Option<u64>,
}

impl Check<'_> {
    fn damage(&mut self, bar: Option<&ProgressBar>, slot: Option<&SlotStatus>, what: &str) -> Result<()> {
        self.tally.damaged += 1;
        let shown = DamagedPlace {
            damage: what.to_owned(),
            slot: slot.map(|slot| slot.slot.0),
            sequence: slot.map(|slot| slot.sequence.0),
        };
        let mut say = || {
            if self.out.is_json() {
                return self.out.object(&shown);
            }
            let place = slot
                .map_or(String::new(), |slot| format!("slot {} (sequence {}): ", slot.slot, slot.sequence));
            self.out.line(format_args!("damaged: {place}{}", clean(what)))
        };
        match bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    /// The four copies, which the reader is content to have one of.
    fn superblocks(&mut self, path: &Path) -> Result<()> {
        let Ok(place) = holdfast_protocol::locate(path) else { return Ok(()) };
        let newest = place.superblock;
        let Ok(file) = File::open(path) else { return Ok(()) };
        for (number, offset) in Superblock::OFFSETS.into_iter().enumerate() {
            let mut block = vec![0; BLOCK];
            let wrong = match file.read_exact_at(&mut block, offset) {
                Err(error) => Some(holdfast_base::failure::reason(&error)),
                Ok(()) => match Superblock::decode(&block) {
                    Err(error) => Some(error.to_string()),
                    Ok(copy) if copy.ring != newest.ring => Some(format!("it is of ring {}", copy.ring)),
                    Ok(_) => None,
                },
            };
            if let Some(wrong) = wrong {
                self.damage(None, None, &format!("superblock copy {number} at byte {offset}: {wrong}"))?;
            }
        }
        Ok(())
    }

    /// While a recorder owns the ring, it decides when there is time to read: all elements are read and verified.
    fn through_recorder(&mut self, reader: &mut RingReader) -> Result<()> {
        reader.reads_for(Purpose::Scrub);
        let plan = reader.plan(&Selection::ALL).map_err(|error| ring_failure(&error))?;
        let bar = progress::bar(plan.bytes, true);
        let mut said = Ok(());
        self.tally.planned(&plan);
        let report = reader.read(&plan, &mut |item| {
            match item {
                Item::Expired { from, to, .. } => self.tally.expired(&plan, from, to),
                Item::Progress { bytes } => bar.set_position(bytes),
                Item::Damaged { slot, sequence, place } => {
                    let slot = SlotStatus {
                        slot,
                        look: SlotLook::Damaged,
                        sequence,
                        age: holdfast_base::Age(0),
                        first: None,
                        last: None,
                    };
                    said = self.damage(Some(&bar), Some(&slot), place);
                }
                _ => {}
            }
            if said.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.finish_and_clear();
        said?;
        let report = report.map_err(|error| ring_failure(&error))?;
        self.elements = Some(report.elements);
        Ok(())
    }

    /// Without a recorder every slot is read here from end to end.
    fn directly(&mut self, path: &Path, reader: &mut RingReader) -> Result<()> {
        let superblock = reader.superblock().clone();
        let slots = reader.slots().map_err(|error| ring_failure(&error))?;
        let data: Vec<&SlotStatus> = slots.iter().filter(|slot| slot.has_data()).collect();
        let device = Device::open(path, Access::Look).map_err(Failure::failed)?;
        let mut disk = PlainDisk::new(device, 1);
        let mut window = Blocking::new(&mut disk, CHECK_QUANTUM + 2 * BLOCK).map_err(Failure::failed)?;
        let bar = progress::bar(data.len() as u64 * superblock.geometry.slot_bytes, true);
        for slot in data {
            let wrong = match check_slot(&mut window, &superblock, slot.slot, Depth::Full) {
                Ok(check) => check.sound().and_then(|(header, _, _)| {
                    self.tally.bytes += u64::from(header.footer_offset) + BLOCK as u64;
                    let other = header.sequence != slot.sequence;
                    other.then(|| format!("it has sequence {} instead", header.sequence))
                }),
                Err(damage) => Some(damage.to_string()),
            };
            if let Some(wrong) = wrong {
                // A recorder that started meanwhile overwrites slots: that is no damage.
                if orders::recorder(path)?.is_some() {
                    bar.finish_and_clear();
                    *reader = holdfast_client::session::open(path)?;
                    return self.through_recorder(reader);
                }
                self.damage(Some(&bar), Some(slot), &wrong)?;
            }
            self.tally.slots += 1;
            bar.inc(superblock.geometry.slot_bytes);
        }
        bar.finish_and_clear();
        self.journaled(reader)
    }
}

impl Check<'_> {
    /// Open slots of a run that was cut off: the journal has them, and the next run will write them.
    fn journaled(&mut self, reader: &mut RingReader) -> Result<()> {
        let mut plan = reader.plan(&Selection::ALL).map_err(|error| ring_failure(&error))?;
        plan.slots.retain(|slot| slot.slot.is_none());
        if plan.slots.is_empty() {
            return Ok(());
        }
        let mut said = Ok(());
        let report = reader.read(&plan, &mut |item| {
            if let Item::Damaged { sequence, place, .. } = item {
                said = self.damage(None, None, &format!("journal: sequence {sequence}: {place}"));
            }
            if said.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        said?;
        let report = report.map_err(|error| ring_failure(&error))?;
        self.tally.journal = plan.slots.len() as u64;
        self.tally.slots += self.tally.journal;
        self.tally.bytes += report.bytes;
        Ok(())
    }
}

/// Writes the superblock that the recovery string tells, if the lane is that ring's.
fn rebuild(path: &Path, text: &str, out: &mut Out) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::failed(format_args!("cannot rebuild the superblock: {error}")).at_path(path)
    };
    let given =
        (text != FIND).then(|| Superblock::from_recovery_string(text)).transpose().map_err(|error| {
            Failure::usage(format_args!("this is not a recovery string: {error}"))
                .at("--geometry")
                .advice("give the line that `format` printed, whole")
        })?;
    // The error names the path itself.
    let device = Device::open(path, Access::Own)
        .map_err(|error| Failure::failed(format_args!("cannot rebuild the superblock: {error}")))?;
    let has = device.info().bytes;
    let mut disk = PlainDisk::new(device, 1);
    let superblock = match given {
        Some(given) => given,
        None => find_superblock(&mut disk).map_err(|error| wrong(&error))?.ok_or_else(|| {
            Failure::failed("no snapshot is left that repeats the recovery string")
                .at_path(path)
                .advice("give the line that `format` printed")
        })?,
    };
    if has < superblock.geometry.lane_bytes {
        return Err(Failure::failed(format_args!(
            "the recovery string is of a ring of {}, and here are {}",
            ByteSize(superblock.geometry.lane_bytes),
            ByteSize(has)
        ))
        .at_path(path)
        .advice("give the device or file that it was printed for"));
    }
    match holdfast_ring::read_superblock(&mut disk) {
        Ok(there) if there.ring == superblock.ring => {
            // One that is there tells more than the recovery string does: its copies are made whole from it.
            let there = as_journaled(&mut disk, &there).map_err(|error| wrong(&error))?;
            let broken = broken_copies(&mut disk, &there).map_err(|error| wrong(&error))?;
            if broken > 0 {
                write_superblocks(&mut disk, &there).map_err(|error| wrong(&error))?;
            }
            return rebuilt(path, &there, broken > 0, out);
        }
        Ok(there) => {
            return Err(Failure::failed(format_args!(
                "another ring is here, \"{}\" ({})",
                clean(&there.name),
                there.ring
            ))
            .at_path(path)
            .advice("give the device or file that the recovery string was printed for"));
        }
        Err(_) => {}
    }
    if !is_of(&mut disk, &superblock).map_err(|error| wrong(&error))? {
        return Err(Failure::failed("nothing here is of the ring that the recovery string tells of")
            .at_path(path)
            .advice("give the device or file that it was printed for"));
    }
    // The string may have been printed before the ring grew.
    let superblock = as_journaled(&mut disk, &superblock).map_err(|error| wrong(&error))?;
    write_superblocks(&mut disk, &superblock).map_err(|error| wrong(&error))?;
    let recovered = recover(&mut disk).map_err(|error| wrong(&error))?;
    rebuilt(path, &recovered.superblock, true, out)
}

fn rebuilt(path: &Path, superblock: &Superblock, rebuilt: bool, out: &mut Out) -> Result<()> {
    if out.is_json() {
        let slots = superblock.geometry.slots;
        return out.object(&RebuiltRing {
            path,
            ring: superblock.ring.to_string(),
            name: &superblock.name,
            slots,
            rebuilt,
        });
    }
    if rebuilt {
        out.line(format_args!(
            "{}: the superblock of ring \"{}\" is back; `holdfast check` verifies the rest",
            path.display(),
            clean(&superblock.name)
        ))
    } else {
        out.line(format_args!("{}: the superblock is there and whole, nothing was changed", path.display()))
    }
}

/// Copies that differ from the newest.
fn broken_copies(disk: &mut PlainDisk, newest: &Superblock) -> std::result::Result<usize, String> {
    let wanted = newest.encode();
    let mut window = Blocking::new(disk, BLOCK).map_err(|error| error.to_string())?;
    let mut same = |offset: u64| window.read(offset, BLOCK).is_ok_and(|copy| copy == wanted);
    Ok(Superblock::OFFSETS.into_iter().filter(|offset| !same(*offset)).count())
}

/// Whether anything on the lane carries the ring's tag: its journal, or the header of a slot.
fn is_of(disk: &mut PlainDisk, superblock: &Superblock) -> std::result::Result<bool, String> {
    let geometry = &superblock.geometry;
    let mut window = Blocking::new(disk, geometry.commit_bytes()).map_err(|error| error.to_string())?;
    for extent in 0..2 {
        if let Ok(bytes) = window.read(geometry.extent_offset(extent), geometry.commit_bytes())
            && holdfast_format::read_commit(bytes, &superblock.key, superblock.ring).is_ok()
        {
            return Ok(true);
        }
    }
    for slot in (0..geometry.slots).map(SlotNo) {
        if let Ok(block) = window.read(geometry.slot_offset(slot), BLOCK)
            && PartHeader::decode(block, &superblock.key, superblock.ring).is_ok()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::Age;
    use holdfast_reader::PlannedSlot;

    /// Slots of these sequences, of 10 MiB each.
    fn plan(sequences: std::ops::RangeInclusive<u64>) -> Plan {
        let slot = |at| PlannedSlot {
            sequence: Sequence(at),
            slot: None,
            age: Age(at),
            first: None,
            last: None,
            held: false,
            bytes: 10 << 20,
        };
        let slots: Vec<_> = sequences.map(slot).collect();
        Plan {
            selection: Selection::ALL,
            bytes: slots.iter().map(|slot| slot.bytes).sum(),
            of: slots.len(),
            slots,
            expired_before: None,
            begins: None,
            expired_ordinals: Vec::new(),
            to_end: true,
        }
    }

    fn tally(plan: &Plan, expired: &[(u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        tally.planned(plan);
        for (from, to) in expired {
            tally.expired(plan, Sequence(*from), Sequence(*to));
        }
        tally
    }

    #[test]
    fn only_what_was_read_is_called_sound() {
        let plan = plan(5..=9);
        assert_eq!(tally(&plan, &[]).text(), "5 slots, 50 MiB: sound");
        let some = tally(&plan, &[(5, 6), (8, 8)]);
        assert_eq!(some.text(), "2 of 5 slots checked, 20 MiB: sound; the others expired meanwhile");
        assert!(!some.is_void());
        let none = tally(&plan, &[(5, 9)]);
        assert_eq!(none.text(), "nothing was verified, 5 slots expired before they could be read");
        assert!(none.is_void() && none.bytes == 0);
        assert_eq!(
            Tally { damaged: 1, ..none }.text().split("; ").next(),
            Some("0 of 5 slots checked, 0 B: 1 damaged place")
        );
        // A ring on which nothing was recorded is sound.
        assert!(!Tally::default().is_void());
    }
}
