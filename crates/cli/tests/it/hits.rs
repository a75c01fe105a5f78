//! Query hits as files: the elements themselves, as `read` exports them, and no others (promise 5); what is no
//! list of elements is refused (promise 8).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;
use crate::common::recording;

use common::{Said, documented, ends, folder, holdfast};
use filled::{Filler, line};
use holdfast_ingest::packet::Reader;
use recording::Recording;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// 60 000 packets, and 3000 lines with a loss among them.
fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 32MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(20_000).lines(1000).lose(7).packets(40_000).lines(1993);
    filler.close();
}

fn query(dir: &Path, sql: &str, rest: &str, code: i32) -> Said {
    let mut command = holdfast(dir);
    let said: Said =
        command.args(["query", "r.hf", sql]).args(rest.split_whitespace()).output().unwrap().into();
    assert_eq!(said.code, Some(code), "{sql}\n{}", said.err);
    assert!(!said.err.contains("panicked") && !said.err.contains("this is a bug"), "{}", said.err);
    said
}

/// Each packet of a capture file, with all that it says of it.
fn packets(file: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(file);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(format!("{packet:?}"));
    }
    packets
}

/// Whether an ordinal is found.
type Is = fn(u64) -> bool;

#[test]
fn packets_are_those_of_an_export_of_all() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    ends(dir, "read r.hf --stream eth0 -o all.pcapng", 0);
    let all = packets(&fs::read(dir.join("all.pcapng")).unwrap());
    assert_eq!(all.len(), 60_000);
    let questions: [(&str, Is); 6] = [
        ("select ordinal from eth0", |_| true),
        ("select * from eth0 where ordinal % 7 = 3 order by time desc", |at| at % 7 == 3),
        // Near each other, and far apart.
        ("select ordinal, payload from eth0 where ordinal % 29999 < 3", |at| at % 29_999 < 3),
        (
            "select e.ordinal as ordinal from (select * from eth0 where size > 10) e where e.ordinal >= 59990",
            |at| at >= 59_990,
        ),
        ("select time, ordinal from eth0 where u64be(payload, 42) between 500 and 700 limit 1000", |at| {
            (500..=700).contains(&at)
        }),
        (
            "select ordinal from eth0 where ordinal in (select ordinal from log where ordinal % 500 = 499)",
            |at| [499, 999, 1499, 1999, 2499, 2999].contains(&at),
        ),
    ];
    for (sql, is) in questions {
        let said = query(dir, sql, "--format pcapng -o - --json", 0);
        let wanted: Vec<&String> =
            (0..).zip(&all).filter(|(at, _)| is(*at)).map(|(_, packet)| packet).collect();
        assert!(packets(&said.bytes).iter().eq(wanted.iter().copied()), "{sql}");
        let told: Value = serde_json::from_str(said.err.trim()).unwrap();
        documented("query", [&told]);
        assert_eq!(
            (&told["elements"], &told["gone"]),
            (&Value::from(wanted.len()), &Value::from(0)),
            "{sql}"
        );
        assert_eq!(told["blake3"], blake3::hash(&said.bytes).to_hex().to_string());
    }
    // A stretch of it is the same file, to the byte.
    for ordinals in [(0, 60_000), (777, 778), (19_990, 20_010)] {
        let (from, end) = ordinals;
        let sql = format!("select ordinal from eth0 where ordinal >= {from} and ordinal < {end}");
        query(dir, &sql, "--format pcapng -o some.pcapng --force", 0);
        let read = ends(dir, &format!("read r.hf --stream eth0 --ordinals {from}..{end} -o -"), 0);
        assert!(fs::read(dir.join("some.pcapng")).unwrap() == read.bytes, "{ordinals:?}");
    }
}

#[test]
fn elements_of_any_stream_are_messages() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let sql = "select ordinal from log where matches(payload, '^line [0-9]*5 ')";
    let said = query(dir, sql, "--format mcap -o lines.mcap", 0);
    let wanted: Vec<u64> = (0..1000).chain(1007..3000).filter(|ordinal| ordinal % 10 == 5).collect();
    assert!(said.err.starts_with(&format!("{} elements", wanted.len())), "{}", said.err);
    let file = fs::read(dir.join("lines.mcap")).unwrap();
    let messages = mcap::MessageStream::new(&file).unwrap().map(Result::unwrap);
    let messages: Vec<_> =
        messages.map(|message| (u64::from(message.sequence), message.data.to_vec())).collect();
    assert!(messages == wanted.iter().map(|at| (*at, line(*at).into_bytes())).collect::<Vec<_>>());
    let summary = mcap::Summary::read(&file).unwrap().unwrap();
    assert_eq!(
        (summary.attachment_indexes.len(), summary.metadata_indexes.len()),
        (1, 0),
        "a preamble, no gap"
    );
}

