//! Protocol between a scan and the processes that run its WebAssembly modules, and the scan's end of it.
//!
//! Here are the messages, their encoding, the limits of both, and the handle of one module process. The other
//! end is the program `holdfast-module`; nothing here depends on a WebAssembly engine.
//!
//! A module process has its socket as standard input and the memory file of its blocks as standard output:
//! both are inherited, so that neither side needs to pass descriptors or to map memory.
#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod channel;
mod child;
mod error;
mod failure;
mod frame;
mod limits;
mod memory;
mod process;
mod request;

pub use answer::{Answer, Output, Ready, Results};
pub use arguments::{ArgumentsError, HostArguments};
pub use channel::{Channel, ChannelError};
pub use error::{Cause, ModuleError, Place};
pub use failure::{Failure, Step};
pub use frame::{
    MAX_ANSWER_BYTES, MAX_ARGUMENT_BYTES, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_NAME_BYTES, MAX_REQUEST_BYTES,
    MAX_TEXT_BYTES, WireError,
};
pub use limits::{
    Fuel, Limits, MAX_BLOCK_BYTES, MAX_MEMORY_BYTES, MAX_OUTPUT_BYTES, PART_BYTES, PART_OUTPUTS,
};
pub use memory::SharedMemory;
pub use process::ModuleProcess;
pub use request::Request;

/// Version of the interface between host and module, as `hf_abi` returns it.
pub const ABI_VERSION: u32 = 1;
