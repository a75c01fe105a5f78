//! A search on the emulated drive while that is recorded to at its guaranteed rate: how much of what is read off the drive it gets,
//! and how long it takes, alone and beside others. What is left for reading is shared evenly between searches and reads for data, and
//! evenly among those of a kind.

use holdfast_bench::beside::tally::Tally;
use holdfast_bench::compare::Spread;
use holdfast_bench::disturbers::books::Summary;
use holdfast_bench::disturbers::case::{Case, cases};
use holdfast_bench::disturbers::play::{feed, joined, read};
use holdfast_bench::disturbers::scene::{Recorder, Scene};
use holdfast_bench::program::{Program, holdfast};
use holdfast_bench::report::{Goal, Report};
use holdfast_bench::{Scale, Trouble, row, run};
use std::process::Stdio;
use std::time::Duration;

/// Times that a row is tried before it is given up because the machine is too slow.
const MOST: u32 = 3;

/// Looks at three columns of all elements and at their rows, and finds them all: several of the drive's turns long.
const QUESTION: &str =
    "explain analyze select count(*), sum(a), max(b), max(time) from s where d < 4294967295 and b <> 7";

/// Readers of data, searches, and the share of one search.
const BESIDE: [(&str, usize, usize, f64); 4] = [
    ("nobody", 0, 1, 1.0),
    ("another search", 0, 2, 0.5),
    ("two greedy readers", 2, 1, 0.5),
    ("two greedy readers and another search", 2, 2, 0.25),
];

fn main() -> std::process::ExitCode {
    run(bench)
}

fn bench(scale: Scale) -> Result<(), Trouble> {
    let scene = Scene::new(scale)?;
    let case = cases().into_iter().find(|case| case.small);
    let case = case.ok_or_else(|| Trouble::skipped("there is no case of small elements"))?;
    let mut report = Report::new("shares", scale);
    let mut rows = vec![row![
        "beside the search",
        "searches",
        "ms for a MiB",
        "off the drive in all MiB/s",
        "share of that",
        "to be had",
        "to that",
        "lost",
        "verdict"
    ]];
    for (beside, readers, searches, share) in BESIDE {
        let tried = (0..MOST).find_map(|_| once(&scene, &case, readers, searches).transpose());
        let Some(found) = tried.transpose()? else {
            println!("beside {beside}: given up, the machine is too slow for the model");
            continue;
        };
        let Found { took, all, shares, lost } = found;
        let to_that = Spread::of(shares.iter().map(|got| got / share));
        rows.push(row![
            beside,
            took.len(),
            Spread::of(took).show(0),
            format!("{all:.1}"),
            Spread::of(shares).show(2),
            format!("{share:.2}"),
            to_that.show(2),
            lost,
            Goal::Near(0.2).verdict(&to_that)
        ]);
    }
    report.table(&rows);
    report.finish()
}

/// What came of a run, by search.
struct Found {
    /// Milliseconds for each MiB.
    took: Vec<f64>,
    /// Read off the drive while the first was at work, MiB a second.
    all: f64,
    shares: Vec<f64>,
    /// Bytes.
    lost: u64,
}

/// `None`: the machine was too slow.
fn once(scene: &Scene, case: &Case, readers: usize, searches: usize) -> Result<Option<Found>, Trouble> {
    let scale = scene.scale();
    let program = holdfast("holdfast", scale)?;
    scene.ring(case)?;
    let Recorder { program: recorder, mut input, watch } = scene.record(case, None)?;
    drop(watch);
    let stand = scene.stand();
    stand.be_timed()?;
    let tally = Tally::lasting(scale.pick(scene.amount().time, Duration::from_mins(1)));
    let tally = if scale == Scale::Real { tally.leading() } else { tally };
    let words = ["query", &stand.device().display().to_string(), QUESTION].map(str::to_owned);
    // The first of the searches is looked at; the others go on beside it.
    let search = |number: usize| -> Result<Vec<(f64, f64, f64)>, Trouble> {
        let said = stand.file(&format!("search{number}.said"));
        let mut all = Vec::new();
        // The ring has something by then, and readers are at work.
        tally.wait(|| tally.seconds() >= scale.pick(0.05, 20.0));
        while tally.runs() {
            let (begun, before) = (tally.seconds(), stand.drive().figure("read_bytes")?);
            let mut search = Program::start(&program, &words, Stdio::null(), &said)?;
            if tally.wait(|| search.has_ended()) {
                let (took, off) = (tally.seconds() - begun, stand.drive().figure("read_bytes")? - before);
                all.push((took, bytes_read(&search.end(&[0, 1])?)?, off));
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
        let fed = joined(scope.spawn(|| feed(&mut input, scene.rate(case).0 as f64, case.element(), &tally)));
        tally.stop();
        let found = searches.into_iter().map(joined).collect::<Result<Vec<_>, _>>()?;
        readers.into_iter().try_for_each(joined)?;
        Ok::<_, Trouble>((fed?, found))
    });
    let (sent, found) = result?;
    let too_slow = scale == Scale::Real && (stand.drive().too_slow()? || tally.was_late());
    stand.be_fast()?;
    drop(input);
    let said = recorder.end(&[0])?;
    let summary = Summary::of(&said).ok_or_else(|| Trouble::Accounting(format!("no summary: {said}")))?;
    summary.balances(sent, case.element() as u64)?;
    let first = found.into_iter().next().unwrap_or_default();
    if scale == Scale::Real && summary.lost > 0 {
        return Err(Trouble::Accounting(format!("{} bytes were lost beside a search", summary.lost)));
    }
    if too_slow || (scale == Scale::Real && first.is_empty()) {
        return Ok(None);
    }
    let mib = f64::from(1 << 20);
    let (time, off) = first.iter().fold((0.0, 0.0), |(time, all), (took, _, off)| (time + took, all + off));
    Ok(Some(Found {
        took: first.iter().map(|(took, bytes, _)| took * 1e3 / (bytes / mib)).collect(),
        all: off / mib / time,
        shares: first.iter().map(|(_, bytes, off)| bytes / off).collect(),
        lost: summary.lost,
    }))
}

/// From what the engine says of what it did: large figures to a hundredth.
fn bytes_read(said: &str) -> Result<f64, Trouble> {
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
    found.ok_or_else(|| Trouble::Accounting(format!("no bytes_read in {said}")))
}
