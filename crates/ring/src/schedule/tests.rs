//! Tests of the schedule against hand-made situations; `crates/sim` tests it over drives and hours.

use super::*;
use crate::guarantee::tests::{drive, load, shape};

fn schedule() -> Schedule {
    let (measured, load) = (drive(), load(60));
    Schedule::new(Policy::new(Some((&measured, &load)), &shape()))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp(0) + Duration::from_secs(seconds)
}

fn idle() -> View {
    View {
        now: at(100),
        full: 0,
        oldest: at(100),
        free: 15,
        room: 128 << 20,
        writing: 0,
        committing: false,
        commit: false,
        reading: 0,
        reads: false,
        away: false,
        starved: false,
        draining: false,
    }
}

// Promise 1: what is full is written at once while nobody reads, and gathered while somebody does.
#[test]
fn full_slots_are_gathered_only_for_readers() {
    let one = View { full: 1, free: 14, ..idle() };
    assert_eq!(schedule().next(&one), Next::Write);
    let reader = View { reads: true, ..one };
    assert_eq!(schedule().next(&reader), Next::Read);
    let mut schedule = schedule();
    assert_eq!(schedule.next(&View { full: 4, free: 11, ..reader }), Next::Write);
    assert_eq!(schedule.next(&View { full: 3, free: 11, writing: 1, ..reader }), Next::Write, "one ahead");
    assert_eq!(schedule.next(&View { full: 2, free: 11, writing: 2, ..reader }), Next::Rest(None));
    assert_eq!(schedule.next(&View { full: 1, free: 14, ..reader }), Next::Write);
    assert_eq!(schedule.next(&View { full: 0, ..reader }), Next::Read);
    assert_eq!(schedule.next(&reader), Next::Read, "and then gathers again");
}

// Promise 1: a reader who reads on keeps the head while it is on its way with an answer, and no longer than going away and
// coming back would take; what is due, and what nothing could outlast, does not wait for it.
#[test]
fn the_head_stays_for_a_moment_with_who_reads_on() {
    let stay = drive().reposition;
    let mut schedule = schedule();
    let reader = View { full: 1, free: 14, reads: true, ..idle() };
    assert_eq!(schedule.next(&reader), Next::Read);
    let under_way = View { reading: 1, reads: false, ..reader };
    assert_eq!(schedule.next(&under_way), Next::Rest(None));
    let ended = View { now: at(101), reading: 0, ..under_way };
    assert_eq!(schedule.next(&ended), Next::Rest(Some(ended.now + stay)));
    let again = View { now: ended.now + stay / 2, reads: true, ..ended };
    assert_eq!(schedule.clone().next(&again), Next::Read);
    assert_eq!(schedule.clone().next(&View { now: ended.now + stay, ..ended }), Next::Write);
    let forced = schedule.policy().promise.unwrap().forced;
    assert_eq!(schedule.clone().next(&View { oldest: ended.now - forced, ..ended }), Next::Write);
    assert_eq!(
        schedule.clone().next(&View { oldest: ended.now - forced + stay / 2, ..ended }),
        Next::Rest(Some(ended.now + stay / 2))
    );
    assert_eq!(schedule.clone().next(&View { full: 4, ..ended }), Next::Write);
    assert_eq!(schedule.clone().next(&View { free: 4, room: 41 << 20, ..ended }), Next::Write);
    assert_eq!(
        schedule.clone().next(&View { full: 0, ..ended }),
        Next::Rest(None),
        "there is nothing to write"
    );
    // Others who wait have their turn after that moment, or when his is over.
    let others = View { reads: true, away: true, ..ended };
    assert_eq!(schedule.clone().next(&others), Next::Rest(Some(ended.now + stay)));
    assert_eq!(schedule.clone().next(&View { full: 0, ..others }), Next::Rest(Some(ended.now + stay)));
    assert_eq!(schedule.clone().next(&View { away: false, ..others }), Next::Read);
    assert_eq!(schedule.clone().next(&View { full: 4, ..others }), Next::Write);
    assert_eq!(schedule.next(&others), Next::Rest(Some(ended.now + stay)), "from when he was answered");
    assert_eq!(schedule.next(&View { now: ended.now + stay, ..others }), Next::Read);
}

// Where several things are served at once, nobody has to be waited for.
#[test]
fn without_a_head_nothing_stays() {
    let flash = Measured { parallel: 4, ..drive() };
    let mut schedule = Schedule::new(Policy::new(Some((&flash, &load(60))), &shape()));
    let reader = View { full: 1, free: 14, reads: true, ..idle() };
    assert_eq!(schedule.next(&reader), Next::Read);
    assert_eq!(schedule.next(&View { reading: 1, reads: false, ..reader }), Next::Write);
}

