//! Tests of index copies: each byte is where it was in the slot, and a changed byte is noticed (promise 5).

use crate::golden::{golden, slot, slot_with};
use crate::world::{RING, key};
use holdfast_base::CHECK_BLOCK;
use holdfast_format::{Class, Classes, FormatError, IndexCopy, PartHeader};

/// A copy of the index of a slot: the copy, all that is kept, and the slot.
fn copy(image: &[u8]) -> (IndexCopy, Vec<u8>) {
    let header = PartHeader::decode(image, &key(), RING).unwrap();
    let (head, index) = (header.payload_offset as usize, header.index_offset as usize);
    let bytes = [&image[..head], &image[index..index + header.index_bytes as usize]].concat();
    (IndexCopy::new(&header, &bytes), bytes)
}

fn decode(bytes: &[u8]) -> Result<IndexCopy, FormatError> {
    let outside = || FormatError::OutOfBounds { structure: "file", at: 0, what: "the front" };
    let front = bytes.first_chunk().ok_or_else(outside)?;
    let start = IndexCopy::start_of(front)?;
    IndexCopy::decode(bytes.get(..start).ok_or_else(outside)?)
}

#[test]
fn every_byte_but_the_payload_is_found_by_its_place_in_the_slot() {
    let classes: Classes = [Class::Word, Class::Bytes].into_iter().collect();
    let mut slot = slot_with([classes, Classes::default(), classes]);
    let len = slot.seal_and_compare().unwrap().bytes;
    let image = &slot.buffer[..len];
    let (made, bytes) = copy(image);
    let file = [&made.encode()[..], &bytes].concat();
    let read = decode(&file).unwrap();
    assert_eq!(read, made);
    assert_eq!((read.start() + read.slot_bytes(), read.start()), (file.len(), file.len() - bytes.len()));
    let header = PartHeader::decode(image, &key(), RING).unwrap();
    assert_eq!((read.ring, read.slot, read.sequence), (header.ring, header.slot, header.sequence));
    let payload = header.payload_offset as usize..(header.payload_offset + header.payload_bytes) as usize;
    let index = header.index_offset as usize..(header.index_offset + header.index_bytes) as usize;
    assert!(!payload.is_empty() && !index.is_empty());
    for from in (0..len).step_by(61) {
        for to in [from, from + 1, from + 77, from + 5000, len + 9] {
            let range = from..to;
            let inside = to <= payload.start || (index.start <= from && to <= index.end);
            let place = read.place(&range);
            assert_eq!(place.is_some(), inside, "{range:?}");
            assert_eq!(place.map(|place| &bytes[place]), inside.then(|| &image[range]));
        }
    }
}

#[test]
fn what_was_changed_is_noticed() {
    let mut slot = slot();
    let len = slot.seal_and_compare().unwrap().bytes;
    let (made, bytes) = copy(&slot.buffer[..len]);
    let front = made.encode();
    for at in 0..front.len() {
        for bit in [1, 0x80] {
            let mut changed = front.clone();
            changed[at] ^= bit;
            let other = decode(&changed);
            assert!(other.is_err(), "{at}: {other:?}");
        }
        assert!(decode(&front[..at]).is_err());
    }
    assert!(made.is_sound(0, &bytes));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        assert!(!made.is_sound(0, &changed), "{at}");
        // Only in the check block in which it is.
        let after = (at / CHECK_BLOCK + 1) * CHECK_BLOCK;
        assert!(after >= bytes.len() || made.is_sound(after, &changed[after..]));
    }
    assert!(!made.is_sound(CHECK_BLOCK, &bytes) && !made.is_sound(0, &[&bytes[..], b"x"].concat()));
}

#[test]
fn the_front_of_a_copy() {
    let mut slot = slot();
    let len = slot.seal_and_compare().unwrap().bytes;
    golden("index-copy.bin", &copy(&slot.buffer[..len]).0.encode());
}
