//! Server name in a TLS client hello, as far as it lies in one packet.
//!
//! ```text
//! record      0 22: handshake | 1 version 3.x (2) | 3 length (2)
//! handshake   5 1: client hello | 6 length (3)
//! hello       9 version (2) | 11 random (32) | session (1 + n) | ciphers (2 + n) | compression (1 + n) | extensions (2 + n)
//! extension   type (2) | length (2); of type 0: list's length (2) | 0: host name | length (2) | name
//! ```

use super::{MOST_NAME, REPLACEMENT, Scratch, Unnamed, put};

/// A place in a greeting; `None` is its end.
struct TlsReader<'a>(&'a [u8]);

impl<'a> TlsReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<usize> {
        self.take(1).map(|taken| usize::from(taken[0]))
    }

    fn pair(&mut self) -> Option<usize> {
        self.take(2).map(|taken| usize::from(taken[0]) << 8 | usize::from(taken[1]))
    }
}

/// The name, in lower case. `None` if this is no greeting, has no name, or goes on in
/// another packet before it. Bytes that are not ASCII are U+FFFD, as in tshark.
pub(super) fn server_name<'a>(
    payload: &'a [u8],
    scratch: &'a mut Scratch,
) -> Result<Option<&'a [u8]>, Unnamed> {
    // A greeting that is repeated, because the server wants another key, has a record in front that means nothing any more.
    let payload = payload.strip_prefix(&[20, 3, 3, 0, 1, 1]).unwrap_or(payload);
    let [22, 3, _, _, _, 1, l2, l1, l0, hello @ ..] = payload else { return Ok(None) };
    let len = u32::from_be_bytes([0, *l2, *l1, *l0]) as usize;
    let (hello, whole) = hello.get(..len).map_or((hello, false), |hello| (hello, true));
    let Some(name) = find(hello) else {
        return if whole { Err(Unnamed::Malformed) } else { Ok(None) };
    };
    if name.is_empty() {
        return Ok(None);
    }
    if name.len() > MOST_NAME {
        return Err(Unnamed::TooLong);
    }
    let mut len = 0;
    for byte in name {
        put(if byte.is_ascii() { std::slice::from_ref(byte) } else { REPLACEMENT }, scratch, &mut len);
    }
    Ok(scratch.get(..len))
}

/// The name in a greeting, empty where it has none; `None` if the greeting ends early.
fn find(hello: &[u8]) -> Option<&[u8]> {
    let mut at = TlsReader(hello);
    at.take(34)?;
    let session = at.byte()?;
    at.take(session)?;
    let ciphers = at.pair()?;
    at.take(ciphers)?;
    let compression = at.byte()?;
    at.take(compression)?;
    if at.0.is_empty() {
        return Some(&[]);
    }
    at.pair()?;
    while !at.0.is_empty() {
        let (kind, len) = (at.pair()?, at.pair()?);
        if kind != 0 {
            at.take(len)?;
            continue;
        }
        let (_, name_kind, len) = (at.pair()?, at.byte()?, at.pair()?);
        return if name_kind == 0 { at.take(len) } else { Some(&[]) };
    }
    Some(&[])
}
