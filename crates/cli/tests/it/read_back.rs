//! Recorded data comes back byte for byte, in every form, and damage is an error that names the place (promise 5);
//! the forms are looked at by other people's programs where those are installed.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use common::{documented, ends, folder, holdfast, record, tool};
use filled::{Filler, HEAD, START, STEP, line, packet};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// 3000 lines with a loss in the middle, and 500 packets, on a ring that holds all of it.
fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 16MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(1000).lose(7).packets(500).lines(1993);
    filler.close();
}

fn lines(ordinals: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = HEAD.to_vec();
    ordinals.for_each(|ordinal| bytes.extend_from_slice(format!("{}\n", line(ordinal)).as_bytes()));
    bytes
}

#[test]
fn raw_is_what_came_in() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let said = ends(dir, "read r.hf --stream log -o all.raw --json", 0).json();
    documented("read", [&said]);
    let file = fs::read(dir.join("all.raw")).unwrap();
    assert!(file == lines((0..1000).chain(1007..3000)));
    assert_eq!(said["blake3"], blake3::hash(&file).to_hex().to_string());
    assert_eq!((&said["elements"], &said["gaps"]), (&Value::from(2993), &Value::from(1)));
    assert_eq!((&said["bytes"], &said["damaged"]), (&Value::from(file.len()), &Value::from(0)));
    assert!(!dir.join("all.raw.part").exists());

    let said = ends(dir, "read r.hf --stream log --ordinals 990..1010", 0);
    assert!(said.bytes == lines((990..1000).chain(1007..1010)));
    assert!(said.err.contains("13 elements") && said.err.contains("1 gap inside"), "{}", said.err);
    assert!(said.err.contains(&blake3::hash(&said.bytes).to_hex().to_string()), "{}", said.err);
    // Line n arrived n + 1 steps after the start, ends included.
    let (from, to) = (START + 11 * STEP, START + 20 * STEP);
    let said = ends(dir, &format!("read r.hf --stream log --from {from} --to {to} -o -"), 0);
    assert!(said.bytes == lines(10..20));
}

/// Slots larger than one read, with many chunks of rows.
#[test]
fn large_slots_come_back_too() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 128MiB --slot 8MiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(60_000).lines(20_000).packets(60_000);
    filler.close();
    ends(dir, "check r.hf", 0);
    ends(dir, "read r.hf --stream log -o out", 0);
    assert!(fs::read(dir.join("out")).unwrap() == lines(0..20_000));
    ends(dir, "read r.hf --stream eth0 -o out.pcapng", 0);
    let file = fs::read(dir.join("out.pcapng")).unwrap();
    let mut reader = holdfast_ingest::packet::Reader::new(&file[..]);
    for ordinal in 0..120_000 {
        assert_eq!(reader.next_packet().unwrap().unwrap().data, packet(ordinal));
    }
    assert_eq!(reader.next_packet().unwrap(), None);
    for from in [0u64, 59_990, 70_000, 119_990] {
        let said =
            ends(dir, &format!("read r.hf --stream eth0 --ordinals {from}..{} --format jsonl", from + 10), 0);
        let ordinals: Vec<_> = said.lines().iter().filter_map(|line| line["ordinal"].as_u64()).collect();
        assert_eq!(ordinals, (from..from + 10).collect::<Vec<_>>());
    }
}

#[test]
fn a_file_that_is_there_is_kept_and_one_of_nothing_is_not_made() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (command, code) in [
        ("read r.hf --stream log --ordinals 5000.. -o out", 3),
        ("read r.hf --stream log --ordinals 1000..1007 -o out", 3),
        ("read r.hf --stream log --last 1m -o out", 3),
        ("read r.hf --stream nobody -o out", 3),
        ("read r.hf -o out --format raw", 2),
        ("read r.hf --ordinals 1..2 -o out", 2),
        ("read r.hf --stream log --format pcapng -o out", 2),
        ("read r.hf --stream log -o none/out", 1),
    ] {
        let said = ends(dir, command, code);
        assert!(said.out.is_empty() && said.err.starts_with("holdfast: "), "{command}: {}", said.err);
        assert!(!dir.join("out").exists() && !dir.join("out.part").exists(), "{command}");
    }
    let said = ends(dir, "read r.hf --stream log --ordinals 1000..1007 -o out", 3);
    assert!(said.err.contains("gone, in 1 gap"), "{}", said.err);
    fs::write(dir.join("out"), "mine").unwrap();
    assert!(ends(dir, "read r.hf --stream log -o out", 1).err.contains("--force"));
    assert_eq!(fs::read(dir.join("out")).unwrap(), b"mine");
    ends(dir, "read r.hf --stream log --ordinals 0..1 -o out --force", 0);
    assert!(fs::read(dir.join("out")).unwrap() == lines(0..1));
    ends(dir, "read r.hf --stream log -o /dev/null", 0);
}

