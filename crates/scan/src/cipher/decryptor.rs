//! Decryptor of one file: its header, division, and independent ranges.

use super::chunk_header::ChunkHeader;
use super::chunks::{ChunkCipher, TAG_LEN};
use super::des::{Direction, TripleDes, modes, padding::unpadded_len};
use super::division::{Division, Piece};
use super::encryptor::no_iv;
use super::error::CipherError;
use super::{BLOCK_LEN, Cipher, Iv, Key, Result};
use std::ops::RangeInclusive;

/// Decryptor of one file, shared by the threads that work on it.
pub struct Decryptor {
    header_len: usize,
    engine: Engine,
}

enum Engine {
    Chunks(ChunkCipher),
    Ecb(TripleDes),
    Ctr(TripleDes, Iv),
    Cbc(TripleDes, Iv),
}

impl Decryptor {
    /// Length of the header that [`Self::new`] reads: zero for ECB.
    pub const fn header_len(cipher: Cipher) -> usize {
        match cipher {
            Cipher::Aes256Gcm => ChunkHeader::LEN,
            Cipher::TripleDesCbc | Cipher::TripleDesCtr => BLOCK_LEN,
            Cipher::TripleDesEcb => 0,
        }
    }

    /// Decryptor of a file that begins with this header, of [`Self::header_len`] bytes.
    pub fn new(key: &Key, header: &[u8]) -> Result<Self> {
        let short = |_| CipherError::Header {
            reason: "it is not as long as its cipher demands; fetch the whole file",
        };
        let decryptor = match key.cipher() {
            Cipher::Aes256Gcm => {
                Self { header_len: 0, engine: Engine::Chunks(ChunkCipher::read(key, header)?) }
            }
            Cipher::TripleDesEcb => {
                let _: [u8; 0] = header.try_into().map_err(short)?;
                let des = TripleDes::new(key.bytes(), Direction::Decrypt);
                Self { header_len: 0, engine: Engine::Ecb(des) }
            }
            Cipher::TripleDesCbc | Cipher::TripleDesCtr => {
                Self::with_iv(key, header.try_into().map_err(short)?)?
            }
        };
        Ok(Self { header_len: header.len(), ..decryptor })
    }

    /// Decryptor of a Triple DES file that does not contain its initialisation vector.
    pub fn with_iv(key: &Key, iv: Iv) -> Result<Self> {
        let engine = match key.cipher() {
            Cipher::TripleDesCbc => Engine::Cbc(TripleDes::new(key.bytes(), Direction::Decrypt), iv),
            Cipher::TripleDesCtr => Engine::Ctr(TripleDes::new(key.bytes(), Direction::Encrypt), iv),
            cipher @ (Cipher::Aes256Gcm | Cipher::TripleDesEcb) => return Err(no_iv(cipher)),
        };
        Ok(Self { header_len: 0, engine })
    }

    /// Division of the file after its header into ranges.
    pub fn division(&self) -> Division {
        let (chunk, before) = match &self.engine {
            Engine::Chunks(chunks) => (chunks.header().chunk_size().bytes() + TAG_LEN, 0),
            Engine::Ecb(_) | Engine::Ctr(..) => (BLOCK_LEN, 0),
            Engine::Cbc(..) => (BLOCK_LEN, BLOCK_LEN),
        };
        Division::Independent { chunk, before }
    }

    /// Length in bytes of the content of a file of this length, header included.
    ///
    /// It is exact for AES-256-GCM and CTR. Padding leaves a choice of eight lengths for ECB and CBC.
    pub fn content_len(&self, file: u64) -> Result<RangeInclusive<u64>> {
        let wrong = |reason| CipherError::Range { offset: 0, len: file, reason };
        let body = file.checked_sub(self.header_len as u64);
        let body = body.ok_or_else(|| wrong("the file is shorter than its header; fetch the whole file"))?;
        let block = BLOCK_LEN as u64;
        match &self.engine {
            Engine::Chunks(chunks) => {
                let tag = TAG_LEN as u64;
                let step = chunks.header().chunk_size().bytes() as u64 + tag;
                let content = body.checked_sub(body.div_ceil(step).max(1) * tag);
                let is_exact = body == tag || body % step == 0 || body % step > tag;
                let content = content.filter(|_| is_exact && body > 0);
                content
                    .map(|len| len..=len)
                    .ok_or_else(|| wrong("the last chunk is cut off; fetch the whole file"))
            }
            Engine::Ctr(..) => Ok(body..=body),
            Engine::Ecb(_) | Engine::Cbc(..) if body > 0 && body.is_multiple_of(block) => {
                Ok(body - block..=body - 1)
            }
            Engine::Ecb(_) | Engine::Cbc(..) => {
                Err(wrong("padded files have whole blocks; fetch the whole file"))
            }
        }
    }

    /// Offset in the content of the output of the range at an offset of the division.
    pub fn content_offset(&self, offset: u64) -> u64 {
        match &self.engine {
            Engine::Chunks(chunks) => {
                let step = (chunks.header().chunk_size().bytes() + TAG_LEN) as u64;
                offset - offset / step * TAG_LEN as u64
            }
            Engine::Ecb(_) | Engine::Ctr(..) | Engine::Cbc(..) => offset,
        }
    }

    /// Decrypts one independent range of the file after its header.
    pub fn transform(&self, piece: &Piece<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.transform_into(piece, &mut out)?;
        Ok(out)
    }

    /// Decrypts one independent range and appends the content to a buffer that the caller reuses.
    ///
    /// After an error the buffer is as it was.
    pub fn transform_into(&self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<()> {
        if let Engine::Chunks(chunks) = &self.engine {
            return chunks.open(piece, out);
        }
        piece.check(BLOCK_LEN)?;
        let start = out.len();
        match &self.engine {
            Engine::Ctr(des, iv) => {
                out.extend_from_slice(piece.bytes);
                modes::ctr(des, *iv, piece.offset / BLOCK_LEN as u64, &mut out[start..]);
                return Ok(());
            }
            Engine::Ecb(des) => {
                check_padded(piece)?;
                out.extend_from_slice(piece.bytes);
                modes::ecb(des, &mut out[start..]);
            }
            Engine::Cbc(des, iv) => {
                check_padded(piece)?;
                let before = match (piece.offset, piece.before.try_into()) {
                    (0, _) => *iv,
                    (_, Ok(before)) => before,
                    _ => return Err(piece.error("CBC needs the eight bytes before the range; give them")),
                };
                out.extend_from_slice(piece.bytes);
                modes::cbc_decrypt(des, before, &mut out[start..]);
            }
            Engine::Chunks(_) => {}
        }
        if piece.last {
            let Some(content) = unpadded_len(&out[start..]) else {
                out.truncate(start);
                let offset = piece.offset + (piece.bytes.len() - BLOCK_LEN) as u64;
                return Err(CipherError::Padding { offset });
            };
            out.truncate(start + content);
        }
        Ok(())
    }
}

/// Refuses a padded range that is not of whole blocks, or ends a file without its padding block.
fn check_padded(piece: &Piece<'_>) -> Result<()> {
    if !piece.bytes.len().is_multiple_of(BLOCK_LEN) {
        return Err(piece.error("the last block is cut off; fetch the whole file"));
    }
    if piece.last && piece.bytes.is_empty() {
        return Err(piece.error("the padding block is missing; fetch the whole file"));
    }
    Ok(())
}
