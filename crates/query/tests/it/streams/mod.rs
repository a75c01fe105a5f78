//! Tests of streams as tables: every query finds what a naive look at every element finds, in a ring that
//! wraps, for fragmented elements, invalid documents, and slots without columns.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod found;
mod generated;
mod payloads;
pub(crate) mod recorded;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use holdfast_attributes::{Element, Extractor, Schema, Value};
use holdfast_base::{ByteSize, SlotNo, StreamId};
use holdfast_format::{CellBuffer, Flags};
use holdfast_media::{Image, MemoryDisk};
use holdfast_query::ring_source::{OpenRing, ReaderPool, RingSource};
use holdfast_query::stream::{ColumnBuilder, ScanDiagnostics, SkippedData, StreamTable};
use holdfast_query::{
    Column, Columns, CommonColumn, Engine, Limits, answer, ask, hits, is_join_memory, session,
};
use holdfast_reader::{IndexDrive, Item, PlannedSlot, RingReader, Selection};
use recorded::Recorded;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SCHEMA: [&str; 9] = [
    "id:uint=json:id",
    "temp:float=json:t",
    "host:text=json:host",
    "up:bool=json:up",
    "addr:ip=json:addr",
    "late:int=json:late,comment=how late it was",
    "lane:uint=given",
    "mark:text=given",
    "n:uint=json:n",
];

/// The table `log` of a stream of a ring.
fn stream_table(
    stream: StreamId,
    schema: Schema,
    readers: ReaderPool,
    diagnostics: Arc<ScanDiagnostics>,
) -> StreamTable {
    let source = RingSource::new(readers, HashMap::new(), diagnostics);
    StreamTable::new("log", stream, schema, Arc::new(source))
}

fn engine(table: Arc<dyn TableProvider>) -> SessionContext {
    engine_with(table, ByteSize::mib(256))
}

