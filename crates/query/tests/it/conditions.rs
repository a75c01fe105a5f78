//! Property tests of predicates over cells against the engine's own evaluation of the same rows.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use holdfast_attributes::{Schema, Value};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_format::{CellBuffer, Cells};
use holdfast_query::predicate::{ColumnCells, Predicate, translate};
use holdfast_query::stream::ColumnBuilder;
use holdfast_query::{Columns, Limits, ask, session};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

const SCHEMA: [&str; 9] = [
    "num:int=json:a",
    "port:uint=json:b",
    "snr:float=json:c",
    "flag:bool=json:d",
    "seen:time=json:e",
    "word:text=json:f",
    "raw:binary=at:0:bytes4",
    "src:ip=at:0:ipv6",
    "mac:mac=at:0:mac",
];

fn row(at: u64) -> Vec<Option<Value<'static>>> {
    const WORDS: [&str; 5] = ["", "a", "tcp", "udp", "zeta"];
    const RAW: [&[u8]; 3] = [b"\x00\xff", b"abc", b"abd"];
    const FLOATS: [f64; 9] =
        [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25, 1e300];
    const INTS: [i64; 6] = [i64::MIN, -3, 0, 1, 7, i64::MAX];
    const PORTS: [u64; 6] = [0, 53, 80, 443, 65535, u64::MAX];
    let pick = |salt: u64, of: usize| ((at * 2_654_435_761 + salt * 40_503) >> 7) as usize % of;
    let some = |salt: u64, value| (pick(salt + 100, 6) > 0).then_some(value);
    let address = [
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
        IpAddr::V4(Ipv4Addr::new(192, 168, 0, 7)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ];
    vec![
        some(1, Value::Int(INTS[pick(1, INTS.len())])),
        some(2, Value::Uint(PORTS[pick(2, PORTS.len())])),
        some(3, Value::Float(FLOATS[pick(3, FLOATS.len())])),
        some(4, Value::Bool(pick(4, 2) == 1)),
        some(5, Value::Time(Timestamp(1_780_000_000_000_000_000 + pick(5, 5) as i64 * 1_000_000_000))),
        some(6, Value::Text(WORDS[pick(6, WORDS.len())])),
        some(7, Value::Binary(RAW[pick(7, RAW.len())])),
        some(8, Value::Ip(address[pick(8, address.len())])),
        some(9, Value::Mac([0, 0x1b, 0x21, 0, 0, pick(9, 4) as u8])),
    ]
}

/// The same rows twice: as cells, and as the engine has them.
struct World {
    columns: Columns,
    cells: Vec<CellBuffer>,
    nulls: Vec<Vec<bool>>,
    batch: RecordBatch,
}

const ROWS: usize = 400;

impl World {
    fn new() -> Self {
        let schema = Schema::typed(SCHEMA).unwrap();
        let columns = Columns::new(&schema);
        let (mut cells, mut arrays): (Vec<CellBuffer>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for place in 0..columns.arrow().fields().len() {
            let (_, kind) = columns.at(place).unwrap();
            let number = columns.arrow().index_of("num").unwrap();
            let attribute = place.checked_sub(number).filter(|at| *at < SCHEMA.len());
            let mut buffer = CellBuffer::new(kind.class(), ROWS, ROWS * 16);
            for at in 0..ROWS as u64 {
                let value = match (attribute, columns.arrow().field(place).name().as_str()) {
                    (Some(attribute), _) => row(at)[attribute],
                    (None, "ordinal") => Some(Value::Uint(at)),
                    (None, "time") => Some(Value::Time(Timestamp(1_790_000_000_000_000_000 + at as i64))),
                    (None, "event_time" | "direction") => None,
                    (None, "payload") => Some(Value::Binary(b"payload")),
                    (None, _) => Some(Value::Uint(at % 7)),
                };
                match value {
                    Some(value) => value.cell().push(&mut buffer),
                    None => buffer.null(),
                }
            }
            let nulls: Vec<bool> = buffer.valid().iter().map(|valid| !valid).collect();
            let mut array = ColumnBuilder::new(kind);
            array.extend(buffer.cells(), Some(&nulls), &vec![true; ROWS]).unwrap();
            arrays.push(array.finish());
            cells.push(buffer);
        }
        let nulls = cells.iter().map(|buffer| buffer.valid().iter().map(|valid| !valid).collect()).collect();
        let batch = RecordBatch::try_new(columns.arrow().clone(), arrays).unwrap();
        Self { columns, cells, nulls, batch }
    }

    fn picked(&self, condition: &Predicate) -> Vec<u64> {
        let cells = |column: usize| {
            let cells: Cells<'_> = self.cells[column].cells();
            Some(ColumnCells::Cells(cells, Some(self.nulls[column].as_slice())))
        };
        let mut picked = vec![true; ROWS];
        condition.pick(&mut picked, &cells);
        (0..ROWS as u64).filter(|at| picked[*at as usize]).collect()
    }
}

/// Gives all rows, whatever is asked, and remembers what was.
#[derive(Debug)]
struct Listening {
    columns: Columns,
    batch: RecordBatch,
    heard: Mutex<Vec<Expr>>,
}

#[async_trait::async_trait]
impl TableProvider for Listening {
    fn schema(&self) -> SchemaRef {
        self.columns.arrow().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match translate(filter, &self.columns) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        *self.heard.lock().unwrap() = filters.to_vec();
        let batches = [vec![self.batch.clone()]];
        Ok(MemorySourceConfig::try_new_exec(&batches, self.schema(), projection.cloned())?)
    }
}

fn engine(table: Arc<dyn TableProvider>) -> SessionContext {
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::MIN,
    };
    session(&limits, Vec::new(), vec![("t".to_owned(), table)]).unwrap()
}

