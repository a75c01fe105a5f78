//! Header of AES-256-GCM files: its byte layout, and the keys that it derives.
//!
//! All integers are little-endian. The header has 44 bytes:
//!
//! | offset | bytes | field | contents |
//! |---|---|---|---|
//! | 0 | 5 | magic | `HFENC` |
//! | 5 | 1 | version | 1 |
//! | 6 | 1 | cipher | 1: AES-256-GCM |
//! | 7 | 1 | reserved | 0 |
//! | 8 | 4 | chunk size | bytes of content in each chunk but the last, 16 to 67,108,864 |
//! | 12 | 16 | salt | random, new for every file |
//! | 28 | 16 | commitment | HKDF output of the key and bytes 0 to 27: it tells a wrong key, and binds the file to one key |
//!
//! Chunks follow without gaps:
//!
//! ```text
//! chunk 0                     chunk 1                           last chunk
//! +----------------+--------+----------------+--------+-- ... --+----------------+--------+
//! | chunk size     | tag 16 | chunk size     | tag 16 |         | 0..=chunk size | tag 16 |
//! +----------------+--------+----------------+--------+-- ... --+----------------+--------+
//! ```
//!
//! The last chunk is empty only in the file of empty content. The construction is STREAM:
//!
//! | part | value |
//! |---|---|
//! | file key | HKDF-SHA256, salt: the field, input: the user's key, information: `hfenc chunk key` and bytes 0 to 27 |
//! | commitment | the same with the information `hfenc commitment` and bytes 0 to 27 |
//! | nonce, 12 bytes | 3 zero bytes, chunk number as 8 bytes big-endian, 1 for the last chunk and 0 for the others |
//! | associated data | the whole header |
//!
//! A chunk that is moved, dropped, repeated or cut has another number or another last flag, and its tag is wrong.

use super::error::CipherError;
use super::{Key, Result};
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// Length in bytes of the salt of a file.
pub const SALT_LEN: usize = 16;

const MAGIC: &[u8; 5] = b"HFENC";
const VERSION: u8 = 1;
const AES_256_GCM_ID: u8 = 1;
const CHUNK_SIZE_AT: usize = 8;
const SALT_AT: usize = 12;
const COMMITMENT_AT: usize = 28;
const COMMITMENT_LEN: usize = 16;
const LEN: usize = COMMITMENT_AT + COMMITMENT_LEN;

/// Number of content bytes in each chunk but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize(u32);

impl ChunkSize {
    /// Least size: a chunk is not smaller than its tag.
    pub const LEAST: u32 = 16;
    /// Largest size: a reader holds a whole chunk in memory before it trusts a byte.
    pub const MOST: u32 = 64 << 20;

    /// Takes a size within the limits.
    pub fn new(size: u64) -> Result<Self> {
        let error = CipherError::ChunkSize { size, least: Self::LEAST, most: Self::MOST };
        let size = u32::try_from(size).ok().filter(|size| (Self::LEAST..=Self::MOST).contains(size));
        size.map(Self).ok_or(error)
    }

    /// Size as a number of bytes.
    pub fn bytes(self) -> usize {
        self.0 as usize
    }
}

impl Default for ChunkSize {
    /// One MiB: the tags add 16 millionths, and a range read fetches little too much.
    fn default() -> Self {
        Self(1 << 20)
    }
}

/// Header of an AES-256-GCM file, which its key has committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    bytes: [u8; LEN],
    chunk_size: ChunkSize,
}

impl ChunkHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = LEN;

    /// Header with a random salt, and the chunk key of the file.
    pub(super) fn random(key: &Key, chunk_size: ChunkSize) -> Result<(Self, LessSafeKey)> {
        let mut salt = [0; SALT_LEN];
        SystemRandom::new().fill(&mut salt).map_err(|_| CipherError::Random)?;
        Self::with_salt(key, chunk_size, salt)
    }

    /// Header with a given salt, and the chunk key of the file.
    pub(super) fn with_salt(
        key: &Key,
        chunk_size: ChunkSize,
        salt: [u8; SALT_LEN],
    ) -> Result<(Self, LessSafeKey)> {
        let mut bytes = [0; LEN];
        bytes[..5].copy_from_slice(MAGIC);
        bytes[5] = VERSION;
        bytes[6] = AES_256_GCM_ID;
        bytes[CHUNK_SIZE_AT..SALT_AT].copy_from_slice(&chunk_size.0.to_le_bytes());
        bytes[SALT_AT..COMMITMENT_AT].copy_from_slice(&salt);
        let (commitment, chunk_key) = derive(key, &bytes)?;
        bytes[COMMITMENT_AT..].copy_from_slice(&commitment);
        Ok((Self { bytes, chunk_size }, chunk_key))
    }

    /// Reads the header of a file and checks that the key has committed to it.
    pub(super) fn read(key: &Key, header: &[u8]) -> Result<(Self, LessSafeKey)> {
        let wrong = |reason| CipherError::Header { reason };
        let bytes: [u8; LEN] =
            header.try_into().map_err(|_| wrong("it is not 44 bytes long; fetch the whole file"))?;
        if !bytes.starts_with(MAGIC) {
            return Err(wrong(
                "it does not begin with HFENC; give the cipher that the file was encrypted with",
            ));
        }
        if bytes[5] != VERSION {
            return Err(wrong("its version is not 1; use a newer program"));
        }
        if bytes[6] != AES_256_GCM_ID || bytes[7] != 0 {
            return Err(wrong("its cipher is unknown; use a newer program, or fetch an unaltered copy"));
        }
        let size =
            bytes[CHUNK_SIZE_AT..SALT_AT].iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte));
        let chunk_size = ChunkSize::new(size)
            .map_err(|_| wrong("its chunk size is inadmissible; fetch an unaltered copy"))?;
        let (commitment, chunk_key) = derive(key, &bytes)?;
        // The commitment is public, so that the comparison needs no constant time.
        if bytes[COMMITMENT_AT..] != commitment {
            return Err(CipherError::WrongKey);
        }
        Ok((Self { bytes, chunk_size }, chunk_key))
    }

    /// Bytes at the beginning of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Content bytes of each chunk but the last.
    pub fn chunk_size(&self) -> ChunkSize {
        self.chunk_size
    }
}

/// Length of the commitment as a type of the derivation.
struct Commitment;

impl KeyType for Commitment {
    fn len(&self) -> usize {
        COMMITMENT_LEN
    }
}

/// Derives the commitment and the chunk key from the user's key and the header before the commitment.
fn derive(key: &Key, header: &[u8; LEN]) -> Result<([u8; COMMITMENT_LEN], LessSafeKey)> {
    let unusable = |_| CipherError::KeyLength { cipher: key.cipher(), found: key.bytes().len() };
    let fields = &header[..COMMITMENT_AT];
    let secret = Salt::new(HKDF_SHA256, &header[SALT_AT..COMMITMENT_AT]).extract(key.bytes());
    let mut commitment = [0; COMMITMENT_LEN];
    let information = [b"hfenc commitment".as_slice(), fields];
    let output = secret.expand(&information, Commitment).map_err(unusable)?;
    output.fill(&mut commitment).map_err(unusable)?;
    let information = [b"hfenc chunk key".as_slice(), fields];
    let chunk_key = secret.expand(&information, &AES_256_GCM).map_err(unusable)?;
    Ok((commitment, LessSafeKey::new(UnboundKey::from(chunk_key))))
}
