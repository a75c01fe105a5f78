//! Server name in a TLS client hello, as far as it lies in one packet.
//!
//! ```text
//! record      0 22: handshake | 1 version 3.x (2) | 3 length (2)
//! handshake   5 1: client hello | 6 length (3)
//! hello       9 version (2) | 11 random (32) | session (1 + n) | ciphers (2 + n) | compression (1 + n) | extensions (2 + n)
//! extension   type (2) | length (2); of type 0: list's length (2) | 0: host name | length (2) | name
//! ```

use super::Scratch;

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

/// The name, in lower case; longer than a cell may be as it is. `None` if this is no greeting, has no name, or ends before it.
pub(super) fn server_name<'a>(payload: &'a [u8], scratch: &'a mut Scratch) -> Option<&'a [u8]> {
    // A greeting that is repeated, because the server wants another key, has a record in front that means nothing any more.
    let payload = payload.strip_prefix(&[20, 3, 3, 0, 1, 1]).unwrap_or(payload);
    let mut at = match payload {
        [22, 3, _, _, _, 1, _, _, _, hello @ ..] => TlsReader(hello),
        _ => return None,
    };
    at.take(34)?;
    let session = at.byte()?;
    at.take(session)?;
    let ciphers = at.pair()?;
    at.take(ciphers)?;
    let compression = at.byte()?;
    at.take(compression)?;
    at.pair()?;
    loop {
        let (kind, len) = (at.pair()?, at.pair()?);
        if kind != 0 {
            at.take(len)?;
            continue;
        }
        let (_, name_kind, len) = (at.pair()?, at.byte()?, at.pair()?);
        let name = at.take(len).filter(|name| name_kind == 0 && !name.is_empty() && name.is_ascii())?;
        let Some(lower) = scratch.get_mut(..len) else { return Some(name) };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        return Some(lower);
    }
}
