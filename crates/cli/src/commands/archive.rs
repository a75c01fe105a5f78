//! `holdfast archive`: write streams to datasets in a vault as they arrive.

use crate::args::{AuditArgs, RingArg};
use crate::interruption::interruption;
use crate::out::{Out, notices};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, UnitError, counted};
use holdfast_client::json::ArchivedDataset;
use holdfast_client::times;
use holdfast_dataset::{Compression, Options};
use holdfast_vault::{Archive, Archived, Place, archive};
use std::path::PathBuf;
use std::time::Duration;

/// Write streams to datasets in a vault as they arrive
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Each stream becomes a series of datasets PREFIX/STREAM-ORDINAL.mcap. A dataset ends at the size or\n\
    age of --roll, and when half of the ring was recorded since its first element; it is read back and\n\
    verified before it is visible. Started again with the same prefix, it publishes what a killed process\n\
    had written to a folder up to its last checkpoint, and goes on behind the latest dataset,\n\
    without gap or overlap. What expired before it was read is told. A signal publishes what was read, then\n\
    it ends.\n\n\
    Examples:\n  holdfast archive lab.hf --stream eth0 --to s3:lab/ --roll 1GiB,10m\n  \
    holdfast archive lab.hf --to /archive/lab --where \"dst_port = 53\" --once"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Stream to archive; repeatable [default: all]
    #[arg(long = "stream", value_name = "NAME")]
    streams: Vec<String>,
    /// Folder, or prefix in a vault, of the datasets
    #[arg(long, value_name = "FOLDER|VAULT:PREFIX")]
    to: PathBuf,
    /// Size or age at which a dataset ends; both, with a comma between
    #[arg(long, value_name = "SIZE|SPAN", value_delimiter = ',', default_value = "1GiB,10m", value_parser = roll)]
    roll: Vec<Roll>,
    /// Archive only elements that match this SQL condition, and gaps near them
    #[arg(long = "where", value_name = "SQL")]
    condition: Option<String>,
    /// End when everything on the ring is archived
    #[arg(long)]
    once: bool,
    /// Compression of chunks: zstd, zstd:LEVEL, lz4 or none
    #[arg(long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,
    #[command(flatten)]
    because: AuditArgs,
}

/// Limit at which a dataset ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roll {
    Size(ByteSize),
    Age(Duration),
}

fn roll(text: &str) -> Result<Roll, UnitError> {
    match times::span(text) {
        Ok(span) => Ok(Roll::Age(span)),
        Err(_) => text.parse().map(Roll::Size),
    }
}

/// Runs the command `holdfast archive`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let ring = args.ring.path()?;
    let (vault, prefix) = Place::parse(&args.to)?.prefix()?;
    let (mut roll_bytes, mut roll_time) = (None, None);
    for roll in &args.roll {
        match roll {
            Roll::Size(size) => roll_bytes = Some(*size),
            Roll::Age(age) => roll_time = Some(*age),
        }
    }
    if roll_bytes.is_some_and(|size| size.0 == 0) || roll_time.is_some_and(|age| age.is_zero()) {
        return Err(Failure::usage("a dataset cannot end before it has begun")
            .at("--roll")
            .advice("take 1GiB"));
    }
    let stop = interruption()?;
    let streams = Archive {
        ring: &ring,
        streams: &args.streams,
        vault: &vault,
        prefix: &prefix,
        roll_bytes: roll_bytes.unwrap_or(ByteSize(u64::MAX)),
        roll_time,
        condition: args.condition.as_deref(),
        options: Options { compression: args.compress, ..Options::default() },
        once: args.once,
        by: &args.because.attribution(),
        stop: &stop,
    };
    let (mut expired, mut damaged) = (0, 0);
    archive(&streams, &notices(), &mut |archived| {
        expired += archived.span.expired;
        damaged += archived.damaged;
        told(archived, &vault.place(&archived.path), out)
    })?;
    let mut lost = Vec::new();
    if expired > 0 {
        lost.push(format!("{} expired before they were read", counted(expired, "ordinal")));
    }
    if damaged > 0 {
        lost.push(format!("{} could not be read", counted(damaged, "place")));
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(lost.join("; ")).at_path(&ring).advice("the datasets have all else"))
}

fn told(archived: &Archived, place: &str, out: &mut Out) -> Result<()> {
    let streams = &archived.written.manifest.streams;
    let shown = ArchivedDataset {
        output: place,
        dataset: &archived.written.id,
        stream: &archived.span.stream,
        bytes: archived.written.bytes,
        elements: streams.iter().map(|stream| stream.elements).sum(),
        payload_bytes: streams.iter().map(|stream| stream.bytes).sum(),
        first_ordinal: archived.span.from,
        next_ordinal: archived.span.to,
        expired_ordinals: archived.span.expired,
        partial: streams.iter().map(|stream| stream.partial).sum(),
        damaged: archived.damaged,
    };
    if out.is_json() {
        out.object(&shown)?;
    } else {
        let (bytes, payload) = (ByteSize(shown.bytes), ByteSize(shown.payload_bytes));
        let elements = counted(shown.elements, "element");
        out.line(format_args!("{place}: {elements}, {payload} in {bytes}, verified"))?;
        if shown.expired_ordinals > 0 {
            let expired = counted(shown.expired_ordinals, "ordinal");
            out.line(format_args!("{expired} before it expired unread"))?;
        }
    }
    out.flush()
}
