//! Tests of the schedule simulation: figures of the study and a comparison with naive stepping.

use proptest::prelude::*;

use super::super::{BitRate, ByteSize, ClockTime, Hours, Project, Schedule};
use super::*;

const ARCHIVE: BitRate = BitRate::MAX;

fn kilobits(value: u32) -> BitRate {
    BitRate::from_bits(f64::from(value) * 1e3)
}

fn clock(minutes: u32) -> ClockTime {
    ClockTime::try_from(format!("{:02}:{:02}", minutes / 60, minutes % 60)).unwrap()
}

/// Project as (start minute, length in minutes, kb/s).
type Span = (u32, u32, u32);

fn schedule(general: u32, disk: Option<u64>, spans: &[Span]) -> Schedule {
    let project = |&(start, length, rate): &Span| {
        Project::new("p".to_owned(), clock(start), Hours::new(f64::from(length) / 60.0), kilobits(rate))
            .unwrap()
    };
    Schedule {
        general: Some(kilobits(general)),
        disk: disk.map(ByteSize),
        projects: spans.iter().map(project).collect(),
    }
}

#[test]
fn project_at_the_maximum_takes_one_day() {
    let outcome = simulate(&schedule(256, Some(676_800_000), &[(480, 480, 538)]), kilobits(350)).unwrap();
    // Eight hours at 538 − 350 kb/s leave 676.8 MB; 94 kb/s drain them in 16 hours.
    assert_eq!(outcome.verdict, Verdict::Archivable);
    assert_eq!(outcome.peak, Knee { at: Hours::new(16.0), backlog: ByteSize(676_800_000) });
    assert_eq!(outcome.caught_up_at, Hours::new(32.0));
    assert_eq!(outcome.longest_backlog, Hours::DAY);
    assert_eq!(outcome.full_at, None);
    assert_eq!(outcome.projects[0].limit, ProjectLimit::WithinMaximum);
    assert_eq!(outcome.projects[0].maximum, kilobits(538));
    assert_eq!(outcome.caught_up_at.as_moment(), "day 2 08:00");
}

#[test]
fn faster_project_is_late_and_small_disk_fills() {
    let late = simulate(&schedule(256, None, &[(480, 480, 539)]), kilobits(350)).unwrap();
    assert_eq!((late.verdict, late.projects[0].limit), (Verdict::Late, ProjectLimit::AboveMaximum));
    let full = simulate(&schedule(256, Some(338_400_000), &[(480, 480, 538)]), kilobits(350)).unwrap();
    assert_eq!((full.verdict, full.full_at), (Verdict::DiskFull, Some(Hours::new(12.0))));
}

#[test]
fn quiet_schedule_has_no_backlog() {
    let outcome = simulate(&schedule(0, Some(0), &[(0, 1440, 128)]), kilobits(350)).unwrap();
    assert_eq!(outcome.verdict, Verdict::Archivable);
    assert_eq!((outcome.caught_up_at, outcome.peak.backlog), (Hours::default(), ByteSize(0)));
    assert!(simulate(&schedule(350, None, &[]), kilobits(350)).is_err());
    let unset = Schedule { general: None, ..schedule(0, None, &[]) };
    assert_eq!(simulate(&unset, ARCHIVE).unwrap().general.to_string(), "731 Tb/s");
}

/// Backlog in bytes after each minute, stepped minute by minute for two days and until it is empty.
fn stepped(general: u32, archive: u32, spans: &[Span]) -> Vec<f64> {
    let mut trace = Vec::new();
    let mut backlog = 0.0f64;
    for minute in 0.. {
        if minute > 2880 && backlog <= 0.0 {
            break;
        }
        let active = spans.iter().filter(|(start, length, _)| (*start..start + length).contains(&minute));
        let rates: Vec<u32> = active.map(|(_, _, rate)| *rate).collect();
        let rate = if rates.is_empty() { general } else { rates.iter().sum() };
        backlog = (backlog + (f64::from(rate) - f64::from(archive)) * 7500.0).max(0.0);
        trace.push(backlog);
    }
    trace
}

fn at(knees: &[Knee], hours: f64) -> f64 {
    knees.windows(2).find(|pair| hours <= pair[1].at.get()).map_or(0.0, |pair| {
        let (start, end) = (pair[0].at.get(), pair[1].at.get());
        let (before, after) = (pair[0].backlog.0 as f64, pair[1].backlog.0 as f64);
        before + (after - before) * (hours - start) / (end - start)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn simulation_equals_naive_stepping(
        archive in 200u32..500,
        general in 0u32..190,
        disk in 0u64..4_000_000_000,
        spans in prop::collection::vec((0u32..1440, 1u32..=1440, 0u32..1000), 0..5),
    ) {
        let outcome = simulate(&schedule(general, Some(disk), &spans), kilobits(archive)).unwrap();
        let naive = stepped(general, archive, &spans);
        for (minute, expected) in naive.iter().enumerate().filter(|(minute, _)| minute % 7 == 0 || *minute < 60) {
            let found = at(&outcome.knees, (minute as f64 + 1.0) / 60.0);
            prop_assert!((found - expected).abs() < 3.0, "minute {}: {} {}", minute, found, expected);
        }
        let peak = naive.iter().copied().fold(0.0, f64::max);
        prop_assert!((outcome.peak.backlog.0 as f64 - peak).abs() < 3.0);
        let last = naive.iter().rposition(|backlog| *backlog > 0.5).map_or(0.0, |minute| minute as f64 + 1.0);
        let caught_up = outcome.caught_up_at.get() * 60.0;
        prop_assert!(caught_up >= last - 0.01 && caught_up <= last + 1.01, "{} {}", caught_up, last);
        let full = naive.iter().position(|backlog| *backlog > disk as f64).map(|minute| minute as f64);
        let found = outcome.full_at.map(|at| at.get() * 60.0);
        prop_assert_eq!(full.is_some(), found.is_some());
        let inside = full.zip(found).is_none_or(|(step, found)| found >= step - 0.01 && found <= step + 1.01);
        prop_assert!(inside, "{:?} {:?}", full, found);
        let longest = naive.split(|backlog| *backlog <= 0.5).map(<[f64]>::len).max().unwrap_or(0) as f64;
        let found = outcome.longest_backlog.get() * 60.0;
        prop_assert!(found >= longest - 0.01 && found <= longest + 2.0, "{} {}", longest, found);
    }

    #[test]
    fn maximum_limit_is_the_one_day_limit(
        general in 0u32..340, start in 0u32..1440, length in 1u32..=1440, rate in 0u32..5000,
    ) {
        let outcome = simulate(&schedule(general, None, &[(start, length, rate)]), kilobits(350)).unwrap();
        let project = &outcome.projects[0];
        let near = (project.maximum.bits() - project.rate.bits()).abs() < 1.0;
        let late = project.limit == ProjectLimit::AboveMaximum;
        prop_assert!(near || late == (outcome.verdict == Verdict::Late));
    }
}
