//! `holdfast query`: SQL over a ring, over what is on disk and what came a moment ago.

use crate::failure::{Failure, Kind, Result, reason};
use crate::out::{Out, counted};
use crate::session::{RingArg, link};
use datafusion::error::DataFusionError;
use futures::StreamExt;
use holdfast_base::ByteSize;
use holdfast_ingest::packet::Preamble;
use holdfast_link::{LinkError, RingReader};
use holdfast_query::output::{Format, Output, OutputError};
use holdfast_query::stream::{Missed, OpenRing};
use holdfast_query::{Engine, Limits, RingError, ask, engine};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ask in SQL: find elements by their attributes, count them, group them, join them
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Each stream is a table: ordinal, time (of arrival), event_time, span (ns), direction, size,\n\
    original_size, slot, its attributes (`holdfast streams RING --attributes`), payload. `streams`,\n\
    `slots`, `holds` and `gaps` are tables, too. Addresses are compared as they are written:\n\
    src = '10.0.0.1'. Beside what SQL has: in_net(src, '10.0.0.0/8'), hex(payload), text(payload),\n\
    matches(payload, 'GET /[a-z]+'), and u8, u16be, u16le … u64le of (payload, offset).\n\n\
    Exits with 1 when something could not be looked into (what was found is written), with 3 when no\n\
    row was found.\n\n\
    Examples:\n  holdfast query lab.hf \"select time, src, dst, wire_len from eth0 where dst_port = 443 limit 10\"\n  \
    holdfast query lab.hf \"select src, count(*) n from eth0 group by src order by n desc limit 5\"\n  \
    holdfast query lab.hf \"select * from gaps\" --format csv -o gaps.csv"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// The question
    sql: String,
    /// Form of the result (table; with --json jsonl)
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Where to: a file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    /// Memory for sorting, grouping and joining; what does not fit goes to disk for the time being
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    memory: ByteSize,
    /// Folder for what does not fit into memory [default: the system's]
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// How much of it may be used
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    spill_size: ByteSize,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// Form of a result.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Columns for people
    Table,
    /// Comma-separated values
    Csv,
    /// A JSON object a line
    Jsonl,
    /// An Arrow IPC stream
    Arrow,
    /// A Parquet file
    Parquet,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Table => Self::Table,
            Form::Csv => Self::Csv,
            Form::Jsonl => Self::Jsonl,
            Form::Arrow => Self::Arrow,
            Form::Parquet => Self::Parquet,
        }
    }
}

impl Args {
    /// Whether the result goes where messages would go.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = args.ring.path()?;
    let usual = if out.is_json() { Form::Jsonl } else { Form::Table };
    let format = Format::from(args.format.unwrap_or(usual));
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let limits = Limits {
        memory: args.memory,
        spill: args.spill.clone(),
        spill_bytes: args.spill_size,
        threads: threads.unwrap_or(NonZeroUsize::MIN),
    };
    let at = path.clone();
    let open: OpenRing = Arc::new(move || RingReader::open(&at));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(limits.threads.get())
        .build()
        .map_err(|error| Failure::failed(format_args!("cannot start threads: {}", reason(&error))))?;
    let engine = engine(&limits, &open, &link_types).map_err(|error| match error {
        RingError::Link(error) => link(&error),
        other => Failure::failed(other).at_path(&path),
    })?;
    let rows = runtime.block_on(answer(&engine, args, format))?;
    told(&engine.trouble.take())?;
    if rows == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

async fn answer(engine: &Engine, args: &Args, format: Format) -> Result<u64> {
    let wrong = |error: DataFusionError| engine_failure(&error, &args.sql);
    let frame = ask(&engine.context, &args.sql).await.map_err(wrong)?;
    let mut batches = frame.execute_stream().await.map_err(wrong)?;
    let place = args.output.as_deref().filter(|_| !args.to_stdout());
    let to = destination(place, format, args.force)?;
    let broken = |error: OutputError| match error {
        OutputError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::said(Kind::Done),
        OutputError::Io(error) => {
            Failure::failed(format_args!("cannot write the result: {}", reason(&error)))
        }
        other => Failure::failed(format_args!("this result cannot be written in that form: {other}"))
            .advice("choose another --format"),
    };
    let mut output = Output::new(format, &batches.schema(), to).map_err(broken)?;
    while let Some(batch) = batches.next().await {
        output.write(&batch.map_err(wrong)?).map_err(broken)?;
    }
    output.finish().map_err(broken)
}

fn destination(place: Option<&Path>, format: Format, force: bool) -> Result<Box<dyn Write + Send>> {
    let Some(path) = place else {
        if !format.is_text() && io::stdout().is_terminal() {
            return Err(Failure::usage("this would write binary data to the terminal")
                .at("-o")
                .advice("name a file with -o FILE, or pass it on through a pipe"));
        }
        return Ok(Box::new(io::BufWriter::new(io::stdout())));
    };
    let mut options = File::options();
    options.write(true);
    let opened =
        if force { options.create(true).truncate(true) } else { options.create_new(true) }.open(path);
    match opened {
        Ok(file) => Ok(Box::new(io::BufWriter::new(file))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Failure::failed("there is a file of that name")
                .at_path(path)
                .advice("choose another, or say --force to replace it"))
        }
        Err(error) => Err(Failure::io("cannot make the file", path, &error)),
    }
}

