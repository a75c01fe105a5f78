//! Name in the first question of a DNS message.

use super::{Malformed, REPLACEMENT, Scratch, put};

/// Bytes of a message's header, and most of a name.
const HEADER: usize = 12;
const MAX_NAME: usize = 255;

/// The name in the first question, in lower case and without the dot at its end (the root is `.`); `None` if the message has
/// no question. Bytes that are not UTF-8 are U+FFFD, as in tshark. A name in a first question points nowhere: nothing
/// is there before it.
pub(super) fn question<'a>(message: &[u8], scratch: &'a mut Scratch) -> Result<Option<&'a [u8]>, Malformed> {
    let (header, mut rest) = message.split_first_chunk::<HEADER>().ok_or(Malformed)?;
    let [_, _, _, _, high, low, ..] = header;
    if u16::from_be_bytes([*high, *low]) == 0 {
        return Ok(None);
    }
    let (mut raw_len, mut len) = (0, 0);
    loop {
        let (count, behind) = rest.split_first().ok_or(Malformed)?;
        match count {
            0 => {
                // The type and class that are asked for.
                behind.first_chunk::<4>().ok_or(Malformed)?;
                break;
            }
            1..=63 => {}
            _ => return Err(Malformed),
        }
        let (label, behind) = behind.split_at_checked(usize::from(*count)).ok_or(Malformed)?;
        if raw_len > 0 {
            raw_len += 1;
            put(b".", scratch, &mut len);
        }
        raw_len += label.len();
        if raw_len >= MAX_NAME {
            return Err(Malformed);
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
