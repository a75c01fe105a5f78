//! What a ring promises, as its superblock has it, in words and in JSON; and why it does not hold yet, or not here.

use crate::out::{counted, grouped};
use crate::plan::{Admitted, Ask, FLUSH, text};
use crate::{show, times};
use holdfast_base::{ByteSize, Rate, Timestamp, plural};
use holdfast_format::{Superblock, Terms};
use holdfast_link::wire::Status;
use holdfast_media::{caution_for, shared_with};
use holdfast_ring::{Figures, Refused, SlotLook, SlotStatus, longest};
use rustix::fs::FileType;
use serde::Serialize;
use std::path::Path;

/// A ring's guarantee as JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    /// Whether it holds now.
    holds: bool,
    /// Why it does not: until when, or for ever.
    best_effort: Vec<String>,
    rate_bytes_per_second: u64,
    elements_per_second: u64,
    burst_bytes: u64,
    medium_bytes_per_second: u64,
    /// What the run that is under way was admitted for: its streams may declare something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_medium_bytes_per_second: Option<u64>,
    gather: u16,
    buffers: u32,
    memory_bytes: u64,
    region_bytes: u64,
    #[serde(serialize_with = "show::time")]
    measured_at: Timestamp,
    /// `None` when it would not be admitted any more.
    #[serde(flatten)]
    figures: Option<FiguresShown>,
}

#[derive(Clone, Debug, Serialize)]
struct FiguresShown {
    capture_only_bytes_per_second: u64,
    with_reads_bytes_per_second: u64,
    reads_left_bytes_per_second: u64,
    burst_seconds: [Option<f64>; 3],
    durable_after_seconds: f64,
    longest_write_seconds: f64,
    longest_read_seconds: f64,
}

/// How a reason begins that goes away by itself.
const UNTIL: &str = "until ";

/// What is said of a ring without a guarantee.
const NONE: &str = "best effort: it was made without a profile";

/// Slots that were never written.
fn unwritten(slots: &[SlotStatus]) -> u64 {
    slots.iter().filter(|slot| slot.sequence.0 == 0 && slot.look != SlotLook::Bad).count() as u64
}

/// The guarantee of the ring at a path, of which so many slots were never written; `None` for one that does its best.
pub(crate) fn of(path: &Path, superblock: &Superblock, unwritten: u64) -> Option<Shown> {
    let terms = superblock.terms.as_ref()?;
    let mut why = place(path);
    if unwritten > 0 && !superblock.prefilled && is_file(path) {
        let have = if unwritten == 1 { "has" } else { "have" };
        let slots = plural(unwritten, "slot");
        why.push(format!("{UNTIL}{} more {slots} {have} been written once", grouped(unwritten)));
    }
    Some(shown(terms, superblock, why))
}

/// The same of a ring that was looked at, with a recorder or without.
pub(crate) fn seen(
    path: &Path,
    superblock: &Superblock,
    status: &Status,
    slots: &[SlotStatus],
) -> Option<Shown> {
    let mut shown = of(path, superblock, unwritten(slots))?;
    let margin = status.recorder.as_ref().and_then(|recorder| recorder.margin);
    shown.run_medium_bytes_per_second = margin.map(|margin| margin.rate.0);
    if let Some(recorder) = &status.recorder
        && recorder.buffers.count < shown.buffers
    {
        shown.holds = false;
        shown.best_effort.push(format!(
            "the recorder has {}, and it takes {}: give it more --memory",
            counted(recorder.buffers.count.into(), "slot buffer"),
            shown.buffers
        ));
    }
    Some(shown)
}

impl Shown {
    /// Why it does not hold here and now.
    pub(crate) fn why_not(&self) -> &[String] {
        &self.best_effort
    }
}

/// What a ring's terms come to, with the shape and the load that they are of; `None` where nothing was promised, or what was
/// would not be admitted any more.
pub(crate) fn promised(superblock: &Superblock) -> Option<(Admitted, Figures)> {
    let terms = superblock.terms.as_ref()?;
    let slot = ByteSize(superblock.geometry.slot_bytes);
    weighed(terms, slot, superblock.geometry.slots).1.ok()
}

