//! Snapshots and compaction: new sites, absent sites, damage, and peers that are too far behind.

use super::databases::{Databases, SqliteDatabases, TestHost, catalog, path};
use super::objects::put;
use super::replication::{pull, random_calls, records};
use crate::random::Random;
use holdfast_catalog::{
    Catalog, CatalogError, CatalogState, CatalogStore, FactKind, Host, SiteId, SnapshotError, VersionVector,
    WrittenValue,
};
use std::time::Duration;

pub fn exported<S: CatalogStore>(catalog: &mut Catalog<S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut collect = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    catalog.export_snapshot(&mut collect).unwrap();
    bytes
}

fn import<S: CatalogStore>(catalog: &mut Catalog<S>, bytes: &[u8]) -> Result<(), CatalogError> {
    catalog.import_snapshot(&mut &*bytes)
}

/// Exchanges operations until both have acknowledged all of them.
fn settle<A: CatalogStore, B: CatalogStore>(one: &mut Catalog<A>, two: &mut Catalog<B>) {
    for _ in 0..3 {
        pull(one, two, 10_000);
        pull(two, one, 10_000);
        one.acknowledge().unwrap();
        two.acknowledge().unwrap();
    }
    pull(one, two, 10_000);
    pull(two, one, 10_000);
}

pub fn a_new_site_starts_from_a_snapshot<D: Databases>(databases: &D) {
    let files = SqliteDatabases::new();
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut one = databases.catalog(&format!("one_{seed}"), 1);
        let mut two = catalog(files.open(&format!("two_{seed}")), 2);
        for _ in 0..3 {
            random_calls(&mut one, &mut random, 10);
            random_calls(&mut two, &mut random, 10);
            pull(&mut one, &mut two, 10_000);
        }
        settle(&mut one, &mut two);
        one.set_fact(FactKind::Site, "last", None).unwrap();
        assert!(one.compact(Duration::ZERO).unwrap() > 0);

        // To a file of SQLite and back.
        let mut three = catalog(files.open(&format!("three_{seed}")), 3);
        import(&mut three, &exported(&mut one)).unwrap();
        let mut four = databases.catalog(&format!("four_{seed}"), 4);
        import(&mut four, &exported(&mut three)).unwrap();
        assert_eq!((four.entered(), four.digest().unwrap()), (three.entered(), one.digest().unwrap()));
        assert_eq!(records(&mut four), records(&mut one));
        let mut state = CatalogState::new(SiteId::new(5).unwrap());
        state.import_snapshot(&mut exported(&mut four).as_slice(), TestHost::new(1).now()).unwrap();
        assert_eq!(state.digest(), one.digest().unwrap());

        // All go on, with stamps after those of the snapshot.
        assert!(three.acknowledge().unwrap() && four.acknowledge().unwrap());
        random_calls(&mut four, &mut random, 20);
        for _ in 0..3 {
            pull(&mut four, &mut one, 10_000);
            pull(&mut one, &mut three, 10_000);
            pull(&mut three, &mut two, 10_000);
            pull(&mut two, &mut four, 10_000);
        }
        assert_eq!(records(&mut four), records(&mut two));
        assert_eq!(records(&mut three), records(&mut one));
    }
}

pub fn a_damaged_snapshot_changes_nothing<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    for number in 0..400 {
        one.put(&put(&format!("/{number}"), 1)).unwrap();
    }
    let bytes = exported(&mut one);
    assert!(bytes.len() > 70_000, "a snapshot of several blocks");
    pull(&mut one, &mut two, 7);
    let before = (two.digest().unwrap(), two.vector().unwrap(), two.entered());
    let mut random = Random::new(1);
    for _ in 0..10 {
        let mut broken = bytes.clone();
        let at = random.below(broken.len());
        if random.chance(50) {
            broken.truncate(at);
        } else {
            broken[at] ^= 1 << random.below(8);
        }
        assert!(matches!(import(&mut two, &broken), Err(CatalogError::Snapshot(_))), "damage at {at}");
        assert_eq!((two.digest().unwrap(), two.vector().unwrap(), two.entered()), before);
    }
    import(&mut two, &bytes).unwrap();
    assert_eq!((two.digest().unwrap(), two.entered()), (one.digest().unwrap(), 400));

    // Operations of its own that are not in the snapshot are never given up.
    two.put(&put("/own", 1)).unwrap();
    let refused = import(&mut two, &bytes).unwrap_err();
    assert!(matches!(refused, CatalogError::Snapshot(SnapshotError::Unsuitable { .. })), "{refused}");
    pull(&mut two, &mut one, 10);
    one.put(&put("/last", 1)).unwrap();
    import(&mut two, &exported(&mut one)).unwrap();
    assert_eq!(two.digest().unwrap(), one.digest().unwrap());
}

