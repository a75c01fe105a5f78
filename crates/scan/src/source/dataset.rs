//! Datasets: the elements of recordings, and the files of packed folders, each verified by its hash.

use crate::engine::Shared;
use crate::feeder::{Feeder, Order, Stopped};
use crate::item::{Container, Item};
use crate::source::Sources;
use crate::source::ring::{Containers, selection};
use crate::source::router::{Queue, next};
use holdfast_base::failure::Result;
use holdfast_dataset::PackedContents;
use holdfast_vault::Place;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Reads datasets until their queue ends.
pub(crate) fn read(
    queue: &Queue<Place>,
    sources: &Sources,
    shared: &Shared<'_>,
    silo: usize,
) -> Result<(), Stopped> {
    while let Some(place) = next(queue) {
        let mut feeder = Feeder::new(shared, silo, Order::AsFed);
        feed(&place, sources, shared, &mut feeder);
        feeder.flush();
        if shared.silos.is_stopped() {
            return Err(Stopped);
        }
    }
    Ok(())
}

/// Feeds a dataset to its end.
pub(crate) fn feed(place: &Place, sources: &Sources, shared: &Shared<'_>, feeder: &mut Feeder<'_, '_>) {
    if let Err(failure) = dataset(place, sources, shared, feeder) {
        let container = Arc::new(Container::at(place));
        shared.trouble(&Item::whole(&container), failure.to_string());
    }
}

fn dataset(place: &Place, sources: &Sources, shared: &Shared<'_>, feeder: &mut Feeder<'_, '_>) -> Result<()> {
    let dataset = place.dataset()?;
    if dataset.manifest().tree.is_some() {
        return packed(place, feeder);
    }
    let streams = dataset.streams();
    let selection = selection(&streams, sources)?;
    let mut containers = Containers::new(Container::at(place), &streams);
    let read = dataset.read(&selection, &mut |item| containers.feed(&item, feeder, shared));
    read.map(drop).map_err(|error| place.failure(&error))
}

/// Feeds the files of a packed folder, named `DATASET:PATH`.
fn packed(place: &Place, feeder: &mut Feeder<'_, '_>) -> Result<()> {
    let source = Container::at(place);
    let tree = place.packed_tree()?;
    let read = tree.read_files(&mut |contents| {
        let fed = match contents {
            PackedContents::File(path) => {
                let container = Container::stream(&source, &String::from_utf8_lossy(path));
                feeder.begin(&Arc::new(container), None);
                Ok(())
            }
            PackedContents::Bytes(bytes) => feeder.feed(bytes),
            PackedContents::End => feeder.end(),
            PackedContents::Damaged(cause) => feeder.fail(cause.to_owned()),
        };
        if fed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    read.map_err(|error| place.failure(&error))
}
