//! `holdfast read`: gets a range back, to a file or a pipe, in the form that other programs want.

use crate::args::AuditArgs;
use crate::args::RangeArgs;
use crate::args::RingArg;
use crate::out::{Out, notices};
use crate::progress;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_client::exports;
use holdfast_client::json::RangeExport;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::times;
use holdfast_client::words;
use holdfast_export::{
    Counts, ElementFilter, Existing, Export, Filter, Format, Output, Sink, SourceAccess, Thinning, Written,
};
use holdfast_query::condition_search::Sample;
use holdfast_reader::{Plan, RingReader, Selection};
use holdfast_ring::StreamStatus;
use holdfast_vault::Place;
use std::path::{Path, PathBuf};

/// Export a range as payloads, pcapng, MCAP or JSON lines, to a file or a pipe
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    Without -o, or with `-o -`, the output is standard output. A file gets its name when it is\n\
    complete. Standard error reports the elements read, losses inside the range, and the BLAKE3 of the\n\
    output. Exits with 1 if something in the range is damaged (sound data is written), with 3 if the\n\
    range is empty.\n\n\
    Examples:\n  holdfast read lab.hf --stream eth0 --last 30s --format pcapng -o - | tcpdump -r -\n  \
    holdfast read lab.hf --stream log --from -5m --to -2m -o log.txt\n  \
    holdfast read lab.hf --stream log --ordinals 100..200 --format jsonl\n  \
    holdfast read lab.hf --stream eth0 --filter \"udp port 9\" -o some.pcapng\n  \
    holdfast read s3:run1.mcap --stream camera --every 100 -o overview.raw", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Stream (mcap and jsonl: may be repeated; default: all)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
    /// Packet filter in tcpdump syntax: 'tcp port 443'
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    #[command(flatten)]
    thin: ThinArgs,
    /// Format of the export (default: pcapng for a stream of packets, raw for others)
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Output file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    because: AuditArgs,
}

/// Options that export less than all of a range.
#[derive(clap::Args, Debug)]
struct ThinArgs {
    /// Every Nth element: those whose ordinal is a multiple of N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Elements of a part of each period, by arrival: length and period (`30s/1h`)
    #[arg(long, value_name = "SPAN/SPAN", value_parser = holdfast_standing::sample)]
    sample: Option<Sample>,
    /// Part of each payload: from byte A, without byte B
    #[arg(long, value_name = "A..B", value_parser = byte_range)]
    bytes: Option<(u64, u64)>,
}

impl ThinArgs {
    fn thinning(&self, format: Format) -> Result<Thinning> {
        if self.bytes.is_some_and(|(from, _)| from > 0) && format == Format::Pcapng {
            return Err(Failure::usage("packets are cut at their end alone: --bytes begins at 0 for pcapng")
                .at("--bytes")
                .advice("take --bytes 0..N, or --format raw"));
        }
        Ok(Thinning {
            every: self.every.unwrap_or_default(),
            sample: self.sample.map(|sample| (sample.length, sample.period)),
            bytes: self.bytes,
        })
    }
}

fn byte_range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("`{text}` is no range of bytes: write A..B, such as 0..64");
    let (from, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let (from, end) = (number(from)?, number(end)?);
    if from < end { Ok((from, end)) } else { Err(wrong()) }
}

