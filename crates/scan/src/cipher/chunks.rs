//! Sealing and opening of the chunks of an AES-256-GCM file; the layout is in `chunk_header`.

use super::chunk_header::{ChunkHeader, ChunkSize, SALT_LEN};
use super::division::Piece;
use super::error::CipherError;
use super::{Cipher, Key, Result};
use ring::aead::{Aad, LessSafeKey, Nonce};

/// Length in bytes of the authentication tag at the end of each chunk.
pub const TAG_LEN: usize = 16;

/// Largest number of chunks of a file: far more than storage holds, and far below the limits of GCM.
const MOST_CHUNKS: u64 = 1 << 40;

/// Cipher of the chunks of one file.
pub struct ChunkCipher {
    header: ChunkHeader,
    key: LessSafeKey,
}

impl ChunkCipher {
    /// Cipher of a new file, with a random salt.
    pub fn new(key: &Key, chunk_size: ChunkSize) -> Result<Self> {
        check(key)?;
        let (header, key) = ChunkHeader::random(key, chunk_size)?;
        Ok(Self { header, key })
    }

    /// Cipher of a new file with a given salt. A salt that repeats under the same key reveals the content of both files.
    pub fn with_salt(key: &Key, chunk_size: ChunkSize, salt: [u8; SALT_LEN]) -> Result<Self> {
        check(key)?;
        let (header, key) = ChunkHeader::with_salt(key, chunk_size, salt)?;
        Ok(Self { header, key })
    }

    /// Cipher of an existing file, from the bytes of its header.
    pub fn read(key: &Key, header: &[u8]) -> Result<Self> {
        check(key)?;
        let (header, key) = ChunkHeader::read(key, header)?;
        Ok(Self { header, key })
    }

    /// Header at the beginning of the file.
    pub fn header(&self) -> &ChunkHeader {
        &self.header
    }

    /// Encrypts one chunk: its content, and the tag after it.
    pub fn seal_chunk(&self, number: u64, last: bool, plain: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(plain.len() + TAG_LEN);
        self.seal_into(number, last, plain, &mut out)?;
        Ok(out)
    }

    /// Decrypts one chunk after it has checked its tag.
    pub fn open_chunk(&self, number: u64, last: bool, cipher: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(cipher.len());
        self.open_into(number, last, cipher, &mut out)?;
        Ok(out)
    }

    /// Encrypts all chunks of a piece of content and appends them.
    pub(super) fn seal(&self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<()> {
        let size = self.header.chunk_size().bytes();
        out.reserve(piece.bytes.len() + (piece.bytes.len() / size + 1) * TAG_LEN);
        each_chunk(piece, size, |number, last, bytes| self.seal_into(number, last, bytes, out))
    }

    /// Decrypts all chunks of a piece of the file and appends their content.
    pub(super) fn open(&self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<()> {
        let size = self.header.chunk_size().bytes() + TAG_LEN;
        out.reserve(piece.bytes.len());
        let before = out.len();
        let result = each_chunk(piece, size, |number, last, bytes| self.open_into(number, last, bytes, out));
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn seal_into(&self, number: u64, last: bool, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.is_content_len(number, last, plain.len()) || number >= MOST_CHUNKS {
            let reason =
                "only the last chunk may be short, only chunk 0 may be empty, and a file has 2^40 chunks";
            let offset = number.saturating_mul(self.header.chunk_size().bytes() as u64);
            return Err(CipherError::Range { offset, len: plain.len() as u64, reason });
        }
        let start = out.len();
        out.extend_from_slice(plain);
        let header = Aad::from(self.header.bytes());
        let tag = self.key.seal_in_place_separate_tag(nonce(number, last), header, &mut out[start..]);
        let too_long = CipherError::Range {
            offset: 0,
            len: plain.len() as u64,
            reason: "the chunk is too long for GCM; choose smaller chunks",
        };
        out.extend_from_slice(tag.map_err(|_| too_long)?.as_ref());
        Ok(())
    }

    fn open_into(&self, number: u64, last: bool, cipher: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let refused = || CipherError::Chunk { number, offset: self.file_offset(number) };
        let content = cipher.len().checked_sub(TAG_LEN).ok_or_else(refused)?;
        if !self.is_content_len(number, last, content) || number >= MOST_CHUNKS {
            return Err(refused());
        }
        let start = out.len();
        out.extend_from_slice(cipher);
        let header = Aad::from(self.header.bytes());
        let opened = self.key.open_in_place(nonce(number, last), header, &mut out[start..]).is_ok();
        // No byte that failed authentication leaves this function.
        out.truncate(if opened { start + content } else { start });
        if opened { Ok(()) } else { Err(refused()) }
    }

    /// True for a content length that an encryptor writes: exactly one division of each content exists.
    fn is_content_len(&self, number: u64, last: bool, len: usize) -> bool {
        let size = self.header.chunk_size().bytes();
        if last { len <= size && (len > 0 || number == 0) } else { len == size }
    }

    /// Offset of a chunk in the encrypted file.
    fn file_offset(&self, number: u64) -> u64 {
        let step = (self.header.chunk_size().bytes() + TAG_LEN) as u64;
        number.saturating_mul(step).saturating_add(ChunkHeader::LEN as u64)
    }
}

/// Calls `transform` with the number, the last flag and the bytes of each chunk of a piece.
fn each_chunk(
    piece: &Piece<'_>,
    size: usize,
    mut transform: impl FnMut(u64, bool, &[u8]) -> Result<()>,
) -> Result<()> {
    piece.check(size)?;
    let first = piece.offset / size as u64;
    if piece.last && piece.bytes.is_empty() {
        return transform(first, true, &[]);
    }
    let count = piece.bytes.len().div_ceil(size);
    for (at, bytes) in piece.bytes.chunks(size).enumerate() {
        transform(first + at as u64, piece.last && at + 1 == count, bytes)?;
    }
    Ok(())
}

/// Refuses a key of another cipher.
fn check(key: &Key) -> Result<()> {
    if key.cipher() == Cipher::Aes256Gcm {
        return Ok(());
    }
    let reason = "only aes-256-gcm has chunks; use an Encryptor or a Decryptor";
    Err(CipherError::Unsupported { operation: "seal or open chunks", cipher: key.cipher(), reason })
}

/// Nonce of a chunk: unique in the file, whose key is unique to it.
fn nonce(number: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&number.to_be_bytes());
    nonce[11] = u8::from(last);
    Nonce::assume_unique_for_key(nonce)
}
