//! `holdfast evacuate`: write a hold to a dataset, outside the ring.

use crate::args::{AuditArgs, RingArg};
use crate::out::{Out, notices};
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, HoldId, counted};
use holdfast_client::json::EvacuatedHold;
use holdfast_dataset::{Compression, Evacuation, Options, evacuate};
use holdfast_export::SourceAccess;
use holdfast_vault::Place;
use std::path::PathBuf;

/// Write a hold to a dataset: a compressed, indexed MCAP file outside the ring
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The dataset has the elements, gaps and preambles of the held range, their attributes, and a\n\
    manifest with the BLAKE3 of every part. It gets its name when it is complete, and is read back and\n\
    verified before the hold is released (--release). A hold that stands, has changed or cannot be read\n\
    completely is not released. `holdfast query`, `read` and `dataset` take datasets as they are, and so\n\
    do MCAP tools.\n\n\
    Examples:\n  holdfast evacuate lab.hf 3 --to run1.mcap\n  \
    holdfast evacuate lab.hf 3 --to s3:2026/run1.mcap --compress zstd:9 --release"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Number of the hold, as listed by `holdfast holds`
    #[arg(value_name = "ID")]
    id: u64,
    /// File of the dataset, or its path in a vault; it must not exist yet
    #[arg(long, value_name = "FILE|VAULT:PATH")]
    to: PathBuf,
    /// Compression of chunks: zstd, zstd:LEVEL, lz4 or none
    #[arg(long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,
    /// Release the hold when the dataset is verified
    #[arg(long)]
    release: bool,
    #[command(flatten)]
    because: AuditArgs,
}

/// Runs the command `holdfast evacuate`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let ring = args.ring.path()?;
    let bar = progress::bar(0, true);
    let mut shown = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let evacuation = Evacuation {
        ring: &ring,
        hold: HoldId(args.id),
        options: Options { compression: args.compress, ..Options::default() },
        release: args.release,
        by: &args.because.attribution(),
    };
    let target = Place::parse(&args.to)?.target(SourceAccess::of(&ring))?;
    let done = evacuate(&evacuation, target, &notices(), &mut shown);
    bar.finish_and_clear();
    let done = done?;
    let streams = &done.written.manifest.streams;
    let shown = EvacuatedHold {
        id: args.id,
        dataset: &done.written.id,
        output: &args.to,
        bytes: done.written.bytes,
        elements: streams.iter().map(|stream| stream.elements).sum(),
        payload_bytes: streams.iter().map(|stream| stream.bytes).sum(),
        chunks: done.written.manifest.chunks.len() as u64,
        partial: streams.iter().map(|stream| stream.partial).sum(),
        damaged: done.damaged.len() as u64,
        released_slots: done.released,
    };
    if out.is_json() {
        out.object(&shown)?;
    } else {
        let elements = counted(shown.elements, "element");
        let (bytes, payload) = (ByteSize(shown.bytes), ByteSize(shown.payload_bytes));
        out.line(format_args!("{}: {elements}, {payload} in {bytes}, verified", args.to.display()))?;
        out.line(format_args!("dataset {}", shown.dataset))?;
        if shown.partial > 0 {
            let partial = counted(shown.partial, "element");
            out.line(format_args!("{partial} of which only a part is held, left out"))?;
        }
        if let Some(slots) = shown.released_slots {
            out.line(format_args!("released hold {}: {}", args.id, counted(slots.into(), "slot")))?;
        }
    }
    match done.damaged.first() {
        None => Ok(()),
        Some(first) => {
            let places = counted(done.damaged.len() as u64, "place");
            let what = format!("{places} of the hold could not be read, the first is {first}");
            Err(Failure::failed(what).at_path(&ring).advice("the dataset has all else; the hold is kept"))
        }
    }
}
