//! Opening of packet rings: options with their limits, and the order of system calls.

use super::block::{Shape, VLAN_TAG};
use super::link_type::{self, LinkFraming};
use super::sys::{Device, PacketSocket, Ring, Stamps, stamp_all};
use super::{Capture, CaptureError, KernelCounters, TimeSource};
use crate::packet::LinkType;
use crate::packet::bpf::{Instruction, Program};
use crate::packet::filter::Filter;
use std::time::Duration;

/// Rings of one capture; more than the cores of any machine that has use for them.
pub const MAX_RINGS: usize = 64;

/// Bytes of one ring: the kernel's memory, which nobody else can have.
pub const MAX_RING_BYTES: u64 = 8 << 30;

/// Smallest block: the largest frame without offloads of any size, several times over.
const MIN_BLOCK: usize = 128 << 10;
/// Largest block: it is handed out as one piece.
const MAX_BLOCK: usize = 64 << 20;

/// How far an interface's clock may be from the wall clock: as steps of that one that are not worth recording.
const NEAR: Duration = Duration::from_millis(10);

/// How packets are shared out among several rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fanout {
    /// By flow: both directions of a connection go to the same ring.
    #[default]
    Flow,
    /// By flow as long as that ring has room, then to any that has.
    FlowThenAny,
    /// One after the other.
    RoundRobin,
    /// By the core that the packet came in on.
    Cpu,
    /// By the hardware queue that the packet came in on.
    Queue,
}

impl Fanout {
    fn kind(self) -> u32 {
        match self {
            Self::Flow => libc::PACKET_FANOUT_HASH,
            Self::FlowThenAny => libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_ROLLOVER,
            Self::RoundRobin => libc::PACKET_FANOUT_LB,
            Self::Cpu => libc::PACKET_FANOUT_CPU,
            Self::Queue => libc::PACKET_FANOUT_QM,
        }
    }
}

/// What to take from which interface, and how much memory to give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of the interface, in the network name space of the calling thread.
    pub interface: String,
    /// Whether to take packets that are addressed to others.
    pub promiscuous: bool,
    /// Bytes to keep of a packet; 0 for all.
    pub snaplen: u32,
    /// What to take, in tcpdump syntax; everything if `None`.
    pub filter: Option<String>,
    /// Number of rings. One thread may empty all: see [`Capture::poll_any`].
    pub rings: usize,
    /// How packets are shared out among several rings.
    pub fanout: Fanout,
    /// Bytes of a block, a power of two from 128 KiB to 64 MiB. A packet that is larger is cut.
    pub block_bytes: usize,
    /// Blocks of a ring.
    pub blocks: usize,
    /// After this time a block is handed over though it is not full.
    pub retire: Duration,
}

impl Options {
    /// Everything on the interface, with one ring of 64 MiB.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            promiscuous: false,
            snaplen: 0,
            filter: None,
            rings: 1,
            fanout: Fanout::default(),
            block_bytes: 1 << 20,
            blocks: 64,
            retire: Duration::from_millis(100),
        }
    }

    fn check(&self) -> Result<(), CaptureError> {
        let option =
            |option, value: usize, wanted| Err(CaptureError::Option { option, value: value as u64, wanted });
        if !(1..=MAX_RINGS).contains(&self.rings) {
            return option("rings", self.rings, "1 to 64");
        }
        if !self.block_bytes.is_power_of_two() || !(MIN_BLOCK..=MAX_BLOCK).contains(&self.block_bytes) {
            return option("block bytes", self.block_bytes, "a power of two from 128 KiB to 64 MiB");
        }
        if self.blocks < 2 || self.blocks as u64 > MAX_RING_BYTES / self.block_bytes as u64 {
            return option("blocks", self.blocks, "at least 2, and at most 8 GiB of them");
        }
        if !(Duration::from_millis(1)..=Duration::from_mins(1)).contains(&self.retire) {
            return option("retire (ms)", self.retire.as_millis() as usize, "1 ms to 60 s");
        }
        Ok(())
    }

    fn system(&self, action: &'static str) -> impl Fn(std::io::Error) -> CaptureError + '_ {
        move |error| CaptureError::system(action, &self.interface, error)
    }
}

/// A program that keeps `bytes` of every packet.
fn keep(bytes: u32) -> [Instruction; 1] {
    [Instruction { code: 0x06, if_true: 0, if_false: 0, k: bytes }]
}

/// What all rings of a capture have in common.
struct Plan {
    device: Device,
    link_type: LinkType,
    shape: Shape,
    /// For the kernel.
    program: Vec<Instruction>,
    /// For us.
    filter: Option<Program>,
}

