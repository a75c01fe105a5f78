//! Union of the elements that several holds keep when their shared slots are distilled.

use crate::condition_hold::{roll, wanted};
use crate::distil_groups::{holders, is_copy, keeps, keeps_of};
use crate::evaluator::Wanted;
use crate::tolerant_search::{is_of_memory, is_of_the_ring};
use datafusion::error::DataFusionError;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{HoldId, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_client::orders;
use holdfast_client::sql::Sql;
use holdfast_client::sql_errors;
use holdfast_format::ConditionHold;
use holdfast_query::condition_search::{
    ElementSelection, Roll, Search, SearchScope, Span, last_of_slot, merged,
};
use holdfast_ring::{HoldStatus, Original, SlotStatus, StreamStatus};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

/// Runs of ordinals of one stream of an original in an order: what lies between the closest is kept, too, if there are more.
const MOST_RUNS: usize = 4096;

/// All of a stream.
const ALL: (Ordinal, Ordinal) = (Ordinal(0), Ordinal(u64::MAX));

/// No element has that number: a stream that is named keeps its gaps.
const NONE: (u64, u64) = (u64::MAX - 1, u64::MAX);

/// What is kept of a group by all that keep some of it.
#[derive(Debug)]
pub(crate) enum Kept {
    /// So much, which is so many bytes at least.
    These(Vec<Original>, u64),
    /// Not all could be looked into: these slots are damaged.
    Unseen(BTreeSet<Sequence>),
    /// To tell what this hold wants of so many slots at once takes more memory than there is.
    TooMuch(HoldId, Failure),
    /// What this hold wants of it cannot be told, and why.
    Untold(HoldId, Failure),
}

/// Looks for it. `known` are the streams there are.
pub(crate) fn keep(
    sql: &Sql,
    known: &[StreamStatus],
    holds: &[HoldStatus],
    (group, going_on): (&[SlotStatus], &HashSet<Sequence>),
) -> Result<Kept> {
    let original = |slot: &SlotStatus| Original {
        sequence: slot.sequence,
        holds: holders(holds, slot.sequence).map(|hold| hold.id).collect(),
        keep: Vec::new(),
    };
    let (mut originals, mut least): (Vec<Original>, u64) = (group.iter().map(original).collect(), 0);
    for holder in holds.iter().filter(|holder| keeps_of(holder, group)) {
        let Some(condition_hold) = &holder.condition_hold else { continue };
        let added = match RetentionSet::of(sql, known, holder, condition_hold) {
            Ok(set) => set.add_to(&mut originals, sql, group, going_on),
            Err(trouble) => Err(trouble),
        };
        match added {
            // Some of it others may want, too.
            Ok(bytes) => least = least.max(bytes),
            Err(trouble) if is_of_the_ring(&trouble.0) => return Err(trouble.failure()),
            Err(trouble) if is_of_memory(&trouble.0) => {
                return Ok(Kept::TooMuch(holder.id, trouble.failure()));
            }
            Err(trouble) => return Ok(Kept::Untold(holder.id, trouble.failure())),
        }
    }
    originals.iter_mut().for_each(join);
    Ok(Kept::These(originals, least))
}

/// What the engine said against a condition.
struct Trouble<'h>(DataFusionError, &'h str);

impl Trouble<'_> {
    fn failure(&self) -> Failure {
        sql_errors::failure(&self.0, self.1, &[])
    }
}

/// What a hold wants.
struct RetentionSet<'h> {
    hold: &'h HoldStatus,
    wanted: Wanted,
    condition: &'h str,
    roll: Roll,
    /// In which time.
    range: Span,
    /// The streams that it holds, and whether they are searched.
    streams: Vec<(&'h StreamStatus, bool)>,
}

