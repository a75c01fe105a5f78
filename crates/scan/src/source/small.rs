//! Small files: many threads open and read them, each into batches of its own.

use crate::engine::Shared;
use crate::feeder::{Feeder, Order, Stopped};
use crate::item::Container;
use crate::source::router::{Queue, next};
use crate::source::{feed_file, open_regular};
use holdfast_base::failure::reason;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads files until their queue ends.
pub(crate) fn read(queue: &Queue<PathBuf>, shared: &Shared<'_>, silo: usize) -> Result<(), Stopped> {
    let mut feeder = Feeder::new(shared, silo, Order::Any);
    while let Some(path) = next(queue) {
        let container = Arc::new(Container::file(&path));
        feeder.begin(&container, None);
        match open_regular(&path) {
            Ok(mut file) => feed_file(&mut feeder, &mut file)?,
            Err(error) => feeder.fail(reason(&error))?,
        }
    }
    feeder.flush();
    Ok(())
}