/// What the packets of each interface begin with.
fn link_types(preamble: &[u8]) -> Vec<u16> {
    let interfaces = Preamble::validate(preamble).unwrap_or_default();
    interfaces.iter().map(|interface| interface.link_type.0).collect()
}

/// What the engine says against a question, with the place in it where it knows that.
fn engine_failure(error: &DataFusionError, sql: &str) -> Failure {
    if let DataFusionError::External(external) = error.find_root()
        && let Some(error) = external.downcast_ref::<LinkError>()
    {
        return link(error);
    }
    let text = error.strip_backtrace();
    let failure = match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => {
            return Failure::failed(text).advice("give it more --memory, or more room with --spill");
        }
        DataFusionError::SQL(..) | DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => {
            Failure::usage(text)
        }
        _ => Failure::failed(text),
    };
    match place(&failure.to_string(), sql) {
        Some(shown) => failure.advice(shown),
        None => failure,
    }
}

/// The line of the question that a message speaks of, with a mark under its column.
fn place(text: &str, sql: &str) -> Option<String> {
    let number = |word: &str| {
        let rest = text.split(word).nth(1)?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok()
    };
    let (line, column) = (number("Line: ")?, number("Column: ")?);
    let shown = sql.lines().nth(line.checked_sub(1)?)?;
    Some(format!("here:\n  {shown}\n  {}^", " ".repeat(column.saturating_sub(1))))
}

/// What was missed, as the end of the command.
fn told(missed: &Missed) -> Result<()> {
    let Missed { expired, damaged, places, partial } = missed;
    if let Some(first) = places.first() {
        return Err(Failure::failed(format_args!(
            "{} could not be looked into, the first is {first}",
            counted(*damaged, "damaged slot")
        ))
        .advice("what else was found is written; `holdfast check` lists all damage"));
    }
    if *expired > 0 {
        return Err(Failure::failed(format_args!(
            "{} expired while the query was at work: the result lacks what was in them",
            counted(*expired, "slot")
        ))
        .advice("ask for younger data (time > now() - interval '10 minutes'), or hold the range first"));
    }
    if *partial > 0 {
        return Err(Failure::failed(format_args!(
            "of {} a part is not there any more: their payload is null",
            counted(*partial, "element that was found")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_under_what_is_wrong() {
        let shown = place("Expected: end, found: t at Line: 2, Column: 3", "select 1\nx t").unwrap();
        assert_eq!(shown, "here:\n  x t\n    ^");
        assert_eq!(place("no such place", "select 1"), None);
        assert_eq!(place("Line: 9, Column: 1", "select 1"), None);
    }
}
