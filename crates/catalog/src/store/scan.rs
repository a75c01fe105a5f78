//! Scan of all records of a store, for digests and snapshots.

use super::CatalogStore;
use super::row::{
    ANNOTATION, ATTRIBUTE, DELETION, DISPUTE, FACT, GRANT, MOVE, NODE, REPLICA, RowReader, SITE, VERSION,
};
use crate::error::Result;
use crate::record::Record;

type Read = fn(&mut RowReader) -> Result<Record>;

/// Tables with their columns and readers.
const TABLES: [(&str, &str, Read); 11] = [
    ("nodes n", NODE, |row| row.node().map(Record::Node)),
    ("moves", MOVE, |row| row.step().map(Record::Move)),
    ("deletions", DELETION, |row| row.deletion().map(Record::Deletion)),
    ("versions", VERSION, |row| row.version().map(Record::Version)),
    ("replicas", REPLICA, |row| row.replica().map(Record::Replica)),
    ("attributes", ATTRIBUTE, |row| row.attribute().map(Record::Attribute)),
    ("annotations", ANNOTATION, |row| row.annotation().map(Record::Annotation)),
    ("conflicts", DISPUTE, |row| row.dispute().map(Record::Dispute)),
    ("grants", GRANT, |row| row.grant().map(Record::Grant)),
    ("facts", FACT, |row| row.fact().map(Record::Fact)),
    ("sites", SITE, |row| row.progress().map(Record::Site)),
];

/// Passes every record to `visit`, table by table, in no order within a table.
pub(crate) fn scan<S: CatalogStore>(
    store: &mut S,
    visit: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<()> {
    for (table, columns, read) in TABLES {
        let sql = format!("SELECT {columns} FROM {table}");
        store.query(&sql, &[], &mut |row| visit(read(&mut RowReader::new(row))?))?;
    }
    Ok(())
}
