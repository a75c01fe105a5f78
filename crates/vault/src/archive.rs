//! Archiving: elements of streams become datasets as they arrive, each dataset in a vault before the next begins.
//!
//! The vault is the only state. A dataset's name has its stream and the first ordinal that it stands for, its manifest the
//! ordinal behind the last. After a restart archiving goes on behind the latest published dataset, so that every ordinal is in
//! exactly one of them. What a killed process had written up to a checkpoint is published first.

use crate::archive_path::{dataset_path, is_dataset_path};
use crate::roll;
use crate::salvage::Salvage;
use crate::target::VaultTarget;
use crate::vault::Vault;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, Ordinal, Sequence};
use holdfast_client::Notices;
use holdfast_client::attribution::Attribution;
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql::{self, Sql};
use holdfast_dataset::{
    ArchivedSpan, DatasetError, DatasetWriter, Options, Provenance, SourceAccess, StreamHead, Target,
    Written, finished, origin,
};
use holdfast_query::Limits;
use holdfast_reader::{Item, Missing, OpenSlots, Plan, RingReader, Selection};
use holdfast_ring::{Range, RingStatus, StreamStatus};
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks for new elements.
const TURN: Duration = Duration::from_millis(250);

/// Time that a stream is read before the limits of its dataset, and the other streams, get their turn.
const READING: Duration = Duration::from_secs(2);

/// Ordinals that a condition is asked of at once: the hits among them are kept in memory.
const MOST_ASKED: u64 = 1 << 20;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Archiving of streams to a vault.
pub struct Archive<'a> {
    /// Ring of the streams.
    pub ring: &'a Path,
    /// Names of the streams; none: all.
    pub streams: &'a [String],
    /// Vault of the datasets.
    pub vault: &'a Arc<Vault>,
    /// Beginning of the paths of the datasets.
    pub prefix: &'a str,
    /// Bytes at which a dataset is ended.
    pub roll_bytes: ByteSize,
    /// Time after which a dataset is ended. It is also ended when half of the ring was recorded since its beginning.
    pub roll_time: Option<Duration>,
    /// SQL condition that elements meet to be archived.
    pub condition: Option<&'a str>,
    /// Options of the datasets.
    pub options: Options,
    /// True if it ends when all that is on the ring now is archived.
    pub once: bool,
    /// Owner and reason, for the audit log.
    pub by: &'a Attribution,
    /// Set when it is to end: what was read is published first.
    pub stop: &'a AtomicBool,
}

/// Dataset that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// Path in the vault.
    pub path: String,
    /// Dataset that was written.
    pub written: Written,
    /// Span of ordinals that it stands for.
    pub span: ArchivedSpan,
    /// Number of places of the ring that could not be read.
    pub damaged: u64,
}

/// Dataset that is being written.
struct Open {
    writer: DatasetWriter<BufWriter<Box<dyn Target>>>,
    path: String,
    begun: Instant,
    elements: u64,
    damaged: u64,
    /// Earliest slot of the read that gave its first element.
    first: Option<Sequence>,
    /// Share of the ring that was recorded since the first element, at the last look.
    share: f64,
    checkpoint: LastCheckpoint,
    /// Set to keep the written bytes if this process ends before they are published.
    keeps: Arc<AtomicBool>,
}

/// State of an open dataset at its last checkpoint.
struct LastCheckpoint {
    at: Instant,
    elements: u64,
    share: f64,
    /// Bytes of the dataset behind it.
    bytes: u64,
    /// Bytes of its manifest.
    manifest: u64,
}

/// Extent of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Nothing could be read.
    Nothing,
    /// The sink ended it.
    Part,
    /// All that was planned.
    Whole,
}

/// One stream while it is archived.
struct Line {
    stream: StreamStatus,
    schema: String,
    /// First ordinal of the next dataset.
    from: u64,
    /// Ordinal behind the last that was looked at.
    to: u64,
    expired: u64,
    open: Option<Open>,
}

