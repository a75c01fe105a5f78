//! Producer of shared memory written by hand: by the words of docs/protocol.md, or against them.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

pub const HEAD: u64 = 128;
pub const DROPPED: u64 = 136;
pub const DROPPED_BYTES: u64 = 144;
pub const DROPPED_AT: u64 = 152;
pub const ROOM_BELL: u64 = 160;
pub const TAIL: u64 = 256;
pub const BELL: u64 = 264;
pub const CLOSED: u64 = 272;
pub const COUNTED: u64 = 280;
pub const RING: u64 = 4096;

pub struct Hand {
    pub socket: UnixStream,
    pub area: File,
    size: u64,
    head: u64,
}

impl Hand {
    /// Comes to a source and waits for its answer: an area, or a word why there is none.
    pub fn come(path: &Path) -> Result<Self, u64> {
        let socket = UnixStream::connect(path).unwrap();
        let mut words = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut words)];
        let heard = recvmsg(&socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
        assert_eq!(heard.bytes, 16);
        let area = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        assert_eq!(words[..8], 0x0174_6565_7267_4648_u64.to_ne_bytes());
        let Some(area) = area else { return Err(u64::from_ne_bytes(words[8..].try_into().unwrap())) };
        let mut hand = Self { socket, area: area.into(), size: 0, head: 0 };
        assert_eq!(hand.word(0), 0x0100_6165_7261_4648);
        hand.size = hand.word(8);
        assert_eq!(hand.area.metadata().unwrap().len(), RING + hand.size);
        Ok(hand)
    }

    pub fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.area.read_exact_at(&mut word, at).unwrap();
        fence(Ordering::SeqCst);
        u64::from_ne_bytes(word)
    }

    pub fn say(&self, at: u64, word: u64) {
        fence(Ordering::SeqCst);
        self.area.write_all_at(&word.to_ne_bytes(), at).unwrap();
        fence(Ordering::SeqCst);
    }

    /// Puts bytes, in parts where they are larger than the ring.
    pub fn put(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.size as usize) {
            self.await_tail((self.head + piece.len() as u64).saturating_sub(self.size));
            let start = self.head % self.size;
            let (first, rest) = piece.split_at(piece.len().min((self.size - start) as usize));
            self.area.write_all_at(first, RING + start).unwrap();
            self.area.write_all_at(rest, RING).unwrap();
            let before = self.head;
            self.head += piece.len() as u64;
            self.say(HEAD, self.head);
            if (before + 1..=self.head).contains(&self.word(BELL)) {
                self.ring();
            }
        }
    }

    /// Waits until the source has taken so much.
    fn await_tail(&mut self, wanted: u64) {
        self.say(ROOM_BELL, wanted);
        while self.word(TAIL) < wanted {
            assert_eq!(self.socket.read(&mut [0]).unwrap(), 1, "the source has gone");
        }
    }

    /// Waits until all that was put is taken.
    pub fn flush(&mut self) {
        self.await_tail(self.head);
    }

    /// Gives so many elements up.
    pub fn give_up(&self, elements: u64, bytes: u64) {
        self.say(DROPPED_AT, self.head);
        self.say(DROPPED_BYTES, self.word(DROPPED_BYTES) + bytes);
        self.say(DROPPED, self.word(DROPPED) + elements);
    }

    /// Waits until all that was given up is counted.
    pub fn await_counted(&self) {
        self.ring();
        while self.word(COUNTED) < self.word(DROPPED) {
            std::thread::yield_now();
        }
    }

    pub fn ring(&self) {
        // Who does not listen any more need not hear it.
        let _ = (&self.socket).write_all(b"!");
    }

    /// Waits until the source closes.
    pub fn await_end(&mut self) {
        while self.socket.read(&mut [0; 64]).is_ok_and(|heard| heard > 0) {}
    }
}
