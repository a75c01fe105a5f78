//! Merge rules, one small history each. Site A has made a tree; A and B then change it without knowing of each other.

use crate::random::Random;
use holdfast_catalog::{
    Attribute, CatalogError, CatalogState, Change, Conflict, Hlc, Millis, Name, Node, ObjectId, Operation,
    Readiness, ReplicaPlace, ReplicaState, SiteId, Tag, VersionVector, readiness,
};

/// Two sites that exchange operations when told to.
struct Pair {
    a: CatalogState,
    b: CatalogState,
    random: Random,
    millis: u64,
    conflicts: Vec<Conflict>,
}

impl Pair {
    fn new() -> Self {
        let site = |number| CatalogState::new(SiteId::new(number).unwrap());
        let (random, conflicts) = (Random::new(1), Vec::new());
        Self { a: site(1), b: site(2), random, millis: 1_800_000_000_000, conflicts }
    }

    fn now(&mut self) -> Millis {
        self.millis += 10;
        Millis(self.millis)
    }

    fn at_a(&mut self, change: Change, under: &[ObjectId]) -> Operation {
        let now = self.now();
        self.a.local(vec![change], under.to_vec(), now).unwrap()
    }

    fn at_b(&mut self, change: Change, under: &[ObjectId]) -> Operation {
        let now = self.now();
        self.b.local(vec![change], under.to_vec(), now).unwrap()
    }

    fn collection(&mut self, parent: ObjectId, name: &str) -> (ObjectId, Change) {
        let (object, name) = (self.random.id(self.millis), Name::new(name).unwrap());
        (object, Change::MakeCollection { object, parent, name })
    }

    fn object(&mut self, parent: ObjectId, name: &str) -> (ObjectId, Change) {
        let (object, name) = (self.random.id(self.millis), Name::new(name).unwrap());
        (object, Change::MakeObject { object, parent, name })
    }

    fn made_at_a(&mut self, parent: ObjectId, name: &str) -> ObjectId {
        let (object, change) = self.collection(parent, name);
        self.at_a(change, &[]);
        object
    }

    fn exchange(&mut self) {
        let now = self.now();
        for op in self.a.operations_beyond(self.b.vector(), usize::MAX).unwrap() {
            self.conflicts.extend(self.b.receive(op, now).unwrap().conflicts);
        }
        for op in self.b.operations_beyond(self.a.vector(), usize::MAX).unwrap() {
            self.conflicts.extend(self.a.receive(op, now).unwrap().conflicts);
        }
        assert_eq!(self.a.digest(), self.b.digest());
    }

    fn node(&self, id: ObjectId) -> &Node {
        self.a.node(id).unwrap()
    }

    fn rename(state: &CatalogState, object: ObjectId, parent: ObjectId, name: &str) -> Change {
        let replaces = state.node(object).unwrap().named;
        Change::SetName { object, parent, name: Name::new(name).unwrap(), replaces }
    }

    fn trash(state: &mut CatalogState, object: ObjectId) -> Change {
        state.deletion(object).unwrap()
    }
}

const ROOT: ObjectId = ObjectId::ROOT;

#[test]
fn equal_names_both_stay_and_the_later_is_numbered() {
    let mut pair = Pair::new();
    let (first, change) = pair.collection(ROOT, "run");
    pair.at_a(change, &[]);
    let (second, change) = pair.object(ROOT, "run");
    pair.at_b(change, &[]);
    let (taken, change) = pair.object(ROOT, "run_1");
    pair.at_b(change, &[]);
    pair.exchange();
    let shown = [first, second, taken].map(|id| pair.node(id).shown.clone());
    assert_eq!(shown, ["run", "run_2", "run_1"]);
    assert!(pair.conflicts.contains(&Conflict::SameName { object: second, shown: "run_2".into() }));

    // The number goes with the cause.
    let change = Pair::rename(&pair.a, first, ROOT, "walk");
    pair.at_a(change, &[]);
    pair.exchange();
    assert_eq!(pair.node(second).shown, "run");
}

#[test]
fn the_later_of_two_names_stays_and_both_sites_are_told() {
    let mut pair = Pair::new();
    let x = pair.made_at_a(ROOT, "x");
    pair.exchange();
    let change = Pair::rename(&pair.a, x, ROOT, "early");
    pair.at_a(change, &[]);
    let change = Pair::rename(&pair.b, x, ROOT, "late");
    let op = pair.at_b(change, &[]);
    pair.exchange();
    assert_eq!(pair.node(x).shown, "late");
    assert!(pair.conflicts.contains(&Conflict::Renamed { object: x, op: op.id }));
}

