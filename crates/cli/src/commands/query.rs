//! `holdfast query`: SQL over a ring, over what is on disk and what came a moment ago.

use crate::args::AuditArgs;
use crate::args::IndexArg;
use crate::args::LimitArgs;
use crate::args::{RingArg, SiteArgs};
use crate::distant::{Distant, DistantRings, Lines};
use crate::out::{Out, notices};
use clap::ValueEnum as _;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::exports::{self, Destination, HitsExport};
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::json::{self};
use holdfast_client::session;
use holdfast_client::sql;
use holdfast_export::{self as export, Counts, Existing, OutputFile, SourceAccess};
use holdfast_query::SourceStream;
use holdfast_query::output::Format;
use holdfast_reader::{OpenSlots, Selection};
use holdfast_vault::{Place, Source};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run an SQL query: find, count, group and join elements by their attributes
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "holdfast query [OPTIONS] <SOURCE>... <SQL>",
    after_help = "Each stream is a table: ordinal, time (of arrival), event_time, span (ns), direction, size,\n\
    original_size, slot, its attributes (`holdfast streams RING --attributes`), payload. `streams`,\n\
    `slots`, `holds` and `gaps` are tables, too. Addresses are compared with text: src = '10.0.0.1'.\n\
    Additional functions: in_net(src, '10.0.0.0/8'), addr_text(src), hex(payload), text(payload),\n\
    matches(payload, 'GET /[a-z]+'), bytes(payload, 14, 20), date_bin(interval '10 seconds', time),\n\
    json_get(payload, 'a.b[0]') and json_get_text, _int, _float, _bool for JSON without a schema,\n\
    and the numbers u8, u16be, i32le, f32be … of (payload, offset).\n\n\
    pcapng and mcap write the elements themselves, ordered by ordinal. Each row of the query must be\n\
    an element of one stream, with its ordinal.\n\n\
    hf://SITE/rings/RING is asked at its site, through the site of --site; rows of several sites come\n\
    as they are found (--format jsonl).\n\n\
    Exits with 1 if some data could not be searched (the results are written), with 3 if there is no\n\
    row.\n\n\
    Examples:\n  holdfast query lab.hf \"select time, src, dst, wire_len from eth0 where dst_port = 443 limit 10\"\n  \
    holdfast query lab.hf \"select src, count(*) n from eth0 group by src order by n desc limit 5\"\n  \
    holdfast query lab.hf \"select * from gaps\" --format csv -o gaps.csv\n  \
    holdfast query lab.hf \"select ordinal from eth0 where dst_port = 53\" --format pcapng -o dns.pcapng\n  \
    holdfast query lab.hf run1.mcap s3:2026/ \"select count(*) from eth0\"\n  \
    holdfast query hf://ams/rings/lab \"select count(*) from eth0\" --site http://127.0.0.1:7370"
)]
pub(crate) struct Args {
    /// Ring (path or name), dataset (.mcap file), folder of datasets, VAULT:PREFIX, or several: rows of one
    /// stream from all of them are one table; behind them the query
    // One list: options may stand between the sources and the query.
    #[arg(value_names = ["SOURCE", "SQL"], required = true, num_args = 1..)]
    words: Vec<OsString>,
    /// Format of the result (default: table; with --json: jsonl)
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Output file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    index: IndexArg,
    #[command(flatten)]
    because: AuditArgs,
    #[command(flatten)]
    site: SiteArgs,
}

/// Form of a result.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Aligned columns
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON object a line
    Jsonl,
    /// An Arrow IPC stream
    Arrow,
    /// A Parquet file
    Parquet,
    /// Matching packets, for Wireshark, tcpdump and others
    Pcapng,
    /// Matching elements as messages, for Foxglove and others
    Mcap,
}

/// What is written.
enum Written {
    /// The answer's rows.
    Rows(Format),
    /// The elements that they are.
    Elements(export::Format),
}

