//! Index copies: copies of a ring's index on a faster drive, made, checked and removed.

use crate::notices::Notices;
use crate::session::ring_failure;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_base::{Age, Sequence};
use holdfast_reader::ReaderError;
use holdfast_reader::{IndexDrive, PlannedSlot, RingReader, Selection, SlotError};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// For a copy that finds no room, so many times its bytes are freed at most.
const MOST_FREED: u64 = 4;

/// Copies that a query reads before it reads the ring, if there are any.
#[derive(Clone, Debug, Default)]
pub struct IndexCopies {
    place: Option<PathBuf>,
    notices: Notices,
    looked: Arc<OnceLock<()>>,
}

impl IndexCopies {
    /// Copies at that place; `notices` are told where there are none of the ring.
    pub fn at(place: Option<PathBuf>, notices: Notices) -> Self {
        Self { place, notices, looked: Arc::default() }
    }

    /// A reader that looks there. Whoever asks is told once where there is nothing of the ring: the answer is the same, but not as
    /// soon.
    pub fn read_by(&self, reader: RingReader) -> RingReader {
        if let Some(place) = &self.place {
            let ring = reader.superblock().ring;
            self.looked.get_or_init(|| {
                if let Some(nothing) = nothing_of(&IndexDrive::new(place, ring), place) {
                    self.notices.tell(format_args!("{nothing}: all is read from the ring"));
                }
            });
        }
        reader.with_index(self.place.as_deref())
    }
}

/// That there is nothing of a ring at the place of its copies, in words.
pub fn nothing_of(drive: &IndexDrive, place: &Path) -> Option<String> {
    let shown = place.display();
    match drive.is_there() {
        Ok(true) => None,
        Ok(false) if !place.exists() => {
            Some(format!("there is no {shown} (--index, or `index` in the configuration file)"))
        }
        Ok(false) => {
            Some(format!("{shown} has no copies of this ring's index, which `holdfast index` makes"))
        }
        Err(error) => Some(format!("the copies of the index at {shown} cannot be read ({})", reason(&error))),
    }
}

/// Error of keeping copies.
pub enum CopyError {
    /// On the way to the ring: it may be better soon.
    Ring(Failure),
    /// On the index drive.
    Drive(Failure),
}

impl From<ReaderError> for CopyError {
    fn from(error: ReaderError) -> Self {
        Self::Ring(ring_failure(&error))
    }
}

/// Report of one round of copying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Slots that have a copy by now.
    pub slots: u64,
    /// Bytes of all copies.
    pub bytes: u64,
    /// Number of copies made.
    pub copied: u64,
    /// Number of copies removed.
    pub removed: u64,
    /// Slots without a copy, for which there is no room.
    pub left: u64,
    /// Why copies that were taken away could not be overwritten before.
    pub kept: Option<String>,
    /// Slots that could not be copied, and why.
    pub damaged: Vec<(Sequence, String)>,
}

/// The copies that there are, as far as they are of slots that the ring still has.
struct Copies<'d> {
    drive: &'d IndexDrive,
    bytes: BTreeMap<(Age, Sequence), u64>,
    used: u64,
    removed: u64,
    /// Whether some had to go for want of room.
    is_shrunk: bool,
    /// Why the first that could not be overwritten before it went was not.
    left: Option<std::io::Error>,
}

impl<'d> Copies<'d> {
    /// Takes away those of slots that are gone.
    fn of(drive: &'d IndexDrive, slots: &[PlannedSlot]) -> Result<Self, CopyError> {
        let ages: HashMap<Sequence, Age> = slots.iter().map(|slot| (slot.sequence, slot.age)).collect();
        let mut copies =
            Self { drive, bytes: BTreeMap::new(), used: 0, removed: 0, is_shrunk: false, left: None };
        let there = drive.copies().map_err(|error| copies.trouble("cannot list the copies", &error))?;
        for (sequence, bytes) in there {
            match ages.get(&sequence) {
                Some(age) => {
                    copies.bytes.insert((*age, sequence), bytes);
                    copies.used += bytes;
                }
                None => copies.remove(sequence)?,
            }
        }
        Ok(copies)
    }

