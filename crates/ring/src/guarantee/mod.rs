//! The guarantee: the rate that a ring can be admitted for, and what follows from it. Pure arithmetic over
//! measured and declared figures; no slots, requests or clock.
//!
//! After Bigelow, Brandt, Bent and Chen, “Mahanaxar: Quality of Service Guarantees in High-Bandwidth, Real-Time Streaming
//! Data Storage” (MSST 2010), section IV: chunks so large that repositioning between any two of them is a small part of
//! writing one, and a rate that the slowest used zone can take. `docs/guarantee.md` derives the inequality.

mod advice;
mod figures;
mod holds;
mod terms;

pub use advice::{each_would_do, least_above, most_below, most_rate, other_slots};
pub use figures::{BURSTS, Figures, Longest, figures, longest};
pub use holds::{Lack, NOTHING_PROMISED, standing};
pub use terms::{Declared, load, measured};

use holdfast_base::{ByteSize, MIN_GUARANTEED_SLOT, Rate};
use holdfast_format::Measured;
use std::time::Duration;

/// The share of the lane's time that may be promised.
const PROMISED: f64 = 0.98;

/// The share of the packer's measured rate that may be promised, of elements as of bytes.
pub const PACKED: f64 = 0.8;

/// Bytes of a commit that admission counts on: what is larger waits for slack, as a read does.
pub const COMMIT_BYTES: u64 = 64 << 10;

/// Most bytes of a commit.
const LARGEST_COMMIT: u64 = 1 << 20;

/// Where slots skip the journal, what the open one has may become so many times older than it takes to fill.
const LATER: f64 = 9.0 / 8.0;

/// A slot's write is counted on to take at least so many times as long as repositioning.
const MOVES: f64 = 30.0;

/// What arrives, on the medium: payload with index, checks and heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Bytes a second that are written into slots. *λ*
    pub rate: Rate,
    /// Elements a second.
    pub elements: u64,
    /// Cells of their attributes a second.
    pub cells: u64,
    /// Bytes that may come at once beyond the rate. *b*
    pub burst: ByteSize,
}

/// How a ring is laid out and run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a slot. *C*
    pub slot: ByteSize,
    /// Longest time between commits of what the open slot gained.
    pub flush: Duration,
    /// Full slots that are written in one go. *g*
    pub gather: u16,
    /// Bytes of the largest read that is started at once; 0 where nothing is ever read. *q*
    pub quantum: u32,
    /// Slot buffers that there is memory for.
    pub buffers: u32,
}

/// What an admitted ring may rely on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarantee {
    /// The longest that a slot's turn takes: going there, writing it, and its share of commits. *W*
    pub write: Duration,
    /// The longest that anything else may keep the lane from writing. *R*
    pub wait: Duration,
    /// The time in which a slot fills. *T*
    pub period: Duration,
    /// Slot buffers that it takes. *B*
    pub buffers: u32,
    /// The share of the lane's time that writing takes at worst, in millionths of what may be promised.
    pub used: u32,
    /// The age at which data is forced out. *D*
    pub forced: Duration,
    /// The bound on the age of data that a crash can cost.
    pub durable_after: Duration,
}

/// Which term of the inequality fails.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum Refused {
    /// The slots are too small for any guarantee.
    #[error("slots of {slot} are too small for a guarantee: they have to be at least {least}")]
    Slot {
        /// As asked for.
        slot: ByteSize,
        /// The smallest that would do.
        least: ByteSize,
    },
    /// The lane is too slow.
    #[error("{rate} on the medium is too fast: a slot fills in {period:.3?}, and writing one takes up to {write:.3?}{}{} (98 % of the time may be promised); {most} would be admitted", stalls(*.stalled), for_small(*.moves))]
    Rate {
        /// As asked for.
        rate: Rate,
        /// The highest that would be admitted.
        most: Rate,
        /// *T*
        period: Duration,
        /// *W*
        write: Duration,
        /// *ρ*, in millionths.
        stalled: u32,
        /// *s* and the write rate that is counted on, where slots are small for that repositioning.
        moves: Option<(Duration, Rate)>,
    },
    /// The packer is too slow.
    #[error("{elements} elements a second{} are too many: the packer was measured to manage {measured}{}, of which 80 % may be promised: {most}",
        cells_of(*.cells), cells_measured(*.cells, *.measured_cells))]
    Elements {
        /// As asked for.
        elements: u64,
        /// Cells of their attributes.
        cells: u64,
        /// Elements, as measured.
        measured: u64,
        /// Cells, as measured.
        measured_cells: u64,
        /// The highest that would be admitted.
        most: u64,
    },
    /// There are too few buffers.
    #[error(
        "{needed} slot buffers ({memory}) are needed to wait up to {wait:.3?} for a read, {stall:.3?} for the device, and for a burst, but there is memory for {buffers}"
    )]
    Memory {
        /// How many it takes.
        needed: u32,
        /// Their bytes.
        memory: ByteSize,
        /// How many there are.
        buffers: u32,
        /// *R*
        wait: Duration,
        /// *σ*
        stall: Duration,
    },
}