impl<'h> RetentionSet<'h> {
    /// What it has on record; an error where no stream can be asked for it.
    fn of(
        sql: &Sql,
        known: &'h [StreamStatus],
        hold: &'h HoldStatus,
        condition_hold: &'h ConditionHold,
    ) -> Result<Self, Trouble<'h>> {
        let wanted = wanted(condition_hold);
        let (mut streams, mut refused) = (Vec::new(), None);
        for stream in known.iter().filter(|s| hold.streams.is_empty() || hold.streams.contains(&s.id)) {
            let checked = match &wanted {
                Wanted::Sample(_) => Ok(()),
                Wanted::Found(search) => sql.runtime.block_on(async {
                    search.check(&sql.engine.context, &stream.name).await?;
                    search.check_when(&sql.engine.context, &stream.name).await
                }),
            };
            streams.push((stream, checked.is_ok()));
            refused = refused.or(checked.err());
        }
        let range = (hold.range.from, hold.range.to);
        match refused {
            Some(error) if !streams.iter().any(|(_, searched)| *searched) => {
                Err(Trouble(error, &condition_hold.condition))
            }
            _ => Ok(Self {
                hold,
                wanted,
                condition: &condition_hold.condition,
                roll: roll(condition_hold),
                range,
                streams,
            }),
        }
    }

    /// Adds what it wants of a group's slots to what is kept of them; how many bytes that is about.
    fn add_to(
        &self,
        originals: &mut [Original],
        sql: &Sql,
        group: &[SlotStatus],
        going_on: &HashSet<Sequence>,
    ) -> Result<u64, Trouble<'h>> {
        let trouble = |error| Trouble(error, self.condition);
        let own = || group.iter().filter(|slot| keeps(self.hold, slot.sequence));
        let bounds = own().filter_map(|slot| slot.first.zip(slot.last));
        let times =
            bounds.fold((Timestamp::MAX, Timestamp::MIN), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        let mut sequences: Vec<Ordinal> = own().map(|slot| Ordinal(slot.sequence.0)).collect();
        sequences.sort_unstable();
        let slots: Vec<(Sequence, Sequence)> = runs(&sequences)
            .into_iter()
            .map(|(first, end)| (Sequence(first.0), Sequence(end.0 - 1)))
            .collect();
        // What was found itself, or all that is around it.
        let condition = match &self.wanted {
            Wanted::Found(search) if self.roll.is_none() => Some(search.condition.as_str()),
            _ => None,
        };
        let has_when = matches!(&self.wanted, Wanted::Found(search) if search.when.is_some());
        let needs_spans = condition.is_none() || has_when;
        let (times, spans) = if needs_spans {
            (times, self.spans(sql, times)?)
        } else {
            (common(times, self.range), Vec::new())
        };
        let keep = ElementSelection { slots: &slots, times, condition, spans: needs_spans.then_some(&spans) };
        let mut bytes = 0;
        for (stream, searched) in &self.streams {
            let (found, size) = if condition.is_some() && !searched {
                (Vec::new(), 0)
            } else {
                let elements = keep.elements(&sql.engine.context, &stream.name);
                sql.runtime.block_on(elements).map_err(trouble)?
            };
            bytes += size;
            let mut by_slot: BTreeMap<Sequence, Vec<Ordinal>> = BTreeMap::new();
            for (slot, ordinal) in found {
                by_slot.entry(slot).or_default().push(ordinal);
            }
            // Of an element that ends in a later slot, fragments may be in this one: the next that is kept behind it.
            let mut next: Option<Ordinal> = None;
            for (slot, original) in group.iter().zip(originals.iter_mut()).rev() {
                let found = by_slot.remove(&slot.sequence).filter(|_| keeps(self.hold, slot.sequence));
                let mut own = found.unwrap_or_default();
                let first = own.first().copied().or(next);
                own.extend(next);
                next = first;
                let mut runs = if is_copy(slot) { vec![ALL] } else { runs(&own) };
                if !is_copy(slot) && going_on.contains(&slot.sequence) {
                    // What is behind the last that ends here is all of one.
                    let last = last_of_slot(&sql.engine.context, &stream.name, slot.sequence);
                    let last = sql.runtime.block_on(last).map_err(trouble)?;
                    runs.push(last.map_or(ALL, |last| (Ordinal(last.0.saturating_add(1)), ALL.1)));
                }
                let none = runs.is_empty().then_some((Ordinal(NONE.0), Ordinal(NONE.1)));
                original
                    .keep
                    .extend(runs.into_iter().chain(none).map(|(first, end)| (stream.id, first, end)));
            }
        }
        Ok(bytes)
    }

    /// The stretches of time that are kept of slots with these times.
    fn spans(&self, sql: &Sql, times: Span) -> Result<Vec<Span>, Trouble<'h>> {
        let search: &Search = match &self.wanted {
            Wanted::Sample(sample) => {
                let times = common(times, self.range);
                return Ok(merged(sample.spans(times).map(|span| common(span, times)).collect()));
            }
            Wanted::Found(search) => search,
        };
        let mut spans = Vec::new();
        // What was found before or after them reaches into them, as far as a window looks back.
        let back = search.when.as_ref().map_or(Duration::ZERO, |(_, within)| *within);
        let around = (times.0 - self.roll.after, times.1 + self.roll.before + back);
        let among = SearchScope { times: common(around, self.range), ..SearchScope::ALL };
        for (stream, _) in self.streams.iter().filter(|(_, searched)| *searched) {
            // What a condition fails of was not found either, and lies maybe far from these slots.
            let failing = sql.engine.failing();
            failing.pass(Some(ALL));
            let found = search.spans(&sql.engine.context, &stream.name, &among, self.roll);
            let found = sql.runtime.block_on(found);
            failing.pass(None);
            failing.take();
            spans.extend(found.map_err(|error| Trouble(error, self.condition))?);
        }
        Ok(merged(spans))
    }
}

/// What two stretches of time have in common.
fn common(one: Span, other: Span) -> Span {
    (one.0.max(other.0), one.1.min(other.1))
}

