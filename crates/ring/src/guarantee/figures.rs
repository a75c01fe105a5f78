//! Published figures of a ring: its rate with and without readers, the rate left for reading, the longest
//! burst, and its device's largest request.

use super::{Costs, Guarantee, Load, Shape, span};
use holdfast_base::Rate;
use holdfast_format::Measured;
use std::time::Duration;

/// The rates of bursts for which a length is published, in halves of the declared rate: 1.5×, 2×, 4×.
pub const BURSTS: [u32; 3] = [3, 4, 8];

/// What is published. Rates are on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// The highest rate while nobody reads.
    pub capture_only: Rate,
    /// The highest rate while anybody may read anything.
    pub with_reads: Rate,
    /// What is left for sequential reading at the declared rate, the readers' own repositioning taken off.
    pub reads_left: Rate,
    /// How long a burst may last that comes at [`BURSTS`] times half the rate; `None`: for ever.
    pub bursts: [Option<Duration>; 3],
}

/// What a request takes at most on a device that keeps to its profile: a longer one, and nothing was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Longest {
    /// A slot's write, with those that are written in one go in front of it.
    pub write: Duration,
    /// A read, with a slot's write in front of it.
    pub read: Duration,
}

/// The longest requests of an admitted ring.
pub fn longest(measured: &Measured, shape: &Shape, guarantee: &Guarantee) -> Longest {
    let slot = shape.slot.0 as f64 / (measured.write.0 as f64).max(1.0);
    let moving = (1.0 - f64::from(measured.stalled) / 1e6).max(0.01);
    let stall = measured.stall.as_secs_f64();
    // Those that are written in one go stand behind each other at the device.
    let gathered = f64::from(shape.gather.max(1) + 1) * slot;
    let write = measured.reposition.as_secs_f64() + measured.commit.as_secs_f64() + gathered;
    let read = guarantee.wait.as_secs_f64() + slot;
    Longest { write: span((write + stall) / moving), read: span((read + stall) / moving) }
}

/// The published figures of an admitted ring.
pub fn figures(measured: &Measured, load: &Load, shape: &Shape) -> Figures {
    let costs = Costs::of(measured, shape);
    let alone = Costs::of(measured, &Shape { quantum: 0, ..*shape });
    let burst = load.burst.0 as f64;
    Figures {
        capture_only: fitting(&alone, shape, burst),
        with_reads: fitting(&costs, shape, burst),
        reads_left: reads_left(measured, load, shape, &costs),
        bursts: BURSTS.map(|halves| ridden_out(&costs, load, shape, f64::from(halves) / 2.0)),
    }
}

/// The highest rate for which both the lane is fast enough and the buffers are enough.
fn fitting(costs: &Costs, shape: &Shape, burst: f64) -> Rate {
    let (mut low, mut high) = (0.0, costs.most(shape.slot));
    if costs.buffers(shape, high, burst) <= shape.buffers {
        return Rate(high as u64);
    }
    while high - low >= 1.0 {
        let middle = f64::midpoint(low, high);
        // Rates of more than 2⁵³ have no such neighbours.
        if middle <= low || middle >= high {
            break;
        }
        if costs.buffers(shape, middle, burst) <= shape.buffers { low = middle } else { high = middle }
    }
    Rate(low as u64)
}

/// Between two gathered writes the lane is left alone for what *g* periods have over *g* turns of writing. The readers
/// go there once a time.
fn reads_left(measured: &Measured, load: &Load, shape: &Shape, costs: &Costs) -> Rate {
    let gathered = f64::from(shape.gather);
    let period = shape.slot.0 as f64 / (load.rate.0 as f64).max(1.0);
    let cycle = gathered * period * costs.moving;
    let spare = cycle - gathered * costs.write - measured.reposition.as_secs_f64();
    Rate((spare.max(0.0) / (gathered * period) * measured.read.0 as f64) as u64)
}

/// How long a load of `factor` times the rate may last, with the worst read and the worst stall at its beginning.
fn ridden_out(costs: &Costs, load: &Load, shape: &Shape, factor: f64) -> Option<Duration> {
    let rate = (load.rate.0 as f64).max(1.0) * factor;
    let drained = costs.drained(shape.slot);
    let room = f64::from(shape.buffers.saturating_sub(u32::from(shape.gather) + 1)) * shape.slot.0 as f64;
    // Nothing is written in that time.
    let blocked = costs.blocked();
    let before = room - rate * blocked;
    if before < 0.0 {
        return Some(span(room / rate));
    }
    if rate <= drained {
        return None;
    }
    Some(span(blocked + before / (rate - drained)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drive, load, shape};
    use super::*;
    use crate::guarantee::admit;

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn the_paper_s_drive_leaves_readers_what_the_paper_says() {
        let of = |rate| figures(&drive(), &load(rate), &shape());
        let figures = of(60);
        // Section IV.A: about 65 for 80 % of the drive; by the inequality 62.3.
        assert!((figures.capture_only.0 as f64 / MIB - 62.27).abs() < 0.01, "{figures:?}");
        assert_eq!(figures.capture_only, figures.with_reads, "16 buffers are enough for either");
        // 4·128/60 s a cycle, less 4 · 2.0145 s and 30 ms: 0.4454 s at 70 MiB/s. Section VII: 5 to 10.
        assert!((figures.reads_left.0 as f64 / MIB - 3.65).abs() < 0.05, "{figures:?}");
        // 11 slots are spare: 1408 MiB. Blocked for 9.22 s, in which 90 MiB/s bring 830.
        let long = figures.bursts[0].unwrap().as_secs_f64();
        assert!((long - (9.220 + (1408.0 - 829.8) / (90.0 - 63.54))).abs() < 0.1, "{figures:?}");
        assert!(figures.bursts[2] < figures.bursts[1] && figures.bursts[1] < figures.bursts[0]);
        assert_eq!(of(30).bursts[1], None, "60 is ridden out for ever");
    }

    #[test]
    fn the_longest_requests_wait_for_those_before_them_and_for_stalls() {
        let granted = admit(&drive(), &load(60), &shape()).unwrap();
        let at = |drive: &Measured| {
            let found = longest(drive, &shape(), &granted);
            (found.write.as_secs_f64(), found.read.as_secs_f64())
        };
        // 0.030 + 5·128/65, and R = 0.030 + 8/70 + 7 with 128/65.
        let (write, read) = at(&drive());
        assert!((write - 9.876_154).abs() < 1e-5 && (read - 9.113_516).abs() < 1e-5, "{write} {read}");
        let stalls = Measured { stall: Duration::from_secs(1), stalled: 500_000, ..drive() };
        let (late, held) = at(&stalls);
        assert!((late - 2.0 * (write + 1.0)).abs() < 1e-5 && (held - 2.0 * (read + 1.0)).abs() < 1e-5);
    }

    #[test]
    fn few_buffers_cost_rate_only_where_somebody_may_read() {
        let few = Shape { buffers: 7, ..shape() };
        let figures = figures(&drive(), &load(10), &few);
        assert!(figures.with_reads < figures.capture_only, "{figures:?}");
        let at = |rate| admit(&drive(), &Load { rate, ..load(1) }, &few);
        assert!(at(figures.with_reads).is_ok());
        assert!(at(Rate(figures.with_reads.0 + 4)).is_err());
    }
}