impl Args {
    /// Whether the export goes where messages would go.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

impl Args {
    /// What is exported, in words.
    fn what(&self, format: Format) -> String {
        let passing = self.filter.as_ref().map_or_else(String::new, |filter| format!(" of `{filter}`"));
        let file = self.output.as_deref().filter(|_| !self.to_stdout());
        let to = file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
        format!("{}{passing} to {to}", format.name())
    }
}

/// Format of an export, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatArg {
    /// the payloads as they came, behind their preamble
    Raw,
    /// packets for Wireshark, tcpdump and others
    Pcapng,
    /// one channel a stream, for Foxglove and others
    Mcap,
    /// one JSON object a line
    Jsonl,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Raw => Self::Raw,
            FormatArg::Pcapng => Self::Pcapng,
            FormatArg::Mcap => Self::Mcap,
            FormatArg::Jsonl => Self::Jsonl,
        }
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    session::give_way_to_recorders();
    session::prefer_oom_kill();
    if let Some(place) = args.ring.dataset()? {
        return of_dataset(&place, args, out);
    }
    let (path, mut reader) = args.ring.open()?;
    let all = reader.streams().map_err(|error| ring_failure(&error))?;
    let Chosen { streams: chosen, selection, format } = chosen(&all, args, &path)?;
    let thinning = args.thin.thinning(format)?;
    let wanted = match &args.filter {
        Some(expression) => ElementFilter::Passing(filter(expression, &chosen, &mut reader)?),
        None => ElementFilter::All,
    };
    let output = match &args.output {
        Some(file) if !args.to_stdout() => {
            Output::file(file, Existing::by_force(args.force), SourceAccess::of(&path))?
        }
        _ => Output::stdout(format.is_binary())?,
    };
    let passed = output.passed();
    let export = Export::new(format, &chosen, output)?;
    let what = args.what(format);
    let by = args.because.attribution();
    if by.export_alone(&path, &selection, &what, &notices())? {
        reader = session::open(&path)?;
    }
    by.export(&mut reader, &selection, &what)?;
    let plan = reader.plan(&selection).map_err(|error| ring_failure(&error))?;
    let bar = progress::bar(plan.bytes, true);
    let shown = bar.clone();
    let sink = Sink::new(export, passed, wanted, Box::new(move |bytes| shown.set_position(bytes)))?;
    let mut sink = sink.thinned(thinning);
    let filled = exports::fill(&mut sink, &mut reader, &plan);
    bar.finish_and_clear();
    filled?;
    let (export, taken) = sink.finish();
    let told_too =
        if format == Format::Jsonl { taken.notes + taken.gaps + taken.partial + taken.damaged } else { 0 };
    // What has nothing in it gets no name, and what was to be written is forgotten.
    if taken.elements + told_too == 0 {
        return Err(nothing(&path, &chosen, &taken, reader));
    }
    let written = export.finish()?.finish()?;
    reported(args, format, &taken, &written, &plan, out)
}

/// Tells of an export; its end as the command's.
fn reported(
    args: &Args,
    format: Format,
    taken: &Counts,
    written: &Written,
    plan: &Plan,
    out: &mut Out,
) -> Result<()> {
    let shown = RangeExport {
        output: args.output.as_deref().filter(|_| !args.to_stdout()),
        format: format.name(),
        bytes: written.bytes,
        blake3: &written.blake3,
        elements: taken.elements,
        payload_bytes: taken.bytes,
        gaps: taken.gaps,
        partial: taken.partial,
        damaged: taken.damaged,
        expired_slots: taken.expired,
        expired_before: plan.expired_before,
        expired_ordinals: plan.expired_ordinals.iter().map(|(_, from, end)| (from.0, end.0)).collect(),
    };
    if out.is_json() {
        if args.to_stdout() { Out::stderr(true).last(&shown)? } else { out.object(&shown)? }
    } else {
        told(taken, written, plan)?;
    }
    if taken.damaged > 0 { Err(Failure::said(Kind::Failed)) } else { Ok(()) }
}

/// Streams and range of a read, and the format of its output.
struct Chosen {
    streams: Vec<StreamStatus>,
    selection: Selection,
    format: Format,
}

