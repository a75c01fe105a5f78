//! Three sites with links between: files written and read with one catalog, and with synchronous and asynchronous replicas of it
//! (tables 1 to 4 of the paper on `PetaShare`), and the lag of replication.

use crate::program::holdfast;
use crate::report::{Goal, Report};
use crate::rounds::Spread;
use crate::shipping::shaped_proxy::LinkShape;
use crate::sites::collaboration::Collaboration;
use crate::sites::lag;
use crate::sites::paper::{FILES, SIZES, TABLES};
use crate::sites::scenario::{LOCAL, REMOTE, Scenario};
use crate::{BenchError, Scale, row};
use bytes::Bytes;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that a file in memory takes at least.
const PAGE: u64 = 4096;

/// Rate of a link in each direction.
const MEGABITS: u32 = 1000;

/// Operations per second of the lag under load.
const RATE: u64 = 5000;

/// Longest lag of an idle site in milliseconds.
const IDLE_LAG_MS: f64 = 1000.0;

/// Longest lag under load in seconds.
const LOADED_LAG: f64 = 5.0;

/// Settings of a run.
struct Stand {
    holdfast: PathBuf,
    scale: Scale,
    files: u64,
    latency: Duration,
}

/// Seconds of the four tables.
type Seconds = [f64; TABLES.len()];

/// Number in a variable of the environment, which a tiny run does not read.
fn setting(scale: Scale, name: &str, tiny: u64, usual: u64) -> Result<u64, BenchError> {
    let Some(text) = std::env::var(name).ok().filter(|_| scale == Scale::Real) else {
        return Ok(scale.pick(tiny, usual));
    };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| BenchError::skipped(format!("{name} is `{text}`: give a whole number above 0")))
}

/// Contents from the random source of the system.
fn random(bytes: u64) -> Result<Bytes, BenchError> {
    let source = Path::new("/dev/urandom");
    let mut contents = vec![0; bytes as usize];
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut contents));
    read.map_err(BenchError::file(source, "read it"))?;
    Ok(contents.into())
}

impl Stand {
    fn link(&self) -> LinkShape {
        LinkShape { megabits: Some(MEGABITS), round_trip: 2 * self.latency, flip_after: None }
    }

    /// Writes and reads files in one scenario, with new sites.
    fn measure(&self, scenario: Scenario, files: &[Bytes]) -> Result<Seconds, BenchError> {
        let contents = files.iter().map(|file| (file.len() as u64).max(PAGE)).sum();
        let sites = Collaboration::start(&self.holdfast, contents, self.link())?;
        scenario.prepare(&sites)?;
        let written = [REMOTE, LOCAL].map(|at| scenario.write(&sites, at, files));
        scenario.settle(&sites)?;
        let read = [REMOTE, LOCAL].map(|at| scenario.read(&sites, at, files));
        let ([write_remote, write_local], [read_remote, read_local]) = (written, read);
        Ok([write_remote?, write_local?, read_remote?, read_local?])
    }

    /// Measures all scenarios with one size of files: with many of them, and with one of their size.
    fn size(&self, bytes: u64) -> Result<[[Seconds; Scenario::ALL.len()]; 2], BenchError> {
        let contents = random(bytes * self.files)?;
        let file = |number: u64| contents.slice((number * bytes) as usize..((number + 1) * bytes) as usize);
        let many: Vec<Bytes> = (0..self.files).map(file).collect();
        let mut seconds = [[[0.0; TABLES.len()]; Scenario::ALL.len()]; 2];
        for (of, files) in seconds.iter_mut().zip([&many[..], std::slice::from_ref(&contents)]) {
            for (of, scenario) in of.iter_mut().zip(Scenario::ALL) {
                *of = self.measure(scenario, files)?;
            }
        }
        Ok(seconds)
    }
}

fn ratios(seconds: [f64; 3]) -> [f64; 2] {
    let [none, synchronous, asynchronous] = seconds;
    [none / asynchronous, synchronous / asynchronous]
}

