//! Attributes of JSON documents: paths of every kind, and every type.

use crate::attributes::{check, schema};
use holdfast_attributes::Element;

/// What is a document here is one for another parser, too, and the other way round.
pub fn run(data: &[u8]) {
    let schema = schema(&[
        "event_time:time=json:at",
        "a:int=json:a",
        "b:uint=json:a",
        "c:float=json:b[1].c",
        "d:text=json:b[1].\"d.e\"",
        "e:bool=json:b[0]",
        "f:ip=json:b[1].f",
        "g:mac=json:b[1].g",
        "h:text=json:[0]",
    ]);
    let undecodable = check(&schema, &Element::of(data));
    // A longer one is not looked at to its end.
    if data.len() <= holdfast_attributes::MAX_DATA {
        let other = std::str::from_utf8(data).is_ok_and(is_document);
        assert_eq!(!undecodable, other, "{}", String::from_utf8_lossy(data));
    }
}

/// Half a character in a string is none of a parser's business as long as nobody asks for its text, and neither is how large a
/// number is.
fn is_document(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Documents that have what is asked for, and one that is deep.
pub fn seeds() -> Vec<Vec<u8>> {
    let deep = format!("{{\"a\":1,\"x\":{}{}}}", "[{\"y\":[".repeat(200), "]}]".repeat(200));
    let texts = [
        r#"{"at":"2026-11-22T10:05:00.25+01:00","a":-7,"b":[true,{"c":1.5e-3,"d.e":"\u00e9\ud83d\ude00\n","f":"::1"}]}"#,
        r#" { "a" : 18446744073709551615 , "b" : [ null , { "g" : "aa:bb:cc:dd:ee:ff" , "f" : "10.0.0.1" } ] , "at" : 1e9 } "#,
        r#"["text", 0.0, -0, 1E+2, [], {}, "", "\"\\\/\b\f\n\r\t", {"a":{"a":{}}}, [[[1]]]]"#,
        &deep,
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
