//! Preambles: the blocks beside packets, converted, kept or counted.

use crate::packet_files::builder::{File, pad};
use holdfast_ingest::packet::{Item, LinkType, LiveInterface, Preamble, PreambleError, Reader, scan};

/// All blocks of a preamble that are neither section nor interface: type and body.
fn others(preamble: &Preamble) -> Vec<(u32, Vec<u8>)> {
    let mut reader = Reader::new(preamble.as_bytes());
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        if let Item::Other(block) = item {
            found.push((block.kind, block.body.to_vec()));
        }
    }
    found
}

/// Names, statistics, secrets, journal, custom and unknown blocks behind two interfaces of a second section.
fn with_blocks(big: bool) -> File {
    let mut file = File::new(false);
    file.section(&[file.option(2, b"machine"), file.option(1, b"one")].concat());
    file.interface(1, 0, &[]);
    file.big = big;
    file.section(&[file.option(1, b"two"), file.option(3, b"lost")].concat());
    file.interface(1, 0, &[]);
    let options = [
        file.option(2, b"wan"),
        file.option(3, b"to the world"),
        file.option(8, &file.u64(10_000_000_000)),
        file.option(9, &[3]),
        file.option(10, &file.u32(60)),
        file.option(11, b"\0udp"),
        file.option(12, b"Linux"),
        file.option(15, b"card"),
    ]
    .concat();
    file.interface(101, 96, &options);
    let record =
        |file: &File, kind, value: &[u8]| [file.u16(kind), file.u16(value.len() as u16), pad(value)].concat();
    let names = [
        record(&file, 1, b"\x7f\0\0\x01localhost\0"),
        record(&file, 0, b""),
        file.option(2, b"dns.example"),
        file.option(0, b""),
    ];
    file.block(4, &names.concat());
    let statistics = [
        file.u32(1),
        file.u32(0),
        file.u32(5_000),
        file.option(2, &[file.u32(0), file.u32(4_000)].concat()),
        file.option(5, &file.u64(77)),
        file.option(0, b""),
    ];
    file.block(5, &statistics.concat());
    file.block(10, &[file.u32(0x544c_534b), file.u32(6), pad(b"secret")].concat());
    file.block(9, b"MESSAGE=hello\n");
    file.block(0xbad, &[file.u32(32_473), b"data".to_vec()].concat());
    file.block(0x4000_0bad, &[file.u32(32_473), b"mine".to_vec()].concat());
    file.block(0x8000_0005, b"whatever");
    file
}

#[test]
fn blocks_of_both_orders_become_the_same_preamble() {
    let (little, report) = scan(&with_blocks(false).bytes[..], 1 << 16).unwrap();
    // The second section's `shb_os`, and the custom block that must not be copied.
    assert_eq!(report.left_out, 2);
    let (big, report) = scan(&with_blocks(true).bytes[..], 1 << 16).unwrap();
    // Those, and the one of which nothing is known.
    assert_eq!(report.left_out, 3);
    assert_eq!(little.interfaces(), big.interfaces());
    assert_eq!(others(&little)[..5], others(&big)[..]);

    let wan = &little.interfaces()[2];
    assert_eq!((wan.name(), wan.description()), (Some("wan"), Some("to the world")));
    assert_eq!((wan.link_type, wan.snaplen), (LinkType::RAW, 96));
    let file = File::new(false);
    let kept = [
        file.option(2, b"wan"),
        file.option(3, b"to the world"),
        file.option(8, &file.u64(10_000_000_000)),
        file.option(10, &file.u32(60)),
        file.option(11, b"\0udp"),
        file.option(12, b"Linux"),
        file.option(15, b"card"),
    ];
    assert_eq!(wan.options, kept.concat());
    // Statistics name the interface by its place over all sections, in nanoseconds.
    let nanos = |seconds: u64| {
        let nanos = seconds * 1_000_000_000;
        [file.u32((nanos >> 32) as u32), file.u32(nanos as u32)].concat()
    };
    let wanted = [
        file.u32(2),
        nanos(5),
        file.option(2, &nanos(4)),
        file.option(5, &file.u64(77)),
        file.option(0, b""),
    ];
    assert_eq!(others(&big)[1], (5, wanted.concat()));
    assert_eq!(others(&little)[4], (0xbad, b"\xd9\x7e\0\0data".to_vec()));
    assert_eq!(others(&little)[5], (0x8000_0005, b"whatever".to_vec()));
    let comments = [file.option(2, b"machine"), file.option(1, b"one"), file.option(1, b"two")].concat();
    assert!(big.as_bytes().windows(comments.len()).any(|window| window == comments));
}

#[test]
fn a_preamble_of_a_preamble_is_itself() {
    for big in [false, true] {
        let (preamble, _) = scan(&with_blocks(big).bytes[..], 1 << 16).unwrap();
        let (again, report) = scan(preamble.as_bytes(), 1 << 16).unwrap();
        assert_eq!(again, preamble);
        assert_eq!((report.packets, report.left_out), (0, 0));
        assert_eq!(Preamble::from_bytes(preamble.as_bytes().to_vec()), Ok(preamble));
    }
}

#[test]
fn what_is_no_preamble_is_told_why() {
    let wrong = |bytes: &[u8]| match Preamble::validate(bytes) {
        Err(PreambleError::Wrong(why)) => why,
        other => panic!("{other:?}"),
    };
    let mut file = File::new(false);
    file.section(&[]);
    file.interface(1, 0, &[]);
    assert_eq!(wrong(&file.bytes), "an interface's times are not in nanoseconds");
    file.packet(0, 0, 0, b"", &[]);
    assert_eq!(wrong(&file.bytes), "there is a packet among them");
    let mut file = File::new(false);
    file.section(&[]);
    file.section(&[]);
    assert_eq!(wrong(&file.bytes), "there is more than one section");
    let mut file = File::new(true);
    file.section(&[]);
    assert_eq!(wrong(&file.bytes), "they do not start with a little-endian pcapng section header");
    let live = Preamble::live(&[]).unwrap();
    let cut = &live.as_bytes()[..live.as_bytes().len() - 1];
    assert!(matches!(Preamble::validate(cut), Err(PreambleError::Broken(_))));
}

#[test]
fn a_live_preamble_describes_its_interfaces() {
    let live = LiveInterface {
        name: "eth0",
        link_type: LinkType::ETHERNET,
        snaplen: 128,
        filter: Some("tcp port 80"),
        mac: Some([2, 0, 0, 0, 0, 1]),
        speed: Some(25_000_000_000),
    };
    let plain = LiveInterface { name: "tun0", link_type: LinkType::RAW, filter: None, mac: None, ..live };
    let preamble = Preamble::live(&[live, plain]).unwrap();
    let interfaces = Preamble::validate(preamble.as_bytes()).unwrap();
    assert_eq!(interfaces, preamble.interfaces());
    assert_eq!((interfaces[0].name(), interfaces[0].snaplen), (Some("eth0"), 128));
    assert_eq!((interfaces[1].name(), interfaces[1].link_type), (Some("tun0"), LinkType::RAW));
    let file = File::new(false);
    let filter = file.option(11, b"\0tcp port 80");
    assert!(interfaces[0].options.windows(filter.len()).any(|window| window == filter));
}
