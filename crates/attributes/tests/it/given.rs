//! Tests of attributes that a producer sends (promises 5 and 8): each value is found whatever others precede it; a
//! truncated value or one of a wrong length is null and counted, never misread.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{buffers, cell, read, schema, shown};
use holdfast_attributes::{Cell, Element, Extractor, Type, Value, given};
use holdfast_base::Timestamp;
use holdfast_format::MAX_TEXT;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A value as its producer writes it, and what is to become of it.
#[derive(Clone, Debug)]
struct Given {
    /// `None`: a null.
    bytes: Option<Vec<u8>>,
    expected: ExpectedCell,
}

#[derive(Clone, Debug, PartialEq)]
enum ExpectedCell {
    Cell(OwnedCell),
    Null,
    TooLong,
    Undecodable,
}

/// A cell of its own.
#[derive(Clone, Debug, PartialEq)]
enum OwnedCell {
    Word(u64),
    Wide(u128),
    Bytes(Vec<u8>),
}

impl From<Cell<'_>> for OwnedCell {
    fn from(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Word(word) => Self::Word(word),
            Cell::Wide(wide) => Self::Wide(wide),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

fn given(bytes: &[u8], value: &Value<'_>) -> Given {
    Given { bytes: Some(bytes.to_vec()), expected: ExpectedCell::Cell(value.cell().into()) }
}

fn right(kind: Type) -> BoxedStrategy<Given> {
    let text = |kind: Type, text: &str| {
        let value = if kind == Type::Text { Value::Text(text) } else { Value::Binary(text.as_bytes()) };
        if text.len() > MAX_TEXT {
            return Given { bytes: Some(text.as_bytes().to_vec()), expected: ExpectedCell::TooLong };
        }
        given(text.as_bytes(), &value)
    };
    match kind {
        Type::Int => any::<i64>().prop_map(|n| given(&n.to_le_bytes(), &Value::Int(n))).boxed(),
        Type::Uint => any::<u64>().prop_map(|n| given(&n.to_le_bytes(), &Value::Uint(n))).boxed(),
        Type::Time => any::<i64>().prop_map(|n| given(&n.to_le_bytes(), &Value::Time(Timestamp(n)))).boxed(),
        Type::Float => any::<u64>()
            .prop_map(f64::from_bits)
            .prop_map(|n| given(&n.to_le_bytes(), &Value::Float(n)))
            .boxed(),
        Type::Bool => any::<u8>().prop_map(|n| given(&[n], &Value::Bool(n != 0))).boxed(),
        Type::Text | Type::Binary => prop_oneof![8 => ".{0,9}", 1 => "[a-z]{1000,1100}"]
            .prop_map(move |value| text(kind, &value))
            .boxed(),
        Type::Ipv4 => any::<[u8; 4]>().prop_map(|n| given(&n, &Value::Ipv4(n.into()))).boxed(),
        Type::Mac => any::<[u8; 6]>().prop_map(|n| given(&n, &Value::Mac(n))).boxed(),
        Type::Ipv6 => any::<[u8; 16]>().prop_map(|n| given(&n, &Value::Ipv6(n.into()))).boxed(),
        Type::Ip => prop_oneof![
            any::<[u8; 4]>().prop_map(|n| given(&n, &Value::Ip(IpAddr::V4(Ipv4Addr::from(n))))),
            any::<[u8; 16]>().prop_map(|n| given(&n, &Value::Ip(IpAddr::V6(Ipv6Addr::from(n))))),
        ]
        .boxed(),
    }
}

/// Bytes that are no value of this type; of `binary` there are none.
fn wrong(kind: Type) -> Given {
    match kind {
        Type::Text => Given { bytes: Some(vec![b'a', 0xff]), expected: ExpectedCell::Undecodable },
        Type::Binary => Given { bytes: None, expected: ExpectedCell::Null },
        _ => Given { bytes: Some(vec![1, 2, 3]), expected: ExpectedCell::Undecodable },
    }
}

fn any_value(kind: Type) -> impl Strategy<Value = (Type, Given)> {
    let null = Given { bytes: None, expected: ExpectedCell::Null };
    let value = prop_oneof![6 => right(kind), 1 => Just(null), 1 => Just(wrong(kind))];
    value.prop_map(move |value| (kind, value))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn what_is_given_is_found_again_and_what_is_cut_is_null(
        values in prop::collection::vec(prop::sample::select(Type::ALL.to_vec()).prop_flat_map(any_value), 1..20),
        more in prop::collection::vec(any::<u8>(), 0..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
        known in 1..25usize,
    ) {
        // Between them is an attribute from elsewhere; and there are more given, or fewer, than the schema has.
        let mut texts: Vec<String> =
            values.iter().enumerate().map(|(at, (kind, _))| format!("a{at}:{kind}=given")).collect();
        texts.truncate(known);
        texts.insert(texts.len() / 2, "x:uint=at:0:u8".to_owned());
        let schema = schema(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut header, mut places) = (Vec::new(), Vec::new());
        for (_, value) in &values {
            let start = header.len();
            header.extend(value.bytes.as_ref().map_or(u16::MAX, |bytes| bytes.len() as u16).to_le_bytes());
            header.extend(value.bytes.iter().flatten());
            places.push((start, header.len()));
        }
        header.extend(more);
        let cut = cut.map_or(header.len(), |cut| cut.index(header.len() + 1));
        header.truncate(cut);
        let (mut expected, mut undecodable, mut too_long, mut lost) = (Vec::new(), false, 0, false);
        for ((_, value), (start, end)) in values.iter().zip(&places).take(known) {
            let torn = *start < cut && cut < *end;
            lost |= torn || *start >= cut;
            undecodable |= torn || (!lost && value.expected == ExpectedCell::Undecodable);
            too_long += u32::from(!lost && value.expected == ExpectedCell::TooLong);
            expected.push(match &value.expected {
                ExpectedCell::Cell(own) if !lost => Some(own.clone()),
                _ => None,
            });
        }
        expected.insert(expected.len() / 2, Some(OwnedCell::Word(7)));
        let mut cells = buffers(&schema, 1);
        let element = Element { header: Some(&header), ..Element::of(&[7]) };
        let outcome = Extractor::new(&schema).extract(&element, &mut cells);
        let found: Vec<Option<OwnedCell>> = cells.iter().map(|buffer| cell(buffer, 0).map(OwnedCell::from)).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!((outcome.undecodable, outcome.too_long), (undecodable, too_long));
    }

    #[test]
    fn noise_is_taken(header in prop::collection::vec(prop_oneof![Just(0u8), Just(8), Just(255), any::<u8>()], 0..80)) {
        let texts: Vec<String> = Type::ALL.iter().map(|kind| format!("{kind}_:{kind}=given")).collect();
        let schema = schema(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut cells = buffers(&schema, 1);
        let element = Element { header: Some(&header), ..Element::of(b"") };
        Extractor::new(&schema).extract(&element, &mut cells);
        for (attribute, buffer) in schema.attributes().iter().zip(&cells) {
            prop_assert_eq!(buffer.len(), 1);
            shown(attribute.kind(), cell(buffer, 0));
        }
    }
}

#[test]
fn without_a_header_all_is_null_and_told_and_an_empty_one_is_one() {
    let schema = schema(&["event_time:time=given", "a:uint=given"]);
    let read = |header: Option<&[u8]>| {
        let mut cells = buffers(&schema, 1);
        let outcome =
            Extractor::new(&schema).extract(&Element { header, ..Element::of(b"data") }, &mut cells);
        (outcome.event_time, cell(&cells[1], 0).is_some(), outcome.undecodable)
    };
    assert_eq!(read(None), (None, false, true));
    assert_eq!(read(Some(b"")), (None, false, false));
    assert_eq!(read(Some(b"\x08\0\x07\0\0\0\0\0\0\0")), (Some(Timestamp(7)), false, false));
    assert_eq!(read(Some(b"\xff\xff\x08\0\x07\0\0\0\0\0\0\0")), (None, true, false));
}

#[test]
fn a_part_of_a_schema_finds_values_behind_those_that_nobody_wants() {
    let whole = schema(&["n:uint=at:0:u8", "a:text=given", "b:uint=given", "m:uint=at:1:u8", "c:text=given"]);
    let mut header = Vec::new();
    for value in [&b"first"[..], &7u64.to_le_bytes(), b"third"] {
        given::push(&mut header, Some(value));
    }
    let element = Element { header: Some(&header), ..Element::of(&[5, 6]) };
    let values = ["5", "first", "7", "6", "third"];
    assert_eq!(read(&whole, &element).0, values);
    for expected in 0..1 << whole.len() {
        let expected: Vec<usize> = (0..whole.len()).filter(|number| expected >> number & 1 == 1).collect();
        let (part, numbers) = whole.part(&expected);
        assert!(expected.iter().all(|number| numbers.contains(number)));
        assert!(numbers.iter().all(|number| expected.contains(number) || *number != 0 && *number != 3));
        assert!(read(&part, &element).0.into_iter().eq(numbers.iter().map(|number| values[*number])));
    }
    assert_eq!(whole.part(&[2]).1, [1, 2], "what stands behind the last one is not read");
}