#[test]
fn packets_are_read_by_the_tools_of_others() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    ends(dir, "read r.hf --stream eth0 -o all.pcapng", 0);
    let file = fs::read(dir.join("all.pcapng")).unwrap();
    let mut reader = holdfast_ingest::packet::Reader::new(&file[..]);
    for ordinal in 0..500 {
        let read = reader.next_packet().unwrap().unwrap();
        assert_eq!(read.data, packet(ordinal));
        assert_eq!(read.original_len as usize, read.data.len() + 100);
        let arrival = START + (1002 + ordinal as i64) * STEP;
        assert_eq!(read.time.unwrap().0, arrival - 1_000_000_000, "the event time");
    }
    assert_eq!(reader.next_packet().unwrap(), None);
    if let Some(tshark) = tool("tshark") {
        let fields =
            ["frame.time_epoch", "frame.len", "frame.cap_len", "ip.src", "frame.packet_flags_direction"];
        let mut command = Command::new(tshark);
        command.args(["-r", "all.pcapng", "-T", "fields"]).current_dir(dir);
        for field in fields {
            command.args(["-e", field]);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().count(), 500, "{}", String::from_utf8_lossy(&output.stderr));
        let first: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
        assert!(first[0].contains("2026") || first[0].starts_with("1795169109.02"), "{first:?}");
        assert_eq!(first[1..4], ["150", "50", "10.0.0.1"], "{first:?}");
    }
    if let Some(capinfos) = tool("capinfos") {
        let output = Command::new(capinfos).arg("-cT").arg("all.pcapng").current_dir(dir).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("\t500"), "{output:?}");
    }
    if let Some(tcpdump) = tool("tcpdump") {
        let mut read = holdfast(dir);
        read.args(
            "read r.hf --stream eth0 --event --from -100d --ordinals 10..20 --format pcapng -o -".split(' '),
        );
        let mut read = read.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output =
            Command::new(tcpdump).args(["-nr", "-"]).stdin(read.stdout.take().unwrap()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().count(), 10, "{output:?}");
        assert!(text.contains("10.0.0.1.9 > 10.0.0.2.9"), "{text}");
        read.wait().unwrap();
    }
}

#[test]
fn mcap_is_read_by_its_python_package() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    ends(dir, "read r.hf --format mcap -o all.mcap", 0);
    let piped = ends(dir, "read r.hf --format mcap -o -", 0);
    assert!(piped.bytes == fs::read(dir.join("all.mcap")).unwrap(), "the same through a pipe");
    let messages = mcap::MessageStream::new(&piped.bytes).unwrap().count();
    assert_eq!(messages, 2993 + 500);
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package mcap does not look at the export");
        return;
    };
    let script = "
import sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, validate_crcs=True)
    assert reader.get_summary().statistics.message_count == 3493
    logs, ordinals = [], []
    for schema, channel, message in reader.iter_messages(topics=['log'], log_time_order=False):
        assert schema is None and channel.metadata['framing'] == 'lines'
        ordinals.append(message.sequence)
        logs.append(message.data)
        assert message.log_time == message.publish_time
    assert ordinals == list(range(1000)) + list(range(1007, 3000))
    assert logs[5] == b'line 5 xxxxx'
    packets = list(reader.iter_messages(topics=['eth0']))
    assert len(packets) == 500
    assert all(m.publish_time - m.log_time == 10**9 for _, _, m in packets)
    attached = {a.name: a.data for a in reader.iter_attachments()}
    assert attached['log.preamble.1'] == b'# log 1\\n'
    gap, = [m.metadata for m in reader.iter_metadata() if m.name == 'gap']
    assert gap['ordinal'] == '1000' and gap['ordinals'] == '7' and gap['cause'] == 'kernel'