fn engine_with(table: Arc<dyn TableProvider>, memory: ByteSize) -> SessionContext {
    let limits = Limits {
        memory,
        spill: None,
        spill_bytes: ByteSize::mib(64),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    session(&limits, Vec::new(), vec![("log".to_owned(), table)]).unwrap()
}

/// All elements of a stream that can be read, one by one, as a table in memory.
fn naive(image: &Image, schema: &Schema, recorded: &Recorded) -> RecordBatch {
    let columns = Columns::new(schema);
    let mut arrays: Vec<ColumnBuilder> = (0..columns.arrow().fields().len())
        .map(|place| ColumnBuilder::new(columns.at(place).unwrap().1))
        .collect();
    let mut reader = RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))).unwrap();
    let plan = reader.plan(&Selection { streams: vec![recorded.stream], ..Selection::ALL }).unwrap();
    let mut extractor = Extractor::new(schema);
    reader
        .read(&plan, &mut |item| {
            let Item::Element(element) = item else { return ControlFlow::Continue(()) };
            let mut cells: Vec<CellBuffer> =
                schema.classes().iter().map(|class| CellBuffer::new(class, 1, 2000)).collect();
            let header = element.flags.has(Flags::HEADER).then_some(element.meta);
            let told = extractor.extract(&Element { header, ..Element::of(element.data) }, &mut cells);
            for (place, array) in arrays.iter_mut().enumerate() {
                let (column, _) = columns.at(place).unwrap();
                let size = element.data.len() as u64;
                let value = match column {
                    Column::Attribute(number) => {
                        let buffer = &cells[number];
                        let nulls = [!buffer.valid()[0]];
                        array.extend(buffer.cells(), Some(&nulls), &[true]).unwrap();
                        continue;
                    }
                    Column::Common(CommonColumn::Ordinal) => Some(Value::Uint(element.ordinal.0)),
                    Column::Common(CommonColumn::Time) => Some(Value::Time(element.arrival)),
                    Column::Common(CommonColumn::EventTime) => {
                        element.event.or(told.event_time).map(Value::Time)
                    }
                    Column::Common(CommonColumn::Size | CommonColumn::OriginalSize) => {
                        Some(Value::Uint(size))
                    }
                    Column::Common(CommonColumn::Payload) => Some(Value::Binary(element.data)),
                    // Where a row lies, and how it came there, is not an element's.
                    Column::Common(CommonColumn::Slot | CommonColumn::Span | CommonColumn::Direction) => None,
                };
                array.push(value.map(|value| value.cell())).unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    let fields: Vec<_> =
        columns.arrow().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let arrow = datafusion::arrow::datatypes::Schema::new(fields);
    let arrays: Vec<ArrayRef> = arrays.into_iter().map(ColumnBuilder::finish).collect();
    RecordBatch::try_new(Arc::new(arrow), arrays).unwrap()
}

fn shown(runtime: &tokio::runtime::Runtime, context: &SessionContext, sql: &str) -> String {
    let batches = runtime.block_on(async { ask(context, sql).await?.collect().await });
    let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
    pretty_format_batches(&batches).unwrap().to_string()
}

const QUERIES: [&str; 37] = [
    "select ordinal, hex(payload) from log where host like 'a%' order by ordinal",
    "select ordinal, hex(payload) from log where temp > id or not (ordinal % 3 = 1) order by ordinal",
    "select ordinal, payload from log where upper(host) = 'ALPHA' and temp <> id order by ordinal",
    "select count(*) from log",
    "select count(id), count(temp), count(host), count(up), count(addr) from log",
    "select count(*) from log where host = 'alpha'",
    "select count(*) from log where host <> 'alpha'",
    "select count(*) from log where host is null",
    "select ordinal, id from log where id = 77 order by ordinal",
    "select ordinal from log where id = 18446744073709551615 order by ordinal",
    "select min(temp), max(temp), avg(temp) from log where up",
    "select host, count(*), sum(id % 1000) from log group by host order by host",
    "select ordinal, host, addr from log where addr = '10.0.0.3' and not up order by ordinal",
    "select count(*) from log where in_net(addr, '10.0.0.0/30')",
    "select count(*) from log where in_net(addr, '2001:db8::/64') or temp > 99",
    "select ordinal, size from log where size > 9000 order by ordinal",
    "select sum(size), max(size) from log",
    "select ordinal, length(hex(payload)) from log where id < 5 order by ordinal",
    "select ordinal, hex(payload) from log where size < 20 order by ordinal",
    "select ordinal from log where matches(payload, '\"id\":7[0-9],') order by ordinal",
    "select ordinal, temp from log order by temp desc nulls last, ordinal limit 5",
    "select ordinal, time from log where time > '1970-01-01T00:00:01.05Z' order by ordinal limit 10",
    "select ordinal from log where ordinal >= 300 and ordinal < 320 order by ordinal",
    "select late, count(*) from log where late is not null group by late order by late",
    "select lane, mark, count(*), sum(size) from log group by lane, mark order by lane, mark",
    "select ordinal from log where lane = 3 and mark = 'red' and size > 5000 order by ordinal",
    "select ordinal, hex(payload) from log where mark is null and lane is not null and size < 60 order by ordinal",
    "select count(*) from log where late is null and id is not null",
    "select event_time from log where event_time is not null",
    "select a.ordinal from log a join log b on a.id = b.id and a.ordinal < b.ordinal order by 1 limit 7",
    "select date_bin(interval '10 milliseconds', time) t, count(*) from log group by t order by t",
    "select ordinal, time, hex(payload) from log where id = 77 and (host = 'alpha' or size > 90) and ordinal > 50 order by ordinal",
    "select ordinal, host from log where id in (7, 8, 499) or size > 20000 order by ordinal",
    "select count(*) from log where host in ('alpha', 'gamma', 'x') and temp between -10 and 20 and up is not null",
    "select n, host, temp from log where n = 333 or n between 400 and 410 or n = 599 order by n",
    "select ordinal, n, hex(payload) from log where n between 1090 and 1100 and id > 7 order by ordinal",
    "select count(*), sum(id % 1000), min(n), max(n) from log where n > 2000 and (n < 2100 or host is null and n < 2300)",
];

fn compare(image: &Image, recorded: &Recorded, schema: &Schema, queries: &[&str]) {
    compare_with(image, recorded, schema, queries, None);
}

/// The same where copies of the index are looked for in a folder.
fn compare_with(image: &Image, recorded: &Recorded, schema: &Schema, queries: &[&str], index: Option<&Path>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batch = naive(image, schema, recorded);
    assert!(batch.num_rows() > 100, "{}", batch.num_rows());
    let plain = engine(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()));
    let shared = image.clone();
    let folder = index.map(Path::to_owned);
    let ring: OpenRing = Arc::new(move || {
        let disk = MemoryDisk::from_image(shared.clone());
        Ok(RingReader::over(Box::new(disk))?.with_index(folder.as_deref()))
    });
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let table =
        stream_table(recorded.stream, schema.clone(), ReaderPool::new(&ring), Arc::clone(&diagnostics));
    let real = engine(Arc::new(table));
    for sql in queries {
        assert_eq!(shown(&runtime, &real, sql), shown(&runtime, &plain, sql), "{sql}");
    }
    assert_eq!(diagnostics.take(), SkippedData::default());
}

#[test]
fn queries_find_what_a_naive_look_finds() {
    let schema = Schema::typed(SCHEMA).unwrap();
    for (seed, elements) in [(1, 600), (2, 3000), (3, 9000)] {
        let (image, recorded) = Recorded::make(seed, elements, Some(&schema));
        compare(&image, &recorded, &schema, &QUERIES);
    }
}

/// What befalls copies on an index drive.
const SPOILS: [fn(&mut Vec<u8>); 7] = [
    |_| {},
    |file| file.truncate(file.len() / 2),
    |file| file.truncate(30),
    |file| file[24] ^= 1,
    |file| *file.last_mut().unwrap() ^= 0x10,
    |file| (100..file.len()).step_by(1000).for_each(|at| file[at] = !file[at]),
    |file| file.clear(),
];

// Promise 5, in a folder and on what stands for a device.
#[test]
fn copies_on_an_index_drive_change_no_result_whatever_becomes_of_them() {
    let folder = tempfile::tempdir().unwrap();
    copies_change_no_result(folder.path());
    let device = folder.path().join("device");
    std::fs::File::create(&device).unwrap().set_len(16 << 20).unwrap();
    copies_change_no_result(&device);
}

fn copies_change_no_result(place: &Path) {
    let schema = Schema::typed(SCHEMA).unwrap();
    let (image, recorded) = Recorded::make(9, 3000, Some(&schema));
    let mut reader = RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))).unwrap();
    let drive = IndexDrive::new(place, reader.superblock().ring);
    assert!(drive.lock(false).unwrap().is_some());
    let slots = reader.plan(&Selection::ALL).unwrap().slots;
    assert!(slots.len() > 8, "{}", slots.len());
    let sound: Vec<_> = slots
        .iter()
        .map(|slot| (slot.sequence, reader.look_into(slot).unwrap().index_copy().unwrap()))
        .collect();
    for spoil in SPOILS {
        for (sequence, copy) in &sound {
            let mut copy = copy.clone();
            spoil(&mut copy);
            drive.put(*sequence, &copy).unwrap();
        }
        compare_with(&image, &recorded, &schema, &QUERIES, Some(place));
    }
    // Each is that of another slot; some are gone.
    for ((sequence, _), (_, copy)) in sound.iter().zip(sound.iter().cycle().skip(1)) {
        drive.put(*sequence, copy).unwrap();
    }
    compare_with(&image, &recorded, &schema, &QUERIES, Some(place));
    for (number, (sequence, copy)) in sound.iter().enumerate() {
        drive.put(*sequence, copy).unwrap();
        if number % 3 == 0 {
            assert!(drive.remove(*sequence).unwrap().is_none());
        }
    }
    assert_eq!(drive.copies().unwrap().len(), sound.len() - sound.len().div_ceil(3));
    compare_with(&image, &recorded, &schema, &QUERIES, Some(place));
    compare_with(&image, &recorded, &schema, &QUERIES, Some(&place.join("nowhere")));
    // What is destroyed leaves nothing behind, and none of the others goes with it.
    if place.is_file() {
        let (sequence, copy) = &sound[1];
        let count =
            |part: &[u8]| std::fs::read(place).unwrap().windows(part.len()).filter(|at| *at == part).count();
        let middle = &copy[copy.len() / 2..][..64];
        assert!(count(middle) > 0);
        assert!(drive.remove(*sequence).unwrap().is_none());
        assert_eq!((count(middle), count(&copy[..64])), (0, 0));
        assert_eq!(drive.copies().unwrap().len(), sound.len() - sound.len().div_ceil(3) - 1);
        compare_with(&image, &recorded, &schema, &QUERIES[..3], Some(place));
    }
}

