//! Facts: limits, pages, removal and concurrent changes.

use super::databases::Databases;
use super::replication::{pull, records};
use holdfast_catalog::{Catalog, CatalogStore, FactKind, MAX_FACT_BYTES, MAX_FACT_KEY_BYTES};

fn keys<S: CatalogStore>(catalog: &mut Catalog<S>, kind: FactKind, after: Option<&str>) -> Vec<String> {
    catalog.facts(kind, after, 2).unwrap().into_iter().map(|fact| fact.key).collect()
}

pub fn facts_are_listed_by_key_and_converge<D: Databases>(databases: &D) {
    let (mut one, mut two) = (databases.catalog("first", 1), databases.catalog("second", 2));
    for key in ["b", "a", "c", "B"] {
        one.set_fact(FactKind::Account, key, Some("{}")).unwrap();
    }
    one.set_fact(FactKind::Group, "a", Some("staff")).unwrap();
    assert_eq!(keys(&mut one, FactKind::Account, None), ["B", "a"]);
    assert_eq!(keys(&mut one, FactKind::Account, Some("a")), ["b", "c"]);
    assert_eq!(one.fact(FactKind::Group, "a").unwrap().unwrap().body.as_deref(), Some("staff"));
    assert_eq!(one.fact(FactKind::Site, "a").unwrap(), None);

    for key in ["x/a_b", "y/aXb", "z/A_B", "z/a_b"] {
        one.set_fact(FactKind::Group, key, Some("")).unwrap();
    }
    let ending = one.facts_ending(FactKind::Group, "/a_b").unwrap();
    assert_eq!(ending.iter().map(|fact| fact.key.as_str()).collect::<Vec<_>>(), ["x/a_b", "z/a_b"]);

    pull(&mut one, &mut two, 100);
    one.set_fact(FactKind::Account, "a", None).unwrap();
    assert_eq!(one.fact(FactKind::Account, "a").unwrap(), None);
    assert_eq!(keys(&mut one, FactKind::Account, None), ["B", "b"]);
    for _ in 0..20 {
        // The clock of a site moves with its operations.
        two.set_fact(FactKind::Site, "clock", None).unwrap();
    }
    two.set_fact(FactKind::Account, "a", Some("later")).unwrap();
    pull(&mut one, &mut two, 100);
    pull(&mut two, &mut one, 100);
    assert_eq!(records(&mut one), records(&mut two));
    assert_eq!(one.fact(FactKind::Account, "a").unwrap().unwrap().body.as_deref(), Some("later"));

    let (key, body) = ("k".repeat(MAX_FACT_KEY_BYTES), "b".repeat(MAX_FACT_BYTES));
    one.set_fact(FactKind::Policy, &key, Some(&body)).unwrap();
    let too_long = [format!("{key}k"), String::new()];
    assert!(too_long.iter().all(|key| one.set_fact(FactKind::Policy, key, None).is_err()));
    assert!(one.set_fact(FactKind::Policy, "k", Some(&format!("{body}b"))).is_err());
}
