//! Runner of simulated hours: plays many seeds and reports losses and margins; or one seed, in words.
//! `holdfast_sim` defines an hour.
#![forbid(unsafe_code)]

use holdfast_base::{ByteSize, Rate};
use holdfast_media::drive::DriveModel;
use holdfast_ring::admit;
use holdfast_sim::{Habit, Scene, Shares, Tightness, Verdict, play};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const HELP: &str = "Plays hours of a ring's life over emulated drives, in virtual time.

  hours --seeds 0..100000 [--threads N]   all of these; a summary
  hours --seed N                          this one, in words
  hours --wild …                          the same, with streams that bring more than they declared
  hours --small …                         the same, in slots for which the drive's whole rate is not counted on
  hours --tightness                       what is admitted against what never lost, by drive, slot and gather
  hours --shares                          what readers get of the head time that writing leaves
";

/// What many hours came to.
#[derive(Clone, Debug, Default)]
struct Summary {
    hours: u64,
    arrived: f64,
    read: f64,
    failed: u64,
    slots: u64,
    commits: u64,
    /// Drives and how often.
    drives: Vec<(&'static str, u64)>,
    /// The least slack, as a share of the time in which a slot fills, and whose.
    tightest: Option<(f64, Duration, u64)>,
    /// The greatest share of the published *durable after*, and whose.
    oldest: Option<(f64, Duration, u64)>,
    /// The greatest share of what others may read before a reader has its turn, and whose.
    turns: Option<(f64, u64)>,
    /// The longest that reads waited and none was begun, and whose.
    starved: Option<(Duration, u64)>,
    /// Hours with all buffers in use at some time.
    filled: u64,
    /// Hours whose load was just what is admitted.
    full: u64,
    wrong: Vec<(u64, String)>,
}

impl Summary {
    fn add(&mut self, scene: &Scene, verdict: &Verdict) {
        self.hours += 1;
        self.arrived += verdict.arrived;
        self.read += verdict.read as f64;
        self.failed += verdict.failed;
        self.slots += verdict.slots;
        self.commits += verdict.commits;
        self.count(scene.drive.name, 1);
        self.filled += u64::from(verdict.most_buffers >= scene.shape.buffers);
        let Ok(granted) = admit(&scene.measured, &scene.load, &scene.shape) else { return };
        self.full += u64::from(granted.used > 990_000);
        let slack = verdict.margin.as_secs_f64() / granted.period.as_secs_f64();
        let aged = verdict.oldest.as_secs_f64() / granted.durable_after.as_secs_f64();
        self.nearer(Some((slack, verdict.margin, scene.seed)), Some((aged, verdict.oldest, scene.seed)));
        self.later(Some((verdict.turns, scene.seed)), Some((verdict.starved, scene.seed)));
        self.wrong.extend(verdict.wrong(scene).map(|why| (scene.seed, why)));
    }

    fn count(&mut self, name: &'static str, hours: u64) {
        match self.drives.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += hours,
            None => self.drives.push((name, hours)),
        }
    }

    fn nearer(&mut self, slack: Option<(f64, Duration, u64)>, aged: Option<(f64, Duration, u64)>) {
        self.tightest = self.tightest.into_iter().chain(slack).min_by(|a, b| a.0.total_cmp(&b.0));
        self.oldest = self.oldest.into_iter().chain(aged).max_by(|a, b| a.0.total_cmp(&b.0));
    }

    fn later(&mut self, turns: Option<(f64, u64)>, starved: Option<(Duration, u64)>) {
        self.turns = self.turns.into_iter().chain(turns).max_by(|a, b| a.0.total_cmp(&b.0));
        self.starved = self.starved.into_iter().chain(starved).max();
    }

