//! Fits of measured times: rates, repositioning, stalls. Pure; `probe` measures the times.

use super::Stalls;
use holdfast_base::{Rate, Timestamp};
use std::time::Duration;

/// Beyond so many quarters of the usual time, and [`SLACK`], a request has met a stall …
const USUAL: u32 = 5;
/// … since what is shorter than this is scheduling, not standing still.
const SLACK: Duration = Duration::from_millis(20);

/// One request as it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// Its bytes.
    pub(super) len: u64,
    /// Whether it did not go on where its predecessor ended.
    pub(super) fresh: bool,
    /// When it was handed over.
    pub(super) asked: Timestamp,
    /// When it was done.
    pub(super) done: Timestamp,
}

impl Timing {
    /// How long it took.
    pub(super) fn took(&self) -> Duration {
        self.done.since(self.asked)
    }
}

/// What a row of sequential requests came to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Stretch {
    /// Without stalls.
    pub(super) rate: Rate,
    /// When it stood still, and how long.
    pub(super) stalls: Vec<(Timestamp, Duration)>,
    /// From the first request to the last completion.
    pub(super) lasted: Duration,
}

/// The rate of sequential requests, in the order of their completions. The time up to the first completion and those of
/// fresh requests hold the way to their places: they are left out, where there are others.
///
/// Of `deep` requests in flight several may be done at once: one flush makes all durable that were written before it. So
/// `deep` completions are looked at together; one by one, half of them would take no time and the others look like stalls.
pub(super) fn stretch(timings: &[Timing], deep: usize) -> Stretch {
    let (Some(first), Some(last)) = (timings.first(), timings.last()) else { return Stretch::default() };
    let lasted = last.done.since(first.asked);
    let steps: Vec<Step> = timings
        .windows(2)
        .filter(|pair| !pair[1].fresh)
        .map(|pair| (pair[0].done, pair[1].done.since(pair[0].done), pair[1].len))
        .collect();
    let (mut steps, mut parts) = together(&steps, deep);
    if steps.is_empty() {
        std::mem::swap(&mut steps, &mut parts);
    }
    if steps.is_empty() {
        steps = timings.iter().map(|timing| (timing.asked, timing.took(), timing.len)).collect();
    }
    let mut times: Vec<Duration> = steps.iter().map(|step| step.1).collect();
    times.sort_unstable();
    let usual = times[(times.len() - 1) / 2];
    let limit = usual * USUAL / 4 + SLACK;
    let lot = steps.first().map_or(1, |step| step.2.max(1)) as f64;
    let (mut bytes, mut time, mut stalls) = (0, Duration::ZERO, Vec::new());
    for (began, took, len) in steps {
        if took > limit {
            stalls.push((began, took.saturating_sub(usual)));
        } else {
            bytes += len;
            time += took;
        }
    }
    // Fewer take no longer than all of a lot do, unless something stands still.
    let late = parts.iter().filter(|part| part.1 > limit);
    let share = |part: &Step| usual.mul_f64((part.2 as f64 / lot).min(1.0));
    stalls.extend(late.map(|part| (part.0, part.1.saturating_sub(share(part)))));
    stalls.sort_unstable();
    // Faster than any clock: so fast at least.
    let rate = Rate::of(bytes, time.max(Duration::from_nanos(1)));
    Stretch { rate, stalls, lasted }
}

/// A step from one completion to the next: when it began, how long it took, its bytes.
type Step = (Timestamp, Duration, u64);

/// So many steps that follow each other as one, and apart from them what is left over: it has the same stalls, but says
/// nothing of a rate.
fn together(steps: &[Step], deep: usize) -> (Vec<Step>, Vec<Step>) {
    let (mut lots, mut parts): (Vec<Step>, Vec<Step>) = (Vec::new(), Vec::new());
    for run in steps.chunk_by(|one, next| one.0 + one.1 == next.0) {
        for lot in run.chunks(deep.max(1)) {
            let whole = (lot[0].0, lot.iter().map(|step| step.1).sum(), lot.iter().map(|step| step.2).sum());
            if lot.len() == deep.max(1) { lots.push(whole) } else { parts.push(whole) }
        }
    }
    (lots, parts)
}

