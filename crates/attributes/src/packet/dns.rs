//! Name in the first question of a DNS message.

use super::Scratch;

/// Bytes of a message's header, and most of a name.
const HEADER: usize = 12;
const MAX_NAME: usize = 255;

/// The name in the first question, in lower case and without the dot at its end (the root is `.`); `None` if the message has
/// no question, or this one is not whole or not UTF-8. A name in a first question points nowhere: there is nothing before it.
pub(super) fn question<'a>(message: &[u8], scratch: &'a mut Scratch) -> Option<&'a [u8]> {
    let (header, mut rest) = message.split_first_chunk::<HEADER>()?;
    let [_, _, _, _, high, low, ..] = header;
    if u16::from_be_bytes([*high, *low]) == 0 {
        return None;
    }
    let mut len = 0;
    loop {
        let (count, behind) = rest.split_first()?;
        match count {
            0 => {
                // The type and class that are asked for.
                behind.first_chunk::<4>()?;
                break;
            }
            1..=63 => {}
            _ => return None,
        }
        let (label, behind) = behind.split_at_checked(usize::from(*count))?;
        if len > 0 {
            scratch[len] = b'.';
            len += 1;
        }
        if len + label.len() >= MAX_NAME {
            return None;
        }
        scratch[len..len + label.len()].copy_from_slice(label);
        scratch[len..len + label.len()].make_ascii_lowercase();
        len += label.len();
        rest = behind;
    }
    if len == 0 {
        return Some(b".");
    }
    let name = &scratch[..len];
    std::str::from_utf8(name).is_ok().then_some(name)
}
