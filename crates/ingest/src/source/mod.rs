//! Sources: the kinds of input, each turned into elements.
//!
//! [`open`] does all that needs privileges or names; a [`Source`] then only reads, on a thread of its own
//! ([`spawn`]), until its input ends or it is told to stop. Each kind has a file; what they share about bytes is in
//! `stream`. Batches and overload are the producer's.

mod error;
mod file;
mod iface;
mod messages;
mod open;
mod packets;
mod replay;
mod run;
mod shm;
mod spec;
mod stop;
mod stream;
mod tcp;
mod udp;

pub use error::SourceError;
pub use messages::header as message_header;
pub use open::{MAX_PREAMBLE, Opened, open};
pub use packets::{marks as packet_marks, metadata as packet_metadata};
pub use run::{Running, SourceEnd, is_source_thread, spawn};
pub use shm::{AREA_LIMITS, DEFAULT_AREA};
pub use spec::{PreambleFrom, SourceOptions, SourceSpec, Speed};
pub use stop::StopFlag;
pub use tcp::{CONNECTIONS_MEMORY, MAX_CONNECTIONS, STALL};

use crate::producer::Producer;

/// Something that delivers elements.
pub trait Source: Send {
    /// Delivers until the input ends or `stop` is raised. An element that is open then is the source's to end or to
    /// give up.
    fn run(self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError>;
}
