//! SQL engine over one ring: a table per stream, and the tables `streams`, `slots`, `holds` and `gaps`.

use crate::evaluation_failures::EvaluationFailures;
use crate::ring_source::{LinkTypes, OpenRing, ReaderPool, RingSource};
use crate::session::{CATALOG, Limits, RING, session};
use crate::stream::{OrdinalRuns, ScanDiagnostics, StreamSource, StreamTable, UnionMember, UnionSource};
use crate::tables::{LazyTable, Tables, gaps, holds, slots, streams};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::TableProvider;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use holdfast_attributes::{Schema, SchemaError};
use holdfast_base::{Sequence, SlotNo, StreamId};
use holdfast_format::StreamKind;
use holdfast_reader::ReaderError;
use holdfast_reader::{Item, Loss, LossMerger, RingReader, Selection};
use holdfast_ring::StreamStatus;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Why a ring cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The way to it.
    #[error(transparent)]
    Link(#[from] ReaderError),
    /// A stream's schema is not understood: it is of a later release.
    #[error("cannot read the schema of stream `{stream}`: {cause}")]
    Schema {
        /// The stream.
        stream: String,
        /// Why.
        cause: SchemaError,
    },
    /// Recordings of a stream with different attributes.
    #[error("stream `{0}` has other attributes in one source than in another: query them one by one")]
    Attributes(String),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] DataFusionError),
}

/// An engine over a ring.
pub struct Engine {
    /// To be asked.
    pub context: SessionContext,
    /// What could not be looked into.
    pub diagnostics: Arc<ScanDiagnostics>,
}

impl Engine {
    /// The names of all tables.
    pub fn tables(&self) -> Vec<String> {
        let tables = self.context.catalog(CATALOG).and_then(|catalog| catalog.schema(RING));
        tables.map_or_else(Vec::new, |tables| tables.table_names())
    }

    /// Of what conditions fail, and whether they may.
    pub fn failing(&self) -> Arc<EvaluationFailures> {
        self.context.state().config().get_extension().unwrap_or_default()
    }
}

/// Stream of a recording: a table, or a part of one.
#[derive(Clone)]
pub struct SourceStream {
    /// Name of the stream, and of its table.
    pub name: String,
    /// Number of the stream in its source.
    pub id: StreamId,
    /// Attributes of the stream.
    pub schema: Schema,
    /// Recording that has the stream.
    pub source: Arc<dyn StreamSource>,
    /// UUID of the ring that recorded the stream; empty if it is unknown.
    pub ring: String,
    /// Ordinals of its elements in a recording that does not change; `None` for a ring.
    pub ordinals: Option<OrdinalRuns>,
}

/// Sets up an engine over recordings without a ring. `own` are tables beside those of the streams.
pub fn engine_of(limits: &Limits, streams: Vec<SourceStream>, own: Tables) -> Result<Engine, RingError> {
    let context = session(limits, own, stream_tables(streams)?)?;
    Ok(Engine { context, diagnostics: Arc::default() })
}

/// Tables of streams: those of one name are one table, in which each element of a ring is once.
fn stream_tables(streams: Vec<SourceStream>) -> Result<Tables, RingError> {
    let mut names: Vec<String> = Vec::new();
    let mut by_name: HashMap<String, Vec<SourceStream>> = HashMap::new();
    for stream in streams {
        if !by_name.contains_key(&stream.name) {
            names.push(stream.name.clone());
        }
        by_name.entry(stream.name.clone()).or_default().push(stream);
    }
    let mut tables = Tables::new();
    for name in names {
        let mut members = by_name.remove(&name).unwrap_or_default();
        // A recording that does not change gives what is in several.
        members.sort_by_key(|member| member.ordinals.is_none());
        let Some(widest) = members.iter().max_by_key(|member| member.schema.len()) else { continue };
        let schema = widest.schema.clone();
        let is_version = |member: &SourceStream| schema.version(member.schema.len()) == member.schema;
        if !members.iter().all(is_version) {
            return Err(RingError::Attributes(name));
        }
        let table = if let [only] = &members[..] {
            StreamTable::new(&name, only.id, schema, Arc::clone(&only.source))
        } else {
            let id = StreamId(tables.len() as u32);
            let source = UnionSource::new(HashMap::from([(id, union_members(members))]));
            StreamTable::new(&name, id, schema, Arc::new(source))
        };
        tables.push((name, Arc::new(table) as Arc<dyn TableProvider>));
    }
    Ok(tables)
}

