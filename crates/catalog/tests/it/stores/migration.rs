//! Migration of the schema: a database of the first version with replication keeps its contents and learns the new kinds.

use super::databases::{Databases, TestHost, path};
use super::objects::put;
use super::replication::records;
use super::tree::names;
use holdfast_catalog::{Catalog, CatalogStore, FactKind, SiteId};

/// Statements that take a database back to version 5.
const BACK: [&str; 8] = [
    "DROP TABLE facts",
    "DROP TABLE compacted",
    "DROP TABLE unneeded",
    "ALTER TABLE deletions DROP COLUMN purge",
    "DROP INDEX nodes_links",
    "ALTER TABLE nodes DROP COLUMN target",
    "DELETE FROM migrations WHERE version > 5",
    "DELETE FROM quarantine",
];

pub fn an_old_database_is_brought_forward<D: Databases>(databases: &D) {
    let mut catalog = databases.catalog("old", 1);
    catalog.make_collection(&path("/a"), false).unwrap();
    catalog.put(&put("/a/x", 1)).unwrap();
    catalog.put(&put("/a/y", 2)).unwrap();
    let gone = catalog.trash(&path("/a/y")).unwrap();
    let before = records(&mut catalog);
    drop(catalog);
    let mut store = databases.open("old");
    for sql in BACK {
        store.execute(sql, &[]).unwrap();
    }
    drop(store);
    let site = SiteId::new(1).unwrap();
    // A host of another seed makes other ids.
    let host = Box::new(TestHost::new(2));
    let mut catalog = Catalog::open(databases.open("old"), site, host).unwrap();
    assert_eq!(records(&mut catalog), before);
    catalog.set_fact(FactKind::Site, "1", Some("{}")).unwrap();
    catalog.link(&path("/a/x"), &path("/a/z")).unwrap();
    assert_eq!(names(&mut catalog, "/a"), ["x", "z"]);
    catalog.purge(gone).unwrap();
    assert_eq!(catalog.list_trash(None, 10).unwrap(), []);
}
