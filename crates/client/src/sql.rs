//! SQL engine over a ring: set up, asked, its answers written. Its errors are put into words by `sql_errors`.

use crate::index_copies::IndexCopies;
use crate::session::{self, ring_failure};
use crate::sql_errors::{YOUNGER, failure};
use datafusion::error::DataFusionError;
use futures::StreamExt;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_base::{Ordinal, StreamId};
use holdfast_ingest::packet::Preamble;
use holdfast_query::output::{Format, Output, OutputError};
use holdfast_query::ring_source::{OpenRing, ReaderPool};
use holdfast_query::stream::SkippedData;
use holdfast_query::{Engine, Limits, RingError, SourceStream, answer, engine, engine_of, hits};
use holdfast_reader::{OpenSlots, RecoveryCache, RingReader};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use tokio::runtime::Runtime;

/// Ordinals, rising, as the engine comes by them; behind the last of them comes `None`.
pub type Ordinals = Receiver<Result<Option<Vec<Ordinal>>>>;

/// An engine over a ring, and what it runs on.
pub struct Sql {
    /// Runtime on which queries run.
    pub runtime: Runtime,
    /// Engine over the streams of the ring.
    pub engine: Engine,
}

impl Sql {
    /// Asks, and writes the answer to where `to` says, which is not made before the question is understood. How many rows.
    pub fn answer(
        &self,
        sql: &str,
        format: Format,
        to: impl FnOnce(Format) -> Result<Box<dyn Write + Send>>,
    ) -> Result<u64> {
        self.runtime.block_on(self.write(sql, format, to))
    }

    /// The stream of which a question finds elements, and their ordinals.
    pub fn hits(&self, sql: &str) -> Result<(StreamId, Ordinals)> {
        let wrong = |error: DataFusionError| failure(&error, sql, &self.engine.tables());
        let mut found = self.runtime.block_on(hits(&self.engine, sql)).map_err(wrong)?;
        let (stream, sql, tables) = (found.stream, sql.to_owned(), self.engine.tables());
        let (to, ordinals) = sync_channel(1);
        self.runtime.spawn(async move {
            let mut more = true;
            while more {
                let batch = found.next().await.transpose().map_err(|error| failure(&error, &sql, &tables));
                more = matches!(batch, Ok(Some(_)));
                more &= to.send(batch).is_ok();
            }
        });
        Ok((stream, ordinals))
    }

    /// As [`answer`](Self::answer), for who waits for something else beside it: where this is dropped before its end, the question ends.
    pub async fn write(
        &self,
        sql: &str,
        format: Format,
        to: impl FnOnce(Format) -> Result<Box<dyn Write + Send>>,
    ) -> Result<u64> {
        let wrong = |error: DataFusionError| failure(&error, sql, &self.engine.tables());
        let mut batches = answer(&self.engine, sql).await.map_err(wrong)?;
        let broken = |error: OutputError| match error {
            OutputError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Failure::said(Kind::Done),
            OutputError::Io(error) => {
                let failure = Failure::failed(format_args!("cannot write the result: {}", reason(&error)));
                let full = error.kind() == io::ErrorKind::StorageFull;
                if full { failure.advice("make room, or choose another place with -o") } else { failure }
            }
            other => Failure::failed(format_args!("this result cannot be written in that form: {other}"))
                .advice("choose another --format"),
        };
        let mut output = Output::new(format, &batches.schema(), to(format)?).map_err(broken)?;
        while let Some(batch) = batches.next().await {
            output.write(&batch.map_err(wrong)?).map_err(broken)?;
        }
        output.finish().map_err(broken)
    }
}

/// Sets one up, over a ring of whose index there may be copies in a folder, and of whose open slot something may be known
/// from questions before.
pub fn open(path: &Path, limits: &Limits, index: &IndexCopies, slots: &OpenSlots) -> Result<Sql> {
    open_sources(Some(path), Vec::new(), limits, index, slots)
}

/// Opens an engine over a ring, if one is given, and over `more` recordings: rows of one stream from all of them are one table.
pub fn open_sources(
    ring: Option<&Path>,
    more: Vec<SourceStream>,
    limits: &Limits,
    index: &IndexCopies,
    slots: &OpenSlots,
) -> Result<Sql> {
    session::give_way_to_recorders();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(limits.threads.get())
        .build()
        .map_err(|error| Failure::failed(format_args!("cannot start threads: {}", reason(&error))))?;
    let Some(path) = ring else {
        let engine = engine_of(limits, more, Vec::new()).map_err(Failure::failed)?;
        return Ok(Sql { runtime, engine });
    };
    let at = path.to_owned();
    let (slots, index) = (slots.clone(), index.clone());
    let others = RecoveryCache::default();
    let open: OpenRing =
        Arc::new(move || Ok(index.read_by(RingReader::open_with_cache(&at, &others)?).sharing(&slots)));
    let readers = ReaderPool::new(&open);
    let engine = engine(limits, &readers, &link_types, more).map_err(|error| match error {
        RingError::Link(error) => ring_failure(&error),
        other => Failure::failed(other).at_path(path),
    })?;
    // While a question is planned by one way, another is made ready for who searches.
    runtime.spawn_blocking(move || readers.prepare());
    Ok(Sql { runtime, engine })
}

/// What the packets of each interface begin with.
fn link_types(preamble: &[u8]) -> Vec<u16> {
    let interfaces = Preamble::validate(preamble).unwrap_or_default();
    interfaces.iter().map(|interface| interface.link_type.0).collect()
}

/// What was missed, as the end of the command.
pub fn told(missed: &SkippedData) -> Result<()> {
    let SkippedData { expired, damaged, places, partial, .. } = missed;
    let (mut said, mut advice) = (Vec::new(), None);
    if let Some(first) = places.first() {
        let damaged = counted(*damaged, "damaged slot");
        said.push(format!("{damaged} could not be looked into, the first is {first}"));
        advice = Some("what else was found is written; `holdfast check` lists all damage");
    }
    if *expired > 0 {
        let expired = counted(*expired, "slot");
        said.push(format!(
            "{expired} expired while the query was at work: the result lacks what was in them"
        ));
        advice = advice.or(Some(YOUNGER));
    }
    if *partial > 0 {
        let partial = counted(*partial, "element that was found");
        said.push(format!("of {partial} a part is not there any more: their payload is null"));
    }
    if said.is_empty() {
        return Ok(());
    }
    let failure = Failure::failed(said.join("; ")).lossy();
    Err(match advice {
        Some(advice) => failure.advice(advice),
        None => failure,
    })
}
