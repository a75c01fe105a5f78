//! Ingest: sources, which run on threads of their own and fill batches, and the packer, which puts the rows of batches
//! into the open slot.
//!
//! Here belongs what stands between the outside world and the bytes of a slot: framing, packets, batches and their
//! queues, overload, packing. When slots are written and which expire is the `ring` crate's; what their bytes mean
//! is the `format` crate's.
#![deny(unsafe_code)]

mod auto_schema;
mod batch;
mod counters;
mod extraction;
mod framing;
mod loss;
pub mod mcap;
mod packer;
pub mod packet;
mod producer;
mod queue;
mod source;
mod sync;
mod upstream;

pub use auto_schema::{AutoLimits, AutoSchema, NewAttributes};
pub use batch::{BATCH_BYTES, BATCH_ROWS, Batch, BatchRow, Content, MAX_BATCH_BYTES, MIN_BATCH_BYTES};
pub use counters::{Pressure, SourceCounters};
pub use extraction::Extraction;
pub use framing::{Cutter, DEFAULT_BLOCK, Framing, Lead, MAX_HEADER, Step, Tail, UNTERMINATED};
pub use holdfast_format::{Cause, Flags, StreamKind};
pub use packer::{BatchPosition, Packer, Progress};
pub use producer::{Carry, FLUSH_AGE, Inlet, Marks, Overload, Producer, ProducerSettings, channel};
pub use queue::{Closed, Parker, Waker};
pub use source::{
    AREA_LIMITS, CONNECTIONS_MEMORY, DEFAULT_AREA, MAX_CONNECTIONS, MAX_PREAMBLE, Opened, PreambleFrom,
    Running, STALL, Source, SourceEnd, SourceError, SourceOptions, SourceSpec, Speed, StopFlag,
    is_source_thread, message_header, open, packet_marks, packet_metadata, spawn,
};
