//! A commit of the journal, its records, and the open slot that is made again from them.

use crate::{sparse, world};
use holdfast_base::Timestamp;
use holdfast_format::{
    Builder, CommitHead, CommitWriter, Key, Rebuild, Record, Records, Superblock, check_image, commit_len,
    crc32c, find_recovery, read_commit,
};

const HEAD: usize = 128;

/// Puts the checks of the commit at the start of `image` right, except for those that `leave` names.
pub(crate) fn seal(image: &mut [u8], leave: u8, key: &Key) {
    if leave & 1 == 0
        && let Some(records) = sparse::piece(image, HEAD, sparse::u32_at(image, 56))
    {
        let crc = crc32c(records);
        sparse::put(image, 60, &crc.to_le_bytes());
    }
    if leave & 2 == 0 && image.len() >= HEAD {
        let tag = key.tag(&image[..96]);
        sparse::put(image, 96, &tag);
    }
}

/// Reads a commit. A record that is sound must come back when it is written again; and whatever the journal says of an
/// open slot, what is made of it is a sound slot.
pub fn run(data: &[u8]) {
    let (mut image, leave) = sparse::expand(data);
    let _ = Records::new(&image).count();
    seal(&mut image, leave, &world::key());
    // A string that is found there makes a superblock that is as good as any.
    if let Some(found) = find_recovery(&image) {
        assert_eq!(Superblock::decode(&found.encode()), Ok(found));
    }
    let len = commit_len(&image, &world::key(), world::RING);
    let Ok((_, records, bytes)) = read_commit(&image, &world::key(), world::RING) else { return };
    assert_eq!(len, Ok(bytes), "a commit has one length");
    let records: Vec<Record<'_>> = records.flatten().collect();
    for record in &records {
        comes_back(record);
    }
    for sequence in records.iter().filter_map(|record| match record {
        Record::OpenSlot(open) => Some(open.sequence.0),
        _ => None,
    }) {
        rebuild(sequence, &records);
    }
}

fn comes_back(record: &Record<'_>) {
    let mut buffer = vec![0; 2 * sparse_limit()];
    let mut writer = CommitWriter::new(&mut buffer);
    if !writer.push(record) {
        return;
    }
    let key = world::key();
    writer.finish(&key, &CommitHead { ring: world::RING, ..CommitHead::default() });
    let read = read_commit(&buffer, &key, world::RING).map(|(_, records, _)| records.collect::<Vec<_>>());
    assert_eq!(read, Ok(vec![Ok(record.clone())]));
}

/// A record is never longer than the image it came from.
fn sparse_limit() -> usize {
    128 << 10
}

fn rebuild(sequence: u64, records: &[Record<'_>]) {
    let entries = world::entries();
    let mut image = vec![0; world::SLOT as usize];
    let builder = Builder::new(world::SLOT, entries.len());
    let id = world::slot_id(sequence);
    let Ok(mut rebuild) = Rebuild::open(builder, &mut image, id, Timestamp(0), &entries) else { return };
    for record in records {
        let _ = rebuild.apply(&mut image, record);
    }
    let mut builder = rebuild.finish(&mut image);
    let flags = holdfast_format::SlotFlags::REBUILT;
    let sealed = builder.seal(&mut image, &world::key(), holdfast_base::SlotNo(1), Timestamp(0), flags);
    let sound = check_image(&image[..sealed.bytes], &world::key(), world::RING);
    assert!(sound.is_ok(), "made again and not sound: {:?}", sound.err());
}

/// A snapshot with a record of every kind, and a commit with one.
pub fn seeds() -> Vec<Vec<u8>> {
    [world::snapshot(), world::clean_end()].iter().map(|commit| sparse::squeeze(commit)).collect()
}
