//! `holdfast dataset convert`: datasets, captures and ROS bags in other formats.

use crate::args::LimitArgs;
use crate::out::{Out, notices};
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, FileKind, counted};
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::json::{ConvertedFile, FileDamage};
use holdfast_client::{session, sql};
use holdfast_dataset::{
    BagConversion, Compression, ConvertedBag, Damage, Dataset, DatasetError, Import, LocalFile, Options,
    Written, convert_bag, failure, import_dataset, is_bag, is_mcap, unpack_whole,
};
use holdfast_export::{ElementFilter, Existing, Export, Format, Output, OutputFile, Sink, SourceAccess};
use holdfast_query::output as query;
use holdfast_reader::{Item, OpenSlots, Selection};
use holdfast_ring::StreamStatus;
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Convert a dataset, an MCAP or capture file, or a ROS 1 bag to another format
#[derive(clap::Args, Debug)]
#[command(
    after_help = "FILE is a dataset, an MCAP file, a capture file (pcap, pcapng) or a ROS 1 bag. Captures and MCAP files\n\
    may be compressed as a whole, by gzip or zstd. The format is that of\n\
    --format, or of the ending of the output: .mcap, .pcapng, .jsonl, .raw, .csv or .parquet.\n\
    mcap: of a capture or MCAP file it is a dataset with attributes; of a bag it has the profile ros1.\n\
    csv and parquet have a row an element, with its attributes and its payload, of one stream.\n\n\
    The output gets its name when it is complete. A damaged or cut file is an error, unless --salvage says\n\
    that what is whole is written.\n\n\
    Examples:\n  holdfast dataset convert run1.bag -o run1.mcap\n  \
    holdfast dataset convert trace.pcapng -o trace.parquet\n  \
    holdfast dataset convert trace.pcap.gz -o trace.mcap\n  \
    holdfast dataset convert run1.mcap --stream eth0 -o eth0.pcapng\n  \
    holdfast dataset convert cut.bag -o saved.mcap --salvage"
)]
pub(crate) struct ConvertArgs {
    /// Path of the input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output file, which must not exist yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Format of the output (default: by its ending)
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// Stream of a dataset (default: all, or the only one); of other files, name that their stream gets
    #[arg(long, value_name = "S")]
    stream: Option<String>,
    /// Compression of chunks of a dataset or converted bag: zstd, zstd:LEVEL, lz4 or none
    #[arg(long, value_name = "HOW", default_value_t = Compression::default())]
    compress: Compression,
    /// Write what is whole of a damaged file, and report the damage
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Format of a conversion.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    /// MCAP file, or a dataset
    Mcap,
    /// Packets, for Wireshark, tcpdump and others
    Pcapng,
    /// One JSON object a line
    Jsonl,
    /// Payloads as they came
    Raw,
    /// Comma-separated values with a header
    Csv,
    /// Parquet file, compressed by zstd
    Parquet,
}

impl OutputFormat {
    /// Format of a file by its ending.
    fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("mcap") => Ok(Self::Mcap),
            Some("pcapng") => Ok(Self::Pcapng),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            Some("raw" | "bin") => Ok(Self::Raw),
            Some("csv") => Ok(Self::Csv),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Failure::usage("the ending of the output names no format")
                .at_path(path)
                .advice("give --format, or an ending of .mcap, .pcapng, .jsonl, .raw, .csv and .parquet")),
        }
    }

    fn export(self) -> Option<Format> {
        match self {
            Self::Mcap => Some(Format::Mcap),
            Self::Pcapng => Some(Format::Pcapng),
            Self::Jsonl => Some(Format::Jsonl),
            Self::Raw => Some(Format::Raw),
            Self::Csv | Self::Parquet => None,
        }
    }

    fn rows(self) -> query::Format {
        if self == Self::Csv { query::Format::Csv } else { query::Format::Parquet }
    }
}

/// Result of a conversion.
struct Converted {
    bytes: u64,
    channels: u64,
    messages: u64,
    damage: Option<Damage>,
}

