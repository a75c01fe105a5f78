//! Objects: versions, attributes, annotations and replicas.

use super::databases::{Databases, path};
use holdfast_catalog::{
    Attribute, AttributeChange, Catalog, CatalogStore, ContentHash, Nanos, NewReplica, NewVersion, Put,
    ReplicaPlace, ReplicaState, SiteId, SystemHost, Value,
};

pub fn put(at: &str, content: u8) -> Put {
    let (size, hash, time) = (u64::from(content), ContentHash([content; 32]), Nanos(i64::from(content)));
    let version = NewVersion { size, hash, time };
    Put { path: path(at), version, replicas: vec![], attributes: vec![] }
}

pub fn versions_are_never_overwritten<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("objects", 1);
    catalog.make_collection(&path("/a"), false).unwrap();
    let first = catalog.put(&put("/a/x", 1)).unwrap();
    let second = catalog.put(&put("/a/x", 2)).unwrap();
    assert!(first.is_new && !second.is_new && first.object == second.object);
    let stat = catalog.stat(&path("/a/x")).unwrap();
    assert_eq!(stat.versions.iter().map(|version| version.size).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(stat.node.unwrap().current.unwrap().version, second.version);
    catalog.set_current(&path("/a/x"), first.version).unwrap();
    let listing = catalog.list(&path("/a"), None, 10).unwrap();
    let info = listing.entries[0].version.clone().unwrap();
    assert_eq!(
        (info.tag, info.size, info.hash, info.time),
        (first.version, 1, ContentHash([1; 32]), Nanos(1))
    );
    let mut other = first.version;
    other.index = 9;
    let error = catalog.set_current(&path("/a/x"), other).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot set the current version of `/a/x`: it has no such version; choose one of the versions that stat lists"
    );
    for wrong in ["/a", "/b/x", "/a/x/y", "/"] {
        assert!(catalog.put(&put(wrong, 3)).is_err(), "{wrong}");
    }
}

pub fn attributes_are_a_set_of_triples<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("attributes", 1);
    let x = path("/x");
    let all = [
        Attribute::new("a", 5),
        Attribute::new("a", "five"),
        Attribute::new("size", 3).with_unit("GiB"),
        Attribute { name: "size".into(), value: Value::float(2.5).unwrap(), unit: Some("kB".into()) },
        Attribute { name: "t".into(), value: Value::Time(Nanos(-7)), unit: None },
    ];
    catalog.put(&Put { attributes: all[..2].to_vec(), ..put("/x", 1) }).unwrap();
    catalog.add_attributes(&x, &all).unwrap();
    let mut sorted = all.to_vec();
    sorted.sort();
    assert_eq!(catalog.attributes(&x).unwrap(), sorted);
    assert_eq!(catalog.stat(&x).unwrap().attributes.len(), 5, "a triple stays once");
    assert_eq!(catalog.remove_attributes(&x, "a", Some(&Value::from("five"))).unwrap(), 1);
    assert_eq!(catalog.remove_attributes(&x, "size", None).unwrap(), 2);
    assert_eq!(catalog.remove_attributes(&x, "nothing", None).unwrap(), 0);
    let names: Vec<String> = catalog.attributes(&x).unwrap().into_iter().map(|a| a.name).collect();
    assert_eq!(names, ["a", "t"]);
    assert!(catalog.add_attributes(&x, &[Attribute::new("a\0", 1)]).is_err());
    let note = catalog.annotate(&x, "ann", "a pulsar?").unwrap();
    assert_eq!(catalog.stat(&x).unwrap().annotations[0].text, "a pulsar?");
    catalog.remove_annotation(&x, note).unwrap();
    assert!(catalog.remove_annotation(&x, note).is_err());
}

