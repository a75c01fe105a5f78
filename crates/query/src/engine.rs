//! SQL engine over one ring: a table per stream, and the tables `streams`, `slots`, `holds` and `gaps`.

use crate::evaluation_failures::EvaluationFailures;
use crate::ring_source::{LinkTypes, OpenRing, ReaderPool, RingSource};
use crate::session::{CATALOG, Limits, RING, session};
use crate::stream::{ScanDiagnostics, StreamSource, StreamTable};
use crate::tables::{LazyTable, Tables, gaps, holds, slots, streams};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::TableProvider;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use holdfast_attributes::{Schema, SchemaError};
use holdfast_base::{Sequence, SlotNo};
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

/// Sets up an engine over the ring to which these ways lead. `link_types` tells what the packets of each interface begin with, from a
/// packet stream's preamble.
pub fn engine(
    limits: &Limits,
    readers: &ReaderPool,
    link_types: &dyn Fn(&[u8]) -> Vec<u16>,
) -> Result<Engine, RingError> {
    let mut pooled = readers.take()?;
    let reader = &mut pooled.reader;
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
    let table = |(stream, schema): (&StreamStatus, Schema)| {
        let table = StreamTable::new(&stream.name, stream.id, schema, Arc::clone(&source));
        (stream.name.clone(), Arc::new(table) as Arc<dyn TableProvider>)
    };
    let of_streams: Tables = known.iter().zip(schemas).map(table).collect();
    let context = session(
        limits,
        own_tables(readers.ring(), &diagnostics).map_err(DataFusionError::from)?,
        of_streams,
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
