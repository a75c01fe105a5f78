//! `holdfast dataset pack`, `unpack` and `cat`: folders as datasets.

use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::attribution::current_user;
use holdfast_client::json::{ListedEntry, PackedFolder, UnpackedFolder};
use holdfast_dataset::{Compression, LeftOut, Options, PackProgress, Packing, RawFrame};
use holdfast_export::SourceAccess;
use holdfast_vault::Place;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Pack a folder: all its files in one compressed, verified dataset
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The dataset keeps names, modes, modification times, hard and symbolic links, and holes of sparse files.\n\
    Files that share contents are stored once. Files of a folder whose names differ by a number, at least\n\
    16 of them, are a series: an MCAP channel with one message a file. Uncompressed images (BMP, PNM, NPY,\n\
    raw frames with --raw) are stored filtered, without loss, where that makes them smaller.\n\
    The dataset gets its name when it is complete, and is read back and compared with the contents that\n\
    were read.\n\
    Exits with 1 if an entry was left out (a socket, named pipe or device, or one that cannot be read) or\n\
    changed while it was read; the dataset has all else.\n\n\
    Examples:\n  holdfast dataset pack /data/run1 -o run1.mcap\n  \
    holdfast dataset pack /data/run1 -o run1.mcap --series 'cam*/*.raw' --compress zstd:9\n  \
    holdfast dataset cat run1.mcap notes/setup.txt"
)]
pub(crate) struct PackArgs {
    /// Folder that is packed
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of the dataset, or its path in a vault; it must not exist yet
    #[arg(short, long, value_name = "FILE|VAULT:PATH")]
    output: PathBuf,
    /// Compression of chunks: zstd, zstd:LEVEL, lz4 or none
    #[arg(long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,
    /// Files whose path below DIR matches GLOB are a series, few as they may be; may be repeated
    #[arg(long, value_name = "GLOB")]
    series: Vec<String>,
    /// Files of exactly this size are raw frames: width, height, and 8 or 16 bits (little-endian), as 640x480x16
    #[arg(long, value_name = "WxHxBITS")]
    raw: Option<RawFrame>,
    /// Store images as they are: MCAP tools read their messages, and the dataset is larger
    #[arg(long)]
    plain_images: bool,
}

/// Concatenate the small files of a folder in one file, which scans read as the files it came from
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The output is a packed folder (`holdfast dataset pack`) without compression, with an index of the files'\n\
    names and places. `holdfast grep`, `hash --elements` and `scan` read it at the speed of a large file and\n\
    name its files OUTPUT:PATH; `holdfast dataset unpack` makes the files again. Larger files stay where\n\
    they are. Nothing is removed.\n\
    Exits with 1 if a file was left out or changed while it was read.\n\n\
    Examples:\n  holdfast concat mail/ -o mail.mcap\n  \
    holdfast concat mail/ --below 64KiB -o s3:mail.mcap"
)]
pub(crate) struct ConcatArgs {
    /// Folder whose files are concatenated
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// File of the output, or its path in a vault; it must not exist yet
    #[arg(short, long, value_name = "FILE|VAULT:PATH")]
    output: PathBuf,
    /// Size of the largest files that are concatenated
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    below: ByteSize,
}

/// Unpack a packed folder into a new or empty folder
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Contents, names, modes and modification times are as they were; every byte is verified. Nothing is\n\
    written outside DIR. Damaged files are left out and listed, and the exit code is 1.\n\n\
    Example:\n  holdfast dataset unpack run1.mcap /data/again"
)]
pub(crate) struct UnpackArgs {
    /// Path of the dataset
    #[arg(value_name = "FILE|VAULT:PATH")]
    file: PathBuf,
    /// Folder that is made, or an empty one
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Print one file of a packed folder
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Three reads of FILE at most if it is a small file of a folder with up to a million entries.\n\n\
    Example:\n  holdfast dataset cat run1.mcap notes/setup.txt > setup.txt"
)]
pub(crate) struct CatArgs {
    /// Path of the dataset
    #[arg(value_name = "FILE|VAULT:PATH")]
    file: PathBuf,
    /// Path of the file below the folder that was packed
    #[arg(value_name = "PATH-INSIDE")]
    inside: OsString,
}

/// Entries that are named on standard error; further ones are counted.
const SHOWN: usize = 10;

fn listed(entries: &[LeftOut]) -> impl Iterator<Item = ListedEntry> {
    entries.iter().map(|entry| ListedEntry { path: entry.shown(), reason: entry.reason.clone() })
}

fn say(entries: &[LeftOut], count: u64) {
    for entry in entries.iter().take(SHOWN) {
        crate::out::say(&format!("{}: {}", entry.shown(), entry.reason));
    }
    let more = count.saturating_sub(SHOWN as u64);
    if more > 0 {
        crate::out::say(&format!("and {more} more"));
    }
}

/// Runs the command `holdfast dataset pack`.
pub(crate) fn pack(args: &PackArgs, out: &mut Out) -> Result<()> {
    let packing = Packing {
        folder: &args.folder,
        options: Options { compression: args.compress, ..Options::default() },
        series: &args.series,
        raw: args.raw,
        plain_images: args.plain_images,
        below: None,
        owner: current_user(),
    };
    packed(&packing, &args.output, out)
}

