//! Exports of what the reader gives: of a plan, and of the elements that a query finds. These are read back in the order of their
//! ordinals; nothing is kept of them but the ordinals of one read.

use crate::attribution::Attribution;
use crate::session::{self, ring_failure};
use crate::sql::Sql;
use holdfast_base::Ordinal;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_export::{Counts, ElementFilter, Existing, Export, Format, Output, Sink, SourceAccess, Written};
use holdfast_reader::{Plan, RingReader, Selection};
use holdfast_ring::Range;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// What lies closer than so many elements is read in one go: to plan another read takes about as long as passing over these.
const NEAR: u64 = 1 << 14;

/// How often it is looked whether somebody wants it to end, while the engine is searching.
const TURN: Duration = Duration::from_millis(100);

/// Elements of one read at most: their ordinals are kept meanwhile.
const MOST: usize = 1 << 16;

/// Where an export goes.
pub struct Destination<'a> {
    /// A file; none: standard output.
    pub file: Option<&'a Path>,
    /// Whether one that is there is replaced.
    pub force: bool,
    /// Who wants it, and why.
    pub by: &'a Attribution,
    /// What is put on record.
    pub what: &'a str,
}

/// Export of query hits.
pub struct HitsExport {
    /// Elements that the query found.
    pub found: u64,
    /// Elements that could not be read any more.
    pub gone: u64,
    /// Counts of what was read.
    pub counts: Counts,
    /// Bytes and hash of the output.
    pub written: Written,
}

/// Rising ordinals, cut into what is read in one go.
#[derive(Default)]
struct Runs {
    open: Vec<Ordinal>,
}

impl Runs {
    /// Takes the next one; the run before it, if that is complete. What comes twice counts once.
    fn take(&mut self, next: Ordinal) -> Option<Vec<Ordinal>> {
        let last = self.open.last().copied();
        if last == Some(next) {
            return None;
        }
        let ends = last.is_some_and(|last| next.0 - last.0 > NEAR) || self.open.len() == MOST;
        let run = ends.then(|| std::mem::take(&mut self.open));
        self.open.push(next);
        run
    }
}

/// Exports the elements that a query finds; `None` where it finds none.
pub fn hits(
    sql: &Sql,
    question: &str,
    ring: &Path,
    format: Format,
    to: &Destination<'_>,
) -> Result<Option<HitsExport>> {
    let mut reader = session::open(ring)?;
    let (id, ordinals) = sql.hits(question)?;
    let mut streams = reader.streams().map_err(|error| ring_failure(&error))?;
    streams.retain(|stream| stream.id == id);
    let output = match to.file {
        Some(file) => Output::file(file, Existing::by_force(to.force), SourceAccess::of(ring))?,
        None => Output::stdout(format.is_binary())?,
    };
    let nothing_yet = ElementFilter::Only(Vec::new());
    let passed = output.passed();
    let export = Export::new(format, &streams, output)?;
    let mut sink = Sink::new(export, passed, nothing_yet, Box::new(|_| ()))?;
    let (mut runs, mut found) = (Runs::default(), 0);
    let mut read = |run: Vec<Ordinal>, sink: &mut Sink| -> Result<()> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(()) };
        if found == 0 {
            let all = Selection { streams: vec![id], range: Range::ALL };
            to.by.export(&mut reader, &all, to.what)?;
        }
        let range = Range { ordinals: Some((*first, Ordinal(last.0.saturating_add(1)))), ..Range::ALL };
        let plan =
            reader.plan(&Selection { streams: vec![id], range }).map_err(|error| ring_failure(&error))?;
        found += run.len() as u64;
        sink.want(ElementFilter::Only(run));
        fill(sink, &mut reader, &plan)
    };
    loop {
        match ordinals.recv_timeout(TURN) {
            Ok(batch) => {
                let Some(batch) = batch? else { break };
                for run in batch.into_iter().filter_map(|ordinal| runs.take(ordinal)) {
                    read(run, &mut sink)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => sink.interrupted()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::failed("the search broke off")),
        }
    }
    read(runs.open, &mut sink)?;
    let (export, taken) = sink.finish();
    if taken.elements == 0 {
        // Of nothing no file is made.
        return if found == 0 { Ok(None) } else { Err(nothing(found, &taken).at_path(ring)) };
    }
    let written = export.finish()?.finish()?;
    let gone = found - taken.elements - taken.partial.min(found - taken.elements);
    Ok(Some(HitsExport { found, gone, counts: taken, written }))
}

/// Reads all that a plan leads to into a sink.
pub fn fill(sink: &mut Sink, reader: &mut RingReader, plan: &Plan) -> Result<()> {
    let report = reader.read(plan, &mut |item| sink.take(&item));
    sink.end_read(report.map(|report| report.expired).map_err(|error| ring_failure(&error)))
}

/// Why nothing of what was found can be given.
fn nothing(found: u64, taken: &Counts) -> Failure {
    let found = counted(found, "element");
    if let Some(first) = taken.damaged_told.first() {
        return Failure::failed(format_args!(
            "{found} found, none of them whole: the first damaged place is {first}"
        ))
        .advice("`holdfast check` lists all");
    }
    if let Some(first) = taken.partial_told.first() {
        return Failure::nothing(format_args!("{found} found, none of them whole, the first is {first}"));
    }
    Failure::nothing(format_args!("{found} found, which expired before they could be read"))
        .advice("hold what you look for first: `holdfast hold --where`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(ordinals: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, usize)> {
        let mut runs = Runs::default();
        let mut cut: Vec<Vec<Ordinal>> =
            ordinals.into_iter().filter_map(|ordinal| runs.take(Ordinal(ordinal))).collect();
        cut.push(runs.open);
        cut.iter()
            .filter(|run| !run.is_empty())
            .map(|run| (run[0].0, run[run.len() - 1].0, run.len()))
            .collect()
    }

    #[test]
    fn what_is_near_is_read_together_and_never_too_much() {
        assert_eq!(runs([]), []);
        assert_eq!(runs([7, 7, 7]), [(7, 7, 1)]);
        assert_eq!(
            runs([0, NEAR, 2 * NEAR + 1, 2 * NEAR + 2]),
            [(0, NEAR, 2), (2 * NEAR + 1, 2 * NEAR + 2, 2)]
        );
        let most = MOST as u64;
        assert_eq!(runs(0..most + 2), [(0, most - 1, MOST), (most, most + 1, 2)]);
        assert_eq!(runs([u64::MAX - 1, u64::MAX]), [(u64::MAX - 1, u64::MAX, 2)]);
    }
}
