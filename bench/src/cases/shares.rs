//! Searches on the emulated drive while that is recorded to at its guaranteed rate: how much of what is read off the drive each gets,
//! and how long it takes, alone and beside others. What is left for reading is shared evenly between searches and reads for data, and
//! evenly among those of a kind.

use crate::comparison::tally::Tally;
use crate::disturbers::case::{Case, cases};
use crate::disturbers::ring_contents::Summary;
use crate::disturbers::runner::{feed, joined, read};
use crate::disturbers::scene::{FedRecorder, Scene};
use crate::program::{Program, holdfast};
use crate::report::{Goal, Report};
use crate::rounds::Spread;
use crate::{BenchError, Scale, row};
use holdfast_base::ByteSize;
use std::process::Stdio;
use std::time::Duration;

/// Times that a row is tried before it is given up because the machine is too slow.
const MOST: u32 = 3;

/// Looks at three columns of elements and at their rows, and finds nearly all: several of the drive's turns long.
const QUESTION: &str =
    "explain analyze select count(*), max(a), max(b), max(time) from s where d < 4294967295 and b <> 7";

/// Of elements of some seconds, which are on the medium by then: what comes meanwhile is not read, and what is read is not overwritten
/// meanwhile.
const SECONDS: &str = "and time between now() - interval '8 seconds' and now() - interval '5 seconds'";

/// Readers of data, searches, and the share of one search.
const BESIDE: [(&str, usize, usize, f64); 4] = [
    ("nobody", 0, 1, 1.0),
    ("another search", 0, 2, 0.5),
    ("two greedy readers", 2, 1, 0.5),
    ("two greedy readers and another search", 2, 2, 0.25),
];

/// Measures the shares of searches beside readers and other searches.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let scene = Scene::large(scale)?;
    let mut report = Report::new("shares", scale);
    for case in cases().iter().filter(|case| case.small) {
        report.say(&format!(
            "Promised, and written: {:.1} MiB/s of elements of 20 bytes, in slots of {} and a ring of {}.",
            scene.rate(case)?.0 as f64 / f64::from(1 << 20),
            ByteSize(scene.amount().slot),
            ByteSize(scene.stand().setup().bytes)
        ));
        report.table(&table(&scene, case)?);
    }
    report.finish()
}

/// A search beside others, on a ring of its own each time.
fn table(scene: &Scene, case: &Case) -> Result<Vec<Vec<String>>, BenchError> {
    let mut rows = vec![row![
        "beside the search",
        "written MiB/s",
        "read MiB/s",
        "lost",
        "searches",
        "share of what is read",
        "to be had",
        "to that",
        "verdict",
        "ms for a MiB",
        "to alone and what is to be had",
        "verdict"
    ]];
    let mut alone = None;
    for (beside, readers, searches, share) in BESIDE {
        let tried = (0..MOST).find_map(|_| once(scene, case, (readers, searches), share).transpose());
        let Some(found) = tried.transpose()? else {
            println!("beside {beside}: given up");
            continue;
        };
        let ShareFigures { took, all, written, shares, lost } = found;
        let to_that = Spread::of(shares.iter().map(|got| got / share));
        // With a part of the share a search takes as many times as long.
        let alone = *alone.get_or_insert(Spread::of(took.iter().copied()).median * share);
        let time = Spread::of(took.iter().map(|took| took * share / alone));
        rows.push(row![
            beside,
            format!("{written:.1}"),
            format!("{all:.1}"),
            lost,
            took.len(),
            Spread::of(shares).show(2),
            format!("{share:.2}"),
            to_that.show(2),
            Goal::Near(0.2).verdict(&to_that),
            Spread::of(took).show(0),
            time.show(2),
            Goal::Near(0.2).verdict(&time)
        ]);
    }
    Ok(rows)
}

/// What came of a run, by search.
struct ShareFigures {
    /// Milliseconds for each MiB.
    took: Vec<f64>,
    /// Read off the drive while one was at work, MiB a second.
    all: f64,
    /// Written to it, MiB a second.
    written: f64,
    shares: Vec<f64>,
    /// Bytes.
    lost: u64,
}

