//! Replication between stores: convergence, idempotence, causal order, and refusals.

use super::databases::{Databases, SqliteDatabases, TestHost, catalog, path};
use super::objects::put;
use super::tree::names;
use crate::random::Random;
use holdfast_catalog::{
    Attribute, Catalog, CatalogError, CatalogStore, Conflict, Host, Record, Reference, SiteId, StateDigest,
    VersionVector,
};

pub fn records<S: CatalogStore>(catalog: &mut Catalog<S>) -> Vec<Record> {
    let mut records = Vec::new();
    catalog.for_each_record(&mut |record| records.push(record)).unwrap();
    records.sort();
    records
}

/// Random calls of the API, of which some fail.
pub fn random_calls<S: CatalogStore>(catalog: &mut Catalog<S>, random: &mut Random, number: usize) {
    let paths = ["/a", "/b", "/a/a", "/a/b", "/b/a", "/a/a/a", "/a_1", "/a/a_1"];
    for _ in 0..number {
        let (at, to) = (*random.pick(&paths).unwrap(), *random.pick(&paths).unwrap());
        let outcome = match random.below(10) {
            0 | 1 => catalog.make_collection(&path(at), random.chance(30)).map(drop),
            2 => catalog.put(&put(at, random.next() as u8)).map(drop),
            3..=5 => catalog.rename(&path(at), &path(to)),
            6 => catalog.trash(&path(at)).map(drop),
            7 => {
                let trash = catalog.list_trash(None, 100).unwrap();
                random.pick(&trash).map_or(Ok(()), |found| catalog.restore(found.node.id, None).map(drop))
            }
            8 => catalog.add_attributes(&path(at), &[Attribute::new("n", random.below(3) as i64)]),
            _ => catalog.remove_attributes(&path(at), "n", None).map(drop),
        };
        let is_refused = matches!(
            outcome,
            Err(CatalogError::NotFound { .. }
                | CatalogError::Unsuitable { .. }
                | CatalogError::Exists { .. })
        );
        assert!(outcome.is_ok() || is_refused, "{outcome:?}");
    }
}

/// Copies some operations from one catalog to another.
pub fn pull<A: CatalogStore, B: CatalogStore>(from: &mut Catalog<A>, to: &mut Catalog<B>, limit: usize) {
    let known = to.vector().unwrap();
    let operations = from.operations_beyond(&known, limit).unwrap();
    let applied = to.apply(&operations).unwrap();
    assert_eq!((applied.applied, applied.waiting.len()), (operations.len(), 0));
}

/// Two catalogs of the store under test and one in `SQLite` exchange operations now and then.
pub fn catalogs_converge_with_the_reference<D: Databases>(databases: &D) {
    let files = SqliteDatabases::new();
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let mut one = databases.catalog(&format!("one_{seed}"), 1);
        let mut two = databases.catalog(&format!("two_{seed}"), 2);
        let mut three = catalog(files.open(&format!("three_{seed}")), 3);
        for _ in 0..8 {
            random_calls(&mut one, &mut random, 8);
            random_calls(&mut two, &mut random, 8);
            random_calls(&mut three, &mut random, 8);
            let limit = 1 + random.below(30);
            match random.below(4) {
                0 => pull(&mut one, &mut two, limit),
                1 => pull(&mut two, &mut three, limit),
                2 => pull(&mut three, &mut one, limit),
                _ => {}
            }
        }
        // The last two rounds carry settlements that the first ones cause.
        for _ in 0..4 {
            pull(&mut one, &mut two, 10_000);
            pull(&mut two, &mut three, 10_000);
            pull(&mut three, &mut one, 10_000);
        }
        let mut reference = Reference::default();
        let log = one.operations_beyond(&VersionVector::default(), 10_000).unwrap();
        for op in log {
            reference.add(op);
        }
        let expected = reference.records();
        assert_eq!(records(&mut one), expected, "seed {seed}");
        assert_eq!(records(&mut two), expected, "seed {seed}");
        assert_eq!(records(&mut three), expected, "seed {seed}");
        let digest: StateDigest = expected.iter().collect();
        assert_eq!(one.digest().unwrap(), digest);
        assert_eq!(three.digest().unwrap(), digest);
    }
}