pub fn replicas_tell_the_only_copy<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("replicas", 1);
    let replica = |vault: &str, state| NewReplica { vault: vault.into(), key: "k".into(), state };
    let mut stored = Vec::new();
    for (name, state) in
        [("/x", ReplicaState::Verified), ("/y", ReplicaState::Verified), ("/z", ReplicaState::Damaged)]
    {
        let replicas = vec![replica("disk", state)];
        stored.push(catalog.put(&Put { replicas, ..put(name, 1) }).unwrap());
    }
    let there = ReplicaPlace { site: SiteId::new(2).unwrap(), vault: "tape".into(), key: "'k'".into() };
    let y = path("/y");
    catalog.set_replica(&y, stored[1].version, there.clone(), ReplicaState::Verified).unwrap();
    let only = |catalog: &mut holdfast_catalog::Catalog<D::Store>| {
        let only = catalog.only_here(None, 10).unwrap();
        only.iter().map(|only| only.path.as_ref().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(only(&mut catalog), ["/x"]);
    catalog.set_replica(&y, stored[1].version, there.clone(), ReplicaState::Missing).unwrap();
    assert_eq!(only(&mut catalog), ["/x", "/y"]);
    assert_eq!(catalog.only_here(None, 1).unwrap().len(), 1);
    assert_eq!(catalog.only_here(Some(stored[0].object), 10).unwrap()[0].path, Some(y.clone()));
    assert_eq!(catalog.replicas(&y).unwrap().len(), 2);
    let z = path("/z");
    assert_eq!(catalog.lacking(None, 10).unwrap(), []);
    let far = ReplicaPlace { key: "z".into(), ..there.clone() };
    catalog.set_replica(&z, stored[2].version, far, ReplicaState::Verified).unwrap();
    assert_eq!(catalog.lacking(None, 10).unwrap(), [(stored[2].object, stored[2].version)]);
    assert_eq!(catalog.lacking(Some(stored[2].object), 10).unwrap(), []);
    assert_eq!(catalog.lacks(stored[2].object).unwrap(), Some(stored[2].version));
    assert_eq!(catalog.lacks(stored[0].object).unwrap(), None);
    catalog.remove_replica(&y, there.clone()).unwrap();
    assert_eq!(catalog.replicas(&y).unwrap().len(), 1);
    assert!(catalog.remove_replica(&y, there).is_err());
    catalog.trash(&path("/x")).unwrap();
    assert_eq!(catalog.only_here(None, 10).unwrap()[0].path, None);
}

pub fn a_put_makes_collections_and_its_replica_is_found_by_key<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("keys", 1);
    let replicas =
        vec![NewReplica { vault: "disk".into(), key: "k/1".into(), state: ReplicaState::Verified }];
    let stored = catalog.put_with_collections(&Put { replicas, ..put("/a/b/x", 1) }).unwrap();
    assert!(catalog.put_with_collections(&put("/a/b/x/y", 2)).is_err(), "an object is in the way");
    assert_eq!(catalog.replica_at("disk", "k/1").unwrap(), Some((stored.object, stored.version)));
    assert_eq!(catalog.replica_at("disk", "k/2").unwrap(), None);
    assert_eq!(catalog.replica_at("tape", "k/1").unwrap(), None);
    catalog.rename(&path("/a/b"), &path("/a/c")).unwrap();
    assert_eq!(catalog.path_of(stored.object).unwrap(), Some(path("/a/c/x")));
    catalog.trash(&path("/a/c")).unwrap();
    assert_eq!(catalog.path_of(stored.object).unwrap(), None);
    assert!(catalog.replica_at("disk", "k/1").unwrap().is_some(), "the trash keeps replicas");
}

pub fn attributes_are_replaced_for_the_current_version_only<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("replaced", 1);
    let x = path("/x");
    let old = [Attribute::new("fits.a", 1), Attribute::new("fits.b", 2), Attribute::new("own", 3)];
    let first = catalog.put(&Put { attributes: old.to_vec(), ..put("/x", 1) }).unwrap();
    let new = [Attribute::new("fits.b", 2), Attribute::new("fits.c", 5)];
    let is_fits = |name: &str| name.starts_with("fits.");
    assert!(catalog.set_attributes(&x, Some(first.version), &is_fits, &new).unwrap());
    let expected = [new[0].clone(), new[1].clone(), old[2].clone()];
    assert_eq!(catalog.attributes(&x).unwrap(), expected);
    catalog.put(&put("/x", 2)).unwrap();
    assert!(!catalog.set_attributes(&x, Some(first.version), &is_fits, &[]).unwrap());
    assert_eq!(catalog.attributes(&x).unwrap(), expected);
    assert!(catalog.set_attributes(&x, None, &|_| true, &[]).unwrap());
    assert!(catalog.attributes(&x).unwrap().is_empty());
}

pub fn attributes_of_many_objects_change_together<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("together", 1);
    let change = |at: &str, replaced: &str, value: i64| AttributeChange {
        path: path(at),
        replaced: vec![replaced.to_owned()],
        attributes: vec![Attribute::new("a", value)],
    };
    for at in ["/x", "/y"] {
        catalog.put(&Put { attributes: vec![Attribute::new("old", 1)], ..put(at, 1) }).unwrap();
    }
    let entered = catalog.entered();
    let changes = [change("/x", "old", 1), change("/y", "other", 2)];
    assert_eq!(catalog.change_attributes_all(&changes), Ok(2));
    // Attributes that are there already need no operation.
    assert_eq!(catalog.change_attributes_all(&changes), Ok(0));
    assert_eq!(catalog.entered(), entered + 2);
    let x = [Attribute::new("a", 1)];
    assert_eq!(catalog.attributes(&path("/x")).unwrap(), x);
    assert_eq!(catalog.attributes(&path("/y")).unwrap(), [Attribute::new("a", 2), Attribute::new("old", 1)]);
    let failed = catalog.change_attributes_all(&[change("/x", "a", 3), change("/none", "a", 3)]).unwrap_err();
    assert_eq!(failed.place, Some(1), "{failed}");
    assert_eq!(catalog.attributes(&path("/x")).unwrap(), x);
}

pub fn a_catalog_is_opened_as_its_own_site<D: Databases>(databases: &D) {
    let site = |number| SiteId::new(number).unwrap();
    let open = |fresh| {
        let store: Box<dyn CatalogStore> = Box::new(databases.open("own"));
        Catalog::open_own(store, site(fresh), Box::new(SystemHost)).unwrap().site()
    };
    assert_eq!((open(7), open(8)), (site(7), site(7)));
}
