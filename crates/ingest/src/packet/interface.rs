//! Interface description of a capture file, and the conversion of its timestamps to nanoseconds.

use super::pcapng::options;
use holdfast_base::Timestamp;

/// A `LINKTYPE_` value as capture files carry it (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet II and IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: Self = Self(101);
    /// IEEE 802.11 without a radio header.
    pub const IEEE802_11: Self = Self(105);
    /// Linux "cooked": a 16-byte header made by the capturer.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 with a Prism header.
    pub const PRISM: Self = Self(119);
    /// IEEE 802.11 with a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// Linux CAN frames, the identifier in network order.
    pub const CAN: Self = Self(227);

    /// The value that libpcap uses inside the program for this one; most are the same.
    pub fn dlt(self) -> i32 {
        match self.0 {
            100 => 11,
            101 => 12,
            102 => 15,
            103 => 16,
            106 => 19,
            same => i32::from(same),
        }
    }
}

/// One interface, as the capture describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What its packets start with.
    pub link_type: LinkType,
    /// Bytes that were kept of a packet; 0 for all.
    pub snaplen: u32,
    /// All its options but those of time, canonical as those of packets.
    pub options: Vec<u8>,
    pub(crate) resolution: Resolution,
    pub(crate) offset: i64,
}

impl Interface {
    /// An interface with nanosecond times and nothing else known of it.
    pub(crate) fn plain(link_type: LinkType, snaplen: u32) -> Self {
        Self { link_type, snaplen, options: Vec::new(), resolution: Resolution::NANO, offset: 0 }
    }

    /// Its name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.text(options::IF_NAME)
    }

    /// Its description, where it has one.
    pub fn description(&self) -> Option<&str> {
        self.text(options::IF_DESCRIPTION)
    }

    fn text(&self, code: u16) -> Option<&str> {
        let value = options::find(&self.options, code)?;
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
        std::str::from_utf8(&value[..end]).ok()
    }

    /// Whether times are nanoseconds since 1970, as in a preamble.
    pub(crate) fn times_are_plain(&self) -> bool {
        self.resolution == Resolution::NANO && self.offset == 0
    }

    /// A time in the interface's own units; `None` before 1970 and after 2262.
    pub(crate) fn time(&self, ticks: u64) -> Option<Timestamp> {
        let nanos = self.resolution.nanos(ticks)?;
        let offset = i128::from(self.offset) * 1_000_000_000;
        let nanos = i64::try_from(i128::from(nanos) + offset).ok()?;
        (nanos >= 0).then_some(Timestamp(nanos))
    }
}

/// The unit of timestamps: ten or two to the power of minus something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution(pub(crate) u8);

impl Resolution {
    /// What holds where the file says nothing.
    pub(crate) const MICRO: Self = Self(6);
    /// What Holdfast writes.
    pub(crate) const NANO: Self = Self(9);

    /// Nanoseconds, rounded down; `None` when 64 bits do not hold them.
    fn nanos(self, ticks: u64) -> Option<u64> {
        let (ticks, power) = (u128::from(ticks), u32::from(self.0 & 0x7f));
        let nanos = if self.0 & 0x80 != 0 {
            (ticks * 1_000_000_000) >> power
        } else if power <= 9 {
            ticks * 10u128.pow(9 - power)
        } else {
            10u128.checked_pow(power - 9).map_or(0, |unit| ticks / unit)
        };
        u64::try_from(nanos).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_comes_to_nanoseconds_rounded_down() {
        for (resolution, ticks, nanos) in [
            (0, 5, Some(5_000_000_000)),
            (3, 1_500, Some(1_500_000_000)),
            (6, 1_700_000_000_123_456, Some(1_700_000_000_123_456_000)),
            (9, u64::MAX, Some(u64::MAX)),
            (12, 1_999, Some(1)),
            (127, u64::MAX, Some(0)),
            (0x80, 2, Some(2_000_000_000)),
            (0x8a, 1025, Some(1_000_976_562)),
            (0xbf, 1 << 63, Some(1_000_000_000)),
            (0xff, u64::MAX, Some(0)),
            (0, u64::MAX, None),
        ] {
            assert_eq!(Resolution(resolution).nanos(ticks), nanos, "{resolution:#x} {ticks}");
        }
    }

    #[test]
    fn times_that_cannot_be_told_are_none() {
        let mut interface = Interface::plain(LinkType::ETHERNET, 0);
        assert_eq!(interface.time(i64::MAX as u64), Some(Timestamp::MAX));
        assert_eq!(interface.time(i64::MAX as u64 + 1), None);
        interface.offset = -1;
        assert_eq!(interface.time(999_999_999), None);
        assert_eq!(interface.time(1_000_000_001), Some(Timestamp(1)));
        interface.offset = i64::MIN;
        assert_eq!(interface.time(0), None);
    }
}