// Promise 3: what was there when the search began and has expired since is told of, each slot once, whatever was in it; all
// else is found.
#[test]
fn what_expires_while_a_search_is_at_work_is_counted_and_the_rest_is_found() {
    let schema = Schema::typed(SCHEMA).unwrap();
    let (before, recorded) = Recorded::make(5, 9000, Some(&schema));
    let (mut after, _) = Recorded::make(5, 11_000, Some(&schema));
    let reader = |image: &Image| RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))).unwrap();
    let slots = |image: &Image| reader(image).plan(&Selection::ALL).unwrap().slots;
    let (planned, left) = (slots(&before), slots(&after));
    let is_left = |slot: &&PlannedSlot| left.iter().any(|other| other.sequence == slot.sequence);
    let expired: Vec<&PlannedSlot> = planned.iter().filter(|slot| !is_left(slot)).collect();
    assert!(expired.len() > 2 && expired.len() < planned.len() - 2, "{expired:?} of {}", planned.len());
    // Where something is about to be written, it has been.
    let geometry = reader(&after).superblock().geometry.clone();
    let mut other = vec![0; geometry.slot_bytes as usize];
    after.read(geometry.slot_offset(left[0].slot.unwrap()), &mut other);
    let used = |slot: &SlotNo| left.iter().any(|other| other.slot == Some(*slot));
    for slot in expired.iter().filter_map(|slot| slot.slot).filter(|slot| !used(slot)) {
        after.write(geometry.slot_offset(slot), &other);
    }
    let sql = format!(
        "select ordinal, slot, id, host, hex(payload) from log where slot <= {} order by ordinal",
        planned.last().unwrap().sequence
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let opened = |first: &Image, question: &str| {
        // The lists are made of what is there first; if there are two, it is told what there was before.
        let looks = question.matches("from log").count();
        let ring = changing([first.clone(), after.clone()], if looks > 1 { looks + 1 } else { 1 });
        let diagnostics = Arc::new(ScanDiagnostics::default());
        let schema = schema.clone();
        let table = stream_table(recorded.stream, schema, ReaderPool::anew(&ring), Arc::clone(&diagnostics));
        Engine { context: engine(Arc::new(table)), diagnostics }
    };
    let ask = |first: &Image| {
        let Engine { context, diagnostics } = opened(first, &sql);
        (shown(&runtime, &context, &sql), diagnostics.take())
    };
    let (found, missed) = ask(&after);
    assert_eq!(missed, SkippedData::default());
    let (partly, missed) = ask(&before);
    assert_eq!(missed, SkippedData { expired: expired.len() as u64, ..SkippedData::default() });
    assert!(partly == found, "{}", partly.len());
    // What is computed over all of them would be wrong, and so would be what comes first, or behind so many others.
    let computed = [
        "select count(*) from log",
        "select host, max(id) from log group by host",
        "select ordinal, size - lag(size) over (order by ordinal) from log",
        "select ordinal from log where id not in (select id from log where up)",
        // Nothing comes of it, and that is no answer either.
        "select host from log group by host having count(*) > 100000",
        "select ordinal, temp from log order by temp desc limit 5",
        "select ordinal from (select * from log order by temp limit 100) where up",
        "select ordinal from log limit 5 offset 3",
    ];
    let mut exports = 0;
    let lists =
        [&*sql, "select ordinal from log where up order by temp", "select ordinal from log limit 100000"];
    for (question, is_list) in
        computed.map(|question| (question, false)).into_iter().chain(lists.map(|list| (list, true)))
    {
        let of = |first: &Image| {
            runtime.block_on(async {
                answer(&opened(first, question), question).await?.try_collect::<Vec<RecordBatch>>().await
            })
        };
        let exported = |first: &Image| {
            runtime.block_on(async {
                let mut found = hits(&opened(first, question), question).await?;
                while found.next().await.transpose()?.is_some() {}
                Ok::<_, DataFusionError>(())
            })
        };
        assert!(of(&after).is_ok(), "{question}");
        match of(&before) {
            Ok(_) => assert!(is_list, "{question}"),
            Err(error) => assert!(!is_list && error.to_string().contains("expired"), "{question}: {error}"),
        }
        // The same of elements that are given out: of those questions of which each row is one.
        if exported(&after).is_ok() {
            exports += 1;
            let ends = exported(&before).map_err(|error| error.to_string());
            assert_eq!(ends.is_ok(), is_list, "{question}");
            assert!(ends.err().is_none_or(|error| error.contains("expired")), "{question}");
        }
    }
    assert_eq!(exports, 7);
}

