//! Identifiers, each a type of its own so that a slot number can never be taken for a sequence.

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

/// A ring's UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RingId(pub [u8; 16]);

impl fmt::Display for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RingId({self})")
    }
}

impl std::str::FromStr for RingId {
    type Err = crate::UnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || crate::UnitError::new("ring id", text, "a UUID of 32 hexadecimal digits");
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
        if digits.len() != 32 {
            return Err(wrong());
        }
        let mut id = [0u8; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(id))
    }
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
}
