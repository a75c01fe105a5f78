//! Random parameters of a distilling run, and the elements that its holds keep.

use super::{Change, Run, arrivals};
use holdfast_base::{HoldId, Ordinal, Sequence, StreamId};
use holdfast_media::Seed;
use holdfast_ring::{Order, Original, Outcome};
use holdfast_sim::{Pushed, SurveyedSlot};
use std::collections::{BTreeMap, BTreeSet};

const EVERYTHING: (Ordinal, Ordinal) = (Ordinal(0), Ordinal(u64::MAX));

/// All of some streams.
pub(crate) fn all_of(streams: &[StreamId]) -> Vec<(StreamId, Ordinal, Ordinal)> {
    streams.iter().map(|stream| (*stream, EVERYTHING.0, EVERYTHING.1)).collect()
}

pub(crate) fn original(sequence: u64, keep: Vec<(StreamId, Ordinal, Ordinal)>) -> Original {
    Original { sequence: Sequence(sequence), holds: Vec::new(), keep }
}

/// An order for some of what a hold keeps, its copies included.
pub(crate) fn drawn(run: &mut Run, hold: HoldId) -> Vec<Original> {
    let mut order = Vec::new();
    for sequence in run.kept_by(hold) {
        if run.seed.happens(0.9) {
            let rows: Vec<_> = run.contents[&sequence].iter().map(|at| &run.rows[at]).collect();
            order.push(original(sequence, keep(&mut run.seed, &rows)));
        }
    }
    order
}

/// An order for some of what several holds keep, each of which is named for what it keeps; or, now and then, is not.
pub(crate) fn drawn_of_several(run: &mut Run) -> Vec<Original> {
    let holds: Vec<HoldId> = run.recorder.driver.ring().hold_looks().map(|look| look.id).collect();
    let mut order: BTreeMap<u64, Original> = BTreeMap::new();
    for id in holds {
        for of_one in drawn(run, id) {
            let original =
                order.entry(of_one.sequence.0).or_insert_with(|| original(of_one.sequence.0, Vec::new()));
            original.keep.extend(of_one.keep);
            if run.seed.happens(0.95) {
                original.holds.push(id);
            }
        }
    }
    order.into_values().collect()
}

/// Some of what is on the medium.
pub(crate) fn some_of(run: &mut Run, chance: f64, most: usize) -> Vec<u64> {
    run.present().into_iter().filter(|_| run.seed.happens(chance)).take(most).collect()
}

/// What each hold keeps.
pub(crate) type Kept = Vec<(HoldId, BTreeSet<u64>)>;

pub(crate) fn kept(run: &Run) -> Kept {
    let holds: Vec<HoldId> = run.recorder.driver.ring().hold_looks().map(|look| look.id).collect();
    holds.into_iter().map(|id| (id, run.kept_by(id))).collect()
}

/// What must be there as it was, but for what may go: all that is kept by holds that were not released.
pub(crate) fn fixed(run: &Run) -> BTreeSet<u64> {
    kept(run).into_iter().flat_map(|(_, kept)| kept).collect()
}

/// The copies that each hold is to keep: who kept an original keeps those that have something of it, and no others.
pub(crate) fn owners(
    run: &Run,
    found: &[SurveyedSlot],
    change: &Change,
    before: &Kept,
) -> Vec<(HoldId, BTreeSet<u64>)> {
    let owner = |(id, kept): &(HoldId, BTreeSet<u64>)| {
        let is_own = |copy: &u64| {
            let here = arrivals(found.iter().find(|found| found.sequence.0 == *copy).unwrap());
            let mut gone = kept.iter().filter(|s| change.gone.contains(s)).map(|s| &run.contents[s]);
            gone.any(|rows| here.iter().any(|at| rows.contains(at)))
        };
        (*id, change.copies.iter().copied().filter(is_own).collect())
    };
    before.iter().map(owner).collect()
}

/// The copies that a hold keeps.
pub(crate) fn copies_of(run: &Run, id: HoldId, change: &Change) -> BTreeSet<u64> {
    let keeps = run.kept_by(id);
    change.copies.iter().copied().filter(|copy| keeps.contains(copy)).collect()
}

/// Expiry goes on: what is released goes, oldest first, copies as anything else.
pub(crate) fn all_goes(run: &mut Run, seed: u64) {
    for (id, _) in kept(run) {
        assert!(matches!(run.order(Order::Release(id.into())), Outcome::Released { .. }));
    }
    let newest = run.present().into_iter().max().unwrap();
    run.fill(90);
    run.settle();
    assert!(run.present().into_iter().all(|sequence| sequence > newest), "seed {seed}");
}

/// The ordinals of some rows that an order is to keep: all, none, a half in one piece, or a few here and there.
fn keep(seed: &mut Seed, rows: &[&Pushed]) -> Vec<(StreamId, Ordinal, Ordinal)> {
    let way = seed.below(5);
    let mut keep = Vec::new();
    for row in rows {
        let chosen = match way {
            0 => true,
            1 => false,
            2 => row.ordinal % 40 < 20,
            _ => seed.happens(0.05),
        };
        if chosen {
            keep.push((row.stream, Ordinal(row.ordinal), Ordinal(row.ordinal + 1 + seed.below(2))));
        }
    }
    keep
}
