//! Evacuation: a hold becomes a dataset, which is verified before the hold is released.

use crate::error::DatasetError;
use crate::reader::Dataset;
use crate::storage::LocalFile;
use crate::verify::verify;
use crate::writer::{DatasetWriter, Options, StreamHead};
use crate::{Provenance, Written};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Clock as _, HoldId, Sequence, SystemClock};
use holdfast_client::attribution::Attribution;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::{Notices, orders};
use holdfast_export::OutputFile;
use holdfast_reader::{Item, Missing, RingReader, Selection};
use holdfast_ring::{HoldStatus, Order, Outcome, ReleaseRequest, StreamStatus};
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Evacuation of a hold.
pub struct Evacuation<'a> {
    /// Ring of the hold.
    pub ring: &'a Path,
    /// Number of the hold.
    pub hold: HoldId,
    /// File of the dataset, which must not exist.
    pub to: &'a Path,
    /// Options of the dataset.
    pub options: Options,
    /// True if the hold is released when the dataset is verified.
    pub release: bool,
    /// Owner and reason, for the audit log.
    pub by: &'a Attribution,
}

/// Hold that was evacuated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evacuated {
    /// Dataset that was written.
    pub written: Written,
    /// Places and elements that the ring holds and that could not be read, so that the dataset lacks them.
    pub damaged: Vec<String>,
    /// Slots that are not held any more; `None`: the hold was not released.
    pub released: Option<u32>,
}

/// Carries it out. `progress` is told the bytes of slots that were read, and of how many. A hold of which
/// something is damaged is not released.
pub fn evacuate(
    evacuation: &Evacuation<'_>,
    notices: &Notices,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Evacuated> {
    let Evacuation { ring, hold, to, options, release, by } = *evacuation;
    let mut reader = session::open(ring)?;
    let status = held(&mut reader, ring, hold)?;
    let heads = heads(&mut reader, &status)?;
    let provenance = provenance(&reader, &status, by);
    let selection = Selection { streams: status.streams.clone(), range: status.range.clone() };
    let what = format!("hold {hold} to {}", to.display());
    if by.export_alone(ring, &selection, &what, notices)? {
        reader = session::open(ring)?;
    }
    by.export(&mut reader, &selection, &what)?;
    let mut plan = reader.plan(&selection).map_err(|error| ring_failure(&error))?;
    plan.slots.retain(|slot| keeps(&status, slot.sequence));
    let file = OutputFile::make(to, false)?;
    let out = BufWriter::with_capacity(GATHER, file.writer()?);
    let failed = |error: DatasetError| failure(&error, to);
    let mut writer = DatasetWriter::new(out, &options, &heads, provenance).map_err(failed)?;
    let (mut damaged, mut trouble, all) = (Vec::new(), None, plan.bytes);
    let mut sink = |item: Item<'_>| {
        match &item {
            Item::Damaged { slot, sequence, place } => {
                damaged.push(format!("slot {slot} (sequence {sequence}): {place}"));
            }
            Item::Expired { from, to, .. } => damaged.push(format!("slots {from} to {to} have expired")),
            Item::Partial {
                stream,
                ordinal,
                why: why @ (Missing::Damaged | Missing::Lost | Missing::Memory),
            } => {
                damaged.push(format!("element {ordinal} of stream {stream}: {why}"));
            }
            Item::Progress { bytes } => progress(*bytes, all),
            _ => {}
        }
        match writer.item(&item) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                trouble = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    reader.read(&plan, &mut sink).map_err(|error| ring_failure(&error))?;
    trouble.map_or(Ok(()), Err).map_err(failed)?;
    let (_, written) = writer.finish().map_err(failed)?;
    if written.manifest.streams.iter().all(|stream| stream.elements == 0) && damaged.is_empty() {
        return Err(Failure::nothing(format_args!("hold {hold} keeps no elements")).at_path(ring));
    }
    file.finish()?;
    verified(to, &written)?;
    let may_be_released = release && damaged.is_empty();
    if may_be_released {
        unchanged(&held(&mut session::open(ring)?, ring, hold)?, &status, ring)?;
    }
    let released = may_be_released.then(|| released(evacuation, &written, notices)).transpose()?;
    Ok(Evacuated { written, damaged, released })
}

/// Failure of a dataset, with its place.
pub fn failure(error: &DatasetError, path: &Path) -> Failure {
    match error {
        DatasetError::Io(error) => Failure::output("cannot write or read the dataset", path, error),
        other => Failure::failed(other).at_path(path),
    }
}

fn held(reader: &mut RingReader, ring: &Path, hold: HoldId) -> Result<HoldStatus> {
    let holds = reader.holds().map_err(|error| ring_failure(&error))?;
    holds.into_iter().find(|known| known.id == hold).ok_or_else(|| {
        Failure::nothing(format_args!("there is no hold {hold}"))
            .at_path(ring)
            .advice("`holdfast holds RING` lists those there are")
    })
}

/// Fails where the hold keeps other slots than were read: what came to it meanwhile is not in the dataset.
fn unchanged(now: &HoldStatus, before: &HoldStatus, ring: &Path) -> Result<()> {
    let is_standing = now.condition_hold.as_ref().is_some_and(|hold| hold.standing);
    if !is_standing && now.sequences == before.sequences {
        return Ok(());
    }
    let why = if is_standing { "it stands, and may get more data" } else { "it has changed meanwhile" };
    Err(Failure::failed(format_args!("the dataset is written, but hold {} was not released: {why}", now.id))
        .at_path(ring)
        .advice("end its evaluator, and evacuate the hold to another dataset, or release it by `holdfast release`"))
}

fn keeps(hold: &HoldStatus, sequence: Sequence) -> bool {
    hold.sequences.iter().any(|(first, last)| *first <= sequence && sequence <= *last)
}

fn heads(reader: &mut RingReader, hold: &HoldStatus) -> Result<Vec<StreamHead>> {
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let wanted = |stream: &StreamStatus| hold.streams.is_empty() || hold.streams.contains(&stream.id);
    let head = |status: StreamStatus| {
        let schema = reader.schema(status.id).map_err(|error| ring_failure(&error))?;
        Ok(StreamHead { status, schema })
    };
    streams.into_iter().filter(wanted).map(head).collect()
}

fn provenance(reader: &RingReader, hold: &HoldStatus, by: &Attribution) -> Provenance {
    let superblock = reader.superblock();
    let condition = hold.condition_hold.as_ref().map(|hold| hold.condition.clone());
    let or = |said: String, otherwise: &str| if said.is_empty() { otherwise.to_owned() } else { said };
    Provenance {
        ring: superblock.ring.to_string(),
        ring_name: superblock.name.clone(),
        hold: Some(hold.id.0),
        query: condition.unwrap_or_default(),
        owner: or(hold.owner.clone(), &by.owner()),
        reason: hold.reason.clone(),
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).to_owned(),
        written_ns: SystemClock::new().now().0,
    }
}

