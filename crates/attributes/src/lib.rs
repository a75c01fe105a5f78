//! Attributes: named, typed properties of every element of a stream, and their extraction from the element's bytes or
//! from the header that its producer sent.
//!
//! A [`Schema`] says which attributes there are and where each comes from; an [`Extractor`] reads them, one cell each, into
//! buffers of `holdfast-format`. Both are pure: no I/O, no clock, no threads; extracting allocates nothing and takes any
//! bytes whatever. Where cells are kept and how they are searched is not known here. `docs/search.md` has the grammar.
#![forbid(unsafe_code)]

mod attribute;
mod counter;
mod cursor;
mod dada;
mod error;
mod extractor;
mod field_location;
mod fixed;
pub mod given;
mod json;
mod kind;
mod origin;
mod packet;
mod path;
mod preset;
mod rfc3339;
mod schema;
mod sigproc;
mod spead;
mod unit;
mod value;
mod vdif;

pub use attribute::{Attribute, MAX_ATTRIBUTE, MAX_COMMENT, MAX_UNIT};
pub use counter::{Count, Counter, Cycle};
pub use dada::DadaKey;
pub use error::{Problem, SchemaError};
pub use extractor::{Element, Extractor, MAX_DATA, Outcome};
pub use field_location::FieldLocation;
pub use fixed::Fixed;
pub use json::{Inference, JsonLookup, JsonValue};
pub use kind::Type;
pub use origin::From;
pub use packet::{PacketField, VxlanPorts};
pub use path::{MAX_STEPS, Path, Step};
pub use schema::{EVENT_TIME, Grown, RESERVED, Schema};
pub use sigproc::SigprocField;
pub use spead::SpeadField;
pub use value::{Cell, Value};
pub use vdif::VdifField;
