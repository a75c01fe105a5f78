//! Module `hash`: digests of whole items, all algorithms in one pass.

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use sha2::Digest as _;
use std::fmt;
use std::str::FromStr;

/// Hash function of digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// BLAKE3 with 256 bits.
    Blake3,
    /// SHA-256 by FIPS 180-4.
    Sha256,
    /// SHA-1 (FIPS 180-4), for lists that exist.
    Sha1,
    /// MD5 (RFC 1321), for lists that exist.
    Md5,
}

impl Algorithm {
    /// All hash functions, newest first.
    pub const ALL: [Self; 4] = [Self::Blake3, Self::Sha256, Self::Sha1, Self::Md5];

    /// Name of the hash function.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        found.ok_or_else(|| format!("`{text}` is no hash function: take blake3, sha256, sha1 or md5"))
    }
}

/// Module that hashes items.
#[derive(Clone, Debug)]
pub struct Hash {
    algorithms: Vec<Algorithm>,
}

/// Digest of one item by one hash function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashValue {
    /// Hash function of the digest.
    pub algorithm: Algorithm,
    /// Digest in hexadecimal digits.
    pub hex: String,
}

/// Digests of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Item that was hashed.
    pub item: ItemId,
    /// Bytes of the item.
    pub bytes: u64,
    /// Digests in the order in which they were asked for.
    pub values: Vec<HashValue>,
}

/// State of one hash function.
#[derive(Debug)]
enum Hasher {
    Blake3(Box<blake3::Hasher>),
    Sha256(sha2::Sha256),
    Sha1(sha1::Sha1),
    Md5(md5::Md5),
}

impl Hasher {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Blake3 => Self::Blake3(Box::default()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Algorithm::Sha1 => Self::Sha1(sha1::Sha1::new()),
            Algorithm::Md5 => Self::Md5(md5::Md5::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Md5(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Sha1(hasher) => hex(&hasher.finalize()),
            Self::Md5(hasher) => hex(&hasher.finalize()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// State of an item.
#[derive(Debug)]
pub struct State {
    bytes: u64,
    hashers: Vec<Hasher>,
}

impl Hash {
    /// Module with these hash functions.
    pub fn new(algorithms: &[Algorithm]) -> Self {
        Self { algorithms: algorithms.to_vec() }
    }
}

impl Module for Hash {
    type Worker = ();
    type Partial = ();
    type State = State;
    type Output = Hashes;

    fn division(&self) -> Division {
        Division::Serial
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), _: &Block<'_>) -> Result<(), ModuleError> {
        Ok(())
    }

    fn start(&self, _: &Item<'_>) -> Result<State, ModuleError> {
        let hashers = self.algorithms.iter().map(|algorithm| Hasher::new(*algorithm)).collect();
        Ok(State { bytes: 0, hashers })
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        (): (),
        _: &mut Outputs<'_, Hashes>,
    ) -> Result<Flow, ModuleError> {
        let bytes = block.own_bytes();
        state.bytes += bytes.len() as u64;
        for hasher in &mut state.hashers {
            hasher.update(bytes);
        }
        Ok(Flow::Continue)
    }

    fn end(&self, item: &Item<'_>, state: State, out: &mut Outputs<'_, Hashes>) -> Result<(), ModuleError> {
        let values = self.algorithms.iter().zip(state.hashers);
        let values =
            values.map(|(algorithm, hasher)| HashValue { algorithm: *algorithm, hex: hasher.finish() });
        out.push(Hashes { item: item.id(), bytes: state.bytes, values: values.collect() });
        Ok(())
    }
}