/// A ring that is as the first image for so many who open it, and as the other from then on.
fn changing(images: [Image; 2], first: usize) -> OpenRing {
    let opened = AtomicUsize::new(0);
    Arc::new(move || {
        let image = &images[usize::from(opened.fetch_add(1, Ordering::SeqCst) >= first)];
        RingReader::over(Box::new(MemoryDisk::from_image(image.clone())))
    })
}

// What arrives while a question is at work is in none of its looks, if there are several.
#[test]
fn all_looks_of_a_question_see_what_there_was_when_it_was_asked() {
    let schema = Schema::typed(SCHEMA).unwrap();
    let (before, recorded) = Recorded::make(5, 2000, Some(&schema));
    let (after, _) = Recorded::make(5, 2600, Some(&schema));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let asked = |first: usize, question: &str| {
        let ring = ReaderPool::anew(&changing([before.clone(), after.clone()], first));
        let table = stream_table(recorded.stream, schema.clone(), ring, Arc::default());
        let batches =
            runtime.block_on(async { ask(&engine(Arc::new(table)), question).await?.collect().await });
        let column = Arc::clone(batches.unwrap()[0].column(0));
        column.as_primitive::<Int64Type>().value(0)
    };
    assert_eq!(asked(0, "select count(*) from log"), 2600);
    let questions = [
        ("select count(*) from log a join log b on a.ordinal = b.ordinal", 2000),
        ("select count(*) from log where ordinal not in (select ordinal from log)", 0),
        ("select count(*) from (select id from log union all select id from log)", 4000),
        ("select count(*) - (select count(*) from log) from log", 0),
        ("select count(*) from (select id from log where exists (select 1 from log))", 2000),
    ];
    for (question, right) in questions {
        // It becomes longer behind the first look, the second, and so on.
        for first in 1..4 {
            assert_eq!(asked(first, question), right, "{question}");
        }
    }
}

