//! Links: reading, writing and searching through second names, and targets in the trash.

use super::databases::{Databases, path};
use super::objects::put;
use super::replication::{pull, records};
use super::tree::names;
use holdfast_catalog::{
    Attribute, Catalog, CatalogError, CatalogStore, Find, Kind, LinkTarget, ObjectId, Put, Right,
};

pub fn a_link_is_a_second_name<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.make_collection(&path("/a/b"), true).unwrap();
    one.make_collection(&path("/c"), false).unwrap();
    let x = one.put(&put("/a/x", 1)).unwrap().object;
    let link = one.link(&path("/a/x"), &path("/c/y")).unwrap();
    pull(&mut one, &mut two, 100);
    let stored = two.put(&put("/c/y", 2)).unwrap();
    assert!(stored.object == x && !stored.is_new);
    two.add_attributes(&path("/c/y"), &[Attribute::new("a", 1)]).unwrap();
    let annotation = two.annotate(&path("/c/y"), "ann", "note").unwrap();
    pull(&mut two, &mut one, 100);
    assert_eq!(records(&mut one), records(&mut two));

    let (own, through) = (one.stat(&path("/a/x")).unwrap(), one.stat(&path("/c/y")).unwrap());
    let node = through.node.unwrap();
    assert_eq!((node.id, node.kind, node.current), (link, Kind::Link, own.node.unwrap().current));
    assert_eq!(through.target, Some(LinkTarget { id: x, path: Some(path("/a/x")) }));
    assert_eq!((&through.versions, &through.attributes), (&own.versions, &own.attributes));
    assert_eq!((own.target, own.versions.len(), own.annotations), (None, 2, through.annotations));
    let entry = one.list(&path("/c"), None, 10).unwrap().entries.remove(0);
    assert_eq!(entry.version.unwrap().size, 2);
    one.remove_annotation(&path("/c/y"), annotation).unwrap();
    one.set_current(&path("/c/y"), own.versions[0].tag).unwrap();
    assert_eq!(one.list(&path("/a"), None, 10).unwrap().entries[1].version.clone().unwrap().size, 1);

    assert_eq!(one.link_target(&path("/c/y")).unwrap(), Some(path("/a/x")));
    for other in ["/a/x", "/c", "/", "/c/y/z", "/none"] {
        assert_eq!(one.link_target(&path(other)).unwrap(), None, "{other}");
    }

    // A link of a link stands for the object itself. Moving and deleting a link leave the object alone.
    let second = one.link(&path("/c/y"), &path("/c/z")).unwrap();
    assert_eq!(one.stat(&path("/c/z")).unwrap().target.unwrap().id, x);
    one.rename(&path("/c/y"), &path("/a/b/y")).unwrap();
    assert_eq!(one.trash(&path("/a/b/y")).unwrap(), link);
    assert_eq!(one.stat(&path("/a/x")).unwrap().versions.len(), 2);
    assert_eq!(one.path_of(second).unwrap(), Some(path("/c/z")));
    for (from, to) in [("/a", "/d"), ("/a/x", "/c"), ("/a/x", "/"), ("/q", "/d"), ("/a/x", "/q/d")] {
        assert!(one.link(&path(from), &path(to)).is_err(), "{from} {to}");
    }
    assert!(one.put(&put("/c/z/x", 1)).is_err(), "a link is no collection");

    one.grant(&path("/c"), "ann", Right::Own).unwrap();
    one.grant(&path("/a"), "ann", Right::Read).unwrap();
    assert_eq!(one.right_of(&path("/c/z"), &["ann"]).unwrap(), Some(Right::Read));
    assert_eq!(one.right_of(&path("/c/z"), &["bob"]).unwrap(), None);
}

pub fn a_link_of_a_deleted_object_says_so<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("dangling", 1);
    catalog.make_collection(&path("/a"), false).unwrap();
    let x = catalog.put(&put("/a/x", 1)).unwrap().object;
    let link = catalog.link(&path("/a/x"), &path("/l")).unwrap();
    let check = |catalog: &mut Catalog<D::Store>| {
        let stat = catalog.stat(&path("/l")).unwrap();
        assert_eq!(stat.target, Some(LinkTarget { id: x, path: None }));
        assert_eq!((stat.versions, stat.node.unwrap().current), (vec![], None));
        let entries = catalog.list(&path("/"), None, 10).unwrap().entries;
        assert_eq!(entries.last().unwrap().version, None);
        assert_eq!(
            catalog.put(&put("/l", 2)).unwrap_err().to_string(),
            "cannot put `/l`: the target of the link is in the trash; restore that object, or delete the link"
        );
        assert!(catalog.add_attributes(&path("/l"), &[Attribute::new("a", 1)]).is_err());
    };
    catalog.trash(&path("/a/x")).unwrap();
    check(&mut catalog);
    catalog.restore(x, None).unwrap();
    let a = catalog.trash(&path("/a")).unwrap();
    check(&mut catalog);
    catalog.restore(a, None).unwrap();
    assert_eq!(catalog.stat(&path("/l")).unwrap().versions.len(), 1);

    // A purge of a link leaves its target, and that of a target leaves the link.
    catalog.trash(&path("/l")).unwrap();
    catalog.purge(link).unwrap();
    assert_eq!(catalog.stat(&path("/a/x")).unwrap().versions.len(), 1);
    catalog.link(&path("/a/x"), &path("/l")).unwrap();
    catalog.trash(&path("/a/x")).unwrap();
    catalog.purge(x).unwrap();
    check(&mut catalog);
    catalog.trash(&path("/l")).unwrap();
    assert_eq!(names(&mut catalog, "/"), ["a"]);
}

fn found<S: CatalogStore>(catalog: &mut Catalog<S>, condition: &str, limit: usize) -> Vec<String> {
    let condition = (!condition.is_empty()).then(|| condition.parse().unwrap());
    let find = Find { condition, name: Some("[xl]*".into()), ..Find::default() };
    let (mut paths, mut after): (Vec<String>, Option<ObjectId>) = (Vec::new(), None);
    loop {
        let page = catalog.find(&find, after, limit).unwrap();
        paths.extend(page.found.iter().map(|found| found.path.to_string()));
        assert!(page.found.iter().all(|found| found.entry.version.is_some()));
        after = page.next;
        if after.is_none() {
            paths.sort();
            return paths;
        }
    }
}

pub fn searches_follow_links<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("search", 1);
    for number in 0..4 {
        let attributes = vec![Attribute::new("n", number), Attribute::new("m", number % 2)];
        let at = format!("/x{number}");
        catalog.put(&Put { attributes, ..put(&at, 1) }).unwrap();
        catalog.link(&path(&at), &path(&format!("/l{number}"))).unwrap();
    }
    for limit in [1, 2, 3, 100] {
        assert_eq!(found(&mut catalog, "n >= 2", limit), ["/l2", "/l3", "/x2", "/x3"]);
        assert_eq!(found(&mut catalog, "n >= 1 and m = 0", limit), ["/l2", "/x2"]);
        assert_eq!(found(&mut catalog, "not n >= 1", limit), ["/l0", "/x0"]);
        assert_eq!(found(&mut catalog, "", limit).len(), 8);
    }
    catalog.trash(&path("/x2")).unwrap();
    assert_eq!(found(&mut catalog, "n >= 2", 10), ["/l3", "/x3"]);
    assert!(matches!(catalog.stat(&path("/x2")), Err(CatalogError::NotFound { .. })));
}
