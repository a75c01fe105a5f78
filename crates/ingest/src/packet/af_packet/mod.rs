//! Live packet capture from a network interface: packet sockets with mapped rings (`TPACKET_V3`).
//!
//! Belongs here: opening, waiting, handing out packets block by block, and the kernel's counters. Retrying,
//! threads, what to do about overload, and gaps are the caller's.
//!
//! On the loopback interface every packet passes twice, going out and coming in; as tcpdump does, only those
//! coming in are taken.

mod block;
mod counters;
mod error;
mod link_type;
mod open;
mod sys;

pub use block::LivePacket;
pub use counters::{CounterFiles, InterfaceCounters, KernelCounters};
pub use error::CaptureError;
pub use open::{Fanout, MAX_RING_BYTES, MAX_RINGS, Options};

use super::bpf::Program;
use super::{LinkType, LiveInterface};
use block::Shape;
use holdfast_base::{Clock, SystemClock, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;
pub(crate) use sys::set_number;
use sys::{Device, PacketSocket, Ring};

/// Where the times of packets come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The kernel's wall clock, when it took the packet.
    Kernel,
    /// The interface's own clock, for all packets that it stamps.
    Hardware,
}

/// State of an interface, as its capture sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is switched on.
    Up,
    /// It is switched off.
    Down,
    /// It has been removed, and perhaps made again.
    Gone,
}

/// One ring of packets from an interface; belongs to one thread at a time.
///
/// Nothing is allocated while packets are taken.
#[derive(Debug)]
pub struct Capture {
    // Unmapped before the socket is closed.
    ring: Ring,
    socket: PacketSocket,
    interface: String,
    device: Device,
    link_type: LinkType,
    shape: Shape,
    snaplen: u32,
    filter_text: Option<String>,
    /// What the kernel cannot do for us, since it sees these packets without the header that we make.
    filter: Option<Program>,
    time_source: TimeSource,
    promiscuous: bool,
    /// Packets are shared out among this and other rings.
    shares: bool,
    counters: KernelCounters,
    filtered: u64,
}

impl Capture {
    /// Starts to take packets, on as many rings as the options say; together they get each packet once.
    pub fn open(options: &Options) -> Result<Vec<Self>, CaptureError> {
        open::open(options)
    }

    /// Waits until a block of packets is there, at most `timeout`; `false` if none came.
    ///
    /// An interface that goes down or away is an error, told once; packets that came before can still be taken.
    /// After [`CaptureError::Down`] the same capture goes on when the interface is up again.
    pub fn poll(&mut self, timeout: Duration) -> Result<bool, CaptureError> {
        Self::poll_any(std::slice::from_mut(self), timeout)
    }

