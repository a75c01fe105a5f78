//! Tests of JSON documents: every value at every path against another parser; invalid documents are reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{read, schema};
use holdfast_attributes::{Element, Inference, JsonLookup, JsonValue, MAX_DATA, Path, Schema};
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

fn looked_up<'a>(path: &str, document: &'a [u8]) -> Option<JsonValue<'a>> {
    JsonLookup::new(&path.parse().unwrap()).find(document)
}

#[test]
fn a_value_is_found_as_it_is_written() {
    let document = r#" {"a":{"b":[10,-2.50,"x\n\u00e9"," "]},"t":true,"n":null,"o":{"k": [1, {}]},"a":7} "#;
    let text = |path| looked_up(path, document.as_bytes()).and_then(|value| value.text().map(String::from));
    for (path, wanted) in [
        ("a.b[0]", Some("10")),
        ("a.b[1]", Some("-2.50")),
        ("a.b[2]", Some("x\né")),
        ("a.b", Some(r#"[10,-2.50,"x\n\u00e9"," "]"#)),
        ("o", Some(r#"{"k": [1, {}]}"#)),
        ("o.k[1]", Some("{}")),
        ("t", Some("true")),
        ("n", None),
        ("a.b[4]", None),
        ("a.c", None),
        ("t.x", None),
        ("[0]", None),
    ] {
        assert_eq!(text(path).as_deref(), wanted, "{path}");
    }
    for broken in ["", "{", r#"{"a":1"#, r#"{"a":1} x"#, "not json"] {
        assert_eq!(looked_up("a", broken.as_bytes()), None, "{broken}");
    }
    assert_eq!(looked_up("a", b"{\"a\":\"\xff\"}"), None);
    assert_eq!(looked_up("a", br#"{"a":"\ud800"}"#).and_then(JsonValue::text), None);
    let long = format!("{{\"pad\":\"{}\",\"a\":5}}", "x".repeat(2 * MAX_DATA));
    assert_eq!(looked_up("a", long.as_bytes()).and_then(JsonValue::int), Some(5));
}

#[test]
fn paths_end_where_their_text_ends() {
    for wrong in ["", "a.", "a[", "a[x]", "a]b", "a,b", "\"a", "[70000]"] {
        assert!(wrong.parse::<Path>().is_err(), "{wrong}");
    }
    let path: Path = "\"a.b\"[2].c".parse().unwrap();
    assert_eq!(path.to_string(), "\"a.b\"[2].c");
}

/// Documents with few keys, so that paths meet values.
fn nested_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        "[a-zé\"\\\\\n\u{1f600}]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[abc.]{1,2}", inner, 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    /// Every value at every path is what another parser finds there.
    #[test]
    fn lookups_agree_with_another_parser(document in nested_values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
        let text = text.unwrap();
        let mut all = vec![(String::new(), &document)];
        let mut at = 0;
        while let Some((path, value)) = all.get(at).cloned() {
            at += 1;
            match value {
                Value::Array(items) if path.is_empty() => {
                    all.extend(items.iter().enumerate().map(|(n, item)| (format!("[{n}]"), item)));
                }
                Value::Array(items) => {
                    all.extend(items.iter().enumerate().map(|(n, item)| (format!("{path}[{n}]"), item)));
                }
                Value::Object(members) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    all.extend(members.iter().map(|(key, item)| (format!("{path}{dot}\"{key}\""), item)));
                }
                _ => {}
            }
        }
        for (path, value) in all.iter().filter(|(path, _)| !path.is_empty()) {
            let found = looked_up(path, text.as_bytes());
            let int = found.and_then(JsonValue::int);
            if let Some(float) = value.as_f64().filter(|_| value.is_f64()) {
                // `1e3` and `5.0` are whole numbers here.
                let is_near = |int: i64| (int.to_string().parse::<f64>().unwrap() - float).abs() < 0.5;
                prop_assert!(int.is_none_or(is_near), "{}", path);
            } else {
                prop_assert_eq!(int, value.as_i64(), "{}", path);
            }
            prop_assert_eq!(found.and_then(JsonValue::float), value.as_f64(), "{}", path);
            prop_assert_eq!(found.and_then(JsonValue::bool), value.as_bool(), "{}", path);
            let string = found.and_then(JsonValue::string);
            prop_assert_eq!(string.as_deref(), value.as_str(), "{}", path);
            let any = found.and_then(JsonValue::text);
            match value {
                Value::Null => prop_assert!(any.is_none()),
                Value::String(said) => prop_assert_eq!(any.as_deref(), Some(said.as_str())),
                Value::Array(_) | Value::Object(_) if pretty => {
                    prop_assert!(text.contains(any.as_deref().unwrap()), "{}", path);
                }
                other => {
                    let written = other.to_string();
                    prop_assert_eq!(any.as_deref(), Some(written.as_str()), "{}", path);
                }
            }
        }
        let longest = all.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
        let nowhere = format!("{}x", "y".repeat(longest));
        prop_assert_eq!(looked_up(&nowhere, text.as_bytes()), None);
    }

    /// Inference takes any bytes, and all that it infers is a schema that can be stored and read back.
    #[test]
    fn inferred_schemas_read_back(documents in prop::collection::vec(nested_values(), 0..6), noise in ".{0,20}") {
        let mut inference = Inference::default();
        let _ = inference.look(noise.as_bytes());
        for document in &documents {
            let text = serde_json::to_string(document).unwrap();
            prop_assert_eq!(inference.look(text.as_bytes()), document.is_object());
        }
        let schema = inference.schema(&Schema::default(), |_| true);
        prop_assert_eq!(Schema::parse(&schema.text()).unwrap(), schema);
    }
}

/// Fields that have no room, or keys that no attribute has, are named; a field that an explicit attribute reads is not.
#[test]
fn fields_that_are_left_out_are_named() {
    let mut inference = Inference::default();
    assert!(inference.look(br#"{"a":1,"bad\nkey":2,"b":{"c":3},"list":[1],"never":null,"d":4}"#));
    let explicit = Schema::typed(["mine:int=json:d"]).unwrap();
    let all = inference.schema(&explicit, |_| true);
    assert_eq!(all.len(), 3);
    assert_eq!(inference.left_out(&all), Some(r"bad\nkey".to_owned()));
    let some = inference.schema(&explicit, |schema| schema.len() < 3);
    assert_eq!(inference.left_out(&some), Some(r"bad\nkey, b.c".to_owned()));
    let fields: Vec<String> = (0..100).map(|number| format!("\"k{number}\":1")).collect();
    let mut many = Inference::default();
    assert!(many.look(format!("{{{}}}", fields.join(",")).as_bytes()));
    let schema = many.schema(&Schema::default(), |_| true);
    let told: Vec<String> = (64..80).map(|number| format!("k{number}")).collect();
    assert_eq!(many.left_out(&schema), Some(format!("{}, 20 more", told.join(", "))));
    let fields: Vec<String> = (0..300).map(|number| format!("\"k{number}\":1")).collect();
    let mut more = Inference::default();
    assert!(more.look(format!("{{{}}}", fields.join(",")).as_bytes()));
    let told = more.left_out(&more.schema(&Schema::default(), |_| true)).unwrap();
    assert!(told.starts_with("k64, k65, ") && told.ends_with(", further ones"), "{told}");
    let mut whole = Inference::default();
    assert!(whole.look(br#"{"a":1,"list":[1],"never":null}"#));
    assert_eq!(whole.left_out(&whole.schema(&Schema::default(), |_| true)), None);
}

fn inferred(explicit: &[&str], documents: &[&str]) -> Vec<String> {
    let mut inference = Inference::default();
    for document in documents {
        inference.look(document.as_bytes());
    }
    let schema = inference.schema(&Schema::typed(explicit).unwrap(), |_| true);
    schema.attributes().iter().map(ToString::to_string).collect()
}

#[test]
fn fields_become_attributes_of_the_types_of_their_values() {
    let documents = [
        r#"{"level":"info","n":1,"f":2,"up":true,"mixed":1,"late":null,"never":null,"list":[1,2]}"#,
        r#"{"level":"warn","n":-5,"f":2.5,"up":false,"mixed":"a","late":7,"host":{"name":"x","Cpu Load":0.5,"deep":{"z":1}}}"#,
        "no document",
        r#"{"level":null,"f":1.0,"mixed":true,"big":18446744073709551615}"#,
    ];
    assert_eq!(
        inferred(&[], &documents),
        [
            "level:text=json:level",
            "n:int=json:n",
            "f:float=json:f",
            "up:bool=json:up",
            "mixed:text=json:mixed",
            "late:int=json:late",
            "host_name:text=json:host.name",
            "host_cpu_load:float=json:host.Cpu Load",
            "host_deep_z:int=json:host.deep.z",
            "big:float=json:big",
        ]
    );
}

#[test]
fn names_that_are_taken_get_a_number() {
    let document = r#"{"time":1,"event_time":"x","a_b":1,"a":{"b":2},"A_b":3,"7":1,"":2,"n":5,"size":{"x":1},"own":1,"bad\nkey":1}"#;
    assert_eq!(
        inferred(&["own:float=json:n", "x:text=json:own"], &[document]),
        [
            "own:float=json:n",
            "x:text=json:own",
            "time_2:int=json:time",
            "event_time_2:text=json:event_time",
            "a_b:int=json:a_b",
            "a_b_2:int=json:a.b",
            "a_b_3:int=json:A_b",
            "_7:int=json:7",
            "_:int=json:\"\"",
            "size_x:int=json:size.x",
        ]
    );
    let many: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n},")).collect();
    let many = many.concat();
    let many = format!("{{{many}\"{}\":1}}", "long".repeat(20));
    assert_eq!(inferred(&[], &[&many]).len(), 64);
    let long = format!("{{\"{0}\":1,\"{0}x\":2}}", "long".repeat(20));
    let names = inferred(&[], &[&long]);
    assert!(names.iter().all(|name| name.split(':').next().unwrap().len() == 64), "{names:?}");
}
