//! Copies: equal contents under new names, whole trees in batches, and refused places.

use super::databases::{Databases, path};
use super::objects::put;
use super::tree::names;
use holdfast_catalog::{
    Attribute, Catalog, CatalogError, CatalogStore, CopyBatch, Find, NewReplica, Put, ReplicaState, Value,
};

pub fn an_object_is_copied_with_all_that_it_has<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("copy", 1);
    catalog.make_collection(&path("/a"), false).unwrap();
    catalog.put(&put("/a/x", 1)).unwrap();
    let (vault, key) = ("v".to_owned(), "k".to_owned());
    let replicas = vec![NewReplica { vault, key, state: ReplicaState::Verified }];
    catalog.put(&Put { replicas, ..put("/a/x", 2) }).unwrap();
    let many: Vec<_> = (0..2500).map(|n| Attribute::new("n", Value::Integer(n))).collect();
    catalog.add_attributes(&path("/a/x"), &many).unwrap();
    let copied = catalog.copy(&path("/a/x"), &path("/a/y")).unwrap();
    let (x, y) = (catalog.stat(&path("/a/x")).unwrap(), catalog.stat(&path("/a/y")).unwrap());
    assert_eq!((copied.objects, copied.collections, copied.next), (1, 0, None));
    let current = |stat: &holdfast_catalog::Stat| {
        let current = stat.node.as_ref().unwrap().current.unwrap().version;
        stat.versions.iter().find(|version| version.tag == current).unwrap().clone()
    };
    assert_eq!((x.versions.len(), y.versions.len()), (2, 1));
    assert_eq!((current(&x).hash, current(&x).size), (current(&y).hash, current(&y).size));
    assert_eq!(copied.bytes, current(&y).size);
    let places = |stat: &holdfast_catalog::Stat| {
        let tag = current(stat).tag;
        let of_current = stat.replicas.iter().filter(|replica| replica.content.unwrap().0 == tag);
        of_current.map(|replica| replica.place.clone()).collect::<Vec<_>>()
    };
    assert!(!places(&y).is_empty() && places(&x) == places(&y));
    assert_eq!(catalog.attributes(&path("/a/y")).unwrap(), catalog.attributes(&path("/a/x")).unwrap());
    // A later version of one does not touch the other.
    catalog.put(&put("/a/x", 3)).unwrap();
    assert_eq!(catalog.stat(&path("/a/y")).unwrap(), y);
    let place = places(&y).remove(0);
    assert_eq!(catalog.replica_at(&place.vault, &place.key).unwrap().unwrap().0, x.node.unwrap().id);
    assert!(matches!(catalog.copy(&path("/a/x"), &path("/a/y")), Err(CatalogError::Exists { .. })));
    for (from, to) in [("/a", "/b"), ("/q", "/b"), ("/a/x", "/q/x"), ("/a/x", "/"), ("/", "/b")] {
        assert!(catalog.copy(&path(from), &path(to)).is_err(), "{from} {to}");
    }
}

fn all<S: CatalogStore>(catalog: &mut Catalog<S>, under: &str) -> Vec<String> {
    let find = Find { under: path(under), ..Find::default() };
    let page = catalog.find(&find, None, 10_000).unwrap();
    let mut all: Vec<_> =
        page.found.iter().map(|found| found.path.to_string()[under.len()..].to_owned()).collect();
    all.sort();
    all
}

pub fn a_collection_is_copied_in_batches<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("copies", 1);
    for collection in ["/a/b/c", "/a/d", "/a/e/f"] {
        catalog.make_collection(&path(collection), true).unwrap();
        for name in ["1", "2", "z"] {
            catalog.put(&put(&format!("{collection}/{name}"), 1)).unwrap();
        }
    }
    for limit in [1, 2, 3, 5, 100] {
        let to = format!("/copy{limit}");
        let (mut after, mut sum) = (Vec::new(), CopyBatch::default());
        loop {
            let batch = catalog.copy_recursively(&path("/a"), &path(&to), &after, limit).unwrap();
            assert!(batch.objects + batch.collections <= limit as u64 + 1);
            sum.objects += batch.objects;
            sum.collections += batch.collections;
            match batch.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!((sum.objects, sum.collections), (9, 6), "{limit}");
        assert_eq!(all(&mut catalog, &to), all(&mut catalog, "/a"), "{limit}");
    }
    let copied = catalog.copy_recursively(&path("/a/d/1"), &path("/one"), &[], 1).unwrap();
    assert_eq!((copied.objects, names(&mut catalog, "/").contains(&"one".to_owned())), (1, true));
    for to in ["/a/b/a", "/a", "/copy1", "/"] {
        assert!(catalog.copy_recursively(&path("/a"), &path(to), &[], 10).is_err(), "{to}");
    }
}
