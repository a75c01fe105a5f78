//! BLAKE3 of an export: small exports are hashed by the caller, large ones on a thread beside it, so that reading goes on.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Pieces that may wait for the thread, or be worked on by it: all that it adds to the memory.
const PIECES: usize = 4;

/// A hash under way. Pieces of a power of two are hashed fastest: the hash is a tree, and slow where it must begin in the
/// middle of a branch.
pub(crate) enum Hashing {
    /// Nothing was worth a thread yet.
    Here(Box<blake3::Hasher>),
    Beside(Beside),
}

/// The thread, and the pieces on their way to it and back.
pub(crate) struct Beside {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    given: usize,
    thread: JoinHandle<blake3::Hasher>,
}

impl Beside {
    fn start(mut hash: blake3::Hasher) -> io::Result<Self> {
        let (full, pieces) = sync_channel::<Vec<u8>>(PIECES);
        let (back, empty) = channel();
        let thread = std::thread::Builder::new().name("hash".into()).spawn(move || {
            for piece in pieces {
                hash.update(&piece);
                // Nobody takes it back once all has been sent.
                let _ = back.send(piece);
            }
            hash
        })?;
        Ok(Self { full, empty, given: 0, thread })
    }

    fn take(&mut self, piece: Vec<u8>, most: usize) -> io::Result<Vec<u8>> {
        let ended = |_| io::Error::other("the thread that hashes has ended");
        self.full.send(piece).map_err(|error| ended(error.to_string()))?;
        if self.given < PIECES {
            self.given += 1;
            return Ok(Vec::with_capacity(most));
        }
        let mut empty = self.empty.recv().map_err(|error| ended(error.to_string()))?;
        empty.clear();
        Ok(empty)
    }
}

impl Hashing {
    pub(crate) fn new() -> Self {
        Self::Here(Box::default())
    }

    /// Takes in a piece of what is written, and gives an empty one for it. All but the last are of `most` bytes.
    pub(crate) fn take(&mut self, mut piece: Vec<u8>, most: usize) -> io::Result<Vec<u8>> {
        if let Self::Here(hash) = self {
            if piece.len() < most {
                hash.update(&piece);
                piece.clear();
                return Ok(piece);
            }
            *self = Self::Beside(Beside::start(std::mem::take(hash.as_mut()))?);
        }
        match self {
            Self::Beside(beside) => beside.take(piece, most),
            Self::Here(_) => Ok(piece),
        }
    }

    /// In hexadecimal digits.
    pub(crate) fn finish(self) -> io::Result<String> {
        let hash = match self {
            Self::Here(hash) => *hash,
            Self::Beside(Beside { full, thread, .. }) => {
                drop(full);
                thread.join().map_err(|_| io::Error::other("the thread that hashes has failed"))?
            }
        };
        Ok(hash.finalize().to_hex().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_all_bytes_however_they_came() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
        for lens in [&[4096; 24][..], &[10, 90, 4096, 4096], &[100], &[4096, 1, 0, 4096], &[0]] {
            let mut hashing = Hashing::new();
            let (mut piece, mut at) = (Vec::new(), 0);
            for len in lens {
                piece.extend_from_slice(&bytes[at..at + len]);
                at += len;
                piece = hashing.take(piece, 4096).unwrap();
                assert!(piece.is_empty());
            }
            assert_eq!(hashing.finish().unwrap(), blake3::hash(&bytes[..at]).to_hex().to_string());
        }
    }
}
