//! Programs, amounts and files of a bench of shipping, and whole runs of a shipper between them.
//! Not here: the tables and their goals.

use super::archive_site::{ArchiveSite, Shipped, Shipper, ShipperSetup};
use super::peers::Sent;
use super::shaped_proxy::{LinkShape, ShapedProxy};
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes that a file in memory takes at least.
const PAGE: u64 = 4096;

/// Seconds that a file fills the link.
pub const SECONDS: u64 = 5;

/// Programs and amounts of a run.
#[derive(Debug)]
pub struct Stand {
    /// Path of the program `holdfast`.
    pub holdfast: PathBuf,
    /// Program `curl`, if it is installed.
    pub curl: Option<PathBuf>,
    /// Program `rclone`, if it is installed.
    pub rclone: Option<PathBuf>,
    /// Program `rsync`, if it is installed.
    pub rsync: Option<PathBuf>,
    /// Amount of work of a run.
    pub scale: Scale,
    /// Longest time of one measurement.
    pub deadline: Duration,
}

impl Stand {
    /// Number of rounds of a comparison.
    pub fn rounds(&self) -> usize {
        self.scale.pick(1, 3)
    }

    /// Bytes of a file that fills a link for [`SECONDS`], a hundredth of it in a tiny run.
    pub fn fill(&self, megabits: u32) -> u64 {
        u64::from(megabits) * 1_000_000 / 8 * SECONDS / self.scale.pick(100, 1)
    }

    /// Ships a folder to a new site through a link.
    pub fn ship(
        &self,
        source: &Source,
        link: LinkShape,
        setup: ShipperSetup,
    ) -> Result<(Shipped, Sent), BenchError> {
        let site = ArchiveSite::start(&self.holdfast, source.space())?;
        let proxy = ShapedProxy::start(site.address(), link)?;
        let shipper = Shipper::start(&self.holdfast, &source.folder(), proxy.address(), setup)?;
        let totals = self.finish(shipper, source)?;
        // Headers of requests and bytes that were sent again are no contents.
        let contents = source.bytes as f64 / proxy.bytes_up() as f64;
        let sent = Sent { took: totals.took, sustained: proxy.sustained() * contents };
        Ok((totals, sent))
    }

    /// Ships a folder to a new site without a link between. Returns the time of the whole run.
    pub fn ship_directly(&self, source: &Source, setup: ShipperSetup) -> Result<Duration, BenchError> {
        let site = ArchiveSite::start(&self.holdfast, source.space())?;
        let shipper = Shipper::start(&self.holdfast, &source.folder(), site.address(), setup)?;
        Ok(self.finish(shipper, source)?.took)
    }

    /// Waits for the end of a shipper that has to deliver all files.
    fn finish(&self, shipper: Shipper, source: &Source) -> Result<Shipped, BenchError> {
        let totals = shipper.finish(self.deadline)?;
        if totals.files == source.files {
            return Ok(totals);
        }
        Err(BenchError::accounting(format!("{} of {} files are there", totals.files, source.files)))
    }
}

/// Files with random bytes, in memory.
#[derive(Debug)]
pub struct Source {
    place: WorkFolder,
    /// Number of all files.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

impl Source {
    /// Makes files of the same size.
    pub fn make(files: u64, bytes_each: u64) -> Result<Self, BenchError> {
        let bytes = files * bytes_each;
        let place = WorkFolder::in_memory(bytes.max(files * PAGE))?;
        let source = Self { place, files, bytes };
        let folder = source.folder();
        fs::create_dir(&folder).map_err(BenchError::file(&folder, "make it"))?;
        let write = || -> std::io::Result<()> {
            let mut random = File::open("/dev/urandom")?;
            for number in 0..files {
                let mut file = File::create(source.file(number))?;
                std::io::copy(&mut (&mut random).take(bytes_each), &mut file)?;
            }
            Ok(())
        };
        write().map_err(BenchError::file(&folder, "fill it"))?;
        Ok(source)
    }

    /// Space for a copy of the files.
    pub fn space(&self) -> u64 {
        self.bytes.max(self.files * PAGE)
    }

    /// Folder of the files.
    pub fn folder(&self) -> PathBuf {
        self.place.file("source")
    }

    /// File with a number from 0 on.
    pub fn file(&self, number: u64) -> PathBuf {
        self.folder().join(format!("file{number}"))
    }
}