pub fn a_change_rescues_a_collection_into_which_its_object_was_moved_unseen<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("mover", 1), databases.catalog("changer", 2));
    one.make_collection(&path("/top"), false).unwrap();
    one.put(&put("/x", 1)).unwrap();
    pull(&mut one, &mut two, 10);
    two.put(&put("/y", 1)).unwrap();
    pull(&mut two, &mut one, 10);
    one.rename(&path("/x"), &path("/top/x")).unwrap();
    one.trash(&path("/top")).unwrap();
    two.add_attributes(&path("/x"), &[Attribute::new("a", 1)]).unwrap();
    pull(&mut two, &mut one, 10);
    pull(&mut one, &mut two, 10);
    assert_eq!(names(&mut one, "/"), ["top", "y"]);
    assert_eq!(names(&mut two, "/top"), ["x"]);
    assert_eq!(records(&mut one), records(&mut two));

    // The other way around: the change arrives before the deletion.
    two.rename(&path("/y"), &path("/top/y")).unwrap();
    two.trash(&path("/top")).unwrap();
    one.annotate(&path("/y"), "ann", "keep").unwrap();
    pull(&mut one, &mut two, 10);
    pull(&mut two, &mut one, 10);
    assert_eq!(names(&mut one, "/top"), ["x", "y"]);
    assert_eq!(records(&mut one), records(&mut two));
}

pub fn operations_are_acknowledged_once_all_sites_know_them<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&put("/x", 1)).unwrap();
    two.put(&put("/y", 1)).unwrap();
    pull(&mut two, &mut one, 10);
    one.trash(&path("/x")).unwrap();
    let deletion = one.vector().unwrap();
    pull(&mut one, &mut two, 10);
    // The other site has the deletion, but no operation of it says so yet.
    assert!(!one.acknowledged().unwrap().includes(&deletion));
    assert!(two.acknowledged().unwrap().includes(&deletion));
    two.put(&put("/z", 1)).unwrap();
    pull(&mut two, &mut one, 10);
    assert!(one.acknowledged().unwrap().includes(&deletion));
}

pub fn an_idle_site_acknowledges_once<D: Databases>(databases: &D) {
    let mut all = [1, 2, 3].map(|site| databases.catalog(&format!("site_{site}"), site));
    for (number, catalog) in all.iter_mut().enumerate() {
        assert!(!catalog.acknowledge().unwrap(), "there is nothing to acknowledge");
        catalog.put(&put(&format!("/{number}"), 1)).unwrap();
    }
    let mut made = [0; 3];
    for round in 0..4 {
        for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2)] {
            let known = all[to].vector().unwrap();
            let operations = all[from].operations_beyond(&known, 100).unwrap();
            all[to].apply(&operations).unwrap();
            made[to] += usize::from(all[to].acknowledge().unwrap());
        }
        if round == 0 {
            assert!(made.iter().all(|number| *number > 0), "{made:?}");
            made = [0; 3];
        }
    }
    assert_eq!(made, [0; 3], "idle sites answer each other");
    let puts: VersionVector = (1..4).map(|site| (SiteId::new(site).unwrap(), 1)).collect();
    assert!(all.iter_mut().all(|catalog| catalog.acknowledged().unwrap().includes(&puts)));
}

pub fn new_operations_are_counted_and_own_ones_are_found<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&put("/x", 1)).unwrap();
    two.put(&put("/y", 1)).unwrap();
    assert!(two.put(&put("/z/z", 1)).is_err());
    two.put(&put("/z", 1)).unwrap();
    assert_eq!((one.entered(), two.entered()), (1, 2));
    pull(&mut one, &mut two, 10);
    pull(&mut two, &mut one, 10);
    assert!(one.apply(&two.log_since(two.site(), 0, 10).unwrap()).unwrap().duplicates > 0);
    assert_eq!((one.entered(), two.entered()), (3, 3));
    let own = two.own_operations_beyond(&VersionVector::default(), 10).unwrap();
    assert_eq!(own, two.log_since(two.site(), 0, 10).unwrap());
    assert_eq!(
        two.own_operations_beyond(&VersionVector::from_iter([(two.site(), 1)]), 10).unwrap(),
        own[1..]
    );
}

