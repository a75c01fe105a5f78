//! Holdfast: the real recorder, fed through a pipe at the rate of the cell, and a reader through its socket, as
//! `holdfast read` does it.

use super::MIB;
use super::cell::{ElementSize, PartitionState, ReadDemand};
use super::opponent::Rules;
use super::outcome::ResultStore;
use super::stand::{Stand, StandSetup};
use super::tally::{ReadGate, Tally};
use crate::program::{Program, holdfast};
use crate::{BenchError, tools};
use holdfast_base::{Clock, MAX_AWAY, SystemClock};
use holdfast_media::Seed;
use holdfast_reader::{Item, RingReader, Selection};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often the recorder is asked how it does.
const LOOK: Duration = Duration::from_millis(200);

/// Under this name the drive's profile is kept beside the results, with this in place of the drive's path.
const PROFILE: &str = "drive.profile.json";
const ANYWHERE: &str = "(the emulated drive)";

/// Bytes that the feeder has to give away: varied elements carry their length.
const PIECE: usize = 1 << 20;

/// A ring on the stand's device.
#[derive(Debug)]
pub struct HoldfastContestant {
    device: PathBuf,
    said: PathBuf,
    recorder: PathBuf,
    program: PathBuf,
    size: ElementSize,
    setup: StandSetup,
    /// Whether the ring was made for a guaranteed rate.
    guaranteed: bool,
    /// Bytes of payload in a byte of a slot: an element that does not fit any more leaves a little of it empty.
    share: f64,
    /// Bytes of payload in a byte that is written.
    dense: f64,
    /// Bytes of payload that the ring holds.
    lap: u64,
}

/// What the recorder says at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    bytes: u64,
    lost: u64,
    slots: u64,
    /// The longest time in which it did not look what its source had, in ms.
    away: f64,
}

impl Summary {
    fn of(said: &str) -> Option<Self> {
        let line = said.lines().find(|line| line.starts_with('{'))?;
        let json: serde_json::Value = serde_json::from_str(line).ok()?;
        let stream = &json["streams"][0];
        Some(Self {
            bytes: stream["bytes"].as_u64()?,
            lost: stream["lost_bytes"].as_u64()?,
            slots: json["slots"].as_u64()?,
            away: json["longest_away_ms"].as_f64()?,
        })
    }
}

impl HoldfastContestant {
    /// Makes a ring for `offer` MiB/s on the medium, and ages it if that is wanted. In a tiny run it does its best.
    pub fn prepare(
        stand: &Stand,
        size: ElementSize,
        state: PartitionState,
        offer: u32,
    ) -> Result<Self, BenchError> {
        let setup = *stand.setup();
        let recorder = holdfast("holdfast-recorder", setup.scale)?;
        let program = holdfast("holdfast", setup.scale)?;
        let device = stand.device().to_owned();
        let guaranteed = setup.scale == crate::Scale::Real;
        format(&program, stand, guaranteed.then(|| declared(size, offer)))?;
        let said = stand.file("recorder.said");
        let mut ours = Self {
            device,
            said,
            recorder,
            program,
            size,
            setup,
            guaranteed,
            share: 1.0,
            dense: 1.0,
            lap: setup.bytes,
        };
        if state == PartitionState::Aged {
            let mut running = ours.start_with(&["--on-overload", "block"])?;
            let mut source = PayloadSource::new(size);
            while source.given < setup.bytes * 3 {
                source.give(&mut running.input, PIECE as u64)?;
            }
            source.finish(&mut running.input)?;
            let summary = running.finish()?;
            if summary.lost > 0 || summary.bytes == 0 {
                return Err(BenchError::Accounting(format!("ageing a ring lost something: {summary:?}")));
            }
            ours.dense = ours.measure(stand, f64::from(offer) * MIB)?;
            ours.share = ours.dense;
            ours.lap = (setup.bytes as f64 * ours.share) as u64;
        }
        Ok(ours)
    }

    /// Bytes of payload in a byte that is written, at the pace of a cell: what is said of an element takes more room where
    /// elements come with time between them.
    fn measure(&self, stand: &Stand, medium: f64) -> Result<f64, BenchError> {
        let before = stand.drive().figure("written_bytes")?;
        let mut running = self.start_with(&["--on-overload", "block"])?;
        let mut source = PayloadSource::new(self.size);
        let (begin, time) = (Instant::now(), self.setup.lead_in);
        // About what will come; much less would go to the journal, too.
        let rate = medium * 0.7;
        while begin.elapsed() < time {
            let due = (rate * begin.elapsed().as_secs_f64()) as u64;
            source.give(&mut running.input, due.saturating_sub(source.given))?;
            std::thread::sleep(Duration::from_millis(2));
        }
        source.finish(&mut running.input)?;
        let summary = running.finish()?;
        let written = stand.drive().figure("written_bytes")? - before;
        Ok((summary.bytes as f64 / written.max(1.0)).clamp(0.1, 1.0))
    }