/// Rising ordinals as runs of first and end.
fn runs(ordinals: &[Ordinal]) -> Vec<(Ordinal, Ordinal)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for Ordinal(ordinal) in ordinals {
        let end = ordinal.saturating_add(1);
        match runs.last_mut() {
            Some((_, last)) if ordinal <= last => *last = end.max(*last),
            _ => runs.push((*ordinal, end)),
        }
    }
    runs.into_iter().map(|(first, end)| (Ordinal(first), Ordinal(end))).collect()
}

fn by_stream(original: &Original) -> BTreeMap<StreamId, Vec<(u64, u64)>> {
    let mut runs: BTreeMap<StreamId, Vec<(u64, u64)>> = BTreeMap::new();
    for (stream, first, end) in &original.keep {
        runs.entry(*stream).or_default().push((first.0, end.0));
    }
    runs
}

/// What several want of an original, each once.
fn join(original: &mut Original) {
    let all = by_stream(original);
    original.keep.clear();
    for (stream, mut runs) in all {
        runs.sort_unstable();
        runs.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
            touches
        });
        // That a stream is named is told by whatever else is kept of it.
        if runs.len() > 1 && runs.last() == Some(&NONE) {
            runs.pop();
        }
        let runs = orders::fewer(runs, MOST_RUNS).into_iter();
        original.keep.extend(runs.map(|(first, end)| (stream, Ordinal(first), Ordinal(end))));
    }
}

/// As many of these, the first of them, as one order can be about.
pub(crate) fn within_an_order(
    mut originals: Vec<Original>,
    fits: &dyn Fn(&[Original]) -> bool,
) -> Vec<Original> {
    while originals.len() > 1 && !fits(&originals) {
        originals.truncate(originals.len() * 3 / 4);
    }
    let mut most = MOST_RUNS;
    while most > 1 && !fits(&originals) {
        most /= 2;
        for original in &mut originals {
            *original = with_fewer(original, most);
        }
    }
    originals
}

/// The same with so many runs of each stream at most.
fn with_fewer(original: &Original, most: usize) -> Original {
    let fewer = by_stream(original).into_iter().flat_map(|(stream, runs)| {
        let runs = orders::fewer(runs, most).into_iter();
        runs.map(move |(first, end)| (stream, Ordinal(first), Ordinal(end)))
    });
    Original { keep: fewer.collect(), ..original.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(keep: &[(u32, u64, u64)]) -> Original {
        let keep =
            keep.iter().map(|(stream, first, end)| (StreamId(*stream), Ordinal(*first), Ordinal(*end)));
        Original { sequence: Sequence(1), holds: vec![HoldId(1)], keep: keep.collect() }
    }

    #[test]
    fn ordinals_come_in_runs() {
        let runs = |ordinals: &[u64]| -> Vec<(u64, u64)> {
            let ordinals: Vec<Ordinal> = ordinals.iter().map(|at| Ordinal(*at)).collect();
            runs(&ordinals).iter().map(|(first, end)| (first.0, end.0)).collect()
        };
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[1, 2, 3, 7, 9, 9, 10]), [(1, 4), (7, 8), (9, 11)]);
        assert_eq!(runs(&[u64::MAX]), [(u64::MAX, u64::MAX)]);
    }

    #[test]
    fn what_several_want_is_named_once() {
        let mut wanted = original(&[
            (2, 5, 6),
            (1, 8, 9),
            (1, NONE.0, NONE.1),
            (1, 2, 4),
            (1, 3, 8),
            (2, 4, 5),
            (3, NONE.0, NONE.1),
            (3, NONE.0, NONE.1),
        ]);
        join(&mut wanted);
        assert_eq!(wanted, original(&[(1, 2, 9), (2, 4, 6), (3, NONE.0, NONE.1)]));
        let mut many =
            original(&(0..2 * MOST_RUNS as u64).map(|at| (1, at * 2, at * 2 + 1)).collect::<Vec<_>>());
        join(&mut many);
        assert_eq!(many.keep.len(), MOST_RUNS);
    }

    #[test]
    fn an_order_is_about_as_many_of_the_oldest_as_it_has_room_for() {
        let runs = |count: u64| -> Vec<_> { (0..count).map(|at| (1, at * 3, at * 3 + 1)).collect() };
        let all: Vec<Original> = (0..9).map(|_| original(&runs(10))).collect();
        let fits =
            |most: usize| move |some: &[Original]| some.iter().map(|o| o.keep.len()).sum::<usize>() <= most;
        assert_eq!(within_an_order(all.clone(), &fits(90)), all);
        let some = within_an_order(all.clone(), &fits(45));
        assert!(some[..] == all[..some.len()] && (3..=4).contains(&some.len()), "{}", some.len());
        // One alone is told with fewer runs, in which all is that is wanted.
        let one = within_an_order(all, &fits(3));
        assert!(one.len() == 1 && one[0].keep.len() <= 3, "{one:?}");
        for (_, first, end) in original(&runs(10)).keep {
            assert!(one[0].keep.iter().any(|run| run.1 <= first && end <= run.2), "{first}");
        }
    }
}
