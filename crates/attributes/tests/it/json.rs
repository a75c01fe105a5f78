//! Tests of JSON documents: every value at every path against another parser; invalid documents are reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{read, schema};
use holdfast_attributes::{Element, MAX_DATA};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What one attribute, `TYPE=json:…`, finds in a document, and whether that is undecodable.
fn found(attribute: &str, document: &str) -> (String, bool) {
    let (values, outcome) = read(&schema(&[&format!("a:{attribute}")]), &Element::of(document.as_bytes()));
    (values[0].clone(), outcome.undecodable)
}

#[test]
fn values_become_what_the_schema_says() {
    for (attribute, document, value) in [
        ("int=json:x", r#"{"x":-7}"#, "-7"),
        ("int=json:x", r#"{"x":9223372036854775807}"#, "9223372036854775807"),
        ("int=json:x", r#"{"x":9223372036854775808}"#, ""),
        ("int=json:x", r#"{"x":-3.0e2}"#, "-300"),
        ("int=json:x", r#"{"x":1.5}"#, ""),
        ("int=json:x", r#"{"x":"7"}"#, ""),
        ("uint=json:x", r#"{"x":18446744073709551615}"#, "18446744073709551615"),
        ("uint=json:x", r#"{"x":1e3}"#, "1000"),
        ("uint=json:x", r#"{"x":-1}"#, ""),
        ("uint=json:x", r#"{"x":-0}"#, "0"),
        ("float=json:x", r#"{"x":0.1}"#, "0.1"),
        ("float=json:x", r#"{"x":3}"#, "3"),
        ("float=json:x", r#"{"x":1e999}"#, ""),
        ("bool=json:x", r#"{"x":true}"#, "true"),
        ("bool=json:x", r#"{"x":false}"#, "false"),
        ("bool=json:x", r#"{"x":1}"#, ""),
        ("text=json:x", r#"{"x":"a"}"#, "a"),
        ("text=json:x", r#"{"x":"\"\\\/\b\f\n\r\té😀"}"#, "\"\\/\u{8}\u{c}\n\r\té😀"),
        ("text=json:x", r#"{"x":7}"#, ""),
        ("text=json:x", r#"{"x":null}"#, ""),
        ("time=json:x", r#"{"x":"2001-09-09T01:46:40.5Z"}"#, "1000000000500000000"),
        ("time=json:x", r#"{"x":"yesterday"}"#, ""),
        ("time=json:x", r#"{"x":1000000000.000000001}"#, "1000000000000000001"),
        ("time=json:x,unit=ms", r#"{"x":1000000000001}"#, "1000000000001000000"),
        ("time=json:x,unit=ns", r#"{"x":7}"#, "7"),
        ("ipv4=json:x", r#"{"x":"10.0.0.1"}"#, "10.0.0.1"),
        ("ipv4=json:x", r#"{"x":"10.0.0"}"#, ""),
        ("ipv6=json:x", r#"{"x":"2001:DB8::1"}"#, "2001:db8::1"),
        ("ip=json:x", r#"{"x":"10.0.0.1"}"#, "10.0.0.1"),
        ("ip=json:x", r#"{"x":"::1"}"#, "::1"),
        ("mac=json:x", r#"{"x":"AA:bb:cc:00:01:02"}"#, "aa:bb:cc:00:01:02"),
        ("mac=json:x", r#"{"x":"aa-bb-cc-00-01-02"}"#, "aa:bb:cc:00:01:02"),
        ("mac=json:x", r#"{"x":"aa:bb:cc:00:01"}"#, ""),
        ("mac=json:x", r#"{"x":"aa:bb:cc:00:01:02:03"}"#, ""),
        ("mac=json:x", r#"{"x":"aa:bb-cc:00:01:02"}"#, ""),
        ("int=json:x", r#"{"y":1}"#, ""),
        ("int=json:x", "7", ""),
        ("int=json:[1]", " [ 1 , 2 ] ", "2"),
        ("int=json:a[1].b", r#"{"a":[{"b":1},{"b":2}]}"#, "2"),
        ("int=json:a[1].b", r#"{"a":{"1":{"b":2}}}"#, ""),
        ("int=json:\"a.b\".\"\"", r#"{"a":{"b":1},"a.b":{"":2}}"#, "2"),
        ("int=json:né", r#"{"n\u00e9":3}"#, "3"),
        ("int=json:ab", r#"{"a\u0062c":1,"a\u0062":3}"#, "3"),
    ] {
        assert_eq!(found(attribute, document), (value.to_owned(), false), "{attribute} of {document}");
    }
}

#[test]
fn a_text_with_half_of_a_character_is_undecodable() {
    for text in [r"\ud83d", r"\ud83dx", r"a\udc00", r"\ud83d\ud83d"] {
        let document = format!(r#"{{"x":"{text}","y":7}}"#);
        assert_eq!(found("text=json:x", &document), (String::new(), true), "{document}");
        assert_eq!(found("int=json:y", &document), ("7".to_owned(), false), "{document}");
    }
}

#[test]
fn of_what_is_told_twice_the_first_counts() {
    let document = r#"{"a":{"x":1},"a":{"x":2,"y":3},"b":null,"b":4}"#;
    for (attribute, value) in [("int=json:a.x", "1"), ("int=json:a.y", ""), ("int=json:b", "")] {
        assert_eq!(found(attribute, document), (value.to_owned(), false), "{attribute}");
    }
}

#[test]
fn what_is_no_document_is_null_in_all() {
    for document in [
        "",
        " ",
        r#"{"x":1"#,
        r#"{"x":1}}"#,
        r#"{"x":1} 2"#,
        r#"{"x":1,}"#,
        r#"{"x":1 "y":2}"#,
        r#"{"x":1,"y":[1,]}"#,
        r#"{"x":1,"y":{"z"}}"#,
        r#"{"x":1,"y":{1:2}}"#,
        r#"{"x":1,"y":[1}}"#,
        r#"{"x":1,"y":[}"#,
        r#"{"x":1,"y":01}"#,
        r#"{"x":1,"y":1.}"#,
        r#"{"x":1,"y":-}"#,
        r#"{"x":1,"y":nul}"#,
        r#"{"x":1,"y":"\x"}"#,
        r#"{"x":1,"y":"\u12g4"}"#,
        "{\"x\":1,\"y\":\"\n\"}",
        r#"{"x":1,"y":"}"#,
        r#"{"x":1,'y':2}"#,
        "[1 2]",
        "[,1]",
        "{,}",
        "tru",
        "NaN",
    ] {
        assert_eq!(found("int=json:x", document), (String::new(), true), "{document}");
    }
    let (values, outcome) = read(&schema(&["a:int=json:x"]), &Element::of(b"{\"x\":1,\"y\":\"\xff\"}"));
    assert_eq!((values[0].as_str(), outcome.undecodable), ("", true));
}

/// Deeper than any stack would bear.
#[test]
fn depth_has_no_end_but_the_element() {
    let depth = MAX_DATA / 2 - 16;
    let nested = format!("{{\"y\":{}{},\"x\":1}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(found("int=json:x", &nested), ("1".to_owned(), false));
    let mixed = format!("{{\"y\":{}1{},\"x\":1}}", "[{\"a\":".repeat(8000), "}]".repeat(8000));
    assert_eq!(found("int=json:x", &mixed), ("1".to_owned(), false));
    let crossed = format!("{{\"y\":{}1{},\"x\":1}}", "[{\"a\":".repeat(8000), "]}".repeat(8000));
    assert_eq!(found("int=json:x", &crossed), (String::new(), true));
}

#[test]
fn a_text_too_long_is_counted() {
    let schema = schema(&["a:text=json:a", "b:text=json:b"]);
    let document = json!({ "a": "x".repeat(1025), "b": "y".repeat(1024) }).to_string();
    let (values, outcome) = read(&schema, &Element::of(document.as_bytes()));
    assert_eq!((values[0].as_str(), values[1].len(), outcome.too_long), ("", 1024, 1));
    let document = json!({ "a": "\n".repeat(1025), "b": "\n".repeat(1024) }).to_string();
    let (values, outcome) = read(&schema, &Element::of(document.as_bytes()));
    assert_eq!((values[0].as_str(), values[1].len(), outcome.too_long), ("", 1024, 1));
}

/// Of an element that is longer than what is looked at, what stands there whole is told.
#[test]
fn a_document_that_goes_on_is_told_as_far_as_it_is_seen() {
    let schema = schema(&["a:int=json:a", "b:int=json:b"]);
    let document = |b: &str| format!("{{\"a\":1,{b}\"c\":\"{}\"}}", "é".repeat(MAX_DATA));
    let read = |document: &str| {
        let element = Element { size: document.len() as u64, ..Element::of(document.as_bytes()) };
        let (values, outcome) = read(&schema, &element);
        (values, outcome.undecodable)
    };
    let told = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    assert_eq!(read(&document("\"b\":2,")), (told("1", "2"), false));
    assert_eq!(read(&document("")), (told("1", ""), true));
    // What is beyond is not looked at, though it be given.
    let far = format!("{{\"a\":1,\"c\":\"{}\",\"b\":2}}", "x".repeat(MAX_DATA));
    let element = Element { data: far.as_bytes(), ..Element::of(far.as_bytes()) };
    let (values, outcome) = common::read(&schema, &element);
    assert_eq!((values, outcome.undecodable), (told("1", ""), true), "{}", far.len());
    // Of a number that lies across the edge nobody knows how it goes on.
    let across = format!("{{\"a\":1,\"b\":{}1234567890", " ".repeat(MAX_DATA - 16));
    assert_eq!(read(&across), (told("1", ""), true));
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-100..100i64).prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        "[a-c\"\\\\\né😀]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab.é\"\\\\]{0,2}", inner, 0..4)
                .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// All paths into a document, as they are typed, and what is there.
fn places(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
    if !path.is_empty() {
        all.push((path.to_owned(), value.clone()));
    }
    match value {
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| places(value, &format!("{path}[{at}]"), all));
        }
        Value::Object(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                let key = key.replace('\\', "\\\\").replace('"', "\\\"");
                places(value, &format!("{path}{dot}\"{key}\""), all);
            }
        }
        _ => {}
    }
}

proptest! {
    /// All values that a schema has room for are found at once, however the document is set.
    #[test]
    fn what_another_parser_finds_is_found(document in documents(), pretty: bool, missing in "[ab]{1,2}") {
        let mut all = Vec::new();
        places(&document, "", &mut all);
        all.push((format!("zz.{missing}"), Value::Null));
        all.truncate(20);
        let typed: Vec<String> = all
            .iter()
            .enumerate()
            .flat_map(|(at, (path, _))| {
                [("t", "text"), ("i", "int"), ("f", "float"), ("b", "bool")]
                    .map(|(name, kind)| format!("{name}{at}:{kind}=json:{path}"))
            })
            .take(64)
            .collect();
        let schema = schema(&typed.iter().map(String::as_str).collect::<Vec<_>>());
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        let (values, outcome) = read(&schema, &Element::of(text.unwrap().as_bytes()));
        prop_assert!(!outcome.undecodable);
        for (at, (_, value)) in all.iter().enumerate().take(values.len() / 4) {
            let wanted = [
                value.as_str().unwrap_or_default().to_owned(),
                value.as_i64().map(|n| n.to_string()).unwrap_or_default(),
                value.as_f64().map(|n| n.to_string()).unwrap_or_default(),
                value.as_bool().map(|n| n.to_string()).unwrap_or_default(),
            ];
            let whole = value.as_f64().is_some_and(|n| n.fract() == 0.0);
            for (which, wanted) in wanted.iter().enumerate() {
                // A number such as 3.0 is an integer here, and none there.
                if !(which == 1 && whole) {
                    prop_assert_eq!(&values[4 * at + which], wanted);
                }
            }
        }
    }

    /// Both parsers agree on what is a document.
    #[test]
    fn what_is_a_document_is_one_for_others_too(
        document in documents(), at in any::<prop::sample::Index>(), byte in "[{}\\[\\],:\"\\\\0-9eE.+\\- a\u{1f}]", cut: bool
    ) {
        let mut text = document.to_string().into_bytes();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte.as_bytes()[0] }
        let other = std::str::from_utf8(&text).is_ok_and(|text| {
            serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        });
        for path in ["json:a", "json:[0].a"] {
            let schema = schema(&[&format!("a:int={path}")]);
            let (_, outcome) = read(&schema, &Element::of(&text));
            prop_assert_eq!(!outcome.undecodable, other, "{}", String::from_utf8_lossy(&text));
        }
    }
}