impl Form {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl From<Form> for Written {
    fn from(form: Form) -> Self {
        match form {
            Form::Table => Self::Rows(Format::Table),
            Form::Csv => Self::Rows(Format::Csv),
            Form::Jsonl => Self::Rows(Format::Jsonl),
            Form::Arrow => Self::Rows(Format::Arrow),
            Form::Parquet => Self::Rows(Format::Parquet),
            Form::Pcapng => Self::Elements(export::Format::Pcapng),
            Form::Mcap => Self::Elements(export::Format::Mcap),
        }
    }
}

impl Args {
    /// Sources and query.
    fn split(&self) -> Result<(Vec<PathBuf>, &str)> {
        match &self.words[..] {
            [sources @ .., sql] if !sources.is_empty() => {
                let sql = sql.to_str().ok_or_else(|| Failure::usage("the query is not UTF-8"))?;
                Ok((sources.iter().map(PathBuf::from).collect(), sql))
            }
            _ => Err(Failure::usage("a query takes a source and the SQL").advice("see --help")),
        }
    }

    /// Whether the result goes where messages would go.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (sources, sql_text) = args.split()?;
    if let Some(rings) = DistantRings::among(&sources)? {
        return at_sites(args, rings, sql_text, out);
    }
    let Sources { ring, datasets } = sort(&sources)?;
    let usual = if out.is_json() { Form::Jsonl } else { Form::Table };
    let form = args.format.unwrap_or(usual);
    let written = form.into();
    let file = args.output.as_deref().filter(|_| !args.to_stdout());
    let place = file.map_or("standard output".into(), Path::to_string_lossy);
    let what = format!("{} to {place} of `{}`", form.name(), sql_text);
    // Rows that are looked at are no export; what becomes a file is one, and what nobody looks at.
    let is_text = matches!(&written, Written::Rows(format) if format.is_text());
    let is_export = file.is_some() || !is_text;
    let by = args.because.attribution();
    let path = ring.as_ref().map(|(_, path)| path.as_path());
    if let Some(path) = path.filter(|_| is_export) {
        by.export_alone(path, &Selection::ALL, &what, &notices())?;
    }
    let place = ring.as_ref().map(|(named, _)| args.index.place(named)).transpose()?.flatten();
    let index = IndexCopies::at(place, notices());
    session::prefer_oom_kill();
    let more = streams_of(&datasets)?;
    let sql = sql::open_sources(path, more, &args.limits.limits(), &index, &OpenSlots::default())?;
    let mut made = None;
    let access = datasets.iter().fold(SourceAccess::of_all(path), |access, place| access.and(place.access()));
    let rows = match written {
        Written::Rows(format) => {
            let rows = sql.answer(sql_text, format, |format| {
                let place = file
                    .map(|path| OutputFile::make(path, Existing::by_force(args.force), access))
                    .transpose()?;
                let to = writer(place.as_ref(), format.is_text())?;
                made = place;
                if let Some(path) = path.filter(|_| is_export) {
                    by.export(&mut session::open(path)?, &Selection::ALL, &what)?;
                }
                Ok(to)
            })?;
            // What came to nothing leaves none behind, and none that was there is gone for it.
            made.map_or(Ok(()), OutputFile::finish)?;
            rows
        }
        Written::Elements(format) => {
            let Some(path) = path.filter(|_| datasets.is_empty()) else {
                return Err(Failure::usage(format_args!(
                    "--format {} takes one ring as its source",
                    form.name()
                ))
                .advice("export rows (jsonl, csv, parquet), or elements of a dataset by `holdfast read`"));
            };
            let to = Destination { file, force: args.force, by: &by, what: &what };
            match exports::hits(&sql, sql_text, path, format, &to)? {
                Some(export) => hits_exported(&export, format, file, out)?,
                None => 0,
            }
        }
    };
    sql::told(&sql.engine.diagnostics.take())?;
    if rows == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

/// Asks where the rings are. The file of the result is made here, before anything is asked.
fn at_sites(args: &Args, rings: DistantRings, sql: &str, out: &Out) -> Result<()> {
    let usual = if out.is_json() { Form::Jsonl } else { Form::Table };
    let form = args.format.unwrap_or(usual);
    let is_text = matches!(form, Form::Table | Form::Csv | Form::Jsonl);
    let file = args.output.as_deref().filter(|_| !args.to_stdout());
    let file = file
        .map(|path| OutputFile::make(path, Existing::by_force(args.force), SourceAccess::default()))
        .transpose()?;
    let mut to = writer(file.as_ref(), is_text)?;
    let (with, without) = (vec![format!("--format={}", form.name())], &["format", "output", "force"][..]);
    let lines = if form == Form::Jsonl { Lines::Json } else { Lines::None };
    let distant = Distant { rings, command: "query", without, with, sql: Some(sql), lines, site: &args.site };
    let are_elements = matches!(form.into(), Written::Elements(_));
    let ended = distant.run(are_elements && out.is_json(), &mut to)?;
    drop(to);
    // A result without rows has its file, but of no elements none is made.
    let is_made = if are_elements { ended.has_rows() } else { ended.has_result() };
    if is_made {
        file.map_or(Ok(()), OutputFile::finish)?;
    }
    ended.end()
}

/// Sources of a query.
struct Sources {
    /// The ring, as it was named, and its path.
    ring: Option<(RingArg, PathBuf)>,
    datasets: Vec<Place>,
}

fn sort(named: &[PathBuf]) -> Result<Sources> {
    let (mut rings, mut datasets) = (Vec::new(), Vec::new());
    for name in named {
        for source in Place::parse(name)?.sources()? {
            match source {
                Source::Ring(path) => rings.push(path),
                Source::Dataset(place) => datasets.push(place),
            }
        }
    }
    match &rings[..] {
        [] => Ok(Sources { ring: None, datasets }),
        [one] => {
            let ring = RingArg::of(one.clone());
            let path = ring.path()?;
            Ok(Sources { ring: Some((ring, path)), datasets })
        }
        [_, second, ..] => Err(Failure::usage("a query takes one ring at most")
            .at_path(second)
            .advice("evacuate holds of one of them, and query the datasets")),
    }
}

/// Streams of datasets as tables.
fn streams_of(datasets: &[Place]) -> Result<Vec<SourceStream>> {
    let mut all = Vec::new();
    for place in datasets {
        let dataset = Arc::new(place.dataset()?);
        let streams = holdfast_dataset::streams(&dataset);
        all.extend(streams.map_err(|error| place.failure(&error))?);
    }
    Ok(all)
}

fn writer(place: Option<&OutputFile>, is_text: bool) -> Result<Box<dyn Write + Send>> {
    if let Some(place) = place {
        return Ok(Box::new(io::BufWriter::new(place.writer()?)));
    }
    if !is_text && io::stdout().is_terminal() {
        return Err(Failure::usage("this would write binary data to the terminal")
            .at("-o")
            .advice("name a file with -o FILE, or pass it on through a pipe"));
    }
    Ok(Box::new(io::BufWriter::new(io::stdout())))
}

/// Tells of an export of query hits; how many elements were found.
fn hits_exported(
    export: &HitsExport,
    format: export::Format,
    file: Option<&Path>,
    out: &mut Out,
) -> Result<u64> {
    let HitsExport { found, gone, counts: taken, written } = export;
    if out.is_json() {
        let shown = json::HitsExport {
            output: file,
            format: format.name(),
            bytes: written.bytes,
            blake3: &written.blake3,
            elements: taken.elements,
            payload_bytes: taken.bytes,
            gone: *gone,
            partial: taken.partial,
            damaged: taken.damaged,
        };
        if file.is_none() { Out::stderr(true).last(&shown)? } else { out.object(&shown)? }
    } else {
        report(taken, *gone, written)?;
    }
    if taken.damaged > 0 { Err(Failure::said(Kind::Failed).lossy()) } else { Ok(*found) }
}

/// The report for people, on standard error.
fn report(taken: &Counts, gone: u64, written: &export::Written) -> Result<()> {
    let mut err = Out::stderr(false);
    let elements = counted(taken.elements, "element");
    err.line(format_args!("{elements}, {} of payload", ByteSize(taken.bytes)))?;
    if gone > 0 {
        err.line(format_args!("{} found could not be read any more", counted(gone, "more element")))?;
    }
    for line in taken.left_out() {
        err.line(line)?;
    }
    err.line(format_args!("wrote {}, BLAKE3 {}", counted(written.bytes, "byte"), written.blake3))?;
    err.flush()
}