fn chosen(all: &[StreamStatus], args: &Args, path: &Path) -> Result<Chosen> {
    // The only stream need not be named.
    let ids = match all {
        [one] if args.streams.is_empty() => vec![one.id],
        _ => session::streams_named(all, &args.streams)?,
    };
    let streams: Vec<StreamStatus> =
        all.iter().filter(|stream| ids.is_empty() || ids.contains(&stream.id)).cloned().collect();
    if streams.is_empty() {
        return Err(Failure::nothing("nothing was recorded on this ring yet").at_path(path));
    }
    let selection = session::selection_of(ids, &args.range.options())?;
    let format = args.format.map_or_else(|| Format::fitting(&streams), Format::from);
    if streams.len() > 1 && args.streams.is_empty() && matches!(format, Format::Raw | Format::Pcapng) {
        let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
        return Err(Failure::usage(format_args!("--format {} takes one stream", format.name()))
            .advice(format_args!("give --stream: there are {}", names.join(", "))));
    }
    Ok(Chosen { streams, selection, format })
}

/// Exports a range of a dataset.
fn of_dataset(place: &Place, args: &Args, out: &mut Out) -> Result<()> {
    let dataset = place.dataset()?;
    let name = place.to_string();
    let Chosen { streams, selection, format } = chosen(&dataset.streams(), args, Path::new(&name))?;
    let thinning = args.thin.thinning(format)?;
    let wanted = match &args.filter {
        Some(expression) => ElementFilter::Passing(Filter::new(expression, &streams)?),
        None => ElementFilter::All,
    };
    let output = match &args.output {
        Some(file) if !args.to_stdout() => {
            Output::file(file, Existing::by_force(args.force), place.access())?
        }
        _ => Output::stdout(format.is_binary())?,
    };
    let passed = output.passed();
    let export = Export::new(format, &streams, output)?;
    let mut sink = Sink::new(export, passed, wanted, Box::new(|_| ()))?.thinned(thinning);
    let keeps = |ordinal, arrival| thinning.keeps(ordinal, arrival);
    let read = dataset.read_some(&selection, &keeps, &mut |item| sink.take(&item));
    sink.end_read(read.map(|_| 0).map_err(|error| place.failure(&error)))?;
    let (export, taken) = sink.finish();
    if taken.elements + taken.gaps + taken.notes == 0 {
        return Err(Failure::nothing("nothing in that range is in the dataset").at(name));
    }
    let written = export.finish()?.finish()?;
    let plan = Plan::of_nothing(selection);
    reported(args, format, &taken, &written, &plan, out)
}

/// A filter for these streams. What is wrong with it is told now, for the interfaces that they have at last.
fn filter(expression: &str, chosen: &[StreamStatus], reader: &mut RingReader) -> Result<Filter> {
    let mut filter = Filter::new(expression, chosen)?;
    for stream in chosen {
        if let Some(bytes) =
            reader.preamble(stream.id, stream.preamble).map_err(|error| ring_failure(&error))?
        {
            filter.preamble(stream.id, &bytes)?;
        }
    }
    Ok(filter)
}

/// Why there is nothing, as far as it can be told.
fn nothing(path: &Path, chosen: &[StreamStatus], taken: &Counts, mut reader: RingReader) -> Failure {
    let failure = Failure::nothing("nothing in that range is on the ring").at_path(path);
    if let Some(known) = seen(path, taken) {
        return known;
    }
    let span = reader.status().ok().and_then(|status| status.ring.oldest.zip(status.ring.newest));
    let ordinals = chosen.iter().map(|stream| (stream.name.as_str(), stream.counters.next_ordinal.0));
    failure.advice(reach(span, &ordinals.collect::<Vec<_>>()))
}

/// Reach of a ring, and the next ordinals of streams. The slot that is being filled is not in the ring's times.
fn reach(span: Option<(Timestamp, Timestamp)>, ordinals: &[(&str, u64)]) -> String {
    let next: Vec<String> =
        ordinals.iter().map(|(name, next)| format!("{name} is at ordinal {next}")).collect();
    let next = next.join(", ");
    match span {
        Some((oldest, newest)) => {
            format!("it reaches from {} to {}; {next}", times::rfc3339(oldest), times::rfc3339(newest))
        }
        None if ordinals.iter().any(|(_, next)| *next > 0) => next,
        None => "nothing was recorded yet".to_owned(),
    }
}

