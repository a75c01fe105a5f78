//! File system of Holdfast: the name space of a site as a tree of files, over its client.
//!
//! [`FileSystem`] is the core: lookup, lists, reads, writes and attributes, without knowledge of FUSE. The advance buffer
//! decides what is fetched ahead. `mount` is a thin layer that answers the kernel. `rings` makes
//! files of the rings of this machine. Nothing here parses arguments or prints.

#![deny(unsafe_code)]

mod advance_buffer;
mod error;
mod fetch;
mod file_system;
mod inode_table;
mod inside;
mod memory;
mod mount;
mod reader;
mod rings;
mod shell;
mod spool;

pub use advance_buffer::{AdvanceBuffer, BufferMode, ReadPlan};
pub use error::FsError;
pub use file_system::{Attributes, DirectoryEntry, FileKind, FileSystem, FsOptions, OpenMode, ROOT};
pub use mount::{MountOptions, MountSession, detach, mount};
pub use rings::NamedRing;
pub use shell::{Shell, ShellError, ShellWay, check, start};
