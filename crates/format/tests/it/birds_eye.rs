//! Tests of the bird's-eye view's entries: a copy out of one is the slot's, whatever fits, however it came
//! there, and whatever becomes of it while it is copied (promise 5).

use crate::world::{RING, key, slot_id};
use holdfast_base::{BLOCK, Ordinal, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, Cell, CellBuffer, CellsAt, Class, Classes, Entry, Glance, LEAST_PLACE, Outline, PartHeader,
    PlaceState, Row, Section, SectionKind, SlotFlags, Summary, ViewPlace,
};
use proptest::prelude::*;
use std::sync::LazyLock;

/// How many different values the columns have.
const VALUES: [u64; 6] = [1, 3000, 40, 3000, 400, 3000];

/// The image of a slot whose columns have filters of several sizes, and how it begins.
fn image(sequence: u64) -> Vec<u8> {
    let classes: Classes = VALUES.iter().map(|_| Class::Word).collect();
    let entries = [Entry { classes, ..Entry::default() }];
    let (mut builder, mut image) = (Builder::new(1 << 20, 1), vec![0; 1 << 20]);
    builder.prepare(&entries).unwrap();
    builder.open(&mut image, slot_id(sequence), Timestamp(0), &entries).unwrap();
    for number in 0..3000 {
        let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 1, 0)).collect();
        for (column, values) in cells.iter_mut().zip(VALUES) {
            column.word(Cell::Word(number % values * 7 + sequence).hash());
        }
        let row = Row { ordinal: Ordinal(number), ..Row::default() };
        builder.row_with(&mut image, &row, CellsAt { columns: &cells, first: 0 });
    }
    let sealed = builder.seal(&mut image, &key(), SlotNo(3), Timestamp(9), SlotFlags::default());
    image.truncate(sealed.bytes);
    image
}

static IMAGES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [image(40), image(41)]);

fn summary(image: &[u8]) -> Summary {
    let header = PartHeader::decode(image, &key(), RING).unwrap();
    Summary::decode(&header, &image[BLOCK..]).unwrap()
}

fn filters(image: &[u8]) -> Vec<Section> {
    let mut sections = summary(image).sections;
    sections.retain(|section| section.kind == SectionKind::Filter);
    sections
}

/// The bytes of a place that tells of an image.
fn told(image: &[u8], sequence: u64, bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    let mut place = ViewPlace::new(&mut memory).unwrap();
    if place.begin(Sequence(sequence), image) {
        place.take(0, image);
        place.publish();
    }
    memory
}

/// Copies out of a place as a client does.
fn glance(place: &[u8], sequence: u64) -> Option<Glance> {
    let front = place.first_chunk::<{ Glance::FRONT }>().unwrap();
    let bytes = Glance::bytes(front, Sequence(sequence), place.len())?;
    Glance::new(place[..bytes].to_vec(), place.len())
}

fn section(glance: &Glance, place: &[u8], section: &Section) -> Option<(Section, Vec<u8>)> {
    glance.section(section, |offset, into| {
        let from = place.get(offset..offset + into.len());
        from.map(|from| into.copy_from_slice(from)).is_some()
    })
}

/// By how many columns a glance tells filters, and by how many bounds; all of it is what the image has.
fn check(glance: &Glance, place: &[u8], image: &[u8]) -> (Vec<usize>, usize) {
    let head = glance.head();
    assert!(head == image[..head.len()]);
    assert_eq!(
        Summary::decode(&PartHeader::decode(&head, &key(), RING).unwrap(), &head[BLOCK..]).unwrap(),
        summary(image)
    );
    let (mut whole, mut bounds) = (Vec::new(), 0);
    for (column, wanted) in filters(image).iter().enumerate() {
        let Some((found, bytes)) = section(glance, place, wanted) else { continue };
        bounds += 1;
        let of_image = &image[wanted.range()];
        let (outline, full) =
            (Outline::decode(&bytes, &found).unwrap(), Outline::decode(of_image, wanted).unwrap());
        assert_eq!((outline.cells, outline.nulls, outline.bounds()), (full.cells, full.nulls, full.bounds()));
        assert!(bytes == of_image[..bytes.len()]);
        if found == *wanted {
            assert!(outline == full);
            whole.push(column);
        } else {
            assert_eq!((outline.filter_bytes(), found.count), (0, 0));
        }
    }
    (whole, bounds)
}

