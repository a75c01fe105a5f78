//! Tests of addresses in queries: compared with their text form and printed in it, anywhere in a query.
//! Promise 8.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::Field;
use datafusion::catalog::MemTable;
use futures::TryStreamExt;
use holdfast_attributes::{Schema, Value};
use holdfast_base::ByteSize;
use holdfast_query::output::{Format, Output};
use holdfast_query::stream::{ColumnBuilder, ScanDiagnostics};
use holdfast_query::{Columns, Engine, Limits, address_type, answer, session};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tokio::runtime::Runtime;

const SCHEMA: [&str; 6] = [
    "src:ip=packet:src",
    "dst:ip=packet:dst",
    "six:ipv6=at:0:ipv6",
    "four:ipv4=at:0:ipv4",
    "card:mac=at:0:mac",
    "word:text=json:word",
];

/// Of each element, what its attributes are.
const ROWS: [[Option<&str>; 6]; 3] = [
    [
        Some("192.168.1.6"),
        Some("10.0.0.1"),
        Some("::ffff:1.2.3.4"),
        Some("10.0.0.1"),
        Some("02:00:00:00:00:01"),
        Some("a"),
    ],
    [
        Some("10.0.0.9"),
        Some("192.168.1.6"),
        Some("2001:db8::1"),
        Some("10.0.0.2"),
        Some("02:00:00:00:00:02"),
        Some("b"),
    ],
    [None, Some("2001:db8::9"), None, None, None, Some("b")],
];