print('sound')
";
    let output = Command::new(python).args(["-c", script, "all.mcap"]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn json_lines_tell_everything_in_order() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let said = ends(dir, "read r.hf --stream log --ordinals 998..1009 --format jsonl", 0).lines();
    let kinds: Vec<&str> = said.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["preamble", "element", "element", "gap", "element", "element"]);
    assert_eq!(said[0]["text"], std::str::from_utf8(HEAD).unwrap());
    assert_eq!(said[1]["text"], line(998));
    assert_eq!((&said[3]["ordinal"], &said[3]["ordinals"]), (&Value::from(1000), &Value::from(7)));
    assert_eq!(said[4]["arrival"], "2026-11-20T10:05:15.02Z");
    let all = ends(dir, "read r.hf --format jsonl", 0).lines();
    assert_eq!(all.iter().filter(|line| line["kind"] == "element").count(), 3493);
    let gaps = ends(dir, "gaps r.hf --json", 0).lines();
    documented("gaps", &gaps);
    assert_eq!((gaps.len(), &gaps[0]["cause"]), (1, &Value::from("kernel")));
    ends(dir, "gaps r.hf --stream eth0", 3);
    let streams = ends(dir, "streams r.hf --json", 0).lines();
    documented("streams", &streams);
    assert_eq!((&streams[0]["received"], &streams[0]["lost"]), (&Value::from(2993), &Value::from(7)));
    assert_eq!(streams[1]["next_ordinal"], 500);
}

#[test]
fn damage_is_named_and_the_rest_is_given() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    ends(dir, "check r.hf", 0);
    let slots = ends(dir, "slots r.hf --json", 0).lines();
    let slot = slots.iter().filter(|slot| slot["state"] == "live").nth(3).unwrap();
    assert!(slot["first"].is_string() && slot["last"].is_string(), "{slot}");
    let number = slot["slot"].as_u64().unwrap();
    let at = (1 << 20) + (4 + number) * (64 << 10) + 30_000;
    let file = OpenOptions::new().read(true).write(true).open(dir.join("r.hf")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let said = ends(dir, "check r.hf", 1);
    assert!(said.out.contains(&format!("slot {number} ")), "{}", said.out);
    let check = ends(dir, "check r.hf --json", 1).lines();
    documented("check", &check);
    assert_eq!((&check[0]["slot"], &check[1]["damaged"]), (&Value::from(number), &Value::from(1)));
    let said = ends(dir, "read r.hf --stream log -o out", 1);
    assert!(
        said.err.contains("1 damaged place, left out") && said.err.contains(&format!("slot {number} ")),
        "{}",
        said.err
    );
    let sound = fs::read(dir.join("out")).unwrap();
    let whole = lines((0..1000).chain(1007..3000));
    assert!(sound.len() < whole.len() && sound.len() > whole.len() / 2);
    let mut wanted = whole.split(|byte| *byte == b'\n');
    assert!(
        sound.split(|byte| *byte == b'\n').all(|line| wanted.any(|other| other == line)),
        "never wrong bytes"
    );
}

#[test]
fn an_interrupted_pipe_is_told_to_be_incomplete_and_a_file_is_gone() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("input"), vec![b'x'; 40 << 20]).unwrap();
    let said =
        record(dir, "r.hf --size 64MiB --source file:input --name big --frame blocks:65536", Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let mut read = holdfast(dir);
    let read = read.args("read r.hf --stream big".split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut read = read.spawn().unwrap();
    let mut out = read.stdout.take().unwrap();
    let mut first = [0];
    out.read_exact(&mut first).unwrap();
    let pid = rustix::process::Pid::from_child(&read);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let ended = read.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let told = said.split(" bytes were written").next().unwrap();
    assert!(said.contains("the output is incomplete") && !said.contains("nothing was written"), "{said}");
    assert_eq!(digits(told), (rest.len() + 1).to_string(), "{said}");
}

#[test]
fn a_pipe_that_closes_early_is_quiet() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output =
        holdfast(dir).args("read r.hf --stream log -o -".split(' ')).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