/// Archives until it is stopped, or, with `once`, until nothing is left. `published` is told of each dataset.
pub fn archive(
    archive: &Archive<'_>,
    notices: &Notices,
    published: &mut dyn FnMut(&Archived) -> Result<()>,
) -> Result<()> {
    archive.vault.checked(&dataset_path(archive.prefix, "stream", 0))?;
    let mut reader = session::open(archive.ring)?;
    let all = reader.streams().map_err(|error| ring_failure(&error))?;
    let ids = session::streams_named(&all, archive.streams)?;
    let what = format!("archive to {}", archive.vault.place(archive.prefix));
    let selection = Selection { streams: ids.clone(), range: Range::ALL };
    if archive.by.export_alone(archive.ring, &selection, &what, notices)? {
        reader = session::open(archive.ring)?;
    }
    archive.by.export(&mut reader, &selection, &what)?;
    let mut salvage = Salvage::new(archive, notices)?;
    let mut lines = Vec::new();
    for stream in all.into_iter().filter(|stream| ids.is_empty() || ids.contains(&stream.id)) {
        let schema = reader.schema(stream.id).map_err(|error| ring_failure(&error))?;
        let mut from = resumed(archive, &reader, &stream.name)?;
        while let Some(archived) = salvage.next(&reader, &stream.name, from)? {
            from = archived.span.to;
            published(&archived)?;
        }
        salvage.remove_published(&reader, &stream.name, from)?;
        lines.push(Line { stream, schema, from, to: from, expired: 0, open: None });
    }
    salvage.end();
    if lines.is_empty() {
        return Err(Failure::nothing("nothing was recorded on this ring yet").at_path(archive.ring));
    }
    let sql = archive.condition.map(|_| {
        let index = IndexCopies::at(None, notices.clone());
        sql::open(archive.ring, &Limits::default(), &index, &OpenSlots::default())
    });
    let sql = sql.transpose()?;
    loop {
        let stopping = archive.stop.load(Ordering::Relaxed);
        // A recorder may have ended or begun meanwhile.
        reader = session::open(archive.ring)?;
        let streams = reader.streams().map_err(|error| ring_failure(&error))?;
        let (mut is_idle, mut ring) = (true, None);
        for line in &mut lines {
            let next = streams.iter().find(|stream| stream.id == line.stream.id);
            let next = next.map_or(line.to, |stream| stream.counters.next_ordinal.0);
            if !stopping && line.to < next && line.advance(archive, &mut reader, sql.as_ref(), next)? {
                is_idle = false;
            }
            if line.open.is_some() && ring.is_none() {
                ring = Some(reader.status().map_err(|error| ring_failure(&error))?.ring);
            }
            if let Some(ring) = &ring {
                line.look(ring);
            }
            if stopping || (archive.once && is_idle) || line.is_due(archive) {
                line.publish(archive, published)?;
            } else {
                line.checkpoint(archive)?;
            }
        }
        if stopping || (archive.once && is_idle) {
            return Ok(());
        }
        if is_idle {
            std::thread::sleep(TURN);
        }
    }
}

impl Line {
    /// Writes what there is of the stream up to `next`, until the dataset is full, or its time is over. `false`: nothing was
    /// there to be read.
    fn advance(
        &mut self,
        archive: &Archive<'_>,
        reader: &mut RingReader,
        sql: Option<&Sql>,
        next: u64,
    ) -> Result<bool> {
        let Some(sql) = sql else {
            return Ok(self.read(archive, reader, next, None)? != Extent::Nothing);
        };
        let next = next.min(self.to.saturating_add(MOST_ASKED));
        let (hits, to) = self.hits(archive, sql, next)?;
        if to == self.to {
            // All of the window is gone, or nothing of it can be read yet.
            let plan = self.plan(reader, next)?;
            return Ok(self.expired(&plan));
        }
        if hits.is_empty() {
            self.to = to;
            return Ok(true);
        }
        let read = self.read(archive, reader, to, Some(&hits))?;
        if read == Extent::Whole {
            self.to = self.to.max(to);
        }
        Ok(read != Extent::Nothing)
    }

    /// Ordinals below `next` of elements that meet the condition, and the ordinal behind the last element that can be searched.
    fn hits(&self, archive: &Archive<'_>, sql: &Sql, next: u64) -> Result<(Vec<Ordinal>, u64)> {
        let name = self.stream.name.replace('"', "\"\"");
        let window = format!("ordinal >= {} and ordinal < {next}", self.to);
        let asked = |what: &str| -> Result<Vec<Ordinal>> {
            let (_, ordinals) = sql.hits(what)?;
            let mut all = Vec::new();
            while let Ok(batch) = ordinals.recv() {
                match batch? {
                    Some(batch) => all.extend(batch),
                    None => return Ok(all),
                }
            }
            Err(Failure::failed("the search broke off"))
        };
        let last = asked(&format!(
            "select ordinal from stream.\"{name}\" where {window} order by ordinal desc limit 1"
        ))?;
        let Some(last) = last.first() else { return Ok((Vec::new(), self.to)) };
        let condition = archive.condition.unwrap_or("true");
        let to = last.0 + 1;
        let mut hits = asked(&format!(
            "select ordinal from stream.\"{name}\" where ordinal >= {} and ordinal < {to} and ({condition})",
            self.to
        ))?;
        hits.sort_unstable();
        Ok((hits, to))
    }