impl Plan {
    fn make(options: &Options) -> Result<Self, CaptureError> {
        let interface = &options.interface;
        let device = Device::find(interface).map_err(options.system("look up"))?;
        // Asked first, since libpcap's answers to the same questions are less clear.
        drop(PacketSocket::open(true).map_err(options.system("open a packet socket"))?);
        if !device.up {
            return Err(CaptureError::Down { interface: interface.clone() });
        }
        let (link_type, framing) = link_type::of(device.hardware);
        let snaplen = if options.snaplen == 0 { u32::MAX } else { options.snaplen };
        let mut plan = Self {
            device,
            link_type,
            shape: Shape { framing, snaplen: snaplen as usize },
            program: keep(snaplen).to_vec(),
            filter: None,
        };
        let expression = options.filter.as_deref();
        if framing == LinkFraming::Cooked {
            plan.program = keep(u32::MAX).to_vec();
            if let Some(expression) = expression {
                plan.filter = Some(Filter::compile(expression, link_type)?.program().clone());
            }
        } else if let Some(expression) = expression {
            let filter = Filter::compile_live(expression, interface, link_type)?;
            plan.program = filter.program().clone().keeping(snaplen).instructions().to_vec();
        }
        Ok(plan)
    }
}

/// Opens all rings. None takes a packet before all are there: otherwise the first would get what belongs to others,
/// and some packets would be seen twice.
pub(super) fn open(options: &Options) -> Result<Vec<Capture>, CaptureError> {
    options.check()?;
    let plan = Plan::make(options)?;
    let mut captures = Vec::with_capacity(options.rings);
    let mut group = None;
    for _ in 0..options.rings {
        captures.push(open_ring(options, &plan, &mut group)?);
    }
    for capture in &captures {
        capture.socket.attach_filter(&plan.program).map_err(options.system("attach the filter"))?;
    }
    Ok(captures)
}

fn open_ring(options: &Options, plan: &Plan, group: &mut Option<u16>) -> Result<Capture, CaptureError> {
    let index = plan.device.index;
    let raw = plan.shape.framing != LinkFraming::Cooked;
    let socket = PacketSocket::open(raw).map_err(options.system("open a packet socket"))?;
    socket
        .set_option(libc::PACKET_RESERVE, VLAN_TAG as i32)
        .map_err(options.system("reserve room for VLAN tags"))?;
    if plan.device.loopback {
        socket
            .set_option(libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(options.system("ignore outgoing packets (Linux 4.20 or newer is needed)"))?;
    }
    let time_source = time_source(&options.interface, &socket);
    let retire_ms = options.retire.as_millis() as u32;
    let no_memory = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENOMEM) => CaptureError::NoMemory {
            interface: options.interface.clone(),
            bytes: options.block_bytes as u64 * options.blocks as u64,
        },
        _ => CaptureError::system("make a packet ring", &options.interface, error),
    };
    socket.make_ring(options.block_bytes, options.blocks, retire_ms).map_err(no_memory)?;
    let ring = Ring::map(&socket, options.block_bytes, options.blocks).map_err(no_memory)?;
    socket.attach_filter(&keep(0)).map_err(options.system("attach a filter"))?;
    socket.bind(index).map_err(options.system("bind"))?;
    if options.promiscuous {
        socket.promiscuous(index).map_err(options.system("switch to promiscuous mode"))?;
    }
    if options.rings > 1 {
        let joined =
            socket.fan_out(*group, options.fanout.kind()).map_err(options.system("share out packets"))?;
        *group = Some(joined);
    }
    Ok(Capture {
        ring,
        socket,
        interface: options.interface.clone(),
        device: plan.device,
        link_type: plan.link_type,
        shape: plan.shape,
        snaplen: options.snaplen,
        filter_text: options.filter.clone(),
        filter: plan.filter.clone(),
        time_source,
        promiscuous: options.promiscuous,
        shares: options.rings > 1,
        counters: KernelCounters::default(),
        filtered: 0,
    })
}

/// Stamps of the interface where it offers any that are worth taking; most do not, and then the kernel's clock it is.
fn time_source(interface: &str, socket: &PacketSocket) -> TimeSource {
    let stamping = Stamps::of(interface, socket).is_ok_and(worth_taking)
        && stamp_all(interface, socket).is_ok()
        && socket
            .set_option(libc::PACKET_TIMESTAMP, libc::SOF_TIMESTAMPING_RAW_HARDWARE.cast_signed())
            .is_ok();
    if stamping { TimeSource::Hardware } else { TimeSource::Kernel }
}

/// Whether an interface's stamps tell when a packet came: if it stamps all of them, by a clock that somebody sets. Many
/// run free from wherever they began, and some keep atomic time, 37 s ahead.
fn worth_taking(offered: Stamps) -> bool {
    offered.all && offered.off_by.is_some_and(|off| off <= NEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_taken_where_all_packets_get_one_of_a_clock_that_is_set() {
        let offered = |all, off_by| Stamps { all, off_by };
        assert!(worth_taking(offered(true, Some(Duration::ZERO))));
        assert!(worth_taking(offered(true, Some(NEAR))));
        assert!(!worth_taking(offered(false, Some(Duration::ZERO))), "only some packets would get one");
        assert!(!worth_taking(offered(true, Some(Duration::from_secs(37)))), "atomic time");
        assert!(!worth_taking(offered(true, Some(Duration::from_millis(11)))), "nobody sets it");
        assert!(!worth_taking(offered(true, None)), "nobody knows what it shows");
    }
}
