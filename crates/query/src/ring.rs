//! A ring as tables: each stream, and what the ring says of itself.

use crate::failing::Failing;
use crate::session::{CATALOG, Limits, RING, Tables, session};
use crate::stream::{LinkTypes, OpenRing, StreamTable, Trouble, Ways};
use crate::tables::{Lazy, gaps, holds, slots, streams};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::TableProvider;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use holdfast_attributes::{Schema, SchemaError};
use holdfast_base::{Sequence, SlotNo};
use holdfast_format::StreamKind;
use holdfast_protocol::LinkError;
use holdfast_reader::{Item, Loss, Losses, RingReader, Selection};
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

    /// Of what conditions fail, and whether they may.
    pub fn failing(&self) -> Arc<Failing> {
        self.context.state().config().get_extension().unwrap_or_default()
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
        let mut links = LinkTypes::new();
        if stream.kind == StreamKind::Packets {
            for version in 1..=stream.preamble {
                let preamble = reader.preamble(stream.id, version)?;
                links.extend(preamble.map(|preamble| (version, link_types(&preamble))));
            }
        }
        let (ways, trouble) = (ways.clone(), Arc::clone(&trouble));
        let table = StreamTable::new(&stream.name, stream.id, schema, links, ways, trouble);
        of_streams.push((stream.name.clone(), Arc::new(table) as Arc<dyn TableProvider>));
    }
    ways.give(way);
    let context =
        session(limits, own_tables(ways.ring(), &trouble).map_err(DataFusionError::from)?, of_streams)?;
    Ok(Engine { context, trouble })
}

/// What the ring says of itself.
fn own_tables(open: &OpenRing, trouble: &Arc<Trouble>) -> Result<Tables, ArrowError> {
    type Make = fn(&mut RingReader, &Trouble) -> Result<RecordBatch>;
    let make: [(&str, RecordBatch, Make); 4] = [
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
    let lazy = |(name, empty, make): (&str, RecordBatch, Make)| {
        let (open, trouble) = (Arc::clone(open), Arc::clone(trouble));
        let table = Lazy::new(&empty, move || make(&mut open().map_err(external_of)?, &trouble));
        (name.to_owned(), Arc::new(table) as Arc<dyn TableProvider>)
    };
    Ok(make.into_iter().map(lazy).collect())
}

fn external_of(error: LinkError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// All losses, each as one; what could not be looked at is told as that of a search.
fn all_gaps(reader: &mut RingReader, trouble: &Trouble) -> Result<RecordBatch> {
    let known: Vec<StreamStatus> = reader.streams().map_err(external_of)?;
    let (mut found, mut losses) = (Vec::new(), Losses::default());
    let mut sink = |item: Item<'_>| {
        match item {
            Item::Gap { stream, ordinal, gap } => found.extend(losses.take(Loss { stream, ordinal, gap })),
            Item::Damaged { slot, sequence, place } => {
                trouble.told(Some(slot).filter(|slot| *slot < SlotNo(u32::MAX)), sequence, place);
            }
            Item::Expired { from, to, .. } => trouble.expired((from.0..=to.0).map(Sequence)),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    reader.gaps(&Selection::ALL, &mut sink).map_err(external_of)?;
    found.extend(losses.rest());
    Ok(gaps(&found, &known)?)
}
