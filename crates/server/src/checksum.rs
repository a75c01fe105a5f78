//! Checksums of request bodies: the header `Upload-Checksum` and its algorithms.

use crate::problem::{Problem, ProblemKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Digest as _;

/// Names of the algorithms, as the header `Tus-Checksum-Algorithm` lists them.
pub(crate) const ALGORITHMS: &str = "sha1,sha256,blake3";

enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
}

/// Checksum that a client has announced, and the hash of the bytes received so far.
pub(crate) struct Checksum {
    expected: Vec<u8>,
    hasher: Hasher,
}

impl Checksum {
    /// Checksum of a header's value: algorithm, space, digest in Base64.
    pub(crate) fn parse(value: &str) -> Result<Self, Problem> {
        let refuse = |kind, reason, remedy| {
            Err(Problem::new(kind, format_args!("cannot check the body: {reason}; {remedy}")))
        };
        let Some((name, digest)) = value.split_once(' ') else {
            let reason = "the header Upload-Checksum has no space";
            return refuse(ProblemKind::BadRequest, reason, "send 'ALGORITHM BASE64'");
        };
        let (hasher, length) = match name {
            "sha1" => (Hasher::Sha1(sha1::Sha1::new()), 20),
            "sha256" => (Hasher::Sha256(sha2::Sha256::new()), 32),
            "blake3" => (Hasher::Blake3(Box::default()), 32),
            _ => {
                let reason = "the algorithm of Upload-Checksum is unknown";
                return refuse(ProblemKind::UnknownChecksum, reason, "use sha1, sha256 or blake3");
            }
        };
        match STANDARD.decode(digest.trim()) {
            Ok(expected) if expected.len() == length => Ok(Self { expected, hasher }),
            _ => {
                let reason = "the digest in Upload-Checksum is not Base64 of the algorithm's length";
                refuse(ProblemKind::BadRequest, reason, "encode the raw digest")
            }
        }
    }

    /// Adds received bytes to the hash.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    /// True when the received bytes have the announced checksum.
    pub(crate) fn matches(self) -> bool {
        match self.hasher {
            Hasher::Sha1(hasher) => hasher.finalize()[..] == self.expected,
            Hasher::Sha256(hasher) => hasher.finalize()[..] == self.expected,
            Hasher::Blake3(hasher) => hasher.finalize().as_bytes()[..] == self.expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_matches() {
        for (piece, expected) in [("hello world", true), ("hello World", false)] {
            let mut checksum = Checksum::parse("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=").unwrap();
            piece.as_bytes().chunks(3).for_each(|part| checksum.add(part));
            assert_eq!(checksum.matches(), expected);
        }
        let kind = |value| Checksum::parse(value).err().map(|problem| problem.kind());
        assert_eq!(kind("md5 Kq5sNclPz7QV2+lfQIuc6Q=="), Some(ProblemKind::UnknownChecksum));
        assert_eq!(kind("sha1"), Some(ProblemKind::BadRequest));
        assert_eq!(kind("sha1 ?"), Some(ProblemKind::BadRequest));
        assert_eq!(kind("sha256 Kq5sNclPz7QV2+lfQIuc6R7oRu0="), Some(ProblemKind::BadRequest));
    }
}