async fn ordinals(context: &SessionContext, condition: &str) -> Result<Vec<u64>> {
    let rows = ask(context, &format!("select ordinal from t where {condition} order by ordinal")).await?;
    let batches = rows.collect().await?;
    Ok(batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect())
}

/// Conditions that cells can tell alone.
const TOLD: [&str; 56] = [
    "num = 7",
    "num <> 7",
    "num < 0",
    "num >= 1 and num <= 7",
    "num between 0 and 7",
    "num not between 0 and 7",
    "num in (0, 1, 9223372036854775807)",
    "num not in (0, 1)",
    "num is null",
    "num is not null",
    "7 > num",
    "not (num = 1 or num = 7)",
    "not (num > 1 and port < 100)",
    "port = 443",
    "port > 80",
    "443 <= port",
    "port in (53, 80)",
    "port = 18446744073709551615",
    "port != 443 and num = 0",
    "snr > 1.5",
    "snr = 0.0",
    "snr <= 0.0",
    "snr <> 1.5",
    "snr = 'NaN'",
    "snr > 1e301",
    "snr < -1e301",
    "snr >= 0.0 and snr <> 1.5",
    "snr < 0.0",
    "snr is not null and not (snr < 1e300)",
    "flag",
    "not flag",
    "flag = true",
    "flag is true",
    "seen >= '2026-05-28T20:26:42Z'",
    "seen < '2026-05-28T20:26:43Z' and word = 'tcp'",
    "time >= '2026-09-21T14:13:20.000000100Z' and time < '2026-09-21T14:13:20.000000200Z'",
    "word = 'tcp'",
    "word <> 'tcp'",
    "word in ('tcp', 'udp', 'x')",
    "word not in ('tcp', '')",
    "word > 'b'",
    "word between 'a' and 'u'",
    "word = ''",
    "word is distinct from 'tcp'",
    "word is not distinct from 'tcp'",
    "word is not distinct from null",
    "src = '10.0.0.1'",
    "src <> '10.0.0.1'",
    "src in ('10.0.0.1', '2001:db8::1')",
    "src between '10.0.0.0' and '10.255.255.255'",
    "in_net(src, '10.0.0.0/8')",
    "not in_net(src, '10.0.0.0/8')",
    "in_net(src, '2001:db8::/32') or port = 53",
    "mac = '00:1b:21:00:00:02'",
    "ordinal < 17 or ordinal > 390",
    "size = 3 and (num = 1 or word = 'udp' or snr > 2) and flag is not null",
];

/// Conditions that the engine must look at itself.
const LEFT: [&str; 6] = [
    "num = port",
    "num + 1 = 8",
    "word like '%c%'",
    "length(word) = 3",
    "matches(payload, 'pay.*d')",
    "u8(payload, 0) = 112 and hex(raw) = '616263'",
];

