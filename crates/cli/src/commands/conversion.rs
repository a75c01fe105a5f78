//! `holdfast dataset convert`: other files become MCAP files.

use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::json::{ConvertedFile, FileDamage};
use holdfast_dataset::{BagConversion, BagDamage, Compression, Options, convert_bag, is_bag};
use std::path::PathBuf;

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
    if let Some(BagDamage { at, cause, lost_chunks }) = damage {
        let lost = counted(*lost_chunks, "chunk");
        let told = format!("{}: damaged, the record at byte {at}: {cause}; {lost} left out", file.display());
        crate::out::say(&told);
    }
    Ok(())
}

fn file_damage(damage: &BagDamage) -> FileDamage<'_> {
    FileDamage { at_byte: damage.at, cause: &damage.cause, lost_chunks: damage.lost_chunks }
}
