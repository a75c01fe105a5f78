//! Messages about a question: the fault, its place and the remedy (promise 8); plans, line by
//! line; and what a session takes from a pipe.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use crate::common::recording;

use common::{Said, documented, ends, folder, holdfast, record};
use filled::Filler;
use recording::Recording;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Streams with numbers, texts, addresses, and bytes that are no text.
fn ring(dir: &Path) {
    let text = "{\"a\":1,\"h\":\"x\",\"n\":\"10.0.0.1\"}\n{\"a\":2,\"h\":\"y\",\"n\":\"10.0.0.2\"}\n";
    fs::write(dir.join("log"), text).unwrap();
    fs::write(dir.join("bin"), b"GET \xff\n").unwrap();
    let line = "r.hf --size 32MiB --slot 256KiB \
                --source file:log --name 1kxun --frame lines --attr a:uint=json:a --attr h:text=json:h --attr net:ipv4=json:n \
                --source file:bin --name My-log --frame lines";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
}

fn query(dir: &Path, sql: &str) -> Said {
    holdfast(dir).args(["query", "r.hf", sql]).output().unwrap().into()
}

/// Words of the engine that say nothing to people.
const ENGINE: [&str; 11] = [
    "DataFusion",
    "datafusion",
    "caused by",
    "Error during",
    "error:",
    "Optimizer",
    "type_coercion",
    "Int64",
    "Utf8",
    "Binary",
    "not implemented",
];

/// What is wrong, and under which part of the question the mark stands: it begins behind the `^`, which is not part of it.
const WRONG: [(&str, &str); 46] = [
    (
        "a from \"1kxun\" where in_net(net,^'10.0.0.0/33')",
        "cannot parse `10.0.0.0/33` as an IPv4 network; write one such as 10.0.0.0/8",
    ),
    ("a from \"1kxun\" where in_net(^a,'10.0.0.0/8')", "the first argument is a number, not an address"),
    ("a from \"1kxun\" where in_net(net, ^a)", "the second argument must be a text literal"),
    ("a from \"1kxun\" where ^in_net(net)", "cannot call in_net: it takes an address and a network"),
    ("a from \"1kxun\" where net = ^'10.0.0'", "cannot parse `10.0.0` as an IPv4 address; write one such as"),
    ("a from \"1kxun\" where net in ('10.0.0.1', ^'x')", "cannot parse `x` as an IPv4 address"),
    (
        "a from \"1kxun\" where net = ^10 and a > 10",
        "an IPv4 address is not compared with a number: write addresses in quotes",
    ),
    ("a from \"1kxun\" where net in (^10, 11)", "write addresses in quotes"),
    ("a from \"1kxun\" where net between ^10 and 11", "write addresses in quotes"),
    ("a from \"1kxun\" where net ^like '10.%'", "in_net(src, '10.0.0.0/8')"),
    ("a from \"1kxun\" where a = ^'10.x' -- '10.x'", "`10.x` is not a number"),
    (
        "a from \"1kxun\" where time > now() - interval ^'1 hourr'",
        "`1 hourr` is no length of time: give one such as",
    ),
    (
        "a from \"1kxun\" where h = '1' and time > ^'2300-01-01'",
        "times are from 1677-09-21T00:12:44Z to 2262-04-11",
    ),
    ("a from \"1kxun\" where time > ^'yesterday'", "`yesterday` is no time"),
    ("a from \"1kxun\" where time > ^5", "write times in quotes, such as '2026-11-20T10:05:00Z'"),
    ("time + ^5 from \"1kxun\"", "write lengths of time as interval '5 seconds'"),
    ("^substr(payload,1,4) from \"1kxun\"", "bytes(payload, 0, 4)"),
    ("^upper(payload) from \"1kxun\"", "text(payload)"),
    ("a from \"1kxun\" where payload ^~ 'GET'", "matches(payload, "),
    ("^sum(h) from \"1kxun\"", "`sum` does not take (a text)"),
    ("^u16be(payload) from \"1kxun\"", "cannot call u16be: it takes bytes and an offset"),
    ("^bytes(payload, 1) from \"1kxun\"", "cannot call bytes: it takes bytes, an offset and a count"),
    ("matches(payload, ^'(') from \"1kxun\"", "as a regular expression"),
    ("date_trunc(^'hourly', time) from \"1kxun\"", "'hourly'"),
    ("^[1, 2]", "there are no lists in brackets: compare with each of some values by in (1, 2)"),
    ("1; ^select 2", "more than one question: ask them one by one"),
    ("count(*) from ^1kxun", "stands in quotes: \"1kxun\""),
    ("count(*) from My^-log", "stands in quotes: \"My-log\""),
    (
        "count(*) from ^nosuch -- nosuch",
        "there is no table `nosuch`: there are 1kxun, My-log, gaps, holds, slots, streams",
    ),
    ("t.^nosuch from \"1kxun\" t", "there is no column `nosuch`: there are ordinal, time,"),
    ("^nosuch(a) from \"1kxun\"", "there is no function `nosuch`"),
    ("^a from \"1kxun\" x, \"1kxun\" y", "more than one table has a column `a`"),
    ("a from \"1kxun\" where^", "expected an expression, found its end"),
    ("* ^frm \"1kxun\"", "found `frm`"),
    ("^'abc", "this is no SQL: unterminated string literal"),
    ("* from nearest('1kxun', ^'nosuch')", "cannot find stream `nosuch`"),
    ("a from \"1kxun\" ^order by 99", "Order by column out of bounds"),
    ("a from \"1kxun\" ^limit -1", "LIMIT must be >= 0"),
    ("^a, count(*) from \"1kxun\"", "neither in one nor in `group by`"),
    ("^-size from \"1kxun\"", "of such a number write `0 - size`"),
    ("count(*) from \"1kxun\" ^where count(*) > 1", "Consider using HAVING"),
    ("a from \"1kxun\" ^where a", "a condition is true or false"),
    ("a from \"1kxun\" ^union select a, h from \"1kxun\"", "different number of columns"),
    ("^cast(payload as bigint) from \"1kxun\"", "bytes are not made a number by a cast"),
    ("a & ^0x12 from \"1kxun\"", "numbers are written in decimals"),
    (
        "x.a from \"1kxun\" x join \"1kxun\" y on x.a = y.a where ^h = 'x'",
        "more than one table has a column `h`",
    ),
];

