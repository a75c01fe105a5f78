//! Comparison with the `openssl` program: the same files in both directions. Without the program nothing is compared.

use holdfast_scan::cipher::{Cipher, DecryptStream, Decryptor, EncryptStream, Encryptor, Iv, Key};
use std::path::Path;
use std::process::Command;

/// Runs `openssl enc`; false when the program or the algorithm is absent.
fn openssl(name: &str, key: &[u8], iv: Option<Iv>, decrypt: bool, from: &Path, to: &Path) -> bool {
    let mut command = Command::new("openssl");
    command.args(["enc", name, "-provider", "legacy", "-provider", "default"]);
    command.args([if decrypt { "-d" } else { "-e" }, "-K", &hex::encode(key)]);
    if let Some(iv) = iv {
        command.args(["-iv", &hex::encode(iv)]);
    }
    command.arg("-in").arg(from).arg("-out").arg(to);
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn files_are_those_of_openssl() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: there is no program openssl");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [plain, theirs, back] = ["plain", "theirs", "back"].map(|name| folder.path().join(name));
    let iv = [0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef];
    let names = [
        ("-des-ede3-cbc", Cipher::TripleDesCbc, 24),
        ("-des-ede3-ecb", Cipher::TripleDesEcb, 24),
        ("-des-ede3", Cipher::TripleDesEcb, 24),
        ("-des-ede-cbc", Cipher::TripleDesCbc, 16),
        ("-des-ede-ecb", Cipher::TripleDesEcb, 16),
    ];
    for (name, cipher, key_len) in names {
        let bytes: Vec<u8> = (0..key_len).map(|at: u8| at.wrapping_mul(41) ^ 7).collect();
        let key = Key::new(cipher, &bytes).unwrap();
        let iv = cipher.has_iv().then_some(iv);
        for len in [0, 1, 7, 8, 9, 4095, 4096, 4097, 70_001] {
            let content: Vec<u8> = (0..len).map(|at: usize| (at * at / 3) as u8).collect();
            std::fs::write(&plain, &content).unwrap();
            assert!(openssl(name, &bytes, iv, false, &plain, &theirs), "{name} of {len} bytes");
            let expected = std::fs::read(&theirs).unwrap();
            let (encryptor, decryptor) = match iv {
                Some(iv) => (Encryptor::with_iv(&key, iv).unwrap(), Decryptor::with_iv(&key, iv).unwrap()),
                None => (Encryptor::new(&key).unwrap(), Decryptor::new(&key, &[]).unwrap()),
            };
            let mut ours = Vec::new();
            let mut stream = EncryptStream::new(encryptor);
            stream.push(&content, &mut ours).unwrap();
            stream.finish(&mut ours).unwrap();
            assert!(ours == expected, "{name} of {len} bytes");
            let mut out = Vec::new();
            let mut stream = DecryptStream::with_decryptor(decryptor);
            stream.push(&expected, &mut out).unwrap();
            stream.finish(&mut out).unwrap();
            assert!(out == content, "{name} of {len} bytes");
            std::fs::write(&theirs, &ours).unwrap();
            assert!(openssl(name, &bytes, iv, true, &theirs, &back), "{name} of {len} bytes");
            assert!(std::fs::read(&back).unwrap() == content, "{name} of {len} bytes");
        }
    }
}
