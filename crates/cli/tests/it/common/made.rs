//! Files of the kinds that instruments write, made where no real ones are at hand: small, and the same in every run.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use holdfast_base::Timestamp;
use holdfast_ingest::packet::{self, Direction, Flags, LinkType, LiveInterface, Packet, Preamble, Reception};

/// Bytes that do not repeat soon.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A classic capture file with microseconds, some packets cut.
pub fn pcap() -> Vec<u8> {
    let mut file = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0".to_vec();
    for number in 0..400_u32 {
        let data = noise(60 + (number as usize * 37) % 1400, u64::from(number));
        let original = data.len() as u32 + if number % 5 == 0 { 900 } else { 0 };
        for word in [1_700_000_000 + number / 7, number * 911 % 1_000_000, data.len() as u32, original] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&data);
    }
    file
}

/// Packets of two interfaces of different link types, with directions, comments and cut packets.
pub fn pcapng() -> Vec<u8> {
    let interface = |name, link_type| LiveInterface {
        name,
        link_type,
        snaplen: 2000,
        filter: None,
        mac: None,
        speed: None,
    };
    let both = [interface("eth0", LinkType::ETHERNET), interface("tun0", LinkType(101))];
    let mut file = Preamble::live(&both).unwrap().as_bytes().to_vec();
    for number in 0..300_u32 {
        let data = noise(40 + (number as usize * 53) % 1500, u64::from(number));
        let comment = format!("number {number:05}");
        let mut options = vec![1, 0, comment.len() as u8, 0];
        options.extend_from_slice(comment.as_bytes());
        let direction = if number % 2 == 0 { Direction::Inbound } else { Direction::Outbound };
        let packet = Packet {
            interface: (number % 3 == 0).into(),
            time: Some(Timestamp(1_700_000_000_123_456_789 + i64::from(number) * 1_000_003)),
            original_len: data.len() as u32 + number % 4 * 100,
            flags: Flags::new(direction, Reception::Unknown),
            options: if number % 2 == 0 { &options } else { &[] },
            data: &data,
        };
        packet::pcapng::write_packet(&mut file, &packet).unwrap();
    }
    file
}

/// Frames of 5032 bytes, each with its header.
pub fn vdif() -> Vec<u8> {
    let frame = |number: u32| {
        let words = [17_u32, 28 << 24 | number, 629, 0x0400_0000, 0, 0, 0, 0];
        let header: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        [header, noise(5000, u64::from(number))].concat()
    };
    (0..16).flat_map(frame).collect()
}

/// A header of 4096 bytes and a mebibyte of samples.
pub fn dada() -> Vec<u8> {
    let text =
        "HDR_VERSION 1.0\nHDR_SIZE 4096\nTELESCOPE none\nNCHAN 1024\nNPOL 2\nNBIT 8\nNDIM 2\nTSAMP 1.88\n";
    let mut file = text.as_bytes().to_vec();
    file.resize(4096, 0);
    file.extend(noise(1 << 20, 5));
    file
}

/// A header and spectra of 832 channels.
pub fn filterbank() -> Vec<u8> {
    let mut file = Vec::new();
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend_from_slice(&(text.len() as u32).to_le_bytes());
        file.extend_from_slice(text.as_bytes());
    };
    text(&mut file, "HEADER_START");
    text(&mut file, "source_name");
    text(&mut file, "J0534+2200");
    text(&mut file, "tsamp");
    file.extend_from_slice(&0.0005_f64.to_le_bytes());
    for (name, value) in [("nchans", 832_u32), ("nbits", 8), ("nifs", 1)] {
        text(&mut file, name);
        file.extend_from_slice(&value.to_le_bytes());
    }
    text(&mut file, "HEADER_END");
    file.extend(noise(832 * 1000, 7));
    file
}

/// The mark of a flight log, then what nobody here looks into.
pub fn ulog() -> Vec<u8> {
    [b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec(), noise(300_000, 3)].concat()
}