/// Measures the paper's tables 1 to 4.
fn files(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let measured: Vec<_> = SIZES.iter().map(|(_, bytes)| stand.size(*bytes)).collect::<Result<_, _>>()?;
    report.say(&format!(
        "Seconds for {} files, one after the other, and for one file of their size, in three scenarios. *None*: the catalog is \
         at a third site only; a write sends the bytes to the resource and makes the entry there, a read asks there first. \
         *Synchronous*: after each file that it has written the client asks all sites until they have the same operations. \
         *Asynchronous*: the client returns when its site has the file; reads are the same in both. Remote files are read by \
         the client's own site. The paper's seconds are for {FILES} files, in brackets, and its ratios are the goals.",
        stand.files
    ));
    for (at, table) in TABLES.iter().enumerate() {
        report.say(&format!("{}:", table.title));
        let mut rows = vec![row![
            "files",
            "none",
            "synchronous",
            "asynchronous",
            "none to asynchronous",
            "synchronous to asynchronous"
        ]];
        for ((name, bytes), (measured, paper)) in SIZES.iter().zip(measured.iter().zip(table.seconds)) {
            let one = format!("{} MB, one file", (bytes * stand.files) as f64 / 1e6);
            let names = [format!("{name}, {} files", stand.files), one];
            for (name, (measured, paper)) in names.into_iter().zip(measured.iter().zip(paper)) {
                let ours = measured.map(|of| of[at]);
                let seconds = ours.iter().zip(paper).map(|(ours, paper)| format!("{ours:.2} ({paper})"));
                let ratios = ratios(ours).into_iter().zip(ratios(paper)).map(|(ours, paper)| {
                    let goal = Goal::AtLeast((paper * 100.0).round() / 100.0);
                    format!("{ours:.2} {}", goal.verdict(&Spread::of([ours])))
                });
                rows.push([name].into_iter().chain(seconds).chain(ratios).collect());
            }
        }
        report.table(&rows);
    }
    Ok(())
}

/// Measures the lag of replication, idle and under load.
fn lags(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let scale = stand.scale;
    let sites = Collaboration::start(&stand.holdfast, PAGE << 10, stand.link())?;
    sites.join()?;
    let idle = Spread::of(lag::idle(&sites, scale.pick(2, 50))?);
    let (rate, time) = scale.pick((100, Duration::from_millis(200)), (RATE, Duration::from_secs(30)));
    let mut loaded = lag::loaded(&sites, rate, time)?;
    loaded.ages.sort_unstable_by(f64::total_cmp);
    let ages = Spread::of(loaded.ages.iter().copied());
    let late = loaded.ages.get(loaded.ages.len() * 95 / 100).copied().unwrap_or(0.0);
    report.say(&format!(
        "Lag of replication: the time until the next site has a single change of an attribute, and the age of the oldest change \
         that it lacks while the first site makes {rate} changes per second, each by a request of its own, for {} s.",
        time.as_secs_f64()
    ));
    let mut rows = vec![row!["load", "changes/s", "median", "95 %", "most", "rest", "verdict"]];
    rows.push(row![
        "idle",
        "",
        format!("{:.0} ms", idle.median),
        "",
        format!("{:.0} ms", idle.most),
        "",
        Goal::AtMost(IDLE_LAG_MS).verdict(&Spread::of([idle.most]))
    ]);
    rows.push(row![
        "changes",
        format!("{:.0}", loaded.rate),
        format!("{:.2} s", ages.median),
        format!("{late:.2} s"),
        format!("{:.2} s", ages.most),
        format!("{:.2} s", loaded.rest),
        Goal::AtMost(LOADED_LAG).verdict(&Spread::of([ages.most]))
    ]);
    report.table(&rows);
    Ok(())
}

/// Measures three sites with links between.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let stand = Stand {
        holdfast: holdfast("holdfast", scale)?,
        scale,
        files: setting(scale, "HOLDFAST_SITES_FILES", 2, FILES)?,
        latency: Duration::from_millis(setting(scale, "HOLDFAST_SITES_LATENCY_MS", 1, 20)?),
    };
    let mut report = Report::new("sites", scale);
    report.say(&format!(
        "Three sites in memory; each is behind a link of {MEGABITS} Mbit/s and {} ms one way, but for the client's own site.",
        stand.latency.as_millis()
    ));
    files(&stand, &mut report)?;
    lags(&stand, &mut report)?;
    report.finish()
}