#[test]
fn what_is_no_list_of_elements_is_refused() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (sql, said) in [
        ("select time from eth0", "no column `ordinal`"),
        ("select count(*) from eth0", "no column `ordinal`"),
        ("select count(*) ordinal from eth0", "an element of a single stream"),
        ("select ordinal + 1 ordinal from eth0", "an element of a single stream"),
        ("select size ordinal from eth0", "an element of a single stream"),
        ("select ordinal from eth0 group by ordinal", "an element of a single stream"),
        ("select ordinal from eth0 union all select ordinal from log", "an element of a single stream"),
        (
            "select l.ordinal, size from log l join (select ordinal o from eth0) e on l.ordinal = e.o",
            "an element of a single stream",
        ),
        ("select ordinal from gaps", "an element of a single stream"),
        ("select ordinal from log", "`log` has no packets"),
        ("select ordinal frm log", "here:"),
    ] {
        let refused = query(dir, sql, "--format pcapng -o out", 2);
        assert!(refused.err.contains(said), "{sql}: {}", refused.err);
        assert!(!dir.join("out").exists() && !dir.join("out.part").exists(), "{sql}");
    }
    // A mark stands under what there is not, and behind a question that lacks its end.
    for (sql, at) in [
        ("select nosuch from log", 7),
        ("select ordinal from nosuch", 20),
        ("select ordinal + nosuch(ordinal) from log", 17),
        ("select ordinal from log where", 29),
    ] {
        let refused = query(dir, sql, "", 2);
        let marked = format!("here:\n  {sql}\n  {}^", " ".repeat(at));
        assert!(refused.err.contains(&marked), "{sql}: {}", refused.err);
    }
    let refused = query(dir, "select size from log where size = 'abc'", "", 2);
    assert!(refused.err.contains("'abc'") && !refused.err.contains("Optimizer"), "{}", refused.err);
    query(dir, "select ordinal from eth0 where ordinal > 70000", "--format pcapng -o out", 3);
    assert!(!dir.join("out").exists() && !dir.join("out.part").exists());
    fs::write(dir.join("out"), "mine").unwrap();
    let kept = query(dir, "select ordinal from eth0", "--format mcap -o out", 1);
    assert!(kept.err.contains("--force"), "{}", kept.err);
    assert_eq!(fs::read(dir.join("out")).unwrap(), b"mine");
}