#[test]
fn what_is_wrong_with_a_question_is_said_in_words_with_a_mark_under_it() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (marked, wanted) in WRONG {
        let sql = format!("select {}", marked.replace('^', ""));
        let said = query(dir, &sql);
        assert_eq!(said.code, Some(2), "{sql}\n{}{}", said.out, said.err);
        assert!(said.err.contains(wanted), "{sql}\n{}", said.err);
        let at = "select ".len() + marked.find('^').unwrap();
        let here = format!(": here:\n  {sql}\n  {}^\n", " ".repeat(at));
        assert!(said.err.ends_with(&here), "{sql}\n{}", said.err);
        let words = &said.err[..said.err.len() - here.len()];
        // Of a regular expression its own error shows where.
        let strange = ENGINE.iter().find(|word| words.contains(**word) && !words.contains("regex parse"));
        // Which types a function takes are the engine's.
        assert!(strange.is_none() || words.contains("does not take"), "{strange:?} in {words}");
        assert!(!words.contains("bug"), "{words}");
    }
    for (sql, wanted) in [
        (
            "select a from \"1kxun\" where in_net(net, '10.0.0.0/8') and in_net(a, '10.0.0.0/8')",
            "the first argument is a number, not an address",
        ),
        ("drop table \"1kxun\"", "only questions are answered: begin it with select"),
        ("select ordinal from \"My-log\" where payload like '%GET%'", "matches(payload, 'GET /[a-z]+')"),
        ("select cast(payload as text) from \"My-log\"", "text(payload)"),
    ] {
        let said = query(dir, sql);
        assert_eq!(said.code, Some(2), "{sql}\n{}{}", said.out, said.err);
        assert!(said.err.contains(wanted) && !said.err.contains("here:"), "{sql}\n{}", said.err);
        assert!(ENGINE.iter().all(|word| !said.err.contains(word)), "{sql}\n{}", said.err);
    }
    let said = query(dir, "select 1 / 0");
    let here = "holdfast: a number is divided by zero: here:\n  select 1 / 0\n           ^\n";
    assert_eq!((said.code, said.err.as_str()), (Some(1), here));
    // A text that stands there several times.
    let sql = "select a from \"1kxun\" where net = '10.0.0.x' or h = '10.0.0.x'";
    let said = query(dir, sql);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    let marked = |at: usize| said.err.lines().last().unwrap().chars().nth(at + 2) == Some('^');
    let places: Vec<usize> = sql.match_indices("'10.0.0.x'").map(|(at, _)| at).collect();
    assert!(said.err.contains(": at one of these:\n") && places.into_iter().all(marked), "{}", said.err);
}