fn cells_of(cells: u64) -> String {
    if cells == 0 { String::new() } else { format!(" and {cells} cells of their attributes") }
}

fn cells_measured(cells: u64, measured: u64) -> String {
    match (cells, measured) {
        (0, _) => String::new(),
        (_, 0) => ", and how many cells it manages was not measured (`holdfast profile` does now)".to_owned(),
        _ => format!(" or {measured} cells"),
    }
}

fn stalls(stalled: u32) -> String {
    if stalled == 0 {
        return String::new();
    }
    format!(" while the device stands still {:.1} % of the time", f64::from(stalled) / 1e4)
}

fn for_small(moves: Option<(Duration, Rate)>) -> String {
    let Some((reposition, counted)) = moves else { return String::new() };
    format!(
        " at {counted}, the most that is counted on in slots so small with repositioning of {reposition:.1?}"
    )
}

/// The costs of the inequality, in seconds and bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// *W*
    pub(crate) write: f64,
    /// *R*
    pub(crate) wait: f64,
    /// *σ*
    pub(crate) stall: f64,
    /// 1 − *ρ*
    pub(crate) moving: f64,
    /// One commit: *J*
    pub(crate) commit: f64,
    /// The largest commit.
    largest: f64,
}

impl Costs {
    pub(crate) fn of(measured: &Measured, shape: &Shape) -> Self {
        let s = measured.reposition.as_secs_f64();
        let c = measured.commit.as_secs_f64();
        let w = counted_write(measured, shape.slot).0 as f64;
        let commit = 2.0 * s + c + COMMIT_BYTES as f64 / w;
        // One group commit for so many slots, at most.
        let commits = 1.0 / f64::from(shape.gather.max(4));
        let largest = 2.0 * s + c + shape.slot.0.min(LARGEST_COMMIT) as f64 / w;
        let read = s + f64::from(shape.quantum) / measured.read.0 as f64 + measured.read_error.as_secs_f64();
        Self {
            write: s + shape.slot.0 as f64 / w + c + commits * commit,
            wait: if shape.quantum == 0 { largest } else { read.max(largest) },
            stall: measured.stall.as_secs_f64(),
            moving: 1.0 - f64::from(measured.stalled) / 1e6,
            commit,
            largest,
        }
    }

    /// Seconds from the beginning of a read until the first buffer is free: the read, a commit that goes first, a slot's
    /// turn, and the device standing still as much as it may.
    pub(crate) fn blocked(&self) -> f64 {
        (self.wait + self.commit + self.write + self.stall) / self.moving
    }

    /// The same from the beginning of the largest commit.
    pub(crate) fn blocked_by_commit(&self) -> f64 {
        (self.largest + self.write + self.stall) / self.moving
    }

    /// Bytes that commits in a row write in no more time than the write of a slot takes; all, where slots are declared to fill so
    /// slowly that a row for all of one is published anyway.
    pub(crate) fn row(&self, slot: ByteSize, period: Duration, measured: &Measured) -> u64 {
        if period.as_secs_f64() > soon(measured, slot) {
            return u64::MAX;
        }
        // A float beyond all integers becomes the greatest one.
        let commits = (self.write / self.largest) as u64;
        commits.max(1).saturating_mul(slot.0.min(LARGEST_COMMIT))
    }

    /// The highest rate on the medium that the lane can promise.
    pub(crate) fn most(&self, slot: ByteSize) -> f64 {
        PROMISED * self.drained(slot)
    }

    /// Bytes a second that the lane writes while nothing else keeps it.
    pub(crate) fn drained(&self, slot: ByteSize) -> f64 {
        slot.0 as f64 * self.moving / self.write
    }

    /// Slot buffers for a load.
    pub(crate) fn buffers(&self, shape: &Shape, rate: f64, burst: f64) -> u32 {
        let period = shape.slot.0 as f64 / rate;
        let waiting = (self.blocked() + burst / rate) / period;
        // What a rounding error adds to a whole number is not a buffer.
        (f64::from(shape.gather) + 1.0 + (waiting - 1e-9).ceil()).min(f64::from(u32::MAX)) as u32
    }
}

