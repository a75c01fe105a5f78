//! Typed error of the ciphers: the operation that failed, its place in the file, and the remedy.

use super::algorithm::Cipher;
use std::fmt;
use thiserror::Error;

/// Reason why a key, a header or a range of a file is refused.
///
/// Offsets are in bytes. Offsets of authentication errors count from the beginning of the encrypted file.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CipherError {
    /// The name is not one of [`Cipher::ALL`].
    #[error("cannot select the cipher `{name}`: the name is unknown; choose {}", Names)]
    UnknownCipher {
        /// Offending name as it was given.
        name: String,
    },
    /// The key material has an inadmissible length.
    #[error("cannot use the {cipher} key of {found} bytes: the length is wrong; give {}", Lengths(*cipher))]
    KeyLength {
        /// Cipher that the key is for.
        cipher: Cipher,
        /// Length in bytes of the refused material.
        found: usize,
    },
    /// The key material has the length of hexadecimal text but contains another character.
    #[error("cannot use the {cipher} key: character {position} is not a hexadecimal digit; give {}", Lengths(*cipher))]
    KeyText {
        /// Cipher that the key is for.
        cipher: Cipher,
        /// Position of the offending character, from 1.
        position: usize,
    },
    /// The cipher of the key does not take this parameter or operation.
    #[error("cannot {operation} with {cipher}: {reason}")]
    Unsupported {
        /// Operation as an infinitive without "to".
        operation: &'static str,
        /// Cipher of the key.
        cipher: Cipher,
        /// Reason of the refusal, and the remedy.
        reason: &'static str,
    },
    /// The chunk size is outside of the admissible range.
    #[error("cannot use chunks of {size} bytes: the size is inadmissible; choose {least} to {most} bytes")]
    ChunkSize {
        /// Refused size in bytes.
        size: u64,
        /// Least admissible size in bytes.
        least: u32,
        /// Largest admissible size in bytes.
        most: u32,
    },
    /// The file does not begin with a header that this version reads.
    #[error("cannot read the encrypted header at offset 0: {reason}")]
    Header {
        /// Reason of the refusal, and the remedy.
        reason: &'static str,
    },
    /// The header does not belong to the key.
    #[error(
        "cannot decrypt the file: the header at offset 0 does not fit the key; give the key of this file, or fetch an \
         unaltered copy"
    )]
    WrongKey,
    /// A chunk fails authentication.
    #[error(
        "cannot decrypt chunk {number} at offset {offset}: its authentication tag is wrong; the file is altered, \
         truncated, extended or reordered there: fetch an unaltered copy"
    )]
    Chunk {
        /// Number of the chunk, from 0.
        number: u64,
        /// Offset of the chunk in the encrypted file.
        offset: u64,
    },
    /// The last block does not end with PKCS#7 padding.
    #[error(
        "cannot decrypt the last block at offset {offset}: its padding is wrong; give the right key, or fetch an \
         unaltered copy"
    )]
    Padding {
        /// Offset of the last block after the header.
        offset: u64,
    },
    /// A range does not lie on the boundaries that the division names.
    #[error("cannot transform {len} bytes at offset {offset}: {reason}")]
    Range {
        /// Offset of the range after the header.
        offset: u64,
        /// Length of the range in bytes.
        len: u64,
        /// Reason of the refusal, and the remedy.
        reason: &'static str,
    },
    /// The operating system does not supply random bytes.
    #[error("cannot draw random bytes: the operating system refuses them; make /dev/urandom readable")]
    Random,
}

/// List of all cipher names in an error text.
struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, middle @ .., last] = Cipher::ALL;
        write!(f, "{first}")?;
        middle.iter().try_for_each(|cipher| write!(f, ", {cipher}"))?;
        write!(f, " or {last}")
    }
}

/// Admissible key lengths of a cipher in an error text.
struct Lengths(Cipher);

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |scale: usize| {
            let all: Vec<String> = self.0.key_lengths().iter().map(|len| (len * scale).to_string()).collect();
            all.join(" or ")
        };
        write!(f, "{} raw bytes, or {} hexadecimal digits", list(1), list(2))
    }
}
