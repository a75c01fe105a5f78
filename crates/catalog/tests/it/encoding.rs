//! Byte form of operations: golden file, round trips, and damaged bytes.

use holdfast_catalog::{
    Attribute, Change, Choice, ContentHash, DecodeError, DisputeKind, FactKind, HlcTime, Name, Nanos,
    ObjectId, OpId, Operation, ReplicaPlace, ReplicaState, Right, SiteId, Tag, Value, VersionVector, decode,
    encode,
};
use proptest::prelude::*;

/// Bytes of format version 1 in hexadecimal, kept for ever.
const GOLDEN: &str = include_str!("../golden/operation-v1.hex");

fn site(number: u64) -> SiteId {
    SiteId::new(number).unwrap()
}

fn object(number: u8) -> ObjectId {
    ObjectId::from_parts(1_800_000_000_000, &[number; 10])
}

/// Operation with the first kinds of changes, but for deletions, which stand alone.
fn rich() -> Operation {
    let id = OpId { site: site(0x7fff_ffff_ffff_ffff), seq: 300 };
    let tag = Tag { op: id, index: 2 };
    let stamp = holdfast_catalog::Hlc { time: HlcTime::new(1_800_000_000_000, 7), site: site(5) };
    let name = |text: &str| Name::new(text).unwrap();
    let place = ReplicaPlace { site: site(5), vault: "tape".into(), key: "a/b".into() };
    let (x, y) = (object(1), object(2));
    let attribute = |value: Value, unit: Option<&str>| Change::AddAttribute {
        object: x,
        attribute: Attribute { name: "ä".into(), value, unit: unit.map(str::to_owned) },
    };
    let changes = vec![
        Change::MakeCollection { object: y, parent: ObjectId::ROOT, name: name("c") },
        Change::MakeObject { object: x, parent: y, name: name("x\n\u{1f52d}") },
        Change::AddVersion {
            object: x,
            size: 1 << 40,
            hash: ContentHash([0xab; 32]),
            time: Nanos(-1),
            home: site(5),
        },
        Change::SetCurrent { object: x, version: tag, replaces: Some(stamp) },
        Change::SetName { object: object(3), parent: y, name: name("y"), replaces: stamp },
        Change::SetReplica { object: x, place: place.clone(), version: tag, state: ReplicaState::Verified },
        Change::RemoveReplica { object: x, place },
        attribute(Value::from("text"), None),
        attribute(Value::Integer(-300), Some("kB")),
        attribute(Value::float(1.5).unwrap(), Some("s")),
        attribute(Value::Time(Nanos(i64::MIN)), None),
        Change::RemoveAttributes { object: x, tags: vec![tag] },
        Change::AddAnnotation { object: x, author: "ann".into(), text: "note".into() },
        Change::RemoveAnnotations { object: x, tags: vec![tag, tag] },
        Change::Restore { object: x },
    ];
    let after = VersionVector::from_iter([(site(5), 129), (site(6), 1)]);
    Operation { id, time: HlcTime::new(1_800_000_000_001, u16::MAX), after, under: vec![y], changes }
}

fn deletion() -> Operation {
    let saw = VersionVector::from_iter([(site(1), 4), (site(2), 1 << 40)]);
    let (id, time) = (OpId { site: site(1), seq: 5 }, HlcTime::new(1, 0));
    let changes = vec![Change::Trash { object: object(1), saw, moved: vec![object(2)] }];
    Operation { id, time, after: VersionVector::default(), under: vec![], changes }
}