/// Seconds as a span: what is longer than any is the longest.
fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The smallest slot in which the whole write rate of a lane is counted on. There may be none of that size.
pub fn preferred_slot(measured: &Measured) -> ByteSize {
    let moved = MOVES * measured.reposition.as_secs_f64() * measured.write.0 as f64;
    let bytes = (moved as u64).max(MIN_GUARANTEED_SLOT);
    // None is so large.
    ByteSize(bytes.checked_next_power_of_two().unwrap_or(1 << 63))
}

/// The write rate of a lane that admission counts on in slots of a size: what was measured, and at most `C/(30·s)`.
///
/// The inequality and the schedule rest on slots whose write takes much longer than repositioning. A lane that writes faster
/// than `C/(30·s)` is counted on as one that writes just so fast: every request takes it less time than that one, so what is
/// promised for that one holds. The rate never falls as *w* or *C* rises, or as *s* falls; so admission is monotonous.
pub fn counted_write(measured: &Measured, slot: ByteSize) -> Rate {
    // Whole bytes: a slot that is short of a fraction of one is large enough. A float beyond all integers becomes the
    // greatest one.
    let most = ((slot.0 as f64 + 1.0) / (MOVES * measured.reposition.as_secs_f64())) as u64;
    measured.write.min(Rate(most.max(1)))
}

/// The share of the packer's time that a load takes.
pub fn packing(measured: &Measured, load: &Load) -> f64 {
    let of = |count: u64, each_second: u64| if count == 0 { 0.0 } else { count as f64 / each_second as f64 };
    of(load.elements, measured.elements) + of(load.cells, measured.cells)
}

/// Whether a ring may be promised to lose nothing of a load.
///
/// With *s* the worst repositioning, *w* the worst write rate in the used region but at most `C/(30·s)`, *q* the read
/// quantum at rate *r*, *e* the drive's read-error limit, at most *σ* + *ρ*Δ of standing still in any Δ, *c* the flush
/// of a write, *j* commits a slot of *J* each, *λ* the rate on the medium and *b* the burst:
///
/// ```text
/// W = s + C/w + c + j·J        R = s + q/r + e        T = C/λ        blocked = (R + J + W + σ) / (1−ρ)
/// admit iff  W/(1−ρ) ≤ 0.98·T  and  elements/s and cells/s take ≤ 0.8 of the packer's time
///       and  B = g + 1 + ceil((blocked + b/λ) / T)  buffers fit
/// D = max(flush + J, g·min(T, 3·C/w), 9/8·T where T ≤ 3·C/w)        durable after = D + blocked + b·W/(C·(1−ρ))
/// ```
///
/// Where a device serves several reads at once, data may have to wait for each of them to fail, one after the other. Where
/// slots fill slowly (*T* > 3·*C*/*w*) the journal has what is not in a slot yet, and data may have to wait for the
/// snapshot that its other extent begins with: up to a slot's bytes in commits of the largest size.
pub fn admit(measured: &Measured, load: &Load, shape: &Shape) -> Result<Guarantee, Refused> {
    let least = ByteSize(MIN_GUARANTEED_SLOT);
    if shape.slot < least {
        return Err(Refused::Slot { slot: shape.slot, least });
    }
    let taken = packing(measured, load);
    if taken > PACKED {
        let most = (load.elements as f64 * PACKED / taken) as u64;
        let Measured { elements: measured, cells: measured_cells, .. } = *measured;
        let Load { elements, cells, .. } = *load;
        return Err(Refused::Elements { elements, cells, measured, measured_cells, most });
    }
    let costs = Costs::of(measured, shape);
    let rate = (load.rate.0 as f64).max(1.0);
    let period = shape.slot.0 as f64 / rate;
    let (period_span, write) = (span(period), span(costs.write));
    if rate > costs.most(shape.slot) {
        let counted = counted_write(measured, shape.slot);
        return Err(Refused::Rate {
            rate: load.rate,
            most: Rate(costs.most(shape.slot) as u64),
            period: period_span,
            write,
            stalled: measured.stalled,
            moves: (counted < measured.write).then_some((measured.reposition, counted)),
        });
    }
    let wait = span(costs.wait);
    let buffers = costs.buffers(shape, rate, load.burst.0 as f64);
    if buffers > shape.buffers {
        return Err(Refused::Memory {
            needed: buffers,
            memory: ByteSize(u64::from(buffers).saturating_mul(shape.slot.0)),
            buffers: shape.buffers,
            wait,
            stall: measured.stall,
        });
    }
    let soon = period.min(soon(measured, shape.slot));
    let mut forced = (shape.flush.as_secs_f64() + costs.commit).max(f64::from(shape.gather) * soon);
    if period <= soon {
        // A slot that fills a little more slowly than was declared is not written twice for that.
        forced = forced.max(period * LATER);
    }
    let mut beside = f64::from(measured.parallel.max(1) - 1) * costs.wait;
    if period > soon {
        beside += shape.slot.0.div_ceil(LARGEST_COMMIT) as f64 * costs.largest;
    }
    Ok(Guarantee {
        write,
        wait,
        period: period_span,
        buffers,
        used: (rate / costs.most(shape.slot) * 1e6) as u32,
        forced: span(forced),
        durable_after: span(
            forced
                + costs.blocked()
                + beside / costs.moving
                + load.burst.0 as f64 / costs.drained(shape.slot),
        ),
    })
}

