//! Generated queries over documents and over frames with numbers of every kind: the results equal those of
//! the engine over all elements.

use super::recorded::{Content, Recorded, header, summaries, without_header};
use super::{SCHEMA, engine, naive, shown, stream_table};
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_attributes::Schema;
use holdfast_format::{BlockBounds, Summary};
use holdfast_media::MemoryDisk;
use holdfast_query::ring_source::{OpenRing, ReaderPool};
use holdfast_query::stream::{ScanDiagnostics, SkippedData};
use holdfast_reader::RingReader;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::sync::{Arc, LazyLock};
use tokio::runtime::Runtime;

/// A column, and values of it that conditions name: some are there, some are not. None is a zero among numbers that have
/// a negative one: to the engine they are equal, but not in long lists.
type Named = (&'static str, &'static [&'static str]);

const DOCUMENTS: [Named; 11] = [
    ("id", &["0", "7", "77", "250", "499", "500", "18446744073709551615"]),
    ("temp", &["-40", "-1e-9", "1e-9", "21.5", "100", "99.25", "'NaN'"]),
    ("host", &["'alpha'", "'gamma'", "''", "'a longer name of a host'", "'a longer name'", "'zz'"]),
    ("up", &["true", "false"]),
    ("addr", &["'10.0.0.3'", "'10.0.0.9'", "'2001:db8::7'", "'::'"]),
    ("late", &["-5", "-4", "0", "4", "9223372036854775807"]),
    ("lane", &["0", "3", "6", "9"]),
    ("n", &["0", "17", "1500", "1501", "2400", "2999", "90000"]),
    ("mark", &["''", "'red'", "'green'", "'no \u{fffd}'", "'blue'"]),
    ("ordinal", &["0", "17", "1500", "2999", "90000"]),
    ("size", &["0", "60", "100", "9000", "70000"]),
];

/// Documents: what is asked of them that cells cannot tell.
const ODD_OF_DOCUMENTS: [&str; 8] = [
    "in_net(addr, '10.0.0.0/30')",
    "in_net(addr, '2001:db8::/32')",
    "id = late",
    "id % 7 = 3",
    "length(host) > 4",
    "host like 'a%'",
    "matches(payload, '\"id\":7[0-9]')",
    "event_time is null",
];

const FRAMES_SCHEMA: [&str; 9] = [
    "wide:float=at:0:f64le",
    "short:float=at:8:f32be",
    "count:int=at:12:i16be",
    "low:uint=at:14:u16le:bits0..5",
    "on:bool=at:16:u8",
    "net:ipv4=at:17:ipv4",
    "card:mac=at:21:mac",
    "word:text=at:27:text6",
    "turn:uint=at:33:u32le",
];

const FRAMES: [Named; 10] = [
    ("wide", &["1e-9", "-1e-9", "'NaN'", "'Infinity'", "'-Infinity'", "1.5", "-2.25", "1e300", "3"]),
    ("short", &["1e-9", "-1e-9", "'NaN'", "'Infinity'", "0.5", "0.1", "7"]),
    ("count", &["-32768", "-1", "0", "1", "9", "32767", "40000"]),
    ("low", &["0", "1", "31", "32"]),
    ("on", &["true", "false"]),
    ("net", &["'10.0.0.1'", "'10.0.0.7'", "'0.0.0.0'", "'255.255.255.255'"]),
    ("card", &["'02:00:00:00:00:03'", "'ff:ff:ff:ff:ff:ff'"]),
    ("turn", &["0", "1000", "1400", "1401", "2600", "90000"]),
    ("word", &["''", "'a'", "'abcdef'", "'abcdeg'", "'b'"]),
    ("ordinal", &["0", "1", "1000", "2500", "90000"]),
];

const ODD_OF_FRAMES: [&str; 7] = [
    "wide = short",
    "count = low",
    "abs(wide) < 2",
    "isnan(wide)",
    "in_net(net, '10.0.0.0/30')",
    "u8(payload, 16) > 1",
    "size < 33 or word > 'abc'",
];

/// Numbers of every kind there is, some of them cut short.
fn frame(pick: &mut dyn FnMut(u64) -> u64, number: u64) -> Vec<u8> {
    let nan = f64::from_bits(0x7ff8_0000_0000_0001 + pick(3));
    let wide = [0.0, -0.0, nan, -nan, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25, 1e300][pick(9) as usize];
    let short = [0.0, -0.0, f32::NAN, f32::INFINITY, 0.5, 0.1, 7.0][pick(7) as usize];
    let mut bytes = f64::to_le_bytes(wide).to_vec();
    bytes.extend(f32::to_be_bytes(short));
    bytes.extend([i16::MIN, -1, 0, 1, 9, i16::MAX][pick(6) as usize].to_be_bytes());
    bytes.extend((pick(1 << 16) as u16).to_le_bytes());
    bytes.push(pick(3) as u8);
    bytes.extend([10, 0, 0, pick(9) as u8]);
    bytes.extend([2, 0, 0, 0, 0, pick(5) as u8]);
    bytes
        .extend([&b"a\0    "[..], b"abcdef", b"abcdeg", b"\0\0\0\0\0\0", b"b\xff\0\0\0\0"][pick(5) as usize]);
    bytes.extend((number as u32).to_le_bytes());
    if pick(12) == 0 {
        bytes.truncate(pick(37) as usize);
    }
    let more = if pick(30) == 0 { pick(40_000) } else { pick(700) };
    bytes.resize(bytes.len() + more as usize, 0x55);
    bytes
}

/// Some values that are everywhere, and others that are in one place.
const RARE_SCHEMA: [&str; 2] = ["value:uint=at:0:u16le", "word:text=at:2:text4"];

const RARE_COUNT: u64 = 30_000;

const RARE: [Named; 3] = [
    ("value", &["3", "39", "1001", "1050", "1051", "1098", "2000"]),
    ("word", &["'c003'", "'r017'", "'r018'", "'r049'", "'x'", "''"]),
    ("ordinal", &["0", "9000", "20000"]),
];

const ODD_OF_RARE: [&str; 4] = [
    "value in (1003, 1077)",
    "(value = 1003 or word = 'r018')",
    "value in (1003, 1004, 5) and word = 'r003'",
    "value = 1090 and word > 'c'",
];

fn rare(pick: &mut dyn FnMut(u64) -> u64, number: u64) -> Vec<u8> {
    let (turn, is_rare) = (number / 300, number % 300 == 7);
    let value = if is_rare { 1000 + turn } else { pick(40) };
    let word = if is_rare { format!("r{:03}", turn % 50) } else { format!("c{:03}", pick(20)) };
    [&(value as u16).to_le_bytes()[..], word.as_bytes()].concat()
}

/// Numbers, texts and addresses that rise, of which bounds of blocks leave few; some that are odd, cut short, or there only later.
const RISING_SCHEMA: [&str; 8] = [
    "turn:uint=at:0:u32le",
    "odd:uint=at:4:u16le",
    "level:float=at:6:f64le",
    "place:ipv6=at:14:ipv6",
    "name:text=at:30:text24",
    "word:text=at:54:text6",
    "mixed:uint=at:60:u32le",
    "late:uint=at:64:u16le",
];

/// How many of them.
const RISING_COUNT: u64 = 12_000;

const RISING: [Named; 9] = [
    ("turn", &["0", "17", "1500", "1501", "7000", "11990", "90000"]),
    ("odd", &["3", "9", "10", "59999", "60000"]),
    ("level", &["-10", "-1e9", "10.5", "20", "49.5", "'NaN'", "'Infinity'"]),
    ("place", &["'2001:db8::5'", "'2001:db8::77'", "'2001:db8::e0'", "'::'", "'ff::'"]),
    (
        "name",
        &[
            "'name 0003 and so on 0007'",
            "'name 0007 and so on 0001'",
            "'name 0005 and so'",
            "'name 0005 and t'",
            "''",
        ],
    ),
    ("word", &["'w00005'", "'w00500'", "'w01100'", "'w0'", "''"]),
    ("mixed", &["7", "2000000000", "4294967295"]),
    ("late", &["0", "10", "300", "599"]),
    ("ordinal", &["0", "500", "6000", "11000", "90000"]),
];

const ODD_OF_RISING: [&str; 5] = [
    "turn % 1000 = 7",
    "turn = mixed",
    "in_net(place, '2001:db8::70/124')",
    "name like 'name 000%'",
    "isnan(level)",
];

fn rising(pick: &mut dyn FnMut(u64) -> u64, number: u64) -> Vec<u8> {
    let odd = if number % 2500 == 1777 { 60_000 } else { pick(10) as u16 };
    let level = if pick(700) == 0 { f64::NAN } else { (number / 100) as f64 * 0.5 - 10.0 };
    let place = 0x2001_0db8 << 96 | u128::from(number / 50);
    let mut bytes = (number as u32).to_le_bytes().to_vec();
    bytes.extend(odd.to_le_bytes());
    bytes.extend(level.to_le_bytes());
    bytes.extend(place.to_be_bytes());
    // Bounds have the first 16 bytes.
    bytes.extend(format!("name {:04} and so on {:04}", number / 1000, number % 1000 / 90).into_bytes());
    bytes.extend(format!("w{:05}", number / 10).into_bytes());
    bytes.extend((pick(1 << 32) as u32).to_le_bytes());
    if number > RISING_COUNT / 2 {
        bytes.extend(((number / 20) as u16).to_le_bytes());
    }
    if pick(60) == 0 {
        bytes.truncate(pick(67) as usize);
    }
    if pick(400) == 0 {
        bytes.resize(bytes.len().max(66) + pick(70_000) as usize, 0x55);
    }
    bytes
}

struct World {
    runtime: Runtime,
    real: SessionContext,
    plain: SessionContext,
    diagnostics: Arc<ScanDiagnostics>,
    /// Of the slots.
    summaries: Vec<Summary>,
}

impl World {
    fn new(seed: u64, elements: u64, schema: &[&str], content: &Content) -> Self {
        let schema = Schema::typed(schema.iter().copied()).unwrap();
        let (image, recorded) = Recorded::of(seed, elements, Some(&schema), content);
        let batch = naive(&image, &schema, &recorded);
        let summaries = summaries(&image);
        let plain = engine(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()));
        let ring: OpenRing =
            Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
        let diagnostics = Arc::new(ScanDiagnostics::default());
        let readers = ReaderPool::new(&ring);
        let table = stream_table(recorded.stream, schema, readers, Arc::clone(&diagnostics));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        Self { runtime, real: engine(Arc::new(table)), plain, diagnostics, summaries }
    }

    fn compare(&self, sql: &str) {
        let (real, plain) = (shown(&self.runtime, &self.real, sql), shown(&self.runtime, &self.plain, sql));
        assert_eq!(real, plain, "{sql}");
        assert_eq!(self.diagnostics.take(), SkippedData::default(), "{sql}");
    }
}

fn about((column, values): Named) -> impl Strategy<Value = String> {
    let value = || select(values);
    let some = subsequence(values, 1..=values.len());
    let compared = (select(&["=", "<>", "<", "<=", ">", ">="][..]), value(), any::<bool>());
    let not = select(&["", "not "][..]);
    prop_oneof![
        4 => compared.prop_map(move |(operator, value, turned)| {
            let (left, right) = if turned { (value, column) } else { (column, value) };
            format!("{left} {operator} {right}")
        }),
        2 => (not.clone(), value(), value())
            .prop_map(move |(not, low, high)| format!("{column} {not}between {low} and {high}")),
        2 => (not.clone(), some).prop_map(move |(not, some)| format!("{column} {not}in ({})", some.join(", "))),
        1 => not.clone().prop_map(move |not| format!("{column} is {not}null")),
        1 => (not, value()).prop_map(move |(not, value)| format!("{column} is {not}distinct from {value}")),
    ]
}

fn condition(columns: &'static [Named], odd: &'static [&'static str]) -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        6 => select(columns).prop_flat_map(about),
        1 => select(odd).prop_map(str::to_owned),
    ];
    let atom = atom.prop_map(|atom| format!("({atom})"));
    atom.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|one| format!("not ({one})")),
            2 => proptest::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" and "))),
            2 => proptest::collection::vec(inner, 2..4).prop_map(|any| format!("({})", any.join(" or "))),
        ]
    })
}

