//! Property tests of condition searches, and of the elements that a hold keeps, against a naive look at
//! every element.

use super::recorded::Recorded;
use super::{SCHEMA, engine, naive, stream_table};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{TimestampNanosecondType, UInt64Type};
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_attributes::Schema;
use holdfast_base::{Ordinal, Sequence, Timestamp};
use holdfast_media::{Image, MemoryDisk};
use holdfast_query::ask;
use holdfast_query::condition_search::{ElementSelection, Roll, Search, SearchScope, merged};
use holdfast_query::ring_source::{OpenRing, ReaderPool};
use holdfast_query::stream::ScanDiagnostics;
use holdfast_reader::RingReader;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

struct Ring {
    runtime: Runtime,
    /// Over the ring, and over all its elements in memory.
    real: SessionContext,
    plain: SessionContext,
    image: Image,
    stream: holdfast_base::StreamId,
}

impl Ring {
    fn make(seed: u64, elements: u64) -> Self {
        let schema = Schema::typed(SCHEMA).unwrap();
        let (image, recorded) = Recorded::make(seed, elements, Some(&schema));
        let batch = naive(&image, &schema, &recorded);
        let plain = engine(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()));
        let shared = image.clone();
        let ring: OpenRing =
            Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(shared.clone()))));
        let diagnostics = Arc::new(ScanDiagnostics::default());
        let table = stream_table(recorded.stream, schema, ReaderPool::new(&ring), diagnostics);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        Self { runtime, real: engine(Arc::new(table)), plain, image, stream: recorded.stream }
    }

    /// Ordinal and time of what meets a condition, by looking at all.
    fn naive(&self, condition: &str) -> Vec<(u64, i64)> {
        let sql = format!("select ordinal, time from log where {condition} order by ordinal");
        let batches = self.runtime.block_on(async { ask(&self.plain, &sql).await?.collect().await });
        let mut rows = Vec::new();
        for batch in batches.unwrap() {
            let ordinals = batch.column(0).as_primitive::<UInt64Type>().values().iter();
            let times = batch.column(1).as_primitive::<TimestampNanosecondType>().values().iter();
            rows.extend(ordinals.copied().zip(times.copied()));
        }
        rows
    }

    fn found(
        &self,
        search: &Search,
        among: &SearchScope,
    ) -> Vec<holdfast_query::condition_search::SlotMatches> {
        self.runtime.block_on(search.found(&self.real, "log", among)).unwrap()
    }
}

fn plain(condition: &str) -> Search {
    Search { condition: condition.to_owned(), when: None }
}

const CONDITIONS: [&str; 5] =
    ["id = 77", "in_net(addr, '10.0.0.0/30') and temp > 20", "host is null", "size > 9000", "id < 0"];

/// Conditions that the engine alone gets wrong, each with another of the same elements.
const SAME: [(&str, &str); 8] = [
    ("size - ordinal > 1000000000", "false"),
    ("n - size < 0", "n < size"),
    ("ordinal - id >= -3", "ordinal::decimal(38, 0) + 3 >= id"),
    ("not (host ~ '.*')", "false"),
    ("time - timestamp '1960-01-01' > interval '1 month'", "true"),
    ("extract(day from time - timestamp '1960-01-01') < 31", "false"),
    ("temp::int > 20", "temp > 20.5"),
    ("in_net(addr, '::/0')", "in_net(addr, '::/1') or in_net(addr, '8000::/1')"),
];

#[test]
fn holds_of_conditions_that_the_engine_gets_wrong_are_right() {
    let ring = Ring::make(6, 2000);
    for (condition, same) in SAME {
        let found = ring.found(&plain(condition), &SearchScope::ALL);
        let elements = found.iter().map(|found| found.elements).sum::<u64>();
        assert_eq!(elements, ring.naive(same).len() as u64, "{condition}");
    }
}