    fn start_with(&self, more: &[&str]) -> Result<RunningRecorder<'_>, BenchError> {
        let frame = match self.size {
            ElementSize::Fixed(bytes) => format!("fixed:{bytes}"),
            ElementSize::Varied => "len32".to_owned(),
        };
        let device = self.device.display().to_string();
        let base = [&device, "--source", "stdin", "--name", "beside", "--frame", &frame, "--json"];
        let memory = self.setup.memory.to_string();
        let mut arguments: Vec<&str> = base.to_vec();
        arguments.extend(more);
        // What a guarantee takes is the recorder's to know.
        if !self.guaranteed {
            arguments.extend(["--memory", &memory]);
        }
        let mut program = Program::start(&self.recorder, &arguments, Stdio::piped(), &self.said)?;
        let input =
            program.input().ok_or_else(|| BenchError::Accounting("the recorder has no input".into()))?;
        // A larger pipe wakes the two less often.
        let _ = rustix::pipe::fcntl_setpipe_size(&input, 1 << 20);
        program.until("recording", |program| program.said().contains("recording "))?;
        Ok(RunningRecorder { ours: self, program, input })
    }

    /// Bytes of payload in a byte that is written.
    pub fn dense(&self) -> f64 {
        self.dense
    }

    /// Starts a recorder for a cell: it drops what it cannot take.
    pub fn start(&self) -> Result<RunningRecorder<'_>, BenchError> {
        let running = self.start_with(&["--on-overload", "drop-newest"])?;
        // It looks through its slots first, which a recorder does once in its life, and not once in a cell.
        let (program, device) = (self.program.to_string_lossy(), self.device.display().to_string());
        let mut looks = 0;
        while !tools::output(&program, &["status", &device, "--json"])?.contains("\"table_complete\":true") {
            looks += 1;
            if looks > 3000 {
                return Err(BenchError::Accounting(
                    "the recorder does not come to the end of its slots".into(),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

/// Payload and elements a second that may come to `offer` MiB/s on the medium. An element takes up to 60 bytes besides its
/// own: of small ones less is promised than fits in fact.
fn declared(size: ElementSize, offer: u32) -> (u64, u64) {
    let medium = u64::from(offer) << 20;
    let payload = if size.mean() < 4096 { medium * size.mean() / (size.mean() + 60) } else { medium };
    (payload, payload.div_ceil(size.mean()))
}

/// Makes the ring, for so many bytes and elements a second if they are given.
fn format(program: &Path, stand: &Stand, declared: Option<(u64, u64)>) -> Result<(), BenchError> {
    let program = program.to_string_lossy();
    let device = stand.device().display().to_string();
    let slot = stand.setup().slot_bytes.to_string();
    let mut arguments = vec!["format", &device, "--slot", &slot, "--name", "beside", "--force"];
    let Some((rate, elements)) = declared else {
        return tools::output(&program, &arguments).map(drop);
    };
    let profile = stand.file("beside.profile.json").display().to_string();
    let kept = ResultStore::usual().folder().join(PROFILE);
    // Once for all cells: the drive stays the same, under whatever name it is mounted.
    let name = stand.drive().path().display().to_string();
    if let Ok(text) = std::fs::read_to_string(&kept) {
        let text = text.replace(ANYWHERE, &name);
        std::fs::write(&profile, text).map_err(BenchError::file(Path::new(&profile), "write it"))?;
    }
    if !Path::new(&profile).is_file() {
        stand.be_timed()?;
        let options = ["--destroy", "--minutes", "2", "--zones", "4", "-o", &profile];
        tools::output(&program, &[&["profile", &device], &options[..]].concat())?;
        let too_slow = stand.drive().too_slow()?;
        stand.be_fast()?;
        if too_slow {
            let _ = std::fs::remove_file(&profile);
            return Err(BenchError::skipped("the machine was too slow while the drive was profiled"));
        }
        let text = std::fs::read_to_string(&profile);
        let text = text.map_err(BenchError::file(Path::new(&profile), "read it"))?.replace(&name, ANYWHERE);
        std::fs::write(&kept, text).map_err(BenchError::file(&kept, "write it"))?;
    }
    let (rate, elements) = (rate.to_string(), elements.to_string());
    let memory = stand.setup().memory.to_string();
    let terms = ["--profile", &profile, "--rate", &rate, "--elements", &elements, "--memory", &memory];
    arguments.extend(terms);
    tools::output(&program, &arguments).map(drop)
}

/// What is fed: as many bytes as wanted, cut where they are due.
#[derive(Debug)]
struct PayloadSource {
    size: ElementSize,
    seed: Seed,
    noise: Vec<u8>,
    /// Left of the varied element under way.
    left: u64,
    /// Bytes of payload given.
    given: u64,
}

impl PayloadSource {
    fn new(size: ElementSize) -> Self {
        let mut noise = vec![0; PIECE];
        Seed::new(3).fill(&mut noise);
        Self { size, seed: Seed::new(1), noise, left: 0, given: 0 }
    }

    /// So many more.
    fn give(&mut self, input: &mut impl Write, mut bytes: u64) -> Result<(), BenchError> {
        let failed = |cause: std::io::Error| {
            BenchError::program("holdfast-recorder", format!("it does not take what it is given: {cause}"))
        };
        while bytes > 0 {
            if self.left == 0 {
                self.left = self.size.next(&mut self.seed);
                if self.size == ElementSize::Varied {
                    input.write_all(&(self.left as u32).to_le_bytes()).map_err(failed)?;
                }
            }
            // Elements of one size need no beginnings: the recorder counts.
            let some = if self.size == ElementSize::Varied { bytes.min(self.left) } else { bytes };
            let some = some.min(self.noise.len() as u64);
            input.write_all(&self.noise[..some as usize]).map_err(failed)?;
            self.left = self.left.saturating_sub(some);
            self.given += some;
            bytes -= some;
        }
        Ok(())
    }

    /// Bytes of the element under way that were not given.
    fn rest(&self) -> u64 {
        match self.size {
            ElementSize::Fixed(bytes) => self.given.next_multiple_of(bytes) - self.given,
            ElementSize::Varied => self.left,
        }
    }

    /// Gives the rest of the element under way.
    fn finish(&mut self, input: &mut impl Write) -> Result<(), BenchError> {
        self.give(input, self.rest())
    }

    /// The same, so many bytes a second: a burst that nobody has declared might be lost.
    fn finish_at(&mut self, input: &mut impl Write, rate: f64) -> Result<(), BenchError> {
        while self.rest() > 0 {
            let some = self.rest().min(PIECE as u64);
            self.give(input, some)?;
            std::thread::sleep(Duration::from_secs_f64(some as f64 / rate.max(1e6)));
        }
        Ok(())
    }
}

/// A recorder at work.
#[derive(Debug)]
pub struct RunningRecorder<'a> {
    ours: &'a HoldfastContestant,
    program: Program,
    input: ChildStdin,
}

impl RunningRecorder<'_> {
    /// Lets it end by itself.
    fn finish(self) -> Result<Summary, BenchError> {
        let Self { program, input, .. } = self;
        drop(input);
        // An element that was not given whole at the end is no failure.
        let said = program.end(&[0])?;
        Summary::of(&said).ok_or_else(|| BenchError::program("holdfast-recorder", said))
    }

    /// Feeds it and reads from it until the time is over; what is to be noted.
    pub fn run(self, stand: &Stand, rules: &Rules, tally: &Tally) -> Result<String, BenchError> {
        let Self { ours, program, mut input } = self;
        let promise = match program.said().lines().find_map(|line| line.split_once("; guaranteed ")) {
            Some((_, promise)) => format!("guaranteed {promise}"),
            None if ours.guaranteed => {
                let said = format!("it guarantees nothing: {}", program.said());
                return Err(BenchError::program("holdfast-recorder", said));
            }
            None => "best effort".to_owned(),
        };
        // The rate is the medium's: what describes small elements is written, too.
        let offer = rules.offer * ours.share;
        let mut source = PayloadSource::new(ours.size);
        let before = stand.drive().figure("written_bytes")?;
        let lost = AtomicU64::new(0);
        let result = std::thread::scope(|scope| {
            let watch = scope.spawn(|| ours.watch(stand, before, &lost, tally));
            let reader = scope.spawn(|| {
                let mut gate = ReadGate::new(tally, rules.ask, None);
                let result =
                    if rules.ask == ReadDemand::Rate(0) { Ok(()) } else { ours.read(&mut gate, offer) };
                if result.is_err() {
                    tally.stop();
                }
                result
            });
            let feed = scope.spawn(|| {
                tally.lead();
                while tally.wait(|| offer * tally.seconds() - source.given as f64 >= 4096.0) {
                    let due = (offer * tally.seconds()) as u64 - source.given;
                    tally.offered(due);
                    source.give(&mut input, due)?;
                }
                Ok(())
            });
            let ended = |result: std::thread::Result<Result<(), BenchError>>| {
                result.unwrap_or_else(|_| Err(BenchError::Accounting("a thread panicked".into())))
            };
            let result = ended(feed.join());
            tally.stop();
            result.and(ended(reader.join())).and(ended(watch.join()))
        });
        if let Err(error) = result {
            return Err(BenchError::program("holdfast-recorder", format!("{error}\n{}", program.said())));
        }
        source.finish_at(&mut input, offer)?;
        let summary = RunningRecorder { ours, program, input }.finish()?;
        if summary.bytes + summary.lost != source.given {
            return Err(BenchError::Accounting(format!(
                "{} bytes were given, and {summary:?}",
                source.given
            )));
        }
        // All that was lost is in the recorder's books, to the byte.
        tally.lost(summary.lost.saturating_sub(lost.load(Relaxed)));
        if summary.away > MAX_AWAY.as_secs_f64() * 1e3 {
            tally.late();
        }
        let (payload, away) = (offer / MIB, summary.away);
        Ok(format!("{promise}; {payload:.1} MiB/s of payload arrived; capture away for {away:.0} ms at most"))
    }
}

impl HoldfastContestant {
    /// Follows what is durable and what is lost. What the drive has written is durable; all but the journal and the ends
    /// of slots is payload.
    fn watch(&self, stand: &Stand, before: f64, lost: &AtomicU64, tally: &Tally) -> Result<(), BenchError> {
        let mut reader = RingReader::open(&self.device).map_err(BenchError::during("opening the ring"))?;
        let look = |reader: &mut RingReader| {
            let streams = reader.streams().map_err(BenchError::during("asking the recorder"))?;
            Ok(streams.first().map(|stream| stream.counters).unwrap_or_default())
        };
        let base: holdfast_format::Counters = look(&mut reader)?;
        let (mut durable, mut next) = (0, 0.0);
        while tally.wait(|| tally.seconds() >= next) {
            next = tally.seconds() + LOOK.as_secs_f64();
            let now = look(&mut reader)?;
            let gone = now.lost_bytes.saturating_sub(base.lost_bytes);
            tally.lost(gone.saturating_sub(lost.swap(gone, Relaxed)));
            let received = now.received_bytes.saturating_sub(base.received_bytes);
            let written = (stand.drive().figure("written_bytes")? - before) * self.dense;
            let all = (written as u64).min(received);
            tally.durable(all.saturating_sub(durable));
            durable = durable.max(all);
        }
        Ok(())
    }

    /// Reads in order, the oldest of the newest quarter first, as somebody does who asks for the last seconds; there again
    /// when that has expired or ends. Of large elements an older one would expire before it is read.
    fn read(&self, gate: &mut ReadGate<'_>, rate: f64) -> Result<(), BenchError> {
        let mut reader = RingReader::open(&self.device).map_err(BenchError::during("opening the ring"))?;
        let (clock, quarter) = (SystemClock::new(), Duration::from_secs_f64(self.lap as f64 / rate / 4.0));
        while gate.may() {
            let mut selection = Selection::ALL;
            selection.range.from = clock.now() - quarter;
            let plan = reader.plan(&selection).map_err(BenchError::during("planning"))?;
            let (mut got, mut damage) = (false, None);
            let mut sink = |item: Item<'_>| match item {
                Item::Element(element) => {
                    gate.got(element.data.len() as u64);
                    got = true;
                    if gate.may() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                }
                Item::Expired { .. } if got => ControlFlow::Break(()),
                Item::Damaged { slot, sequence, place } => {
                    damage = Some(format!("slot {}, sequence {}: {place}", slot.0, sequence.0));
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            };
            reader.read(&plan, &mut sink).map_err(BenchError::during("reading"))?;
            if let Some(damage) = damage {
                return Err(BenchError::Accounting(format!("what was recorded is damaged: {damage}")));
            }
            if !got {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_gives_whole_elements_in_the_end() {
        for size in [ElementSize::Fixed(20), ElementSize::Fixed(3 << 20), ElementSize::Varied] {
            let (mut source, mut taken) = (PayloadSource::new(size), Vec::new());
            source.give(&mut taken, 5_000_001).unwrap();
            source.finish(&mut taken).unwrap();
            let mut rest = &taken[..];
            let mut payload = 0;
            while let ElementSize::Varied = size
                && let Some((head, tail)) = rest.split_at_checked(4)
            {
                let len = u32::from_le_bytes(head.try_into().unwrap()) as usize;
                payload += len as u64;
                rest = &tail[len..];
            }
            match size {
                ElementSize::Fixed(bytes) => {
                    assert_eq!((taken.len() as u64, source.given % bytes), (source.given, 0));
                }
                ElementSize::Varied => {
                    assert_eq!((payload, rest.len()), (source.given, 0));
                }
            }
        }
    }

    #[test]
    fn the_summary_is_understood() {
        let said =
            "x\n{\"slots\":3,\"longest_away_ms\":20.5,\"streams\":[{\"bytes\":70,\"lost_bytes\":2}]}\n";
        assert_eq!(Summary::of(said), Some(Summary { bytes: 70, lost: 2, slots: 3, away: 20.5 }));
    }
}