/// The ways in which a condition is asked about: `C` and `D` stand for conditions, `X` and `Y` for columns, `N` for a number.
const QUESTIONS: [&str; 12] = [
    "select ordinal o, X x, Y y from log where C order by o",
    "select count(*), count(X) x, count(distinct Y) y from log where C",
    "select X x, count(*), sum(size), min(ordinal) from log where C group by X order by x nulls first",
    "select X x, Y y, count(*) from log where C group by X, Y order by x nulls last, y nulls last",
    "select Y y, ordinal o from log where C order by y desc nulls last, o limit N",
    "select ordinal, hex(payload) from log where C and (D) order by ordinal limit N",
    "select count(*) from (select X from log where C limit N)",
    "select count(*) filter (where C), count(*) filter (where D), count(*) from log",
    "select ordinal from log where C order by ordinal desc limit N offset 3",
    "with a as (select * from log where C), b as (select ordinal o, X x, Y y from log where D) \
     select ordinal, o from a join b on a.X = b.x and a.ordinal <= b.o order by 1, 2 limit N",
    "with a as (select * from log where C), b as (select ordinal o, X x from log where D) \
     select ordinal, o from a left join b on a.ordinal = b.o and a.X = b.x order by 1, 2",
    "select ordinal, size from log where C and ordinal not in (select ordinal from log where D) order by 1",
];