    fn join(&mut self, other: Self) {
        self.hours += other.hours;
        self.arrived += other.arrived;
        self.read += other.read;
        self.failed += other.failed;
        self.slots += other.slots;
        self.commits += other.commits;
        self.filled += other.filled;
        self.full += other.full;
        for (name, hours) in other.drives {
            self.count(name, hours);
        }
        self.nearer(other.tightest, other.oldest);
        self.later(other.turns, other.starved);
        self.wrong.extend(other.wrong);
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tib = |bytes: f64| bytes / (1u64 << 40) as f64;
        let Self { hours, slots, commits, failed, full, filled, .. } = self;
        write!(f, "{hours} hours")?;
        for (name, count) in &self.drives {
            write!(f, ", {count} {name}")?;
        }
        writeln!(
            f,
            "\n{full} at 99 % of what is admitted or more; {filled} used all their buffers at some time"
        )?;
        let (arrived, read) = (tib(self.arrived), tib(self.read));
        writeln!(
            f,
            "{arrived:.0} TiB arrived in {slots} slots with {commits} commits; {read:.0} TiB were read, {failed} reads failed"
        )?;
        if let Some((share, slack, seed)) = self.tightest {
            writeln!(
                f,
                "least margin: {share:.2} of the time in which a slot fills ({slack:.2?}, seed {seed})"
            )?;
        }
        if let Some((share, age, seed)) = self.oldest {
            writeln!(
                f,
                "greatest age of data not on the medium: {:.1} % of the published ({age:.2?}, seed {seed})",
                share * 100.0
            )?;
        }
        if let Some((share, seed)) = self.turns {
            writeln!(
                f,
                "most that others were served while a reader waited: {:.1} % of what they may be (seed {seed})",
                share * 100.0
            )?;
        }
        if let Some((longest, seed)) = self.starved {
            writeln!(f, "longest that reads waited and none was begun: {longest:.2?} (seed {seed})")?;
        }
        write!(f, "{} hours went wrong", self.wrong.len())
    }
}

/// Which hours are drawn.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Wild,
    Small,
}

impl Kind {
    fn of(words: &[String]) -> Self {
        let has = |option: &str| words.iter().any(|word| word == option);
        match (has("--wild"), has("--small")) {
            (true, _) => Self::Wild,
            (_, true) => Self::Small,
            _ => Self::Plain,
        }
    }

    fn scene(self, seed: u64) -> Scene {
        match self {
            Self::Plain => Scene::from_seed(seed),
            Self::Wild => Scene::wild_from_seed(seed),
            Self::Small => Scene::small_from_seed(seed),
        }
    }

    /// The option, with a space.
    fn option(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Wild => "--wild ",
            Self::Small => "--small ",
        }
    }
}

fn tell(scene: &Scene) -> ExitCode {
    let verdict = play(scene);
    println!("{scene}\n{verdict:#?}");
    match verdict.wrong(scene) {
        Some(why) => println!("{why}"),
        None => println!("nothing was lost"),
    }
    ExitCode::from(u8::from(verdict.wrong(scene).is_some()))
}

fn many(seeds: &Range<u64>, threads: u64, kind: Kind) -> ExitCode {
    let (next, begun) = (AtomicU64::new(seeds.start), Instant::now());
    let total = Mutex::new(Summary::default());
    let work = || {
        let mut summary = Summary::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let scene = kind.scene(seed);
            let before = summary.wrong.len();
            summary.add(&scene, &play(&scene));
            for (seed, why) in &summary.wrong[before..] {
                eprintln!(
                    "hour {seed}: {why}; again: cargo run --release -p holdfast-sim --bin hours -- {}--seed {seed}",
                    kind.option()
                );
            }
            let done = seed + 1 - seeds.start;
            if done.is_multiple_of(5000) {
                let (all, passed) = (seeds.end - seeds.start, begun.elapsed().as_secs());
                let left = passed * (all - done) / done;
                eprintln!("{done} of {all} in {passed} s, {left} s left");
            }
        }
        total.lock().unwrap_or_else(PoisonError::into_inner).join(summary);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{total}");
    ExitCode::from(u8::from(!total.wrong.is_empty()))
}

