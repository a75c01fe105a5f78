//! Tests of payload reads: which payloads a query reads, and how much of them is in memory.

use super::recorded::{Content, MakeElement, Recorded, without_header};
use super::{engine, engine_with, naive, shown, stream_table};
use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemTable;
use futures::TryStreamExt;
use holdfast_attributes::Schema;
use holdfast_base::ByteSize;
use holdfast_media::MemoryDisk;
use holdfast_query::ring_source::{OpenRing, ReaderPool};
use holdfast_query::{Engine, answer, ask};
use holdfast_reader::RingReader;
use std::sync::Arc;

// Of what is found by its columns payloads are read, and of nothing else.
#[test]
fn payloads_are_read_of_what_is_found_and_no_others() {
    let schema = Schema::typed(["n:uint=json:n"]).unwrap();
    let large = Content {
        header: without_header,
        noise: 9,
        element: |_, number| format!("{{\"n\":{number},\"text\":\"{}\"}}", "x".repeat(20_000)).into_bytes(),
    };
    let (image, recorded) = Recorded::of(8, 300, Some(&schema), &large);
    let ring: OpenRing = Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
    let readers = ReaderPool::anew(&ring);
    let table = stream_table(recorded.stream, schema, readers, Arc::default());
    let context = engine(Arc::new(table));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let read = |sql: &str| {
        let said = shown(&runtime, &context, &format!("explain analyze {sql}"));
        let (_, bytes) = said.split_once("bytes_read=").unwrap();
        let [number, unit] = [0, 1].map(|at| bytes.split([' ', ',']).nth(at).unwrap());
        let unit = match unit {
            "M" => 1e6,
            "K" => 1e3,
            _ => 1.0,
        };
        number.parse::<f64>().unwrap() * unit
    };
    let (columns, found, all) = (
        read("select n from log where n in (240, 270)"),
        read("select n, payload from log where n in (240, 270)"),
        read("select n, payload from log where n >= 0"),
    );
    assert!(columns < 1e6 && all > 4e6, "{columns} of {all}");
    let payloads = found - columns;
    assert!((40_000.0..42_000.0).contains(&payloads), "{payloads}");
    // Also where columns alone do not tell, and the engine is asked.
    let without = read("select n, size, ordinal from log");
    for (condition, hits) in [
        ("n % 100 = 40", 3),
        ("n & 127 = 5 and n < 140", 2),
        ("cast(n as text) like '29_'", 10),
        ("n + size = 20025 + ordinal and n % 150 = 7", 0),
        ("n >= ordinal and (n % 100 = 40 or n = 7)", 4),
        ("n % 100 = 40 and length(hex(payload)) > 9", 3),
    ] {
        let found = read(&format!("select n, size, ordinal, payload from log where {condition}"));
        let most = without + 30_000.0 + f64::from(hits) * 21_000.0;
        assert!(found < most, "{condition}: {found} of {most}");
    }
    // What cannot be told before is told by the engine.
    let sql = "select n from log where 1000 / (cast(n as bigint) - 250) > 5 and payload is not null";
    let asked = runtime.block_on(async { ask(&context, sql).await?.collect().await });
    let said = asked.unwrap_err().to_string();
    assert!(said.contains("Divide by zero"), "{said}");
}

/// Ordinals and payloads.
fn rows_of(batches: &[RecordBatch]) -> Vec<(u64, Vec<u8>)> {
    let rows = batches.iter().flat_map(|batch| {
        let [ordinals, payloads] =
            ["ordinal", "payload"].map(|name| Arc::clone(batch.column_by_name(name).unwrap()));
        let row = move |row| {
            let ordinal = ordinals.as_primitive::<UInt64Type>().value(row);
            (ordinal, payloads.as_binary_view().value(row).to_vec())
        };
        (0..batch.num_rows()).map(row)
    });
    rows.collect()
}

// A batch has no more rows than there is memory for, wherever it is made; where most elements are small and the large ones come
// together, it is asked anew with fewer.
#[test]
fn large_elements_are_sorted_and_joined_with_little_memory() {
    fn line(id: u64, number: u64, more: u64) -> Vec<u8> {
        format!("{{\"id\":{id},\"n\":{number},\"text\":\"{}\"}}", "x".repeat(more as usize)).into_bytes()
    }
    let schema = Schema::typed(["id:uint=json:id"]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let sorted = "select ordinal, id, payload from log order by id, ordinal";
    let joined = "select a.ordinal, a.payload from log b join log a on a.ordinal = b.ordinal";
    let worlds: [(u64, MakeElement); 2] = [
        (300, |pick, number| line(pick(30), number, 10_000 + pick(20_000))),
        (
            3000,
            |pick, number| if pick(60) == 0 { line(7, number, 60_000) } else { line(pick(500), number, 9) },
        ),
    ];
    for (elements, element) in worlds {
        let (image, recorded) =
            Recorded::of(7, elements, Some(&schema), &Content { header: without_header, noise: 9, element });
        let batch = naive(&image, &schema, &recorded);
        let plain = engine(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()));
        let ring: OpenRing =
            Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
        let (readers, schema) = (ReaderPool::anew(&ring), schema.clone());
        let table = stream_table(recorded.stream, schema, readers, Arc::default());
        let context = engine_with(Arc::new(table), ByteSize::mib(3));
        let little = Engine { context, diagnostics: Arc::default() };
        let asked = |sql: &str| {
            let found = runtime.block_on(async { answer(&little, sql).await?.try_collect::<Vec<_>>().await });
            found.unwrap_or_else(|error| panic!("{sql}: {error}"))
        };
        for sql in [sorted, joined] {
            let found = asked(sql);
            let bytes = found.iter().map(|batch| {
                batch.column_by_name("payload").unwrap().as_binary_view().total_buffer_bytes_used()
            });
            let bytes: Vec<usize> = bytes.collect();
            // Where elements are alike it is known before how many rows fit.
            let most = if elements == 300 { 1 << 20 } else { 3 << 20 };
            assert!(bytes.iter().all(|bytes| *bytes <= most), "{sql}: {bytes:?}");
            let naive = runtime.block_on(async { ask(&plain, sql).await?.collect().await }).unwrap();
            let [mut found, mut right] = [found, naive].map(|batches| rows_of(&batches));
            if sql == joined {
                found.sort_unstable();
                right.sort_unstable();
            }
            assert!(found == right && !right.is_empty(), "{sql}");
        }
        let said = asked(&format!("explain analyze {sorted}"));
        let said = pretty_format_batches(&said).unwrap().to_string();
        let sorts = said.lines().find(|line| line.contains(" SortExec"));
        assert!(sorts.is_some_and(|line| !line.contains("spill_count=0,")), "{said}");
        let said = asked(&format!("explain analyze {joined}"));
        let said = pretty_format_batches(&said).unwrap().to_string();
        assert!(said.contains("HashJoinExec"), "{said}");
    }
}
