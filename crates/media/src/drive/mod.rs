//! An emulated drive: how long each access takes on a drive of given rates, arm, platters, zones or cells.
//!
//! One model, two uses: [`EmulatedDisk`] in virtual time, and the file that `holdfast-drive` mounts, in real time. Here
//! is no I/O, no clock and no thread: time comes in with each access, and the same seed gives the same run. Only for
//! tests, benches and simulations; never in the product's path.

mod arm;
mod cells;
mod curve;
mod disk;
mod model;
mod outages;
mod serve;
mod zones;

pub use curve::Curve;
pub use disk::{EmulatedDisk, Payload};
pub use model::{Damage, DriveKind, DriveModel, Flash, Flaw, Mechanics, SeekCurve, Shingles};
pub use serve::{AccessKind, Drive, DriveAccess, Served};

/// Nanoseconds since the drive's start.
type Nanos = i64;

/// As nanoseconds with a fraction, for sums.
fn nanos(span: std::time::Duration) -> f64 {
    span.as_nanos() as f64
}
