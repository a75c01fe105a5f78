//! Shipper: watches folders and sends their files to an archive until it is stopped, or until everything is there.
//!
//! Here belongs the running program. Decisions are in `transfer`, `fleet`, `link` and `run_end`.

mod alarm;
mod courier;
mod desk;
mod engine;
mod files;
mod meter;
mod pace;
mod status;

pub use alarm::AlarmReport;
pub use meter::Totals;
pub use status::{Counts, OutageStatus, RECENT_MINUTES, STATUS_FILE, Status, UnsentFile};

use crate::ledger::LedgerError;
use crate::link::Outage;
use crate::settings::{Settings, SettingsError};
use crate::transfer::Delivery;
use std::time::Duration;

/// Error that ends a shipper, of the form "cannot VERB OBJECT: REASON; REMEDY".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShipError(String);

impl From<LedgerError> for ShipError {
    fn from(error: LedgerError) -> Self {
        Self(error.to_string())
    }
}

impl From<SettingsError> for ShipError {
    fn from(error: SettingsError) -> Self {
        Self(error.to_string())
    }
}

/// End of a shipper's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Somebody stops the shipper.
    Stopped,
    /// The archive has every file that was there, and no run goes on.
    Shipped,
}

/// Happening that a person may want to read.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The archive has a file.
    Delivered {
        /// Path of the object in the project.
        path: String,
        /// Contents that were delivered.
        delivery: Delivery,
    },
    /// The archive refuses a file.
    Refused {
        /// Path of the file in its tree.
        path: String,
        /// Reason of it, and the remedy.
        reason: String,
    },
    /// A file was deleted before the archive had it.
    Lost {
        /// Path of the file in its tree.
        path: String,
    },
    /// The archive takes nothing any more.
    OutageBegan {
        /// Kind of the outage.
        outage: Outage,
        /// Reason of it, and the remedy.
        reason: String,
    },
    /// The archive takes bytes again.
    OutageEnded {
        /// Kind of the outage.
        outage: Outage,
        /// Length of the outage.
        lasted: Duration,
    },
    /// The state of the shipper cannot be written; it goes on sending, and tries again.
    StateUnwritten {
        /// Reason of it, and the remedy.
        reason: String,
    },
    /// The state of the shipper is written again.
    StateWritten,
    /// A file or folder cannot be watched or sent.
    Warning {
        /// Path of the file or folder.
        path: String,
        /// Reason of it, and the remedy.
        reason: String,
    },
    /// The local disk will fill before the archive catches up, or no longer will.
    Alarm(AlarmReport),
}

/// Runs a shipper on this thread. `stop` is asked several times a second; `tell` is called for every happening.
pub fn ship(
    settings: Settings,
    until: Until,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(&Notice),
) -> Result<Status, ShipError> {
    settings.check()?;
    // One thread: actions of a file take their turns in the order in which they are started.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ShipError(format!("cannot start: {error}; free some memory")))?;
    let status = runtime.block_on(engine::Engine::run(settings, until, stop, tell));
    // Requests on their way end with the process; the archive keeps what it has acknowledged.
    runtime.shutdown_background();
    status
}