/// Reads the dataset back, from the disk where that can be asked for.
fn verified(path: &Path, written: &Written) -> Result<()> {
    let io = |error: &std::io::Error| Failure::output("cannot read the dataset back", path, error);
    let file = LocalFile::open(path).map_err(|error| io(&error))?;
    file.forget_cached();
    let failed = |error: DatasetError| failure(&error, path);
    let dataset = Dataset::open(Arc::new(file)).map_err(failed)?;
    let findings = verify(&dataset, &mut |_| ()).map_err(failed)?;
    if dataset.id() != written.id || dataset.size() != written.bytes {
        return Err(Failure::failed("what was read back is another dataset than was written").at_path(path));
    }
    match findings.first() {
        None => Ok(()),
        Some(first) => {
            Err(Failure::failed(format_args!("read back, {} is damaged: {}", first.place, first.cause))
                .at_path(path)
                .advice("check the disk, remove the file, and evacuate the hold to another place"))
        }
    }
}

fn released(evacuation: &Evacuation<'_>, written: &Written, notices: &Notices) -> Result<u32> {
    let reason = format!("evacuated to {} (dataset {})", evacuation.to.display(), written.id);
    let reason = match evacuation.by.reason() {
        said if said.is_empty() => reason,
        said => format!("{said} ({reason})"),
    };
    let reason = reason[..reason.floor_char_boundary(holdfast_base::MAX_REASON)].to_owned();
    let order = Some(orders::new_id()?);
    let request = ReleaseRequest { hold: evacuation.hold, reason, owner: evacuation.by.owner(), order };
    match orders::give(evacuation.ring, &Order::Release(request), notices)? {
        Outcome::Released { slots } => Ok(slots),
        other => Err(orders::unexpected(&other)),
    }
}
