//! Holdfast, with a guarantee and without, `ReductStore` and plain files on this machine's disk, each beside the same number of
//! readers that take all they get and a loop that exports all that is kept: what is lost, and how long it takes until an
//! element can be read by others. Elements of 1 MiB come at a steady rate
//! and wait in a queue of 64 MiB for whoever records them. And packets: Holdfast and `dumpcap` beside as many readers.

use crate::link::{SentFrames, Traffic, VirtualLink};
use crate::packet_recorders::PacketRecorder;
use crate::program::holdfast;
use crate::reader_load::holdfast::{HoldfastRecorder, export};
use crate::reader_load::plain_files::PlainFiles;
use crate::reader_load::reductstore::ReductRecorder;
use crate::reader_load::{Load, LoadOutcome, middle_most_worst, play};
use crate::report::Report;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row};
use holdfast_base::{ByteSize, Rate};
use holdfast_reader::{Item, RingReader, Selection};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Readers at once.
const READERS: usize = 4;

/// Holdfast on a ring that was made for the rate.
const GUARANTEED: &str = "Holdfast, guaranteed";

/// Measures each contestant that is installed.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let load = Load {
        rate: scale.pick(16 << 20, 200 << 20),
        lasts: Duration::from_millis(scale.pick(1000, 120_000)),
        kept: scale.pick(64 << 20, 8 << 30),
        readers: READERS,
        exports: true,
    };
    let mut report = Report::new("readers", scale);
    let mut rows = vec![row![
        "recorded by",
        "came",
        "lost",
        "readable after: middle",
        "99 %",
        "worst",
        "readers got",
        "least slack",
        "longest write, read (allowed)",
        "verdict"
    ]];
    // Measuring a place takes minutes, which is not for a tiny run.
    let guaranteed = scale.pick(&[][..], &[GUARANTEED][..]);
    let others = ["ReductStore", "plain files", "plain files, each element synced"];
    let only = std::env::var("HOLDFAST_ONLY").unwrap_or_default();
    let all = guaranteed.iter().chain(&["Holdfast"]).chain(&others);
    for who in all.filter(|who| who.contains(&only)) {
        match one(who, &load, scale) {
            Ok(outcome) => rows.push(told(who, &outcome)?),
            Err(BenchError::Skipped { reason }) if !who.starts_with("Holdfast") => {
                println!("skipped {who}: {reason}");
            }
            Err(error) if who.starts_with("Holdfast") => return Err(error),
            Err(error) => println!("{who} failed: {error}"),
        }
    }
    report.say(&format!(
        "Elements of 1 MiB at {} for {:.0} s, {} kept, {READERS} readers and an export loop:",
        Rate(load.rate),
        load.lasts.as_secs_f64(),
        ByteSize(load.kept)
    ));
    report.table(&rows);
    if !only.is_empty() {
        return report.finish();
    }
    match packets(scale) {
        Ok(rows) => report.table(&rows),
        Err(BenchError::Skipped { reason }) => println!("skipped packets: {reason}"),
        Err(error) => return Err(error),
    }
    report.finish()
}

fn one(who: &str, load: &Load, scale: Scale) -> Result<LoadOutcome, BenchError> {
    let place = WorkFolder::with_room(load.kept + load.kept / 4)?;
    let folder = place.file("files");
    play(load, |seen| {
        Ok(match who {
            "Holdfast" | GUARANTEED => {
                Box::new(HoldfastRecorder::begin(&place, load, scale, who == GUARANTEED, seen)?)
            }
            "ReductStore" => Box::new(ReductRecorder::begin(&place, load)?),
            "plain files" => Box::new(PlainFiles::begin(&folder, load, false)?),
            _ => Box::new(PlainFiles::begin(&folder, load, true)?),
        })
    })
}

fn ms(lag: Duration) -> String {
    format!("{:.0} ms", lag.as_secs_f64() * 1e3)
}

fn told(who: &str, outcome: &LoadOutcome) -> Result<Vec<String>, BenchError> {
    let lost = outcome.lost as f64 * 100.0 / (outcome.came.max(1)) as f64;
    let broken = match outcome.broken {
        0 => String::new(),
        broken => format!(", cut off {broken} times"),
    };
    let requests = outcome.device.map_or_else(
        || "–".to_owned(),
        |device| {
            let [write, read, most_write, most_read] =
                [device.write, device.read, device.longest_write, device.longest_read]
                    .map(|span| span.as_secs_f64());
            format!("{write:.1} s ({most_write:.1}), {read:.1} s ({most_read:.1})")
        },
    );
    Ok(row![
        who,
        outcome.came,
        format!("{} ({lost:.2} %)", outcome.lost),
        ms(outcome.lags[0]),
        ms(outcome.lags[1]),
        ms(outcome.lags[2]),
        format!("{}{broken}", Rate(outcome.read)),
        outcome.slack.map_or_else(|| "–".to_owned(), |slack| format!("{:.1} s", slack.as_secs_f64())),
        requests,
        outcome.verdict()?
    ])
}

