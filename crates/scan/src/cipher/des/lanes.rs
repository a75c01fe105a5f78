//! CBC encryption of many independent streams at once: each stream fills one position of a bit-sliced tile.

use super::modes::{cbc_encrypt, load};
use super::schedule::Direction;
use super::slices::{TILE, Tile};
use super::triple::{FEW, TripleDes};
use crate::cipher::{BLOCK_LEN, Cipher, CipherError, Iv, Key, Piece, Result};

/// Blocks of each stream that one pass over the streams gathers: a cache line, so that equal distances between the streams
/// do not evict lines before they are used up.
const RUN: usize = 8;

/// CBC encryptor of many streams under one key, each with its own chain.
pub struct CbcLanes {
    des: TripleDes,
    chains: Vec<u64>,
}

impl CbcLanes {
    /// Number of streams of nearly equal length that use the machine fully.
    pub const IDEAL: usize = TILE;

    /// Starts one stream for each initialisation vector, with a key of `3des-cbc`.
    pub fn new(key: &Key, ivs: &[Iv]) -> Result<Self> {
        if key.cipher() != Cipher::TripleDesCbc {
            let reason = "only 3des-cbc is serial; use Encryptor::transform";
            return Err(CipherError::Unsupported {
                operation: "encrypt lanes",
                cipher: key.cipher(),
                reason,
            });
        }
        let des = TripleDes::new(key.bytes(), Direction::Encrypt);
        Ok(Self { des, chains: ivs.iter().map(|iv| u64::from_le_bytes(*iv)).collect() })
    }

    /// Encrypts the next whole blocks of every stream in place; an empty slice leaves its stream as it is.
    ///
    /// The caller appends the padding of a stream's end with [`pad`](crate::cipher::pad). Slices may differ in length: a
    /// stream that ends makes room for the next one.
    pub fn encrypt(&mut self, lanes: &mut [&mut [u8]]) -> Result<()> {
        if lanes.len() != self.chains.len() {
            let len = lanes.len() as u64;
            return Err(CipherError::Range { offset: 0, len, reason: "give one slice for each stream" });
        }
        if let Some(lane) = lanes.iter().find(|lane| !lane.len().is_multiple_of(BLOCK_LEN)) {
            return Err(Piece::new(0, lane, false).error("a lane takes whole blocks; pad its end"));
        }
        // Long streams start first, so that few of them remain alone at the end.
        let mut waiting: Vec<usize> = (0..lanes.len()).filter(|&lane| !lanes[lane].is_empty()).collect();
        waiting.sort_by_key(|&lane| lanes[lane].len());
        let mut active: Vec<Position> = Vec::with_capacity(TILE);
        let mut tiles = vec![Tile([0; TILE]); RUN];
        loop {
            active.retain(|position| position.at < lanes[position.lane].len());
            while active.len() < TILE
                && let Some(lane) = waiting.pop()
            {
                active.push(Position { lane, at: 0 });
            }
            if active.len() < FEW {
                break;
            }
            let rest = active.iter().map(|position| lanes[position.lane].len() - position.at).min();
            let mut blocks = rest.unwrap_or(0) / BLOCK_LEN;
            while blocks > 0 {
                let run = blocks.min(RUN);
                self.run(lanes, &mut active, &mut tiles[..run]);
                blocks -= run;
            }
        }
        for Position { lane, at } in active {
            let chain = cbc_encrypt(&self.des, self.chains[lane].to_le_bytes(), &mut lanes[lane][at..]);
            self.chains[lane] = u64::from_le_bytes(chain);
        }
        Ok(())
    }

    /// Encrypts one block of every active stream for each tile.
    fn run(&mut self, lanes: &mut [&mut [u8]], active: &mut [Position], tiles: &mut [Tile]) {
        let len = tiles.len() * BLOCK_LEN;
        let mut chain = Tile([0; TILE]);
        for (slot, Position { lane, at }) in active.iter().enumerate() {
            chain.0[slot] = self.chains[*lane];
            for (tile, block) in tiles.iter_mut().zip(lanes[*lane][*at..*at + len].chunks_exact(BLOCK_LEN)) {
                tile.0[slot] = load(block);
            }
        }
        for tile in &mut *tiles {
            for (block, chain) in tile.0.iter_mut().zip(&chain.0) {
                *block ^= chain;
            }
            self.des.crypt_tile(tile, active.len());
            chain.clone_from(tile);
        }
        for (slot, Position { lane, at }) in active.iter_mut().enumerate() {
            self.chains[*lane] = chain.0[slot];
            let blocks = lanes[*lane][*at..*at + len].chunks_exact_mut(BLOCK_LEN);
            for (tile, block) in tiles.iter().zip(blocks) {
                block.copy_from_slice(&tile.0[slot].to_le_bytes());
            }
            *at += len;
        }
    }
}

/// Progress in the slice of one stream.
struct Position {
    lane: usize,
    at: usize,
}
