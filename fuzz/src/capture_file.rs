//! Capture files, pcap and pcapng: read, looked through, and written again.

use holdfast_ingest::packet::pcapng::{packet_block_len, write_packet};
use holdfast_ingest::packet::{Item, Preamble, ReadError, Reader, scan};

/// Most bytes of a preamble here.
const PREAMBLE: usize = 1 << 20;

/// Reads a file to its end or its damage. Both ways of reading see the same packets, and written again all that is whole
/// reads back.
pub fn run(data: &[u8]) {
    let _ = Preamble::from_bytes(data.to_vec());
    let mut reader = Reader::new(data);
    let (mut packets, mut bytes) = (0u64, 0u64);
    let broke = loop {
        match reader.next_item() {
            Ok(Some(Item::Packet(packet))) => {
                packets += 1;
                bytes += packet.data.len() as u64;
            }
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(ReadError::Broken(broken)) => break Some(broken),
            Err(ReadError::Io { error, .. }) => panic!("reading memory failed: {error}"),
        }
    };
    assert!(reader.position() <= data.len() as u64);
    let Ok((preamble, report)) = scan(data, PREAMBLE) else { return };
    assert_eq!((report.packets, report.bytes, &report.broke), (packets, bytes, &broke));
    assert_eq!(Preamble::from_bytes(preamble.as_bytes().to_vec()).as_ref(), Ok(&preamble));

    let mut out = preamble.as_bytes().to_vec();
    let mut reader = Reader::new(data);
    while let Ok(Some(packet)) = reader.next_packet() {
        let before = out.len();
        if let Err(error) = write_packet(&mut out, &packet) {
            panic!("a packet that was read cannot be written: {error}");
        }
        assert_eq!(out.len() - before, packet_block_len(&packet));
    }
    let again = scan(&out[..], 2 * PREAMBLE).map(|(_, report)| (report.packets, report.bytes, report.broke));
    assert!(matches!(again, Ok((p, b, None)) if p == packets && b == bytes), "{again:?}");
}

fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let len = number(body.len().next_multiple_of(4) as u32 + 12);
    let mut block = [&number(kind)[..], &len, body].concat();
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(len);
    block
}

fn pcapng(big: bool) -> Vec<u8> {
    let n16 = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let n32 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let text = |code: u16, text: &[u8]| {
        let mut option = [&n16(code)[..], &n16(text.len() as u16), text].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    };
    let section = [&n32(0x1a2b_3c4d)[..], &n16(1), &n16(0), &[0xff; 8], &text(4, b"fuzz"), &[0; 4]].concat();
    let interface = [&n16(1)[..], &n16(0), &n32(96), &text(2, b"eth0"), &text(9, &[9]), &[0; 4]].concat();
    let packet = |stamp: u32, data: &[u8], options: &[u8]| {
        let head = [n32(0), n32(0x17_8000), n32(stamp), n32(data.len() as u32), n32(1500)].concat();
        let mut body = [&head[..], data].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        [&body[..], options].concat()
    };
    let options = [&text(1, b"a comment")[..], &text(2, &n32(1)), &[0; 4]].concat();
    let statistics = [&n32(0)[..], &n32(0x17_8000), &n32(9), &text(4, &[7; 8]), &[0; 4]].concat();
    let names = [&n16(1)[..], &n16(11), &[10, 0, 0, 1], b"gateway", &[0], &[0; 4]].concat();
    [
        block(0x0a0d_0d0a, &section, big),
        block(1, &interface, big),
        block(6, &packet(5, b"fourteen bytes", &options), big),
        block(4, &names, big),
        block(3, &[&n32(60)[..], &[1; 60]].concat(), big),
        block(5, &statistics, big),
        block(0x0bad, b"of a vendor", big),
    ]
    .concat()
}

fn pcap(big: bool, magic: u32) -> Vec<u8> {
    let n = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let header = [n(magic), version, n(0), n(0), n(65535), n(1)].concat();
    let record = |data: &[u8]| [&n(1_700_000_000)[..], &n(7), &n(data.len() as u32), &n(99), data].concat();
    [header, record(b"packet one"), record(b""), record(&[5; 90])].concat()
}

/// Both formats, both orders, micro- and nanoseconds, two sections.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        pcapng(false),
        pcapng(true),
        [pcapng(true), pcapng(false)].concat(),
        pcap(false, 0xa1b2_c3d4),
        pcap(true, 0xa1b2_3c4d),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_whole() {
        for (seed, packets) in seeds().iter().zip([2, 2, 4, 3, 3]) {
            let report = scan(&seed[..], PREAMBLE).map(|(_, report)| report).unwrap();
            assert_eq!((report.packets, report.broke), (packets, None));
        }
    }
}