#[test]
fn bytes_are_cut() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let columns = "bytes(payload, 1, 2), bytes(payload, 3, 9), bytes(payload, 9, 1), bytes(payload, -1, 1), \
                   text(bytes(payload, 0, 3))";
    let said = query(dir, &format!("select {columns} from \"My-log\""));
    assert_eq!(
        said.out.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["4554", "20ff", "–", "GET"]
    );
    let found = query(dir, "select ordinal from \"My-log\" where bytes(payload, 0, 4) = 'GET '");
    assert_eq!((found.code, found.out.as_str()), (Some(0), "ordinal\n      0\n"));
}

#[test]
fn plans_are_shown_line_by_line_with_conditions_that_can_be_read() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let question =
        "select count(*) from \"1kxun\" where a > 1 and net in ('10.0.0.1', '10.0.0.2') and h <> 'z'";
    let condition = "condition=a > 1 and net between '10.0.0.1' and '10.0.0.2' and h <> 'z'";
    for explain in ["explain", "explain analyze"] {
        let asked = format!("{explain} {question};\n");
        let mut session =
            holdfast(dir).args(["sql", "r.hf"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        session.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        let session: Said = session.wait_with_output().unwrap().into();
        for said in [query(dir, &asked), session] {
            assert_eq!(said.code, Some(0), "{}", said.err);
            assert!(!said.out.contains("\\n"), "{}", said.out);
            let scan = said.out.lines().find(|line| line.trim().starts_with("StreamExec")).unwrap();
            assert!(scan.contains("condition=") && !scan.contains("Spans"), "{scan}");
            assert!(scan.contains(condition) || scan.contains("net in ('10.0.0.1', '10.0.0.2')"), "{scan}");
        }
    }
}

#[test]
fn a_session_takes_what_lists_tables_and_comments_from_a_pipe() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 32MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(3);
    filler.close();
    let ask = |text: &str| -> Said {
        let mut session = holdfast(dir)
            .args(["sql", "r.hf"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        session.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        session.wait_with_output().unwrap().into()
    };
    let said = ask(
        "\\d\n\\d log\n-- it's one; of them\nselect 'a;b' as x; /* ; */ select 7 as y; -- end\n\\q\nselect nosuch;\n",
    );
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for part in ["table", "eth0", "original_size", "\na;b\n", "y\n7\n"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let said = ask("\\x\nselect 1;\n");
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("there are \\d, \\d TABLE and \\q"), "{}", said.err);
}

// Promise 3: no loss is passed over in silence, also where nobody can know it yet.
#[test]
fn between_a_crash_and_the_next_start_gaps_says_that_more_may_come() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(50);
    recording.await_lines(dir, 50);
    let clean = "no gaps: nothing that is still on the ring was lost\n";
    assert_eq!(ends(dir, "gaps r.hf", 3).out, clean, "a recorder knows");
    recording.child.kill().unwrap();
    recording.child.wait().unwrap();
    let said = ends(dir, "gaps r.hf", 3).out;
    let more = "the last run was cut off: what that lost, if anything, is told when a recorder starts next\n";
    assert_eq!(said, format!("no gaps so far, but {more}"));
    let told = ends(dir, "gaps r.hf --json", 3).json();
    documented("gaps", [&told]);
    assert_eq!(told["cut_off"], true);
    Recording::start(dir, "").end();
    let said = ends(dir, "gaps r.hf", 0).out;
    assert!(said.contains("log") && !said.contains("cut off:"), "{said}");
    assert!(ends(dir, "gaps r.hf --json", 0).lines().iter().all(|gap| gap["cut_off"].is_null()));
}