fn value(column: usize, text: &'static str) -> Value<'static> {
    match column {
        0 | 1 => Value::Ip(text.parse().unwrap()),
        2 => Value::Ipv6(text.parse().unwrap()),
        3 => Value::Ipv4(text.parse().unwrap()),
        4 => {
            let octet = |at: usize| u8::from_str_radix(&text[3 * at..3 * at + 2], 16).unwrap();
            Value::Mac([0, 1, 2, 3, 4, 5].map(octet))
        }
        _ => Value::Text(text),
    }
}

struct World {
    runtime: Runtime,
    engine: Engine,
}

impl World {
    fn new() -> Self {
        let columns = Columns::new(&Schema::typed(SCHEMA).unwrap());
        let first = columns.arrow().index_of("src").unwrap();
        let array = |place: usize| -> ArrayRef {
            let mut array = ColumnBuilder::new(columns.at(place).unwrap().1);
            for (number, row) in ROWS.iter().enumerate() {
                let attribute = place.checked_sub(first).filter(|column| *column < SCHEMA.len());
                let value = match attribute {
                    Some(column) => row[column].map(|text| value(column, text)),
                    None => (place == 0).then_some(Value::Uint(number as u64)),
                };
                array.push(value.map(|value| value.cell())).unwrap();
            }
            array.finish()
        };
        let fields = columns.arrow().fields();
        let fields: Vec<Field> =
            fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let arrays = (0..schema.fields().len()).map(array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
        let table = MemTable::try_new(schema, vec![vec![batch]]).unwrap();
        let limits = Limits {
            memory: ByteSize::mib(64),
            spill: None,
            spill_bytes: ByteSize::mib(1),
            threads: NonZeroUsize::new(2).unwrap(),
        };
        let context = session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        Self { runtime, engine: Engine { context, diagnostics: Arc::new(ScanDiagnostics::default()) } }
    }

    fn asked(&self, sql: &str) -> Result<Vec<RecordBatch>, String> {
        let answer = async { answer(&self.engine, sql).await?.try_collect::<Vec<RecordBatch>>().await };
        self.runtime.block_on(answer).map_err(|error| error.to_string())
    }

    /// An answer as it is written, without the names of its columns.
    fn told(&self, sql: &str, format: Format) -> String {
        let batches = self.asked(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let Some(first) = batches.first() else { return String::new() };
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut output = Output::new(format, &first.schema(), file.reopen().unwrap()).unwrap();
        for batch in &batches {
            output.write(batch).unwrap();
        }
        output.finish().unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let rows = if format == Format::Csv { text.split_once('\n').unwrap().1 } else { &text };
        rows.trim_end().replace('\n', ";")
    }
}

#[test]
fn addresses_are_shown_as_they_are_written_wherever_they_come_from() {
    let world = World::new();
    for (sql, told) in [
        (
            "select max(src), min(src), max(card), max(four) from t",
            "192.168.1.6,10.0.0.9,02:00:00:00:00:02,10.0.0.2",
        ),
        // An IPv6 address of this kind is one of IPv4 only where a column has both.
        (
            "select min(six), max(m) from (select min(six) m, six from t group by six)",
            "::ffff:1.2.3.4,2001:db8::1",
        ),
        ("select case when ordinal = 0 then six end from t order by ordinal limit 1", "::ffff:1.2.3.4"),
        (
            "select first_value(six order by ordinal), last_value(dst order by ordinal) from t",
            "::ffff:1.2.3.4,2001:db8::9",
        ),
        (
            "select coalesce(src, dst), nullif(src, dst) from t order by ordinal",
            "192.168.1.6,192.168.1.6;10.0.0.9,10.0.0.9;2001:db8::9,",
        ),
        (
            "select least(src, dst), greatest(src, dst) from t where ordinal < 2 order by ordinal",
            "10.0.0.1,192.168.1.6;10.0.0.9,192.168.1.6",
        ),
        ("select lag(src) over (order by ordinal) from t order by ordinal limit 2", ";192.168.1.6"),
        ("select (select max(six) from t)", "2001:db8::1"),
        (
            "select addr_text(src), addr_text(six), addr_text(card), addr_text(max(four)) from t where ordinal = 0 group by 1, 2, 3",
            "192.168.1.6,::ffff:1.2.3.4,02:00:00:00:00:01,10.0.0.1",
        ),
        ("select addr_text(src) || '!' from t order by ordinal", "192.168.1.6!;10.0.0.9!;"),
        (
            "select coalesce(src, '0.0.0.0'), nullif(src, '10.0.0.9') from t order by ordinal",
            "192.168.1.6,192.168.1.6;10.0.0.9,;0.0.0.0,",
        ),
        (
            "select greatest(four, '10.0.0.2'), case when word = 'a' then '1.1.1.1' else four end from t order by ordinal limit 2",
            "10.0.0.2,1.1.1.1;10.0.0.2,10.0.0.2",
        ),
        ("select src from t where word = 'a' union all select max(src) from t", "192.168.1.6;192.168.1.6"),
        // What is no address is as it was.
        (
            "select coalesce(word, 'x'), nullif(word, 'b'), greatest(ordinal, 1) from t order by ordinal",
            "a,a,1;b,,1;b,,2",
        ),
    ] {
        let said = world.told(sql, Format::Csv);
        // An empty cell of a single column is written with quotes.
        assert_eq!(said.replace("\"\"", ""), told, "{sql}");
    }
    let sql = "select array_agg(src order by ordinal) a, array_agg(six order by ordinal) b from t where ordinal < 2";
    let told = r#"{"a":["192.168.1.6","10.0.0.9"],"b":["::ffff:1.2.3.4","2001:db8::1"]}"#;
    assert_eq!(world.told(sql, Format::Jsonl), told);
    assert!(world.told(sql, Format::Table).contains("[192.168.1.6, 10.0.0.9]"));
    // Other programs are told by the fields of an Arrow stream.
    let batches = world.asked("select min(six), max(src), min(card), max(word) from t").unwrap();
    let said: Vec<_> = batches[0].schema().fields().iter().map(|field| address_type(field)).collect();
    assert_eq!(format!("{said:?}"), "[Some(Ipv6), Some(Ip), Some(Mac), None]");
}

#[test]
fn texts_stand_for_addresses_wherever_they_are_compared_with_some() {
    let world = World::new();
    for (condition, found) in [
        ("'192.168.1.6' in (src, dst)", "0;1"),
        ("'192.168.1.6' not in (src, dst)", ""),
        ("src in ('10.0.0.9', dst)", "1"),
        ("'10.0.0.10' between src and dst", "1"),
        ("case src when '192.168.1.6' then true else false end", "0"),
        ("case '192.168.1.6' when src then ordinal = 0 when dst then ordinal = 1 end", "0;1"),
        ("coalesce(src, dst) = '2001:db8::9'", "2"),
        ("coalesce(src, '0.0.0.0') = '0.0.0.0'", "2"),
        ("nullif(src, '10.0.0.9') = '192.168.1.6'", "0"),
        ("greatest(src, dst) = '192.168.1.6'", "0;1"),
        ("case when word = 'a' then src else dst end = '192.168.1.6'", "0;1"),
        ("case when word = 'a' then '1.2.3.4' else dst end = '1.2.3.4'", "0"),
        ("'10.0.0.9' in (select src from t)", "0;1;2"),
        ("'10.0.0.8' in (select max(src) from t)", ""),
        ("(select max(src) from t) = '192.168.1.6'", "0;1;2"),
        ("src = (select min(src) from t)", "1"),
        ("not (src is distinct from '10.0.0.9')", "1"),
        ("src is distinct from '10.0.0.9'", "0;2"),
        ("not ('10.0.0.9' is not distinct from src)", "0;2"),
        ("(card is not distinct from '02:00:00:00:00:02') or not (four is distinct from '10.0.0.1')", "0;1"),
        ("not (word is distinct from 'a')", "0"),
        ("in_net(coalesce(src, dst), '2001:db8::/32')", "2"),
        ("in_net(greatest(four, '9.0.0.0'), '10.0.0.2/32')", "1"),
        ("addr_text(src) like '10.%'", "1"),
    ] {
        let sql = format!("select ordinal from t where {condition} order by ordinal");
        assert_eq!(world.told(&sql, Format::Csv), found, "{condition}");
    }
    for (sql, told) in [
        ("select word from t group by word having max(src) = '10.0.0.9'", "b"),
        ("select w from (select max(src) m, word w from t group by word) where m = '192.168.1.6'", "a"),
        (
            "select src is distinct from '10.0.0.9' d, src is not distinct from '10.0.0.9' from t order by ordinal",
            "true,false;false,true;true,false",
        ),
        ("select count(*) filter (where '192.168.1.6' in (src, dst)) from t", "2"),
    ] {
        assert_eq!(world.told(sql, Format::Csv), told, "{sql}");
    }
}

#[test]
fn what_is_no_address_is_refused_where_one_stands_beside_it() {
    let world = World::new();
    for (sql, said) in [
        ("select * from t where '192.168.1' in (src, dst)", "cannot parse `192.168.1` as an IP address"),
        (
            "select * from t where not (card is distinct from '10.0.0.1')",
            "cannot parse `10.0.0.1` as a MAC address",
        ),
        ("select coalesce(four, '::1') from t", "cannot parse `::1` as an IPv4 address"),
        (
            "select * from t group by word having max(six) = '10.0.0.1'",
            "cannot parse `10.0.0.1` as an IPv6 address",
        ),
        ("select nullif(src, word) from t", "cannot call nullif: a text beside an address"),
        (
            "select addr_text(word) from t",
            "cannot call addr_text: it takes an address, such as addr_text(src)",
        ),
    ] {
        let refused = world.asked(sql).unwrap_err();
        assert!(refused.contains(said), "{sql}: {refused}");
    }
}
