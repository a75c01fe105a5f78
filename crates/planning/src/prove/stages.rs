//! The stages of a proof: at which rate, beside whom, for how long; and what of it the ring has promised. Pure.

use holdfast_base::{ByteSize, Rate};
use holdfast_format::ElementLoad;
use holdfast_ring::Longest;
use std::time::Duration;

/// What a ring has promised, as far as a proof looks at it. Rates are of payload, but for what is left for reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Promised {
    pub(crate) capture_only: Rate,
    pub(crate) with_reads: Rate,
    pub(crate) reads_left: Rate,
    /// What the device was measured to read at, and how long it takes to get anywhere.
    pub(crate) read: Rate,
    pub(crate) reposition: Duration,
    /// At 1.5, 2 and 4 times the rate; `None`: for ever.
    pub(crate) bursts: [Option<Duration>; 3],
    pub(crate) durable_after: Duration,
    /// What may come at once beyond the rate.
    pub(crate) burst: ByteSize,
    /// What a request takes at most on a device that keeps to its profile.
    pub(crate) longest: Longest,
    /// Slot buffers.
    pub(crate) buffers: u32,
    /// Requests that the device serves at once.
    pub(crate) parallel: u16,
    /// What an element takes beside its payload.
    pub(crate) each: ElementLoad,
}

/// What a stage is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// The highest rate while nobody reads.
    Capture,
    /// What is left for reading in order at the declared rate.
    Left,
    /// The declared rate, beside all readers.
    Guarantee,
    /// The highest rate while anybody may read.
    Reads,
    /// More than the declared rate for a while, beside all readers.
    Bursts,
}

impl StageKind {
    /// As it is told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture only",
            Self::Left => "reading in order",
            Self::Guarantee => "all readers",
            Self::Reads => "with reads",
            Self::Bursts => "bursts",
        }
    }
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    Nobody,
    /// As much as they get, in order.
    InOrder,
    /// In order, at random places, and a held range again and again.
    All,
}

/// A stretch of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) kind: StageKind,
    /// Payload.
    pub(crate) rate: Rate,
    pub(crate) readers: Readers,
    pub(crate) lasts: Duration,
}

/// A time of more than the declared rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    /// How much more, in halves of the declared rate.
    pub(crate) halves: u32,
    /// For how long the ring has promised to take it; `None`: for ever, or nothing was promised.
    pub(crate) promised: Option<Duration>,
    /// The declared rate comes before it for so long.
    pub(crate) lead: Duration,
    /// It ends after this, if nothing is lost before.
    pub(crate) lasts: Duration,
}

/// Shares of the whole time, in hundredths.
const SHARES: [(StageKind, Readers, u32); 5] = [
    (StageKind::Capture, Readers::Nobody, 20),
    (StageKind::Left, Readers::InOrder, 20),
    (StageKind::Guarantee, Readers::All, 30),
    (StageKind::Reads, Readers::All, 10),
    (StageKind::Bursts, Readers::All, 20),
];

/// How far a rate is taken back, in thousandths, so that rounding does not make one of it that was not admitted.
const ROUNDING: u64 = 999;

fn below(rate: Rate) -> Rate {
    Rate((u128::from(rate.0) * u128::from(ROUNDING) / 1000) as u64)
}

/// The stages of a proof that takes so long. Without a promise everything comes at the rate that was asked for.
pub(crate) fn stages(total: Duration, rate: Rate, promised: Option<&Promised>) -> Vec<Stage> {
    let stage = |&(kind, readers, share): &(StageKind, Readers, u32)| {
        let rate = match (kind, promised) {
            (StageKind::Capture, Some(promised)) => below(promised.capture_only).max(rate),
            (StageKind::Reads, Some(promised)) => below(promised.with_reads).max(rate),
            _ => rate,
        };
        Stage { kind, rate, readers, lasts: total * share / 100 }
    };
    SHARES.iter().map(stage).collect()
}

/// The bursts of a stage: each has a third, with the rate before it, and quiet time after it.
pub(crate) fn bursts(stage: &Stage, halves: [u32; 3], promised: Option<&Promised>) -> [Burst; 3] {
    let third = stage.lasts / 3;
    let mut number = 0;
    halves.map(|halves| {
        let promised = promised.and_then(|promised| promised.bursts[number]);
        number += 1;
        // A little longer than was promised, to see how far it goes.
        let wanted = promised.map_or(third / 2, |promised| promised * 5 / 4 + Duration::from_secs(1));
        Burst { halves, promised, lead: third / 6, lasts: wanted.min(third * 3 / 4) }
    })
}