/// Operation with the kinds of changes that were added later.
fn marks() -> Operation {
    let (id, time) = (OpId { site: site(2), seq: 6 }, HlcTime::new(2, 1));
    let (object, lost) = (object(1), holdfast_catalog::Hlc { time: HlcTime::new(1, 2), site: site(3) });
    let changes = vec![
        Change::Settle { object, kind: DisputeKind::Name, lost, choice: Choice::Flip },
        Change::Settle { object, kind: DisputeKind::Contents, lost, choice: Choice::Keep },
        Change::SetGrant { object, subject: "ann".into(), right: Some(Right::Write) },
        Change::SetGrant { object: ObjectId::ROOT, subject: "all".into(), right: None },
    ];
    Operation { id, time, after: VersionVector::default(), under: vec![], changes }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Operation that sets and removes facts.
fn facts() -> Operation {
    let (id, time) = (OpId { site: site(3), seq: 7 }, HlcTime::new(3, 2));
    let fact =
        |kind, body: Option<&str>| Change::SetFact { kind, key: "k".into(), body: body.map(Into::into) };
    let changes = vec![fact(FactKind::Site, Some("{}")), fact(FactKind::HoldState, None)];
    Operation { id, time, after: VersionVector::default(), under: vec![], changes }
}

/// Operation that removes contents for ever.
fn purge() -> Operation {
    let (id, time) = (OpId { site: site(5), seq: 9 }, HlcTime::new(5, 4));
    let changes = vec![Change::Purge { object: object(1) }, Change::Purge { object: object(2) }];
    Operation { id, time, after: VersionVector::default(), under: vec![], changes }
}

/// Operation that makes a link.
fn link() -> Operation {
    let (id, time) = (OpId { site: site(6), seq: 10 }, HlcTime::new(6, 5));
    let (object, target) = (object(1), object(2));
    let changes =
        vec![Change::MakeLink { object, parent: ObjectId::ROOT, name: Name::new("l").unwrap(), target }];
    Operation { id, time, after: VersionVector::default(), under: vec![], changes }
}

/// Operation without changes, which only acknowledges others.
fn acknowledgement() -> Operation {
    let (id, time) = (OpId { site: site(4), seq: 8 }, HlcTime::new(4, 3));
    let after = VersionVector::from_iter([(site(1), 5), (site(3), 7)]);
    Operation { id, time, after, under: vec![], changes: vec![] }
}

#[test]
fn the_bytes_of_version_1_never_change() {
    let operations = [rich(), deletion(), marks(), facts(), acknowledgement(), purge(), link()];
    let written: String = operations.iter().map(|op| hex(&encode(op).unwrap()) + "\n").collect();
    assert_eq!(written, GOLDEN);
    for (line, expected) in GOLDEN.lines().zip(operations) {
        let bytes: Vec<u8> =
            (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect();
        assert_eq!(decode(&bytes).unwrap(), expected);
    }
}

#[test]
fn damaged_bytes_are_refused_or_differ() {
    let bytes = encode(&rich()).unwrap();
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(decode(&changed).ok() != Some(rich()) || at == 0, "bit {bit} of byte {at} is ignored");
        }
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(decode(&longer), Err(DecodeError::Damaged { .. })));
    let newer = [&[2], &bytes[1..]].concat();
    assert_eq!(
        decode(&newer).unwrap_err().to_string(),
        "cannot decode an operation: it has format version 2, and this software reads version 1; update the software"
    );
}

#[test]
fn operations_that_break_a_rule_are_neither_written_nor_read() {
    let mut mixed = deletion();
    mixed.changes.push(Change::Restore { object: object(1) });
    let mut root = deletion();
    root.changes = vec![Change::Restore { object: ObjectId::ROOT }];
    let mut empty = deletion();
    empty.changes.clear();
    let mut purged_twice = purge();
    purged_twice.changes.push(Change::Purge { object: object(2) });
    let mut idle = acknowledgement();
    idle.under.push(object(1));
    let mut zero = deletion();
    zero.id.seq = 0;
    let mut own = deletion();
    own.after.raise(own.id.site, 1);
    let mut twice = rich();
    twice.changes.push(twice.changes[0].clone());
    let mut long = rich();
    long.changes =
        vec![Change::AddAnnotation { object: object(1), author: "a".into(), text: "x".repeat(70_000) }];
    for (number, op) in [mixed, root, empty, purged_twice, idle, zero, own, twice, long].iter().enumerate() {
        assert!(matches!(encode(op), Err(DecodeError::Invalid(_))), "operation {number}");
    }
}

proptest! {
    #[test]
    fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[&[1], &bytes[..]].concat());
    }
}
