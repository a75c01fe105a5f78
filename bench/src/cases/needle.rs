//! A needle in a thousand million elements: the time of `holdfast query` from its start to its end, with a recorder whose
//! bird's-eye view tells of all slots, with one that has just started, and straight from the disk, where nothing is known yet; there
//! also from a disk that gives no more than a share.
//!
//! Elements are 8 bytes: an IPv4 address, which is the attribute that is looked for, and a number. Addresses are uniform among 100,000,
//! which are drawn for each slot from four million even ones; the needle is an odd one in the middle, and there once.

use crate::control_group::{DiskDirection, SlowedDisk};
use crate::program::{Program, holdfast};
use crate::report::{Goal, Report};
use crate::rounds::Rounds;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use holdfast_base::ByteSize;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

const ELEMENT: usize = 8;
/// Distinct addresses in a slot, and in all.
const DISTINCT: u64 = 100_000;
const ADDRESSES: u64 = 4_000_000;
/// Elements over which they are the same, about a slot's.
const STRETCH: u64 = 4 << 20;
const NEEDLE: u32 = 4_000_001;
/// Bytes a second that a search is given of a disk that has others to serve, too.
const SHARE: u64 = 100 << 20;

/// What is asked: for the needle, and for what is in every slot.
const ASKED: [(&str, &str); 2] = [("the needle", "="), ("all others", "<>")];

fn element(number: u64, elements: u64) -> [u8; ELEMENT] {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    // Which of all, by its number among those of its stretch (SplitMix64).
    let mut drawn = (number / STRETCH * DISTINCT + random % DISTINCT).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let address = if number == elements / 3 { NEEDLE } else { ((drawn >> 32) % ADDRESSES * 2) as u32 };
    (u64::from(address) << 32 | number & u64::from(u32::MAX)).to_be_bytes()
}

fn send(input: &mut impl Write, elements: u64) -> Result<(), BenchError> {
    let mut block = Vec::with_capacity(1 << 20);
    for number in 0..elements {
        block.extend_from_slice(&element(number, elements));
        if block.len() == 1 << 20 || number + 1 == elements {
            let sent = input.write_all(&block);
            sent.map_err(|cause| BenchError::program("a pipe to the recorder", cause))?;
            block.clear();
        }
    }
    Ok(())
}

