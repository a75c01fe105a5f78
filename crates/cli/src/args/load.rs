//! `--profile`, `--rate` and the declared load of a ring.

use holdfast_base::{ByteSize, MAX_STREAMS, Rate, UnitError};
use holdfast_ingest::Framing;
use holdfast_planning::plan::{FLUSH, LoadOptions, Region};
use std::path::PathBuf;

/// What is declared, and how it is to be carried: as `format` has it, too.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LoadArgs {
    /// Profile of the device, from `holdfast profile`
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: PathBuf,
    /// Payload rate of all streams together
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Rate,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
}

/// What may be said beside the rate.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MoreArgs {
    /// Elements a second of all streams together (default: elements of 64 KiB)
    #[arg(long, requires = "profile", value_name = "N", value_parser = each_second)]
    pub(crate) elements: Option<u64>,
    /// Framing as in `record`; fixed:N states the element size, and a single stream of such elements takes
    /// less room
    #[arg(long, requires = "profile", value_name = "FRAMING")]
    pub(crate) frame: Option<Framing>,
    /// Number of streams
    #[arg(long, requires = "profile", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MAX_STREAMS as i64))]
    pub(crate) streams: u16,
    /// Payload that may arrive at once beyond the rate
    #[arg(long, requires = "profile", value_name = "SIZE", default_value = "0")]
    pub(crate) burst: ByteSize,
    /// Attribute of every element, as in `record`; may be repeated
    #[arg(long = "attr", requires = "profile", value_name = "ATTRIBUTE")]
    pub(crate) attributes: Vec<String>,
    /// Full slots written in one go while a reader is active
    #[arg(long, requires = "profile", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) gather: Option<u16>,
    /// Largest read that starts at once
    #[arg(long, requires = "profile", value_name = "SIZE")]
    pub(crate) quantum: Option<ByteSize>,
    /// Memory for slot buffers (default: as needed)
    #[arg(long, requires = "profile", value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Part of the device to use, from its beginning, such as 0..80%
    #[arg(long, requires = "profile", value_name = "REGION", default_value = "0..100%")]
    pub(crate) region: Region,
}

impl MoreArgs {
    /// All that is asked.
    pub(crate) fn options(&self, rate: Rate, slot: Option<ByteSize>) -> LoadOptions {
        LoadOptions {
            rate,
            elements: self.elements,
            frame: self.frame,
            streams: self.streams,
            burst: self.burst,
            attributes: self.attributes.clone(),
            slot,
            gather: self.gather,
            quantum: self.quantum,
            memory: self.memory,
            region: self.region,
            flush: FLUSH,
        }
    }
}

/// A number a second: the unit may be said.
fn each_second(text: &str) -> std::result::Result<u64, UnitError> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text).trim().parse().ok();
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| UnitError::new("number a second", text, "such as 20000"))
}