/// Mean and worst of times to get to a place, drawn at random.
///
/// The way is the same for all of them and the angle of the platter is any: they lie evenly between two ends. So the
/// worst there can be is expected a mean distance between neighbours beyond the largest of them. What takes more than
/// twice as long as nearly all others is no way, but a stall: those are told by watching.
pub(super) fn repositioning(samples: &[Duration]) -> (Duration, Duration) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let Some(nearly_all) = sorted.get(sorted.len().saturating_sub(1) * 19 / 20) else {
        return <(Duration, Duration)>::default();
    };
    let limit = *nearly_all * 2 + Duration::from_millis(1);
    sorted.retain(|sample| *sample <= limit);
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    let mean = sorted.iter().sum::<Duration>() / sorted.len() as u32;
    let beyond = most.saturating_sub(least) / (sorted.len() as u32 - 1).max(1);
    (mean, most + beyond)
}

/// The smallest σ, in nanoseconds, with which every window of length Δ holds at most σ + ρΔ of these stalls; ρ in
/// millionths. Stalls are starts and lengths, in order; one that begins before its predecessor is over follows it.
fn sigma(stalls: &[(i64, u64)], rho: u32) -> u64 {
    let share = f64::from(rho) / 1e6;
    let (mut most, mut here, mut end) = (0f64, 0f64, i64::MIN);
    for (start, length) in stalls {
        let begin = (*start).max(end);
        let gap = if end == i64::MIN { 0.0 } else { (begin - end) as f64 };
        // The worst window that ends here begins with this stall, or with that with which the one before began.
        here = (here - share * gap).max(0.0) + *length as f64 * (1.0 - share);
        end = begin.saturating_add(i64::try_from(*length).unwrap_or(i64::MAX));
        most = most.max(here);
    }
    most.ceil() as u64
}

