//! MCAP files.

use holdfast_ingest::mcap::{MAGIC, McapError, McapReader, Record, scan};

/// What is whole of it is read, and where it breaks is inside of it; its preamble is one that is read as the same.
pub fn run(data: &[u8]) {
    let mut reader = McapReader::new(data);
    let mut messages = 0u64;
    let broke = loop {
        match reader.next_record() {
            Ok(Some(Record::Message(_))) => messages += 1,
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(McapError::Broken { at_byte, .. }) => break Some(at_byte),
            Err(error) => panic!("{error}"),
        }
        assert!(reader.position() <= data.len() as u64);
    };
    assert!(broke.is_none_or(|at| at <= data.len() as u64));
    let Ok((preamble, report)) = scan(data, 1 << 20) else { return };
    assert!(report.messages <= messages);
    let bytes = preamble.to_bytes();
    assert!(scan(&bytes[..], 1 << 21).is_ok_and(|(again, _)| again == preamble));
}

/// Files with and without chunks.
pub fn seeds() -> Vec<Vec<u8>> {
    let record =
        |kind: u8, content: &[u8]| [&[kind][..], &(content.len() as u64).to_le_bytes(), content].concat();
    let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let schema = record(3, &[&[1, 0][..], &text("S"), &text("json"), &text("{}")].concat());
    let channel = record(4, &[&[2, 0, 1, 0][..], &text("/t"), &text("json"), &text("")].concat());
    let message = record(5, &[&[2, 0, 7, 0, 0, 0][..], &[1; 16], b"{}"].concat());
    let records = [schema, channel, message].concat();
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x11, 0x00, 0x00, b'a', b'b', 0, 0, 0, 0];
    let chunk = |packing: &str, packed: &[u8], size: usize| {
        let head = [&[0; 16][..], &(size as u64).to_le_bytes(), &[0; 4]].concat();
        record(6, &[&head[..], &text(packing), &(packed.len() as u64).to_le_bytes(), packed].concat())
    };
    let file = |records: &[u8]| [&MAGIC[..], &record(1, &[0; 8]), records, &record(15, &[0; 4])].concat();
    vec![
        file(&records),
        file(&chunk("", &records, records.len())),
        file(&chunk("zstd", &zstd, 2)),
        file(&[chunk("lz4", &[4, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 0, 0, 0, 0], 0), records].concat()),
    ]
}
