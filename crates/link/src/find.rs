//! Finding the recorder of a ring: the one that has this very file or device, not one that records to a copy of it; and
//! noticing one that runs but does not answer where we look.

use crate::LinkError;
use crate::client::Connection;
use crate::path::{Place, candidates};
use std::path::PathBuf;
use std::time::Duration;

/// How often and how far apart a recorder that has the ring but does not answer is looked for: it may be starting or
/// ending just now.
const PATIENCE: (u32, Duration) = (10, Duration::from_millis(200));

/// What the recorder's process is called, as far as the kernel keeps it.
const RECORDER: &str = "holdfast-record";

/// What came of looking at all sockets.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The recorder.
    pub(crate) connection: Option<Connection>,
    /// A socket that belongs to somebody else, who may be the recorder.
    denied: Option<LinkError>,
    /// Sockets on which a recorder answers that has another copy of the ring.
    pub(crate) copies: Vec<PathBuf>,
}

/// Looks for the ring's recorder once.
pub(crate) fn look(place: &Place) -> Result<Looked, LinkError> {
    let mut looked = Looked::default();
    for socket in candidates(place.superblock.ring, place.owner) {
        match Connection::connect_to(&socket, place.superblock.ring, place.file) {
            Ok(connection) => {
                looked.connection = Some(connection);
                break;
            }
            Err(LinkError::OtherCopy { .. }) => looked.copies.push(socket),
            Err(LinkError::NoRecorder { .. }) => {}
            // Another user's socket may be a stale one; it counts only if no other answers.
            Err(error @ LinkError::Denied { .. }) => looked.denied = Some(error),
            Err(error) => return Err(error),
        }
    }
    Ok(looked)
}

/// The recorder of the ring at `place`; `None` when none runs. One that has the ring and does not answer is an error:
/// what is on the medium is not all that it knows.
pub fn recorder(place: &Place) -> Result<Option<Connection>, LinkError> {
    let mut tries = 0;
    loop {
        let looked = look(place)?;
        if looked.connection.is_some() {
            return Ok(looked.connection);
        }
        // What cannot be told is left to opening the ring.
        let Ok(Some(holder)) = holdfast_media::owner(&place.path) else { return Ok(None) };
        if holder.as_ref().is_some_and(|holder| !holder.name.starts_with(RECORDER)) {
            // A command that changes something takes the ring for a moment: that is no recorder.
            return Ok(None);
        }
        tries += 1;
        if tries == PATIENCE.0 {
            let path = place.path.clone();
            return Err(looked.denied.unwrap_or(LinkError::Hidden { path, holder }));
        }
        std::thread::sleep(PATIENCE.1);
    }
}

/// The same, without waiting: `None` when none answers just now.
pub fn answering(place: &Place) -> Result<Option<Connection>, LinkError> {
    look(place).map(|looked| looked.connection)
}
