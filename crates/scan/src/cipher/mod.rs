//! Ciphers of files: AES-256-GCM in authenticated chunks, and Triple DES in the modes ECB, CBC and CTR.
//!
//! Here belong keys, file headers, the division of a file into independent ranges, and the transformation of bytes. Not
//! here: file I/O, threads and the command line.
//!
//! | name | file | authenticated | encryption | decryption |
//! |---|---|---|---|---|
//! | `aes-256-gcm` | header and chunks, see [`ChunkHeader`] | yes | chunks in parallel | chunks in parallel |
//! | `3des-cbc` | `openssl enc -des-ede3-cbc -K KEY -iv IV` | no | serial in a file | blocks in parallel |
//! | `3des-ecb` | `openssl enc -des-ede3-ecb -K KEY` | no | blocks in parallel | blocks in parallel |
//! | `3des-ctr` | key stream of a 64-bit big-endian counter | no | blocks in parallel | blocks in parallel |
//!
//! Triple DES is for readers that know nothing newer. Its blocks of 64 bits repeat after about 2^32 blocks (32 GiB) under
//! one key, and no alteration is noticed; a wrong key shows only as wrong padding, and in CTR not at all.
//!
//! A file of `3des-cbc` or `3des-ctr` begins with its eight bytes of IV where the IV was drawn at random. A file with a
//! given IV does not contain it. An [`Encryptor`] and a [`Decryptor`] are shared between threads; each thread transforms
//! its own ranges with [`Encryptor::transform`]. [`EncryptStream`] and [`DecryptStream`] take pieces of any length in order.
//! [`CbcLanes`] encrypts many CBC files at once at the speed of the parallel modes.

mod algorithm;
mod chunk_header;
mod chunks;
mod decryptor;
mod des;
mod division;
mod encryptor;
mod error;
mod key;
mod stream;

pub use algorithm::Cipher;
pub use chunk_header::{ChunkHeader, ChunkSize, SALT_LEN};
pub use chunks::{ChunkCipher, TAG_LEN};
pub use decryptor::Decryptor;
pub use des::lanes::CbcLanes;
pub use des::padding::pad;
pub use division::{Division, Piece};
pub use encryptor::{Encryptor, SerialEncryptor};
pub use error::CipherError;
pub use key::Key;
pub use stream::{DecryptStream, EncryptStream};

/// Length in bytes of a Triple DES block and of its initialisation vector.
pub const BLOCK_LEN: usize = 8;

/// Initialisation vector of Triple DES in CBC and CTR.
pub type Iv = [u8; BLOCK_LEN];

/// Result of a cipher operation with its typed error.
pub type Result<T, E = CipherError> = std::result::Result<T, E>;
