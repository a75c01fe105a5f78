//! The tree: moves, the trash, and names that meet.

use super::databases::{Databases, path};
use super::objects::put;
use holdfast_catalog::{Catalog, CatalogStore};

pub fn names<S: CatalogStore>(catalog: &mut Catalog<S>, at: &str) -> Vec<String> {
    let entries = catalog.list(&path(at), None, 10_000).unwrap().entries;
    entries.into_iter().map(|entry| entry.node.shown).collect()
}

pub fn moves_are_checked<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("moves", 1);
    catalog.make_collection(&path("/a/b/c"), true).unwrap();
    catalog.make_collection(&path("/a/b"), true).unwrap();
    catalog.make_collection(&path("/d"), false).unwrap();
    catalog.put(&put("/a/b/x", 1)).unwrap();
    let text = |error: holdfast_catalog::CatalogError| error.to_string();
    assert_eq!(
        text(catalog.make_collection(&path("/d"), false).unwrap_err()),
        "cannot make collection `/d`: it exists already; choose another name"
    );
    assert!(catalog.make_collection(&path("/e/f"), false).is_err());
    assert!(catalog.make_collection(&path("/a/b/x/y"), true).is_err());
    assert_eq!(
        text(catalog.list(&path("/a/q/z"), None, 1).unwrap_err()),
        "cannot list `/a/q/z`: `/a/q` is not there; list the collection above it"
    );
    for (from, to) in
        [("/a", "/a/b/c/a"), ("/a", "/d"), ("/", "/z"), ("/q", "/z"), ("/a", "/"), ("/a", "/q/z")]
    {
        assert!(catalog.rename(&path(from), &path(to)).is_err(), "{from} {to}");
    }
    catalog.rename(&path("/a/b"), &path("/d/b")).unwrap();
    catalog.rename(&path("/d/b"), &path("/d/b")).unwrap();
    assert_eq!(names(&mut catalog, "/d/b"), ["c", "x"]);
    assert_eq!(names(&mut catalog, "/a"), [""; 0]);
    catalog.rename(&path("/a"), &path("/d/b/c/a")).unwrap();
    assert_eq!(names(&mut catalog, "/"), ["d"]);
}

pub fn the_trash_keeps_everything<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("trash", 1);
    catalog.make_collection(&path("/a/b"), true).unwrap();
    let x = catalog.put(&put("/a/b/x", 1)).unwrap().object;
    catalog.trash(&path("/a/b/x")).unwrap();
    let a = catalog.trash(&path("/a")).unwrap();
    assert!(catalog.stat(&path("/a/b")).is_err());
    let mut trash = catalog.list_trash(None, 10).unwrap();
    trash.sort_by_key(|trashed| trashed.path.to_string());
    let paths: Vec<_> = trash.iter().map(|trashed| trashed.path.to_string()).collect();
    assert_eq!(paths, ["/a", "/a/b/x"]);
    assert_eq!(catalog.trashed(x).unwrap().as_ref(), Some(&trash[1]));
    let error = catalog.restore(x, None).unwrap_err().to_string();
    assert!(
        error.ends_with("the collection above it is in the trash; restore that first, or give a new path"),
        "{error}"
    );

    // Another entry takes the name in the meantime, and keeps it.
    let other = catalog.make_collection(&path("/a"), false).unwrap();
    assert_eq!(catalog.restore(a, None).unwrap(), path("/a_1"));
    assert_eq!(catalog.stat(&path("/a")).unwrap().node.unwrap().id, other);
    assert_eq!(catalog.restore(x, Some(&path("/a/y"))).unwrap(), path("/a/y"));
    assert_eq!(catalog.stat(&path("/a/y")).unwrap().versions.len(), 1);
    assert!(catalog.restore(x, None).is_err());
    assert_eq!(catalog.trashed(x).unwrap(), None);
    assert!(catalog.trash_object(&path("/a")).unwrap_err().to_string().contains("it is a collection"));
    catalog.trash_object(&path("/a/y")).unwrap();

    // The number goes as soon as the name is free.
    catalog.trash(&path("/a")).unwrap();
    assert_eq!(names(&mut catalog, "/"), ["a"]);
    assert_eq!(catalog.stat(&path("/a")).unwrap().node.unwrap().id, a);
}