fn tightness() {
    println!("| drive | slot | g | admitted MiB/s | never lost MiB/s | share |\n|---|---|---|---|---|---|");
    for (drive, slots) in [(DriveModel::paper(), [128, 256]), (DriveModel::rpm7200(), [256, 512])] {
        for slot in slots {
            for gather in [1, 4, 8] {
                let drive = drive.squeezed(ByteSize::gib(64).0);
                let scene = Scene::steady(drive.clone(), 0.8, ByteSize::mib(slot), gather, Rate(1));
                let tight = Tightness::of(&Scene::adversaries(&scene));
                let mib = |rate: Rate| rate.0 as f64 / f64::from(1 << 20);
                let (admitted, lossless) = (mib(tight.admitted), mib(tight.lossless));
                println!(
                    "| {} | {slot} MiB | {gather} | {admitted:.1} | {lossless:.1} | {:.3} |",
                    drive.name,
                    tight.share()
                );
            }
        }
    }
}

fn shares() {
    println!(
        "| g | quantum | readers | of what writing leaves | of the limit | read MiB/s | lost |\n|---|---|---|---|---|---|---|"
    );
    for (readers, quantum) in [(1, 8 << 20), (4, 8 << 20), (1, 1 << 20), (4, 1 << 20)] {
        for gather in [1, 2, 4, 8] {
            let drive = DriveModel::paper().squeezed(ByteSize::gib(64).0);
            let mut scene = Scene::steady(drive, 0.8, ByteSize::mib(128), gather, Rate(60 << 20))
                .read_by(readers, Habit::Sequential);
            scene.shape.quantum = quantum;
            let verdict = play(&scene);
            let shares = Shares::of(&verdict, scene.lasts);
            println!(
                "| {gather} | {} | {readers} | {:.3} | {:.4} | {:.2} | {:.0} |",
                ByteSize(quantum.into()),
                shares.readers,
                shares.total,
                shares.read.0 as f64 / f64::from(1 << 20),
                verdict.lost
            );
        }
    }
}

fn visits() {
    println!("| visit | read MiB/s | longest read |\n|---|---|---|");
    for times in [1, 4, 16, 64, 256] {
        let drive = DriveModel::paper().squeezed(ByteSize::gib(64).0);
        let mut scene =
            Scene::steady(drive, 0.8, ByteSize::mib(128), 4, Rate(60 << 20)).read_by(4, Habit::Sequential);
        let way = scene.measured.reposition.as_secs_f64() * scene.measured.read.0 as f64;
        scene.visit = (way * f64::from(times)) as u64;
        let verdict = play(&scene);
        let read = Shares::of(&verdict, scene.lasts).read.0 as f64 / f64::from(1 << 20);
        println!(
            "| {times}·s·r, {} | {read:.2} | {:.1?} |",
            ByteSize(scene.visit >> 20 << 20),
            verdict.longest_read
        );
    }
}

fn pauses() {
    println!("| between answer and question | of what writing leaves | read MiB/s |\n|---|---|---|");
    for pause in [0, 1, 3, 10, 30, 100] {
        let drive = DriveModel::paper().squeezed(ByteSize::gib(64).0);
        let mut scene = Scene::steady(drive, 0.8, ByteSize::mib(128), 4, Rate(60 << 20))
            .read_by(1, Habit::Stepwise(f64::from(pause) * 1e-3));
        scene.shape.quantum = 1 << 20;
        let shares = Shares::of(&play(&scene), scene.lasts);
        let read = shares.read.0 as f64 / f64::from(1 << 20);
        println!("| {pause} ms | {:.3} | {read:.2} |", shares.readers);
    }
}

fn range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    let range = from.parse().ok()?..to.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let of = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads =
        of("--threads").map_or(Some(cores), |text| text.parse().ok().filter(|threads| *threads > 0));
    let Some(threads) = threads else {
        eprintln!("hours: --threads takes a number above 0");
        return ExitCode::from(2);
    };
    if words.iter().any(|word| word == "--tightness") {
        tightness();
        return ExitCode::SUCCESS;
    }
    if words.iter().any(|word| word == "--shares") {
        shares();
        visits();
        pauses();
        return ExitCode::SUCCESS;
    }
    let kind = Kind::of(&words);
    let seed = of("--seed").and_then(|text| text.parse().ok());
    match (seed, of("--seeds").and_then(|text| range(text))) {
        (Some(seed), _) => tell(&kind.scene(seed)),
        (None, Some(seeds)) => many(&seeds, threads, kind),
        (None, None) => {
            print!("{HELP}");
            ExitCode::from(2)
        }
    }
}
