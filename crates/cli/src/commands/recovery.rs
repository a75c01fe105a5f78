//! `holdfast dataset recover`: the whole chunks of a damaged file.

use crate::commands::conversion::{file_damage, say_damage};
use crate::out::Out;
use crate::progress;
use holdfast_base::failure::Result;
use holdfast_base::{ByteSize, counted};
use holdfast_client::json::RecoveredFile;
use holdfast_dataset::{Compression, recover};
use std::path::PathBuf;

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
