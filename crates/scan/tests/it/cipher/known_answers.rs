//! Known answers of the standards: SP 800-20, SP 800-67 and FIPS 81 for Triple DES, the GCM specification for AES-256-GCM.

use holdfast_scan::cipher::{Cipher, Decryptor, Encryptor, Key, Piece};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Checks one ECB answer as a single block (tables) and many times in a row (bit slices), in both directions.
fn check_ecb(key: &str, plain: &str, expected: &str) {
    let key = Key::parse(Cipher::TripleDesEcb, key.as_bytes()).unwrap();
    let (plain, expected) = (hex::decode(plain).unwrap(), hex::decode(expected).unwrap());
    for count in [1, 600] {
        let (plain, expected) = (plain.repeat(count), expected.repeat(count));
        let encryptor = Encryptor::new(&key).unwrap();
        let file = encryptor.transform(&Piece::new(0, &plain, false)).unwrap();
        assert_eq!(hex::encode(&file), hex::encode(&expected));
        let decryptor = Decryptor::new(&key, &[]).unwrap();
        assert_eq!(decryptor.transform(&Piece::new(0, &file, false)).unwrap(), plain);
    }
}

#[test]
fn sp_800_20_variable_plaintext() {
    let key = "01".repeat(24);
    let answers = [
        ("8000000000000000", "95f8a5e5dd31d900"),
        ("4000000000000000", "dd7f121ca5015619"),
        ("2000000000000000", "2e8653104f3834ea"),
        ("1000000000000000", "4bd388ff6cd81d4f"),
        ("0800000000000000", "20b9e767b2fb1456"),
        ("0400000000000000", "55579380d77138ef"),
        ("0200000000000000", "6cc5defaaf04512f"),
        ("0100000000000000", "0d9f279ba5d87260"),
    ];
    for (plain, expected) in answers {
        check_ecb(&key, plain, expected);
        // The inverse permutation test of SP 800-20 swaps the two.
        check_ecb(&key, expected, plain);
    }
}

#[test]
fn sp_800_20_variable_key_permutation_and_substitution() {
    let zero = "0000000000000000";
    let answers = [
        ("8001010101010101", zero, "95a8d72813daa94d"),
        ("4001010101010101", zero, "0eec1487dd8c26d5"),
        ("2001010101010101", zero, "7ad16ffb79c45926"),
        ("1001010101010101", zero, "d3746294ca6a6cf3"),
        ("0801010101010101", zero, "809f5f873c1fd761"),
        ("0401010101010101", zero, "c02faffec989d1fc"),
        ("1046913489980131", zero, "88d55e54f54c97b4"),
        ("1007103489988020", zero, "0c0cc00c83ea48fd"),
        ("10071034c8980120", zero, "83bc8ef3a6570183"),
        ("1046103489988020", zero, "df725dcad94ea2e9"),
        ("7ca110454a1a6e57", "01a1d6d039776742", "690f5b0d9a26939b"),
        ("0131d9619dc1376e", "5cd54ca83def57da", "7a389d10354bd271"),
        ("07a1133e4a0b2686", "0248d43806f67172", "868ebb51cab4599a"),
        ("3849674c2602319e", "51454b582ddf440a", "7178876e01f19b2a"),
        ("04b915ba43feb5b6", "42fd443059577fa2", "af37fb421f8c4095"),
    ];
    for (key, plain, expected) in answers {
        check_ecb(&key.repeat(3), plain, expected);
        check_ecb(&key.repeat(2), plain, expected);
    }
}

#[test]
fn sp_800_67_example_with_three_keys() {
    check_ecb(
        "0123456789abcdef23456789abcdef01456789abcdef0123",
        "5468652071756663 6b2062726f776e20 666f78206a756d70".replace(' ', "").as_str(),
        "a826fd8ce53b855f cce21c8112256fe6 68d5c05dd9b6b900".replace(' ', "").as_str(),
    );
}

#[test]
fn fips_81_examples() {
    let key = "0123456789abcdef".repeat(3);
    let plain = b"Now is the time for all ";
    check_ecb(&key, &hex::encode(plain), "3fa40e8a984d48156a271787ab8883f9893d51ec4b563b53");
    let key = Key::parse(Cipher::TripleDesCbc, key.as_bytes()).unwrap();
    let iv = 0x1234_5678_90ab_cdef_u64.to_be_bytes();
    let mut file = Vec::new();
    Encryptor::with_iv(&key, iv).unwrap().serial().unwrap().update(plain, &mut file);
    assert_eq!(hex::encode(&file), "e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6");
    let decryptor = Decryptor::with_iv(&key, iv).unwrap();
    assert_eq!(decryptor.transform(&Piece::new(0, &file, false)).unwrap(), plain);
}

#[test]
fn gcm_specification_cases_13_to_16() {
    let zero = "0".repeat(64);
    let key = "feffe9928665731c6d6a8f9467308308".repeat(2);
    let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                 1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    let cipher = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                  8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";
    let added = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    let iv = "cafebabefacedbaddecaf888";
    let answers = [
        (zero.as_str(), &zero[..24], "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
        (
            &zero,
            &zero[..24],
            "",
            &zero[..32],
            "cea7403d4d606b6e074ec5d3baf39d18",
            "d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (&key, iv, "", plain, cipher, "b094dac5d93471bdec1a502270e3cc6c"),
        (&key, iv, added, &plain[..120], &cipher[..120], "76fc6ece0f4e1768cddf8853bb2d551b"),
    ];
    for (key, iv, added, plain, cipher, tag) in answers {
        let key = UnboundKey::new(&AES_256_GCM, &hex::decode(key).unwrap()).unwrap();
        let nonce = Nonce::try_assume_unique_for_key(&hex::decode(iv).unwrap()).unwrap();
        let mut bytes = hex::decode(plain).unwrap();
        let added = Aad::from(hex::decode(added).unwrap());
        LessSafeKey::new(key).seal_in_place_append_tag(nonce, added, &mut bytes).unwrap();
        assert_eq!(hex::encode(bytes), format!("{cipher}{tag}"));
    }
}
