//! Evacuation: a hold becomes a dataset, which is verified before the hold is released.

use crate::error::DatasetError;
use crate::reader::Dataset;
use crate::storage::RangeRead;
use crate::target::Target;
use crate::verify::counted;
use crate::writer::{DatasetWriter, Options, StreamHead};
use crate::{Provenance, Written};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Clock as _, FileKind, HoldId, Sequence, SystemClock};
use holdfast_client::attribution::Attribution;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::{Notices, orders};
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
    target: Box<dyn Target>,
    notices: &Notices,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Evacuated> {
    let Evacuation { ring, hold, options, release, by } = *evacuation;
    let to = target.name();
    let mut reader = session::open(ring)?;
    let status = held(&mut reader, ring, hold)?;
    let heads = heads(&mut reader, &status)?;
    let provenance = provenance(&reader, &status, by);
    let selection = Selection { streams: status.streams.clone(), range: status.range.clone() };
    let what = format!("hold {hold} to {to}");
    if by.export_alone(ring, &selection, &what, notices)? {
        reader = session::open(ring)?;
    }
    by.export(&mut reader, &selection, &what)?;
    let mut plan = reader.plan(&selection).map_err(|error| ring_failure(&error))?;
    plan.slots.retain(|slot| keeps(&status, slot.sequence));
    let out = BufWriter::with_capacity(GATHER, target);
    let failed = |error: DatasetError| failure(&error, Path::new(&to));
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
    let (target, written) = finished(writer).map_err(failed)?;
    if written.manifest.streams.iter().all(|stream| stream.elements == 0) && damaged.is_empty() {
        return Err(Failure::nothing(format_args!("hold {hold} keeps no elements")).at_path(ring));
    }
    let mut target = target;
    verified(target.verify()?, &to, &written)?;
    target.publish()?;
    let may_be_released = release && damaged.is_empty();
    if may_be_released {
        unchanged(&held(&mut session::open(ring)?, ring, hold)?, &status, ring)?;
    }
    let released = may_be_released.then(|| released(evacuation, &to, &written, notices)).transpose()?;
    Ok(Evacuated { written, damaged, released })
}

/// Failure of a dataset, with its place.
pub fn failure(error: &DatasetError, path: &Path) -> Failure {
    match error {
        DatasetError::Io(error) => Failure::output("cannot write or read the dataset", path, error),
        DatasetError::NoManifest => Failure::failed(error).at_path(path).advice(FileKind::Mcap.advice(path)),
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
    let condition = hold.condition_hold.as_ref().map(|hold| hold.condition.clone());
    let or = |said: String, otherwise: &str| if said.is_empty() { otherwise.to_owned() } else { said };
    Provenance {
        hold: Some(hold.id.0),
        query: condition.unwrap_or_default(),
        owner: or(hold.owner.clone(), &by.owner()),
        reason: hold.reason.clone(),
        ..origin(reader)
    }
}

/// Origin of data that is read from a ring now, by nobody in particular.
pub fn origin(reader: &RingReader) -> Provenance {
    let superblock = reader.superblock();
    Provenance { ring: superblock.ring.to_string(), ring_name: superblock.name.clone(), ..written_here() }
}

/// Machine, program and time of a dataset that is written now.
pub(crate) fn written_here() -> Provenance {
    Provenance {
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).to_owned(),
        written_ns: SystemClock::new().now().0,
        ..Provenance::default()
    }
}

/// Ends a dataset and gives its target back.
pub fn finished(
    writer: DatasetWriter<BufWriter<Box<dyn Target>>>,
) -> Result<(Box<dyn Target>, Written), DatasetError> {
    let (out, written) = writer.finish()?;
    let target = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok((target, written))
}

/// Compares the dataset that was read back with the one that was written, and reads all elements by its index.
fn verified(file: Arc<dyn RangeRead>, to: &str, written: &Written) -> Result<()> {
    let failed = |error: DatasetError| failure(&error, Path::new(to));
    let dataset = Dataset::open(file).map_err(failed)?;
    if dataset.id() != written.id || dataset.size() != written.bytes {
        return Err(Failure::failed("what was read back is another dataset than was written").at(to));
    }
    match counted(&dataset).map_err(failed)?.first() {
        None => Ok(()),
        Some(first) => {
            Err(Failure::failed(format_args!("read back, {} is damaged: {}", first.place, first.cause))
                .at(to)
                .advice("check the place, and evacuate the hold to another one"))
        }
    }
}

fn released(evacuation: &Evacuation<'_>, to: &str, written: &Written, notices: &Notices) -> Result<u32> {
    let reason = format!("evacuated to {to} (dataset {})", written.id);
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
