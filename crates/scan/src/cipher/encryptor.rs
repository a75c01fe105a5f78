//! Encryptor of one file: header, division, independent ranges, and the chain of serial CBC.

use super::chunk_header::{ChunkSize, SALT_LEN};
use super::chunks::{ChunkCipher, TAG_LEN};
use super::des::{Direction, TripleDes, modes, padding::pad};
use super::division::{Division, Piece};
use super::error::CipherError;
use super::{BLOCK_LEN, Cipher, Iv, Key, Result};
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;

/// Encryptor of one file, shared by the threads that work on it.
pub struct Encryptor {
    header: Vec<u8>,
    engine: Engine,
}

enum Engine {
    Chunks(ChunkCipher),
    Ecb(TripleDes),
    Ctr(TripleDes, Iv),
    Cbc(Arc<TripleDes>, Iv),
}

impl Encryptor {
    /// Encryptor of a new file: chunks of the default size, or a random initialisation vector stored in the header.
    pub fn new(key: &Key) -> Result<Self> {
        match key.cipher() {
            Cipher::Aes256Gcm => Self::with_chunk_size(key, ChunkSize::default()),
            Cipher::TripleDesEcb => {
                let des = TripleDes::new(key.bytes(), Direction::Encrypt);
                Ok(Self { header: Vec::new(), engine: Engine::Ecb(des) })
            }
            Cipher::TripleDesCbc | Cipher::TripleDesCtr => {
                let mut iv = Iv::default();
                SystemRandom::new().fill(&mut iv).map_err(|_| CipherError::Random)?;
                Ok(Self { header: iv.to_vec(), ..Self::with_iv(key, iv)? })
            }
        }
    }

    /// Encryptor of a Triple DES file with a given initialisation vector, which the file does not contain.
    pub fn with_iv(key: &Key, iv: Iv) -> Result<Self> {
        let des = || TripleDes::new(key.bytes(), Direction::Encrypt);
        let engine = match key.cipher() {
            Cipher::TripleDesCbc => Engine::Cbc(Arc::new(des()), iv),
            Cipher::TripleDesCtr => Engine::Ctr(des(), iv),
            cipher @ (Cipher::Aes256Gcm | Cipher::TripleDesEcb) => return Err(no_iv(cipher)),
        };
        Ok(Self { header: Vec::new(), engine })
    }

    /// Encryptor of a new AES-256-GCM file with chunks of another size than the default.
    pub fn with_chunk_size(key: &Key, chunk_size: ChunkSize) -> Result<Self> {
        Ok(Self::with_chunks(ChunkCipher::new(key, chunk_size)?))
    }

    /// Encryptor of a reproducible AES-256-GCM file. A salt that repeats under the same key reveals both files.
    pub fn with_salt(key: &Key, chunk_size: ChunkSize, salt: [u8; SALT_LEN]) -> Result<Self> {
        Ok(Self::with_chunks(ChunkCipher::with_salt(key, chunk_size, salt)?))
    }

    fn with_chunks(chunks: ChunkCipher) -> Self {
        Self { header: chunks.header().bytes().to_vec(), engine: Engine::Chunks(chunks) }
    }

    /// Bytes that precede the transformed ranges in the file: empty for ECB and for a given initialisation vector.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Division of the content into ranges.
    pub fn division(&self) -> Division {
        match &self.engine {
            Engine::Chunks(chunks) => {
                Division::Independent { chunk: chunks.header().chunk_size().bytes(), before: 0 }
            }
            Engine::Ecb(_) | Engine::Ctr(..) => Division::Independent { chunk: BLOCK_LEN, before: 0 },
            Engine::Cbc(..) => Division::Serial,
        }
    }

    /// Length in bytes of the encrypted file, header included, for content of this length.
    pub fn file_len(&self, content: u64) -> u64 {
        let padded = (content / BLOCK_LEN as u64 + 1).saturating_mul(BLOCK_LEN as u64);
        let body = match &self.engine {
            Engine::Chunks(chunks) => {
                let size = chunks.header().chunk_size().bytes() as u64;
                content.saturating_add(content.div_ceil(size).max(1) * TAG_LEN as u64)
            }
            Engine::Ctr(..) => content,
            Engine::Ecb(_) | Engine::Cbc(..) => padded,
        };
        body.saturating_add(self.header.len() as u64)
    }