#[test]
fn concurrent_moves_into_each_other_make_no_cycle() {
    let mut pair = Pair::new();
    let (p, q) = (pair.made_at_a(ROOT, "p"), pair.made_at_a(ROOT, "q"));
    pair.exchange();
    let change = Pair::rename(&pair.a, p, q, "p");
    pair.at_a(change, &[q]);
    let change = Pair::rename(&pair.b, q, p, "q");
    pair.at_b(change, &[p]);
    pair.exchange();
    // The earlier move takes effect, the later one does not.
    assert_eq!((pair.node(p).parent, pair.node(q).parent), (q, ROOT));
    assert!(pair.conflicts.contains(&Conflict::CycleAvoided { object: q }));
}

#[test]
fn an_early_move_that_arrives_late_changes_the_fate_of_later_ones() {
    let mut pair = Pair::new();
    let [p, q, r] = ["p", "q", "r"].map(|name| pair.made_at_a(ROOT, name));
    pair.exchange();
    // A moves r into p first; B then moves p into r, and after that q into p.
    let change = Pair::rename(&pair.a, r, p, "r");
    pair.at_a(change, &[p]);
    let change = Pair::rename(&pair.b, p, r, "p");
    pair.at_b(change, &[r]);
    let change = Pair::rename(&pair.b, q, p, "q");
    pair.at_b(change, &[p, r]);
    pair.exchange();
    assert_eq!((pair.node(r).parent, pair.node(p).parent, pair.node(q).parent), (p, ROOT, p));
}

#[test]
fn a_concurrent_update_rescues_and_a_seen_one_does_not() {
    let mut pair = Pair::new();
    let (x, y) = (pair.made_at_a(ROOT, "x"), pair.made_at_a(ROOT, "y"));
    let add = |object| Change::AddAttribute { object, attribute: Attribute::new("a", 1) };
    pair.at_a(add(y), &[]);
    pair.exchange();
    let (change, other) = (Pair::trash(&mut pair.a, x), add(x));
    pair.at_a(change, &[]);
    pair.at_b(other, &[]);
    let change = Pair::trash(&mut pair.b, y);
    pair.at_b(change, &[]);
    pair.exchange();
    assert!(!pair.node(x).trashed && pair.node(y).trashed);
    assert!(pair.conflicts.contains(&Conflict::Rescued { object: x }));

    // A deletion that has seen the update is in force again.
    let change = Pair::trash(&mut pair.b, x);
    pair.at_b(change, &[]);
    pair.at_a(Change::Restore { object: y }, &[]);
    pair.exchange();
    assert!(pair.node(x).trashed && !pair.node(y).trashed);
}

#[test]
fn a_new_entry_rescues_the_collections_above_it() {
    let mut pair = Pair::new();
    let top = pair.made_at_a(ROOT, "top");
    let inner = pair.made_at_a(top, "inner");
    pair.exchange();
    let change = Pair::trash(&mut pair.a, top);
    pair.at_a(change, &[]);
    let (_, change) = pair.object(inner, "x");
    pair.at_b(change, &[top, inner]);
    pair.exchange();
    assert!(!pair.node(top).trashed);
}

#[test]
fn a_change_rescues_a_collection_into_which_its_object_was_moved_unseen() {
    let mut pair = Pair::new();
    let (top, x) = (pair.made_at_a(ROOT, "top"), pair.made_at_a(ROOT, "x"));
    pair.exchange();
    // B makes an operation, so that A knows of it.
    let (_, change) = pair.object(ROOT, "y");
    pair.at_b(change, &[]);
    pair.exchange();
    let change = Pair::rename(&pair.a, x, top, "x");
    pair.at_a(change, &[top]);
    let change = Pair::trash(&mut pair.a, top);
    assert!(matches!(&change, Change::Trash { moved, .. } if *moved == [x]));
    pair.at_a(change, &[]);
    pair.at_b(Change::AddAttribute { object: x, attribute: Attribute::new("a", 1) }, &[]);
    pair.exchange();
    assert!(!pair.node(top).trashed && pair.node(x).parent == top);
}

#[test]
fn records_of_replicas_rescue_nothing() {
    let mut pair = Pair::new();
    let (x, change) = pair.object(ROOT, "x");
    let op = pair.at_a(change, &[]);
    pair.exchange();
    let change = Pair::trash(&mut pair.a, x);
    pair.at_a(change, &[]);
    let place = ReplicaPlace { site: op.id.site, vault: "v".into(), key: "k".into() };
    let version = Tag { op: op.id, index: 0 };
    pair.at_b(Change::SetReplica { object: x, place, version, state: ReplicaState::Verified }, &[]);
    pair.exchange();
    assert!(pair.node(x).trashed);
}

