//! The ring that is to be proved: whether it may be filled, what it has promised and in which machine, and how it is emptied.

use super::report::{ProvedDevice, ProvedTerms, ProvingMachine};
use super::stages::{Promised, element};
use crate::guarantee;
use crate::identity;
use crate::plan::Packs;
use crate::plan::answer::attribute_load;
use holdfast_base::Rate;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::random;
use holdfast_client::session::{self, ring_failure};
use holdfast_format::{Key, Superblock};
use holdfast_media::{Access, Device, RealDisk, wipe};
use holdfast_ring::{Lack, NewRing, SlotStatus, create, longest};
use rustix::fs::FileType;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What is to be proved.
pub struct Subject {
    /// The superblock of the ring.
    pub superblock: Superblock,
    /// There is data on the ring.
    pub has_data: bool,
    /// Payload to drive it with.
    pub(crate) rate: Rate,
    /// Bytes of an element.
    pub(crate) element: u64,
    pub(crate) promised: Option<(Promised, ProvedTerms)>,
}

impl Subject {
    /// Looks at the ring: whether it may be filled, and what it has promised.
    pub fn open(path: &Path, destroy: bool, rate: Option<Rate>) -> Result<Self> {
        // A recorder would own it; what may not be written cannot be proved.
        let cannot = |error| Failure::failed(format_args!("cannot be proved: {error}"));
        drop(Device::open(path, Access::Own).map_err(cannot)?);
        let mut reader = session::open(path)?;
        let superblock = reader.superblock().clone();
        let slots = reader.slots().map_err(|error| ring_failure(&error))?;
        let status = reader.status().map_err(|error| ring_failure(&error))?;
        let streams = reader.streams().map_err(|error| ring_failure(&error))?;
        let has_data = !streams.is_empty() || status.ring.holds > 0 || slots.iter().any(SlotStatus::has_data);
        if has_data && !destroy {
            return Err(Failure::failed("there is data on this ring, and a proof writes all over it")
                .at_path(path)
                .advice("prove it before it is used, or say --destroy to lose the data"));
        }
        let shown = guarantee::of(path, &superblock, status.ring.slots.unwritten);
        let Some(shown) = shown else {
            let rate = rate.ok_or_else(|| {
                Failure::failed("this ring promises nothing: it was made without a profile").at_path(path).advice(
                    "measure the device with `holdfast profile`, then make the ring with `holdfast format --profile FILE --rate \
                     RATE`; or give --rate to see what it does",
                )
            })?;
            let element = element(rate, rate.0.div_ceil(crate::plan::ELEMENT));
            return Ok(Self { superblock, has_data, rate, element, promised: None });
        };
        if rate.is_some() {
            return Err(
                Failure::usage("this ring is driven at the rate that it promises").advice("leave --rate out")
            );
        }
        let why: Vec<String> = shown.why_not().iter().map(Lack::to_string).collect();
        if !why.is_empty() {
            return Err(Failure::failed(format_args!("nothing is promised here now: {}", why.join("; ")))
                .at_path(path)
                .advice(
                    "a file that was made with `holdfast format --prefill` keeps its promise from the start",
                ));
        }
        let (promised, terms) = promised(&superblock).ok_or_else(|| {
            Failure::failed("the ring's terms would not be admitted any more").at_path(path)
        })?;
        let (rate, count) = superblock.terms.map_or((Rate(0), 0), |terms| (terms.rate, terms.elements));
        Ok(Self {
            has_data,
            rate,
            element: promised.each.frame.map_or_else(|| element(rate, count), u64::from),
            promised: Some((promised, terms)),
            superblock,
        })
    }
}