#[test]
fn conditions_on_cells_find_what_the_engine_finds() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let plain =
        engine(Arc::new(MemTable::try_new(world.batch.schema(), vec![vec![world.batch.clone()]]).unwrap()));
    let (columns, batch) = (world.columns.clone(), world.batch.clone());
    let listening = Arc::new(Listening { columns, batch, heard: Mutex::default() });
    let told = engine(Arc::clone(&listening) as Arc<dyn TableProvider>);
    let (mut some, mut fewer) = (0, 0);
    for (condition, all) in TOLD.iter().map(|c| (c, true)).chain(LEFT.iter().map(|c| (c, false))) {
        let expected = runtime
            .block_on(ordinals(&plain, condition))
            .unwrap_or_else(|error| panic!("{condition}: {error}"));
        let unfiltered = runtime.block_on(ordinals(&told, condition)).unwrap();
        let heard = std::mem::take(&mut *listening.heard.lock().unwrap());
        let predicate = Predicate::all(heard.iter().map(|filter| translate(filter, &world.columns).unwrap()));
        let found = world.picked(&predicate);
        if all {
            assert_eq!(found, expected, "{condition}: {predicate:?}");
            assert_eq!(unfiltered.len(), ROWS, "{condition} was not told whole: {heard:?}");
        } else {
            let both: Vec<u64> = unfiltered.into_iter().filter(|at| found.contains(at)).collect();
            assert_eq!(both, expected, "{condition}: {predicate:?}");
        }
        for tells in [
            |column: usize| column.is_multiple_of(2),
            |column: usize| !column.is_multiple_of(2),
            |_| true,
            |_| false,
        ] {
            let part = predicate.told_by(&tells);
            assert!(part.columns().into_iter().all(tells), "{part:?}");
            let left = world.picked(&part);
            assert!(found.iter().all(|at| left.contains(at)), "{condition}: {part:?}");
            fewer += usize::from(found.len() < left.len() && left.len() < ROWS);
        }
        some += usize::from(!expected.is_empty() && expected.len() < ROWS);
    }
    assert!(fewer > 3, "parts of conditions hardly divide the rows: {fewer}");
    assert!(some > TOLD.len() * 3 / 4, "too few conditions divide the rows: {some}");
}

#[test]
fn what_is_wrong_is_said_at_its_place_and_nothing_but_questions_is_taken() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = engine(Arc::new(MemTable::try_new(world.batch.schema(), vec![vec![world.batch]]).unwrap()));
    let said = |sql: &str| {
        let asked = runtime.block_on(async { ask(&context, sql).await?.collect().await });
        asked.map(|rows| rows.len()).unwrap_err().to_string()
    };
    assert!(said("select * fro t").contains("Line: 1, Column: 10"), "{}", said("select * fro t"));
    assert!(said("select nun from t").contains("num"), "{}", said("select nun from t"));
    assert!(said("select * from t where src = '10.0.0'").contains("such as 10.0.0.1"));
    assert!(said("select * from t where src in ('x')").contains("cannot parse `x` as an IP address"));
    assert!(said("select * from t where in_net(src, '10.0.0.0/40')").contains("10.0.0.0/40"));
    assert!(said("select * from t where matches(payload, '(')").contains("regular expression"));
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there.csv");
    std::fs::write(&there, "secret\n42\n").unwrap();
    let (new, there) = (folder.path().join("new.csv").display().to_string(), there.display().to_string());
    for (order, why) in [
        ("create table x as select 1", "DDL not supported"),
        (&format!("create external table x stored as csv location '{there}'"), "DDL not supported"),
        (&format!("copy t to '{new}'"), "no registered file format"),
        (&format!("copy t to '{new}' stored as csv"), "no registered file format"),
        (&format!("explain analyze copy t to '{new}' stored as csv"), "no registered file format"),
        ("insert into t select * from t", "DML not supported"),
        ("drop table t", "DDL not supported"),
        ("set datafusion.execution.batch_size = 1", "Statement not supported"),
        (&format!("select * from '{there}'"), "not found"),
        (&format!("select * from read_csv('{there}')"), "not found"),
        (&format!("select * from \"file://{there}\""), "not found"),
    ] {
        let said = said(order);
        assert!(said.contains(why) && !said.contains("secret"), "{order}: {said}");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["there.csv"], "a question has made a file");
}
