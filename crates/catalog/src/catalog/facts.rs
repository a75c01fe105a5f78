//! Facts: setting, removing and reading texts by kind and key.

use super::{Catalog, MAX_PAGE};
use crate::error::Result;
use crate::fact::{Fact, FactKind};
use crate::operation::Change;
use crate::store::row::{FACT, RowReader};
use crate::store::{CatalogStore, SqlValue, collect, optional};

impl<S: CatalogStore> Catalog<S> {
    /// Sets the body of a fact, or removes the fact if there is none.
    pub fn set_fact(&mut self, kind: FactKind, key: &str, body: Option<&str>) -> Result<()> {
        self.write(|writer| {
            let (key, body) = (key.to_owned(), body.map(str::to_owned));
            writer.submit(vec![Change::SetFact { kind, key, body }], Vec::new())?;
            Ok(())
        })
    }

    /// Reads a fact; nothing if it was never set or is removed.
    pub fn fact(&mut self, kind: FactKind, key: &str) -> Result<Option<Fact>> {
        self.read(|store| {
            let sql = format!("SELECT {FACT} FROM facts WHERE kind = ?1 AND key = ?2 AND body IS NOT NULL");
            optional(store, &sql, &[SqlValue::Integer(kind as i64), key.into()], RowReader::fact)
        })
    }

    /// Lists the facts of a kind after a key, in the order of the bytes of keys, at most `limit` and at most [`MAX_PAGE`].
    pub fn facts(&mut self, kind: FactKind, after: Option<&str>, limit: usize) -> Result<Vec<Fact>> {
        let limit = limit.clamp(1, MAX_PAGE) as u64;
        self.read(|store| {
            // No key is empty, so the empty text is before all.
            let sql = format!(
                "SELECT {FACT} FROM facts WHERE kind = ?1 AND key > ?2 AND body IS NOT NULL ORDER BY key LIMIT ?3"
            );
            let values =
                [SqlValue::Integer(kind as i64), after.unwrap_or_default().into(), SqlValue::from(limit)];
            collect(store, &sql, &values, RowReader::fact)
        })
    }

    /// Lists the facts of a kind whose keys end with a text, in the order of the bytes of keys, at most [`MAX_PAGE`].
    pub fn facts_ending(&mut self, kind: FactKind, end: &str) -> Result<Vec<Fact>> {
        self.read(|store| {
            let sql = format!(
                "SELECT {FACT} FROM facts WHERE kind = ?1 AND key LIKE ?2 ESCAPE '!' AND body IS NOT NULL
                    ORDER BY key LIMIT ?3"
            );
            let quoted = end.replace('!', "!!").replace('%', "!%").replace('_', "!_");
            let limit = SqlValue::from(MAX_PAGE as u64);
            let values = [SqlValue::Integer(kind as i64), format!("%{quoted}").as_str().into(), limit];
            let mut found = collect(store, &sql, &values, RowReader::fact)?;
            // LIKE of SQLite ignores case.
            found.retain(|fact| fact.key.ends_with(end));
            Ok(found)
        })
    }
}
