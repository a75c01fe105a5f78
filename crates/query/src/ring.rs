//! A ring as tables: each stream, and what the ring says of itself.

use crate::session::{CATALOG, Limits, RING, Tables, session};
use crate::stream::{OpenRing, StreamTable, Trouble, Ways};
use crate::tables::{FoundGap, Lazy, gaps, holds, slots, streams};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::TableProvider;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use holdfast_attributes::{Schema, SchemaError};
use holdfast_base::StreamId;
use holdfast_format::StreamKind;
use holdfast_link::{Item, LinkError, RingReader, Selection};
use holdfast_ring::StreamStatus;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Why a ring cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The way to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A stream's schema is not understood: it is of a later release.
    #[error("the schema of stream `{stream}` is not understood: {cause}")]
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
    pub trouble: Arc<Trouble>,
}

impl Engine {
    /// The names of all tables.
    pub fn tables(&self) -> Vec<String> {
        let tables = self.context.catalog(CATALOG).and_then(|catalog| catalog.schema(RING));
        tables.map_or_else(Vec::new, |tables| tables.table_names())
    }
}

/// Sets up an engine over the ring to which these ways lead. `link_types` tells what the packets of each interface begin with, from a
/// packet stream's preamble.
pub fn engine(
    limits: &Limits,
    ways: &Ways,
    link_types: &dyn Fn(&[u8]) -> Vec<u16>,
) -> Result<Engine, RingError> {
    let mut way = ways.take()?;
    let reader = &mut way.reader;
    let trouble = Arc::new(Trouble::default());
    let mut of_streams: Tables = Vec::new();
    let known = reader.streams()?;
    for stream in &known {
        let text = reader.schema(stream.id)?;
        let schema =
            Schema::parse(&text).map_err(|cause| RingError::Schema { stream: stream.name.clone(), cause })?;
        let preamble = match stream.kind {
            StreamKind::Packets => reader.preamble(stream.id, stream.preamble)?,
            StreamKind::Bytes => None,
        };
        let links = preamble.as_deref().map(link_types).unwrap_or_default();
        let (ways, trouble) = (ways.clone(), Arc::clone(&trouble));
        let table = StreamTable::new(&stream.name, stream.id, schema, links, ways, trouble);
        of_streams.push((stream.name.clone(), Arc::new(table) as Arc<dyn TableProvider>));
    }
    ways.give(way);
    let context = session(limits, own_tables(ways.ring()).map_err(DataFusionError::from)?, of_streams)?;
    Ok(Engine { context, trouble })
}

/// What the ring says of itself.
fn own_tables(open: &OpenRing) -> Result<Tables, ArrowError> {
    type Make = fn(&mut RingReader) -> Result<RecordBatch>;
    let make: [(&str, RecordBatch, Make); 4] = [
        ("streams", streams(&[])?, |reader| Ok(streams(&reader.streams().map_err(external_of)?)?)),
        ("slots", slots(&[])?, |reader| {
            reader.learn_times().map_err(external_of)?;
            Ok(slots(&reader.slots().map_err(external_of)?)?)
        }),
        ("holds", holds(&[], &[])?, |reader| {
            let known = reader.streams().map_err(external_of)?;
            Ok(holds(&reader.holds().map_err(external_of)?, &known)?)
        }),
        ("gaps", gaps(&[], &[])?, all_gaps),
    ];
    let lazy = |(name, empty, make): (&str, RecordBatch, Make)| {
        let open = Arc::clone(open);
        let table = Lazy::new(&empty, move || make(&mut open().map_err(external_of)?));
        (name.to_owned(), Arc::new(table) as Arc<dyn TableProvider>)
    };
    Ok(make.into_iter().map(lazy).collect())
}

fn external_of(error: LinkError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn all_gaps(reader: &mut RingReader) -> Result<RecordBatch> {
    let known: Vec<StreamStatus> = reader.streams().map_err(external_of)?;
    let ids: Vec<StreamId> = known.iter().map(|stream| stream.id).collect();
    let mut found = Vec::new();
    let selection = Selection { streams: ids, ..Selection::ALL };
    let mut sink = |item: Item<'_>| {
        if let Item::Gap { stream, ordinal, gap } = item {
            found.push(FoundGap { stream, ordinal, gap });
        }
        ControlFlow::Continue(())
    };
    reader.gaps(&selection, &mut sink).map_err(external_of)?;
    Ok(gaps(&found, &known)?)
}
