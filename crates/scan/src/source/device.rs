//! Large files of one device, and objects of one vault: read block by block, each block with the bytes around it.

use crate::batch::{Batch, Contents, Held, LaneId, Part, Ticket};
use crate::engine::Shared;
use crate::feeder::Stopped;
use crate::item::{Container, Item};
use crate::line_cut::{Cut, LineCutter};
use crate::module::Division;
use crate::source::open_regular;
use holdfast_base::failure::reason;
use holdfast_dataset::RangeRead as _;
use holdfast_vault::{Vault, VaultObject};
use rustix::fs::{Advice, fadvise, major, minor};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

/// Blocks that are asked for ahead of the one being read.
const AHEAD: u64 = 4;

/// Large file or object.
#[derive(Debug)]
pub(crate) enum Large {
    /// File with the size that it had when it was found.
    File { path: PathBuf, size: u64 },
    /// Object of a vault.
    Object { vault: Arc<Vault>, path: String },
}

/// Contents that are read by ranges.
enum Contained {
    File(File),
    Object(VaultObject),
}

impl Contained {
    /// Reads up to the end of `into`, or of the contents.
    fn read(&self, mut offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => {
                let mut filled = 0;
                while filled < into.len() {
                    match file.read_at(&mut into[filled..], offset) {
                        Ok(0) => break,
                        Ok(count) => {
                            filled += count;
                            offset += count as u64;
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(filled)
            }
            Self::Object(object) => {
                let bytes = object.read(offset, into.len())?;
                into[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
        }
    }
}

/// File that is being read.
struct Opened {
    container: Arc<Container>,
    contents: Contained,
    size: u64,
    lane: Arc<LaneId>,
    /// Bytes of a block.
    block: u64,
}

/// File that is being read, and the progress in it.
type Current = Option<(Arc<Opened>, Progress)>;

/// Blocks of a file that were claimed.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Number of the next block.
    next: u64,
    lines: LineCutter,
}

/// Block of a file that a reader has to deliver.
struct Claim {
    opened: Arc<Opened>,
    number: u64,
    cut: Cut,
    buffer: Held,
    last: bool,
    /// Reason why the rest of the file cannot be read.
    failed: Option<String>,
}

/// Large files of one device.
#[derive(Clone)]
pub(crate) struct Device {
    queue: Arc<Mutex<Receiver<Large>>>,
    /// File that all readers of the device read together; unused by a serial module, for which each has one.
    common: Arc<Mutex<Current>>,
    is_shared: bool,
    block: u64,
}

impl Device {
    pub(crate) fn new(queue: Receiver<Large>, division: Division, readers: usize, block: u64) -> Self {
        let is_shared = readers > 1 && division != Division::Serial;
        Self { queue: Arc::new(Mutex::new(queue)), common: Arc::default(), is_shared, block }
    }

    /// Reads files until their queue ends.
    pub(crate) fn read(&self, shared: &Shared<'_>, silo: usize) -> Result<(), Stopped> {
        let mut own = None;
        loop {
            // The buffer comes first: a block that is claimed must be delivered.
            let Some(buffer) = shared.silos.buffer(silo) else { return Err(Stopped) };
            let claimed = if self.is_shared {
                let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
                self.claim(&mut common, shared, silo, buffer)
            } else {
                self.claim(&mut own, shared, silo, buffer)
            };
            let Some(mut claim) = claimed? else { return Ok(()) };
            let part = claim.read();
            let bytes = part.own.len() as u64;
            let last = part.last;
            let ticket = Some(Ticket { lane: Arc::clone(&claim.opened.lane), number: claim.number });
            let batch = Batch { silo, buffer: claim.buffer, contents: Contents::Part(part), ticket };
            shared.silos.put(batch, u64::from(last), bytes);
        }
    }

    /// Claims the next block of the present file, or the first of the next. `None`: the queue has ended.
    fn claim(
        &self,
        current: &mut Current,
        shared: &Shared<'_>,
        silo: usize,
        buffer: Held,
    ) -> Result<Option<Claim>, Stopped> {
        loop {
            if let Some((opened, progress)) = current
                && !opened.is_done(progress, shared.division)
                && !opened.lane.is_skipped()
            {
                return opened.next(progress, shared, silo, buffer).map(Some);
            }
            *current = None;
            let queued = self.queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Some(large) = queued.ok().filter(|_| !shared.silos.is_stopped()) else {
                shared.silos.give(silo, buffer);
                return Ok(None);
            };
            let container = Arc::new(large.container());
            match large.open() {
                Ok((contents, size)) => {
                    let lane = shared.lane(true);
                    let opened = Opened { container, contents, size, lane, block: self.block };
                    *current = Some((Arc::new(opened), Progress::default()));
                }
                Err(cause) => {
                    shared.trouble(&Item::whole(&container), cause);
                }
            }
        }
    }
}

impl Large {
    fn container(&self) -> Container {
        match self {
            Self::File { path, .. } => Container::file(path),
            Self::Object { vault, path } => Container::named(&vault.place(path)),
        }
    }

    fn open(self) -> Result<(Contained, u64), String> {
        match self {
            Self::File { path, size } => {
                let file = open_regular(&path).map_err(|error| reason(&error))?;
                let _ = fadvise(&file, 0, None, Advice::Sequential);
                Ok((Contained::File(file), size))
            }
            Self::Object { vault, path } => {
                let object = vault.object(&path).map_err(|failure| failure.to_string())?;
                let size = object.size();
                Ok((Contained::Object(object), size))
            }
        }
    }
}

impl Claim {
    /// Reads the block and the bytes around it.
    fn read(&mut self) -> Part {
        let Self { opened, number, cut, .. } = self;
        opened.read_ahead(*number, cut.own.start);
        let length = (cut.shown.end - cut.shown.start) as usize;
        let failed = self.failed.take().or_else(|| {
            match opened.contents.read(cut.shown.start, &mut self.buffer[..length]) {
                Ok(count) if count == length => None,
                Ok(_) => Some("it became shorter while it was read".to_owned()),
                Err(error) => Some(reason(&error)),
            }
        });
        let place = |offset: u64| (offset - cut.shown.start) as usize;
        Part {
            container: Arc::clone(&opened.container),
            stamp: None,
            bytes: 0..length,
            offset: cut.shown.start,
            own: place(cut.own.start)..place(cut.own.end),
            first: *number == 0,
            last: self.last,
            piece: cut.piece,
            failed,
        }
    }
}

impl Opened {
    /// True if all blocks are claimed; an empty object has one.
    fn is_done(&self, progress: &Progress, division: Division) -> bool {
        let done = match division {
            Division::Lines => progress.lines.is_done(self.size),
            Division::Serial | Division::Blocks { .. } => progress.next * self.block >= self.size,
        };
        done && progress.next > 0
    }

    /// Claims the next block, with a buffer for it.
    fn next(
        self: &Arc<Self>,
        progress: &mut Progress,
        shared: &Shared<'_>,
        silo: usize,
        mut buffer: Held,
    ) -> Result<Claim, Stopped> {
        let number = progress.next;
        progress.next += 1;
        let mut failed = None;
        let cut = if shared.division == Division::Lines {
            let read = |offset: u64, into: &mut [u8]| self.contents.read(offset, into);
            let cut = progress.lines.cut(self.size, self.block, shared.options.longest_line, &read);
            cut.unwrap_or_else(|error| {
                failed = Some(reason(&error));
                let none = progress.lines.give_up(self.size);
                Cut { own: none.clone(), shown: none, piece: None }
            })
        } else {
            let (before, behind) = shared.division.margins();
            let own = number * self.block..self.size.min((number + 1) * self.block);
            let shown = own.start.saturating_sub(before as u64)..self.size.min(own.end + behind as u64);
            Cut { own, shown, piece: None }
        };
        let length = (cut.shown.end - cut.shown.start) as usize;
        if length > buffer.len() {
            shared.silos.give(silo, buffer);
            buffer = shared.silos.long_buffer(length).ok_or(Stopped)?;
        }
        let last = self.is_done(progress, shared.division);
        Ok(Claim { opened: Arc::clone(self), number, cut, buffer, last, failed })
    }

    fn read_ahead(&self, number: u64, offset: u64) {
        if let Contained::File(file) = &self.contents
            && let Some(length) = NonZeroU64::new(self.block)
        {
            let first = if number == 0 { 0 } else { AHEAD };
            for ahead in first..=AHEAD {
                // A hint: where it is not taken the read waits.
                let _ = fadvise(file, offset + ahead * self.block, Some(length), Advice::WillNeed);
            }
        }
    }
}

/// Name of a device, for the report.
pub(crate) fn name(device: u64) -> String {
    let number = format!("{}:{}", major(device), minor(device));
    let path = std::fs::canonicalize(format!("/sys/dev/block/{number}")).ok();
    let name = path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| format!("device {number}"))
}

/// True if a device has turning disks, which read fastest from one place at a time.
pub(crate) fn is_rotational(device: u64) -> bool {
    let folder = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has its device's queue one folder up.
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|below| std::fs::read_to_string(format!("{folder}/{below}")).ok())
        .is_some_and(|text| text.trim() == "1")
}
