//! `holdfast dataset`: look at a dataset, verify it, convert or recover files, pack and unpack folders.

use crate::commands::conversion::{self, ConvertArgs, RecoverArgs};
use crate::commands::packed_folder::{self, CatArgs, PackArgs, UnpackArgs};
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, Timestamp, counted};
use holdfast_client::json::{DamagedPart, DatasetInfo, VerifiedDataset};
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_dataset::{Finding, verify};
use holdfast_vault::Place;
use std::path::{Path, PathBuf};

/// Show, verify, recover or unpack a dataset, pack a folder into one, or convert other files
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  holdfast dataset info run1.mcap\n  holdfast dataset verify run1.mcap\n  \
    holdfast dataset convert run1.bag -o run1.mcap\n  holdfast dataset pack /data/run1 -o run1.mcap\n  holdfast dataset unpack run1.mcap /data/again"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Show origin, streams and sizes
    #[command(after_help = "Example:\n  holdfast dataset info run1.mcap")]
    Info {
        /// Path of the dataset
        #[arg(value_name = "FILE|VAULT:PATH")]
        file: PathBuf,
    },
    /// Read everything, and compare it with the hashes of the manifest
    #[command(
        after_help = "Exits with 1 if a part is damaged.\n\nExample:\n  holdfast dataset verify run1.mcap"
    )]
    Verify {
        /// Path of the dataset
        #[arg(value_name = "FILE|VAULT:PATH")]
        file: PathBuf,
    },
    Convert(ConvertArgs),
    Recover(RecoverArgs),
    Pack(PackArgs),
    Unpack(UnpackArgs),
    Cat(CatArgs),
}

/// Runs the command `holdfast dataset`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Info { file } => info(file, out),
        What::Verify { file } => verified(file, out),
        What::Convert(args) => conversion::convert(args, out),
        What::Recover(args) => conversion::recovered(args, out),
        What::Pack(args) => packed_folder::pack(args, out),
        What::Unpack(args) => packed_folder::unpack(args, out),
        What::Cat(args) => packed_folder::cat(args),
    }
}

fn info(path: &Path, out: &mut Out) -> Result<()> {
    let dataset = Place::parse(path)?.dataset()?;
    let manifest = dataset.manifest();
    if out.is_json() {
        return out.object(&DatasetInfo { path, dataset: dataset.id(), bytes: dataset.size(), manifest });
    }
    let bytes = ByteSize(dataset.size());
    let chunks = counted(manifest.chunks.len() as u64, "chunk");
    out.line(format_args!("{}: {bytes} in {chunks}, {}", path.display(), manifest.compression))?;
    out.line(format_args!("dataset {}", dataset.id()))?;
    let origin = &manifest.provenance;
    if let Some(hold) = origin.hold {
        let reason = holdfast_base::clean(&origin.reason);
        let (ring, owner) = (holdfast_base::clean(&origin.ring_name), holdfast_base::clean(&origin.owner));
        out.line(format_args!("hold {hold} of ring \"{ring}\", by {owner}: {reason}"))?;
    }
    if let Some(tree) = &manifest.tree {
        let (folder, contents) = (holdfast_base::clean(&origin.folder), ByteSize(tree.bytes));
        let (files, series) = (counted(tree.files, "file"), tree.series);
        return out.line(format_args!("folder \"{folder}\": {files}, {contents}, {series} series"));
    }
    let mut table = Table::new(&[
        ("stream", Side::Left),
        ("elements", Side::Right),
        ("payload", Side::Right),
        ("gaps", Side::Right),
        ("first", Side::Left),
        ("last", Side::Left),
    ]);
    for stream in &manifest.streams {
        let time = |at: fn((i64, i64)) -> i64| {
            stream.arrivals_ns.map_or_else(String::new, |span| times::to_the_second(Timestamp(at(span))))
        };
        table.row([
            stream.name.clone(),
            stream.elements.to_string(),
            ByteSize(stream.bytes).to_string(),
            stream.gaps.to_string(),
            time(|span| span.0),
            time(|span| span.1),
        ]);
    }
    out.table(&table)
}

fn verified(path: &Path, out: &mut Out) -> Result<()> {
    let place = Place::parse(path)?;
    let dataset = place.dataset()?;
    let bar = progress::bar(dataset.size(), true);
    let findings = verify(&dataset, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let findings = findings.map_err(|error| place.failure(&error))?;
    let chunks = dataset.manifest().chunks.len() as u64;
    if out.is_json() {
        let damaged = findings.iter().map(|Finding { place, cause }| DamagedPart { place, cause }).collect();
        let (dataset, bytes) = (dataset.id(), dataset.size());
        out.object(&VerifiedDataset { path, dataset, bytes, chunks, damaged })?;
    } else if findings.is_empty() {
        let chunks = counted(chunks, "chunk");
        out.line(format_args!("{}: {chunks} verified, dataset {}", path.display(), dataset.id()))?;
    } else {
        for finding in &findings {
            out.line(format_args!("{}: {} is damaged: {}", path.display(), finding.place, finding.cause))?;
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(Failure::said(Kind::Failed)) }
}