// Promise 8. A scan hands out each slot once: a join that does not fit must not read what is left of its left side.
#[test]
fn joins_of_more_than_fits_into_memory_end_with_an_error() {
    let schema = Schema::typed(SCHEMA).unwrap();
    let (image, recorded) = Recorded::make(6, 12_000, Some(&schema));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batch = naive(&image, &schema, &recorded);
    let plain = engine(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()));
    let ring: OpenRing = Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let [little, much] = [3, 256].map(|memory| {
        let (readers, shared) = (ReaderPool::new(&ring), Arc::clone(&diagnostics));
        let table = stream_table(recorded.stream, schema.clone(), readers, shared);
        let context = engine_with(Arc::new(table), ByteSize::mib(memory));
        Engine { context, diagnostics: Arc::clone(&diagnostics) }
    });
    for on in ["b.ordinal + 1 = a.ordinal", "a.ordinal between b.ordinal + 1 and b.ordinal + 2"] {
        let sql = format!(
            "select count(*), sum(a.size % 7 * b.size), sum(u8(a.payload, 0) * b.ordinal % 11), \
             min(b.payload) from log a join log b on {on}"
        );
        let asked = |engine| {
            runtime.block_on(async { answer(engine, &sql).await?.try_collect::<Vec<RecordBatch>>().await })
        };
        let error = asked(&little).unwrap_err();
        assert!(is_join_memory(&error), "{sql}: {error}");
        let answer = pretty_format_batches(&asked(&much).unwrap()).unwrap().to_string();
        assert_eq!(answer, shown(&runtime, &plain, &sql), "{sql}");
    }
    assert_eq!(diagnostics.take(), SkippedData::default());
}