/// What the read itself came across instead of elements.
fn seen(path: &Path, taken: &Counts) -> Option<Failure> {
    if let Some(first) = taken.damaged_told.first() {
        let are = if taken.damaged == 1 { "is" } else { "are" };
        let places = counted(taken.damaged, "place");
        let what = format!("{places} in that range {are} damaged, the first is {first}");
        return Some(Failure::failed(what).at_path(path).advice("`holdfast check` lists all"));
    }
    if taken.expired > 0 {
        let what = format!(
            "all there was of that range expired while it was being read, {}",
            counted(taken.expired, "slot")
        );
        return Some(Failure::nothing(what).at_path(path).advice("hold the range first, then read it"));
    }
    if taken.others > 0 {
        let what = format!("of {} in that range none passes", counted(taken.others, "packet"));
        return Some(Failure::nothing(what).at("--filter"));
    }
    let failure = Failure::nothing("nothing in that range is on the ring").at_path(path);
    if let Some(first) = taken.partial_told.first() {
        let left = format!("of {} a part is left, the first is {first}", counted(taken.partial, "element"));
        return Some(failure.advice(left));
    }
    if taken.gaps > 0 {
        let lost =
            format!("what arrived then is gone, in {}: see `holdfast gaps`", counted(taken.gaps, "gap"));
        return Some(failure.advice(lost));
    }
    None
}

/// The report for people, on standard error.
fn told(taken: &Counts, written: &Written, plan: &Plan) -> Result<()> {
    let mut err = Out::stderr(false);
    let elements = counted(taken.elements, "element");
    err.line(format_args!("{elements}, {} of payload", ByteSize(taken.bytes)))?;
    if let Some(first) = plan.begins {
        err.line(format_args!("the ring begins at {}", times::rfc3339(first)))?;
    }
    if let Some(oldest) = plan.expired_before {
        err.line(format_args!("what was before {} had expired already", times::rfc3339(oldest)))?;
    }
    let first = plan.selection.range.ordinals.map_or_else(Default::default, |(first, _)| first);
    for (_, from, end) in &plan.expired_ordinals {
        err.line(format_args!("{}", words::expired_ordinals(first, *from, *end)))?;
    }
    if taken.gaps > 0 {
        err.line(format_args!("{} inside the range: see `holdfast gaps`", counted(taken.gaps, "gap")))?;
    }
    if taken.expired > 0 {
        err.line(format_args!(
            "{} expired during the read: hold the range first to keep it",
            counted(taken.expired, "slot")
        ))?;
    }
    for line in taken.left_out() {
        err.line(line)?;
    }
    err.line(format_args!("wrote {}, BLAKE3 {}", counted(written.bytes, "byte"), written.blake3))?;
    err.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_without_times_are_not_called_absent() {
        assert_eq!(reach(None, &[("a", 0), ("b", 0)]), "nothing was recorded yet");
        assert_eq!(reach(None, &[("a", 0), ("b", 7)]), "a is at ordinal 0, b is at ordinal 7");
        let said = reach(Some((Timestamp(0), Timestamp(1_000_000_000))), &[("a", 9)]);
        assert!(
            said.starts_with("it reaches from 1970-01-01T00:00:00") && said.ends_with("; a is at ordinal 9"),
            "{said}"
        );
    }

    #[test]
    fn what_expired_under_the_reader_is_not_called_absent() {
        let path = Path::new("r.hf");
        let taken = Counts { expired: 7, ..Counts::default() };
        let failure = seen(path, &taken).unwrap();
        let text = failure.to_string();
        assert!(
            text.contains("expired while it was being read, 7 slots, r.hf: hold the range first"),
            "{text}"
        );
        assert_eq!(failure.number(), 3);
        assert_eq!(seen(path, &Counts::default()), None);
    }
}
