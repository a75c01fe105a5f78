//! Command-line options, and the drive model that they describe.

use crate::command::span;
use clap::{Parser, ValueEnum};
use holdfast_base::ByteSize;
use holdfast_media::DriveModel;
use std::path::PathBuf;
use std::time::Duration;

/// Mounts a folder with an emulated drive as a file, in real time.
///
/// The file `drive` in it is the drive: use it with `O_DIRECT`, or under `losetup --direct-io=on`. The file `control`
/// takes orders (ok, fast, eio, hang, vanish, reset, stall 3s) and tells counters and how late answers were. SIGTERM
/// unmounts. Requests have at most 1 MiB, or what `/proc/sys/fs/fuse/max_pages_limit` allowed at the start. Exit code 3
/// means that the machine was too slow for the model, and what was measured says nothing.
#[derive(Debug, Parser)]
#[command(name = "holdfast-drive", version)]
pub(crate) struct Options {
    /// An empty folder.
    pub(crate) mountpoint: PathBuf,
    /// Which drive.
    #[arg(long, value_enum, default_value = "paper")]
    pub(crate) model: Which,
    /// How large the file is; its bytes stand in memory.
    #[arg(long, default_value = "2GiB")]
    pub(crate) bytes: ByteSize,
    /// It is a partition that begins at this share of the drive (0 to 1).
    #[arg(long, default_value = "0", conflicts_with = "squeezed")]
    pub(crate) part: f64,
    /// It is the whole drive in small: all its rates and all ways of its arm.
    #[arg(long)]
    pub(crate) squeezed: bool,
    /// Where the platter stands at the start.
    #[arg(long, default_value = "0")]
    pub(crate) seed: u64,
    /// Append the counters here at the end.
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Run before all ordinary threads, with locked memory (as root).
    #[arg(long)]
    pub(crate) realtime: bool,
    /// Answers that are later than this count as late; more than one in a hundred, and the run is discarded.
    #[arg(long, default_value = "2ms", value_parser = |text: &str| span(text).ok_or("give a time such as 2ms"))]
    pub(crate) late: Duration,
}

/// The drives that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// 5400 rpm, 1.5 TB: 70 to 50 MiB/s writing, 115 to 50 reading.
    Paper,
    /// 7200 rpm, 4 TB.
    Rpm7200,
    /// Overlapping tracks in zones of 256 MiB, 8 TB.
    Shingled,
    /// Solid state with pauses for its garbage, 1 TB: meant for virtual time, since a mounted file cannot time reads of 90 µs.
    Flash,
}

impl Options {
    /// What they describe.
    pub(crate) fn drive(&self) -> DriveModel {
        let whole = match self.model {
            Which::Paper => DriveModel::paper(),
            Which::Rpm7200 => DriveModel::rpm7200(),
            Which::Shingled => DriveModel::shingled(),
            Which::Flash => DriveModel::flash(),
        };
        let bytes = self.bytes.0.next_multiple_of(4096);
        if self.squeezed { whole.squeezed(bytes) } else { whole.part(self.part, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_described_in_a_line() {
        let options = |line: &str| Options::try_parse_from(line.split(' '));
        let drive = options("holdfast-drive /mnt").unwrap().drive();
        assert_eq!(drive, DriveModel::paper().part(0.0, 2 << 30));
        let drive = options("holdfast-drive /mnt --model shingled --bytes 1GiB --part 0.8").unwrap().drive();
        assert_eq!(drive, DriveModel::shingled().part(0.8, 1 << 30));
        let line = "holdfast-drive /mnt --model rpm7200 --squeezed --bytes 64MiB --late 500us --realtime";
        let given = options(line).unwrap();
        assert_eq!(given.drive(), DriveModel::rpm7200().squeezed(64 << 20));
        assert_eq!((given.late, given.realtime), (Duration::from_micros(500), true));
        for wrong in ["--part 0.1 --squeezed", "--late soon", "--model floppy", "--bytes many"] {
            assert!(options(&format!("holdfast-drive /mnt {wrong}")).is_err(), "{wrong}");
        }
    }
}