/// What a ring has promised, and what that rests on.
fn promised(superblock: &Superblock) -> Option<(Promised, ProvedTerms)> {
    let terms = superblock.terms.as_ref()?;
    let (ask, admitted, figures) = guarantee::promised(superblock)?;
    let measured = &terms.measured;
    let medium = admitted.load.rate;
    let (shape, packs) = (admitted.shape.among(superblock.geometry.slots), Packs::of(measured));
    let seconds = |span: Duration| span.as_secs_f64();
    let promised = Promised {
        capture_only: ask.most_alone(&shape, packs).payload,
        with_reads: ask.most(&shape, packs).payload,
        reads_left: figures.reads_left,
        read: measured.read,
        reposition: measured.reposition,
        bursts: figures.bursts,
        durable_after: admitted.guarantee.durable_after,
        burst: terms.burst,
        longest: longest(measured, &admitted.shape, &admitted.guarantee),
        buffers: admitted.shape.buffers,
        parallel: measured.parallel,
        each: ask.each,
    };
    let shown = ProvedTerms {
        measured_at: measured.at,
        worst_write_bytes_per_second: measured.write.0,
        worst_read_bytes_per_second: measured.read.0,
        worst_reposition_seconds: seconds(measured.reposition),
        commit_seconds: seconds(measured.commit),
        read_error_seconds: seconds(measured.read_error),
        stall_seconds: seconds(measured.stall),
        stalled_share: f64::from(measured.stalled) / 1e6,
        parallel: measured.parallel,
        elements_per_second: terms.elements,
        attributes: attribute_load(&ask),
        burst_bytes: terms.burst.0,
        medium_bytes_per_second: medium.0,
        gather: terms.gather,
        quantum_bytes: terms.quantum,
        buffers: admitted.shape.buffers,
        capture_only_bytes_per_second: promised.capture_only.0,
        with_reads_bytes_per_second: promised.with_reads.0,
        reads_left_bytes_per_second: promised.reads_left.0,
        burst_seconds: figures.bursts.map(|burst| burst.map(seconds)),
        durable_after_seconds: seconds(promised.durable_after),
    };
    Some((promised, shown))
}

/// Makes the ring anew, empty, as it was made: under another key, so that nothing that is left of the old one counts.
pub fn empty(path: &Path) -> Result<Superblock> {
    let cannot = |what: &dyn std::fmt::Display| {
        Failure::failed(format_args!("cannot empty the ring: {what}")).at_path(path)
    };
    let mut reader = session::open(path)?;
    let old = reader.superblock().clone();
    let unwritten = reader.status().map_err(|error| ring_failure(&error))?.ring.slots.unwritten;
    drop(reader);
    let device = Device::open(path, Access::Own).map_err(|error| cannot(&error))?;
    wipe(&device).map_err(|error| cannot(&error))?;
    let mut disk = RealDisk::new(device, &[], 1);
    let plain = NewRing::plain(random::ring_id()?, Key(random::bytes()?), &old.name, old.geometry.clone());
    let new = NewRing { prefilled: unwritten == 0, terms: old.terms, ..plain };
    create(&mut disk, new, session::now()).map_err(|error| cannot(&error))
}

/// The device, as the system tells it.
pub(crate) fn device(path: &Path) -> ProvedDevice {
    let is_file = rustix::fs::stat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let bytes = if is_file {
        fs::metadata(path).map_or(0, |found| found.len())
    } else {
        Device::open(path, Access::Look).map_or(0, |device| device.info().bytes)
    };
    let identity = identity::of(path, bytes);
    ProvedDevice {
        path: identity.path,
        model: identity.model,
        serial: identity.serial,
        medium: identity.medium,
        device_bytes: identity.bytes.0,
        rotational: identity.rotational,
    }
}

/// The machine.
pub(crate) fn machine(realtime: bool) -> ProvingMachine {
    let first = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    ProvingMachine {
        host: first("/proc/sys/kernel/hostname"),
        kernel: first("/proc/sys/kernel/osrelease"),
        processor: name.map_or("an unnamed processor".to_owned(), |(_, name)| name.trim().to_owned()),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        realtime,
    }
}
