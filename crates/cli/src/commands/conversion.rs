//! `holdfast dataset convert` and `recover`: other files, and cut or damaged ones, become MCAP files.

use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::json::{ConvertedFile, FileDamage, RecoveredFile};
use holdfast_dataset::{BagConversion, Compression, Damage, Options, convert_bag, is_bag, recover};
use std::path::{Path, PathBuf};

/// Convert a ROS 1 bag to an MCAP file
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The MCAP file has the profile ros1: each connection is a channel with its schema, and ROS tools read\n\
    it. Messages keep their order and times. The output gets its name when it is complete. A damaged or cut\n\
    bag is an error, unless --salvage says that its whole chunks are written.\n\n\
    Examples:\n  holdfast dataset convert run1.bag -o run1.mcap\n  \
    holdfast dataset convert cut.bag -o saved.mcap --salvage"
)]
pub(crate) struct ConvertArgs {
    /// Path of the bag
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// MCAP file, which must not exist yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Compression of chunks: zstd, zstd:LEVEL, lz4 or none
    #[arg(long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,
    /// Write the whole chunks of a damaged bag, and report the damage
    #[arg(long)]
    salvage: bool,
}

/// Save the whole chunks of a cut or damaged MCAP file or dataset
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Whole chunks are copied as they are, with their channels and schemas, and get a new summary. The new\n\
    file is a dataset again if the manifest of the old one is whole and no chunk is damaged; otherwise it\n\
    is a plain MCAP file. Standard error reports the damage.\n\n\
    Example:\n  holdfast dataset recover cut.mcap -o saved.mcap"
)]
pub(crate) struct RecoverArgs {
    /// Path of the cut or damaged file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// MCAP file, which must not exist yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command `holdfast dataset recover`.
pub(crate) fn recovered(args: &RecoverArgs, out: &mut Out) -> Result<()> {
    let RecoverArgs { file, output } = args;
    let bar = progress::bar(std::fs::metadata(file).map_or(0, |found| found.len()), true);
    let recovered = recover(file, output, Compression::default(), &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let recovered = recovered?;
    if out.is_json() {
        return out.object(&RecoveredFile {
            path: file,
            output,
            dataset: recovered.dataset.as_deref(),
            bytes: recovered.bytes,
            chunks: recovered.chunks,
            channels: recovered.channels,
            messages: recovered.messages,
            damage: recovered.damage.as_ref().map(file_damage),
        });
    }
    let (messages, chunks) = (counted(recovered.messages, "message"), counted(recovered.chunks, "chunk"));
    let bytes = ByteSize(recovered.bytes);
    out.line(format_args!("{}: {messages} of {chunks} in {bytes}", output.display()))?;
    match &recovered.dataset {
        Some(id) => out.line(format_args!("dataset {id}"))?,
        None => out.line(format_args!("a plain MCAP file: it has no manifest"))?,
    }
    match &recovered.damage {
        Some(damage) => say_damage(file, damage),
        None => crate::out::say(&format!("{}: no damage was found", file.display())),
    }
    Ok(())
}

/// Runs the command `holdfast dataset convert`.
pub(crate) fn convert(args: &ConvertArgs, out: &mut Out) -> Result<()> {
    let ConvertArgs { file, output, compress, salvage } = args;
    let size =
        std::fs::metadata(file).map_err(|error| Failure::io("cannot open the file", file, &error))?.len();
    if !is_bag(file) {
        return Err(Failure::usage("this is no ROS 1 bag: it does not begin with `#ROSBAG V`").at_path(file));
    }
    let options = Options { compression: *compress, ..Options::default() };
    let conversion = BagConversion { bag: file, to: output, options, salvage: *salvage };
    let bar = progress::bar(size, true);
    let converted = convert_bag(&conversion, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let converted = converted?;
    let damage = converted.damage.as_ref();
    if out.is_json() {
        return out.object(&ConvertedFile {
            path: file,
            output,
            bytes: converted.bytes,
            channels: converted.channels,
            messages: converted.messages,
            damage: damage.map(file_damage),
        });
    }
    let (messages, channels) =
        (counted(converted.messages, "message"), counted(converted.channels, "channel"));
    let bytes = ByteSize(converted.bytes);
    out.line(format_args!("{}: {messages} of {channels} in {bytes}", output.display()))?;
    if let Some(damage) = damage {
        say_damage(file, damage);
    }
    Ok(())
}

fn say_damage(file: &Path, damage: &Damage) {
    let Damage { at, cause, lost_chunks } = damage;
    let lost = match lost_chunks {
        0 => String::new(),
        chunks => format!("; {} left out", counted(*chunks, "damaged chunk")),
    };
    crate::out::say(&format!("{}: damaged, the record at byte {at}: {cause}{lost}", file.display()));
}

fn file_damage(damage: &Damage) -> FileDamage<'_> {
    FileDamage { at_byte: damage.at, cause: &damage.cause, lost_chunks: damage.lost_chunks }
}