// Promise 1: at a rate near what the lane can do there is always something full; readers get their turn all the same, and
// the head goes back and forth once for as many slots as are gathered.
#[test]
fn readers_have_their_turn_after_as_many_slots_as_are_gathered() {
    let mut schedule = schedule();
    let reader = View { reads: true, full: 4, free: 10, ..idle() };
    for left in [4, 3, 3, 2] {
        assert_eq!(schedule.next(&View { full: left, ..reader }), Next::Write);
    }
    let last = View { full: 3, writing: 1, ..reader };
    assert_eq!(schedule.next(&last), Next::Rest(None), "none goes ahead of the readers");
    assert_eq!(schedule.next(&View { full: 3, ..reader }), Next::Read);
    assert_eq!(schedule.next(&reader), Next::Write, "until as many are full again");
    let mut nobody = schedule.clone();
    for left in [3, 2, 1] {
        assert_eq!(nobody.next(&View { full: left, ..reader }), Next::Write);
    }
    let ahead = View { full: 1, writing: 1, reads: false, now: at(101), ..reader };
    assert_eq!(nobody.next(&ahead), Next::Write, "and where nobody reads, it goes on");
}

// Promise 1: a read begins only if the buffers outlast the longest that it can take.
#[test]
fn no_read_begins_that_the_buffers_might_not_outlast() {
    // 7.144 s of reading, 0.061 s for a commit and 2.014 s until a buffer is free, at 60 MiB/s: 553.2 MiB.
    let enough = View { reads: true, free: 4, room: 42 << 20, ..idle() };
    assert_eq!(schedule().next(&enough), Next::Read);
    let short = View { room: 41 << 20, ..enough };
    assert_eq!(schedule().next(&short), Next::Rest(None));
    let full = View { full: 1, ..short };
    assert_eq!(schedule().next(&full), Next::Write, "so what is full goes first");
}

// Promise 6: whoever reads, what is full does not wait for longer than is published.
#[test]
fn what_has_been_full_for_too_long_is_forced_out() {
    let mut schedule = schedule();
    let reader = View { reads: true, reading: 1, full: 1, free: 14, ..idle() };
    assert_eq!(schedule.next(&reader), Next::Rest(None));
    let waits = View { reads: false, ..reader };
    assert_eq!(schedule.next(&waits), Next::Rest(None), "the head is with the reader");
    let forced = schedule.policy().promise.unwrap().forced;
    let late = View { reads: true, reading: 0, now: reader.oldest + forced, ..reader };
    assert_eq!(schedule.next(&late), Next::Write);
}

// Promise 1: commits never take more of the lane's time than was counted on.
#[test]
fn commits_go_first_where_there_is_time_and_once_for_several_slots_where_there_is_none() {
    let mut schedule = schedule();
    let tight = View { commit: true, full: 3, free: 0, room: 1 << 20, ..idle() };
    let small = Next::Commit { most: COMMIT_BYTES };
    assert_eq!(schedule.next(&tight), small);
    let then: Vec<Next> = (0..6).map(|_| schedule.next(&tight)).collect();
    assert_eq!(then, [Next::Write, Next::Write, Next::Write, Next::Write, small, Next::Write]);
    let ahead = View { writing: 1, ..tight };
    assert_eq!((0..5).map(|_| schedule.next(&ahead)).filter(|next| *next == Next::Write).count(), 3);
    assert_eq!(schedule.next(&ahead), Next::Rest(None), "the fourth slot's end is the commit's turn");
    assert_eq!(schedule.next(&tight), small);
    assert_eq!(
        schedule.next(&View { commit: true, full: 1, ..idle() }),
        Next::Commit { most: u64::MAX },
        "there is time"
    );
}

// Promise 1: a short runway is renewed however little time there is, when nothing that is full has a place.
#[test]
fn without_a_place_for_what_is_full_a_commit_goes_at_once() {
    let mut schedule = schedule();
    let tight = View { commit: true, full: 1, free: 0, room: 1 << 20, ..idle() };
    assert_eq!(schedule.next(&tight), Next::Commit { most: COMMIT_BYTES });
    assert_eq!(schedule.next(&tight), Next::Write);
    assert_eq!(schedule.next(&View { full: 0, ..tight }), Next::Commit { most: COMMIT_BYTES });
}

// Promise 6: what is due does not wait for one commit after the other, nor a commit for reads begun beside the last one.
#[test]
fn what_is_due_goes_before_large_commits_and_commits_before_reads() {
    let mut due = schedule();
    let forced = due.policy().promise.unwrap().forced;
    let view = View { commit: true, full: 1, free: 14, ..idle() };
    assert_eq!(due.next(&view), Next::Commit { most: u64::MAX });
    assert_eq!(due.next(&View { now: view.oldest + forced, ..view }), Next::Write);
    let flash = Measured { parallel: 4, ..drive() };
    let mut schedule = Schedule::new(Policy::new(Some((&flash, &load(60))), &shape()));
    let reader = View { reads: true, ..idle() };
    assert_eq!(schedule.next(&reader), Next::Read);
    assert_eq!(schedule.next(&View { committing: true, ..reader }), Next::Rest(None));
}