/// So many readers and searches, for as long as some searches with such a share take. `None`: the machine was too slow.
fn once(
    scene: &Scene,
    case: &Case,
    (readers, searches): (usize, usize),
    share: f64,
) -> Result<Option<ShareFigures>, BenchError> {
    let scale = scene.scale();
    let program = holdfast("holdfast", scale)?;
    scene.ring(case)?;
    let rate = scene.rate(case)?;
    let FedRecorder { program: recorder, mut input, watch } = scene.record(case, None)?;
    drop(watch);
    let stand = scene.stand();
    stand.be_timed()?;
    let tally =
        Tally::lasting(scale.pick(scene.amount().time, Duration::from_secs_f64(25.0 + 120.0 / share)));
    let tally = if scale == Scale::Real { tally.leading() } else { tally };
    let question = scale.pick(QUESTION.to_owned(), format!("{QUESTION} {SECONDS}"));
    let words = ["query", &stand.device().display().to_string(), &question].map(str::to_owned);
    let search = |number: usize| -> Result<Vec<SearchFigures>, BenchError> {
        let said = stand.file(&format!("search{number}.said"));
        let mut all = Vec::new();
        // The ring has something by then, and readers are at work.
        tally.wait(|| tally.seconds() >= scale.pick(0.05, 20.0));
        while tally.runs() {
            let (begun, before) = (tally.seconds(), moved(scene)?);
            let mut search = Program::start(&program, &words, Stdio::null(), &said)?;
            if tally.wait(|| search.has_ended()) {
                let (took, now) = (tally.seconds() - begun, moved(scene)?);
                let bytes = bytes_read(&search.end(&[0, 1])?)?;
                all.push(SearchFigures { took, bytes, read: now.0 - before.0, written: now.1 - before.1 });
            }
        }
        Ok(all)
    };
    let result = std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..readers).map(|_| scope.spawn(|| read(stand.device(), case, &tally))).collect();
        let searches: Vec<_> = (0..searches)
            .map(|number| {
                let search = &search;
                scope.spawn(move || search(number))
            })
            .collect();
        let fed = joined(scope.spawn(|| feed(&mut input, rate.0 as f64, case.element(), &tally)));
        tally.stop();
        let found = searches.into_iter().map(joined).collect::<Result<Vec<_>, _>>()?;
        readers.into_iter().try_for_each(joined)?;
        Ok::<_, BenchError>((fed?, found))
    });
    let (sent, found) = result?;
    let too_slow = scale == Scale::Real && (stand.drive().too_slow()? || tally.was_late());
    stand.be_fast()?;
    drop(input);
    let said = recorder.end(&[0])?;
    let summary = Summary::of(&said).ok_or_else(|| BenchError::Accounting(format!("no summary: {said}")))?;
    summary.balances(sent, case.element() as u64)?;
    if scale == Scale::Real && summary.lost > 0 {
        return Err(BenchError::Accounting(format!("{} bytes were lost beside a search", summary.lost)));
    }
    if too_slow || (scale == Scale::Real && found.iter().any(Vec::is_empty)) {
        println!("once more: {}", if too_slow { "too slow for the model" } else { "no search has ended" });
        return Ok(None);
    }
    let mib = f64::from(1 << 20);
    // Each of them has the same share.
    let all = found.concat();
    let sum = |of: fn(&SearchFigures) -> f64| all.iter().map(of).sum::<f64>();
    let time = sum(|one| one.took);
    Ok(Some(ShareFigures {
        took: all.iter().map(|one| one.took * 1e3 / (one.bytes / mib)).collect(),
        all: sum(|one| one.read) / mib / time,
        written: sum(|one| one.written) / mib / time,
        shares: all.iter().map(|one| one.bytes / one.read).collect(),
        lost: summary.lost,
    }))
}

/// A search that has ended.
#[derive(Clone, Copy)]
struct SearchFigures {
    /// Seconds.
    took: f64,
    /// What it read; what was read off the drive meanwhile by all, and written.
    bytes: f64,
    read: f64,
    written: f64,
}

/// What has been read off the drive, and written to it.
fn moved(scene: &Scene) -> Result<(f64, f64), BenchError> {
    let drive = scene.stand().drive();
    Ok((drive.figure("read_bytes")?, drive.figure("written_bytes")?))
}

/// From what the engine says of what it did: large figures to a hundredth.
fn bytes_read(said: &str) -> Result<f64, BenchError> {
    let found = said.split_once("bytes_read=").and_then(|(_, rest)| {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, unit) = rest.split_at(end);
        let factor = match unit.trim_start().chars().next() {
            Some('K') => 1e3,
            Some('M') => 1e6,
            Some('G' | 'B') => 1e9,
            _ => 1.0,
        };
        Some(number.parse::<f64>().ok()? * factor)
    });
    found.ok_or_else(|| BenchError::Accounting(format!("no bytes_read in {said}")))
}
