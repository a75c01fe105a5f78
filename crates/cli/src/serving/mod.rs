//! Parts of `holdfast serve` besides the server itself: its options file, the printing of its events, vaults as its object
//! stores, and extractors of datasets. HTTP, tokens and the archive are in the crate `server`.

mod dataset_extractor;
mod event_printer;
mod options_file;
mod recorder_holds;
mod ring_searches;
mod vault_store;

use crate::folders;
use holdfast_base::failure::Failure;
use holdfast_client::times;
use holdfast_server::{ErrorKind, ServerError, Timestamp};
use std::path::PathBuf;

pub(crate) use dataset_extractor::extractors;
pub(crate) use event_printer::EventPrinter;
pub(crate) use options_file::{OptionsFile, TransportChoice};
pub(crate) use recorder_holds::RecorderHolds;
pub(crate) use ring_searches::{RingSearches, SEARCH};
pub(crate) use vault_store::stores;

/// Data folder of a server: the given one, or the user's.
pub(crate) fn data_folder(given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| folders::data().join("site"))
}

/// Failure of a command by an error of the server.
pub(crate) fn failure(error: &ServerError) -> Failure {
    match error.kind() {
        ErrorKind::Usage => Failure::usage(error),
        ErrorKind::Failed => Failure::failed(error),
    }
}

/// Time of the server as commands show it.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    times::rfc3339(holdfast_base::Timestamp(time.milliseconds().saturating_mul(1_000_000)))
}

/// Name of this machine, or `site` where it is not told.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "site".to_owned() } else { name.to_owned() }
}
