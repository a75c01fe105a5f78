//! Alterations of AES-256-GCM files: every flipped bit, truncation, extension and exchange of chunks is refused.

use holdfast_scan::cipher::{
    ChunkCipher, ChunkHeader, ChunkSize, Cipher, DecryptStream, Decryptor, EncryptStream, Encryptor, Key,
    Piece, Result, TAG_LEN,
};
use proptest::collection::vec;
use proptest::prelude::*;

const CHUNK: usize = 32;
const SALT: [u8; 16] = [0x5a; 16];

fn key() -> Key {
    let bytes: Vec<u8> = (0..32).collect();
    Key::new(Cipher::Aes256Gcm, &bytes).unwrap()
}

fn encrypt(content: &[u8], chunk: usize, salt: [u8; 16]) -> Vec<u8> {
    let encryptor = Encryptor::with_salt(&key(), ChunkSize::new(chunk as u64).unwrap(), salt).unwrap();
    let len = encryptor.file_len(content.len() as u64);
    let mut file = Vec::new();
    let mut stream = EncryptStream::new(encryptor);
    stream.push(content, &mut file).unwrap();
    stream.finish(&mut file).unwrap();
    assert_eq!(file.len() as u64, len);
    file
}

fn decrypt(key: &Key, file: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut stream = DecryptStream::new(key)?;
    stream.push(file, &mut out)?;
    stream.finish(&mut out)?;
    Ok(out)
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 29) as u8).collect()
}

/// Offset in the file of the part (header or chunk) that contains a byte.
fn part(at: usize) -> usize {
    let header = ChunkHeader::LEN;
    at.checked_sub(header).map_or(0, |at| header + at / (CHUNK + TAG_LEN) * (CHUNK + TAG_LEN))
}

