//! Questions over a few odd rows, each with the answer of `PostgreSQL` and `DuckDB`, or a refusal where that is as good.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{Said, ends, folder, holdfast, record};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Streams: name, attributes, and lines.
const STREAMS: [(&str, &str, &str); 6] = [
    (
        "b",
        "b:bool=json:b n:int=json:n",
        r#"{"b": true, "n": 1}
{"b": true, "n": 9}
{"b": false, "n": 1}
{"b": false, "n": 9}
{"n": 9}
"#,
    ),
    (
        "t1",
        KEYS,
        r#"{"id": 1, "z": 10, "w": 1}
{"id": 2, "z": 20, "w": 1}
{"z": 30, "w": 2}
{"id": 4, "z": 40, "w": 2}
{"id": 5, "w": 1}
{"w": 2}
"#,
    ),
    (
        "t2",
        KEYS,
        r#"{"id": 1, "z": 5, "w": 1}
{"z": 50, "w": 1}
{"id": 4, "w": 2}
{"w": 2}
{"id": 2, "z": 20, "w": 3}
"#,
    ),
    (
        "t3",
        KEYS,
        r#"{"id": 1, "z": 5}
{"id": 3, "z": 7}
"#,
    ),
    (
        "lead",
        "id:int=json:id v:int=json:v",
        r#"{"id": 1, "v": 10}
{"id": 2, "v": 20}
{"id": 3, "v": 30}
{"id": 4, "v": 40}
{"id": 5, "v": null}
{"id": 6, "v": null}
{"id": 7, "v": 70}
{"id": 8, "v": 80}
{"id": 9, "v": null}
"#,
    ),
    (
        "t4",
        "id:int=json:id n:int=json:n m:int=json:m g:text=json:g s:text=json:s b:bool=json:b f:float=json:f x:uint=json:x \
         event_time:time=json:t",
        r#"{"id": 2, "n": -2, "m": 2, "f": 11.5, "g": "a", "s": "\u00e9", "b": false, "x": 2, "t": 1766799209.5}
{"id": 2, "m": null, "f": 100.125, "g": "a", "b": true, "x": 65535, "t": 1764701273.5}
{"id": null, "n": 0, "m": 4, "f": -2.75, "g": "a", "s": null, "b": false, "t": 1766304705.123456}
{"id": 1, "m": 1, "f": 100.125, "s": "beta", "b": false, "x": 1, "t": 1766902183.25}
{"id": null, "n": null, "m": 4, "f": -2.75, "g": null, "s": "", "b": null, "x": null, "t": 1765790543}
{"id": 2, "n": null, "m": 1, "f": null, "g": "e", "s": "日本", "b": null, "x": 1, "t": 1764619883}
{"id": 1, "n": null, "m": 2, "f": -0.25, "s": "gamma", "b": false, "x": 2, "t": 1765899896.5}
{"id": 1, "f": null, "g": null, "s": null, "b": false, "x": 1, "t": 1764669139.123456}
{"id": 2, "n": 10, "m": 3, "f": -0.25, "s": "é", "b": null, "t": 1766509500.25}
"#,
    ),
];
const KEYS: &str = "id:int=json:id z:int=json:z w:int=json:w";

/// Questions, and the lines of their answers behind the header.
const QUESTIONS: [(&str, &[&str]); 21] = [
    ("select count(*) from b where b is distinct from true and n > 5", &["2"]),
    ("select count(*) from b where n is distinct from 1 and b", &["1"]),
    ("select ordinal from t1 where 3 not in (select id from t2)", &[]),
    (
        "select ordinal from t1 where id not in (select t2.id from t2 where t2.id = t1.id) order by ordinal",
        &["2", "4", "5"],
    ),
    ("select w from (select w from t1 intersect all select w from t2) order by w", &["1", "1", "2", "2"]),
    (
        "select ordinal from t1 where exists (select count(*) from t3 where t3.id = t1.id) order by ordinal",
        &["0", "1", "2", "3", "4", "5"],
    ),
    (
        "select ordinal from t4 where m not in (select m from t4 where ordinal in (0,2)) or n > 5 order by ordinal",
        &["3", "5", "8"],
    ),
    (
        "select ordinal from t4 where m = any (select m from t4 where m < 3) order by ordinal",
        &["0", "3", "5", "6"],
    ),
    (
        "select ordinal from t4 where (m in (select m from t4 where ordinal in (0,2))) is null order by ordinal",
        &["1", "7"],
    ),
    ("select interval '1 day' = interval '24 hours'", &["true"]),
    (
        "select extract(epoch from (timestamp '2025-12-01 00:00:02.999999' - timestamp '2025-12-01 00:00:00'))",
        &["2.999999"],
    ),
    // The same stream inside and outside, of neighbours of these.
    (
        "select ordinal from t4 where m <> all (select m from t4 where ordinal in (0, 2)) order by ordinal",
        &["3", "5", "8"],
    ),
    (
        "select ordinal from t4 where m >= all (select m from t4 where m is not null) order by ordinal",
        &["2", "4"],
    ),
    (
        "select count(*) from t4 where case when m in (select m from t4 where m > 2) then true else n > 5 end",
        &["3"],
    ),
    // A counter that steps back.
    ("select ordinal from t4 where x - 2 < 0 order by ordinal", &["3", "5", "7"]),
    (
        "select ordinal from (select ordinal, x - lag(x) over (order by ordinal) step from t4) where step < 0 order by ordinal",
        &["7"],
    ),
    // Lengths of more than a day.
    ("select count(*) from t4 a join t4 b on a.event_time - b.event_time > interval '20 days'", &["9"]),
    ("select extract(day from max(event_time) - min(event_time)) from t4", &["26"]),
    // Windows that have a name.
    (
        "select ordinal from (select ordinal, count(*) over (w) n from t4 window w as (partition by g)) where n = 5 order by ordinal",
        &["3", "4", "6", "7", "8"],
    ),
    // Tuples that have a null.
    ("select ordinal from t4 where (m, n) in ((2, -2), (3, 10)) order by ordinal", &["0", "8"]),
    ("select count(*) from t4 where not (s ~ '.*')", &["0"]),
];