// Event times jump to and fro: what came late is found, too.
const EVENTS: [&str; 7] = [
    "select count(*), count(event_time), min(event_time), max(event_time) from log",
    "select ordinal, event_time, id from log where event_time between '1970-01-01T00:01:00Z' and '1970-01-01T00:02:00Z' order by ordinal",
    "select ordinal from log where event_time < '1970-01-01T00:00:03Z' or event_time > '1970-01-01T00:08:15Z' order by ordinal",
    "select ordinal, event_time from log where event_time = '1970-01-01T00:01:17Z' order by ordinal",
    "select ordinal from log where event_time is null order by ordinal",
    "select event_time, ordinal from log order by event_time nulls last, ordinal limit 50",
    "select date_bin(interval '1 minute', event_time) minute, count(*) from log group by minute order by minute",
];

#[test]
fn events_are_found_by_their_time_in_whatever_order_they_came() {
    let schema = Schema::typed(["event_time:time=json:id", "id:uint=json:id"]).unwrap();
    for seed in [11, 12] {
        let (image, recorded) = Recorded::make(seed, 4000, Some(&schema));
        let events = naive(&image, &schema, &recorded);
        let times = events.column_by_name(CommonColumn::EventTime.name()).unwrap();
        assert!(times.null_count() > 10 && times.len() - times.null_count() > 1000, "{times:?}");
        compare(&image, &recorded, &schema, &EVENTS);
    }
}

#[test]
fn a_search_ends_as_soon_as_enough_is_found_and_tells_how_far_it_came() {
    let schema = Schema::typed(SCHEMA).unwrap();
    let (image, recorded) = Recorded::make(6, 9000, Some(&schema));
    let slots = RingReader::over(Box::new(MemoryDisk::from_image(image.clone())))
        .unwrap()
        .plan(&Selection::ALL)
        .unwrap()
        .slots
        .len() as u64;
    assert!(slots > 8, "{slots} slots");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let searched = |question: &str| {
        let ring: OpenRing =
            Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
        let ring = ReaderPool::anew(&ring);
        let table = stream_table(recorded.stream, schema.clone(), ring, Arc::default());
        let said = shown(&runtime, &engine(Arc::new(table)), &format!("explain analyze {question}"));
        let number = said.split("slots_searched=").nth(1).unwrap();
        number.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()
    };
    let few = searched("select ordinal from log limit 3");
    // Each of two threads may have begun one.
    assert!((1..=2).contains(&few), "{few} of {slots} slots");
}

#[test]
fn what_has_no_columns_is_found_by_its_payload() {
    let schema = Schema::typed(SCHEMA).unwrap();
    // Recorded without any, and with fewer than are asked for.
    for before in [None, Some(Schema::typed(&SCHEMA[..3]).unwrap())] {
        let (image, recorded) = Recorded::make(4, 1500, before.as_ref());
        compare(&image, &recorded, &schema, &QUERIES);
    }
    // The event time has come later than other attributes, or than all.
    let [id, event] = ["id:uint=json:id", "event_time:time=json:id"];
    let schema = Schema::typed([id, event]).unwrap();
    for before in [None, Some(Schema::typed([id]).unwrap())] {
        let (image, recorded) = Recorded::make(11, 1500, before.as_ref());
        compare(&image, &recorded, &schema, &EVENTS);
    }
}
