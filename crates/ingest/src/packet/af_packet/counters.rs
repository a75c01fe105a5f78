//! Loss counters of the kernel and of network interfaces.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// What the kernel counted for one ring since it was opened.
///
/// Of the frames that passed the filter (all those that this ring was given, in a group of rings), `received` were
/// put into the ring, read by now or not, and `dropped` found no room: `received + dropped` is all of them. The
/// kernel's own counters start again from zero whenever they are read; here they are added up, so only this process
/// may read them, and only through here. They are 32 bits wide and must be read before so many packets passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelCounters {
    /// Frames put into the ring.
    pub received: u64,
    /// Frames that found no room in the ring.
    pub dropped: u64,
    /// How often the ring was found full.
    pub full: u64,
    /// Frames among `received` that made no sense, and were not handed out: always 0 on kernels that keep their word.
    pub malformed: u64,
}

impl KernelCounters {
    /// Frames that were not handed out, whyever.
    pub fn lost(&self) -> u64 {
        self.dropped + self.malformed
    }

    /// Adds what was counted since the last reading. The kernel counts what it dropped among the packets, too.
    pub(super) fn add(&mut self, (packets, drops, full): (u32, u32, u32)) {
        self.received += u64::from(packets.saturating_sub(drops));
        self.dropped += u64::from(drops);
        self.full += u64::from(full);
    }
}

/// What an interface counted since it exists: for what was lost before any ring saw it. Counters of drivers differ;
/// what is not told is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InterfaceCounters {
    /// Frames received and handed on.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames that the driver or the kernel threw away: on their way to the rings, or behind them.
    pub rx_dropped: u64,
    /// Frames that the hardware had no room for.
    pub rx_missed_errors: u64,
    /// Frames lost in the hardware's FIFO.
    pub rx_fifo_errors: u64,
    /// Frames lost because a receive ring was overrun.
    pub rx_over_errors: u64,
    /// Damaged frames, and all other receive errors.
    pub rx_errors: u64,
}

impl InterfaceCounters {
    /// Reads them once; see [`CounterFiles::open`].
    pub fn read(interface: &str) -> Option<Self> {
        CounterFiles::open(interface)?.read()
    }

    /// Frames that were lost before any ring could see them.
    pub fn lost_before(&self) -> u64 {
        self.rx_missed_errors + self.rx_fifo_errors + self.rx_over_errors
    }

    /// Frames of which nobody can tell. The kernel counts as dropped what found no room on its way to the rings, and in
    /// the same counter what nobody else wanted behind them: a tag without its VLAN, a type without a protocol. Those
    /// the rings have. Nothing else that it counts tells the two apart for one interface: the drops of its backlog are
    /// counted a processor.
    pub fn perhaps_lost(&self) -> u64 {
        self.rx_dropped
    }
}

/// Bytes of a counter, with the end of its line: a `u64` has up to 20 digits.
const COUNTER: usize = 24;

/// The counters of an interface, kept open: to read them again allocates nothing.
#[derive(Debug)]
pub struct CounterFiles {
    /// In the order of the fields of [`InterfaceCounters`].
    files: [Option<File>; 8],
}

impl CounterFiles {
    /// Opens them in `/sys/class/net`; `None` if there is no such interface. That tree shows the network name space
    /// in which it was mounted.
    pub fn open(interface: &str) -> Option<Self> {
        if interface.is_empty() || interface.starts_with('.') || interface.contains('/') {
            return None;
        }
        let folder = format!("/sys/class/net/{interface}/statistics");
        fs::metadata(&folder).ok()?;
        let names = [
            "rx_packets",
            "rx_bytes",
            "tx_packets",
            "rx_dropped",
            "rx_missed_errors",
            "rx_fifo_errors",
            "rx_over_errors",
            "rx_errors",
        ];
        Some(Self { files: names.map(|name| File::open(format!("{folder}/{name}")).ok()) })
    }

    /// What they say now; `None` when the interface is gone.
    pub fn read(&self) -> Option<InterfaceCounters> {
        let [packets, rest @ ..] = &self.files;
        let rx_packets = counter(packets.as_ref())?;
        let [rx_bytes, tx_packets, rx_dropped, rx_missed_errors, rx_fifo_errors, rx_over_errors, rx_errors] =
            rest.each_ref().map(|file| counter(file.as_ref()).unwrap_or(0));
        Some(InterfaceCounters {
            rx_packets,
            rx_bytes,
            tx_packets,
            rx_dropped,
            rx_missed_errors,
            rx_fifo_errors,
            rx_over_errors,
            rx_errors,
        })
    }
}

/// A number in a file: read from its first byte, it is told anew.
fn counter(file: Option<&File>) -> Option<u64> {
    let mut line = [0; COUNTER];
    let len = file?.read_at(&mut line, 0).ok()?;
    std::str::from_utf8(&line[..len]).ok()?.trim().parse().ok()
}

/// The speed of an interface in bits a second, where it has one.
pub(super) fn speed(interface: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    text.trim().parse::<u64>().ok().map(|megabits| megabits * 1_000_000)
}
