//! Guarantee of a ring, as its superblock has it, in words and in JSON; and why it does not hold yet, or not here.

use crate::plan::answer::attribute_load;
use crate::plan::{Admitted, Ask, FLUSH, Packs, text};
use holdfast_base::counted;
use holdfast_base::{ByteSize, Rate};
use holdfast_client::json::{Guarantee, GuaranteeFigures};
use holdfast_client::times;
use holdfast_format::{Superblock, Terms};
use holdfast_media::Footing;
use holdfast_protocol::wire::Status;
use holdfast_ring::{Figures, Lack, NOTHING_PROMISED, Refused, longest, standing};
use std::path::Path;

/// Why what was admitted for the ring at a path is not guaranteed there, or not yet; so many of its slots were never written.
pub fn lacks(path: &Path, unwritten: u32) -> Vec<Lack> {
    Lack::of(&Footing::of(path), unwritten)
}

/// The guarantee of the ring at a path, of which so many slots were never written; `None` for one that does its best.
pub fn of(path: &Path, superblock: &Superblock, unwritten: u32) -> Option<Guarantee> {
    let terms = superblock.terms.as_ref()?;
    Some(shown(terms, superblock, lacks(path, unwritten)))
}

/// The same of a ring that was looked at, with a recorder or without.
pub fn seen(path: &Path, superblock: &Superblock, status: &Status) -> Option<Guarantee> {
    let mut shown = of(path, superblock, status.ring.slots.unwritten)?;
    let margin = status.recorder.as_ref().and_then(|recorder| recorder.margin);
    shown.run_medium_bytes_per_second = margin.map(|margin| margin.rate.0);
    if let Some(recorder) = &status.recorder
        && recorder.buffers.count < shown.buffers
    {
        shown.holds = false;
        shown.best_effort.push(Lack::Buffers { has: recorder.buffers.count, takes: shown.buffers });
    }
    Some(shown)
}

/// What a ring's terms come to, with what was asked, and the shape and the load that they are of; `None` where nothing was
/// promised, or what was would not be admitted any more.
pub(crate) fn promised(superblock: &Superblock) -> Option<(Ask, Admitted, Figures)> {
    let terms = superblock.terms.as_ref()?;
    let slot = ByteSize(superblock.geometry.slot_bytes);
    let (ask, weighed) = weighed(terms, slot, superblock.geometry.slots);
    let (admitted, figures) = weighed.ok()?;
    Some((ask, admitted, figures))
}

/// Weighs the terms again: what follows from them is not in the superblock.
fn weighed(terms: &Terms, slot: ByteSize, slots: u32) -> (Ask, Result<(Admitted, Figures), Refused>) {
    let ask = Ask {
        rate: terms.rate,
        elements: Some(terms.elements),
        burst: terms.burst,
        streams: 1,
        size: None,
        each: terms.each,
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

fn shown(terms: &Terms, superblock: &Superblock, mut lacks: Vec<Lack>) -> Guarantee {
    let slot = ByteSize(superblock.geometry.slot_bytes);
    let (ask, weighed) = weighed(terms, slot, superblock.geometry.slots);
    if let Err(refused) = &weighed {
        lacks.push(Lack::Refused(*refused));
    }
    let packs = Packs::of(&terms.measured);
    Guarantee {
        holds: lacks.is_empty(),
        best_effort: lacks,
        rate_bytes_per_second: terms.rate.0,
        elements_per_second: terms.elements,
        burst_bytes: terms.burst.0,
        attributes: attribute_load(&ask),
        medium_bytes_per_second: ask.load(slot).rate.0,
        run_medium_bytes_per_second: None,
        gather: terms.gather,
        buffers: u32::try_from(terms.memory.0 / slot.0.max(1)).unwrap_or(u32::MAX),
        memory_bytes: terms.memory.0,
        region_bytes: superblock.geometry.lane_bytes,
        measured_at: terms.measured.at,
        figures: weighed.ok().map(|(admitted, figures)| {
            let longest = longest(&terms.measured, &admitted.shape, &admitted.guarantee);
            let shape = admitted.shape.among(superblock.geometry.slots);
            GuaranteeFigures {
                capture_only_bytes_per_second: ask.most_alone(&shape, packs).medium.0,
                with_reads_bytes_per_second: ask.most(&shape, packs).medium.0,
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
pub fn lines(guarantee: Option<&Guarantee>) -> Vec<String> {
    let Some(shown) = guarantee else { return vec![NOTHING_PROMISED.to_owned()] };
    let rate = Rate(shown.rate_bytes_per_second);
    let medium = Rate(shown.medium_bytes_per_second);
    let mut lines = vec![standing(rate, medium, &shown.best_effort)];
    if let Some(run) = shown.run_medium_bytes_per_second.filter(|run| *run != shown.medium_bytes_per_second) {
        lines.push(format!("this run was admitted for {} on the medium, as its streams declare", Rate(run)));
    }
    if let Some(figures) = &shown.figures {
        let bound = |seconds: f64| times::spoken_up(std::time::Duration::from_secs_f64(seconds));
        lines.push(format!(
            "on the medium up to {} while nobody reads, {} with readers; {} left for them",
            Rate(figures.capture_only_bytes_per_second),
            Rate(figures.with_reads_bytes_per_second),
            Rate(figures.reads_left_bytes_per_second)
        ));
        lines.push(format!("bursts of {}", text::bursts(&figures.burst_seconds)));
        lines.push(format!(
            "durable after {}, with {} ({}) in memory",
            bound(figures.durable_after_seconds),
            counted(shown.buffers.into(), "slot buffer"),
            ByteSize(shown.memory_bytes)
        ));
    }
    lines
}
