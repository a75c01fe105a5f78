//! Recorded conflicts: settling names, contents that the home site decides on, and conflicts that the tree shows.

use super::databases::{Databases, path};
use super::objects::put;
use super::replication::{pull, records};
use super::tree::names;
use holdfast_catalog::{
    Catalog, CatalogError, CatalogStore, Choice, ConflictId, ConflictState, DisputeKind, WrittenValue,
};
use std::time::Duration;

fn exchange<S: CatalogStore>(one: &mut Catalog<S>, two: &mut Catalog<S>) {
    for _ in 0..2 {
        pull(one, two, 1000);
        pull(two, one, 1000);
    }
    assert_eq!(records(one), records(two));
}

/// Renames one object at both sites, the second one later, and returns the conflict.
fn rename_twice<S: CatalogStore>(one: &mut Catalog<S>, two: &mut Catalog<S>, at: &str) -> ConflictId {
    exchange(one, two);
    let known: Vec<ConflictId> =
        one.conflicts(None, 100).unwrap().iter().map(|row| row.dispute.id()).collect();
    one.rename(&path(at), &path(&format!("{at}_first"))).unwrap();
    for number in 0..20 {
        // The clock of a site moves with its operations.
        two.annotate(&path(at), "ann", &number.to_string()).unwrap();
    }
    two.rename(&path(at), &path(&format!("{at}_second"))).unwrap();
    exchange(one, two);
    let all = one.conflicts(None, 100).unwrap();
    let mut fresh = all.iter().map(|row| row.dispute.id()).filter(|id| !known.contains(id));
    fresh.next().unwrap()
}

pub fn a_name_is_flipped_within_its_time_and_then_final<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.put(&put("/x", 1)).unwrap();
    one.make_collection(&path("/y"), false).unwrap();
    one.put(&put("/z", 1)).unwrap();

    let id = rename_twice(&mut one, &mut two, "/x");
    assert_eq!(names(&mut one, "/"), ["x_second", "y", "z"]);
    let shown = one.conflict(id).unwrap();
    assert_eq!(shown.path, Some(path("/x_second")));
    assert!(matches!(shown.state, ConflictState::Open { .. }));
    assert!(matches!(&shown.lost, WrittenValue::Name { name, .. } if name.as_str() == "x_first"));
    assert!(matches!(&shown.won, WrittenValue::Name { name, .. } if name.as_str() == "x_second"));
    assert_eq!((shown.dispute.lost.op().site, shown.dispute.won.op().site), (one.site(), two.site()));
    assert_eq!(two.conflict(id).unwrap().dispute, shown.dispute);

    two.settle(id, Choice::Flip).unwrap();
    exchange(&mut one, &mut two);
    assert_eq!(names(&mut one, "/"), ["x_first", "y", "z"]);
    let state = one.conflict(id).unwrap().state;
    assert!(matches!(state, ConflictState::Settled(settled) if settled.choice == Choice::Flip));
    assert!(matches!(one.settle(id, Choice::Keep), Err(CatalogError::Unsuitable { .. })));
    assert_eq!(one.conflicts(None, 100).unwrap().len(), 1);

    let id = rename_twice(&mut one, &mut two, "/y");
    one.settle(id, Choice::Keep).unwrap();
    exchange(&mut one, &mut two);
    assert_eq!(names(&mut two, "/"), ["x_first", "y_second", "z"]);

    let id = rename_twice(&mut one, &mut two, "/z");
    one.set_settle_window(Duration::ZERO);
    assert_eq!(one.conflict(id).unwrap().state, ConflictState::Final);
    let refused = one.settle(id, Choice::Flip).unwrap_err().to_string();
    assert_eq!(refused, format!("cannot settle conflict {id}: its time is over; rename the entry instead"));
    let mut ids = Vec::new();
    while let Some(found) = two.conflicts(ids.last().copied(), 1).unwrap().pop() {
        ids.push(found.dispute.id());
    }
    assert_eq!(ids.len(), 3);
    assert!(ids.contains(&id) && ids.is_sorted());
}

pub fn the_home_site_accepts_one_of_two_contents<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("home", 1), databases.catalog("guest", 2));
    one.put(&put("/x", 1)).unwrap();
    exchange(&mut one, &mut two);
    one.put(&put("/x", 2)).unwrap();
    two.put(&put("/x", 3)).unwrap();
    // The guest learns of the conflict first, and leaves the decision to the home site.
    pull(&mut one, &mut two, 100);
    let open = two.conflicts(None, 10).unwrap().remove(0);
    let id = open.dispute.id();
    assert!(id.kind == DisputeKind::Contents && matches!(open.state, ConflictState::Open { .. }));
    assert!(matches!(two.settle(id, Choice::Flip), Err(CatalogError::Unsuitable { .. })));
    exchange(&mut one, &mut two);
    let settled = two.conflict(id).unwrap();
    assert!(matches!(settled.state, ConflictState::Settled(by) if by.set.site == one.site()));
    let stat = two.stat(&path("/x")).unwrap();
    assert_eq!(stat.versions.len(), 3);
    let current = stat.node.unwrap().current.unwrap().version;
    assert_eq!(settled.won, WrittenValue::Version(current));
}

pub fn the_tree_shows_numbered_names_and_refused_moves<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    one.make_collection(&path("/a"), false).unwrap();
    one.make_collection(&path("/b"), false).unwrap();
    exchange(&mut one, &mut two);
    one.rename(&path("/a"), &path("/b/a")).unwrap();
    two.rename(&path("/b"), &path("/a/b")).unwrap();
    one.put(&put("/x", 1)).unwrap();
    two.put(&put("/x", 2)).unwrap();
    exchange(&mut one, &mut two);
    let refused = two.refused_moves(None, 10).unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(two.refused_moves(Some(refused[0].object), 10).unwrap(), []);
    let numbered = one.numbered_names(None, 10).unwrap();
    assert_eq!(numbered.iter().map(|node| node.shown.as_str()).collect::<Vec<_>>(), ["x_1"]);
    one.rename(&path("/x_1"), &path("/z")).unwrap();
    exchange(&mut one, &mut two);
    assert_eq!(two.numbered_names(None, 10).unwrap(), []);
}
