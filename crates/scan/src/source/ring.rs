//! Rings: elements in the order of their slots, through the recorder where one runs.

use crate::engine::Shared;
use crate::feeder::{Feeder, Order};
use crate::item::{Container, Item};
use crate::source::Sources;
use holdfast_base::StreamId;
use holdfast_base::failure::Result;
use holdfast_client::session::{self, ring_failure};
use holdfast_protocol::wire::Purpose;
use holdfast_reader::{Item as Read, Plan, RingReader, Selection};
use holdfast_ring::StreamStatus;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Ring that is open, with the plan of its scan.
pub(crate) struct Opened {
    reader: RingReader,
    plan: Plan,
    containers: Containers,
}

impl Opened {
    pub(crate) fn new(path: &Path, sources: &Sources) -> Result<Self> {
        let mut reader = session::open(path)?;
        let streams = reader.streams().map_err(|error| ring_failure(&error))?;
        let selection = selection(&streams, sources)?;
        reader.reads_for(Purpose::Search);
        let plan = reader.plan(&selection).map_err(|error| ring_failure(&error))?;
        let containers = Containers::new(Container::file(path), &streams);
        Ok(Self { reader, plan, containers })
    }

    pub(crate) fn read(self, shared: &Shared<'_>, silo: usize) {
        let mut feeder = Feeder::new(shared, silo, Order::AsFed);
        self.feed(&mut feeder, shared);
        feeder.flush();
    }

    /// Feeds all elements of the plan.
    pub(crate) fn feed(mut self, feeder: &mut Feeder<'_, '_>, shared: &Shared<'_>) {
        let containers = &mut self.containers;
        let read = self.reader.read(&self.plan, &mut |item| containers.feed(&item, feeder, shared));
        if let Err(error) = read {
            shared.trouble(&Item::whole(&self.containers.source), ring_failure(&error).to_string());
        }
    }
}

/// Selection of the streams that a source has; all names may be unknown to it.
pub(crate) fn selection(streams: &[StreamStatus], sources: &Sources) -> Result<Selection> {
    let known = |name: &&String| streams.iter().any(|stream| stream.name == **name);
    let names: Vec<String> = sources.streams.iter().filter(known).cloned().collect();
    if names.is_empty() && !sources.streams.is_empty() {
        session::streams_named(streams, &sources.streams)?;
    }
    session::selection(streams, &names, &sources.range)
}

/// Containers of the streams of one source.
pub(crate) struct Containers {
    source: Arc<Container>,
    streams: HashMap<StreamId, Arc<Container>>,
}

impl Containers {
    pub(crate) fn new(source: Container, streams: &[StreamStatus]) -> Self {
        let container = |stream: &StreamStatus| Arc::new(Container::stream(&source, &stream.name));
        let streams = streams.iter().map(|stream| (stream.id, container(stream))).collect();
        Self { source: Arc::new(source), streams }
    }

    /// Feeds what a reader gives; losses inside the range are told.
    pub(crate) fn feed(
        &mut self,
        read: &Read<'_>,
        feeder: &mut Feeder<'_, '_>,
        shared: &Shared<'_>,
    ) -> ControlFlow<()> {
        let trouble = |container: &Arc<Container>, ordinal, reason: String| {
            shared.trouble(&Item { container, ordinal, arrival_ns: None }, reason);
        };
        match read {
            Read::Element(element) => {
                let container = self.streams.get(&element.stream).unwrap_or(&self.source);
                let stamp = Some((element.ordinal.0, element.arrival.0));
                if feeder.item(container, stamp, element.data).is_err() {
                    return ControlFlow::Break(());
                }
            }
            Read::Partial { stream, ordinal, why } => {
                let container = self.streams.get(stream).unwrap_or(&self.source);
                trouble(container, Some(ordinal.0), why.to_string());
            }
            Read::Damaged { slot, place, .. } => {
                trouble(&self.source, None, format!("damaged: slot {slot}, {place}"));
            }
            Read::Expired { from, to, .. } => {
                trouble(&self.source, None, format!("slots {from} to {to} expired while they were read"));
            }
            Read::Preamble { .. } | Read::Gap { .. } | Read::Note { .. } | Read::Progress { .. } => {}
        }
        if shared.silos.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