pub fn a_log_keeps_what_is_needed<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&put("/x", 1)).unwrap();
    settle(&mut one, &mut two);
    one.rename(&path("/x"), &path("/y")).unwrap();
    two.rename(&path("/x"), &path("/z")).unwrap();
    settle(&mut one, &mut two);
    let before = (one.digest().unwrap(), one.vector().unwrap());
    assert_eq!(one.compact(Duration::from_hours(1)).unwrap(), 0, "all are young");
    assert!(one.compact(Duration::ZERO).unwrap() > 0);
    assert_eq!(one.compact(Duration::ZERO).unwrap(), 0);
    assert_eq!((one.digest().unwrap(), one.vector().unwrap()), before);

    // The values of a conflict stay in the log.
    let conflict = one.conflicts(None, 10).unwrap().remove(0);
    assert!(matches!(conflict.lost, WrittenValue::Name { .. }));
    one.settle(conflict.dispute.id(), holdfast_catalog::Choice::Flip).unwrap();

    let site = one.site();
    let behind = one.operations_beyond(&VersionVector::default(), 10).unwrap_err();
    assert!(matches!(behind, CatalogError::Compacted { after: 0, .. }), "{behind}");
    assert!(matches!(one.log_since(site, 0, 10), Err(CatalogError::Compacted { .. })));
    assert!(matches!(
        one.own_operations_beyond(&VersionVector::default(), 10),
        Err(CatalogError::Compacted { .. })
    ));
    let known = two.vector().unwrap();
    let sent = one.operations_beyond(&known, 10).unwrap();
    assert!(!sent.is_empty());
    two.apply(&sent).unwrap();
    assert_eq!(records(&mut one), records(&mut two));
}

pub fn sites_that_were_long_alone_become_one<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    for (catalog, name) in [(&mut one, "/x"), (&mut two, "/y")] {
        catalog.put(&put(name, 1)).unwrap();
        assert_eq!(catalog.compact(Duration::ZERO).unwrap(), 0);
    }
    settle(&mut one, &mut two);
    assert!(one.compact(Duration::ZERO).unwrap() > 0);
    // One that was alone joins a site that has removed operations: it sends its own ones first.
    let mut three = databases.catalog("third", 3);
    three.put(&put("/z", 1)).unwrap();
    assert_eq!(three.compact(Duration::ZERO).unwrap(), 0);
    pull(&mut three, &mut one, 10);
    import(&mut three, &exported(&mut one)).unwrap();
    assert_eq!(records(&mut three), records(&mut one));
}

pub fn a_site_that_starts_on_its_own_joins_later<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&put("/x", 1)).unwrap();
    let part = one.operations_beyond(&VersionVector::default(), 10).unwrap();
    let mut three = databases.catalog("third", 3);
    three.apply(&part).unwrap();
    one.add_attributes(&path("/x"), &[holdfast_catalog::Attribute::new("a", 1)]).unwrap();
    assert_eq!(one.compact(Duration::ZERO).unwrap(), 0, "no other site is known");
    let mut four = databases.catalog("fourth", 4);
    settle(&mut one, &mut four);
    assert!(one.compact(Duration::ZERO).unwrap() > 0);

    // The second has seen nothing of the first. It changed objects of its own only.
    two.put(&put("/y", 1)).unwrap();
    two.rename(&path("/y"), &path("/z")).unwrap();
    two.trash(&path("/z")).unwrap();
    pull(&mut two, &mut one, 10);
    one.put(&put("/w", 1)).unwrap();
    import(&mut two, &exported(&mut one)).unwrap();
    assert_eq!(records(&mut one), records(&mut two));

    // The third deletes an object without having seen a change of it that is no longer in the log.
    three.trash(&path("/x")).unwrap();
    let before = one.digest().unwrap();
    let deletion = three.log_since(three.site(), 0, 10).unwrap();
    let refused = one.apply(&deletion).unwrap_err();
    assert_eq!(refused, CatalogError::Stale { id: deletion[0].id });
    assert_eq!(one.digest().unwrap(), before);
}
