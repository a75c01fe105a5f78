//! Large files of one device, and objects of one vault: read block by block, each block with the bytes around it.

use crate::batch::{Batch, Contents, LaneId, Part, Ticket};
use crate::engine::Shared;
use crate::feeder::Stopped;
use crate::item::{Container, Item};
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

/// File that is being read, and its next block.
type Current = Option<(Arc<Opened>, u64)>;

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
            let Some(mut buffer) = shared.silos.buffer(silo) else { return Err(Stopped) };
            let claimed = if self.is_shared {
                self.claim(&mut self.common.lock().unwrap_or_else(PoisonError::into_inner), shared)
            } else {
                self.claim(&mut own, shared)
            };
            let Some((opened, number)) = claimed else {
                shared.silos.give(silo, buffer);
                return Ok(());
            };
            let part = opened.part(number, shared.division, &mut buffer);
            let bytes = part.own.len() as u64;
            let last = part.last;
            let ticket = Some(Ticket { lane: Arc::clone(&opened.lane), number });
            let batch = Batch { silo, buffer, contents: Contents::Part(part), ticket };
            shared.silos.put(batch, u64::from(last), bytes);
        }
    }

    /// Claims the next block of the present file, or the first of the next.
    fn claim(&self, current: &mut Current, shared: &Shared<'_>) -> Option<(Arc<Opened>, u64)> {
        loop {
            if let Some((opened, next)) = current
                && *next < opened.blocks()
                && !opened.lane.is_skipped()
            {
                let claimed = (Arc::clone(opened), *next);
                *next += 1;
                return Some(claimed);
            }
            *current = None;
            let large = self.queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()?;
            if shared.silos.is_stopped() {
                return None;
            }
            let container = Arc::new(large.container());
            match large.open() {
                Ok((contents, size)) => {
                    let lane = shared.lane(true);
                    *current =
                        Some((Arc::new(Opened { container, contents, size, lane, block: self.block }), 0));
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

impl Opened {
    /// Number of blocks, one for an empty object.
    fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block).max(1)
    }

    /// Reads a block and the bytes around it.
    fn part(&self, number: u64, division: Division, buffer: &mut [u8]) -> Part {
        let (before, behind) = match division {
            Division::Serial => (0, 0),
            Division::Blocks { before, behind } => (before as u64, behind as u64),
        };
        let own = number * self.block..self.size.min((number + 1) * self.block);
        let from = own.start.saturating_sub(before);
        let end = self.size.min(own.end + behind);
        self.read_ahead(number);
        let read = self.contents.read(from, &mut buffer[..(end - from) as usize]);
        let failed = match read {
            Ok(count) if count as u64 == end - from => None,
            Ok(_) => Some("it became shorter while it was read".to_owned()),
            Err(error) => Some(reason(&error)),
        };
        Part {
            container: Arc::clone(&self.container),
            stamp: None,
            bytes: 0..(end - from) as usize,
            offset: from,
            own: (own.start - from) as usize..(own.end - from) as usize,
            first: number == 0,
            last: number + 1 >= self.blocks(),
            failed,
        }
    }

    fn read_ahead(&self, number: u64) {
        if let Contained::File(file) = &self.contents
            && let Some(length) = NonZeroU64::new(self.block)
        {
            let first = if number == 0 { 0 } else { AHEAD };
            for ahead in first..=AHEAD {
                // A hint: where it is not taken the read waits.
                let _ = fadvise(file, (number + ahead) * self.block, Some(length), Advice::WillNeed);
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
