//! The BLAKE3 of what is exported: a little of it here, much of it on a thread of its own, so that reading goes on.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Pieces that may wait for the thread: with what it works on, all that it adds to the memory.
const PIECES: usize = 4;

/// A hash under way. Pieces of a power of two are hashed fastest: the hash is a tree, and slow where it must begin in the
/// middle of a branch.
pub(super) enum Hashing {
    /// Nothing was worth a thread yet.
    Here(Box<blake3::Hasher>),
    Beside(Beside),
}

/// The thread, and the buffers on their way to it and back.
pub(super) struct Beside {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    made: usize,
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
        Ok(Self { full, empty, made: 0, thread })
    }

    fn update(&mut self, bytes: &[u8]) -> io::Result<()> {
        let ended = |_| io::Error::other("the thread that hashes has ended");
        let mut piece = if self.made < PIECES {
            self.made += 1;
            Vec::with_capacity(bytes.len())
        } else {
            self.empty.recv().map_err(|error| ended(error.to_string()))?
        };
        piece.clear();
        piece.extend_from_slice(bytes);
        self.full.send(piece).map_err(|error| ended(error.to_string()))
    }
}

impl Hashing {
    pub(super) fn new() -> Self {
        Self::Here(Box::default())
    }

    /// Takes in what is written, in pieces of `piece` bytes.
    pub(super) fn update(&mut self, bytes: &[u8], piece: usize) -> io::Result<()> {
        if let Self::Here(hash) = self {
            if bytes.len() < piece {
                hash.update(bytes);
                return Ok(());
            }
            *self = Self::Beside(Beside::start(std::mem::take(hash.as_mut()))?);
        }
        if let Self::Beside(beside) = self {
            for piece in bytes.chunks(piece) {
                beside.update(piece)?;
            }
        }
        Ok(())
    }

    /// In hexadecimal digits.
    pub(super) fn finish(self) -> io::Result<String> {
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
        for lens in [&[100_000][..], &[10, 99_990], &[4096; 24], &[50_000, 1, 49_999], &[0]] {
            let mut hashing = Hashing::new();
            let mut at = 0;
            for len in lens {
                hashing.update(&bytes[at..at + len], 4096).unwrap();
                at += len;
            }
            assert_eq!(hashing.finish().unwrap(), blake3::hash(&bytes[..at]).to_hex().to_string());
        }
    }
}