#[test]
fn the_margin_is_the_least_slack_that_was_seen() {
    let mut schedule = schedule();
    assert_eq!(schedule.margin(), None);
    schedule.next(&View { free: 0, room: 60 << 20, now: at(7), ..idle() });
    schedule.next(&idle());
    let Margin { rate, kept, least, since } = schedule.margin().unwrap();
    assert_eq!((rate.0, least, since), (60 << 20, Duration::from_secs(1), at(7)));
    assert!((kept.as_secs_f64() - 9.220).abs() < 0.01, "{kept:?}");
    assert_eq!(schedule.most_buffers(), (16, at(7)));
}

#[test]
fn without_a_promise_some_buffers_are_kept_from_readers() {
    let mut schedule = Schedule::new(Policy::new(None, &shape()));
    let view = View { full: 1, writing: 1, reads: true, reading: 3, free: 4, ..idle() };
    assert_eq!(schedule.next(&view), Next::Write);
    assert_eq!(schedule.next(&View { full: 0, ..view }), Next::Read);
    let short = View { full: 0, free: 3, ..view };
    assert_eq!(schedule.next(&short), Next::Rest(Some(short.now + PATIENCE)));
    assert_eq!(schedule.margin(), None);
}

#[test]
fn without_a_promise_no_read_starves() {
    let mut schedule = Schedule::new(Policy::new(None, &shape()));
    let short = View { writing: 2, reads: true, free: 0, ..idle() };
    let until = short.now + PATIENCE;
    assert_eq!(schedule.next(&short), Next::Rest(Some(until)));
    let later = View { now: until, ..short };
    assert_eq!(schedule.next(&View { reading: 1, ..later }), Next::Rest(None), "one at a time");
    assert_eq!(schedule.next(&later), Next::Read);
    assert_eq!(schedule.next(&later), Next::Rest(Some(until + PATIENCE)));
}

// What is beyond a rate is taken in only while readers have their turns.
#[test]
fn nothing_is_beyond_while_readers_starve() {
    let mut schedule = schedule();
    let forced = schedule.policy().promise.unwrap().forced;
    let busy = View { full: 1, writing: 1, reads: true, ..idle() };
    schedule.next(&busy);
    let spare = |schedule: &Schedule, now| schedule.spare(now, 14, Some(128 << 20), 0).beside;
    let late = busy.now + forced;
    assert!(spare(&schedule, late - Duration::from_nanos(1)) > 0);
    assert_eq!(spare(&schedule, late), 0);
    let turn = View { now: late, full: 0, writing: 0, ..busy };
    assert_eq!(schedule.next(&turn), Next::Read);
    assert!(spare(&schedule, late) > 0, "one had its turn");
    assert_eq!(schedule.next(&View { reading: 1, ..turn }), Next::Rest(None));
    assert_eq!(spare(&schedule, late + forced), 0, "but another waits for his");
    schedule.next(&View { now: late + forced, reads: false, ..turn });
    assert!(spare(&schedule, late + forced) > 0, "nobody waits");
}

// A stream that is alone is held for the sake of readers only once they have waited for longer than any burst that is published.
#[test]
fn readers_wait_for_a_burst_of_who_is_alone_and_no_longer() {
    let mut schedule = schedule();
    let Promise { forced, rides, .. } = schedule.policy().promise.unwrap();
    let longest = figures(&drive(), &load(60), &shape()).bursts[0];
    assert!(rides > forced && Some(rides) == longest, "{rides:?} {longest:?}");
    let busy = View { full: 1, writing: 1, reads: true, free: 0, ..idle() };
    schedule.next(&busy);
    let alone = |schedule: &Schedule, now| schedule.spare(now, 0, None, 0).alone;
    let late = busy.now + forced + rides;
    assert_eq!(alone(&schedule, late - Duration::from_nanos(1)), u64::MAX);
    assert_eq!(alone(&schedule, late), 0);
    schedule.next(&View { now: late, reads: false, ..busy });
    assert_eq!(alone(&schedule, late), u64::MAX);
}

// Promise 1: a ring without a place to write to is read (and purged) all the same, and its journal names places.
#[test]
fn where_nothing_can_be_written_nothing_waits_for_writing() {
    let stuck = View { free: 0, room: 0, reads: true, commit: true, ..idle() };
    assert_eq!(schedule().next(&stuck), Next::Commit { most: COMMIT_BYTES });
    let stuck = View { commit: false, ..stuck };
    assert_eq!(schedule().next(&stuck), Next::Rest(None));
    assert_eq!(schedule().next(&View { starved: true, ..stuck }), Next::Read);
}

// Promise 6: at the end of a run what is full waits neither for others to be gathered with it nor for a reader's return.
#[test]
fn at_the_end_what_is_full_is_written_at_once() {
    let one = View { full: 1, free: 14, reads: true, ..idle() };
    let end = View { draining: true, ..one };
    assert_eq!(schedule().next(&end), Next::Write);
    let mut schedule = schedule();
    assert_eq!(schedule.next(&one), Next::Read);
    assert_eq!(schedule.next(&View { reading: 1, reads: false, ..one }), Next::Rest(None));
    let ended = View { now: at(101), reads: false, ..one };
    assert!(matches!(schedule.next(&ended), Next::Rest(Some(_))));
    assert_eq!(schedule.next(&View { draining: true, ..ended }), Next::Write);
}
