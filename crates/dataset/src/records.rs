//! MCAP records as bytes: opcode, length, content.

use binrw::BinWrite;
use binrw::io::Cursor;
use mcap::records::op;

/// First and last bytes of an MCAP file.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', 0x30, b'\r', b'\n'];

/// Bytes of opcode and length.
pub(crate) const HEAD: usize = 9;

/// Bytes of a message record before its data: head, channel, sequence, log time and publish time.
pub(crate) const MESSAGE_HEAD: usize = HEAD + 22;

/// Appends a whole record.
pub(crate) fn put<T>(out: &mut Vec<u8>, opcode: u8, record: &T)
where
    for<'a> T: BinWrite<Args<'a> = ()>,
{
    let head = begin(out, opcode);
    content(out, record);
    end(out, head);
}

/// Appends the content of a record, or a part of it.
pub(crate) fn content<T>(out: &mut Vec<u8>, record: &T)
where
    for<'a> T: BinWrite<Args<'a> = ()>,
{
    let mut bytes = Cursor::new(Vec::new());
    // Writing to memory does not fail, and lengths are checked by who makes the record.
    let written = record.write_le(&mut bytes);
    debug_assert!(written.is_ok(), "{written:?}");
    out.extend_from_slice(&bytes.into_inner());
}

/// Begins a record; to be ended by [`end`].
pub(crate) fn begin(out: &mut Vec<u8>, opcode: u8) -> usize {
    out.push(opcode);
    out.extend_from_slice(&[0; 8]);
    out.len()
}

/// Ends the record whose content begins at `head`.
pub(crate) fn end(out: &mut [u8], head: usize) {
    let length = (out.len() - head) as u64;
    out[head - 8..head].copy_from_slice(&length.to_le_bytes());
}

/// Appends a message record.
pub(crate) fn message(out: &mut Vec<u8>, header: &mcap::records::MessageHeader, data: &[u8]) {
    out.reserve(MESSAGE_HEAD + data.len());
    out.push(op::MESSAGE);
    out.extend_from_slice(&((MESSAGE_HEAD - HEAD + data.len()) as u64).to_le_bytes());
    out.extend_from_slice(&header.channel_id.to_le_bytes());
    out.extend_from_slice(&header.sequence.to_le_bytes());
    out.extend_from_slice(&header.log_time.to_le_bytes());
    out.extend_from_slice(&header.publish_time.to_le_bytes());
    out.extend_from_slice(data);
}

/// The record at the beginning of some bytes: opcode and content.
pub(crate) fn record(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = u64::from_le_bytes(head.get(1..)?.try_into().ok()?);
    Some((*head.first()?, rest.get(..usize::try_from(length).ok()?)?))
}
