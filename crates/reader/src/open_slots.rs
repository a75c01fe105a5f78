//! Open slots: the index of a slot in the recorder's memory, received in parts and read like that of a sealed slot.
//!
//! Received parts are kept, so that a repeated search receives only what was recorded since. The payload is read from the recorder.

use crate::ReaderError;
use holdfast_base::Sequence;
use holdfast_format::{FormatError, OpenImage, OpenIndex, SlotId, Superblock};
use holdfast_protocol::ProtocolError;
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{OpenSlotProjection, Reply};
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of questions for which what is known is kept.
const KEPT: usize = 4;

/// How often it is asked again where nothing comes: more than a recorder that gets on lets anybody wait.
const MOST_TRIES: u32 = 100_000;

/// What several readers of a ring, one after the other or at once, know of its open slot.
#[derive(Clone, Debug, Default)]
pub struct OpenSlots(Arc<Mutex<Vec<KnownSlot>>>);

/// What is known of an open slot so far, of what was wanted of it.
#[derive(Debug)]
struct KnownSlot {
    sequence: Sequence,
    wanted: OpenSlotProjection,
    image: Arc<OpenImage>,
}

impl OpenSlots {
    /// What the open slot has by now, to be read like any other; `None`: it is not open.
    pub(crate) fn take(
        &self,
        connection: &mut Connection,
        superblock: &Superblock,
        sequence: Sequence,
        wanted: &OpenSlotProjection,
    ) -> Result<Option<Arc<OpenImage>>, ReaderError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Any other is not open any more.
        known.retain(|known| known.sequence == sequence);
        let before = known.iter().position(|known| known.wanted == *wanted).map(|at| known.remove(at));
        let index = match before {
            Some(KnownSlot { image, .. }) => Arc::unwrap_or_clone(image).into_index(),
            None => OpenIndex::new(superblock.geometry.slot_bytes, &wanted.columns),
        };
        let Some(index) = grow(index, connection, sequence, wanted)? else { return Ok(None) };
        let (ring, group, lane) = (superblock.ring, superblock.group, superblock.lane);
        let id = SlotId { ring, group, lane, sequence, ..SlotId::default() };
        let image = index.image(id, &superblock.key).map_err(|cause| undecodable(connection, cause))?;
        let image = Arc::new(image);
        known.truncate(KEPT - 1);
        known.insert(0, KnownSlot { sequence, wanted: wanted.clone(), image: Arc::clone(&image) });
        Ok(Some(image))
    }
}

/// With what has come since; `None`: it is not open any more, and what is known of it is too little.
fn grow(
    mut index: OpenIndex,
    connection: &mut Connection,
    sequence: Sequence,
    wanted: &OpenSlotProjection,
) -> Result<Option<OpenIndex>, ReaderError> {
    let (mut cursor, mut tries) = (index.begin().into(), 0);
    while let Reply::OpenIndex { cursor: next, end, parts } =
        connection.open_index(sequence, cursor, wanted)?
    {
        index.take(&parts).map_err(|cause| undecodable(connection, cause))?;
        if end {
            return Ok(Some(index));
        }
        // Its recorder has something else to do first.
        tries = if next == cursor && parts.is_empty() { tries + 1 } else { 0 };
        if tries > MOST_TRIES {
            let (structure, what) = ("open index", "no progress in many replies");
            return Err(undecodable(connection, FormatError::Malformed { structure, at: cursor, what }));
        }
        cursor = next;
    }
    Ok(None)
}

fn undecodable(connection: &Connection, cause: FormatError) -> ReaderError {
    ProtocolError::Protocol { path: connection.path().to_owned(), wire: cause.into() }.into()
}
