//! Files and devices of rings: opening, claiming, recognising foreign contents, creating, extending. Fast I/O
//! is in `uring` and `plain`.

mod busy;
mod bytes;
mod caution;
mod create;
mod extend;
mod footing;
mod lock;
mod open;
mod signature;
mod space;
mod spread;

pub(crate) use bytes::{measure, read_at, sync, write_at};
pub use create::{CreateError, Prefill, create_file};
pub use extend::extend_file;
pub use footing::Footing;
pub use lock::{Holder, owner};
pub use open::{Access, Device, OpenError};
pub(crate) use open::{DeviceLock, Parts};
pub use signature::{Foreign, signature, wipe};