/// The same, but a refusal is as good.
const OR_REFUSED: [(&str, &[&str]); 3] = [
    (
        "select a from (select id, lead(v,2) ignore nulls over (order by id) a from lead) where id = 3",
        &["70"],
    ),
    ("select 2.8::double::bigint", &["3"]),
    ("select ordinal from t4 prewhere m > 3 order by ordinal", &["2", "4"]),
];

fn recorded(dir: &Path) {
    // The recorder is another package's program.
    common::recorder_program();
    let mut words: Vec<_> =
        ["record", "r.hf", "--size", "24MiB", "--slot", "256KiB"].map(str::to_owned).into();
    for (name, attributes, lines) in STREAMS {
        fs::write(dir.join(name), lines).unwrap();
        let source = format!("--source file:{name} --name {name} --frame lines");
        words.extend(source.split_whitespace().map(str::to_owned));
        words.extend(attributes.split_whitespace().flat_map(|text| ["--attr".to_owned(), text.to_owned()]));
    }
    let said: Said = holdfast(dir).args(words).output().unwrap().into();
    assert_eq!(said.code, Some(0), "{}", said.err);
}

/// Lines of an answer behind its header, or the error.
fn answer(dir: &Path, question: &str) -> Result<Vec<String>, String> {
    let said: Said =
        holdfast(dir).args(["query", "r.hf", "--format", "csv", question]).output().unwrap().into();
    // No row: exit code 1 without a word.
    if said.code != Some(0) && !said.err.is_empty() {
        return Err(said.err);
    }
    Ok(said.out.lines().skip(1).map(str::to_owned).collect())
}

#[test]
fn odd_questions_have_right_answers() {
    let folder = folder();
    let dir = folder.path();
    recorded(dir);
    let mut wrong = Vec::new();
    for (question, expected) in QUESTIONS {
        match answer(dir, question) {
            Ok(lines) if lines == expected => {}
            other => wrong.push(format!("{question}: {other:?}, not {expected:?}")),
        }
    }
    for (question, expected) in OR_REFUSED {
        match answer(dir, question) {
            Ok(lines) if lines == expected => {}
            Err(error) if error.contains("cannot") && error.contains(';') => {}
            other => wrong.push(format!("{question}: {other:?}, not {expected:?}")),
        }
    }
    let both = "query r.hf --json select_a.id,_b.id,_a.z,_b.z_from_t1_a_join_t2_b_on_a.id_=_b.id";
    for row in ends(dir, both, 0).lines() {
        let keys: Vec<_> = row.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a.id", "a.z", "b.id", "b.z"], "{row}");
        assert_eq!(row["a.id"], row["b.id"]);
        assert_ne!(row["a.id"], Value::Null);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_with_high_bytes_are_found() {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        eprintln!("skipped: no HOLDFAST_TEST_DATA");
        return;
    };
    let folder = folder();
    let dir = folder.path();
    for (name, condition, expected) in [
        ("dns-name-with-high-byte.pcap", "dns_name like '%.example.org'", "2"),
        // As many as tshark's dns.qry.name.
        ("dns-90-high-bytes.pcap", "dns_name is not null", "3"),
    ] {
        let _ = fs::remove_file(dir.join("r.hf"));
        fs::copy(Path::new(&data).join("odd").join(name), dir.join("input")).unwrap();
        let line =
            "r.hf --size 24MiB --slot 256KiB --source replay:input --name s --speed max --attr packets";
        let said = record(dir, line, Stdio::null());
        assert_eq!(said.code, Some(0), "{}", said.err);
        let counted = answer(dir, &format!("select count(*) from s where {condition}"));
        assert_eq!(counted, Ok(vec![expected.to_owned()]), "{name}");
    }
}