#[test]
fn what_is_damaged_is_left_out_and_told() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let sql = "select ordinal from eth0 where ordinal % 2 = 0 and ordinal < 20000";
    query(dir, sql, "--format pcapng -o sound", 0);
    let slots = ends(dir, "slots r.hf --json", 0).lines();
    let slot = slots.iter().filter(|slot| slot["state"] == "live").nth(2).unwrap()["slot"].as_u64().unwrap();
    let file = OpenOptions::new().read(true).write(true).open(dir.join("r.hf")).unwrap();
    let (at, mut byte) = ((1 << 20) + (4 + slot) * (64 << 10) + 16_000, [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let said = query(dir, sql, "--format pcapng -o out", 1);
    assert!(
        said.err.contains("1 damaged place, left out") && said.err.contains("partial element"),
        "{}",
        said.err
    );
    let (sound, left) = (fs::read(dir.join("sound")).unwrap(), fs::read(dir.join("out")).unwrap());
    let (sound, left) = (packets(&sound), packets(&left));
    assert!(left.len() < sound.len() && left.len() > sound.len() / 2);
    let mut all = sound.iter();
    assert!(left.iter().all(|packet| all.any(|other| other == packet)), "never wrong bytes");
    // What is computed over them is no answer.
    let sum = query(dir, "select sum(length(hex(payload))) from eth0 where ordinal < 20000", "", 1);
    assert!(sum.out.is_empty() && sum.err.contains("the answer would be wrong"), "{}{}", sum.out, sum.err);
    // What is damaged is none of them: nothing is said of it.
    query(dir, "select ordinal from eth0 where ordinal >= 19000", "--format pcapng -o -", 0);
}

#[test]
fn what_is_computed_over_a_damaged_slot_is_no_answer_and_leaves_no_file() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let slots = ends(dir, "slots r.hf --json", 0).lines();
    let slot = slots.iter().filter(|slot| slot["state"] == "live").nth(2).unwrap();
    let (number, sequence) = (slot["slot"].as_u64().unwrap(), slot["sequence"].as_u64().unwrap());
    // All of it.
    let file = OpenOptions::new().write(true).open(dir.join("r.hf")).unwrap();
    file.write_all_at(&vec![0xa5; 64 << 10], (1 << 20) + (4 + number) * (64 << 10)).unwrap();
    fs::write(dir.join("mine"), "mine").unwrap();
    let computed = [
        ("select count(*) from eth0 where size > 0", "--format csv"),
        ("select max(ordinal) from eth0", "--format parquet -o out"),
        ("select ordinal from eth0 order by size desc, ordinal limit 70000", "--format csv -o mine --force"),
        (
            "select ordinal from eth0 where ordinal not in (select ordinal from eth0 where size > 0)",
            "--format csv",
        ),
        (
            "select ordinal from eth0 where ordinal not in (select ordinal from eth0 where size > 0)",
            "--format mcap -o out",
        ),
    ];
    for (sql, rest) in computed {
        let said = query(dir, sql, rest, 1);
        assert!(
            said.err.contains("1 damaged slot could not be looked into")
                && said.err.contains(&format!("slot not in ({sequence})")),
            "{sql}: {}",
            said.err
        );
        assert!(said.out.is_empty() && !dir.join("out").exists(), "{sql}: {}", said.out);
    }
    assert_eq!(fs::read(dir.join("mine")).unwrap(), b"mine");
    let left = fs::read_dir(dir).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert!(left.into_iter().all(|name| !name.contains(".part")));
    // A list has all that can be looked into, and so has a file of one.
    let said = query(dir, "select ordinal from eth0 where size > 0", "--format csv -o list", 1);
    assert!(said.err.contains("1 damaged slot could not be looked into"), "{}", said.err);
    let list = fs::read_to_string(dir.join("list")).unwrap().lines().count() as u64 - 1;
    assert!((50_000..60_000).contains(&list), "{list}");
    // As it is told.
    let sound = format!("select count(*) from eth0 where size > 0 and slot not in ({sequence})");
    assert_eq!(query(dir, &sound, "--format csv", 0).out.lines().nth(1), Some(&*list.to_string()));
}

#[test]
fn the_last_elements_are_found_where_it_is_youngest() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let questions: [(&str, Vec<u64>); 8] = [
        ("select ordinal from eth0 order by time desc limit 3", vec![59_999, 59_998, 59_997]),
        ("select ordinal, size from eth0 order by time desc, size limit 2 offset 5", vec![59_994, 59_993]),
        (
            "select ordinal from eth0 where ordinal % 20000 = 7 order by time desc limit 3",
            vec![40_007, 20_007, 7],
        ),
        ("select o from (select ordinal o, time t from eth0) order by t desc limit 2", vec![59_999, 59_998]),
        ("select ordinal from eth0 order by ordinal desc limit 2 offset 59997", vec![2, 1]),
        ("select ordinal from eth0 order by time limit 2", vec![0, 1]),
        ("select ordinal from eth0 where ordinal < 9 order by time desc limit 2", vec![8, 7]),
        ("select ordinal from eth0 where ordinal > 59997 order by time desc limit 9", vec![59_999, 59_998]),
    ];
    // As a file.
    query(dir, questions[0].0, "--format pcapng -o last.pcapng", 0);
    assert_eq!(packets(&fs::read(dir.join("last.pcapng")).unwrap()).len(), 3);
    for (sql, wanted) in &questions {
        let said = query(dir, sql, "--format csv", 0);
        let found: Vec<u64> =
            said.out.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        assert_eq!(&found, wanted, "{sql}");
    }
    let searched = |sql: &str| -> u64 {
        let said = query(dir, &format!("explain analyze {sql}"), "", 0).out;
        let (_, count) = said.split_once("slots_searched=").unwrap();
        count.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let all = searched("select ordinal, time from eth0 order by time desc");
    let last = searched("select * from eth0 order by time desc limit 3");
    // Of 600 seconds, the last 20 of which have only lines: the third look is 256 back.
    assert!(all > 50 && last < all / 2, "{last} of {all}");
    // Beside a recorder by ordinals, too.
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(20_000);
    recording.await_lines(dir, 20_000);
    let said =
        query(dir, "select ordinal from log order by ordinal desc limit 1 offset 7", "--format csv", 0);
    assert_eq!(said.out.lines().nth(1), Some("22992"));
    let all = searched("select ordinal, time from log order by ordinal desc");
    let last = searched("select * from log order by ordinal desc limit 3");
    assert!(all > 50 && last < all / 5, "{last} of {all}");
    recording.end();
}