    fn plan(&self, reader: &mut RingReader, next: u64) -> Result<Plan> {
        let range = Range { ordinals: Some((Ordinal(self.to), Ordinal(next))), ..Range::ALL };
        let selection = Selection { streams: vec![self.stream.id], range };
        reader.plan(&selection).map_err(|error| ring_failure(&error))
    }

    /// Passes over ordinals at the beginning of a plan that have expired. `false`: none has.
    fn expired(&mut self, plan: &Plan) -> bool {
        let end = plan.expired_ordinals.iter().map(|(_, _, end)| end.0).max();
        let Some(end) = end.filter(|end| *end > self.to) else { return false };
        self.count_expired(plan, end);
        self.to = end;
        true
    }

    fn count_expired(&mut self, plan: &Plan, below: u64) {
        let lost = plan
            .expired_ordinals
            .iter()
            .map(|(_, from, end)| end.0.min(below).saturating_sub(from.0.max(self.to)));
        self.expired += lost.sum::<u64>();
    }

    fn read(
        &mut self,
        archive: &Archive<'_>,
        reader: &mut RingReader,
        next: u64,
        hits: Option<&[Ordinal]>,
    ) -> Result<Extent> {
        let plan = self.plan(reader, next)?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(archive, reader)?,
        };
        let (mut to, mut trouble) = (self.to, None);
        let (begun, mut is_late) = (Instant::now(), false);
        let mut sink = |item: Item<'_>| {
            let mut behind = None;
            match &item {
                Item::Element(element) => {
                    behind = Some(element.ordinal.0 + 1);
                    if hits.is_some_and(|hits| hits.binary_search(&element.ordinal).is_err()) {
                        to = to.max(element.ordinal.0 + 1);
                        return if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                    }
                    open.elements += 1;
                }
                Item::Partial { ordinal, why, .. } if *why != Missing::Unfinished => {
                    behind = Some(ordinal.0 + 1);
                }
                Item::Gap { .. } => open.elements += 1,
                Item::Damaged { .. } | Item::Expired { .. } => open.damaged += 1,
                // The end of a slot.
                Item::Progress { .. } => is_late = begun.elapsed() >= READING,
                _ => {}
            }
            if let Err(error) = open.writer.item(&item) {
                trouble = Some(error);
                return ControlFlow::Break(());
            }
            to = behind.map_or(to, |behind| to.max(behind));
            let is_over = is_late || open.writer.written() >= archive.roll_bytes.0;
            if (is_over && behind.is_some()) || archive.stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let report = reader.read(&plan, &mut sink).map_err(|error| ring_failure(&error))?;
        if let Some(error) = trouble {
            return Err(dataset_failure(&error, archive, &open.path));
        }
        if open.elements > 0 && open.first.is_none() {
            // Distilled slots have later sequences than the data behind them.
            open.first = plan.slots.iter().map(|slot| slot.sequence).min();
        }
        self.open = Some(open);
        if to > self.to {
            self.count_expired(&plan, to);
            self.to = to;
            return Ok(if report.stopped { Extent::Part } else { Extent::Whole });
        }
        if report.stopped || !self.expired(&plan) {
            return Ok(Extent::Nothing);
        }
        Ok(Extent::Whole)
    }

    fn begin(&self, archive: &Archive<'_>, reader: &RingReader) -> Result<Open> {
        let path = dataset_path(archive.prefix, &self.stream.name, self.from);
        let (target, keeps) = VaultTarget::begin_kept(archive.vault, &path, SourceAccess::of(archive.ring))?;
        let target: Box<dyn Target> = Box::new(target);
        let provenance = Provenance {
            query: archive.condition.unwrap_or_default().to_owned(),
            owner: archive.by.owner(),
            reason: archive.by.reason(),
            ..origin(reader)
        };
        let head = StreamHead { status: self.stream.clone(), schema: self.schema.clone() };
        let out = BufWriter::with_capacity(GATHER, target);
        let writer = DatasetWriter::new(out, &archive.options, &[head], provenance);
        let writer = writer.map_err(|error| dataset_failure(&error, archive, &path))?;
        let begun = Instant::now();
        let checkpoint = LastCheckpoint { at: begun, elements: 0, share: 0.0, bytes: 0, manifest: 0 };
        let (elements, damaged, first, share) = (0, 0, None, 0.0);
        Ok(Open { writer, path, begun, elements, damaged, first, share, checkpoint, keeps })
    }

    /// Learns how much of the ring was recorded since the first element of the open dataset.
    fn look(&mut self, ring: &RingStatus) {
        let Some(open) = self.open.as_mut() else { return };
        let Some(first) = open.first else { return };
        open.share = roll::share(ring.sequence.0.saturating_sub(first.0), &ring.slots);
    }

    fn is_due(&self, archive: &Archive<'_>) -> bool {
        let limits = roll::Limits { bytes: archive.roll_bytes, age: archive.roll_time };
        self.open.as_ref().is_some_and(|open| limits.are_reached(&open.progress()))
    }

    /// Makes what was written outlive this process, from time to time.
    fn checkpoint(&mut self, archive: &Archive<'_>) -> Result<()> {
        let span = self.span();
        let Some(open) = self.open.as_mut().filter(|open| open.needs_checkpoint()) else { return Ok(()) };
        // The flush at its end is durable, and has the bytes outlive this process.
        open.keeps.store(true, Ordering::Relaxed);
        let manifest = open.writer.checkpoint(&open.path, span);
        let manifest = manifest.map_err(|error| dataset_failure(&error, archive, &open.path))?;
        let (elements, share, bytes) = (open.elements, open.share, open.writer.written());
        open.checkpoint = LastCheckpoint { at: Instant::now(), elements, share, bytes, manifest };
        Ok(())
    }

    /// Span of ordinals that the open dataset stands for.
    fn span(&self) -> ArchivedSpan {
        let Self { from, to, expired, .. } = *self;
        ArchivedSpan { stream: self.stream.name.clone(), from, to, expired }
    }

    /// Ends the dataset and publishes it; one without elements and gaps is given up.
    fn publish(
        &mut self,
        archive: &Archive<'_>,
        published: &mut dyn FnMut(&Archived) -> Result<()>,
    ) -> Result<()> {
        let Some(Open { mut writer, path, elements, damaged, .. }) = self.open.take() else { return Ok(()) };
        if elements == 0 {
            return Ok(());
        }
        let span = self.span();
        self.expired = 0;
        writer.archives(span.clone());
        let done = finished(writer).map_err(|error| dataset_failure(&error, archive, &path));
        let (mut target, written) = done?;
        target.verify()?;
        target.publish()?;
        self.from = self.to;
        published(&Archived { path, written, span, damaged })
    }
}