/// Why nothing can be promised at a place, whatever was measured.
fn place(path: &Path) -> Vec<String> {
    if !is_file(path) {
        let shared = shared_with(path);
        return shared
            .map(|who| format!("the disk is shared with other writers: {who}"))
            .into_iter()
            .collect();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    caution_for(folder).into_iter().collect()
}

fn is_file(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Weighs the terms again: what follows from them is not in the superblock.
fn weighed(terms: &Terms, slot: ByteSize, slots: u32) -> (Ask, Result<(Admitted, Figures), Refused>) {
    let ask = Ask {
        rate: terms.rate,
        elements: Some(terms.elements),
        burst: terms.burst,
        streams: 1,
        slot: Some(slot),
        gather: Some(terms.gather),
        quantum: Some(ByteSize(terms.quantum.into())),
        memory: Some(terms.memory),
        flush: FLUSH,
    };
    let admitted = ask.candidate(slot, terms.gather).admit(&terms.measured);
    let both = admitted.map(|admitted| (admitted, admitted.figures(&terms.measured, slots)));
    (ask, both)
}

fn shown(terms: &Terms, superblock: &Superblock, mut why: Vec<String>) -> Shown {
    let slot = ByteSize(superblock.geometry.slot_bytes);
    let (ask, weighed) = weighed(terms, slot, superblock.geometry.slots);
    if let Err(refused) = &weighed {
        why.push(format!("what was measured would not be admitted any more: {refused}"));
    }
    Shown {
        holds: why.is_empty(),
        best_effort: why,
        rate_bytes_per_second: terms.rate.0,
        elements_per_second: terms.elements,
        burst_bytes: terms.burst.0,
        medium_bytes_per_second: ask.load(slot).rate.0,
        run_medium_bytes_per_second: None,
        gather: terms.gather,
        buffers: u32::try_from(terms.memory.0 / slot.0.max(1)).unwrap_or(u32::MAX),
        memory_bytes: terms.memory.0,
        region_bytes: superblock.geometry.lane_bytes,
        measured_at: terms.measured.at,
        figures: weighed.ok().map(|(admitted, figures)| {
            let longest = longest(&terms.measured, &admitted.shape, &admitted.guarantee);
            FiguresShown {
                capture_only_bytes_per_second: figures.capture_only.0,
                with_reads_bytes_per_second: figures.with_reads.0,
                reads_left_bytes_per_second: figures.reads_left.0,
                burst_seconds: figures.bursts.map(|burst| burst.map(|burst| burst.as_secs_f64())),
                durable_after_seconds: admitted.guarantee.durable_after.as_secs_f64(),
                longest_write_seconds: longest.write.as_secs_f64(),
                longest_read_seconds: longest.read.as_secs_f64(),
            }
        }),
    }
}

/// The same in words: what is promised, then what follows from it.
pub(crate) fn lines(guarantee: Option<&Shown>) -> Vec<String> {
    let Some(shown) = guarantee else { return vec![NONE.to_owned()] };
    let rate = Rate(shown.rate_bytes_per_second);
    let medium = Rate(shown.medium_bytes_per_second);
    let promise = format!("{rate} of payload, {medium} on the medium");
    let why = shown.best_effort.join("; ");
    let mut lines = vec![if shown.holds {
        format!("guaranteed {promise}")
    } else if shown.best_effort.iter().all(|why| why.starts_with(UNTIL)) {
        format!("best effort {why}; then guaranteed {promise}")
    } else {
        format!("best effort: {why} (admitted for {promise})")
    }];
    if let Some(run) = shown.run_medium_bytes_per_second.filter(|run| *run != shown.medium_bytes_per_second) {
        lines.push(format!("this run was admitted for {} on the medium, as its streams declare", Rate(run)));
    }
    if let Some(figures) = &shown.figures {
        let span = |seconds: f64| times::spoken(std::time::Duration::from_secs_f64(seconds));
        lines.push(format!(
            "on the medium up to {} while nobody reads, {} with readers; {} left for them",
            Rate(figures.capture_only_bytes_per_second),
            Rate(figures.with_reads_bytes_per_second),
            Rate(figures.reads_left_bytes_per_second)
        ));
        lines.push(format!("bursts of {}", text::bursts(&figures.burst_seconds)));
        lines.push(format!(
            "durable after {}, with {} ({}) in memory",
            span(figures.durable_after_seconds),
            counted(shown.buffers.into(), "slot buffer"),
            ByteSize(shown.memory_bytes)
        ));
    }
    lines
}