    /// Offset in the encrypted file, header included, of the output of the range at a content offset of the division.
    pub fn file_offset(&self, offset: u64) -> u64 {
        let body = match &self.engine {
            Engine::Chunks(chunks) => {
                offset.saturating_add(offset / chunks.header().chunk_size().bytes() as u64 * TAG_LEN as u64)
            }
            Engine::Ecb(_) | Engine::Ctr(..) | Engine::Cbc(..) => offset,
        };
        body.saturating_add(self.header.len() as u64)
    }

    /// Encrypts one independent range of the content.
    pub fn transform(&self, piece: &Piece<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.transform_into(piece, &mut out)?;
        Ok(out)
    }

    /// Encrypts one independent range of the content and appends it to a buffer that the caller reuses.
    pub fn transform_into(&self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<()> {
        if let Engine::Chunks(chunks) = &self.engine {
            return chunks.seal(piece, out);
        }
        piece.check(BLOCK_LEN)?;
        let mut padded = Vec::new();
        let start = out.len();
        match &self.engine {
            Engine::Ecb(des) => {
                let whole = piece.bytes.len() / BLOCK_LEN * BLOCK_LEN;
                out.reserve(whole + BLOCK_LEN);
                out.extend_from_slice(&piece.bytes[..whole]);
                if piece.last {
                    padded.extend_from_slice(&piece.bytes[whole..]);
                    pad(&mut padded);
                    out.extend_from_slice(&padded);
                }
                modes::ecb(des, &mut out[start..]);
            }
            Engine::Ctr(des, iv) => {
                out.extend_from_slice(piece.bytes);
                modes::ctr(des, *iv, piece.offset / BLOCK_LEN as u64, &mut out[start..]);
            }
            Engine::Cbc(..) | Engine::Chunks(_) => {
                let reason = "each block depends on the one before it; use Encryptor::serial or CbcLanes";
                return Err(CipherError::Unsupported {
                    operation: "encrypt a range",
                    cipher: Cipher::TripleDesCbc,
                    reason,
                });
            }
        }
        Ok(())
    }

    /// Chain of a CBC file from its beginning; none for the ciphers whose ranges are independent.
    pub fn serial(&self) -> Option<SerialEncryptor> {
        match &self.engine {
            Engine::Cbc(des, iv) => {
                Some(SerialEncryptor { des: Arc::clone(des), chain: *iv, partial: Vec::new() })
            }
            Engine::Chunks(_) | Engine::Ecb(_) | Engine::Ctr(..) => None,
        }
    }
}

/// Error for an initialisation vector where the cipher takes none.
pub(super) fn no_iv(cipher: Cipher) -> CipherError {
    let reason = "the cipher takes no initialisation vector; leave it out";
    CipherError::Unsupported { operation: "use an initialisation vector", cipher, reason }
}

/// Encryptor of the content of one CBC file in order, in pieces of any length.
pub struct SerialEncryptor {
    des: Arc<TripleDes>,
    chain: Iv,
    /// Content of an unfinished block, at most seven bytes between calls.
    partial: Vec<u8>,
}

impl SerialEncryptor {
    /// Encrypts the next content and appends all finished blocks.
    pub fn update(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.partial);
        out.extend_from_slice(content);
        let whole = start + (out.len() - start) / BLOCK_LEN * BLOCK_LEN;
        self.partial.clear();
        self.partial.extend_from_slice(&out[whole..]);
        out.truncate(whole);
        self.chain = modes::cbc_encrypt(&self.des, self.chain, &mut out[start..]);
    }

    /// Appends the last, padded block.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        pad(&mut self.partial);
        modes::cbc_encrypt(&self.des, self.chain, &mut self.partial);
        out.extend_from_slice(&self.partial);
    }
}
