//! Byte form of snapshots: golden file, and damaged bytes.

use crate::random::Random;
use holdfast_catalog::{
    Attribute, CatalogError, CatalogState, Change, ContentHash, FactKind, Millis, Name, Nanos, ObjectId,
    ReplicaPlace, ReplicaState, Right, SiteId, Tag,
};
use proptest::prelude::*;
use std::time::Duration;

/// Bytes of format version 1 in hexadecimal, kept for ever.
const GOLDEN: &str = include_str!("../golden/snapshot-v1.hex");

const START: u64 = 1_800_000_000_000;

fn site(number: u64) -> SiteId {
    SiteId::new(number).unwrap()
}

/// State with a record of each kind, a compacted log, and operations that are not acknowledged yet.
fn rich() -> CatalogState {
    let (mut one, mut two) = (CatalogState::new(site(1)), CatalogState::new(site(2)));
    let mut random = Random::new(1);
    let [c, x, y, z, link] = [(); 5].map(|()| random.id(START));
    let name = |text: &str| Name::new(text).unwrap();
    let mut millis = START;
    let mut now = || {
        millis += 10;
        Millis(millis)
    };
    let version = Tag { op: one.next_op(), index: 2 };
    let place = ReplicaPlace { site: site(1), vault: "tape".into(), key: "a/b".into() };
    let attribute = Attribute::new("size", 3).with_unit("kB");
    let changes = vec![
        Change::MakeCollection { object: c, parent: ObjectId::ROOT, name: name("c") },
        Change::MakeObject { object: x, parent: c, name: name("x") },
        Change::AddVersion {
            object: x,
            size: 7,
            hash: ContentHash([0xab; 32]),
            time: Nanos(1),
            home: site(1),
        },
        Change::SetCurrent { object: x, version, replaces: None },
        Change::SetReplica { object: x, place, version, state: ReplicaState::Verified },
        Change::AddAttribute { object: x, attribute },
        Change::AddAnnotation { object: x, author: "ann".into(), text: "note".into() },
        Change::SetGrant { object: c, subject: "ann".into(), right: Some(Right::Write) },
        Change::SetFact { kind: FactKind::Site, key: "k".into(), body: Some("{}".into()) },
        Change::MakeObject { object: y, parent: c, name: name("y") },
        Change::MakeCollection { object: z, parent: ObjectId::ROOT, name: name("z") },
        Change::MakeLink { object: link, parent: z, name: name("l"), target: x },
    ];
    let exchange = |one: &mut CatalogState, two: &mut CatalogState, now: Millis| {
        for op in one.operations_beyond(two.vector(), 100).unwrap() {
            two.receive(op, now).unwrap();
        }
        for op in two.operations_beyond(one.vector(), 100).unwrap() {
            one.receive(op, now).unwrap();
        }
    };
    one.local(changes, vec![], now()).unwrap();
    exchange(&mut one, &mut two, now());
    for (state, new) in [(&mut one, "first"), (&mut two, "second")] {
        let replaces = state.node(y).unwrap().named;
        let rename = Change::SetName { object: y, parent: z, name: name(new), replaces };
        state.local(vec![rename], vec![z], now()).unwrap();
    }
    let deletion = two.deletion(x).unwrap();
    two.local(vec![deletion], vec![], now()).unwrap();
    exchange(&mut one, &mut two, now());
    assert!(one.compact(Duration::ZERO, now()).unwrap() > 0);
    one
}

fn exported(state: &mut CatalogState) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut collect = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    state.export_snapshot(&mut collect).unwrap();
    bytes
}

