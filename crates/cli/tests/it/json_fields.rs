//! JSON without a schema: attributes that are inferred (`--attr auto`), fields that are none (`json_get`), and names of
//! result columns.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{Said, ends, folder, holdfast, record};
use recording::{PATIENCE, Recording};
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

fn ask(dir: &Path, sql: &str) -> Said {
    holdfast(dir).args(["query", "r.hf", sql, "--json"]).output().unwrap().into()
}

fn document(number: u64) -> String {
    let level = ["info", "warn", "error"][number as usize % 3];
    format!(
        "{{\"level\":\"{level}\",\"host\":{{\"name\":\"h{}\",\"cpu\":{}}},\"ok\":{},\"tags\":[{number},\"x\"]}}\n",
        number % 7,
        number as f64 / 2.0,
        number.is_multiple_of(2),
    )
}

/// Asks for what `document` says of so many elements of `log`.
fn check(dir: &Path, count: u64) {
    let errors = (0..count).filter(|n| n % 3 == 2).count();
    for (sql, wanted) in [
        ("select count(*) c from log where level = 'error'", format!("{{\"c\":{errors}}}")),
        (
            "select ordinal, host_cpu, ok from log where host_name = 'h3' order by ordinal limit 2",
            "{\"ordinal\":3,\"host_cpu\":1.5,\"ok\":false}\n{\"ordinal\":10,\"host_cpu\":5.0,\"ok\":true}"
                .to_owned(),
        ),
        ("select json_get_int(payload, 'tags[0]') n from log where ordinal = 5", "{\"n\":5}".to_owned()),
        ("select count(*) c from log where json_get(payload, 'late.field') = 'here'", "{\"c\":1}".to_owned()),
    ] {
        let said = ask(dir, sql);
        assert_eq!((said.out.trim_end(), said.code), (wanted.as_str(), Some(0)), "{sql}: {}", said.err);
    }
    let attributes = ends(dir, "streams r.hf --attributes", 0).out;
    for name in ["level", "host_name", "host_cpu", "ok"] {
        assert!(attributes.contains(name), "{attributes}");
    }
    assert!(!attributes.contains("late"), "{attributes}");
}

#[test]
fn json_lines_of_a_file_are_found_without_a_schema() {
    let folder = folder();
    let dir = folder.path();
    let lines: String = (0..3000).map(document).collect();
    fs::write(dir.join("log.json"), lines + "{\"late\":{\"field\":\"here\"}}\n").unwrap();
    let line = "r.hf --size 32MiB --slot 256KiB --source file:log.json --name log --frame lines --attr auto";
    let said = record(dir, line, File::open("/dev/null").unwrap().into());
    assert_eq!(said.code, Some(0), "{}", said.err);
    check(dir, 3000);
    // A stream keeps its attributes when other fields arrive.
    fs::write(dir.join("log.json"), "{\"fresh\":1}\n").unwrap();
    let said = record(
        dir,
        "r.hf --source file:log.json --name log --frame lines --attr auto",
        File::open("/dev/null").unwrap().into(),
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    check(dir, 3000);
    assert!(ask(dir, "select fresh from log").err.contains("there is no column `fresh`"));
}

#[test]
fn json_lines_of_a_connection_are_found_while_it_is_open() {
    let folder = folder();
    let dir = folder.path();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let more =
        format!("--size 32MiB --slot 256KiB --source tcp:{address} --name log --frame lines --attr auto");
    let recording = Recording::named(dir, "other", &more);
    let started = Instant::now();
    // The pipe may be read from before the port is listened at.
    let mut connection = loop {
        match TcpStream::connect(address) {
            Ok(connection) => break connection,
            Err(error) => assert!(started.elapsed() < PATIENCE, "{address}: {error}"),
        }
    };
    let lines: String = (0..40).map(document).collect();
    connection.write_all(lines.as_bytes()).unwrap();
    while !ends(dir, "streams r.hf --attributes", 0).out.contains("level") {
        assert!(started.elapsed() < PATIENCE, "nothing was inferred");
    }
    connection.write_all(b"{\"late\":{\"field\":\"here\"}}\n").unwrap();
    while ask(dir, "select 1 from log where ordinal = 40").code != Some(0) {
        assert!(started.elapsed() < PATIENCE, "the last line did not arrive");
    }
    check(dir, 40);
    assert_eq!(recording.end().0, Some(0));
    check(dir, 40);
}

#[test]
fn result_columns_have_names_of_their_own() {
    let folder = folder();
    let dir = folder.path();
    for (name, text) in [("t1", "{\"id\":1,\"z\":10}\n"), ("t2", "{\"id\":1,\"z\":20}\n")] {
        fs::write(dir.join(name), text).unwrap();
        let line = format!("r.hf --size 16MiB --source file:{name} --name {name} --frame lines --attr auto");
        let said = record(dir, &line, File::open("/dev/null").unwrap().into());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let said = ask(dir, "select a.id, b.id, a.z, b.z from t1 a join t2 b on a.id = b.id");
    assert_eq!(said.out, "{\"a.id\":1,\"b.id\":1,\"a.z\":10,\"b.z\":20}\n", "{}", said.err);
}
