//! Errors of live packet capture, each with its remedy.

use crate::packet::filter::FilterError;
use std::io;

/// Why packets cannot be taken from an interface.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is none of that name.
    #[error("network interface `{interface}` does not exist; available: {existing}")]
    NoInterface {
        /// The name as given.
        interface: String,
        /// Those that exist.
        existing: String,
    },
    /// The process may not.
    #[error(
        "cannot capture packets on `{interface}`: no permission; run as root, or grant the program the right once with \
         `setcap cap_net_raw+ep {program}`"
    )]
    NoPrivilege {
        /// The interface.
        interface: String,
        /// This program's path.
        program: String,
    },
    /// The filter is wrong.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The interface is switched off; it may come up again, and the capture then goes on by itself.
    #[error("the network interface `{interface}` is down: bring it up with `ip link set {interface} up`")]
    Down {
        /// The interface.
        interface: String,
    },
    /// The interface has been removed; see [`Capture::rebind`](super::Capture::rebind) for when it is back.
    #[error("the network interface `{interface}` has been removed")]
    Gone {
        /// The interface.
        interface: String,
    },
    /// An interface of the same name is there, and its packets are none of the ones before.
    #[error(
        "the network interface `{interface}` was removed and came back with another link type; record it again, under another \
         stream name"
    )]
    OtherLinkType {
        /// Name of the network interface.
        interface: String,
    },
    /// The interface has been removed, and its rings share out packets: they belong to it alone.
    #[error(
        "the network interface `{interface}` has been removed; several rings (--rings) cannot be taken to a new one: start the \
         recorder again"
    )]
    Bound {
        /// Name of the network interface.
        interface: String,
    },
    /// An option outside its limits.
    #[error("cannot capture packets with {option} = {value}: use {wanted}")]
    Option {
        /// Which one.
        option: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        wanted: &'static str,
    },
    /// The kernel has no memory for the rings.
    #[error(
        "cannot allocate {bytes} bytes for the packet ring of `{interface}`; use fewer or smaller blocks"
    )]
    NoMemory {
        /// The interface.
        interface: String,
        /// What was asked for.
        bytes: u64,
    },
    /// Anything else the system said.
    #[error("cannot {action} on the network interface `{interface}`")]
    System {
        /// What was tried.
        action: &'static str,
        /// The interface.
        interface: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

impl CaptureError {
    /// Whether waiting and opening again may help: the interface is down or away.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Down { .. } | Self::Gone { .. } | Self::NoInterface { .. })
    }

    /// Sorts out what the system said while trying `action`.
    pub(super) fn system(action: &'static str, interface: &str, error: io::Error) -> Self {
        let interface = interface.to_owned();
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                let program = std::env::current_exe()
                    .map_or_else(|_| "holdfast-recorder".to_owned(), |path| path.display().to_string());
                Self::NoPrivilege { interface, program }
            }
            Some(libc::ENETDOWN) => Self::Down { interface },
            Some(libc::ENODEV | libc::ENXIO) => Self::no_interface(&interface),
            _ => Self::System { action, interface, error },
        }
    }

    /// Names the interfaces that do exist.
    pub(super) fn no_interface(interface: &str) -> Self {
        /// Names to list at most: a host of containers has thousands.
        const LISTED: usize = 32;
        let mut existing: Vec<String> = std::fs::read_dir("/sys/class/net")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        existing.sort();
        let more = existing.len() > LISTED;
        existing.truncate(LISTED);
        let mut existing = existing.join(", ");
        if more {
            existing.push_str(", …");
        }
        Self::NoInterface { interface: interface.chars().take(64).collect(), existing }
    }
}
