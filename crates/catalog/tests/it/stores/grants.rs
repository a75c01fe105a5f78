//! Grants of rights: inheritance, revocation and concurrent changes.

use super::databases::{Databases, path};
use super::objects::put;
use super::replication::{pull, records};
use holdfast_catalog::{CatalogError, Right};

pub fn rights_are_inherited_and_converge<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.make_collection(&path("/a/b"), true).unwrap();
    one.put(&put("/a/b/x", 1)).unwrap();
    one.grant(&path("/"), "all", Right::Read).unwrap();
    one.grant(&path("/a"), "ann", Right::Write).unwrap();
    one.grant(&path("/a/b"), "ann", Right::Read).unwrap();
    let right = |subjects: &[&str], at: &str| {
        (subjects.iter().map(ToString::to_string).collect::<Vec<_>>(), path(at))
    };
    let table = [
        (right(&["ann"], "/a/b/x"), Some(Right::Write)),
        (right(&["ann"], "/a"), Some(Right::Write)),
        (right(&["ann"], "/"), None),
        (right(&["ann", "all"], "/"), Some(Right::Read)),
        (right(&["bob"], "/a/b/x"), None),
        (right(&["bob", "all"], "/a/b/x"), Some(Right::Read)),
    ];
    for ((subjects, at), expected) in table {
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        assert_eq!(one.right_of(&at, &subjects).unwrap(), expected, "{subjects:?} on {at}");
    }

    let granted = one.granted(&["ann", "all", "bob"]).unwrap();
    let expected = [("/a", Right::Write), ("/a/b", Right::Read), ("/", Right::Read)]
        .map(|(at, right)| (path(at), right));
    assert!(expected.iter().all(|right| granted.contains(right)) && granted.len() == 3, "{granted:?}");
    let id = one.trash(&path("/a")).unwrap();
    assert_eq!(one.granted(&["ann"]).unwrap().len(), 2);
    assert_eq!(one.restore(id, None).unwrap(), path("/a"));

    pull(&mut one, &mut two, 100);
    one.revoke(&path("/a"), "ann").unwrap();
    two.annotate(&path("/a"), "ann", "the clock moves").unwrap();
    two.grant(&path("/a"), "ann", Right::Own).unwrap();
    pull(&mut one, &mut two, 100);
    pull(&mut two, &mut one, 100);
    assert_eq!(records(&mut one), records(&mut two));
    let last = two.right_of(&path("/a"), &["ann"]).unwrap();
    assert_eq!(one.right_of(&path("/a"), &["ann"]).unwrap(), last);

    two.revoke(&path("/"), "all").unwrap();
    assert_eq!(two.grants(&path("/")).unwrap(), []);
    assert!(matches!(two.revoke(&path("/"), "all"), Err(CatalogError::Unsuitable { .. })));
    let refused = two.grant(&path("/"), "", Right::Read).unwrap_err().to_string();
    assert!(refused.contains("it has a grant without a subject"), "{refused}");
}