/// Members of a union: each leaves the ordinals to those before it that have them from the same ring.
fn union_members(streams: Vec<SourceStream>) -> Vec<UnionMember> {
    let mut known: HashMap<(String, StreamId), OrdinalRuns> = HashMap::new();
    let mut members = Vec::with_capacity(streams.len());
    for (number, SourceStream { id, source, ring, ordinals, .. }) in streams.into_iter().enumerate() {
        // Recordings of unknown rings have nothing in common.
        let key = if ring.is_empty() { (number.to_string(), id) } else { (ring, id) };
        let before = known.entry(key).or_default();
        members.push(UnionMember { source, stream: id, elsewhere: Arc::new(before.clone()) });
        if let Some(ordinals) = ordinals {
            *before = before.with(&ordinals);
        }
    }
    members
}

/// Sets up an engine over the ring to which these ways lead, and over `more` recordings. `link_types` tells what the packets of each interface begin with, from a
/// packet stream's preamble.
pub fn engine(
    limits: &Limits,
    readers: &ReaderPool,
    link_types: &dyn Fn(&[u8]) -> Vec<u16>,
    more: Vec<SourceStream>,
) -> Result<Engine, RingError> {
    let mut pooled = readers.take()?;
    let reader = &mut pooled.reader;
    let ring = reader.superblock().ring.to_string();
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let (mut schemas, mut all_links) = (Vec::new(), HashMap::new());
    let known = reader.streams()?;
    for stream in &known {
        let text = reader.schema(stream.id)?;
        let schema =
            Schema::parse(&text).map_err(|cause| RingError::Schema { stream: stream.name.clone(), cause })?;
        let mut links = LinkTypes::new();
        if stream.kind == StreamKind::Packets {
            for version in 1..=stream.preamble {
                let preamble = reader.preamble(stream.id, version)?;
                links.extend(preamble.map(|preamble| (version, link_types(&preamble))));
            }
        }
        schemas.push(schema);
        all_links.insert(stream.id, links);
    }
    readers.give(pooled);
    let source = RingSource::new(readers.clone(), all_links, Arc::clone(&diagnostics));
    let source: Arc<dyn StreamSource> = Arc::new(source);
    let of_ring = |(stream, schema): (&StreamStatus, Schema)| SourceStream {
        name: stream.name.clone(),
        id: stream.id,
        schema,
        source: Arc::clone(&source),
        ring: ring.clone(),
        ordinals: None,
    };
    let streams = known.iter().zip(schemas).map(of_ring).chain(more).collect();
    let context = session(
        limits,
        own_tables(readers.ring(), &diagnostics).map_err(DataFusionError::from)?,
        stream_tables(streams)?,
    )?;
    Ok(Engine { context, diagnostics })
}

/// What the ring says of itself.
fn own_tables(open: &OpenRing, diagnostics: &Arc<ScanDiagnostics>) -> Result<Tables, ArrowError> {
    type ReadTable = fn(&mut RingReader, &ScanDiagnostics) -> Result<RecordBatch>;
    let make: [(&str, RecordBatch, ReadTable); 4] = [
        ("streams", streams(&[])?, |reader, _| Ok(streams(&reader.streams().map_err(external_of)?)?)),
        ("slots", slots(&[])?, |reader, _| {
            reader.learn_times().map_err(external_of)?;
            Ok(slots(&reader.slots().map_err(external_of)?)?)
        }),
        ("holds", holds(&[], &[], 0)?, |reader, _| {
            let known = reader.streams().map_err(external_of)?;
            let slot_bytes = reader.superblock().geometry.slot_bytes;
            Ok(holds(&reader.holds().map_err(external_of)?, &known, slot_bytes)?)
        }),
        ("gaps", gaps(&[], &[])?, all_gaps),
    ];
    let lazy = |(name, empty, make): (&str, RecordBatch, ReadTable)| {
        let (open, diagnostics) = (Arc::clone(open), Arc::clone(diagnostics));
        let table = LazyTable::new(&empty, move || make(&mut open().map_err(external_of)?, &diagnostics));
        (name.to_owned(), Arc::new(table) as Arc<dyn TableProvider>)
    };
    Ok(make.into_iter().map(lazy).collect())
}

fn external_of(error: ReaderError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// All losses, each as one; what could not be looked at is told as that of a search.
fn all_gaps(reader: &mut RingReader, diagnostics: &ScanDiagnostics) -> Result<RecordBatch> {
    let known: Vec<StreamStatus> = reader.streams().map_err(external_of)?;
    let (mut found, mut losses) = (Vec::new(), LossMerger::default());
    let mut sink = |item: Item<'_>| {
        match item {
            Item::Gap { stream, ordinal, gap } => found.extend(losses.push(Loss { stream, ordinal, gap })),
            Item::Damaged { slot, sequence, place } => {
                diagnostics.told(Some(slot).filter(|slot| *slot < SlotNo(u32::MAX)), sequence, place);
            }
            Item::Expired { from, to, .. } => diagnostics.expired((from.0..=to.0).map(Sequence)),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    reader.gaps(&Selection::ALL, &mut sink).map_err(external_of)?;
    found.extend(losses.finish());
    Ok(gaps(&found, &known)?)
}
