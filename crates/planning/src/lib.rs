//! Planning of rings: what a device can be relied on for, and proofs that a ring keeps what it has promised.
//!
//! Here belong measurements of devices and their profiles as files and pictures, plans and the choice of a ring's shape,
//! guarantees in words and in JSON, and proofs. Not here: the admission arithmetic (`ring`), the measuring of a device
//! (`media`), and what commands ask and print (`cli`).
#![forbid(unsafe_code)]

pub mod guarantee;
pub mod identity;
mod measure;
mod packer_rate;
pub mod picture;
pub mod plan;
pub mod profile_file;
mod profile_notes;
mod profile_result;
pub mod prove;
pub mod subject;

pub use measure::measure;
pub use profile_notes::profile_notes;
pub use profile_result::ProfileResult;
