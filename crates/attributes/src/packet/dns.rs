//! Name in the first question of a DNS message.

use super::{MOST_NAME, REPLACEMENT, Scratch, Unnamed, put};

/// Bytes of a message's header.
const HEADER: usize = 12;

/// The name in the first question, in lower case and without the dot at its end (the root is `.`); `None` if the message has
/// no question. Bytes that are not UTF-8 are U+FFFD, as in tshark. A name in a first question points nowhere: nothing
/// is there before it.
pub(super) fn question<'a>(message: &[u8], scratch: &'a mut Scratch) -> Result<Option<&'a [u8]>, Unnamed> {
    let (header, mut rest) = message.split_first_chunk::<HEADER>().ok_or(Unnamed::Malformed)?;
    let [_, _, _, _, high, low, ..] = header;
    if u16::from_be_bytes([*high, *low]) == 0 {
        return Ok(None);
    }
    let (mut raw_len, mut len) = (0, 0);
    loop {
        let (count, behind) = rest.split_first().ok_or(Unnamed::Malformed)?;
        match count {
            0 => {
                // The type and class that are asked for.
                behind.first_chunk::<4>().ok_or(Unnamed::Malformed)?;
                break;
            }
            1..=63 => {}
            _ => return Err(Unnamed::Malformed),
        }
        let (label, behind) = behind.split_at_checked(usize::from(*count)).ok_or(Unnamed::Malformed)?;
        if raw_len > 0 {
            raw_len += 1;
            put(b".", scratch, &mut len);
        }
        raw_len += label.len();
        if raw_len >= MOST_NAME {
            return Err(Unnamed::Malformed);
        }
        for chunk in label.utf8_chunks() {
            put(chunk.valid().as_bytes(), scratch, &mut len);
            if !chunk.invalid().is_empty() {
                put(REPLACEMENT, scratch, &mut len);
            }
        }
        rest = behind;
    }
    if len == 0 {
        return Ok(Some(b"."));
    }
    Ok(scratch.get(..len))
}
