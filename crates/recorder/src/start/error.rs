//! Errors that prevent a run from starting: cause, object, remedy and exit code.

use crate::plan::TooLittle;
use holdfast_base::{ByteSize, typed};
use holdfast_format::{FormatError, StreamKind};
use holdfast_ingest::{SourceError, SourceSpec};
use holdfast_media::{CreateError as FileError, OpenError, PoolError};
use holdfast_protocol::ProtocolError;
use holdfast_ring::{CreateError, RecoverError, Refusal, Refused};
use std::io;
use std::path::PathBuf;

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ring's path cannot be opened or owned.
    #[error("{}{}", .0, or_make_one(.0))]
    Open(#[from] OpenError),
    /// Nor looked at.
    #[error("{}: cannot look at the ring's file: {cause}", path.display())]
    Look {
        /// The path.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The ring's file cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nor its first contents.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A ring cannot have that shape.
    #[error("--size, --slot: {0}")]
    Geometry(FormatError),
    /// What is there is no ring.
    #[error("{}: no ring ({carries}; {why}): {advice}", path.display())]
    NotARing {
        /// The path.
        path: PathBuf,
        /// What is there instead.
        carries: String,
        /// What is wrong with the superblock.
        why: String,
        /// What to do.
        advice: String,
    },
    /// The ring cannot be made sense of.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// A source cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Two sources over one pipe.
    #[error(
        "--source {first} and --source {second} read the same pipe, which gives each byte once: use it for one source"
    )]
    SharedPipe {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// A stream cannot be added.
    #[error("stream {stream}: {refusal}")]
    Stream {
        /// Its name.
        stream: String,
        /// Why not.
        refusal: Refusal,
    },
    /// A stream's preamble is too large for the journal.
    #[error(
        "stream {stream}: {}: {bytes} are too many: preambles, streams and holds of this ring share {budget}, of which {others} are in use; {}, or create the ring with larger slots",
        whose(origin, *kind),
        shorter(origin, *kind)
    )]
    Preamble {
        /// The stream's name.
        stream: String,
        /// Where it comes from: an option, but for sources that bring their own.
        origin: SourceSpec,
        /// Kind of its elements: a replayed file has packets or messages.
        kind: StreamKind,
        /// Bytes of its preamble.
        bytes: ByteSize,
        /// Bytes that all control records may take.
        budget: ByteSize,
        /// What others take of that, and this one beside its bytes.
        others: ByteSize,
    },
    /// A stream has other attributes already.
    #[error(
        "stream {stream}: --attr: {why}; repeat all existing attributes and add new ones after them (`holdfast streams RING --attributes` lists them), or choose another --name"
    )]
    Changed {
        /// The stream's name.
        stream: String,
        /// What would change.
        why: String,
    },
    /// The attributes do not fit the slots.
    #[error("--attr: {0}: use fewer attributes, or create the ring with larger slots")]
    Attributes(FormatError),
    /// Nor do those that streams keep fit the memory.
    #[error(
        "--memory {bound} is too little: with the attributes of its streams the ring needs {least}; use --memory {} or more, or --attr none for some sources", typed(*least)
    )]
    KeptAttributes {
        /// As given.
        bound: ByteSize,
        /// As it takes.
        least: ByteSize,
    },
    /// The cost of attributes that are still to be inferred is not known.
    #[error(
        "--attr auto: cannot guarantee a rate: the cost of attributes is not known before they are inferred; name them (--attr NAME:TYPE=json:PATH), or record without --rate first"
    )]
    AutoPromised,
    /// Rates are declared for a lane of which nothing is known.
    #[error(
        "{}: --rate: cannot guarantee a rate: the ring has no profile of its device; create the ring with `holdfast format --profile`, or record without --rate", path.display()
    )]
    Unmeasured {
        /// The ring.
        path: PathBuf,
    },
    /// The load is more than can be promised.
    #[error("{}: not admitted: {refused}{}: {advice}", path.display(), also.as_ref().map_or(String::new(), |also| format!("; and with so many, {also}")))]
    NotAdmitted {
        /// The ring.
        path: PathBuf,
        /// Which term fails.
        refused: Box<Refused>,
        /// Which fails, too, with as many elements as the packer manages: what the advice is about, then.
        also: Option<String>,
        /// What would do.
        advice: String,
    },
    /// The journal would have to name places more often than admission counts on.
    #[error(
        "{}: not admitted: {slots} slots are too few: a guarantee of that load needs {least}: {advice}", path.display()
    )]
    TooFewSlots {
        /// The ring.
        path: PathBuf,
        /// As there are.
        slots: u32,
        /// As it takes.
        least: u32,
        /// What would do.
        advice: String,
    },
    /// The memory is too small for what is to be promised.
    #[error("{}: not admitted: {refused}: {advice}", path.display())]
    PromisedMemory {
        /// The ring.
        path: PathBuf,
        /// Which term fails.
        refused: Box<Refused>,
        /// What would do.
        advice: String,
    },
    /// The bound on memory is too small.
    #[error(transparent)]
    Memory(#[from] TooLittle),
    /// There is not as much memory.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The socket cannot be made.
    #[error(transparent)]
    Socket(#[from] ProtocolError),
    /// A thread cannot be started.
    #[error("cannot start the thread of {what}: {cause}")]
    Thread {
        /// Whose.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// The kernel gives no random numbers.
    #[error("/dev/urandom: cannot read random numbers for the ring's id and key: {cause}")]
    Chance {
        /// What the system said.
        cause: io::Error,
    },
}

impl StartError {
    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Geometry(_)
            | Self::Memory(_)
            | Self::KeptAttributes { .. }
            | Self::AutoPromised
            | Self::SharedPipe { .. } => 2,
            Self::Source(error) if error.is_wrong_use() => 2,
            _ => 1,
        }
    }
}

/// What brings a preamble, as its user knows it.
fn whose(origin: &SourceSpec, kind: StreamKind) -> String {
    match origin {
        SourceSpec::Replay(_) if kind == StreamKind::Packets => {
            format!("{origin}: its interfaces and other non-packet blocks")
        }
        SourceSpec::Replay(_) => format!("{origin}: its schemas and channels"),
        SourceSpec::Iface(_) => format!("{origin}: its interface description"),
        _ => "--preamble".to_owned(),
    }
}

/// How there would be less of it.
fn shorter(origin: &SourceSpec, kind: StreamKind) -> &'static str {
    match origin {
        SourceSpec::Replay(_) if kind == StreamKind::Packets => {
            "replay a file without them (`tcpdump -r FILE -w OTHER` takes just packets)"
        }
        SourceSpec::Replay(_) => "replay a file with fewer of them",
        SourceSpec::Iface(_) => "release holds",
        _ => "give a shorter preamble",
    }
}

/// What else is to be done where there is nothing.
fn or_make_one(error: &OpenError) -> &'static str {
    if matches!(error, OpenError::Missing { .. }) { ", or create a ring file there with --size" } else { "" }
}
