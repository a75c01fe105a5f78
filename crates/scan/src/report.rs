//! Report of a scan: bytes and waiting times of each silo, and the bottleneck they reveal.

use serde::Serialize;

/// Side that a scan waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Workers waited for the sources.
    Disk,
    /// Readers waited for the modules.
    Cores,
    /// Modules waited for the output.
    Output,
}

/// Counts and waiting times of one silo.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SiloReport {
    /// Device, ring or vault that fills the silo.
    pub name: String,
    /// Number of its buffers.
    pub buffers: usize,
    /// Bytes of a buffer.
    pub buffer_bytes: u64,
    /// Items that went through.
    pub items: u64,
    /// Bytes that went through, those shown twice counted once.
    pub bytes: u64,
    /// Seconds that its readers spent reading, all readers together.
    pub reading_seconds: f64,
    /// Seconds that its readers waited for an empty buffer, all readers together.
    pub full_seconds: f64,
}

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Silos, one a device, ring or vault, and one for small files.
    pub silos: Vec<SiloReport>,
    /// Number of worker threads.
    pub workers: usize,
    /// Seconds from the beginning to the end.
    pub seconds: f64,
    /// Seconds that workers waited for filled buffers, all together.
    pub idle_seconds: f64,
    /// Seconds that workers spent in the module, all together.
    pub module_seconds: f64,
    /// Seconds that workers spent in the output or waited for it, all together.
    pub output_seconds: f64,
    /// Items that could not be scanned, or not whole.
    pub troubles: u64,
    /// Files of other kinds than regular ones that were passed over.
    pub passed_over: u64,
    /// True if the output had seen enough before the end.
    pub stopped: bool,
}

impl Report {
    /// Items of all silos.
    pub fn items(&self) -> u64 {
        self.silos.iter().map(|silo| silo.items).sum()
    }

    /// Bytes of all silos.
    pub fn bytes(&self) -> u64 {
        self.silos.iter().map(|silo| silo.bytes).sum()
    }

    /// The side that the workers lost most of their time to.
    pub fn bottleneck(&self) -> Bottleneck {
        if self.idle_seconds >= self.module_seconds.max(self.output_seconds) {
            Bottleneck::Disk
        } else if self.output_seconds > self.module_seconds {
            Bottleneck::Output
        } else {
            Bottleneck::Cores
        }
    }
}
