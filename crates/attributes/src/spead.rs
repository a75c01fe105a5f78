//! Packets of SPEAD (Streaming Protocol for Exchange of Astronomical Data), of flavours with items of 64 bits, such as 64-40 and
//! 64-48: a header of 8 bytes, then as many item pointers of 8 bytes as it says, big-endian.
//!
//! ```text
//! header   0 magic 0x53 | 1 version 4 | 2 bytes of an item's number | 3 bytes of its value (8 together) | 6 items (2)
//! item     highest bit: the value itself, else where it lies in the heap | item's number | value, in so many bytes
//! ```

use crate::Type;
use holdfast_format::CellBuffer;

/// What is read of a packet: an item that stands in it, the first of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeadField {
    /// Number of the heap.
    Heap,
    /// Bytes of the heap.
    HeapSize,
    /// Where in the heap the packet's data belong.
    HeapOffset,
    /// Bytes of data in the packet.
    PayloadLen,
    /// Item 0x1600, which counts in units of the instrument.
    Timestamp,
    /// How many items the packet has.
    Items,
}

impl SpeadField {
    /// The type of all of them.
    pub(crate) const KIND: Type = Type::Uint;

    pub(crate) const ALL: [Self; 6] =
        [Self::Heap, Self::HeapSize, Self::HeapOffset, Self::PayloadLen, Self::Timestamp, Self::Items];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::HeapSize => "heap_size",
            Self::HeapOffset => "heap_offset",
            Self::PayloadLen => "payload_len",
            Self::Timestamp => "timestamp",
            Self::Items => "items",
        }
    }

    /// The item's number.
    fn item(self) -> Option<u64> {
        Some(match self {
            Self::Heap => 1,
            Self::HeapSize => 2,
            Self::HeapOffset => 3,
            Self::PayloadLen => 4,
            Self::Timestamp => 0x1600,
            Self::Items => return None,
        })
    }
}

/// The items of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items<'a> {
    items: &'a [[u8; 8]],
    /// Bits of a value: 64 less those of an item's number and the one above it.
    bits: u32,
}

impl<'a> Items<'a> {
    /// `None` if it is no such packet, or not all of its items are there.
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        let ([0x53, 4, number, value @ 1..=7, _, _, high, low], rest) = data.split_first_chunk::<8>()? else {
            return None;
        };
        let count = usize::from(u16::from_be_bytes([*high, *low]));
        let items = rest.as_chunks().0.get(..count).filter(|_| *number == 8 - value)?;
        Some(Self { items, bits: 8 * u32::from(*value) })
    }

    /// Bits of a value.
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    pub(crate) fn push(self, field: SpeadField, into: &mut CellBuffer) {
        match self.value(field) {
            Some(value) => into.word(value),
            None => into.null(),
        }
    }

    /// What the packet says of this.
    pub(crate) fn value(self, field: SpeadField) -> Option<u64> {
        const IMMEDIATE: u64 = 1 << 63;
        let Some(number) = field.item() else { return Some(self.items.len() as u64) };
        let mut items = self.items.iter().map(|item| u64::from_be_bytes(*item));
        let item = items.find(|item| (item & !IMMEDIATE) >> self.bits == number)?;
        (item & IMMEDIATE != 0).then_some(item & !(u64::MAX << self.bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Extractor, Schema};
    use holdfast_format::Cells;

    fn packet(items: &[(bool, u64, u64)]) -> Vec<u8> {
        let mut packet = vec![0x53, 4, 2, 6, 0, 0, 0, items.len() as u8];
        for (immediate, number, value) in items {
            packet.extend((u64::from(*immediate) << 63 | number << 48 | value).to_be_bytes());
        }
        packet
    }

    fn read(packet: &[u8]) -> (Vec<Option<u64>>, bool) {
        let schema = Schema::typed(["spead"]).unwrap();
        let mut cells: Vec<_> = schema.classes().iter().map(|class| CellBuffer::new(class, 1, 0)).collect();
        let outcome = Extractor::new(&schema).extract(&Element::of(packet), &mut cells);
        let cell = |buffer: &CellBuffer| match buffer.cells() {
            Cells::Words(words) => words.first().copied().filter(|_| buffer.valid() == [true]),
            _ => None,
        };
        (cells.iter().map(cell).collect(), outcome.undecodable)
    }

    #[test]
    fn items_are_found_by_their_number_and_the_first_counts() {
        let mut whole = packet(&[
            (true, 1, 77),
            (true, 2, 8192),
            (true, 0x1600, 0xffff_ffff_ffff),
            (true, 3, 4096),
            (false, 4, 9),
            (true, 1, 78),
        ]);
        whole.extend([9; 100]);
        let wanted = [Some(77), Some(8192), Some(4096), None, Some(0xffff_ffff_ffff), Some(6)];
        assert_eq!(read(&whole), (wanted.to_vec(), false));
        assert_eq!(read(&packet(&[])), (vec![None, None, None, None, None, Some(0)], false));
    }

    #[test]
    fn values_are_as_wide_as_the_flavour_says() {
        let items = [(true, 1, 0xff_ffff_fffe), (true, 2, 8192), (true, 0x1600, 5), (false, 4, 9)];
        for (number, value) in [(1u8, 7u8), (2, 6), (3, 5), (5, 3)] {
            let mut packet = vec![0x53, 4, number, value, 0, 0, 0, items.len() as u8];
            let bits = 8 * u32::from(value);
            let fits = |number: u64| number < 1 << (8 * (8 - value) - 1);
            for (immediate, number, value) in items.iter().filter(|(_, number, _)| fits(*number)) {
                let value = value & !(u64::MAX << bits);
                packet.extend((u64::from(*immediate) << 63 | number << bits | value).to_be_bytes());
            }
            packet[7] = (packet.len() / 8 - 1) as u8;
            let heap = Some(0xff_ffff_fffe & !(u64::MAX << bits));
            let timestamp = Some(5).filter(|_| fits(0x1600));
            let wanted = vec![heap, Some(8192), None, None, timestamp, Some(u64::from(packet[7]))];
            assert_eq!(read(&packet), (wanted, false), "64-{bits}");
        }
    }

    #[test]
    fn what_is_cut_or_of_another_flavour_is_undecodable() {
        let whole = packet(&[(true, 1, 77), (true, 2, 8192)]);
        for cut in 0..whole.len() {
            assert_eq!(read(&whole[..cut]), (vec![None; 6], true), "{cut}");
        }
        for at in 0..4 {
            let mut other = whole.clone();
            other[at] += 1;
            assert!(read(&other).1);
        }
    }
}