#[test]
fn nothing_brings_a_purged_object_back() {
    let mut pair = Pair::new();
    let (x, change) = pair.object(ROOT, "x");
    pair.at_a(change, &[]);
    let add = || Change::AddAttribute { object: x, attribute: Attribute::new("a", 1) };
    pair.at_a(add(), &[]);
    let change = Pair::trash(&mut pair.a, x);
    pair.at_a(change, &[]);
    pair.exchange();
    // Concurrent changes arrive after the purge at one site, and before it at the other.
    pair.at_a(Change::Purge { object: x }, &[]);
    pair.at_b(Change::Restore { object: x }, &[]);
    pair.at_b(add(), &[]);
    let rename = Pair::rename(&pair.b, x, ROOT, "y");
    pair.at_b(rename, &[]);
    pair.exchange();
    assert!(pair.node(x).trashed && pair.a.attributes(x).next().is_none());
    pair.at_a(add(), &[]);
    pair.exchange();
    assert!(pair.node(x).trashed && pair.b.attributes(x).next().is_none());
}

#[test]
fn a_purged_collection_returns_empty_for_an_unseen_entry() {
    let mut pair = Pair::new();
    let top = pair.made_at_a(ROOT, "top");
    let (x, change) = pair.object(top, "x");
    pair.at_a(change, &[top]);
    pair.at_a(Change::AddAttribute { object: top, attribute: Attribute::new("a", 1) }, &[]);
    let change = Pair::trash(&mut pair.a, top);
    pair.at_a(change, &[]);
    pair.exchange();
    let now = pair.now();
    let purge = [x, top].map(|object| Change::Purge { object });
    pair.a.local(purge.to_vec(), vec![], now).unwrap();
    pair.at_b(Change::Restore { object: top }, &[]);
    let (y, change) = pair.object(top, "y");
    pair.at_b(change, &[top]);
    pair.exchange();
    assert!(!pair.node(top).trashed && !pair.node(y).trashed && pair.node(x).trashed);
    assert!(pair.a.attributes(top).next().is_none());
}

#[test]
fn a_concurrent_add_outlives_the_removal_of_the_same_triple() {
    let mut pair = Pair::new();
    let x = pair.made_at_a(ROOT, "x");
    let add = || Change::AddAttribute { object: x, attribute: Attribute::new("a", 1) };
    let first = pair.at_a(add(), &[]);
    pair.exchange();
    pair.at_a(Change::RemoveAttributes { object: x, tags: vec![first.tag(0)] }, &[]);
    let second = pair.at_b(add(), &[]);
    pair.exchange();
    let tags: Vec<Tag> = pair.a.attributes(x).map(|row| row.tag).collect();
    assert_eq!(tags, [second.tag(0)]);
}

#[test]
fn delivery_is_causal_across_sites() {
    let mut pair = Pair::new();
    let x = pair.made_at_a(ROOT, "x");
    pair.exchange();
    let op = pair.at_b(Change::AddAttribute { object: x, attribute: Attribute::new("a", 1) }, &[]);
    let mut c = CatalogState::new(SiteId::new(3).unwrap());
    assert!(matches!(readiness(&op, c.vector()), Readiness::Waiting(missing) if missing.site.number() == 1));
    let now = pair.now();
    assert!(c.receive(op.clone(), now).unwrap().applied.is_empty());
    assert!(c.receive(op, now).unwrap().applied.is_empty());
    let made = pair.a.operations_beyond(&VersionVector::default(), 1).unwrap().remove(0);
    assert_eq!(c.receive(made, now).unwrap().applied.len(), 2);
    assert_eq!(c.digest(), pair.b.digest());
}

#[test]
fn invalid_operations_change_nothing() {
    let mut pair = Pair::new();
    let (x, make) = pair.object(ROOT, "x");
    pair.at_a(make.clone(), &[]);
    let before = (pair.a.digest(), pair.a.next_op());
    let (other, in_object) = pair.object(x, "y");
    let (p, make_p) = pair.collection(ROOT, "p");
    let version = Tag { op: before.1, index: 0 };
    let invalid = [
        vec![make],
        vec![in_object],
        vec![Change::Restore { object: other }],
        vec![make_p.clone(), Change::SetCurrent { object: p, version, replaces: None }],
        vec![
            make_p,
            Change::MakeLink { object: other, parent: ROOT, name: Name::new("l").unwrap(), target: p },
        ],
    ];
    for changes in invalid {
        let now = pair.now();
        let error = pair.a.local(changes, vec![], now).unwrap_err();
        assert!(matches!(error, CatalogError::Invalid(_)), "{error}");
        assert_eq!((pair.a.digest(), pair.a.next_op()), before);
    }
}

#[test]
fn stamps_order_by_time_and_then_by_site() {
    let mut pair = Pair::new();
    let op = |pair: &mut Pair| {
        let (_, change) = pair.object(ROOT, "x");
        pair.a.local(vec![change], vec![], Millis(5)).unwrap().stamp()
    };
    let (first, second) = (op(&mut pair), op(&mut pair));
    assert!(first < second && second < Hlc { time: second.time, site: SiteId::new(2).unwrap() });
}
