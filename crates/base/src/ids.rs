//! Identifiers, each a type of its own so that a slot number can never be taken for a sequence.

use crate::Timestamp;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// A slot's place on its lane, counted from 0.
    SlotNo(u32)
}
id! {
    /// A lane's place in its group, counted from 0.
    LaneNo(u16)
}
id! {
    /// Counts every slot ever written to a ring; starts at 1, never reused, 0 means "none".
    Sequence(u64)
}
id! {
    /// Counts the runs of the recorder on a ring; starts at 1, never reused.
    Epoch(u64)
}
id! {
    /// The order in which slots expire: the sequence at arrival, or the youngest original's for a copy.
    Age(u64)
}
id! {
    /// Counts what arrived on a stream, lost elements included.
    Ordinal(u64)
}
id! {
    /// A stream's number inside one ring; given at first sight of its name, never reused.
    StreamId(u32)
}
id! {
    /// A hold's number inside one ring; starts at 1, never reused.
    HoldId(u64)
}

impl Sequence {
    /// The sequence after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::UnitError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let expected = "a UUID of 32 hexadecimal digits";
                read_uuid(text).map(Self).ok_or_else(|| crate::UnitError::new($what, text, expected))
            }
        }
    };
}

uuid! {
    /// A ring's UUID.
    RingId, "ring id"
}
uuid! {
    /// UUID of a hold or release order, chosen by the client: a ring carries the same order out only once.
    OrderId, "order id"
}

impl OrderId {
    /// A UUID of version 7: the time in milliseconds, then random bits.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&(now.0 / 1_000_000).to_be_bytes()[2..]);
        id[6..].copy_from_slice(&random);
        id[6] = id[6] & 0x0f | 0x70;
        id[8] = id[8] & 0x3f | 0x80;
        Self(id)
    }
}

/// Writes a UUID as 32 hexadecimal digits in five groups.
fn write_uuid(id: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

/// Reads 32 hexadecimal digits, with any hyphens between them.
fn read_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    let mut id = [0u8; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_id_round_trips_as_uuid_text() {
        let id = RingId(*b"0123456789abcdef");
        assert_eq!(id.to_string(), "30313233-3435-3637-3839-616263646566");
        assert_eq!(id.to_string().parse::<RingId>(), Ok(id));
        assert!("3031".parse::<RingId>().is_err());
        assert!("zz313233-3435-3637-3839-616263646566".parse::<RingId>().is_err());
    }

    #[test]
    fn order_ids_are_uuids_of_version_7_in_the_order_of_time() {
        let id = OrderId::new(Timestamp(0x0123_4567_89ab * 1_000_000 + 5), [0xff; 10]);
        assert_eq!(id.to_string(), "01234567-89ab-7fff-bfff-ffffffffffff");
        assert_eq!(id.to_string().parse::<OrderId>(), Ok(id));
        assert!(
            OrderId::new(Timestamp(2_000_000_000), [0; 10])
                > OrderId::new(Timestamp(1_000_000_000), [0xff; 10])
        );
    }
}
