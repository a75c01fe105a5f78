//! Random numbers of the system, for ids and keys of rings.

use holdfast_base::RingId;
use holdfast_base::failure::{Failure, Result, reason};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Random bytes of the system.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let source = Path::new("/dev/urandom");
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| {
        Failure::failed(format_args!("no random numbers: {}", reason(&error))).at_path(source)
    })?;
    Ok(bytes)
}

/// A random UUID (version 4).
pub fn ring_id() -> Result<RingId> {
    let mut id: [u8; 16] = bytes()?;
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    Ok(RingId(id))
}