/// Frames of 1400 bytes from a virtual link, recorded while what was recorded is read and exported.
fn packets(scale: Scale) -> Result<Vec<Vec<String>>, BenchError> {
    let link = VirtualLink::make()?;
    let mut rows = vec![row![
        "packets recorded by",
        "came",
        "lost",
        "readable after: middle",
        "99 %",
        "worst",
        "readers got"
    ]];
    for recorder in [PacketRecorder::Holdfast, PacketRecorder::Dumpcap] {
        if let Err(why) = recorder.path(scale) {
            println!("{why}");
            continue;
        }
        let place = WorkFolder::with_room(scale.pick(64 << 20, 8 << 30))?;
        let time = Duration::from_millis(scale.pick(1000, 120_000));
        let rate = Some(scale.pick(5000, 40_000));
        let commands = holdfast("holdfast", scale)?;
        let running = recorder.start(scale, link.near(), place.path())?;
        let file = match recorder {
            PacketRecorder::Holdfast => place.file("ring"),
            _ => place.file("dumpcap.pcapng"),
        };
        let (stop, over, bytes) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        let started = Instant::now();
        let (sent, looks, ended) = std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    again(&stop, &bytes, |buffer| match recorder {
                        PacketRecorder::Holdfast => through(&file, &stop),
                        _ => plainly(&file, buffer, &stop),
                    });
                });
            }
            scope.spawn(|| {
                again(&stop, &bytes, |buffer| match recorder {
                    PacketRecorder::Holdfast => {
                        export(&commands, &file, ["--stream", "link", "--format", "pcapng"], &stop).ok()
                    }
                    _ => plainly(&file, buffer, &stop),
                });
            });
            let looker = scope.spawn(|| look(recorder, &file, started, &over));
            let sent = link.send(Traffic { frame: FRAME, rate, time, most: u64::MAX });
            let ended = started.elapsed();
            stop.store(true, Ordering::Relaxed);
            // What is still on its way.
            std::thread::sleep(Duration::from_millis(400));
            over.store(true, Ordering::Relaxed);
            (sent, looker.join().unwrap_or_default(), ended)
        });
        let sent = sent?;
        let recorded = running.end()?;
        let lost = sent.frames.saturating_sub(recorded.packets);
        let share = lost as f64 * 100.0 / sent.frames.max(1) as f64;
        let read = Rate((bytes.into_inner() as f64 / sent.took.as_secs_f64()) as u64);
        let [middle, most, worst] = lags(&looks, ended.saturating_sub(sent.took), &sent).map(ms);
        rows.push(row![
            recorder.name(),
            sent.frames,
            format!("{lost} ({share:.2} %)"),
            middle,
            most,
            worst,
            read
        ]);
    }
    Ok(rows)
}

/// Bytes of a frame.
const FRAME: usize = 1400;

/// How often is looked what can be read.
const LOOK: Duration = Duration::from_millis(2);

/// How many packets others could read, and when; from time to time until it is over.
fn look(recorder: PacketRecorder, file: &Path, started: Instant, over: &AtomicBool) -> Vec<(Duration, u64)> {
    // Of an Enhanced Packet Block: 32 bytes beside the frame, and what comes before the first one is less than a frame.
    const BLOCK: u64 = 32 + FRAME as u64;
    let mut ring = None;
    let mut looks = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let count = if recorder == PacketRecorder::Holdfast {
            if ring.is_none() {
                ring = RingReader::open(file).ok();
            }
            let status = ring.as_mut().and_then(|ring| ring.status().ok());
            status
                .and_then(|status| status.recorder)
                .map(|recorder| recorder.sources.iter().map(|source| source.packed_elements).sum())
        } else {
            std::fs::metadata(file).ok().map(|file| file.len() / BLOCK)
        };
        looks.extend(count.map(|count| (started.elapsed(), count)));
        std::thread::sleep(LOOK);
    }
    looks
}

/// How long it took until packets that were sent evenly from `begun` on could be read: the middle, the 99th of a hundred, the worst.
/// Those that never could are left out: they are lost, or come when the recorder ends.
fn lags(looks: &[(Duration, u64)], begun: Duration, sent: &SentFrames) -> [Duration; 3] {
    /// So many are one: millions need not be looked at one by one.
    const EACH: usize = 40;
    let mut known = 0;
    let mut lags = Vec::new();
    for (at, count) in looks {
        let count = (*count).min(sent.frames);
        for number in (known..count).step_by(EACH) {
            let due = begun + sent.took.mul_f64(number as f64 / sent.frames.max(1) as f64);
            lags.push(at.saturating_sub(due));
        }
        known = known.max(count);
    }
    middle_most_worst(&mut lags)
}

/// Reads again and again, each time from the beginning.
fn again(stop: &AtomicBool, bytes: &AtomicU64, read: impl Fn(&mut [u8]) -> Option<u64>) {
    let mut buffer = vec![0; 1 << 20];
    while !stop.load(Ordering::Relaxed) {
        bytes.fetch_add(read(&mut buffer).unwrap_or(0), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn through(ring: &Path, stop: &AtomicBool) -> Option<u64> {
    let mut reader = RingReader::open(ring).ok()?;
    let plan = reader.plan(&Selection::ALL).ok()?;
    let mut bytes = 0;
    let mut sink = |item: Item<'_>| {
        if let Item::Element(element) = item {
            bytes += element.data.len() as u64;
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    reader.read(&plan, &mut sink).ok()?;
    Some(bytes)
}

fn plainly(file: &Path, buffer: &mut [u8], stop: &AtomicBool) -> Option<u64> {
    let mut file = File::open(file).ok()?;
    let mut bytes = 0;
    while !stop.load(Ordering::Relaxed) {
        match file.read(buffer).ok()? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    Some(bytes)
}
