//! Test that extraction does not allocate (promise 1: memory is fixed).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use allocation_counter::measure;
use common::packets::{dns, ethernet, gre, gtp, hello, ipv4, ipv6, mpls, tcp, udp, vxlan_to};
use common::{buffers, schema};
use holdfast_attributes::{Element, Extractor};

#[test]
fn extracting_allocates_nothing() {
    let schema = schema(&[
        "packets",
        "packets:inner_protocol,inner_src_port,inner_dst_port,vni,community_id,inner_community_id,vxlan=8472",
        "vdif:station,event_time",
        "start:time=dada:UTC_START",
        "source:text=dada:SOURCE",
        "tstart:time=sigproc:tstart",
        "name:text=sigproc:source_name",
        "spead:heap,items",
        "text:text=json:text",
        "when:time=json:list[1].at",
        "who:ip=json:list[0]",
        "temp:float=json:temp",
        "a:uint=at:0:u32le",
        "b:text=at:3:text7",
        "c:ip=at:1:ipv6",
        "d:time=at:2:u32le",
        "given:uint=given",
        "said:text=given",
    ]);
    let mut extractor = Extractor::new(&schema);
    let fixed = common::schema(&["a:uint=at:0:u32le", "b:text=at:3:text7", "c:time=at:2:i64le"]);
    let many = Extractor::new(&fixed);
    let question = dns(&[b"www", b"example", b"org"]);
    let elements = [
        ethernet(&[(0x8100, 3)], 0x0800, &ipv4(17, 0, &udp(53, 7, &question))),
        ethernet(&[], 0x86dd, &ipv6(6, &tcp(7, 443, 2, &hello(b"example.org")))),
        ethernet(&[], 0x86dd, &ipv6(0, &[17, 0, 1])),
        br#"{"text":"\u00e9\n","list":["10.0.0.1",{"at":"2001-09-09T01:46:40+01:00"}],"temp":-1.25e-3,"x":[[{}]]}"#.to_vec(),
        br#"{"text":"\ud800","list":[7,{"at":1e9}],"temp":1.7976931348623157e308}"#.to_vec(),
        b"{\"text\":".to_vec(),
        [&[0x53, 4, 2, 6, 0, 0, 0, 1][..], &[0x80, 1, 0, 0, 0, 0, 0, 7]].concat(),
        [&[7, 0, 0, 0, 5, 0, 0, 28, 8, 0, 0, 0, 0, 0, 0, 0][..], &[9; 48]].concat(),
        b"HDR_VERSION 1.0\nUTC_START 2013-07-02-01:37:40\nSOURCE J0437 # x\n\0".to_vec(),
        [&b"\x0c\0\0\0HEADER_START\x0b\0\0\0source_name\x02\0\0\0ab\x06\0\0\0tstart"[..], &[1, 0, 0, 0, 0, 0, 0xec, 0x40], b"\x0a\0\0\0HEADER_END"].concat(),
        vec![b'['; 70_000],
        Vec::new(),
        ethernet(&[], 0x0800, &ipv4(47, 0, &gre(0x20, 0x8847, &mpls(&ipv4(4, 0, &ipv6(17, &udp(1, 2, b""))))))),
        ethernet(&[], 0x0800, &ipv4(17, 0, &vxlan_to(8472, &ethernet(&[], 0x0800, &ipv4(6, 0, &tcp(1, 2, 2, b"")))))),
        ethernet(&[], 0x0800, &ipv4(17, 0, &gtp(0, &[1, 2], &ipv4(1, 0, &[8, 0, 0, 0])))),
    ];
    let header = b"\x08\0\x07\0\0\0\0\0\0\0\x03\0yes";
    let mut cells = buffers(&schema, 100 * elements.len());
    let mut columns = buffers(&fixed, 1000);
    let mut undecodable = 0;
    let allocated = measure(|| {
        for _ in 0..100 {
            for data in &elements {
                let element = Element { link_type: Some(1), header: Some(header), ..Element::of(data) };
                undecodable += u64::from(extractor.extract(&element, &mut cells).undecodable);
            }
        }
        many.fixed().unwrap().extract_many(&elements[10][..20_000], 20, &mut columns);
    });
    assert!(
        cells.iter().all(|buffer| buffer.len() == 1500 && buffer.nulls() < 1500),
        "it was really at work"
    );
    assert!(undecodable > 0 && columns[0].len() == 1000);
    assert_eq!(allocated.count_total, 0);
}
