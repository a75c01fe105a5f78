//! Property tests of the Triple DES modes against the crates `des`, `ecb`, `cbc` and `ctr`.

use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockEncryptMut, KeyInit, KeyIvInit, StreamCipher};
use des::{TdesEde2, TdesEde3};
use holdfast_scan::cipher::{
    CbcLanes, Cipher, DecryptStream, Decryptor, EncryptStream, Encryptor, Iv, Key, Piece, pad,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// File of the reference crates, without its initialisation vector.
fn reference(cipher: Cipher, key: &[u8], iv: Iv, content: &[u8]) -> Vec<u8> {
    fn padded<C: BlockEncryptMut>(encryptor: C, content: &[u8]) -> Vec<u8> {
        encryptor.encrypt_padded_vec_mut::<Pkcs7>(content)
    }
    let mut stream = content.to_vec();
    match (cipher, key.len()) {
        (Cipher::TripleDesCbc, 24) => {
            padded(cbc::Encryptor::<TdesEde3>::new(key.into(), &iv.into()), content)
        }
        (Cipher::TripleDesCbc, _) => padded(cbc::Encryptor::<TdesEde2>::new(key.into(), &iv.into()), content),
        (Cipher::TripleDesEcb, 24) => padded(ecb::Encryptor::<TdesEde3>::new(key.into()), content),
        (Cipher::TripleDesEcb, _) => padded(ecb::Encryptor::<TdesEde2>::new(key.into()), content),
        (_, 24) => {
            ctr::Ctr64BE::<TdesEde3>::new(key.into(), &iv.into()).apply_keystream(&mut stream);
            stream
        }
        (_, _) => {
            ctr::Ctr64BE::<TdesEde2>::new(key.into(), &iv.into()).apply_keystream(&mut stream);
            stream
        }
    }
}

fn modes() -> impl Strategy<Value = Cipher> {
    prop::sample::select(vec![Cipher::TripleDesCbc, Cipher::TripleDesEcb, Cipher::TripleDesCtr])
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 24), vec(any::<u8>(), 16)]
}

/// Initialisation vectors, among them some whose counter wraps.
fn ivs() -> impl Strategy<Value = Iv> {
    prop_oneof![any::<Iv>(), (0_u64..300).prop_map(|before| (u64::MAX - before).to_be_bytes())]
}

fn pair(cipher: Cipher, key: &Key, iv: Iv) -> (Encryptor, Decryptor) {
    if cipher.has_iv() {
        (Encryptor::with_iv(key, iv).unwrap(), Decryptor::with_iv(key, iv).unwrap())
    } else {
        (Encryptor::new(key).unwrap(), Decryptor::new(key, &[]).unwrap())
    }
}