/// Which columns have a filter in a place of so many bytes, or need none: bounds of all come first, then the smallest.
fn model(image: &[u8], bytes: usize) -> Option<(Vec<usize>, usize)> {
    let header = PartHeader::decode(image, &key(), RING).unwrap();
    let mut left = bytes.checked_sub(176 + header.summary_bytes as usize)?;
    let filters = filters(image);
    let Some(rest) = left.checked_sub(48 * filters.len()) else { return Some((Vec::new(), 0)) };
    left = rest;
    let mut sizes: Vec<_> =
        filters.iter().enumerate().map(|(at, section)| (section.bytes as usize - 48, at)).collect();
    sizes.sort_unstable();
    let mut whole = Vec::new();
    for (size, at) in sizes {
        if size > left {
            break;
        }
        left -= size;
        whole.push(at);
    }
    whole.sort_unstable();
    Some((whole, filters.len()))
}

#[test]
fn a_place_tells_as_much_as_it_has_room_for() {
    let image = &IMAGES[0];
    let sizes: Vec<u32> = filters(image).iter().map(|section| section.bytes - 48).collect();
    assert!(sizes[0] == 0 && sizes[2] < sizes[4] && sizes[4] < sizes[1], "{sizes:?}");
    let most = ViewPlace::most(1 << 20, 1, VALUES.len()) as usize;
    let (mut nothing, mut kinds) = (0, std::collections::BTreeSet::new());
    for bytes in (LEAST_PLACE..most).step_by(64).chain([most]) {
        let place = told(image, 40, bytes);
        let found = glance(&place, 40).map(|glance| check(&glance, &place, image));
        assert_eq!(found, model(image, bytes), "{bytes}");
        nothing += usize::from(found.is_none());
        kinds.insert(found);
        assert_eq!(glance(&place, 41), None);
    }
    assert!(nothing > 0 && kinds.len() == 8, "{nothing} {kinds:?}");
    assert!(kinds.contains(&Some(((0..VALUES.len()).collect(), VALUES.len()))));
    assert!(ViewPlace::new(&mut [0; LEAST_PLACE - 1]).is_none());
}

#[test]
fn a_place_is_filled_from_stretches_as_they_are_read() {
    let image = &IMAGES[0];
    for (bytes, at_once) in [(4 << 10, 4 << 10), (9 << 10, 4 << 10), (64 << 10, 8 << 10), (64 << 10, 1 << 20)]
    {
        let mut memory = vec![0; bytes];
        assert_eq!(ViewPlace::new(&mut memory).unwrap().told(), PlaceState::Nothing);
        // Something was told before.
        memory[16..].fill(0xee);
        let mut place = ViewPlace::new(&mut memory).unwrap();
        assert!(place.begin(Sequence(40), &image[..8 << 10]));
        let (mut from, mut read) = (0, 0);
        while let Some(range) = place.wants(from) {
            assert_eq!(place.told(), PlaceState::Begun(Sequence(40)));
            let offset = range.start / BLOCK * BLOCK;
            let end = range.end.min(offset + at_once);
            place.take(offset, &image[offset..end]);
            (from, read) = (end, read + end - offset);
        }
        place.publish();
        assert_eq!(place.told(), PlaceState::All(Sequence(40)));
        assert!(read < 80 << 10, "{read} bytes were read");
        assert!(memory == told(image, 40, bytes), "{bytes} {at_once}");
    }
    // Not all of the summary, or a header that is not all told: nothing.
    let mut memory = vec![0; 64 << 10];
    let mut place = ViewPlace::new(&mut memory).unwrap();
    assert!(!place.begin(Sequence(40), &image[..4200]));
    assert_eq!(place.told(), PlaceState::Never(Sequence(40)));
    let mut odd = image.clone();
    odd[1000] = 1;
    assert!(!place.begin(Sequence(40), &odd));
    place.wipe();
    assert!(memory.iter().all(|byte| *byte == 0));
}

proptest! {
    // What a client copies while the place is overwritten, or what somebody has spoiled, is the slot's or is not believed.
    #[test]
    fn a_mixture_is_never_taken_for_a_slot(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
        bytes in 1500..70_000usize,
        flip in any::<bool>(),
    ) {
        let [old, new] = [told(&IMAGES[0], 40, bytes), told(&IMAGES[1], 41, bytes)];
        let mut mixed = old.clone();
        for (from, to) in &cuts {
            let (from, to) = (from.index(bytes), to.index(bytes));
            let range = from.min(to)..from.max(to);
            if flip {
                mixed[from] ^= 1 << (to % 8);
            } else {
                mixed[range.clone()].copy_from_slice(&new[range]);
            }
        }
        for (sequence, image) in [(40, &IMAGES[0]), (41, &IMAGES[1])] {
            // Head and filters are copied one after the other: each may be of another moment.
            for (head, filters) in [(&mixed, &mixed), (&old, &mixed), (&new, &mixed), (&mixed, &new)] {
                if let Some(glance) = glance(head, sequence) {
                    check(&glance, filters, image);
                }
            }
        }
    }
}