#[test]
fn what_a_condition_finds_is_what_a_naive_look_finds() {
    let ring = Ring::make(5, 4000);
    let all = ring.naive("true");
    let (first, last) = (all[all.len() / 4], all[all.len() / 2]);
    let amongs = [
        SearchScope::ALL,
        SearchScope { times: (Timestamp(first.1), Timestamp(last.1)), ..SearchScope::ALL },
        SearchScope { ordinals: (Ordinal(first.0), Ordinal(last.0)), ..SearchScope::ALL },
    ];
    for condition in CONDITIONS {
        for among in amongs {
            let is_among = |(ordinal, time): &(u64, i64)| {
                (among.times.0.0..=among.times.1.0).contains(time)
                    && (among.ordinals.0.0..among.ordinals.1.0).contains(ordinal)
            };
            let mut naive = ring.naive(condition);
            naive.retain(is_among);
            let found = ring.found(&plain(condition), &among);
            assert_eq!(
                found.iter().map(|found| found.elements).sum::<u64>(),
                naive.len() as u64,
                "{condition}"
            );
            let ends = |rows: &mut dyn Iterator<Item = i64>| {
                rows.fold(None, |all: Option<(i64, i64)>, at| {
                    Some(all.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
                })
            };
            let times = ends(&mut found.iter().flat_map(|found| [found.span.0.0, found.span.1.0]));
            assert_eq!(times, ends(&mut naive.iter().map(|(_, time)| *time)), "{condition}");
            let earliest = found.iter().map(|found| found.first.0).min();
            assert_eq!(earliest, naive.first().map(|(ordinal, _)| *ordinal), "{condition}");
            // Each of them is in one of the slots, and all of a slot are younger than those of the one before.
            assert!(found.windows(2).all(|two| two[0].slot < two[1].slot && two[0].first < two[1].first));
            let from = SearchScope { slots: found.last().map_or(Sequence(0), |found| found.slot), ..among };
            assert_eq!(ring.found(&plain(condition), &from), found[found.len().saturating_sub(1)..]);
        }
    }
}

#[test]
fn a_window_fires_where_there_are_enough_within_it() {
    let ring = Ring::make(6, 3000);
    let condition = "host = 'alpha'";
    let hits = ring.naive(condition);
    for (enough, back) in [(3, 1_000_000), (5, 3_000_000), (1, 0), (9999, 1_000_000_000)] {
        let search = Search {
            condition: condition.to_owned(),
            when: Some((format!("count(*) >= {enough}"), Duration::from_nanos(back as u64))),
        };
        let fires = |(_, time): &&(u64, i64)| {
            hits.iter().filter(|(_, other)| time - back <= *other && other <= time).count() >= enough
        };
        let naive: Vec<&(u64, i64)> = hits.iter().filter(fires).collect();
        let found = ring.found(&search, &SearchScope::ALL);
        assert_eq!(found.iter().map(|found| found.elements).sum::<u64>(), naive.len() as u64, "{enough}");
        assert_eq!(naive.is_empty(), enough == 9999, "{enough}");
        // Only those from an ordinal on are told, but the ones before count.
        if let Some((middle, _)) = naive.get(naive.len() / 2) {
            let among = SearchScope { ordinals: (Ordinal(*middle), Ordinal(u64::MAX)), ..SearchScope::ALL };
            let found = ring.found(&search, &among);
            let behind = naive.iter().filter(|(ordinal, _)| ordinal >= middle).count() as u64;
            assert_eq!(found.iter().map(|found| found.elements).sum::<u64>(), behind, "{enough}");
            let spans = ring.runtime.block_on(search.spans(&ring.real, "log", &among, Roll::default()));
            let wanted = naive.iter().filter(|(ordinal, _)| ordinal >= middle);
            let wanted = wanted.map(|(_, time)| (Timestamp(time - back), Timestamp(*time))).collect();
            assert_eq!(spans.unwrap(), merged(wanted), "{enough}");
        }
    }
}

#[test]
fn what_a_window_adds_up_may_fail_of_what_its_condition_leaves_out() {
    let ring = Ring::make(8, 3000);
    let condition = "ordinal % 4 <> 0";
    let hits = ring.naive(condition).len() as u64;
    let quarters = "12 / (cast(ordinal as bigint) % 4)";
    for when in [
        format!("sum({quarters}) >= 4"),
        format!("count(*) filter (where {quarters} > 0) >= 1"),
        format!("count(distinct {quarters} > 5) >= 1"),
        format!("sum({quarters}) / count(*) > 0 and min(size) >= 0"),
    ] {
        let search =
            Search { condition: condition.to_owned(), when: Some((when.clone(), Duration::from_micros(10))) };
        let found = ring.found(&search, &SearchScope::ALL);
        assert_eq!(found.iter().map(|found| found.elements).sum::<u64>(), hits, "{when}");
    }
}

#[test]
fn what_is_kept_of_slots_is_what_was_found_in_them_or_around_it() {
    let ring = Ring::make(7, 3000);
    let condition = "id < 9";
    let roll = Roll { before: Duration::from_micros(300), after: Duration::from_micros(500) };
    let search = plain(condition);
    let found = ring.found(&search, &SearchScope::ALL);
    let slots = (found[1].slot, found[found.len() - 2].slot);
    let spans = ring.runtime.block_on(search.spans(&ring.real, "log", &SearchScope::ALL, roll)).unwrap();
    let times = (Timestamp::MIN, Timestamp::MAX);
    let kept = |condition, spans| {
        let keep = ElementSelection { slots: &[slots], times, condition, spans };
        ring.runtime.block_on(keep.elements(&ring.real, "log")).unwrap().0
    };
    let inside = |kept: &[(Sequence, Ordinal)]| {
        assert!(kept.iter().all(|(slot, _)| slots.0 <= *slot && *slot <= slots.1));
        kept.iter().map(|(_, ordinal)| ordinal.0).collect::<BTreeSet<u64>>()
    };
    let own = inside(&kept(Some(condition), None));
    let number: u64 = found[1..found.len() - 1].iter().map(|found| found.elements).sum();
    assert_eq!(own.len() as u64, number);
    let around = inside(&kept(None, Some(&spans)));
    let hits = ring.naive(condition);
    let near = |time: i64| hits.iter().any(|(_, hit)| hit - 300_000 <= time && time <= hit + 500_000);
    let all = ring.naive("true");
    let (first, last) = (*around.first().unwrap(), *around.last().unwrap());
    let naive: BTreeSet<u64> = all
        .iter()
        .filter(|(ordinal, time)| (first..=last).contains(ordinal) && near(*time))
        .map(|(ordinal, _)| *ordinal)
        .collect();
    assert_eq!(around, naive);
    assert!(around.is_superset(&own) && around.len() > own.len());
    let bounded = spans[..spans.len() / 2].to_vec();
    assert!(inside(&kept(Some(condition), Some(&bounded))).is_subset(&own));
}

#[test]
fn slots_around_spans_are_those_that_have_something_within_them() {
    let ring = Ring::make(8, 3000);
    let all = ring.naive("true");
    let mut reader = RingReader::over(Box::new(MemoryDisk::from_image(ring.image.clone()))).unwrap();
    let of = |at: usize| Timestamp(all[at].1);
    let (early, late) = (all.len() / 5, all.len() / 2);
    let spans = [(of(early), of(early + 3)), (of(late), of(late + 40))];
    let sequences = reader.sequences_around(&[ring.stream], &BTreeMap::new(), &spans).unwrap();
    let holds = |slot: Sequence| sequences.iter().any(|(first, last)| *first <= slot && slot <= *last);
    let found = ring.found(&plain("true"), &SearchScope::ALL);
    let mut held = 0;
    for slot in &found {
        let touched = spans.iter().any(|(from, to)| slot.span.0 <= *to && *from <= slot.span.1);
        // Where elements began that end there is held, too.
        assert!(holds(slot.slot) || !touched, "{slot:?}");
        held += u64::from(holds(slot.slot));
    }
    assert!((1..12).contains(&held), "{held}");
    // What is known to be in a slot is there, and where it began if it began before.
    let one = found[found.len() / 2];
    for (first, begun) in [(one.first, true), (Ordinal(one.first.0 + 1), false)] {
        let known = BTreeMap::from([((one.slot, ring.stream), first)]);
        let alone = reader.sequences_around(&[ring.stream], &known, &[]).unwrap();
        assert!(alone.len() == 1 && alone[0].1 == one.slot, "{alone:?}");
        assert!(begun || alone[0].0 == one.slot, "{alone:?}");
    }
    assert_eq!(reader.sequences_around(&[], &BTreeMap::new(), &[]).unwrap(), []);
}

/// What of a condition over a window can be asked, and what cannot and is refused before anything is looked at.
#[test]
fn aggregates_that_cannot_slide_are_refused_when_the_question_is_read() {
    let ring = Ring::make(9, 600);
    let search = |when: &str| Search {
        condition: "size > 0".to_owned(),
        when: Some((when.to_owned(), Duration::from_millis(1))),
    };
    let check = |when: &str| ring.runtime.block_on(search(when).check_when(&ring.real, "log"));
    for slides in [
        "count(*) > 1",
        "count(host) > 1",
        "count(distinct host) > 1",
        "count(*) filter (where size > 9) > 1",
        "sum(size) > 1",
        "sum(distinct size) > 1",
        "avg(temp) > 1",
        "min(size) > 1",
        "max(host) > 'a'",
        "median(size) > 1",
        "percentile_cont(temp, 0.9) > 1",
        "stddev(temp) > 1",
        "stddev_pop(temp) > 1",
        "var(temp) > 1",
        "var_pop(temp) > 1",
        "corr(temp, size) > 0.5",
        "covar_samp(temp, size) > 1",
        "covar_pop(temp, size) > 1",
        "regr_slope(temp, size) > 1",
        "bit_xor(size) > 1",
        "max(size) - min(size) > size",
    ] {
        check(slides).unwrap_or_else(|error| panic!("{slides}: {error}"));
        let found = ring.runtime.block_on(search(slides).found(&ring.real, "log", &SearchScope::ALL));
        found.unwrap_or_else(|error| panic!("{slides}: {error}"));
    }
    for (does_not, name) in [
        ("approx_distinct(host) > 1", "approx_distinct("),
        ("approx_median(size) > 1", "approx_median("),
        ("approx_percentile_cont(temp, 0.9) > 1", "approx_percentile_cont("),
        ("bool_or(size > 1)", "bool_or("),
        ("first_value(size) > 1", "first_value("),
        ("last_value(size) > 1", "last_value("),
        ("string_agg(host, ',') = 'a'", "string_agg("),
        ("count(*) > 1 and bit_or(size) > 1", "bit_or("),
    ] {
        let error = check(does_not).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("over a sliding window"), "{does_not}: {error}");
    }
}
