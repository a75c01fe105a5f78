//! Checksum of a request's body: the best algorithm that both sides have.

use crate::abilities::{Abilities, Extension};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Value of the header `Upload-Checksum`; `None` if the server has no algorithm of this client.
pub(crate) fn upload_checksum(abilities: &Abilities, body: &[u8]) -> Option<String> {
    let has = |name: &str| abilities.checksums.iter().any(|known| known == name);
    let encode = |name: &str, digest: &[u8]| Some(format!("{name} {}", STANDARD.encode(digest)));
    if !abilities.has(Extension::Checksum) {
        None
    } else if has("blake3") {
        encode("blake3", blake3::hash(body).as_bytes())
    } else if has("sha256") {
        encode("sha256", digest(&SHA256, body).as_ref())
    } else if has("sha1") {
        encode("sha1", digest(&SHA1_FOR_LEGACY_USE_ONLY, body).as_ref())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_algorithm_is_chosen() {
        let of = |extension: &str, checksums: &[&str]| {
            let extensions = vec![extension.to_owned()];
            let checksums = checksums.iter().map(|name| (*name).to_owned()).collect();
            let abilities = Abilities { extensions, checksums, ..Abilities::default() };
            upload_checksum(&abilities, b"hello world")
        };
        // Example of the tus specification.
        assert_eq!(of("checksum", &["md5", "sha1"]).unwrap(), "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=");
        assert!(of("checksum", &["sha1", "sha256"]).unwrap().starts_with("sha256 "));
        assert!(of("checksum", &["sha1", "sha256", "blake3"]).unwrap().starts_with("blake3 "));
        assert_eq!(of("checksum", &["md5"]), None);
        assert_eq!(of("creation", &["blake3"]), None);
    }
}