/// Seconds within which a slot has to be full for its bytes to skip the journal: three times its write.
pub fn soon(measured: &Measured, slot: ByteSize) -> f64 {
    3.0 * slot.0 as f64 / counted_write(measured, slot).0 as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdfast_base::Timestamp;
    use proptest::prelude::*;

    /// The drive of the paper in its outer 80 %, with a limit of its own on read errors.
    pub(crate) fn drive() -> Measured {
        Measured {
            at: Timestamp(0),
            write: Rate(65 << 20),
            read: Rate(70 << 20),
            reposition: Duration::from_millis(30),
            commit: Duration::ZERO,
            read_error: Duration::from_secs(7),
            stall: Duration::ZERO,
            stalled: 0,
            parallel: 1,
            elements: 100_000_000,
            cells: 100_000_000,
        }
    }

    pub(crate) fn shape() -> Shape {
        Shape {
            slot: ByteSize::mib(128),
            flush: Duration::from_secs(1),
            gather: 4,
            quantum: 8 << 20,
            buffers: 16,
        }
    }

    pub(crate) fn load(mib: u64) -> Load {
        Load { rate: Rate(mib << 20), elements: 1000, cells: 0, burst: ByteSize(0) }
    }

    // Promise 1: the drive of the paper is promised what the arithmetic says by hand.
    #[test]
    fn the_paper_s_drive_takes_62_mib_a_second_but_not_63() {
        let granted = admit(&drive(), &load(62), &shape()).unwrap();
        // W = 0.030 + 128/65 + (0.060 + 1/16/65)/4, T = 128/62, R = 0.030 + 8/70 + 7.
        assert!((granted.write.as_secs_f64() - 2.014_471).abs() < 1e-5, "{granted:?}");
        assert!((granted.wait.as_secs_f64() - 7.144_286).abs() < 1e-5, "{granted:?}");
        // 4 + 1 + ceil((7.144 + 2.014) / 2.0645)
        assert_eq!(granted.buffers, 10);
        assert!(
            (granted.durable_after.as_secs_f64() - (8.258 + 7.144_286 + 0.060_962 + 2.014_471)).abs() < 0.001,
            "{granted:?}"
        );
        let Err(Refused::Rate { most, .. }) = admit(&drive(), &load(63), &shape()) else { panic!() };
        assert!((most.0 as f64 / f64::from(1 << 20) - 62.27).abs() < 0.01, "{most:?}");
    }

    // Promise 6: what waits in a slot that fills a little more slowly than was declared is within the bound.
    #[test]
    fn data_is_forced_out_no_earlier_than_its_slot_is_full() {
        let forced = |mib, gather| {
            let granted = admit(&drive(), &load(mib), &Shape { gather, ..shape() }).unwrap();
            (granted.forced.as_secs_f64(), granted.period.as_secs_f64(), granted.durable_after)
        };
        let (age, period, durable) = forced(60, 1);
        assert!((age - period * 1.125).abs() < 1e-6 && durable.as_secs_f64() > age + 7.0, "{age} {period}");
        let (age, period, _) = forced(60, 4);
        assert!((age - period * 4.0).abs() < 1e-6, "{age} {period}");
        // Slots that fill slowly do not skip the journal.
        let (age, period, _) = forced(1, 1);
        assert!((age - 3.0 * 128.0 / 65.0).abs() < 1e-6 && period > 100.0, "{age} {period}");
    }

    // Promise 1: a refusal names the term that fails.
    #[test]
    fn each_term_refuses_on_its_own() {
        let slot = |mib| Shape { slot: ByteSize::mib(mib), ..shape() };
        let refused = admit(&drive(), &load(1), &slot(4)).unwrap_err();
        assert!(matches!(refused, Refused::Slot { least, .. } if least == ByteSize::mib(8)), "{refused}");
        // Repositioning takes a thirtieth of a slot's write, or less: 32 MiB in 0.9 s.
        assert!(admit(&drive(), &load(33), &slot(32)).is_ok());
        let refused = admit(&drive(), &load(35), &slot(32)).unwrap_err().to_string();
        let said =
            "at 35.6 MiB/s, the most that is counted on in slots so small with repositioning of 30.0ms";
        assert!(refused.contains(said), "{refused}");
        let packer = Measured { elements: 1249, ..drive() };
        let refused = admit(&packer, &load(10), &shape()).unwrap_err();
        assert!(matches!(refused, Refused::Elements { most: 999, .. }), "{refused}");
        let refused = admit(&drive(), &Load { cells: 80_000_000, ..load(10) }, &shape()).unwrap_err();
        assert!(refused.to_string().contains("and 80000000 cells of their attributes"), "{refused}");
        assert!(admit(&drive(), &Load { cells: 79_000_000, ..load(10) }, &shape()).is_ok());
        let old = Measured { cells: 0, ..drive() };
        let refused = admit(&old, &Load { cells: 1, ..load(10) }, &shape()).unwrap_err();
        assert!(refused.to_string().contains("was not measured"), "{refused}");
        let memory = Shape { buffers: 9, ..shape() };
        let refused = admit(&drive(), &load(62), &memory).unwrap_err();
        assert!(matches!(refused, Refused::Memory { needed: 10, .. }), "{refused}");
        let stalling = Measured { stalled: 100_000, ..drive() };
        let refused = admit(&stalling, &load(60), &shape()).unwrap_err();
        assert!(refused.to_string().contains("stands still 10.0 % of the time"), "{refused}");
    }

    fn any_measured() -> impl Strategy<Value = Measured> {
        let spans = (1u64..60, 0u64..20, 0u64..8000, 0u64..3000);
        let rates = (1u64..4000, 1u64..4000, 0u32..300_000);
        (spans, rates).prop_map(|((s, c, e, stall), (write, read, stalled))| Measured {
            write: Rate(write << 20),
            read: Rate(read << 20),
            reposition: Duration::from_millis(s),
            commit: Duration::from_millis(c),
            read_error: Duration::from_millis(e),
            stall: Duration::from_millis(stall),
            stalled,
            ..drive()
        })
    }

    proptest! {
        // Promise 1: whatever a refusal says would do, does; and a little more would not.
        #[test]
        fn what_a_refusal_offers_is_admitted(
            measured in any_measured(), rate in 1u64..5000, burst in 0u64..4096, gather in 1u16..9, buffers in 3u32..200,
            log2 in 23u32..29,
        ) {
            let shape = Shape { slot: ByteSize(1 << log2), gather, buffers, ..shape() };
            let load = Load { rate: Rate(rate << 20), elements: 1, cells: 0, burst: ByteSize(burst << 20) };
            match admit(&measured, &load, &shape) {
                Ok(granted) => {
                    prop_assert!(granted.buffers <= buffers && granted.used <= 1_000_000);
                    prop_assert!(granted.durable_after >= granted.forced + granted.wait);
                    // Less of everything is admitted too.
                    let less = Load { rate: Rate(load.rate.0 / 2), burst: ByteSize(0), ..load };
                    prop_assert!(admit(&measured, &less, &shape).is_ok());
                }
                Err(Refused::Slot { .. }) => prop_assert!(false, "8 MiB are enough"),
                Err(Refused::Rate { most, .. }) => {
                    let most = Load { rate: most, ..load };
                    let too_fast = |load| matches!(admit(&measured, &load, &shape), Err(Refused::Rate { .. }));
                    prop_assert!(!too_fast(most));
                    let more = Load { rate: Rate(most.rate.0 + 2), ..load };
                    prop_assert!(too_fast(more));
                }
                Err(Refused::Memory { needed, .. }) => {
                    let with = |buffers| admit(&measured, &load, &Shape { buffers, ..shape }).is_ok();
                    prop_assert!(with(needed));
                    prop_assert!(!with(needed - 1));
                }
                Err(Refused::Elements { .. }) => prop_assert!(false),
            }
        }
    }
}
