//! Shipper of Holdfast: sends growing files to an archive, verified block by block, and states how much data an instrument
//! may produce.
//!
//! Here belong the state machine of transfers (`transfer`, `fleet`, `link`, `run_end`: pure), the watch of folders, the
//! durable ledger, the driver, and the limits of production (`planning`, `statistics`, `report`: pure). Not here: HTTP
//! (`remote`), the archive (`server`), arguments and printing (`cli`).
#![forbid(unsafe_code)]

pub mod fleet;
mod folder_scan;
mod folder_watch;
pub mod history;
pub mod ledger;
pub mod link;
mod path_filter;
pub mod planning;
mod rate_schedule;
pub mod report;
pub mod run_end;
pub mod settings;
mod settings_values;
pub mod shipper;
mod sighting;
pub mod statistics;
mod throttle;
pub mod transfer;
mod units;

pub use folder_scan::{FileSeen, Found, scan, shippable_name};
pub use folder_watch::{FolderWatch, WatchOptions};
pub use path_filter::{Marker, PathFilter, PathRole};
pub use rate_schedule::{RateLimit, RateSchedule, ScheduleRule};
pub use settings::{Settings, SettingsError};
pub use sighting::{Sighting, SightingKind};
pub use throttle::Throttle;