/// Runs the command `holdfast dataset convert`.
pub(crate) fn convert(args: &ConvertArgs, out: &mut Out) -> Result<()> {
    let ConvertArgs { file, output, .. } = args;
    let format = args.format.map_or_else(|| OutputFormat::of(output), Ok)?;
    session::prefer_oom_kill();
    let converted = if is_bag(file) {
        of_bag(args, format)?
    } else {
        match opened(file)? {
            Some(dataset) => of_dataset(args, format, &Arc::new(dataset))?,
            None => of_import(args, format)?,
        }
    };
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

fn of_bag(args: &ConvertArgs, format: OutputFormat) -> Result<Converted> {
    let ConvertArgs { file, output, compress, salvage, .. } = args;
    if format != OutputFormat::Mcap {
        return Err(Failure::usage("a ROS bag is converted to MCAP")
            .at_path(output)
            .advice("name an output with the ending .mcap, and convert that one"));
    }
    let size =
        std::fs::metadata(file).map_err(|error| Failure::io("cannot open the file", file, &error))?.len();
    let options = Options { compression: *compress, ..Options::default() };
    let conversion = BagConversion { bag: file, to: output, options, salvage: *salvage };
    let bar = progress::bar(size, true);
    let converted = convert_bag(&conversion, &mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let ConvertedBag { bytes, channels, messages, damage } = converted?;
    Ok(Converted { bytes, channels, messages, damage })
}

/// Dataset in a file; `None` if it is another file.
fn opened(path: &Path) -> Result<Option<Dataset>> {
    if !is_mcap(path) {
        return Ok(None);
    }
    let file = LocalFile::open(path).map_err(|error| Failure::io("cannot open the file", path, &error))?;
    match Dataset::open(Arc::new(file)) {
        Ok(dataset) => Ok(Some(dataset)),
        // A file without a manifest or a summary is an MCAP file of another program.
        Err(DatasetError::NoManifest | DatasetError::NotMcap(_)) => Ok(None),
        Err(error) => Err(failure(&error, path)),
    }
}

fn of_dataset(args: &ConvertArgs, format: OutputFormat, dataset: &Arc<Dataset>) -> Result<Converted> {
    let ConvertArgs { file, output, stream, .. } = args;
    let all = dataset.streams();
    let wanted: Vec<String> = stream.iter().cloned().collect();
    let ids = session::streams_named(&all, &wanted)?;
    let streams: Vec<StreamStatus> =
        all.into_iter().filter(|stream| ids.is_empty() || ids.contains(&stream.id)).collect();
    if streams.is_empty() {
        return Err(Failure::nothing("the dataset has no streams")
            .at_path(file)
            .advice("`holdfast dataset unpack` unpacks a packed folder"));
    }
    let takes_all = matches!(format, OutputFormat::Mcap | OutputFormat::Jsonl);
    if let ([_, _, ..], false) = (&streams[..], takes_all) {
        let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
        return Err(Failure::usage("this format takes one stream")
            .at("--format")
            .advice(format_args!("give --stream: there are {}", names.join(", "))));
    }
    let Some(export) = format.export() else {
        return rows(args, format, dataset, &streams[0].name);
    };
    let selection = Selection { streams: ids, ..Selection::ALL };
    exported((file.as_path(), output.as_path()), export, &streams, &mut |sink| {
        dataset.read(&selection, sink).map(drop).map_err(|error| failure(&error, file))
    })
}

/// Packets of a capture file, or messages of an MCAP file.
fn of_import(args: &ConvertArgs, format: OutputFormat) -> Result<Converted> {
    let ConvertArgs { file, output, stream, compress, salvage, .. } = args;
    let (import, unpacking) = match FileKind::of(file).filter(|kind| is_compressed(*kind)) {
        Some(kind) => unpacked(args, kind)?,
        None => (Import::open(file, stream.as_deref())?, None),
    };
    let elements = import.elements();
    if let Some(cause) = &unpacking
        && (!salvage || elements == 0)
    {
        return Err(Failure::failed(format_args!("cannot unpack the whole file: {cause}"))
            .at_path(file)
            .advice(format_args!("`--salvage` writes {} before the damage", counted(elements, "element"))));
    }
    if let Some(Damage { at, cause, .. }) = import.damage()
        && (!salvage || elements == 0)
    {
        let what = format!("the file is damaged at byte {at}: {cause}");
        let advice = if elements == 0 {
            "nothing of it can be saved".to_owned()
        } else {
            let more = if is_mcap(file) { ", and `holdfast dataset recover` may save more" } else { "" };
            format!("{} can be saved: `--salvage` writes them{more}", counted(elements, "element"))
        };
        return Err(Failure::failed(what).at_path(file).advice(advice));
    }
    let bar = progress::count();
    let shown = |count| bar.set_message(format!("{count} elements"));
    let options = Options { compression: *compress, ..Options::default() };
    let converted = match format {
        OutputFormat::Mcap => {
            let place = OutputFile::make(output, Existing::Keep, SourceAccess::of(file))?;
            let written = import_dataset(&import, place.writer()?, output, &options, &mut { shown })?;
            place.finish()?;
            Converted { bytes: written.bytes, channels: channels(&written), messages: elements, damage: None }
        }
        OutputFormat::Csv | OutputFormat::Parquet => {
            let unnamed = unnamed_file(output)?;
            import_dataset(&import, &unnamed, output, &options, &mut { shown })?;
            let name = format!("intermediate dataset of {}", output.display());
            let opened = LocalFile::new(unnamed, name).map_err(DatasetError::from);
            let dataset = opened.and_then(|file| Dataset::open(Arc::new(file)));
            let dataset = Arc::new(dataset.map_err(|error| failure(&error, output))?);
            rows(args, format, &dataset, &import.head().status.name)?
        }
        OutputFormat::Pcapng | OutputFormat::Jsonl | OutputFormat::Raw => {
            let export = format.export().unwrap_or(Format::Raw);
            let streams = [import.head().status.clone()];
            exported((file.as_path(), output.as_path()), export, &streams, &mut |sink| {
                import.read(sink, &mut { shown })
            })?
        }
    };
    bar.finish_and_clear();
    let damage = import.damage().cloned();
    let cut = unpacking.map(|cause| Damage { at: import.bytes(), cause, lost_chunks: 0 });
    Ok(Converted { damage: damage.or(cut), ..converted })
}

fn is_compressed(kind: FileKind) -> bool {
    matches!(kind, FileKind::Gzip | FileKind::Zstd)
}

/// Capture that is compressed as a whole, and what failed while it was unpacked: it is read from an unnamed copy.
fn unpacked(args: &ConvertArgs, kind: FileKind) -> Result<(Import, Option<String>)> {
    let ConvertArgs { file, output, stream, .. } = args;
    let packed = File::open(file).map_err(|error| Failure::io("cannot open the file", file, &error))?;
    let mut copy = unnamed_file(output)?;
    let damage = unpack_whole(&packed, kind, &mut copy)
        .map_err(|error| Failure::output("cannot unpack the file", output, &error))?;
    let import = Import::of_file(copy, file, stream.as_deref())?;
    Ok((import, damage.map(|error| error.to_string())))
}

fn channels(written: &Written) -> u64 {
    written.manifest.streams.iter().map(|stream| stream.channels.len() as u64).sum()
}

/// File without a name in the folder of the output: it is gone when it is closed.
fn unnamed_file(output: &Path) -> Result<File> {
    let mut name = OsString::from(".");
    name.push(output.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let path = output.with_file_name(name);
    let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let file = made.map_err(|error| Failure::output("cannot make an intermediate file", &path, &error))?;
    std::fs::remove_file(&path)
        .map_err(|error| Failure::output("cannot unlink the intermediate file", &path, &error))?;
    Ok(file)
}

type ItemSink<'a> = dyn FnMut(Item<'_>) -> ControlFlow<()> + 'a;

/// Exports items to the output.
fn exported(
    (file, output): (&Path, &Path),
    format: Format,
    streams: &[StreamStatus],
    read: &mut dyn FnMut(&mut ItemSink<'_>) -> Result<()>,
) -> Result<Converted> {
    let to = Output::file(output, Existing::Keep, SourceAccess::of(file))?;
    let passed = to.passed();
    let export = Export::new(format, streams, to)?;
    let mut sink = Sink::new(export, passed, ElementFilter::All, Box::new(|_| ()))?;
    let ended = read(&mut |item| sink.take(&item));
    sink.end_read(ended.map(|()| 0))?;
    let (export, counts) = sink.finish();
    let written = export.finish()?.finish()?;
    let (bytes, channels) = (written.bytes, streams.len() as u64);
    Ok(Converted { bytes, channels, messages: counts.elements, damage: None })
}

/// Writes the rows of a stream: attributes and payloads.
fn rows(args: &ConvertArgs, format: OutputFormat, dataset: &Arc<Dataset>, stream: &str) -> Result<Converted> {
    let ConvertArgs { file, output, limits, .. } = args;
    let streams = holdfast_dataset::streams(dataset).map_err(|error| failure(&error, file))?;
    let index = IndexCopies::at(None, notices());
    let sql = sql::open_sources(None, streams, &limits.limits(), &index, &OpenSlots::default())?;
    let place = OutputFile::make(output, Existing::Keep, SourceAccess::of(file))?;
    let question = format!("select * from \"{}\" order by ordinal", stream.replace('"', "\"\""));
    let messages = sql.answer(&question, format.rows(), |_| {
        Ok(Box::new(std::io::BufWriter::with_capacity(1 << 20, place.writer()?)))
    })?;
    sql::told(&sql.engine.diagnostics.take())?;
    let written = place.writer()?.metadata();
    let bytes = written.map_err(|error| Failure::output("cannot finish the file", output, &error))?.len();
    place.finish()?;
    Ok(Converted { bytes, channels: 1, messages, damage: None })
}

/// Reports damage on standard error.
pub(crate) fn say_damage(file: &Path, damage: &Damage) {
    let Damage { at, cause, lost_chunks } = damage;
    let lost = match lost_chunks {
        0 => String::new(),
        chunks => format!("; {} left out", counted(*chunks, "damaged chunk")),
    };
    crate::out::say(&format!("{}: damaged, the record at byte {at}: {cause}{lost}", file.display()));
}

/// Damage of a file as JSON.
pub(crate) fn file_damage(damage: &Damage) -> FileDamage<'_> {
    FileDamage { at_byte: damage.at, cause: &damage.cause, lost_chunks: damage.lost_chunks }
}
