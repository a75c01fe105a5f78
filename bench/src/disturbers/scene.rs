//! A ring with terms on the emulated drive, and the real recorder on that, fed at the rate of the terms.

use super::case::Case;
use crate::comparison::stand::{Stand, StandSetup};
use crate::program::{Program, holdfast};
use crate::{BenchError, Scale};
use holdfast_attributes::Schema;
use holdfast_base::{ByteSize, Clock as _, Rate, RingId, SystemClock, Timestamp};
use holdfast_format::{ElementLoad, Geometry, Key, Measured, Terms};
use holdfast_media::drive::DriveModel;
use holdfast_media::{Access, Device, PlainDisk, Seed};
use holdfast_reader::RingReader;
use holdfast_ring::{Declared, Load, NewRing, Shape, admit, create, load, most_below};
use std::ffi::OsString;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

impl Case {
    /// Bytes of an element.
    pub fn element(&self) -> usize {
        if self.small { 20 } else { 64 << 10 }
    }

    /// What is read of each.
    fn schema(&self) -> Result<Schema, BenchError> {
        let four = ["a:uint=at:0:u64le", "b:uint=at:8:u64le", "c:uint=at:0:u32le", "d:uint=at:16:u32le"];
        Schema::typed(&four[..if self.small { 4 } else { 0 }]).map_err(BenchError::during("a schema"))
    }

    /// What an element takes beside its payload.
    fn each(&self) -> Result<ElementLoad, BenchError> {
        Ok(self.schema()?.load(Some(self.element() as u32)))
    }

    /// What its stream declares at such a rate.
    fn declared(&self, rate: Rate, each: ElementLoad) -> Declared {
        let burst = if self.small { SMALL_BURST } else { BURST };
        Declared { rate, elements: rate.0.div_ceil(self.element() as u64), burst, each }
    }
}

/// What may come at once beyond the rate: a feeder that was kept waiting catches up.
const BURST: ByteSize = ByteSize(8 << 20);

/// Of small elements, which are several times as much on the medium.
const SMALL_BURST: ByteSize = ByteSize(1 << 20);

/// The drive, and what a ring on it is to carry.
#[derive(Debug)]
pub struct Scene {
    stand: Stand,
    scale: Scale,
    amount: CaseSizes,
}

/// Sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct CaseSizes {
    /// Of a slot.
    pub slot: u64,
    /// Payload a second.
    pub rate: Rate,
    /// How long a case takes, unless its disturber takes longer.
    pub time: Duration,
}

impl CaseSizes {
    fn of(scale: Scale, larger: u64) -> Self {
        match scale {
            Scale::Tiny => Self { slot: 8 << 20, rate: Rate(40 << 20), time: Duration::from_millis(300) },
            // 60 MiB/s of the paper, from the outer third of its drive.
            Scale::Real => {
                Self { slot: larger * (32 << 20), rate: Rate(60 << 20), time: Duration::from_secs(15) }
            }
        }
    }
}

impl Scene {
    /// The emulated drive of the paper, a partition of it under a loop device: as many slots as ten seconds of standing still take.
    pub fn new(scale: Scale) -> Result<Self, BenchError> {
        Self::with(scale, CaseSizes::of(scale, 1), 72)
    }

    /// The same with larger slots, and for two minutes.
    pub fn large(scale: Scale) -> Result<Self, BenchError> {
        Self::with(scale, CaseSizes::of(scale, 2), 110)
    }

    fn with(scale: Scale, amount: CaseSizes, slots: u64) -> Result<Self, BenchError> {
        let slot_bytes = amount.slot;
        let bytes = scale.pick(45, slots) * slot_bytes;
        let time = Duration::ZERO;
        let setup = StandSetup { bytes, slot_bytes, memory: 0, sync_bytes: 0, time, lead_in: time, scale };
        let stand = Stand::new(setup)?;
        whole_requests(stand.device());
        Ok(Self { stand, scale, amount })
    }

    /// Drive, device and folder.
    pub fn stand(&self) -> &Stand {
        &self.stand
    }

    /// How much is done.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Sizes.
    pub fn amount(&self) -> CaseSizes {
        self.amount
    }

    /// Payload a second; of small elements as much as is admitted.
    pub fn rate(&self, case: &Case) -> Result<Rate, BenchError> {
        let rate = self.amount.rate;
        if !case.small {
            return Ok(rate);
        }
        let (measured, each) = (self.measured(case), case.each()?);
        let admitted = |payload| {
            admit(&measured, &self.load(&case.declared(Rate(payload), each)), &self.shape()).is_ok()
        };
        Ok(Rate(most_below(rate.0, admitted)))
    }

    /// What it comes to on the medium at worst.
    fn load(&self, declared: &Declared) -> Load {
        load(&[*declared], ByteSize(self.amount.slot))
    }

    fn shape(&self) -> Shape {
        let (slot, flush) = (ByteSize(self.amount.slot), Duration::from_secs(1));
        Shape { slot, flush, gather: 4, quantum: 1 << 20, buffers: u32::MAX }
    }

