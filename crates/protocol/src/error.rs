//! What can go wrong between a command and a ring. Each says what, where, and what to do.

use std::io;
use std::path::PathBuf;

/// Why a ring could not be reached or read.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// There is nothing at the path, or it may not be opened.
    #[error("{}: cannot open the ring: {cause}", path.display())]
    Open {
        /// The ring's path.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// What is at the path is no ring.
    #[error("{}: not a ring that can be opened: {cause}", path.display())]
    NotARing {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        cause: holdfast_format::FormatError,
    },
    /// The device could not be opened for direct reading.
    #[error(transparent)]
    Device(#[from] holdfast_media::OpenError),
    /// The journal or slot table could not be made sense of.
    #[error(transparent)]
    Recover(#[from] holdfast_ring::RecoverError),
    /// The directory of the sockets is not ours alone.
    #[error("{}: {text}", path.display())]
    RunDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        text: String,
    },
    /// Another recorder answers on the ring's socket: of another copy, for nobody owns a ring twice.
    #[error("{}: a recorder of another copy of this ring answers here already{}: stop it first, or give this one another HOLDFAST_RUN", path.display(), .pid.map_or(String::new(), |pid| format!(" (process {pid})")))]
    InUse {
        /// The socket.
        path: PathBuf,
        /// The recorder, where the kernel tells.
        pid: Option<u32>,
    },
    /// No recorder answers.
    #[error("{}: no recorder answers here: start one with `holdfast record`", path.display())]
    NoRecorder {
        /// The socket.
        path: PathBuf,
    },
    /// A recorder answers, but it records to another file with the same ring on it.
    #[error("{}: a recorder runs on another copy of this ring, {lane}", path.display())]
    OtherCopy {
        /// The socket.
        path: PathBuf,
        /// What it records to.
        lane: String,
    },
    /// A recorder has the ring, and no socket of it is to be found.
    #[error("{}: a recorder ({}) runs, but its socket is not to be found: give HOLDFAST_RUN as it was given to that, or try again if it has just been started", path.display(), named(.holder.as_ref()))]
    Hidden {
        /// The ring's path.
        path: PathBuf,
        /// Its process, where the system tells.
        holder: Option<holdfast_media::Holder>,
    },
    /// The socket belongs to another user.
    #[error("{}: the recorder on this ring belongs to another user: run the command as that user or as root", path.display())]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// The recorder went away, or dropped us.
    #[error("{}: the recorder has gone (while waiting for {during}): look at its last messages, then try again", path.display())]
    Gone {
        /// The socket.
        path: PathBuf,
        /// The request.
        during: &'static str,
    },
    /// The recorder took too long.
    #[error("{}: the recorder did not answer {during} within {seconds} s: its device may be stalled; try again", path.display())]
    Timeout {
        /// The socket.
        path: PathBuf,
        /// The request.
        during: &'static str,
        /// How long we waited.
        seconds: u64,
    },
    /// The recorder speaks another version.
    #[error("{}: the recorder speaks version {theirs} of the protocol and this command version {ours}: use commands of the recorder's release, or restart the recorder", path.display())]
    Version {
        /// The socket.
        path: PathBuf,
        /// Its version.
        theirs: u16,
        /// Ours.
        ours: u16,
    },
    /// The recorder answered with an error.
    #[error("the recorder refused {request}: {text}")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// What it said.
        text: String,
    },
    /// What came over the socket is not the protocol.
    #[error("{}: this is not what a recorder says ({wire}): something else may be listening there", path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        wire: crate::wire::WireError,
    },
    /// Something answered, but not to the question.
    #[error("the recorder answered {request} with {reply}: its release may differ from this command's")]
    Unexpected {
        /// What was asked.
        request: &'static str,
        /// What came.
        reply: &'static str,
    },
    /// Any other failure of the socket.
    #[error("{}: {what}: {cause}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What was done.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// The ticket area could not be mapped.
    #[error("the recorder's read area cannot be used: {0}")]
    Area(String),
    /// Memory for reading could not be had.
    #[error(transparent)]
    Memory(#[from] holdfast_media::PoolError),
    /// A recorder took the ring while it was read directly, and it does not answer.
    #[error("{}: a recorder took this ring while it was being read, and it does not answer: try again when it is up", path.display())]
    Taken {
        /// The ring's path.
        path: PathBuf,
    },
}

fn named(holder: Option<&holdfast_media::Holder>) -> String {
    let known = holder.map(|holder| format!("{}, pid {}", holder.name, holder.pid));
    known.unwrap_or_else(|| "in a process that is not visible from here".to_owned())
}
