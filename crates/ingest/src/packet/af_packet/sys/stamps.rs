//! Hardware timestamping of an interface: its capabilities and its configuration.

use super::PacketSocket;
use super::socket::{ioctl, request};
use holdfast_base::{Clock, SystemClock, Timestamp};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};
use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Stamps on what is received, given as the interface's clock shows them.
const STAMPS: u32 = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;

/// What an interface offers (`ethtool -T` shows it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Stamps {
    /// Whether it can stamp every frame that it receives.
    pub(in super::super) all: bool,
    /// How far its clock is from the wall clock; `None` where it has none, or none that we may read.
    pub(in super::super) off_by: Option<Duration>,
}

impl Stamps {
    /// Asks the interface.
    pub(in super::super) fn of(interface: &str, socket: &PacketSocket) -> io::Result<Self> {
        const GET_TS_INFO: u32 = 0x41;
        // struct ethtool_ts_info: command, what is stamped, number of the clock, kinds of sent frames (4), of received (4)
        let mut info = [0u32; 11];
        info[0] = GET_TS_INFO;
        let mut request = request(interface)?;
        request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
        ioctl(socket, libc::SIOCETHTOOL as _, &mut request)?;
        let all = info[1] & STAMPS == STAMPS && info[7] & 1 << libc::HWTSTAMP_FILTER_ALL != 0;
        let clock = u32::try_from(info[2].cast_signed()).ok();
        Ok(Self { all, off_by: clock.and_then(off_by) })
    }
}

/// How far a clock of the system's list is from the wall clock, which is read before and after it.
fn off_by(clock: u32) -> Option<Duration> {
    let device = File::open(format!("/dev/ptp{clock}")).ok()?;
    let wall = SystemClock::new();
    let before = wall.wall();
    let time = clock_gettime_dynamic(DynamicClockId::Dynamic(device.as_fd())).ok()?;
    let after = wall.wall();
    let time = Timestamp(time.tv_sec.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec)?);
    Some(before.since(time).max(time.since(after)))
}

/// Has the interface stamp every frame that it receives. What else it stamps stays as it is: whoever keeps its clock by
/// the Precision Time Protocol needs that.
pub(in super::super) fn stamp_all(interface: &str, socket: &PacketSocket) -> io::Result<()> {
    const ALL: c_int = libc::HWTSTAMP_FILTER_ALL as c_int;
    let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    ioctl(socket, libc::SIOCGHWTSTAMP as _, &mut request)?;
    if config.rx_filter != ALL {
        config.rx_filter = ALL;
        ioctl(socket, libc::SIOCSHWTSTAMP as _, &mut request)?;
    }
    if config.rx_filter == ALL { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}
