//! Holds by generated conditions: each keeps exactly the slots, and the elements, that a query with its condition finds.

use super::{QUESTIONS, SCHEMA, asked, generated, payload, python_with, round_seeds, row};
use crate::streams::recorded::{Content, Recorded};
use holdfast_attributes::Schema;
use holdfast_base::{ByteSize, Timestamp};
use holdfast_media::MemoryDisk;
use holdfast_query::condition_search::{ElementSelection, Search, SearchScope};
use holdfast_query::ring_source::{OpenRing, ReaderPool, RingSource};
use holdfast_query::stream::ScanDiagnostics;
use holdfast_query::{Engine, Limits, SourceStream, engine_of};
use holdfast_reader::RingReader;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

const ROWS: u64 = 300;
/// Most rows of a slot: bytes of another stream fill the rest.
const NOISE: u64 = 60_000;
/// Rounds of conditions in the suite.
const ROUNDS: usize = 4;

/// An engine over a stream with rows in several slots.
fn engine() -> Engine {
    let schema = Schema::typed(SCHEMA).unwrap();
    let content = Content {
        header: |_, number| Some(row(4, number).header()),
        noise: NOISE,
        element: |_, number| payload(number),
    };
    let (image, recorded) = Recorded::of(5, ROWS, Some(&schema), &content);
    let ring: OpenRing = Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let source = Arc::new(RingSource::new(ReaderPool::new(&ring), HashMap::new(), diagnostics));
    let stream = SourceStream {
        name: "s".to_owned(),
        id: recorded.stream,
        schema,
        source,
        ring: "a ring".to_owned(),
        ordinals: None,
    };
    let limits = Limits {
        memory: ByteSize::mib(256),
        spill: None,
        spill_bytes: ByteSize::mib(64),
        threads: NonZeroUsize::MIN,
    };
    engine_of(&limits, vec![stream], Vec::new()).unwrap()
}

#[test]
fn holds_keep_the_slots_that_queries_with_their_conditions_find() {
    // Any interpreter makes conditions.
    let Some(python) = python_with("random") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let engine = engine();
    let context = &engine.context;
    let seeds: Vec<_> = round_seeds().into_iter().take(ROUNDS).collect();
    let all = [(holdfast_base::Sequence(0), holdfast_base::Sequence(u64::MAX))];
    let numbers = |sql: &str| -> Result<BTreeSet<u64>, String> {
        let rows = runtime.block_on(asked(&engine, sql)).map_err(|error| error.to_string())?;
        Ok(rows.iter().map(|row| row[0].parse::<f64>().unwrap() as u64).collect())
    };
    assert!(numbers("select distinct slot from s").unwrap().len() > 5);
    let (mut kept, mut refused, mut wrong) = (0, 0, Vec::new());
    for generated in generated(&python, &json!({ "seeds": seeds, "count": QUESTIONS })) {
        let condition = generated["condition"].as_str().unwrap().to_owned();
        let wanted = numbers(&format!("select distinct slot from s where {condition}"));
        let elements = numbers(&format!("select ordinal from s where {condition}"));
        let selection = ElementSelection {
            slots: &all,
            times: (Timestamp::MIN, Timestamp::MAX),
            condition: Some(&condition),
            spans: None,
        };
        let chosen = runtime.block_on(selection.elements(context, "s"));
        let chosen = chosen
            .map(|(all, _)| all.iter().map(|(_, ordinal)| ordinal.0).collect::<BTreeSet<_>>())
            .map_err(|error| error.to_string());
        let search = Search { condition: condition.clone(), when: None };
        let found = runtime.block_on(search.found(context, "s", &SearchScope::ALL));
        let found = found
            .map(|found| found.iter().map(|found| found.slot.0).collect::<BTreeSet<_>>())
            .map_err(|error| error.to_string());
        match (&found, &wanted) {
            (Ok(found), Ok(wanted)) if found == wanted && chosen == elements => {
                kept += usize::from(!found.is_empty());
            }
            (Err(_), Err(_)) => refused += 1,
            _ => wrong.push(format!("{}: {condition}\nhold {found:?}\nquery {wanted:?}", generated["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} differ\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(kept > 100 && refused * 25 < seeds.len() * QUESTIONS, "{kept} kept, {refused} refused");
}
