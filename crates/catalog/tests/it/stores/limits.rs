//! Limits: long lists, deep trees, odd names, and databases of others.

use super::databases::{Databases, TestHost, path};
use super::objects::put;
use super::tree::names;
use holdfast_catalog::{Attribute, Catalog, CatalogError, CatalogStore, Condition, Find, Put, SiteId, Value};

pub fn ten_thousand_entries_are_listed_in_pages<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("pages", 1);
    catalog.make_collection(&path("/big"), false).unwrap();
    let puts: Vec<Put> = (0..10_000).map(|number| put(&format!("/big/{number:05}"), 1)).collect();
    catalog.put_all(&puts).unwrap();
    let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = catalog.list(&path("/big"), after.as_deref(), 999).unwrap();
        seen.extend(page.entries.into_iter().map(|entry| entry.node.shown));
        pages += 1;
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(pages, 11);
    assert!(seen.iter().enumerate().all(|(number, name)| *name == format!("{number:05}")));
    assert_eq!(seen.len(), 10_000);
    let exact = catalog.list(&path("/big"), Some("09989"), 10).unwrap();
    assert_eq!((exact.entries.len(), exact.next), (10, None));
}

pub fn a_thousand_levels_work<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("depth", 1);
    let deep = "/d".repeat(1000);
    catalog.make_collection(&path(&deep), true).unwrap();
    let put = Put { attributes: vec![Attribute::new("a", 1)], ..put(&format!("{deep}/x"), 1) };
    let object = catalog.put(&put).unwrap().object;
    let find = Find { condition: Some("a = 1".parse().unwrap()), ..Find::default() };
    assert_eq!(catalog.find(&find, None, 10).unwrap().found[0].path, put.path);
    assert!(catalog.rename(&path("/d"), &path(&format!("{deep}/e"))).is_err());
    catalog.rename(&path("/d/d"), &path("/e")).unwrap();
    let at = path(&format!("/e{}/x", "/d".repeat(998)));
    assert_eq!(catalog.stat(&at).unwrap().node.unwrap().id, object);
    let mut other = databases.catalog("depth_copy", 2);
    let log = catalog.operations_beyond(&other.vector().unwrap(), 100).unwrap();
    other.apply(&log).unwrap();
    assert_eq!(other.digest().unwrap(), catalog.digest().unwrap());
}

pub fn odd_names_and_texts_are_kept_exactly<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("odd", 1);
    let long = "ü".repeat(127) + "x";
    let odd = [
        "a",
        "A",
        "Straße",
        "STRASSE",
        "e\u{301}",
        "\u{e9}",
        "line\nbreak",
        "\t",
        " ",
        "'; DROP TABLE nodes; --",
        "\"",
        "%",
        "_",
        "*",
        "?",
        "[a]",
        "\\",
        "?1",
        "$1",
        "\u{202e}abc",
        "\u{1f52d}",
        "\u{10ffff}",
        "ﬁ",
        "fi",
        &long,
    ];
    for (number, name) in odd.iter().enumerate() {
        let attributes =
            vec![Attribute::new(*name, *name).with_unit("u"), Attribute::new("n", number as i64)];
        catalog.put(&Put { attributes, ..put(&format!("/{name}"), number as u8) }).unwrap();
    }
    let mut sorted: Vec<String> = odd.iter().map(ToString::to_string).collect();
    sorted.sort();
    assert_eq!(names(&mut catalog, "/"), sorted, "names are exact, and in the order of their bytes");
    for (number, name) in odd.iter().enumerate() {
        let at = path("/").child(name).unwrap();
        assert_eq!(catalog.stat(&at).unwrap().versions[0].size, number as u64);
        let (attribute, literal) = ((*name).to_owned(), Value::from(*name));
        let operator = holdfast_catalog::Operator::Equal;
        let condition = Some(Condition::Compare { attribute, operator, literal });
        let found = catalog.find(&Find { condition, ..Find::default() }, None, 10).unwrap().found;
        assert_eq!(found.iter().map(|found| &found.path).collect::<Vec<_>>(), [&at]);
        // The canonical text of the condition finds the same.
        let text = found[0].entry.node.name.to_string();
        let pieces = vec![text];
        let like =
            Condition::Like { attribute: (*name).to_owned(), pattern: holdfast_catalog::Pattern { pieces } };
        let condition = Some(like.to_string().parse().unwrap());
        assert_eq!(catalog.find(&Find { condition, ..Find::default() }, None, 10).unwrap().found, found);
    }
    let too_long = catalog.make_collection(&path(&format!("/{}", "x".repeat(256))), false);
    assert!(too_long.unwrap_err().to_string().contains("longer than 255 bytes; shorten it"));
}

pub fn foreign_databases_are_refused<D: Databases>(databases: &D) {
    let name = "identity";
    drop(databases.catalog(name, 1));
    let open =
        |site| Catalog::open(databases.open(name), SiteId::new(site).unwrap(), Box::new(TestHost::new(1)));
    assert!(open(1).is_ok());
    let other = open(2).err().unwrap();
    assert_eq!(
        other.to_string(),
        "cannot open the catalog as site 2: it belongs to site 1; use that id, or another database"
    );
    let mut store = databases.open(name);
    store.execute("INSERT INTO migrations (version, applied_ms) VALUES (99, 0)", &[]).unwrap();
    assert!(matches!(open(1).err(), Some(CatalogError::NewerSchema { found: 99, .. })));
}