pub fn remote_operations_are_idempotent_and_causal<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.make_collection(&path("/a"), false).unwrap();
    one.put(&put("/a/x", 1)).unwrap();
    two.put(&put("/a", 2)).unwrap();
    let log = one.log_since(SiteId::new(1).unwrap(), 0, 10).unwrap();
    assert_eq!(log.iter().map(|op| op.id.seq).collect::<Vec<_>>(), [1, 2]);

    // The second alone waits, and is not kept.
    let early = two.apply(&log[1..]).unwrap();
    assert_eq!((early.applied, early.waiting.as_slice()), (0, &[log[1].id][..]));
    let backwards = [log[1].clone(), log[0].clone(), log[1].clone()];
    let applied = two.apply(&backwards).unwrap();
    assert_eq!((applied.applied, applied.duplicates, applied.waiting.len()), (2, 1, 0));
    assert!(matches!(applied.conflicts[..], [Conflict::SameName { .. }]));
    let again = two.apply(&log).unwrap();
    assert_eq!((again.applied, again.duplicates), (0, 2));
    assert_eq!(names(&mut two, "/"), ["a", "a_1"]);

    // An operation with a known id and other contents comes from a site that was set back.
    let mut forked = log[1].clone();
    forked.under.clear();
    assert_eq!(two.apply(&[forked]).unwrap_err(), CatalogError::Forked { id: log[1].id });

    // An operation of a clock that is far ahead is kept in quarantine, and changes nothing until its time has come.
    let mut host = TestHost::at(1_900_000_000_000);
    host.now();
    let mut ahead = Catalog::open(databases.open("ahead"), SiteId::new(3).unwrap(), Box::new(host)).unwrap();
    ahead.make_collection(&path("/z"), false).unwrap();
    let before = two.digest().unwrap();
    let log = ahead.operations_beyond(&VersionVector::default(), 10).unwrap();
    for _ in 0..2 {
        let applied = two.apply(&log).unwrap();
        assert_eq!((applied.applied, applied.quarantined), (0, vec![log[0].id]));
    }
    assert_eq!(two.digest().unwrap(), before);
    let held = two.quarantined().unwrap();
    assert_eq!((held.len(), held[0].op, held[0].stamp), (1, log[0].id, log[0].stamp()));
    assert_eq!(two.apply(&[]).unwrap().applied, 0);
    drop(two);
    let host = Box::new(TestHost::at(held[0].due.0));
    let mut two = Catalog::open(databases.open("second"), SiteId::new(2).unwrap(), host).unwrap();
    assert_eq!(two.apply(&[]).unwrap().applied, 1);
    assert_eq!(names(&mut two, "/"), ["a", "a_1", "z"]);
    assert_eq!(two.quarantined().unwrap(), []);
}

/// Sites that make the same collections while they are apart have one of each afterwards.
pub fn equal_collections_become_one<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("equal_one", 1), databases.catalog("equal_two", 2));
    for (catalog, name) in [(&mut one, "/lab/2026/a"), (&mut two, "/lab/2026/b")] {
        catalog.make_collection(&path("/lab/2026"), true).unwrap();
        catalog.put(&put(name, 1)).unwrap();
    }
    let operations = one.operations_beyond(&VersionVector::default(), 100).unwrap();
    assert_eq!(two.apply(&operations).unwrap().conflicts, []);
    pull(&mut two, &mut one, 100);
    assert_eq!(names(&mut one, "/"), ["lab"]);
    assert_eq!(names(&mut one, "/lab/2026"), ["a", "b"]);
    assert_eq!(one.digest().unwrap(), two.digest().unwrap());
    // One that was deleted or renamed is made anew, beside it.
    one.trash(&path("/lab/2026")).unwrap();
    one.make_collection(&path("/lab/2026"), false).unwrap();
    assert_eq!(names(&mut one, "/lab/2026"), Vec::<String>::new());
    one.rename(&path("/lab"), &path("/lab2")).unwrap();
    one.make_collection(&path("/lab"), false).unwrap();
    assert_eq!(names(&mut one, "/"), ["lab", "lab2"]);
}