#[test]
fn every_flipped_bit_is_refused_with_its_offset() {
    for len in [0, 1, 32, 33, 96, 100] {
        let file = encrypt(&content(len), CHUNK, SALT);
        assert_eq!(decrypt(&key(), &file), Ok(content(len)));
        for bit in 0..file.len() * 8 {
            let mut altered = file.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let error = decrypt(&key(), &altered).unwrap_err().to_string();
            let needle = format!("at offset {}", part(bit / 8));
            assert!(error.contains(&needle), "bit {bit} of {len} bytes: {error}");
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    for len in [0, 1, 32, 64, 100] {
        let file = encrypt(&content(len), CHUNK, SALT);
        for end in 0..file.len() {
            let error = decrypt(&key(), &file[..end]).unwrap_err().to_string();
            assert!(error.contains("at offset "), "{end} of {len}: {error}");
        }
        for more in [1, TAG_LEN, CHUNK, CHUNK + TAG_LEN, 200] {
            let longer = [file.clone(), vec![0; more]].concat();
            assert!(decrypt(&key(), &longer).is_err());
        }
    }
}

#[test]
fn chunks_cannot_be_exchanged_dropped_repeated_or_taken_from_another_file() {
    let file = encrypt(&content(4 * CHUNK), CHUNK, SALT);
    let other = encrypt(&content(4 * CHUNK), CHUNK, [1; 16]);
    let (header, body) = file.split_at(ChunkHeader::LEN);
    let chunks: Vec<&[u8]> = body.chunks(CHUNK + TAG_LEN).collect();
    let foreign: Vec<&[u8]> = other[ChunkHeader::LEN..].chunks(CHUNK + TAG_LEN).collect();
    let rebuild = |order: &[&[u8]]| decrypt(&key(), &[header, &order.concat()].concat());
    let [a, b, c, d] = chunks[..] else { panic!("four chunks") };
    assert_eq!(rebuild(&[a, b, c, d]), Ok(content(4 * CHUNK)));
    for order in [
        &[b, a, c, d][..],
        &[a, c, b, d],
        &[a, b, d, c],
        &[a, b, c],
        &[a, b, d],
        &[b, c, d],
        &[d],
        &[],
        &[a, b, c, d, d],
        &[a, a, b, c, d],
        &[a, foreign[1], c, d],
        &[a, b, c, foreign[3]],
    ] {
        let error = rebuild(order).unwrap_err().to_string();
        assert!(error.contains("at offset "), "{error}");
    }
    let error = rebuild(&[a, c, b, d]).unwrap_err().to_string();
    assert!(error.contains(&format!("chunk 1 at offset {}", ChunkHeader::LEN + CHUNK + TAG_LEN)), "{error}");
}

#[test]
fn a_wrong_key_is_named() {
    let file = encrypt(&content(40), CHUNK, SALT);
    let error = decrypt(&Key::new(Cipher::Aes256Gcm, &[0; 32]).unwrap(), &file).unwrap_err().to_string();
    assert!(error.contains("give the key of this file"), "{error}");
    let error = decrypt(&key(), &content(100)).unwrap_err().to_string();
    assert!(error.contains("does not begin with HFENC"), "{error}");
}

#[test]
fn only_one_division_of_a_content_is_accepted() {
    let cipher = ChunkCipher::with_salt(&key(), ChunkSize::new(CHUNK as u64).unwrap(), SALT).unwrap();
    assert!(cipher.seal_chunk(0, false, &content(CHUNK - 1)).is_err());
    assert!(cipher.seal_chunk(0, true, &content(CHUNK + 1)).is_err());
    assert!(cipher.seal_chunk(1, true, &[]).is_err());
    assert!(cipher.seal_chunk(1 << 40, true, &[1]).is_err());
    let last = cipher.seal_chunk(0, true, &content(CHUNK)).unwrap();
    assert!(cipher.open_chunk(0, false, &last).is_err());
    assert!(cipher.open_chunk(1, true, &last).is_err());
    assert_eq!(cipher.open_chunk(0, true, &last), Ok(content(CHUNK)));
    for size in [0, 15, (64 << 20) + 1, u64::MAX] {
        assert!(ChunkSize::new(size).unwrap_err().to_string().contains("16 to 67108864 bytes"));
    }
}

/// Golden file of version 1, computed by another implementation (Python, `cryptography`).
#[test]
fn golden_file_of_version_1_stays_readable() {
    let golden = hex::decode(include_str!("../../golden/aes-256-gcm-v1.hex").trim()).unwrap();
    assert_eq!(decrypt(&key(), &golden), Ok(content(75)));
    assert_eq!(hex::encode(encrypt(&content(75), CHUNK, SALT)), hex::encode(golden));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ranges_of_chunks_are_independent(
        content in vec(any::<u8>(), 0..5000),
        chunk in 16_usize..700,
        cuts in vec(0_usize..100, 0..5),
    ) {
        let size = ChunkSize::new(chunk as u64).unwrap();
        let encryptor = Encryptor::with_chunk_size(&key(), size).unwrap();
        let decryptor = Decryptor::new(&key(), encryptor.header()).unwrap();
        let mut file = vec![0; encryptor.file_len(content.len() as u64) as usize];
        let body = ChunkHeader::LEN;
        file[..body].copy_from_slice(encryptor.header());
        // Ranges are transformed last to first, and written where the encryptor says.
        let ranges = |unit: usize, len: usize| {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut * unit).filter(|cut| *cut < len).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            cuts.windows(2).map(|pair| pair[0]..pair[1]).rev().collect::<Vec<_>>()
        };
        for range in ranges(chunk, content.len()) {
            let last = range.end == content.len();
            let out = encryptor.transform(&Piece::new(range.start as u64, &content[range.clone()], last)).unwrap();
            let at = encryptor.file_offset(range.start as u64) as usize;
            file[at..at + out.len()].copy_from_slice(&out);
        }
        prop_assert!(decrypt(&key(), &file).unwrap() == content);
        let len = content.len() as u64;
        prop_assert_eq!(decryptor.content_len(file.len() as u64), Ok(len..=len));
        let mut found = vec![0; content.len()];
        for range in ranges(chunk + TAG_LEN, file.len() - body) {
            let last = range.end == file.len() - body;
            let bytes = &file[body + range.start..body + range.end];
            let out = decryptor.transform(&Piece::new(range.start as u64, bytes, last)).unwrap();
            let at = decryptor.content_offset(range.start as u64) as usize;
            found[at..at + out.len()].copy_from_slice(&out);
        }
        prop_assert!(found == content);
    }
}