    /// The same for several rings at once, [`MAX_RINGS`] at most: until one of them has a block. An error is that of one of
    /// them; what the others have to tell is told the next time.
    pub fn poll_any(captures: &mut [Self], timeout: Duration) -> Result<bool, CaptureError> {
        let Some(first) = captures.first() else { return Ok(false) };
        if captures.iter().any(|capture| capture.ring.ready()) {
            return Ok(true);
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // In a place for all there may be: nothing is allocated here.
        let mut polled: [PollFd<'_>; MAX_RINGS] =
            std::array::from_fn(|at| PollFd::new(&captures.get(at).unwrap_or(first).socket, PollFlags::IN));
        let polled = &mut polled[..captures.len().min(MAX_RINGS)];
        match poll(polled, Some(&timeout)) {
            // A signal is the caller's business: it looks around and comes back.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(first.cannot_wait(error)),
        }
        for (polled, capture) in polled.iter().zip(captures.iter()) {
            if polled.revents().contains(PollFlags::ERR) {
                capture.trouble()?;
            }
        }
        Ok(captures.iter().any(|capture| capture.ring.ready()))
    }

    fn cannot_wait(&self, error: rustix::io::Errno) -> CaptureError {
        CaptureError::system("wait for packets", &self.interface, error.into())
    }

    /// What the socket has to tell, once.
    fn trouble(&self) -> Result<(), CaptureError> {
        match rustix::net::sockopt::socket_error(&self.socket).map_err(|error| self.cannot_wait(error))? {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::NETDOWN) => Err(self.down_or_gone()),
            Err(error) => Err(self.cannot_wait(error)),
        }
    }

    /// State of the interface that the capture is bound to.
    pub fn presence(&self) -> Presence {
        match Device::find(&self.interface) {
            Ok(device) if device.index != self.device.index => Presence::Gone,
            Ok(device) if device.up => Presence::Up,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Presence::Gone,
            // Any other failure says nothing of the interface: it is looked up again.
            Ok(_) | Err(_) => Presence::Down,
        }
    }

    /// Goes on with the interface that has the name by now, after [`CaptureError::Gone`]: with the same socket and ring, for which
    /// no privilege is needed. It may be down; an error that [may pass](CaptureError::may_pass) leaves all as it was.
    pub fn rebind(&mut self) -> Result<(), CaptureError> {
        if self.shares {
            return Err(CaptureError::Bound { interface: self.interface.clone() });
        }
        let failed = |action| {
            let interface = self.interface.clone();
            move |error| CaptureError::system(action, &interface, error)
        };
        let device = Device::find(&self.interface).map_err(failed("look up"))?;
        if link_type::of(device.hardware) != (self.link_type, self.shape.framing) {
            return Err(CaptureError::OtherLinkType { interface: self.interface.clone() });
        }
        self.socket.bind(device.index).map_err(failed("bind"))?;
        if self.promiscuous {
            self.socket.promiscuous(device.index).map_err(failed("switch to promiscuous mode"))?;
        }
        self.device = device;
        Ok(())
    }

    fn down_or_gone(&self) -> CaptureError {
        let interface = self.interface.clone();
        match self.presence() {
            Presence::Up | Presence::Down => CaptureError::Down { interface },
            Presence::Gone => CaptureError::Gone { interface },
        }
    }

    /// Whether most of the ring's blocks wait to be taken: the kernel will soon have to drop.
    pub fn is_crowded(&self) -> bool {
        let (waiting, blocks) = self.ring.waiting();
        waiting * 4 >= blocks * 3
    }

    /// Hands out the packets of the next block, if one is there, and gives the block back to the kernel. Tells how many
    /// there were.
    pub fn take_block(&mut self, mut each: impl FnMut(LivePacket<'_>)) -> u64 {
        let read_at = match self.time_source {
            TimeSource::Hardware => SystemClock::new().wall(),
            TimeSource::Kernel => Timestamp(0),
        };
        let held = Held { ring: &mut self.ring };
        let Some(block) = held.ring.block() else { return 0 };
        let (mut taken, mut filtered) = (0, 0);
        let filter = self.filter.as_ref();
        let malformed = block::walk(block, self.shape, read_at, |packet| {
            if filter.is_some_and(|filter| filter.run(packet.data, packet.original_len) == 0) {
                filtered += 1;
            } else {
                taken += 1;
                each(packet);
            }
        });
        drop(held);
        self.filtered += filtered;
        self.counters.malformed += malformed;
        taken
    }

    /// What the kernel counted since the capture was opened; see [`KernelCounters`].
    pub fn counters(&mut self) -> Result<KernelCounters, CaptureError> {
        let counted = self
            .socket
            .take_statistics()
            .map_err(|error| CaptureError::system("read the packet counters", &self.interface, error))?;
        self.counters.add(counted);
        Ok(self.counters)
    }

    /// Packets that the kernel counted as received, but the filter rejected here: only on interfaces whose packets get
    /// a cooked header.
    pub fn filtered(&self) -> u64 {
        self.filtered
    }

    /// What packets start with.
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Where the times of packets come from.
    pub fn time_source(&self) -> TimeSource {
        self.time_source
    }

    /// What a preamble says of the interface.
    pub fn describe(&self) -> LiveInterface<'_> {
        LiveInterface {
            name: &self.interface,
            link_type: self.link_type,
            snaplen: self.snaplen,
            filter: self.filter_text.as_deref(),
            mac: (self.device.hardware == libc::ARPHRD_ETHER).then_some(self.device.address),
            speed: counters::speed(&self.interface),
        }
    }
}

/// A block that goes back to the kernel whatever happens to its packets.
struct Held<'a> {
    ring: &'a mut Ring,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ring.release();
    }
}
