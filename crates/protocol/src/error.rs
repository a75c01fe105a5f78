//! Errors of the socket, and of the search for a ring and its recorder.

use crate::wire::WireError;
use std::io;
use std::path::PathBuf;

/// The reason that a ring or its recorder could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The path is missing, or must not be opened.
    #[error("cannot open the ring {}: {cause}", path.display())]
    Open {
        /// The ring's path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The path has no ring.
    #[error("cannot open {} as a ring: {cause}", path.display())]
    NotARing {
        /// The path.
        path: PathBuf,
        /// The error of its superblock.
        cause: holdfast_format::FormatError,
    },
    /// Other users have access to the socket directory.
    #[error("cannot use the socket directory {}: {text}", path.display())]
    RunDirectory {
        /// The directory.
        path: PathBuf,
        /// The reason, and a remedy.
        text: String,
    },
    /// A recorder of a copy of the ring listens already: nobody owns one ring twice.
    #[error("cannot listen on {}: a recorder of another copy of this ring{} listens there; stop it, or set another HOLDFAST_RUN", path.display(), .pid.map_or(String::new(), |pid| format!(" (process {pid})")))]
    InUse {
        /// The socket.
        path: PathBuf,
        /// The recorder's process, where the kernel knows it.
        pid: Option<u32>,
    },
    /// No recorder answers.
    #[error("cannot connect to {}: no recorder answers; start one with `holdfast record`", path.display())]
    NoRecorder {
        /// The socket.
        path: PathBuf,
    },
    /// The recorder records to another file with the same ring on it.
    #[error("cannot use the recorder at {}: it records to another copy of this ring; give the path of that copy, {lane}", path.display())]
    OtherCopy {
        /// The socket.
        path: PathBuf,
        /// The path of its lane.
        lane: String,
    },
    /// A recorder owns the ring, and its socket is nowhere.
    #[error("cannot find the socket of the recorder of {} ({}); set HOLDFAST_RUN as for the recorder, or retry if it has just started", path.display(), named(.holder.as_ref()))]
    Hidden {
        /// The ring's path.
        path: PathBuf,
        /// The recorder's process, where the system knows it.
        holder: Option<holdfast_media::Holder>,
    },
    /// The socket belongs to another user.
    #[error("cannot connect to {}: the recorder belongs to another user; run the command as that user or as root", path.display())]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// The recorder closed the connection.
    #[error("cannot complete the request `{during}` at {}: the recorder closed the connection; see its last messages, then retry", path.display())]
    Gone {
        /// The socket.
        path: PathBuf,
        /// The request.
        during: &'static str,
    },
    /// The recorder ends, and takes no more reads and orders.
    #[error("cannot complete the request `{during}` at {}: the recorder is ending; retry once it has ended, the ring is read without it then", path.display())]
    Ending {
        /// Path of the socket.
        path: PathBuf,
        /// Name of the request.
        during: &'static str,
    },
    /// The recorder did not answer in time.
    #[error("cannot complete the request `{during}` at {}: no answer within {seconds} s; its device may be stalled, retry later", path.display())]
    Timeout {
        /// The socket.
        path: PathBuf,
        /// The request.
        during: &'static str,
        /// The time limit.
        seconds: u64,
    },
    /// The recorder uses another version of the protocol.
    #[error("cannot use the recorder at {}: it has protocol version {theirs}, this command version {ours}; use commands of the recorder's release, or restart the recorder", path.display())]
    Version {
        /// The socket.
        path: PathBuf,
        /// Version of the recorder.
        theirs: u16,
        /// Version of this program.
        ours: u16,
    },
    /// The recorder answered with an error.
    #[error("cannot complete the request `{request}`: the recorder refused it: {text}")]
    Refused {
        /// The request.
        request: &'static str,
        /// The recorder's error.
        text: String,
    },
    /// The bytes received do not follow the protocol.
    #[error("cannot decode a reply of {}: {wire}; another program may listen there", path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// The decoding error.
        wire: WireError,
    },
    /// The reply belongs to another kind of request.
    #[error(
        "cannot complete the request `{request}`: the recorder sent the reply `{reply}`; its release may differ from this command's"
    )]
    Unexpected {
        /// The request.
        request: &'static str,
        /// The reply.
        reply: &'static str,
    },
    /// Any other failure of the socket.
    #[error("{what} {}: {cause}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The failed action.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// The ticket area could not be mapped.
    #[error("cannot map the recorder's read area: {0}")]
    Area(String),
}

fn named(holder: Option<&holdfast_media::Holder>) -> String {
    let known = holder.map(|holder| format!("{}, pid {}", holder.name, holder.pid));
    known.unwrap_or_else(|| "in a process that is not visible from here".to_owned())
}