/// Whether what was sent has to be read back now, as the rest of the proof would overwrite it.
pub(crate) fn is_read_back_now(free: u64, slot: ByteSize, coming: &[Stage]) -> bool {
    let more = |stage: &Stage| {
        // Bursts bring up to four times the rate for half of their time.
        let factor = if stage.kind == StageKind::Bursts { 2.5 } else { 1.0 };
        stage.rate.0 as f64 * stage.lasts.as_secs_f64() * factor
    };
    let bytes: f64 = coming.iter().map(more).sum();
    !coming.is_empty() && bytes * 1.2 + 4.0 * slot.0 as f64 > free as f64 * slot.0 as f64
}

/// Bytes of an element: at the declared rate as many come as were declared, at most.
pub(crate) fn element(rate: Rate, elements: u64) -> u64 {
    rate.0.div_ceil(elements.max(1)).clamp(1, 1 << 30)
}

/// Elements a second at another rate.
pub(crate) fn elements(rate: Rate, element: u64) -> u64 {
    rate.0.div_ceil(element.max(1)).max(1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    pub(crate) fn promised() -> Promised {
        Promised {
            capture_only: Rate(62 * MIB),
            with_reads: Rate(61 * MIB),
            reads_left: Rate(4 * MIB),
            read: Rate(70 * MIB),
            reposition: Duration::from_millis(30),
            bursts: [None, Some(Duration::from_secs(5)), Some(Duration::from_secs(2))],
            durable_after: Duration::from_secs(17),
            burst: ByteSize(0),
            longest: Longest { write: Duration::from_secs(4), read: Duration::from_secs(8) },
            buffers: 10,
            parallel: 1,
            each: ElementLoad::NONE,
        }
    }

    #[test]
    fn the_published_figures_are_driven_each_in_its_stage() {
        let promised = promised();
        let stages = stages(Duration::from_secs(100), Rate(60 * MIB), Some(&promised));
        let all: Duration = stages.iter().map(|stage| stage.lasts).sum();
        assert_eq!(all, Duration::from_secs(100));
        let of = |kind| stages.iter().find(|stage| stage.kind == kind).unwrap();
        assert!(of(StageKind::Capture).rate.0.abs_diff(62 * MIB) <= MIB / 10);
        assert!(of(StageKind::Reads).rate < Rate(61 * MIB) && of(StageKind::Reads).readers == Readers::All);
        assert_eq!(of(StageKind::Guarantee).rate, Rate(60 * MIB));
        let bursts = bursts(of(StageKind::Bursts), [3, 4, 8], Some(&promised));
        assert_eq!(bursts.map(|burst| burst.promised), promised.bursts);
        let third = of(StageKind::Bursts).lasts / 3;
        assert!(bursts.iter().all(|burst| burst.lead + burst.lasts < third));
        let measured = super::stages(Duration::from_secs(100), Rate(60 * MIB), None);
        assert!(measured.iter().all(|stage| stage.rate == Rate(60 * MIB)));
    }

    // Promise 5: nothing is overwritten by the proof that it has not looked at.
    #[test]
    fn what_would_be_overwritten_is_read_back_before() {
        let stages = stages(Duration::from_secs(100), Rate(60 * MIB), None);
        let slot = ByteSize(64 * MIB);
        assert!(is_read_back_now(10, slot, &stages[1..]));
        assert!(!is_read_back_now(1000, slot, &stages[1..]));
        assert!(!is_read_back_now(10, slot, &[]), "the end reads it anyway");
    }

    #[test]
    fn no_more_elements_come_than_were_declared() {
        for (rate, count) in [(60 * MIB, 960), (1_000_003, 7), (3, 1000), (1 << 40, 1), (100, 0)] {
            let element = element(Rate(rate), count);
            assert!((1..=1 << 30).contains(&element));
            if count > 0 && rate / count < 1 << 30 {
                assert!(rate / element <= count, "{rate} {count}");
            }
        }
    }
}