impl Open {
    fn progress(&self) -> roll::Progress {
        roll::Progress {
            elements: self.elements,
            bytes: ByteSize(self.writer.written()),
            age: self.begun.elapsed(),
            share: self.share,
        }
    }

    fn needs_checkpoint(&self) -> bool {
        let LastCheckpoint { at, elements, share, bytes, manifest } = self.checkpoint;
        let growth = roll::Growth {
            age: at.elapsed(),
            share: self.share - share,
            bytes: ByteSize(self.writer.written().saturating_sub(bytes)),
            manifest: ByteSize(manifest),
        };
        self.elements > elements && roll::needs_checkpoint(&growth)
    }
}

pub(crate) fn dataset_failure(error: &DatasetError, archive: &Archive<'_>, path: &str) -> Failure {
    archive.vault.dataset_failure(error, path)
}

/// Ordinal behind the latest dataset of a stream; 0 without any.
fn resumed(archive: &Archive<'_>, reader: &RingReader, stream: &str) -> Result<u64> {
    let is_of_stream = |path: &str| is_dataset_path(path, archive.prefix, stream);
    let all = archive.vault.list(archive.prefix.trim_end_matches('/'))?;
    let last = all.into_iter().rfind(|entry| is_of_stream(&entry.path));
    let Some(last) = last else { return Ok(0) };
    let dataset = archive.vault.dataset(&last.path)?;
    let origin = &dataset.manifest().provenance;
    let span = origin.archived.as_ref().filter(|span| span.stream == stream);
    match span {
        Some(span) if origin.ring == reader.superblock().ring.to_string() => Ok(span.to),
        _ => Err(Failure::failed("there are datasets of another ring or hold")
            .at(archive.vault.place(&last.path))
            .advice("choose another prefix with --to")),
    }
}