#[test]
fn the_bytes_of_version_1_never_change() {
    let mut state = rich();
    let bytes = exported(&mut state);
    let written = bytes.chunks(50).fold(String::new(), |text, line| {
        let line = line.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        text + &line + "\n"
    });
    assert_eq!(written, GOLDEN);
    let mut other = CatalogState::new(site(3));
    other.import_snapshot(&mut bytes.as_slice(), Millis(START)).unwrap();
    assert_eq!(other.records(), state.records());
    assert_eq!(exported(&mut other).len(), bytes.len());
    assert!(other.log().eq(state.log()));

    let mut newer = bytes;
    newer[8] = 2;
    assert_eq!(
        other.import_snapshot(&mut newer.as_slice(), Millis(START)).unwrap_err().to_string(),
        "cannot read a snapshot: it has format version 2, and this software reads version 1; update the software"
    );
}

#[test]
fn a_site_with_operations_that_a_snapshot_lacks_refuses_it() {
    let bytes = exported(&mut rich());
    let mut four = CatalogState::new(site(4));
    for number in 0..9 {
        let (key, body) = (number.to_string(), None);
        four.local(vec![Change::SetFact { kind: FactKind::Site, key, body }], vec![], Millis(START)).unwrap();
    }
    let before = four.digest();
    let refused = four.import_snapshot(&mut bytes.as_slice(), Millis(START)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot import a snapshot of site 1: it lacks operations of this site; \
         send these to that site first, and fetch a new snapshot"
    );
    assert_eq!(four.digest(), before);
    // The operations of a third site are kept.
    let mut three = CatalogState::new(site(3));
    for op in four.operations_beyond(&three.vector().clone(), 4).unwrap() {
        three.receive(op, Millis(START)).unwrap();
    }
    assert_eq!(three.vector().get(site(4)), 4);
    three.import_snapshot(&mut bytes.as_slice(), Millis(START)).unwrap();
    assert_eq!(three.vector().get(site(4)), 4);
}

#[test]
fn a_snapshot_of_a_clock_far_ahead_is_refused() {
    let mut three = CatalogState::new(site(3));
    let refused = three.import_snapshot(&mut exported(&mut rich()).as_slice(), Millis(START - 400_000));
    assert!(matches!(refused, Err(CatalogError::Clock(_))));
    assert!(three.vector().is_empty());
}

/// Damage of a snapshot.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Append(Vec<u8>),
    Replace(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let (at, bytes) = (any::<prop::sample::Index>, || prop::collection::vec(any::<u8>(), 1..40));
    prop_oneof![
        (at(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        at().prop_map(Damage::Cut),
        (at(), 1_usize..200).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at(), bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        bytes().prop_map(Damage::Append),
        bytes().prop_map(Damage::Replace),
    ]
}

fn damaged(mut bytes: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let end = bytes.len();
    match damage {
        Damage::Flip(at, bit) => bytes[at.index(end)] ^= 1 << bit,
        Damage::Cut(at) => bytes.truncate(at.index(end)),
        Damage::Remove(at, length) => {
            let at = at.index(end);
            bytes.drain(at..end.min(at + length));
        }
        Damage::Insert(at, new) => {
            let at = at.index(end);
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Append(new) => bytes.extend(new),
        Damage::Replace(new) => bytes = [b"HFCATSNP\x01", &new[..]].concat(),
    }
    bytes
}

proptest! {
    #[test]
    fn a_damaged_snapshot_is_refused_and_changes_nothing(damage in damage()) {
        let bytes = exported(&mut rich());
        let broken = damaged(bytes.clone(), &damage);
        prop_assume!(broken != bytes);
        let (mut state, mut four) = (CatalogState::new(site(3)), CatalogState::new(site(4)));
        let change = Change::SetFact { kind: FactKind::Site, key: "own".into(), body: None };
        state.receive(four.local(vec![change], vec![], Millis(START)).unwrap(), Millis(START)).unwrap();
        let before = (state.digest(), state.next_op());
        let refused = state.import_snapshot(&mut broken.as_slice(), Millis(START)).unwrap_err();
        prop_assert!(matches!(refused, CatalogError::Snapshot(_)), "{}", refused);
        prop_assert_eq!((state.digest(), state.next_op()), before);
    }
}