fn question(columns: &'static [Named], odd: &'static [&'static str]) -> impl Strategy<Value = String> {
    let name = || select(columns).prop_map(|(name, _)| name);
    let (one, other) = (condition(columns, odd), condition(columns, odd));
    (select(&QUESTIONS[..]), one, other, name(), name(), 1..60u32).prop_map(
        |(question, one, other, x, y, number)| {
            // Words that stand for something are single capital letters.
            let words = question.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
            let words = words.map(|word| {
                let (name, rest) = word.split_at(word.trim_end_matches(|c: char| !c.is_alphanumeric()).len());
                let put = match name {
                    "C" => format!("({one})"),
                    "D" => format!("({other})"),
                    "X" => x.to_owned(),
                    "Y" => y.to_owned(),
                    "N" => number.to_string(),
                    name => name.to_owned(),
                };
                put + rest
            });
            words.collect()
        },
    )
}

static OF_DOCUMENTS: LazyLock<World> = LazyLock::new(|| {
    World::new(21, 3000, &SCHEMA, &Content { header, noise: 900, element: super::recorded::line })
});
static OF_FRAMES: LazyLock<World> = LazyLock::new(|| {
    World::new(22, 3000, &FRAMES_SCHEMA, &Content { header: without_header, noise: 900, element: frame })
});
static OF_RARE: LazyLock<World> = LazyLock::new(|| {
    World::new(24, RARE_COUNT, &RARE_SCHEMA, &Content { header: without_header, noise: 9, element: rare })
});
static OF_RISING: LazyLock<World> = LazyLock::new(|| {
    World::new(
        23,
        RISING_COUNT,
        &RISING_SCHEMA,
        &Content { header: without_header, noise: 900, element: rising },
    )
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    // Promise 5, where blocks are left out by their bounds.
    #[test]
    fn of_what_rises_what_is_asked_finds_what_a_naive_look_finds(sql in question(&RISING, &ODD_OF_RISING)) {
        OF_RISING.compare(&sql);
    }

    // Promise 5, where blocks are left out because a value is in one place.
    #[test]
    fn of_what_is_rare_what_is_asked_finds_what_a_naive_look_finds(sql in question(&RARE, &ODD_OF_RARE)) {
        OF_RARE.compare(&sql);
    }

    // Promise 5.
    #[test]
    fn of_documents_what_is_asked_finds_what_a_naive_look_finds(sql in question(&DOCUMENTS, &ODD_OF_DOCUMENTS)) {
        OF_DOCUMENTS.compare(&sql);
    }

    // Promise 5, with numbers that are none, negative zeros, bits and frames that were cut.
    #[test]
    fn of_frames_what_is_asked_finds_what_a_naive_look_finds(sql in question(&FRAMES, &ODD_OF_FRAMES)) {
        OF_FRAMES.compare(&sql);
    }
}

/// That few of them are read is seen by `turns`; here that there are any to choose from.
#[test]
fn of_what_rises_most_slots_tell_of_blocks() {
    let summaries = &OF_RISING.summaries;
    assert!(summaries.len() > 8, "{}", summaries.len());
    let told = |column: u16| {
        let has_bounds = |summary: &&Summary| summary.bounds(1, column).is_some_and(BlockBounds::has_bounds);
        summaries.iter().filter(has_bounds).count()
    };
    for column in [0, 2, 3, 4, 5] {
        let told = told(column);
        assert!(2 * told > summaries.len(), "{told} of {}, column {column}", summaries.len());
    }
    assert!(told(1) > 0 && told(1) < summaries.len() && told(6) == 0, "{} {}", told(1), told(6));
}

#[test]
fn of_what_is_rare_most_slots_tell_where_it_is() {
    let summaries = &OF_RARE.summaries;
    for column in 0..2 {
        let has_values = |summary: &&Summary| summary.bounds(1, column).is_some_and(BlockBounds::has_values);
        let told = summaries.iter().filter(has_values).count();
        assert!(told > 1 && 2 * told > summaries.len(), "{told} of {}", summaries.len());
    }
}

// Promise 5, where few blocks are left and some of their cells are null, no numbers, or of several columns.
#[test]
fn of_a_few_blocks_all_is_found_that_is_there() {
    for condition in [
        "(turn between 7000 and 7150 or turn between 8300 and 8450 or turn between 9500 and 9650) and late is null",
        "turn between 6700 and 6900 and (late is null or odd = 60000)",
        "turn between 5900 and 6300 and late is not null",
        "level = 'NaN' and (turn between 2000 and 2200 or turn between 3000 and 3200 or turn between 4000 and 4200)",
        "name = 'name 0005 and so on 0007' or turn in (17, 11990)",
        "turn between 10000 and 11900 and place is null",
        "place between '2001:db8::77' and '2001:db8::78' and mixed > 2000000000",
        "odd = 60000",
        "turn = 4277 and odd = 60000 and word = 'w00427'",
    ] {
        let sql =
            format!("select ordinal, turn, odd, name, late from log where {condition} order by ordinal");
        OF_RISING.compare(&sql);
        OF_RISING.compare(&format!("select count(*), min(mixed), count(late) from log where {condition}"));
        let found = format!("select count(*) > 0 found from log where {condition}");
        assert!(shown(&OF_RISING.runtime, &OF_RISING.plain, &found).contains("true"), "{condition}");
    }
}

#[test]
fn numbers_of_payloads_are_those_that_attributes_have_from_the_same_places() {
    let World { runtime, real, .. } = &*OF_FRAMES;
    for (number, column) in [
        ("f64le(payload, 0)", "wide"),
        ("f32be(payload, 8)", "short"),
        ("i16be(payload, 12)", "count"),
        ("(i8(payload, 12) << 8) + u8(payload, 13)", "count"),
        ("u16le(payload, 14) & 31", "low"),
        ("i32be(payload, 10) & 65535", "count & 65535"),
        ("i64le(payload, 0) < 0", "i8(payload, 7) < 0"),
        // The bits of a NaN may have a sign.
        (
            "case when wide > 0 and not isnan(wide) then i64le(payload, 0) end",
            "case when wide > 0 and not isnan(wide) then u64le(payload, 0) end",
        ),
    ] {
        let sql = format!("select count(*) n from log where ({number}) is distinct from ({column})");
        assert!(shown(runtime, real, &sql).contains("| 0 |"), "{number} is not {column}");
    }
}

/// The conditions are worth asking: most of them find some elements and leave some.
#[test]
fn most_conditions_that_are_made_up_divide_the_elements() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    for (world, made) in [
        (&OF_DOCUMENTS, condition(&DOCUMENTS, &ODD_OF_DOCUMENTS).boxed()),
        (&OF_FRAMES, condition(&FRAMES, &ODD_OF_FRAMES).boxed()),
        (&OF_RISING, condition(&RISING, &ODD_OF_RISING).boxed()),
    ] {
        let divides = (0..60).filter(|_| {
            let one = made.new_tree(&mut runner).unwrap().current();
            let sql = format!("select count(*) filter (where {one}) between 1 and count(*) - 1 d from log");
            shown(&world.runtime, &world.plain, &sql).contains("true")
        });
        let divides = divides.count();
        assert!(divides > 30, "{divides} of 60");
    }
}