/// Runs the command `holdfast concat`.
pub(crate) fn concat(args: &ConcatArgs, out: &mut Out) -> Result<()> {
    let packing = Packing {
        folder: &args.folder,
        options: Options { compression: Compression::None, ..Options::default() },
        series: &[],
        raw: None,
        plain_images: true,
        below: Some(args.below.0),
        owner: current_user(),
    };
    packed(&packing, &args.output, out)
}

fn packed(packing: &Packing<'_>, output: &Path, out: &mut Out) -> Result<()> {
    let bar = progress::count();
    let target = Place::parse(output)?.target(SourceAccess::of(packing.folder))?;
    let packed = holdfast_dataset::pack(packing, target, &mut |progress| match progress {
        PackProgress::Packed { entries, bytes } => {
            bar.set_message(format!("{entries} entries packed,"));
            bar.set_position(bytes);
        }
        PackProgress::Verified(bytes) => {
            bar.set_message("verified");
            bar.set_position(bytes);
        }
    });
    bar.finish_and_clear();
    let packed = packed?;
    let manifest = &packed.written.manifest;
    let tree = manifest.tree.clone().unwrap_or_default();
    let (left_out, changed) = (packed.left_out_count, packed.changed_count);
    if out.is_json() {
        out.object(&PackedFolder {
            path: packing.folder,
            dataset: &packed.written.id,
            output,
            bytes: packed.written.bytes,
            chunks: manifest.chunks.len() as u64,
            files: tree.files,
            hard_links: tree.hard_links,
            directories: tree.directories,
            symlinks: tree.symlinks,
            series: tree.series,
            content_bytes: tree.bytes,
            stored_bytes: packed.stored,
            left_out,
            changed,
            listed: listed(&packed.left_out).chain(listed(&packed.changed)).collect(),
        })?;
    } else {
        let (files, contents) = (counted(tree.files + tree.hard_links, "file"), ByteSize(tree.bytes));
        let bytes = ByteSize(packed.written.bytes);
        out.line(format_args!("{}: {files}, {contents} in {bytes}, verified", output.display()))?;
        out.line(format_args!("dataset {}", packed.written.id))?;
        if tree.series > 0 {
            out.line(format_args!("{} series, each a channel", tree.series))?;
        }
        say(&packed.left_out, left_out);
        say(&packed.changed, changed);
    }
    if left_out == 0 && changed == 0 {
        return Ok(());
    }
    let what = format!("entries left out: {left_out}, files that changed while they were read: {changed}");
    Err(Failure::failed(what).at_path(packing.folder).advice("the dataset has all else, and is verified"))
}

/// Runs the command `holdfast dataset unpack`.
pub(crate) fn unpack(args: &UnpackArgs, out: &mut Out) -> Result<()> {
    let tree = Place::parse(&args.file)?.packed_tree()?;
    let bar = progress::bar(tree.tree().bytes, true);
    let unpacked = holdfast_dataset::unpack(&tree, &args.folder, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let unpacked = unpacked?;
    let damaged_files = unpacked.damaged_count;
    if out.is_json() {
        out.object(&UnpackedFolder {
            path: &args.file,
            output: &args.folder,
            entries: unpacked.entries,
            content_bytes: unpacked.bytes,
            damaged_files,
            listed: listed(&unpacked.damaged).collect(),
        })?;
    } else {
        let bytes = ByteSize(unpacked.bytes);
        out.line(format_args!("{}: {} entries, {bytes}", args.folder.display(), unpacked.entries))?;
        say(&unpacked.damaged, damaged_files);
    }
    if damaged_files == 0 {
        return Ok(());
    }
    let what = format!("{} damaged, and left out", counted(damaged_files, "file"));
    Err(Failure::failed(what).at_path(&args.file).advice("`holdfast dataset verify` lists all damage"))
}

/// Runs the command `holdfast dataset cat`.
pub(crate) fn cat(args: &CatArgs) -> Result<()> {
    let place = Place::parse(&args.file)?;
    let tree = place.packed_tree()?;
    let mut out = BufWriter::new(Tracked { to: io::stdout(), failed: None });
    let given = tree.cat(args.inside.as_bytes(), &mut out);
    let flushed = out.flush();
    if let Some(error) = &out.get_ref().failed {
        return Err(crate::out::broken(error));
    }
    flushed.map_err(|error| crate::out::broken(&error))?;
    let bytes = given.map_err(|error| place.failure(&error))?;
    let missing = || {
        let path = args.inside.display();
        Failure::nothing(format_args!("the dataset has no file `{path}`")).at_path(&args.file)
    };
    bytes.map(drop).ok_or_else(missing)
}

/// Standard output that keeps its own error, which is not one of the dataset.
struct Tracked {
    to: io::Stdout,
    failed: Option<io::Error>,
}

impl io::Write for Tracked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|error| {
            self.failed = Some(io::Error::from(error.kind()));
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().inspect_err(|error| self.failed = Some(io::Error::from(error.kind())))
    }
}
