//! Tests with arbitrary bytes (promise 8): nothing panics, every attribute gets one cell per element, and the same cell
//! whichever other attributes are read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::packets::{
    dns, erspan, ethernet, geneve, gtp, hello, ipv4, ipv6, l2tp, pptp, tcp, udp, vxlan_to,
};
use common::{buffers, cell, schema, shown};
use holdfast_attributes::{Element, Extractor, Schema};
use proptest::prelude::*;

/// One of each kind.
fn everything() -> Schema {
    schema(&[
        "packets",
        "packets:inner_protocol,inner_src_port,inner_dst_port,vni,community_id,inner_community_id,vxlan=8472",
        "vdif:second,station,event_time",
        "spead:heap,items",
        "d1:time=dada:UTC_START",
        "d2:text=dada:SOURCE",
        "s1:float=sigproc:tsamp",
        "s2:text=sigproc:source_name",
        "j1:text=json:a",
        "j2:time=json:a.b[0]",
        "j3:ip=json:[1].\"\"",
        "f1:uint=at:0:u32le:bits3..9",
        "f2:text=at:3:text7",
        "f3:float=at:5:f64be",
        "f4:ip=at:1:ipv6",
        "f5:time=at:2:f64le",
        "g1:text=given",
        "g2:ip=given",
    ])
}

fn check(schema: &Schema, element: &Element<'_>, wanted: u64) {
    let mut extractor = Extractor::new(schema);
    let mut cells = buffers(schema, 2);
    let first = extractor.extract(element, &mut cells);
    let second = extractor.extract(element, &mut cells);
    assert_eq!(first, second, "nothing is kept from one element to the next");
    for (attribute, buffer) in schema.attributes().iter().zip(&cells) {
        assert_eq!(buffer.len(), 2, "{attribute}");
        assert_eq!(cell(buffer, 0), cell(buffer, 1));
        shown(attribute.kind(), cell(buffer, 0));
    }
    let wanted: Vec<usize> = (0..schema.len()).filter(|number| wanted >> number & 1 == 1).collect();
    let (part, numbers) = schema.part(&wanted);
    assert!(wanted.iter().all(|number| numbers.contains(number)), "{wanted:?}: {numbers:?}");
    let mut of_part = buffers(&part, 1);
    Extractor::new(&part).extract(element, &mut of_part);
    for (number, buffer) in numbers.iter().zip(&of_part) {
        assert_eq!(cell(buffer, 0), cell(&cells[*number], 0), "{}", schema.attributes()[*number]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn noise_is_taken(
        data in prop::collection::vec(any::<u8>(), 0..300),
        link_type in prop::option::of(prop::sample::select(vec![0, 1, 101, 108, 113, 228, 276, 999])),
        more in 0..3u64,
        wanted in any::<u64>(),
    ) {
        let schema = everything();
        let size = data.len() as u64 + more;
        let header = data.get(more as usize..);
        let element = Element { size, original_size: more, link_type, header, ..Element::of(&data) };
        check(&schema, &element, wanted);
    }

    /// Nearly right is worse than noise.
    #[test]
    fn damaged_packets_are_taken(
        which in 0..12usize, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut in any::<prop::sample::Index>(),
        wanted in any::<u64>(),
    ) {
        let question = dns(&[b"www", b"example", b"org"]);
        let mut data = match which {
            0 => ethernet(&[(0x8100, 3)], 0x0800, &ipv4(17, 0, &udp(53, 7, &question))),
            1 => ethernet(&[], 0x86dd, &ipv6(6, &tcp(7, 443, 2, &hello(b"example.org")))),
            2 => ethernet(&[], 0x86dd, &ipv6(0, &[&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 9, 0, 0, 0, 0][..], &udp(7, 53, &question)].concat())),
            3 => br#"{"a":{"b":["2001-09-09T01:46:40Z",1.5e3,true,null]},"c":"\u00e9\n"}"#.to_vec(),
            8 => ethernet(&[], 0x0800, &ipv4(17, 0, &vxlan_to(8472, &ethernet(&[(0x8100, 3)], 0x0800, &ipv4(6, 0, &tcp(1, 2, 2, b"")))))),
            9 => ethernet(&[], 0x0800, &ipv4(17, 0, &gtp(1, &[1, 2], &ipv6(58, &[128, 0, 0, 0])))),
            10 => ethernet(&[], 0x0800, &ipv4(17, 0, &geneve(0x6558, 2, &ethernet(&[], 0x0800, &ipv4(47, 0, &erspan(true, &question)))))),
            11 => ethernet(&[], 0x0800, &ipv4(17, 0, &l2tp(true, &[0xff, 3, 0, 0x21], &ipv4(47, 0, &pptp(&[0x57], &ipv6(17, &question)))))),
            6 => b"HDR_VERSION 1.0\nUTC_START 2013-07-02-01:37:40\nSOURCE J0437 # x\nTSAMP 1e-3\n\0".to_vec(),
            7 => [&b"\x0c\0\0\0HEADER_START\x0b\0\0\0source_name\x02\0\0\0ab\x05\0\0\0tsamp"[..], &[1; 8], b"\x0a\0\0\0HEADER_END"].concat(),
            4 => [&[0x53, 4, 2, 6, 0, 0, 0, 2][..], &[0x80, 1, 0, 0, 0, 0, 0, 7], &[0x80, 2, 0, 0, 0, 0, 0, 7]].concat(),
            _ => [&[7, 0, 0, 0, 5, 0, 0, 28, 8, 0, 0, 0, 0, 0, 0, 0][..], &[9; 48]].concat(),
        };
        for (at, byte) in damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        let cut = cut.index(2 * data.len());
        data.truncate(cut);
        let schema = everything();
        check(&schema, &Element { link_type: Some(1), ..Element::of(&data) }, wanted);
    }
}

/// Fewer buffers, other buffers and full ones do no harm either.
#[test]
fn wrong_buffers_are_no_trouble() {
    let everything = everything();
    let mut extractor = Extractor::new(&everything);
    let packet = ethernet(&[], 0x0800, &ipv4(6, 0, &tcp(7, 443, 2, &hello(b"example.org"))));
    let element = Element { link_type: Some(1), ..Element::of(&packet) };
    extractor.extract(&element, &mut []);
    let mut reversed = buffers(&everything, 1);
    reversed.reverse();
    extractor.extract(&element, &mut reversed);
    extractor.extract(&element, &mut reversed);
    assert!(reversed.iter().all(|buffer| buffer.len() == 1));
    // More than is looked at.
    let long = vec![b'['; 1 << 20];
    let element = Element { data: &long, ..element };
    check(&everything, &element, u64::MAX);
}
