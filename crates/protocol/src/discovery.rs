//! Discovery of a ring's recorder: the one that records to this very file or device, not to a copy of it.
//!
//! A recorder that owns the ring without answering is an error, because the medium lacks its newest data.

use crate::ProtocolError;
use crate::client::Connection;
use crate::ring_location::{RingLocation, lane_file_at};
use crate::socket_path::{candidates, directories};
use crate::start_mark::recorder_starts;
use crate::wire::LaneFile;
use holdfast_format::Superblock;
use holdfast_media::Holder;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often and how far apart a recorder that has the ring but does not answer is looked for: it may be starting or
/// ending just now.
const PATIENCE: (u32, Duration) = (10, Duration::from_millis(200));

/// Number of looks for a recorder that says that it is starting: a minute.
const STARTING: u32 = 300;

/// What the recorder's process is called, as far as the kernel keeps it.
const RECORDER: &str = "holdfast-record";

/// Sockets of one directory that are asked whose they are.
const MOST_SOCKETS: usize = 256;

/// The ring at `path`. Where its superblock cannot be read, it is as the recorder says that has this very file or device:
/// one that is gone says nothing any more, and its recorder does.
pub fn locate(path: &Path) -> Result<RingLocation, ProtocolError> {
    match RingLocation::read(path) {
        Err(error @ (ProtocolError::Open { .. } | ProtocolError::NotARing { .. })) => {
            recorded(path).ok_or(error)
        }
        found => found,
    }
}

/// As the recorder has it that records to what is, or was, at `path`.
fn recorded(path: &Path) -> Option<RingLocation> {
    let about = lane_file_at(path).ok();
    if about.is_none() && path.is_relative() {
        return None;
    }
    let owner = about.map_or_else(|| rustix::process::geteuid().as_raw(), |(_, owner)| owner);
    for directory in directories(owner) {
        let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let sockets = entries.filter(|path| path.extension().is_some_and(|extension| extension == "sock"));
        for socket in sockets.take(MOST_SOCKETS) {
            if let Ok(connection) = Connection::connect(&socket)
                && let Some(place) = taken_for(path, about.map(|(file, _)| file), owner, &connection)
            {
                return Some(place);
            }
        }
    }
    None
}

fn taken_for(path: &Path, file: Option<LaneFile>, owner: u32, recorder: &Connection) -> Option<RingLocation> {
    let welcome = recorder.welcome();
    let same = match file {
        Some(file) => welcome.file == file,
        // Nothing is there any more: the name is all that is left to tell it by.
        None => Path::new(&welcome.lane) == path,
    };
    let superblock = Superblock::decode(&welcome.superblock).ok().filter(|_| same)?;
    Some(RingLocation { path: path.to_owned(), superblock, file: welcome.file, owner })
}

/// What came of looking at all sockets.
#[derive(Debug, Default)]
struct SocketSearch {
    /// The recorder.
    connection: Option<Connection>,
    /// A socket that belongs to somebody else, who may be the recorder.
    denied: Option<ProtocolError>,
    /// Sockets on which a recorder answers that has another copy of the ring.
    copies: Vec<PathBuf>,
}

/// Looks for the ring's recorder once.
fn look(place: &RingLocation) -> Result<SocketSearch, ProtocolError> {
    let mut looked = SocketSearch::default();
    for socket in candidates(place.superblock.ring, place.owner) {
        match Connection::connect_to(&socket, place.superblock.ring, place.file) {
            Ok(connection) => {
                looked.connection = Some(connection);
                break;
            }
            Err(ProtocolError::OtherCopy { .. }) => looked.copies.push(socket),
            Err(ProtocolError::NoRecorder { .. }) => {}
            // Another user's socket may be a stale one; it counts only if no other answers.
            Err(error @ ProtocolError::Denied { .. }) => looked.denied = Some(error),
            Err(error) => return Err(error),
        }
    }
    Ok(looked)
}

/// Returns true if the holder of a ring is a recorder. Any other is a command that gives the ring back.
pub fn is_recorder(holder: &Holder) -> bool {
    holder.name.starts_with(RECORDER)
}

/// Returns true if a recorder runs on this machine, as far as its processes can be seen.
pub fn runs_recorder() -> bool {
    has_recorder(Path::new("/proc"))
}

/// Looks for a recorder among processes; where they cannot be listed there may be one.
fn has_recorder(processes: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir(processes) else { return true };
    processes.flatten().any(|process| {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        is_process
            && std::fs::read(process.path().join("comm"))
                .is_ok_and(|name| name.starts_with(RECORDER.as_bytes()))
    })
}

/// The recorder of the ring at `place`; `None` when none runs. One that has the ring and does not answer is an error:
/// what is on the medium is not all that it knows.
pub fn find_recorder(place: &RingLocation) -> Result<Option<Connection>, ProtocolError> {
    let mut tries = 0;
    loop {
        let looked = look(place)?;
        if looked.connection.is_some() {
            return Ok(looked.connection);
        }
        // What cannot be told is left to opening the ring.
        let Ok(Some(holder)) = holdfast_media::owner(&place.path) else { return Ok(None) };
        if holder.as_ref().is_some_and(|holder| !is_recorder(holder)) {
            // A command that changes something takes the ring for a moment: that is no recorder.
            return Ok(None);
        }
        tries += 1;
        if tries >= PATIENCE.0 && (tries >= STARTING || !recorder_starts(place)) {
            let path = place.path.clone();
            return Err(looked.denied.unwrap_or(ProtocolError::Hidden { path, holder }));
        }
        std::thread::sleep(PATIENCE.1);
    }
}

/// The same, without waiting: `None` when none answers just now.
pub fn find_recorder_now(place: &RingLocation) -> Result<Option<Connection>, ProtocolError> {
    look(place).map(|looked| looked.connection)
}

/// Sockets at which the recorder of the ring at `place` may appear: all candidates but those where a recorder of another copy
/// answers.
pub fn awaited_sockets(place: &RingLocation) -> Vec<PathBuf> {
    let others = look(place).map(|looked| looked.copies).unwrap_or_default();
    let all = candidates(place.superblock.ring, place.owner).into_iter();
    all.filter(|socket| !others.contains(socket)).collect()
}

#[cfg(test)]
mod tests {
    use super::has_recorder;
    use std::fs;

    #[test]
    fn a_recorder_is_found_among_processes_by_its_name() {
        let processes = tempfile::tempdir().unwrap();
        for (process, name) in [("1", "init\n"), ("self", "holdfast-record\n"), ("17", "holdfast\n")] {
            fs::create_dir(processes.path().join(process)).unwrap();
            fs::write(processes.path().join(process).join("comm"), name).unwrap();
        }
        assert!(!has_recorder(processes.path()));
        fs::write(processes.path().join("17/comm"), "holdfast-record\n").unwrap();
        assert!(has_recorder(processes.path()));
        assert!(
            has_recorder(&processes.path().join("none")),
            "processes that cannot be listed may be recorders"
        );
    }
}
