//! Purge: acknowledgement, whole trees, unneeded places, and snapshots that hold purges.

use super::databases::{Databases, TestHost, path};
use super::objects::put;
use super::replication::{pull, records};
use super::snapshots::exported;
use super::tree::names;
use holdfast_catalog::{
    Attribute, Catalog, CatalogError, CatalogStore, NewReplica, ObjectId, Put, Record, ReplicaState, SiteId,
    VersionVector,
};

fn kept(at: &str, content: u8, key: &str) -> Put {
    let replicas = vec![NewReplica { vault: "disk".into(), key: key.into(), state: ReplicaState::Verified }];
    Put { replicas, attributes: vec![Attribute::new("a", 1)], ..put(at, content) }
}

fn keys<S: CatalogStore>(catalog: &mut Catalog<S>) -> Vec<String> {
    catalog.unneeded(None, 100).unwrap().into_iter().map(|place| place.key).collect()
}

fn trash_and_tell<S: CatalogStore>(one: &mut Catalog<S>, two: &mut Catalog<S>, at: &str) -> ObjectId {
    let object = one.trash(&path(at)).unwrap();
    pull(one, two, 10_000);
    two.acknowledge().unwrap();
    pull(two, one, 10_000);
    object
}

pub fn a_purge_waits_for_all_sites_and_takes_the_whole_tree<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.make_collection(&path("/a/b/c"), true).unwrap();
    let many: Vec<Put> = (0..2100).map(|number| put(&format!("/a/b/{number}"), 1)).collect();
    one.put_all(&many).unwrap();
    let last = one.put(&put("/a/b/c/x", 1)).unwrap();
    pull(&mut one, &mut two, 10_000);
    two.put(&put("/own", 1)).unwrap();
    pull(&mut two, &mut one, 10);
    assert!(one.purge(last.object).unwrap_err().to_string().contains("it is not in the trash"));
    let a = one.trash(&path("/a")).unwrap();
    let early = one.purge(a).unwrap_err();
    assert_eq!(early, CatalogError::Unacknowledged { object: a, sites: vec![two.site()] });
    assert!(early.to_string().contains("is not acknowledged by site 2; try again"), "{early}");
    assert!(matches!(one.purge(last.object), Err(CatalogError::Unsuitable { .. })));

    pull(&mut one, &mut two, 10);
    assert!(two.acknowledge().unwrap());
    pull(&mut two, &mut one, 10);
    let before = one.vector().unwrap();
    one.purge(a).unwrap();
    let made = one.own_operations_beyond(&before, 100).unwrap();
    assert_eq!(made.iter().map(|op| op.changes.len()).collect::<Vec<_>>(), [1000, 1000, 104]);
    assert!(one.purge(a).unwrap_err().to_string().contains("it is purged already"));
    assert!(one.restore(a, None).unwrap_err().to_string().contains("it is purged"));
    assert_eq!(one.list_trash(None, 10).unwrap(), []);
    let left = records(&mut one);
    let number = left.iter().filter(|record| matches!(record, Record::Version(_))).count();
    assert_eq!(number, 1);

    // The other site knows of the purge only after it has restored the collection, and put something into it.
    two.restore(a, None).unwrap();
    two.put(&put("/a/b/new", 1)).unwrap();
    pull(&mut two, &mut one, 10_000);
    pull(&mut one, &mut two, 10_000);
    assert_eq!(records(&mut one), records(&mut two));
    assert_eq!((names(&mut one, "/a"), names(&mut one, "/a/b")), (vec!["b".into()], vec!["new".into()]));
}

pub fn a_purge_frees_places_that_nobody_needs<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&kept("/x", 1, "x")).unwrap();
    one.put(&kept("/x", 2, "both")).unwrap();
    one.put(&kept("/y", 2, "both")).unwrap();
    two.put(&kept("/z", 3, "z")).unwrap();
    pull(&mut two, &mut one, 10);
    pull(&mut one, &mut two, 10);
    two.acknowledge().unwrap();
    pull(&mut two, &mut one, 10);
    let x = trash_and_tell(&mut one, &mut two, "/x");
    let freed = one.purge(x).unwrap();
    assert_eq!(freed.iter().map(|place| place.key.as_str()).collect::<Vec<_>>(), ["x"]);
    assert_eq!(freed[0].site, one.site());
    one.forget_unneeded(&freed).unwrap();
    assert_eq!(keys(&mut one), [""; 0]);
    let y = trash_and_tell(&mut one, &mut two, "/y");
    one.purge(y).unwrap();
    assert_eq!(keys(&mut one), ["both"]);
    assert_eq!(one.unneeded(Some(("disk", "both")), 10).unwrap(), []);

    // A site learns that its own bytes are unneeded by an operation, or by a snapshot.
    let z = trash_and_tell(&mut one, &mut two, "/z");
    one.purge(z).unwrap();
    assert_eq!((keys(&mut one), keys(&mut two)), (vec!["both".into()], vec![]));
    let snapshot = exported(&mut one);
    two.import_snapshot(&mut snapshot.as_slice()).unwrap();
    assert_eq!(keys(&mut two), ["z"]);
    assert_eq!(records(&mut one), records(&mut two));
    let mut three = databases.catalog("third", 3);
    three.apply(&one.operations_beyond(&VersionVector::default(), 100).unwrap()).unwrap();
    assert_eq!((records(&mut three), keys(&mut three)), (records(&mut one), vec![]));

    let open = |seed| {
        let host = Box::new(TestHost::new(seed));
        Catalog::open(databases.open("single"), SiteId::new(1).unwrap(), host).unwrap()
    };
    let mut new = open(1);
    new.put(&kept("/x", 1, "x")).unwrap();
    let x = new.trash(&path("/x")).unwrap();
    assert_eq!(new.purge(x).unwrap().len(), 1);
    drop(new);
    let mut new = open(2);
    assert_eq!(keys(&mut new), ["x"], "places outlive the process");
    new.put(&kept("/x", 1, "x")).unwrap();
    assert_eq!(keys(&mut new), [""; 0], "the place has a new replica");
}
