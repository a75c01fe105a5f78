//! Options that all scans share: streams, range, memory, report.

use crate::args::RangeArgs;
use holdfast_base::ByteSize;
use holdfast_base::failure::{Failure, Result};
use holdfast_scan::{Globs, Options, Pick, Sources};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Bytes of buffers at least: less does not keep a disk busy.
const LEAST_MEMORY: u64 = 64 << 20;

/// The options of a scan.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ScanArgs {
    /// Stream of rings and datasets (may be repeated; default: all)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
    /// Memory of the buffers between disks and cores
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    memory: ByteSize,
    /// Files up to this size are read by many threads at once; 0: none
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    small: ByteSize,
    /// Worker threads (default: one a core)
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Results in the order of the sources, files of folders sorted by their paths; one thread reads them
    #[arg(long)]
    sort: bool,
    /// Files of folders whose name matches; !GLOB: those do not (may be repeated, the last that matches decides)
    #[arg(short = 'g', long = "glob", value_name = "GLOB")]
    globs: Vec<String>,
    /// Report bytes and waiting times of each silo, and the bottleneck, on standard error
    #[arg(long)]
    pub(crate) explain: bool,
}

impl ScanArgs {
    /// Sources at these places.
    pub(crate) fn sources(&self, places: &[PathBuf], pick: Pick) -> Result<Sources> {
        let globs = Globs::new(&self.globs)?;
        let sources = Sources::new(places, pick, self.streams.clone(), self.range.options())?;
        Ok(sources.sorted(self.sort).among(globs))
    }

    /// Limits of the scan.
    pub(crate) fn options(&self) -> Result<Options> {
        if self.memory.0 < LEAST_MEMORY {
            return Err(Failure::usage(format_args!(
                "{} are too little for the buffers of a scan",
                self.memory
            ))
            .at("--memory")
            .advice(format_args!("give at least {}", ByteSize(LEAST_MEMORY))));
        }
        Ok(Options {
            memory: self.memory.0,
            workers: self.threads,
            small: self.small.0,
            ..Options::default()
        })
    }
}
