//! `holdfast dataset`: look at a dataset, verify it, convert or recover files, pack and unpack folders.

use crate::commands::conversion::{self, ConvertArgs};
use crate::commands::packed_folder::{self, CatArgs, PackArgs, UnpackArgs};
use crate::commands::recovery::{self, RecoverArgs};
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, Timestamp, counted};
use holdfast_client::json::{DamagedPart, DatasetInfo, McapInfo, TopicInfo, VerifiedDataset};
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_dataset::{
    ChannelOverview, Dataset, DatasetError, Finding, LocalFile, McapOverview, RangeRead, failure, is_mcap,
    verify,
};
use holdfast_vault::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::Info { .. } | What::Cat(_))
    }
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
        What::Recover(args) => recovery::recovered(args, out),
        What::Pack(args) => packed_folder::pack(args, out),
        What::Unpack(args) => packed_folder::unpack(args, out),
        What::Cat(args) => packed_folder::cat(args),
    }
}

fn info(path: &Path, out: &mut Out) -> Result<()> {
    let place = Place::parse(path)?;
    let dataset = match &place {
        Place::Local(path) => {
            let file = LocalFile::open(path);
            let file = Arc::new(file.map_err(|error| Failure::io("cannot open the dataset", path, &error))?);
            match Dataset::open(Arc::clone(&file) as Arc<dyn RangeRead>) {
                Err(DatasetError::NoManifest | DatasetError::NotMcap(_)) if is_mcap(path) => {
                    return mcap_info(path, &file, out);
                }
                opened => opened.map_err(|error| failure(&error, path))?,
            }
        }
        Place::Vault(..) => place.dataset()?,
    };
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

/// Overview of an MCAP file of another program.
fn mcap_info(path: &Path, file: &LocalFile, out: &mut Out) -> Result<()> {
    let overview = McapOverview::of(file).map_err(|error| failure(&error, path))?;
    let McapOverview { bytes, chunks, messages, times_ns, scanned, compressions, channels } = &overview;
    if out.is_json() {
        let topics = channels.iter().map(|ChannelOverview { topic, encoding, schema, messages }| TopicInfo {
            topic,
            encoding,
            schema,
            messages: *messages,
        });
        let (bytes, chunks, messages, scanned) = (*bytes, *chunks, *messages, *scanned);
        let (first_ns, last_ns) = (times_ns.map(|times| times.0), times_ns.map(|times| times.1));
        let topics = topics.collect();
        let dataset = None;
        return out.object(&McapInfo {
            path,
            dataset,
            bytes,
            chunks,
            compressions,
            messages,
            first_ns,
            last_ns,
            scanned,
            topics,
        });
    }
    let (size, chunks) = (ByteSize(*bytes), counted(*chunks, "chunk"));
    out.line(format_args!("{}: {size} in {chunks}, {}", path.display(), compressions.join(", ")))?;
    let how = if *scanned { "; it has no summary, and was scanned" } else { "" };
    out.line(format_args!("an MCAP file without a manifest{how}"))?;
    let time = |time: u64| times::rfc3339(Timestamp(i64::try_from(time).unwrap_or(i64::MAX)));
    if let Some((first, last)) = times_ns {
        let messages = counted(*messages, "message");
        out.line(format_args!("{messages} from {} to {}", time(*first), time(*last)))?;
    }
    let mut table = Table::new(&[
        ("topic", Side::Left),
        ("messages", Side::Right),
        ("encoding", Side::Left),
        ("schema", Side::Left),
    ]);
    for channel in channels {
        let shown = |text: &String| holdfast_base::clean(text);
        let (topic, encoding, schema) = (&channel.topic, &channel.encoding, &channel.schema);
        table.row([shown(topic), channel.messages.to_string(), shown(encoding), shown(schema)]);
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