    fn trouble(&self, doing: &str, error: &std::io::Error) -> CopyError {
        let failure = Failure::io(doing, self.drive.path(), error);
        CopyError::Drive(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                failure.advice("make room there, or say how much may be taken with --size")
            }
            _ => failure,
        })
    }

    fn remove(&mut self, sequence: Sequence) -> Result<(), CopyError> {
        let left = self.drive.remove(sequence);
        let left = left.map_err(|error| self.trouble("cannot take a copy away", &error))?;
        self.left = self.left.take().or(left);
        self.removed += 1;
        Ok(())
    }

    /// Takes away those that are not as they were made, and those of what the ring had under the same sequence before it was put back
    /// to what it was.
    fn look_through(
        &mut self,
        reader: &mut RingReader,
        slots: &[PlannedSlot],
        sound: &mut CheckedCopies,
        enough: &dyn Fn() -> bool,
    ) -> Result<(), CopyError> {
        let all: HashSet<Sequence> = self.bytes.keys().map(|(_, sequence)| *sequence).collect();
        sound.0.retain(|sequence| all.contains(sequence));
        let unknown = self.bytes.keys().rev().filter(|(_, sequence)| !sound.0.contains(sequence));
        let mut damaged = Vec::new();
        for copy in unknown.copied().collect::<Vec<_>>() {
            if enough() {
                break;
            }
            let at = slots.binary_search_by_key(&copy, |slot| (slot.age, slot.sequence)).ok();
            let is_of = match at.map(|at| reader.look_into(&slots[at])) {
                Some(Ok(view)) => self.drive.has_copy_of(view.header()),
                Some(Err(SlotError::Failed(error))) => return Err(error.into()),
                // It has expired, or nobody can look into it.
                Some(Err(_)) | None => continue,
            };
            if is_of && self.drive.is_sound(copy.1) {
                sound.0.insert(copy.1);
            } else {
                damaged.push(copy);
            }
        }
        for copy in damaged {
            self.used -= self.bytes.remove(&copy).unwrap_or(0);
            self.remove(copy.1)?;
        }
        Ok(())
    }

    fn has(&self, slot: &PlannedSlot) -> bool {
        self.bytes.contains_key(&(slot.age, slot.sequence))
    }

    /// Takes away the oldest until there are no more than `limit` bytes.
    fn shrink(&mut self, limit: u64) -> Result<(), CopyError> {
        while self.used > limit
            && let Some((copy, bytes)) = self.bytes.pop_first()
        {
            self.used -= bytes;
            self.is_shrunk = true;
            self.remove(copy.1)?;
        }
        Ok(())
    }

    /// Bytes of a copy, on average.
    fn usual(&self) -> u64 {
        self.used / (self.bytes.len() as u64).max(1)
    }

    /// Which copies give way to one of so many bytes: the oldest, and none that is younger than it. `None`: there is no room.
    fn giving_way(&self, slot: &PlannedSlot, bytes: u64, limit: u64) -> Option<Vec<(Age, Sequence)>> {
        let mut over = (self.used + bytes).saturating_sub(limit);
        let mut gone = Vec::new();
        for (copy, bytes) in self.bytes.range(..(slot.age, slot.sequence)) {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(*bytes);
            gone.push(*copy);
        }
        (over == 0).then_some(gone)
    }

    fn put(&mut self, slot: &PlannedSlot, image: &[u8], gone: &[(Age, Sequence)]) -> Result<(), CopyError> {
        let mut freed = 0;
        self.is_shrunk |= !gone.is_empty();
        for copy in gone {
            self.used -= self.bytes.remove(copy).unwrap_or(0);
            self.remove(copy.1)?;
        }
        while let Err(error) = self.drive.put(slot.sequence, image) {
            // What is free on a device lies in pieces, or other rings have it: more of the oldest go, but not many for one.
            let oldest = self.bytes.first_key_value().map(|(copy, bytes)| (*copy, *bytes));
            let oldest = oldest.filter(|(copy, bytes)| {
                *copy < (slot.age, slot.sequence) && freed + bytes <= MOST_FREED * image.len() as u64
            });
            let Some((copy, bytes)) = oldest.filter(|_| error.kind() == ErrorKind::StorageFull) else {
                return Err(self.trouble("cannot write a copy", &error));
            };
            freed += bytes;
            self.is_shrunk = true;
            self.used -= self.bytes.remove(&copy).unwrap_or(0);
            self.remove(copy.1)?;
        }
        self.bytes.insert((slot.age, slot.sequence), image.len() as u64);
        self.used += image.len() as u64;
        Ok(())
    }
}

/// Slots that may have a copy: all that are on the medium, oldest first.
fn slots(reader: &mut RingReader) -> Result<Vec<PlannedSlot>, ReaderError> {
    let mut slots = reader.plan(&Selection::ALL)?.slots;
    slots.retain(|slot| slot.slot.is_some());
    slots.sort_unstable_by_key(|slot| (slot.age, slot.sequence));
    Ok(slots)
}

/// Copies that have been looked through since this process began, or that it made: what others left behind may be damaged. It is
/// forgotten where they were lost, for what is there then is others'.
#[derive(Debug, Default)]
pub struct CheckedCopies(HashSet<Sequence>);

/// Takes away the copies of slots that the ring no longer has; why one could not be overwritten before, if so.
pub fn sweep(reader: &mut RingReader, drive: &IndexDrive) -> Result<Option<std::io::Error>, CopyError> {
    Ok(Copies::of(drive, &slots(reader)?)?.left)
}

/// Takes away copies that are damaged, and copies what has none, the youngest first, within `limit` bytes, until `enough`.
pub fn copy(
    reader: &mut RingReader,
    drive: &IndexDrive,
    limit: u64,
    sound: &mut CheckedCopies,
    enough: &dyn Fn() -> bool,
) -> Result<CopyReport, CopyError> {
    let slots = slots(reader)?;
    let mut copies = Copies::of(drive, &slots)?;
    copies.look_through(reader, &slots, sound, enough)?;
    copies.shrink(limit)?;
    let (mut done, mut is_full) = (CopyReport::default(), false);
    let missing: Vec<&PlannedSlot> = slots.iter().rev().filter(|slot| !copies.has(slot)).collect();
    for slot in missing {
        if enough() {
            break;
        }
        // It is not read in vain, again and again.
        if copies.giving_way(slot, copies.usual(), limit).is_none() {
            is_full = true;
            break;
        }
        let image = match reader.look_into(slot).and_then(|mut view| view.index_copy()) {
            Ok(image) => image,
            Err(SlotError::Expired) => continue,
            Err(SlotError::Damaged(place)) => {
                done.damaged.push((slot.sequence, place));
                continue;
            }
            Err(SlotError::Failed(error)) => return Err(error.into()),
        };
        let Some(gone) = copies.giving_way(slot, image.len() as u64, limit) else {
            is_full = true;
            break;
        };
        copies.put(slot, &image, &gone)?;
        sound.0.insert(slot.sequence);
        done.copied += 1;
    }
    let without = slots.len() - copies.bytes.len() - done.damaged.len();
    done.left = if is_full || copies.is_shrunk { without as u64 } else { 0 };
    done.kept = copies.left.take().map(|error| reason(&error));
    (done.slots, done.bytes, done.removed) = (copies.bytes.len() as u64, copies.used, copies.removed);
    Ok(done)
}
