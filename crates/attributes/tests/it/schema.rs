//! Tests of schemas as text: parsing and formatting round-trip; errors name the position (promise 8).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_attributes::{
    Attribute, From, Grown, MAX_ATTRIBUTE, Path, Problem, Schema, SchemaError, Step, Type,
};
use holdfast_format::{Class, MAX_COLUMNS, StreamRecord};
use proptest::prelude::*;
use std::path::PathBuf;

fn attribute(text: &str) -> Attribute {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wrong(text: &str) -> SchemaError {
    text.parse::<Attribute>().unwrap_err()
}

#[test]
fn what_is_typed_is_what_is_kept() {
    for text in [
        "temp:float=json:sensors[0].temp,unit=K,comment=mixer",
        "beam:uint=at:4:u16be",
        "frame:uint=at:4:u32le:bits0..24",
        "snr:float=at:8:f32le",
        "_x1:int=at:0:i8",
        "flag:bool=at:65535:u8:bits7..8",
        "last:uint=at:65528:u64le:bits0..64",
        "event_time:time=at:0:f64be,unit=us",
        "event_time:time=json:t",
        "who:text=at:1:text1024,comment=a, b, and c=d",
        "raw:binary=at:1:bytes16",
        "a:ip=at:0:ipv6",
        "b:mac=at:0:mac",
        "c:text=json:\"a.b\"[3].\"\".\" \\\"\\\\\".ü x",
        "d:text=packet:dns_name,unit=names",
        "e:time=vdif:event_time",
        "e:time=vdif:event_time,rate=25000,comment=frames",
        "vni:uint=packet:vni,vxlan=8472+4790,comment=of the fabric",
        "c:text=packet:community_id",
        "f:uint=spead:timestamp,comment=ADC samples",
        "gain:float=given,unit=dB,comment=of the amplifier",
        "event_time:time=given",
    ] {
        let read = attribute(text);
        assert_eq!(read.to_string(), text);
        assert_eq!(read.kind().name(), text.split([':', '=']).nth(1).unwrap());
    }
    let temp = attribute("temp:float=json:sensors[0].temp,unit=K,comment=mixer");
    assert_eq!((temp.name(), temp.unit(), temp.comment()), ("temp", Some("K"), Some("mixer")));
    let From::Json(path) = temp.from() else { panic!("{temp}") };
    let key = |key: &str| Step::Key(key.to_owned());
    assert_eq!(path.steps(), [key("sensors"), Step::Index(0), key("temp")]);
    // What need not be in quotes is without them.
    assert_eq!(attribute("a:int=json:\"b\".\"c d\"").to_string(), "a:int=json:b.c d");
}

/// The column at which an attribute stops being right, and what is said.
#[test]
fn errors_name_the_place_and_what_would_be_right() {
    for (text, column, said) in [
        ("", 1, "a name has"),
        ("Temp:float=json:t", 1, "a name has"),
        ("1x:float=json:t", 1, "does not begin with a digit"),
        ("tempo-rary:float=json:t", 6, "`:` and a type"),
        ("temp", 5, "`:` and a type"),
        (
            "temp:",
            6,
            "unknown type ``: the types are int, uint, float, bool, time, text, binary, ipv4, mac, ipv6 and ip",
        ),
        ("temp:double=json:t", 6, "unknown type `double`"),
        ("temp:float", 11, "`=` and where the value comes from"),
        ("temp:float=", 12, "at:, json:, packet:, vdif:, spead:, dada: or sigproc:, or are given"),
        ("temp:float=csv:3", 12, "unknown origin `csv`"),
        ("temp:float=json", 16, "`:`"),
        ("temp:float=json:", 17, "a key"),
        ("temp:float=json:a.", 19, "a key"),
        ("temp:float=json:a[x]", 19, "a place in an array"),
        ("temp:float=json:a[65536]", 19, "from 0 to 65535"),
        ("temp:float=json:a[3", 20, "`]`"),
        ("temp:float=json:a]", 18, "`,unit=…`, `,comment=…` or the end"),
        ("temp:float=json:\"a", 19, "the `\"` at the end"),
        ("temp:float=json:\"\\n\"", 19, "`\"` or `\\`"),
        (
            "temp:binary=json:a",
            6,
            "`json:a` gives int, uint, float, bool, time, text, ipv4, mac, ipv6 and ip, not binary",
        ),
        ("a:float=at:x:u8", 12, "a number of bytes"),
        ("a:float=at:4", 13, "`:` and a layout"),
        ("a:uint=at:4:u16", 13, "unknown layout `u16`"),
        ("a:uint=at:4:u8le", 13, "unknown layout `u8le`"),
        ("a:text=at:4:text0", 13, "N from 1 to 1024"),
        ("a:text=at:4:text01", 13, "unknown layout"),
        ("a:text=at:4:text1025", 13, "unknown layout"),
        ("a:uint=at:65533:u32le", 11, "the field ends at byte 65537"),
        ("a:int=at:4:u64le", 3, "gives uint, bool and time, not int"),
        ("a:uint=at:4:f32le", 3, "gives float and time, not uint"),
        ("a:uint=at:4:u16le:bits", 23, "the lowest bit"),
        ("a:uint=at:4:u16le:bits3", 24, "`..`"),
        ("a:uint=at:4:u16le:bits3..3", 19, "A < B ≤ 16"),
        ("a:uint=at:4:u16le:bits3..17", 19, "A < B ≤ 16"),
        ("a:uint=at:4:u16le:x", 19, "`bitsA..B`"),
        ("a:int=at:4:i16le:bits0..1", 18, "only unsigned numbers"),
        ("a:uint=packet:sport", 15, "`packet` has no field `sport`: the fields are eth_src, eth_dst"),
        ("a:text=packet:src", 3, "`packet:src` gives ip, not text"),
        ("a:uint=vdif:beam", 13, "`vdif` has no field `beam`"),
        ("a:time=vdif:event_time,rate=0", 29, "a number of frames a second, from 1 to 16777216"),
        ("a:uint=vdif:second,rate=9", 19, "`,unit=…`"),
        ("a:ip=packet:inner_src,vxlan=0", 29, "1 to 4 port numbers"),
        ("a:ip=packet:inner_src,vxlan=1+2+3+4+5", 37, "1 to 4 port numbers"),
        ("a:ip=packet:src,vxlan=8472", 16, "`,unit=…`"),
        ("a:uint=spead:5", 14, "the fields are heap, heap_size"),
        ("slot:uint=json:a", 1, "`slot` is a column of every stream"),
        ("event_time:uint=json:a", 12, "its type must be time"),
        ("a:time=json:a,unit=min", 20, "counts s, ms, us or ns since 1970, not `min`"),
        ("a:time=vdif:event_time,unit=s", 8, "omit the unit"),
        ("a:time=given,unit=s", 8, "omit the unit"),
        ("a:uint=given:3", 13, "`,unit=…`"),
        ("a:uint=json:a,unit=", 20, "a unit"),
        ("a:uint=json:a,comment=", 23, "a comment"),
        ("a:uint=json:a,comment=x,unit=y", 0, ""),
        ("a:uint=json:a,unit=x,y", 21, "`,comment=…` or the end"),
        ("ä:uint=json:ß,nit=x", 1, "a name has"),
        ("a:uint=json:ß,nit=x", 14, "`,unit=…`"),
        ("a:uint=json:a,comment=a\nb", 24, "control characters"),
    ] {
        if column == 0 {
            // A comment is the rest of the text.
            assert_eq!(attribute(text).comment(), Some("x,unit=y"));
            continue;
        }
        let error = wrong(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert!(error.to_string().contains(&text.replace('\n', "\u{fffd}")), "{error}");
    }
    let long = format!("a:uint=json:a,unit={}", "x".repeat(33));
    assert_eq!(wrong(&long).problem, Problem::TooLong { what: "a unit", most: 32 });
    let long = format!("a:uint=json:a,comment={}", "x".repeat(257));
    assert_eq!(wrong(&long).problem, Problem::TooLong { what: "a comment", most: 256 });
    let long = format!("a:uint=json:{}", "x".repeat(MAX_ATTRIBUTE));
    assert_eq!(wrong(&long).problem, Problem::Attribute);
    assert!(wrong(&long).to_string().len() < 300);
    let deep = format!("a:uint=json:a{}", "[0]".repeat(16));
    assert_eq!((wrong(&deep).problem, wrong(&deep).column), (Problem::Steps, 59));
    assert_eq!(wrong(&format!("{}:int=json:a", "n".repeat(65))).problem, Problem::Name);
}

#[test]
fn presets_are_lists_of_attributes() {
    let names = |texts: &[&str]| {
        let schema = Schema::typed(texts).unwrap_or_else(|error| panic!("{texts:?}: {error}"));
        schema.attributes().iter().map(|attribute| attribute.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let packets = "eth_src eth_dst vlan ip_version src dst protocol src_port dst_port tcp_flags wire_len captured_len \
                   dns_name tls_name inner_src inner_dst";
    assert_eq!(names(&["packets"]), packets);
    assert_eq!(names(&["packets:src,dst"]), "src dst");
    assert_eq!(names(&["packets:dst", "a:uint=at:0:u8", "packets:src"]), "dst a src");
    assert_eq!(names(&["vdif"]), "event_time second epoch frame thread station bits channels legacy invalid");
    assert_eq!(names(&["vdif:frame"]), "frame");
    assert_eq!(
        names(&["packets:inner_protocol,inner_src_port,vni,community_id"]),
        "inner_protocol inner_src_port vni community_id"
    );
    let told = |text: &str| Schema::typed([text]).unwrap().text();
    let ports = told("packets:src,vni,inner_dst,vxlan=8472");
    assert_eq!(
        ports,
        "src:ip=packet:src\nvni:uint=packet:vni,vxlan=8472\ninner_dst:ip=packet:inner_dst,vxlan=8472\n"
    );
    assert_eq!(told("packets,vxlan=8472").matches(",vxlan=8472").count(), 2);
    assert_eq!(
        told("vdif:frame,event_time,rate=9"),
        "frame:uint=vdif:frame\nevent_time:time=vdif:event_time,rate=9\n"
    );
    assert!(told("vdif,rate=9").starts_with("event_time:time=vdif:event_time,rate=9\nsecond"));
    assert_eq!(names(&["spead"]), "heap heap_size heap_offset payload_len timestamp items");
    assert_eq!((names(&["none"]), names(&[])), (String::new(), String::new()));
    for (texts, column, said) in [
        (&["packet"][..], 1, "one of packets, vdif, spead, dada, sigproc, mcap and none"),
        (&["packets:src,vxlan=8472"], 23, "a field of tunnels"),
        (&["vdif:frame,rate=9"], 18, "the field `event_time`"),
        (&["packets:"], 9, "`packet` has no field ``"),
        (&["packets:src;dst"], 12, "`,` or the end"),
        (&["packets src"], 8, "`:` and some of the fields"),
        (&["none", "vdif"], 1, "`none` cannot be combined with other attributes"),
        (&["vdif", "none"], 1, "`none` cannot be combined with other attributes"),
        (&["nonesuch"], 1, "`NAME:TYPE=FROM`"),
        (&["packets:src,src"], 1, "duplicate attribute `src`"),
        (&["vdif", "frame:uint=at:0:u8"], 1, "duplicate attribute `frame`"),
    ] {
        let error = Schema::typed(texts).unwrap_err();
        assert_eq!(error.column, column, "{texts:?}: {error}");
        assert!(error.to_string().contains(said), "{texts:?}: {error}");
    }
    let many = |count| Schema::typed((0..count).map(|n| format!("a{n}:uint=at:0:u8")));
    assert_eq!(many(MAX_COLUMNS).unwrap().len(), 64);
    assert_eq!(many(MAX_COLUMNS + 1).unwrap_err().problem, Problem::TooMany);
}

/// The text that stands in rings: what this version writes, every later one reads.
#[test]
fn the_text_in_rings_stays_what_it_is() {
    let schema = Schema::typed([
        "packets:eth_src,eth_dst,vlan,ip_version,src,dst,protocol,src_port,dst_port,tcp_flags,wire_len,captured_len,\
         dns_name,tls_name",
        "event_time:time=json:\"odd.key\"[3].at,unit=ms,comment=from the camera, not from us",
        "beam:uint=at:4:u16be",
        "frame:uint=at:4:u32le:bits0..24",
        "snr:float=at:8:f32le,unit=σ",
        "offset:int=at:12:i64be,unit=ns",
        "valid:bool=at:20:u8",
        "site:text=at:24:text8",
        "digest:binary=at:32:bytes16",
        "v4:ipv4=at:48:ipv4",
        "v6:ipv6=at:52:ipv6",
        "port:mac=at:68:mac",
        "vdif_frame:uint=vdif:frame",
        "station:text=vdif:station",
        "heap:uint=spead:heap",
    ])
    .unwrap();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1/schema.txt");
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, schema.text()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(schema.text(), kept);
    assert_eq!(Schema::parse(&kept).unwrap(), schema);
    let classes: Vec<Class> = schema.classes().iter().collect();
    let wanted: Vec<Class> = schema.attributes().iter().map(|attribute| attribute.kind().class()).collect();
    assert_eq!((classes, schema.event_time()), (wanted, Some(14)));
}

#[test]
fn a_schema_fits_its_record() {
    let texts: Vec<String> =
        (0..64).map(|n| format!("a{n}:uint=at:0:u8,comment={}", "x".repeat(256 - 23 * (n % 2)))).collect();
    let fitting = (0..=64).rev().find(|count| Schema::typed(&texts[..*count]).is_ok()).unwrap();
    let len = |count: usize| texts[..count].iter().map(|text| text.len() + 1).sum::<usize>();
    assert!(
        len(fitting) <= StreamRecord::MAX_SCHEMA && len(fitting + 1) > StreamRecord::MAX_SCHEMA,
        "{fitting}"
    );
    assert_eq!(Schema::typed(&texts).unwrap_err().problem, Problem::TooLarge);
    assert_eq!(Schema::parse(&(texts.join("\n") + "\n")).unwrap_err().problem, Problem::TooLarge);
}

#[test]
fn a_schema_gets_longer_and_nothing_else() {
    let schema = |texts: &[&str]| Schema::typed(texts).unwrap();
    let old = schema(&["a:uint=at:0:u8", "b:uint=at:1:u8,comment=x"]);
    assert_eq!(old.extended_by(&old), Ok(()));
    assert_eq!(
        old.extended_by(&schema(&["a:uint=at:0:u8", "b:uint=at:1:u8,comment=x", "c:uint=at:2:u8"])),
        Ok(())
    );
    assert_eq!(Schema::default().extended_by(&old), Ok(()));
    let missing = Grown::Missing("b:uint=at:1:u8,comment=x".into());
    assert_eq!(old.extended_by(&old.version(1)), Err(missing));
    let changed =
        old.extended_by(&schema(&["a:uint=at:0:u8", "b:uint=at:1:u8", "c:uint=at:2:u8"])).unwrap_err();
    assert!(
        changed.to_string().contains("`b:uint=at:1:u8,comment=x` would become `b:uint=at:1:u8`"),
        "{changed}"
    );
    assert_eq!((old.version(1).len(), old.version(0).is_empty(), old.version(9)), (1, true, old));
}

/// Any attribute, as text.
fn texts() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["u8", "u16le", "u32be", "u64le", "u64be"]);
    let bits = prop::option::of((0..63u8, 1..64u8)).prop_map(|bits| {
        bits.map(|(from, count)| format!(":bits{from}..{}", (from + count).min(64))).unwrap_or_default()
    });
    let at = (0..66_000u32, number, bits).prop_map(|(at, number, bits)| format!("at:{at}:{number}{bits}"));
    let other =
        prop::sample::select(vec!["i32le", "f64be", "text9", "bytes1024", "ipv4", "ipv6", "mac", "i8"]);
    let other = (0..66_000u32, other).prop_map(|(at, layout)| format!("at:{at}:{layout}"));
    let step = prop_oneof![
        "[a-z ]{1,3}".prop_map(|key| format!(".{key}")),
        "[a-z.,\\[ü]{0,3}".prop_map(|key| format!(".\"{key}\"")),
        (0..70_000u32).prop_map(|index| format!("[{index}]")),
    ];
    let path = prop::collection::vec(step, 1..18)
        .prop_map(|steps| format!("json:{}", steps.concat().trim_start_matches('.')));
    let field = prop::sample::select(vec![
        "packet:src",
        "packet:wire_len",
        "vdif:frame",
        "vdif:event_time",
        "dada:UTC_START",
        "sigproc:tstart",
        "spead:heap",
    ]);
    let from = prop_oneof![at, other, path, field.prop_map(str::to_owned)];
    let kind = prop::sample::select(Type::ALL.to_vec());
    let unit = prop::option::of("(s|ms|[a-z/]{1,4})");
    let comment = prop::option::of("[a-z ,=:é]{1,20}");
    ("[a-z_][a-z0-9_]{0,5}", kind, from, unit, comment).prop_map(|(name, kind, from, unit, comment)| {
        let unit = unit.map(|unit| format!(",unit={unit}")).unwrap_or_default();
        let comment = comment.map(|comment| format!(",comment={comment}")).unwrap_or_default();
        format!("{name}:{kind}={from}{unit}{comment}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// What is read is written as something that is read as the same, and that stays as it is.
    #[test]
    fn text_and_schema_are_each_other(texts in prop::collection::vec(texts(), 0..6)) {
        let mut schema = Schema::default();
        let mut typed: Vec<String> = Vec::new();
        for text in texts {
            typed.push(text);
            match Schema::typed(&typed) {
                Ok(longer) => {
                    prop_assert_eq!(schema.extended_by(&longer), Ok(()));
                    schema = longer;
                }
                Err(error) => {
                    prop_assert!(error.column <= typed.last().unwrap().chars().count() + 1);
                    typed.pop();
                }
            }
        }
        prop_assert_eq!(schema.len(), typed.len());
        let text = schema.text();
        let again = Schema::parse(&text).unwrap();
        prop_assert_eq!(&again, &schema);
        prop_assert_eq!(again.text(), text);
    }

    /// Any text whatever has an answer.
    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,40}", tail in "[a-z0-9:=,.\\[\\]\"\\\\]{0,40}") {
        for text in [text.clone(), format!("a:uint={tail}"), format!("a:text=json:{tail}"), tail] {
            let _ = Schema::typed([&text]);
            if let Ok(schema) = Schema::parse(&text) {
                prop_assert_eq!(Schema::parse(&schema.text()), Ok(schema));
            }
        }
    }
}

/// Paths are compared by their steps.
#[test]
fn paths_are_equal_however_they_are_written() {
    let path = |text: &str| -> Path {
        match attribute(&format!("a:int=json:{text}")).from() {
            From::Json(path) => path.clone(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(path("a.b[1]"), path("\"a\".\"b\"[1]"));
    assert_ne!(path("a.b"), path("\"a.b\""));
}