/// Stalls as (σ, ρ).
///
/// ρ is the share of the time that was watched, so that what comes again and again is told by it, and what came once is
/// taken to come once in as much time. With just that share, σ would add up whatever came a little closer together than
/// it does on the whole: up to a quarter more is taken, until σ is about the longest stall there was.
pub(super) fn stalls(seen: &mut [(Timestamp, Duration)], watched: Duration) -> Stalls {
    seen.sort_unstable();
    let total: Duration = seen.iter().map(|stall| stall.1).sum();
    let longest = seen.iter().map(|stall| stall.1.as_nanos() as f64).fold(0.0, f64::max);
    let share = total.as_secs_f64() / watched.as_secs_f64().max(1e-9);
    let list: Vec<(i64, u64)> = seen
        .iter()
        .map(|(at, length)| (at.0, u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
        .collect();
    // Something has to be left for the arithmetic that follows.
    let tried = (100..=125u32).map(|percent| (share * f64::from(percent) * 1e4).ceil().min(999_999.0) as u32);
    let mut found = (0, 0);
    for rho in tried {
        found = (sigma(&list, rho), rho);
        if found.0 as f64 <= longest * 1.02 {
            break;
        }
    }
    Stalls { sigma: Duration::from_nanos(found.0), rho: found.1, count: seen.len() as u32, watched }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn row(times: &[u64]) -> Vec<Timing> {
        let mut at = 0;
        let timing = |took: &u64| {
            let asked = Timestamp(at);
            at += (took * MS) as i64;
            Timing { len: 1 << 20, fresh: false, asked, done: Timestamp(at) }
        };
        times.iter().map(timing).collect()
    }

    // Promise 1: a stall does not make a zone look slow, and is not forgotten either.
    #[test]
    fn a_stall_is_told_apart_from_a_slow_zone() {
        let found = stretch(&row(&[40, 10, 10, 510, 10, 10]), 1);
        assert_eq!(found.rate, Rate((1 << 20) * 100));
        assert_eq!(found.stalls, [(Timestamp(60 * MS as i64), Duration::from_millis(500))]);
        assert_eq!(found.lasted, Duration::from_millis(590));
        assert_eq!(stretch(&row(&[10, 20, 20, 20]), 1).rate, Rate((1 << 20) * 50), "slow is slow");
        assert_eq!(stretch(&row(&[10]), 2).rate, Rate((1 << 20) * 100), "one alone is all there is");
        assert_eq!(stretch(&[], 2), Stretch::default());
    }

    // Promise 1: a device that ends its writes two at a time is as fast as it is, and does not stand still.
    #[test]
    fn writes_that_end_together_are_neither_fast_nor_stalls() {
        for first in [0, 40] {
            let times: Vec<u64> = (0..32).map(|n| if n % 2 == 0 { first } else { 40 - first }).collect();
            let found = stretch(&row(&times), 2);
            assert_eq!((found.rate, found.stalls), (Rate((1 << 20) * 50), Vec::new()));
        }
        let mut times = [0, 40].repeat(16);
        times[21] = 340;
        let found = stretch(&row(&times), 2);
        assert!(found.rate.0.abs_diff((1 << 20) * 50) <= 1 && found.stalls.len() == 1, "{found:?}");
        assert_eq!(found.stalls[0].1, Duration::from_millis(300));
    }

    // Promise 1: wherever in a row it stands still, at its end too, which makes no pair.
    #[test]
    fn a_stall_is_seen_behind_every_completion_of_a_row() {
        for at in 1..16 {
            let mut times = [10; 16];
            times[at] = 260;
            let found = stretch(&row(&times), 2);
            assert!(found.rate.0.abs_diff((1 << 20) * 100) <= 1, "{at}: {found:?}");
            assert_eq!(found.stalls.len(), 1, "{at}");
            assert_eq!(found.stalls[0].1, Duration::from_millis(250), "{at}");
        }
    }

    #[test]
    fn the_worst_way_is_beyond_the_largest_sample_and_no_stall() {
        let mut samples: Vec<Duration> = (0..100).map(|n| Duration::from_micros(18_400 + n * 110)).collect();
        let (mean, worst) = repositioning(&samples);
        assert_eq!(worst, Duration::from_micros(18_400 + 100 * 110));
        assert_eq!(mean, Duration::from_micros(23_845));
        samples.push(Duration::from_secs(3));
        assert!(repositioning(&samples).1 < Duration::from_micros(29_500));
        assert_eq!(repositioning(&[Duration::from_millis(7)]).1, Duration::from_millis(7));
        assert_eq!(repositioning(&[]).1, Duration::ZERO);
    }

    #[test]
    fn what_comes_again_is_a_share_and_what_comes_at_once_is_sigma() {
        let every = |n: i64| (Timestamp(n * 20_000 * MS as i64), Duration::from_millis(500));
        let found = stalls(&mut (0..30).map(every).collect::<Vec<_>>(), Duration::from_mins(10));
        assert_eq!((found.rho, found.count), (25_000, 30));
        assert!(found.sigma.as_millis().abs_diff(487) <= 1, "{found:?}");
        let once = stalls(&mut [(Timestamp(5), Duration::from_secs(3))], Duration::from_mins(10));
        assert_eq!((once.rho, once.sigma), (5000, Duration::from_millis(2985)));
        let none = stalls(&mut [], Duration::from_secs(9));
        assert_eq!(none, Stalls { watched: Duration::from_secs(9), ..Stalls::default() });
    }

    proptest! {
        // Promise 1: in no window at all is there more than σ + ρΔ, and no smaller σ would do.
        #[test]
        fn sigma_is_the_smallest_that_covers_every_window(
            parts in prop::collection::vec((0i64..60, 1u64..40), 0..8),
            rho in 0u32..900_000,
        ) {
            let (mut at, mut list) = (0, Vec::new());
            for (gap, length) in parts {
                at += gap;
                list.push((at, length));
                at += length as i64;
            }
            let stalled = |time: i64| list.iter().any(|(start, length)| (*start..*start + *length as i64).contains(&time));
            let mut most = 0f64;
            for from in 0..at {
                let mut sum = 0;
                for to in from..at {
                    sum += i64::from(stalled(to));
                    most = most.max(sum as f64 - f64::from(rho) / 1e6 * (to + 1 - from) as f64);
                }
            }
            let found = sigma(&list, rho) as f64;
            prop_assert!(found >= most - 1e-6 && found < most + 1.0 + 1e-6, "{} {}", found, most);
        }
    }
}