/// Records the elements and measures each way of asking.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let elements: u64 = scale.pick(30_000, 1_000_000_000);
    let ring_bytes: u64 = scale.pick(16 << 20, 20 << 30);
    let place = WorkFolder::with_room(scale.pick(64 << 20, 22 << 30))?;
    let program = holdfast("holdfast", scale)?;
    let ring = place.file("ring");
    let path = ring.display().to_string();
    let said = |arguments: &[&str]| tools::output(&program.display().to_string(), arguments);
    said(&["format", &path, "--size", &ring_bytes.to_string(), "--slot", scale.pick("256KiB", "64MiB")])?;
    let (framed, typed) = (["--name", "bench", "--frame", "fixed:8"], ["--attr", "a:ip=at:0:ipv4"]);
    let record = [&["record", &path, "--source", "stdin"][..], &framed, &typed].concat();
    let mut recorder = Program::start(&program, &record, Stdio::piped(), &place.file("recorder"))?;
    let mut input = recorder.input().ok_or_else(|| BenchError::skipped("no pipe to the recorder"))?;
    recorder.until("it records", |recorder| recorder.said().contains("recording"))?;
    let start = Instant::now();
    send(&mut input, elements)?;
    // The view is asked for what it tells of while the recorder still runs: what is open is searched, too.
    recorder.until("all is recorded", |_| counted(&program, &path).is_ok_and(|count| count == elements))?;
    let took = start.elapsed().as_secs_f64();
    let mut report = Report::new("needle", scale);
    let mut rows = vec![row![
        "searched",
        "asked",
        "ms from start to end",
        "M elements/s",
        "MiB read",
        "MiB/s",
        "to the time of reading that",
        "verdict"
    ]];
    let mut ask = |how: &str,
                   which: usize,
                   share: Option<u64>,
                   begin: &dyn Fn() -> Result<Option<Program>, BenchError>| {
        let (what, is) = ASKED[which];
        let question = format!("select count(*) from bench where a {is} '{}'", Ipv4Addr::from(NEEDLE));
        let right = if which == 0 { 1 } else { elements - 1 };
        let mut read = 0.0;
        let rounds = Rounds::run(scale.pick(1, 5), 1, |_| {
            let recorder = begin()?;
            let (start, before) = (Instant::now(), read_by_children()?);
            let text = said(&["query", &path, &question, "--format", "csv"])?;
            let took = start.elapsed().as_secs_f64();
            read = (read_by_children()? - before) as f64 / f64::from(1 << 20);
            recorder.map_or(Ok(String::new()), |mut recorder| {
                drop(recorder.input());
                recorder.end(&[0])
            })?;
            let answer = text.lines().next_back().and_then(|line| line.trim().parse().ok());
            if answer == Some(right) {
                return Ok(took);
            }
            Err(BenchError::Accounting(format!("Holdfast says {text:?} to {question}, and {right} is right")))
        })?;
        let (seconds, took) = (rounds.of(0).median, rounds.of(0).by(1e3));
        let (rate, reading) =
            (format!("{:.0}", elements as f64 / seconds / 1e6), format!("{:.0}", read / seconds));
        let of_reading = share.map(|share| rounds.of(0).by(share as f64 / read / f64::from(1 << 20)));
        let verdict = match &of_reading {
            Some(ratio) => Goal::AtMost(1.2).verdict(ratio),
            None if which == 0 => Goal::AtMost(1000.0).verdict(&took),
            None => String::new(),
        };
        let of_reading = of_reading.map_or(String::new(), |ratio| ratio.show(2));
        rows.push(row![how, what, took.show(0), rate, format!("{read:.1}"), reading, of_reading, verdict]);
        Ok::<_, BenchError>(())
    };
    let same = || Ok(None);
    ask("beside a recorder, with its view", 0, None, &same)?;
    ask("beside a recorder, with its view", 1, None, &same)?;
    drop(input);
    let said_last = recorder.end(&[0])?;
    if !said_last.contains(&format!("{elements} elements")) || !said_last.contains("nothing lost") {
        return Err(BenchError::Accounting(format!(
            "{elements} elements were sent, and the recorder says {said_last}"
        )));
    }
    ask("beside one that has just started", 0, None, &|| {
        let mut recorder = Program::start(&program, &record, Stdio::piped(), &place.file("again"))?;
        recorder.until("it records", |recorder| recorder.said().contains("recording"))?;
        Ok(Some(recorder))
    })?;
    ask("without one, nothing known", 0, None, &same)?;
    ask("without one, nothing known", 1, None, &same)?;
    if scale == Scale::Real {
        let how = format!("the same, {} a second to be had", ByteSize(SHARE));
        match SlowedDisk::to(SHARE, DiskDirection::Read, &ring) {
            Ok(_slowed) => ask(&how, 0, Some(SHARE), &same)?,
            Err(why @ BenchError::Skipped { .. }) => println!("{why}"),
            Err(error) => return Err(error),
        }
    }
    report.table(&rows);
    report.say(&format!(
        "{elements} elements of {ELEMENT} bytes with one attribute, an address, {:.1} M a second taken; ring of {}, of which {} are written.",
        elements as f64 / took / 1e6,
        ByteSize(ring_bytes),
        ByteSize(written(&program, &path)?),
    ));
    report.finish()
}

/// Bytes that programs have read off the disk that were started here and have ended.
fn read_by_children() -> Result<u64, BenchError> {
    let path = Path::new("/proc/self/io");
    let text = std::fs::read_to_string(path).map_err(BenchError::file(path, "read it"))?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    bytes
        .and_then(|bytes| bytes.parse().ok())
        .ok_or_else(|| BenchError::skipped("no figure of what was read"))
}

fn counted(program: &Path, ring: &str) -> Result<u64, BenchError> {
    let text = tools::output(&program.display().to_string(), &["streams", ring, "--json"])?;
    let stream: Option<serde_json::Value> =
        text.lines().next().and_then(|line| serde_json::from_str(line).ok());
    Ok(stream.and_then(|stream| stream["received"].as_u64()).unwrap_or(0))
}

/// Bytes that the slots with data have.
fn written(program: &Path, ring: &str) -> Result<u64, BenchError> {
    let text = tools::output(&program.display().to_string(), &["status", ring, "--json"])?;
    let status: serde_json::Value = serde_json::from_str(text.trim()).unwrap_or_default();
    Ok(status["slots"]["live"].as_u64().unwrap_or(0) * status["slot_bytes"].as_u64().unwrap_or(0))
}
