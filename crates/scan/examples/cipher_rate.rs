//! Rates of all ciphers on one core, next to `openssl speed`: `cargo run --release --example cipher_rate [SECONDS]`.

use holdfast_scan::cipher::{CbcLanes, Cipher, Decryptor, Encryptor, Iv, Key, Piece, Result};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes that each call transforms: a chunk of the default size, several times.
const LEN: usize = 4 << 20;

/// Prints the best rate of several rounds, since other programs share the machine.
fn measure(name: &str, bytes: usize, time: Duration, mut run: impl FnMut() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    let mut best = 0.0_f64;
    while start.elapsed() < time {
        let begin = Instant::now();
        run()?;
        best = best.max(bytes as f64 / begin.elapsed().as_secs_f64() / 1e6);
    }
    println!("{name:<28}{best:>8.0} MB/s");
    Ok(())
}

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let content: Vec<u8> = (0..LEN).map(|at| (at * at / 7) as u8).collect();
    for cipher in Cipher::ALL {
        let bytes: Vec<u8> = (1..=cipher.key_lengths()[0] as u8).map(|at| at * 7).collect();
        let key = Key::new(cipher, &bytes)?;
        let encryptor = Encryptor::new(&key)?;
        let decryptor = Decryptor::new(&key, encryptor.header())?;
        let mut file = Vec::new();
        let mut out = Vec::new();
        if let Some(mut serial) = encryptor.serial() {
            measure(&format!("{cipher} encrypt, 1 stream"), LEN, time, || {
                file.clear();
                serial.update(&content, &mut file);
                Ok(())
            })?;
            for lanes in [64, 512] {
                let mut lanes_of = CbcLanes::new(&key, &vec![Iv::default(); lanes])?;
                let mut streams = content.clone();
                measure(&format!("{cipher} encrypt, {lanes} streams"), LEN, time, || {
                    let mut slices: Vec<&mut [u8]> = streams.chunks_exact_mut(LEN / lanes).collect();
                    lanes_of.encrypt(&mut slices)
                })?;
            }
        } else {
            measure(&format!("{cipher} encrypt"), LEN, time, || {
                file.clear();
                encryptor.transform_into(&Piece::new(0, &content, false), &mut file)
            })?;
        }
        measure(&format!("{cipher} decrypt"), LEN, time, || {
            out.clear();
            decryptor.transform_into(&Piece::new(0, &file, false), &mut out)
        })?;
    }
    for name in ["des-ede3-cbc", "aes-256-gcm"] {
        match Command::new("openssl").args(["speed", "-seconds", "1", "-evp", name]).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                println!("openssl, last column 16 KiB: {}", text.trim().lines().last().unwrap_or(name));
            }
            Err(error) => println!("cannot run openssl: {error}"),
        }
    }
    Ok(())
}
