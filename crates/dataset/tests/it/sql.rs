//! Tests that SQL over a dataset, and over a ring and datasets together, gives the answers of the ring alone.

use crate::common::{open, record, write, write_some};
use holdfast_base::Ordinal;
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::sql::{Sql, open_sources};
use holdfast_dataset::streams;
use holdfast_query::{Limits, output};
use holdfast_reader::{OpenSlots, Selection};
use holdfast_ring::Range;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn sql(ring: Option<&Path>, datasets: &[&Path]) -> Sql {
    let more = datasets.iter().flat_map(|path| streams(&Arc::new(open(path))).unwrap()).collect();
    open_sources(ring, more, &Limits::default(), &IndexCopies::default(), &OpenSlots::default()).unwrap()
}

fn answer(sql: &Sql, question: &str) -> String {
    let to = Shared::default();
    let into = to.clone();
    sql.answer(question, output::Format::Csv, move |_| Ok(Box::new(into))).unwrap();
    let bytes = to.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn answers_are_those_of_the_ring() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut lines = String::new();
    for at in 0..40_000u64 {
        let n = at.wrapping_mul(0x9e37_79b9) % 1000;
        let ip = if at % 3 == 0 { "null".to_owned() } else { format!("\"10.0.{}.{}\"", n % 4, at % 250) };
        let bool = at % 5 == 0;
        let int = n as i64 - 500;
        writeln!(
            lines,
            "{{\"u\": {n}, \"i\": {int}, \"f\": {}.25, \"b\": {bool}, \"s\": \"word {} and more of it\", \"ip\": {ip}}}",
            int * 3,
            n % 37
        )
        .unwrap();
    }
    let input = folder.join("in.jsonl");
    std::fs::write(&input, lines).unwrap();
    let attributes = "--attr u:uint=json:u --attr i:int=json:i --attr f:float=json:f --attr b:bool=json:b \
                      --attr s:text=json:s --attr a:ip=json:ip";
    let source = format!("--source file:{} --name log --frame lines {attributes}", input.display());
    let ring = record(folder, &format!("--size 16MiB --slot 256KiB {source}"));
    let (whole, first, later) =
        (folder.join("whole.mcap"), folder.join("first.mcap"), folder.join("later.mcap"));
    write(&ring, &whole, "zstd:3", 16 << 10);
    let some = |from, to| Selection {
        streams: Vec::new(),
        range: Range { ordinals: Some((Ordinal(from), Ordinal(to))), ..Range::ALL },
    };
    write_some(&ring, &first, &some(0, 9_000));
    write_some(&ring, &later, &some(8_000, 21_000));
    let alone = sql(Some(&ring), &[]);
    let others = [
        ("the dataset", sql(None, &[&whole])),
        ("ring and dataset", sql(Some(&ring), &[&whole])),
        ("ring and two that overlap", sql(Some(&ring), &[&first, &later])),
        ("datasets that overlap", sql(None, &[&later, &whole, &first])),
    ];
    for question in [
        "select count(*), sum(u), min(i), max(f), count(a), sum(size) from log",
        "select ordinal, time, span, size, original_size, u, i, f, b, s, a from log where u = 17 order by ordinal",
        "select ordinal, text(payload) from log where i between -3 and 3 order by ordinal",
        "select s, count(*) n, avg(f) from log where b group by s order by s",
        "select ordinal from log where s >= 'word 36' and s < 'word 37' order by ordinal",
        "select ordinal from log where in_net(a, '10.0.2.0/24') and ordinal < 500 order by ordinal",
        "select count(*) from log where a is null",
        "select ordinal from log where ordinal in (0, 7999, 8000, 8999, 9000, 20999, 21000, 39999) order by ordinal",
        "select count(*) from log where matches(payload, 'word 3[0-9] and')",
        "select ordinal, u from log order by ordinal desc limit 5",
        "select count(*) from log a join log b on a.ordinal = b.ordinal where a.u = 1",
        "select count(*) from log where f > 1000.0 or f < -1400",
        "select a, min(f), max(f), count(distinct s) from log where u in (1, 17, 400) group by a order by a",
        "select ordinal, rank() over (partition by b order by a, ordinal) r from log where u = 9 order by ordinal",
        "select s from log where u < 5 intersect select s from log where u between 3 and 9 order by s",
        "select a.ordinal, b.ordinal from log a left join log b on a.a is not distinct from b.a and b.u = 3 \
         where a.u = 2 order by 1, 2",
        "select b, i % 3, count(*) from log group by rollup(b, i % 3) order by 1, 2, 3",
        "select u, log_u from nearest('log', 'log') where ordinal < 50 order by ordinal",
    ] {
        let right = answer(&alone, question);
        for (what, other) in &others {
            assert_eq!(answer(other, question), right, "{what}: {question}");
        }
    }
}

#[test]
fn a_recording_without_a_ring_has_no_ring_s_tables() {
    let engine =
        open_sources(None, Vec::new(), &Limits::default(), &IndexCopies::default(), &OpenSlots::default());
    assert_eq!(engine.unwrap().engine.tables(), Vec::<String>::new());
}