/// Calls `take` with pieces of the given lengths, in turn.
fn in_pieces(bytes: &[u8], lens: &[usize], mut take: impl FnMut(&[u8])) {
    let mut rest = bytes;
    for len in lens.iter().cycle() {
        let (piece, after) = rest.split_at((*len).min(rest.len()));
        take(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn streams_equal_the_reference(
        cipher in modes(),
        key in keys(),
        iv in ivs(),
        content in prop_oneof![vec(any::<u8>(), 0..200), vec(any::<u8>(), 0..100_000)],
        lens in vec(prop_oneof![1_usize..40, 1_usize..70_000], 1..8),
    ) {
        let expected = reference(cipher, &key, iv, &content);
        let key = Key::new(cipher, &key).unwrap();
        let (encryptor, decryptor) = pair(cipher, &key, iv);
        prop_assert_eq!(encryptor.file_len(content.len() as u64), expected.len() as u64);
        let lengths = decryptor.content_len(expected.len() as u64).unwrap();
        prop_assert!(lengths.contains(&(content.len() as u64)));
        let mut stream = EncryptStream::new(encryptor);
        let mut file = Vec::new();
        in_pieces(&content, &lens, |piece| stream.push(piece, &mut file).unwrap());
        stream.finish(&mut file).unwrap();
        prop_assert!(file == expected);
        let mut stream = DecryptStream::with_decryptor(decryptor);
        let mut out = Vec::new();
        in_pieces(&file, &lens, |piece| stream.push(piece, &mut out).unwrap());
        stream.finish(&mut out).unwrap();
        prop_assert!(out == content);
    }

    #[test]
    fn ranges_are_independent(
        cipher in modes(),
        key in vec(any::<u8>(), 24),
        iv in ivs(),
        content in vec(any::<u8>(), 0..20_000),
        cuts in vec(0_usize..2500, 0..5),
    ) {
        let file = reference(cipher, &key, iv, &content);
        let key = Key::new(cipher, &key).unwrap();
        let (encryptor, decryptor) = pair(cipher, &key, iv);
        let ranges = |len: usize, keep: usize| {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut * 8).filter(|cut| cut + keep <= len).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            cuts.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>()
        };
        if cipher != Cipher::TripleDesCbc {
            let all = ranges(content.len(), 0);
            let mut found = Vec::new();
            for (at, range) in all.iter().enumerate() {
                let piece = Piece::new(range.start as u64, &content[range.clone()], at + 1 == all.len());
                found.push(encryptor.transform(&piece).unwrap());
            }
            prop_assert!(found.concat() == file);
        }
        let all = ranges(file.len(), 1);
        let mut found = Vec::new();
        for (at, range) in all.iter().enumerate() {
            let before = &file[range.start.saturating_sub(8)..range.start];
            let piece = Piece::new(range.start as u64, &file[range.clone()], at + 1 == all.len()).after(before);
            found.push(decryptor.transform(&piece).unwrap());
        }
        prop_assert!(found.concat() == content);
    }

    #[test]
    fn lanes_equal_single_streams(
        key in keys(),
        lens in prop_oneof![vec(0_usize..400, 0..30), vec(0_usize..200, 500..700)],
        cut in 0_usize..40,
    ) {
        let contents: Vec<Vec<u8>> =
            lens.iter().enumerate().map(|(lane, len)| (0..*len).map(|at| (at * 7 + lane * 13) as u8).collect()).collect();
        let ivs: Vec<Iv> = (0..lens.len() as u64).map(|lane| (lane * 0x0123_4567_89ab).to_be_bytes()).collect();
        let expected: Vec<Vec<u8>> = contents
            .iter()
            .zip(&ivs)
            .map(|(content, iv)| reference(Cipher::TripleDesCbc, &key, *iv, content))
            .collect();
        let mut lanes = CbcLanes::new(&Key::new(Cipher::TripleDesCbc, &key).unwrap(), &ivs).unwrap();
        let mut files = contents;
        files.iter_mut().for_each(pad);
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for file in &mut files {
            let middle = (cut * 8).min(file.len());
            let (head, tail) = file.split_at_mut(middle);
            heads.push(head);
            tails.push(tail);
        }
        lanes.encrypt(&mut heads).unwrap();
        lanes.encrypt(&mut tails).unwrap();
        prop_assert!(files == expected);
    }
}

#[test]
fn random_vectors_are_stored_in_the_header() {
    for cipher in Cipher::ALL {
        let key = Key::new(cipher, &[5; 32][..cipher.key_lengths()[0]]).unwrap();
        let content = vec![1; 100_000];
        let mut files = Vec::new();
        for _ in 0..2 {
            let encryptor = Encryptor::new(&key).unwrap();
            assert_eq!(encryptor.header().len(), Decryptor::header_len(cipher));
            let len = encryptor.file_len(100_000);
            let mut stream = EncryptStream::new(encryptor);
            let mut file = Vec::new();
            stream.push(&content, &mut file).unwrap();
            stream.finish(&mut file).unwrap();
            assert_eq!(file.len() as u64, len);
            let mut stream = DecryptStream::new(&key).unwrap();
            let mut out = Vec::new();
            in_pieces(&file, &[3, 30_000], |piece| stream.push(piece, &mut out).unwrap());
            stream.finish(&mut out).unwrap();
            assert!(out == content);
            files.push(file);
        }
        assert_eq!(files[0] != files[1], cipher != Cipher::TripleDesEcb);
    }
}

#[test]
fn wrong_use_is_refused_with_the_remedy() {
    let key = Key::new(Cipher::TripleDesCbc, &[9; 24]).unwrap();
    let encryptor = Encryptor::with_iv(&key, [0; 8]).unwrap();
    let error = encryptor.transform(&Piece::new(0, &[0; 8], false)).unwrap_err().to_string();
    assert!(error.contains("CbcLanes"), "{error}");
    let decryptor = Decryptor::with_iv(&key, [0; 8]).unwrap();
    for (offset, len, last, needle) in [
        (8, 8, false, "eight bytes before"),
        (4, 8, false, "align"),
        (0, 9, false, "extend"),
        (0, 9, true, "cut off"),
        (0, 0, true, "padding block is missing"),
    ] {
        let error = decryptor.transform(&Piece::new(offset, &vec![0; len], last)).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
    let error = CbcLanes::new(&key, &[[0; 8]]).unwrap().encrypt(&mut [&mut [0; 7]]).unwrap_err().to_string();
    assert!(error.contains("whole blocks"), "{error}");
    let key = Key::new(Cipher::Aes256Gcm, &[9; 32]).unwrap();
    assert!(Encryptor::with_iv(&key, [0; 8]).is_err());
    assert!(CbcLanes::new(&key, &[]).is_err());
}

#[test]
fn a_wrong_key_is_refused_by_the_padding() {
    for cipher in [Cipher::TripleDesCbc, Cipher::TripleDesEcb] {
        let [right, wrong] = [1, 2].map(|byte| Key::new(cipher, &[byte * 16 + 4; 24]).unwrap());
        let (encryptor, _) = pair(cipher, &right, [7; 8]);
        let mut file = Vec::new();
        let mut stream = EncryptStream::new(encryptor);
        stream.push(b"some content of a file", &mut file).unwrap();
        stream.finish(&mut file).unwrap();
        let (_, decryptor) = pair(cipher, &wrong, [7; 8]);
        let error = decryptor.transform(&Piece::new(0, &file, true)).unwrap_err().to_string();
        assert!(error.contains("offset 16") && error.contains("right key"), "{error}");
    }
}

#[test]
fn threads_share_one_encryptor_and_one_decryptor() {
    for cipher in [Cipher::Aes256Gcm, Cipher::TripleDesEcb, Cipher::TripleDesCtr] {
        let key = Key::new(cipher, &[3; 32][..cipher.key_lengths()[0]]).unwrap();
        let encryptor = Encryptor::new(&key).unwrap();
        let decryptor = Decryptor::new(&key, encryptor.header()).unwrap();
        let content: Vec<u8> = (0..3_u32 << 20).map(|at| (at % 251) as u8).collect();
        let half = 1 << 20;
        let (head, tail) = std::thread::scope(|scope| {
            let head = scope.spawn(|| encryptor.transform(&Piece::new(0, &content[..half], false)).unwrap());
            let tail = encryptor.transform(&Piece::new(half as u64, &content[half..], true)).unwrap();
            (head.join().unwrap(), tail)
        });
        let offset = head.len() as u64;
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| decryptor.transform(&Piece::new(0, &head, false)).unwrap());
            (decryptor.transform(&Piece::new(offset, &tail, true)).unwrap(), first.join().unwrap())
        });
        assert!([second, first].concat() == content, "{cipher}");
    }
}