    /// What the drive's model says of it, with the stalls that the case has profiled.
    fn measured(&self, case: &Case) -> Measured {
        let model = DriveModel::paper().part(0.3, self.stand.setup().bytes);
        Measured {
            at: Timestamp(1),
            write: model.least_write(0.0..1.0),
            read: model.least_read(0.0..1.0),
            // Slots of a tiny run are as small as they may be.
            reposition: self.scale.pick(Duration::from_millis(2), model.worst_reposition()),
            commit: Duration::from_millis(2),
            read_error: Duration::from_millis(100),
            // As long as they are in a tiny run.
            stall: self.scale.pick(case.stall / 100, case.stall),
            stalled: case.stalled,
            parallel: 1,
            // Half of what `bench elements` sees.
            elements: 5_000_000,
            cells: 20_000_000,
        }
    }

    /// The terms of a case's ring.
    fn terms(&self, case: &Case) -> Result<Terms, BenchError> {
        let slot = self.amount.slot;
        let declared = case.declared(self.rate(case)?, case.each()?);
        let Declared { rate, elements, burst, each } = declared;
        let measured = self.measured(case);
        let asked = self.load(&declared);
        let shape = self.shape();
        let granted = admit(&measured, &asked, &shape).map_err(BenchError::during("admitting the rate"))?;
        let memory = ByteSize(u64::from(granted.buffers) * slot);
        Ok(Terms {
            measured,
            rate,
            elements,
            burst,
            gather: shape.gather,
            quantum: shape.quantum,
            memory,
            each,
        })
    }

    /// Makes a new ring for a case; the slot buffers that its terms take, if it has any.
    pub fn ring(&self, case: &Case) -> Result<u64, BenchError> {
        let slot = self.amount.slot;
        let terms = self.terms(case)?;
        let buffers = terms.memory.0 / slot;
        self.stand.be_fast()?;
        let device = Device::open(self.stand.device(), Access::Own);
        let device = device.map_err(BenchError::during("opening the device"))?;
        let geometry = Geometry::for_lane(self.stand.setup().bytes, slot, Vec::new());
        let geometry = geometry.map_err(BenchError::during("dividing the device"))?;
        let now = SystemClock::new().now();
        let mut key = Seed::new(now.0.unsigned_abs());
        let (mut ring, mut secret) = ([0; 16], [0; 32]);
        key.fill(&mut ring);
        key.fill(&mut secret);
        let plain = NewRing::plain(RingId(ring), Key(secret), "disturbed", geometry);
        let new = NewRing { terms: Some(terms), ..plain };
        create(&mut PlainDisk::new(device, 1), new, now).map_err(BenchError::during("making the ring"))?;
        Ok(buffers)
    }

    /// Starts a recorder for a case, behind a shell's words if there are any, and waits until it answers.
    pub fn record(&self, case: &Case, before: Option<&str>) -> Result<FedRecorder, BenchError> {
        let path = holdfast("holdfast-recorder", self.scale)?;
        let device = self.stand.device().display().to_string();
        let frame = format!("fixed:{}", case.element());
        let mut words: Vec<OsString> = Vec::new();
        let mut program = path.clone();
        if let Some(before) = before {
            program = "/bin/sh".into();
            let script = format!("{before}\nexec \"$@\"");
            words.extend(["-c".into(), script.into(), "sh".into(), path.into()]);
        }
        let options = [&device, "--source", "stdin", "--name", "s", "--frame", &frame, "--json"];
        words.extend(options.map(OsString::from));
        words.extend(["--on-overload", "drop-newest"].map(OsString::from));
        for attribute in case.schema()?.attributes() {
            words.extend(["--attr".into(), attribute.to_string().into()]);
        }
        words.extend(case.realtime.then(|| "--realtime".into()));
        let said = self.stand.file("recorder.said");
        let mut program = Program::start(&program, &words, Stdio::piped(), &said)?;
        let input =
            program.input().ok_or_else(|| BenchError::Accounting("the recorder has no input".into()))?;
        let _ = rustix::pipe::fcntl_setpipe_size(&input, 1 << 20);
        let mut reader = None;
        program.until("recording", |_| {
            reader = RingReader::open(self.stand.device()).ok().filter(RingReader::is_live);
            reader.is_some()
        })?;
        let watch = reader.ok_or_else(|| BenchError::Accounting("the recorder went away".into()))?;
        Ok(FedRecorder { program, input, watch })
    }
}

/// A loop device passes on more at once than the drive below takes in one request. Where the second of two fails, it says
/// that all was written: no drive does that, and what was torn so would be found as damage.
fn whole_requests(device: &Path) {
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let _ = std::fs::write(format!("/sys/class/block/{name}/queue/max_sectors_kb"), "1024");
}

/// A recorder at work.
#[derive(Debug)]
pub struct FedRecorder {
    /// It.
    pub program: Program,
    /// What it is fed through.
    pub input: ChildStdin,
    /// A client that was there before all others.
    pub watch: RingReader,
}
