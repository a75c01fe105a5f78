//! Searches by attributes, place and name.
//!
//! A search starts from the index range with the fewest objects, and tests the other parts of its condition on those.
//! It walks up from each match to see its path. Pages follow the order of ids.

use super::collections::{ENTRY_COLUMNS, Entry, JOIN_CURRENT, read_entry};
use super::links::follow_entry;
use super::lookup::{WayFinder, resolve_collection};
use super::{Catalog, MAX_PAGE};
use crate::condition::Condition;
use crate::error::Result;
use crate::ids::ObjectId;
use crate::name::CatalogPath;
use crate::name_pattern::NamePattern;
use crate::store::condition_sql::{Parameters, Tested, drivers, predicate, searches};
use crate::store::row::{NODE, RowReader};
use crate::store::{CatalogStore, SqlValue, collect, optional};

/// Bounds of counts of index ranges: a greater one is tried when no range is below the one before.
const COUNTED: [u64; 3] = [2_000, 16_000, 64_000];

/// Candidates of the first batch; each further one has twice as many.
const FIRST_BATCH: usize = 1_000;

/// Candidates of the largest batch: bounds memory.
const LAST_BATCH: usize = 64_000;

/// Search over the entries below a collection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Find {
    /// Collection below which entries are searched.
    pub under: CatalogPath,
    /// Condition over the attributes of an entry.
    pub condition: Option<Condition>,
    /// Shell pattern of the shown name.
    pub name: Option<String>,
}

/// Entry that matches a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Path of the entry.
    pub path: CatalogPath,
    /// Entry with its current version.
    pub entry: Entry,
}

/// Page of matches, in the order of ids.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FindPage {
    /// Matches of this page.
    pub found: Vec<Found>,
    /// Id after which the next page begins; nothing after the last page.
    pub next: Option<ObjectId>,
}

impl<S: CatalogStore> Catalog<S> {
    /// Finds entries that match, after an id, at most `limit` and at most [`MAX_PAGE`].
    pub fn find(&mut self, find: &Find, after: Option<ObjectId>, limit: usize) -> Result<FindPage> {
        let limit = limit.clamp(1, MAX_PAGE);
        let name = find.name.as_deref().map(NamePattern::new).transpose()?;
        self.read(|store| {
            let under = resolve_collection(store, "search", &find.under)?.id();
            let mut finder = WayFinder::default();
            let (mut page, mut after, mut batch) =
                (FindPage::default(), after.unwrap_or(ObjectId::ROOT), FIRST_BATCH);
            loop {
                let candidates = candidates(store, find.condition.as_ref(), under, after, batch)?;
                let is_last = candidates.len() < batch;
                for mut entry in candidates {
                    after = entry.node.id;
                    if name.as_ref().is_some_and(|name| !name.matches(&entry.node.shown)) {
                        continue;
                    }
                    let Some(above) = finder.way(store, entry.node.parent)?.cloned() else { continue };
                    if !under.is_root() && !above.ids.contains(&under) {
                        continue;
                    }
                    // Attributes of objects in the trash are not searched through links either.
                    let is_dangling = !follow_entry(store, &mut finder, &mut entry)?;
                    if is_dangling && find.condition.is_some() {
                        continue;
                    }
                    if page.found.len() == limit {
                        page.next = page.found.last().map(|last| last.entry.node.id);
                        return Ok(page);
                    }
                    let path = above.path.child(&entry.node.shown)?;
                    page.found.push(Found { path, entry });
                }
                if is_last {
                    return Ok(page);
                }
                batch = (batch * 2).min(LAST_BATCH);
            }
        })
    }
}

/// Parts of a search statement over the rows `n` of `nodes`.
struct Search {
    /// Common table expression, or nothing.
    with: String,
    /// Tables that lead to `n`.
    from: &'static str,
    /// Conditions that all hold.
    tests: Vec<String>,
    parameters: Parameters,
}

/// Entries after an id that satisfy the condition, and may lie below the collection.
///
/// A link satisfies a condition if its target does.
fn candidates<S: CatalogStore>(
    store: &mut S,
    condition: Option<&Condition>,
    under: ObjectId,
    after: ObjectId,
    limit: usize,
) -> Result<Vec<Entry>> {
    let mut entries = entries(store, condition, under, after, limit)?;
    if let Some(condition) = condition {
        let mut parameters = Parameters::default();
        let (after, bound) = (parameters.bind(after), parameters.bind(limit as u64));
        let test = predicate(
            condition,
            Tested { id: "n.target", are_many: false },
            store.dialect(),
            &mut parameters,
        );
        let sql = format!(
            "SELECT {NODE}, {ENTRY_COLUMNS} FROM nodes n {JOIN_CURRENT}
                WHERE n.kind = 2 AND n.trashed = 0 AND n.id > {after} AND {test} ORDER BY n.id LIMIT {bound}"
        );
        entries.extend(collect(store, &sql, &parameters.0, read_entry)?);
        entries.sort_by_key(|entry| entry.node.id);
        entries.truncate(limit);
    }
    Ok(entries)
}

/// Candidates but for links in the case of a condition.
fn entries<S: CatalogStore>(
    store: &mut S,
    condition: Option<&Condition>,
    under: ObjectId,
    after: ObjectId,
    limit: usize,
) -> Result<Vec<Entry>> {
    let (with, from, parameters) = (String::new(), "nodes n", Parameters::default());
    let mut search = Search { with, from, tests: vec!["n.trashed = 0".to_owned()], parameters };
    match condition {
        Some(condition) => search.by_condition(store, condition, &after.into())?,
        None => search.by_place(under, &after.into()),
    }
    let Search { with, from, tests, mut parameters } = search;
    let (tests, limit) = (tests.join(" AND "), parameters.bind(limit as u64));
    let sql = format!(
        "{with} SELECT {NODE}, {ENTRY_COLUMNS} FROM {from} {JOIN_CURRENT} WHERE {tests} ORDER BY n.id LIMIT {limit}"
    );
    collect(store, &sql, &parameters.0, read_entry)
}

impl Search {
    /// Starts from the smallest driver of the condition, and tests the rest of it on each match.
    fn by_condition<S: CatalogStore>(
        &mut self,
        store: &mut S,
        condition: &Condition,
        after: &SqlValue,
    ) -> Result<()> {
        let dialect = store.dialect();
        let (drivers, are_many) = ordered_drivers(store, condition)?;
        let driver = drivers.first().copied();
        self.tests.push("n.kind <> 2".to_owned());
        if let Some(driver) = driver {
            let searches = searches(driver, dialect, after, &mut self.parameters);
            // UNION removes doubles, also those within one search.
            let searches = match searches.as_slice() {
                [only] => format!("SELECT DISTINCT object FROM ({only}) s"),
                several => several.join(" UNION "),
            };
            self.with = format!("WITH driver (id) AS MATERIALIZED ({searches})");
            self.from = "driver d CROSS JOIN nodes n";
            self.tests.push("n.id = d.id".to_owned());
        } else {
            self.after(after);
        }
        // Tests of the driver's ids come before the reading of nodes.
        let id = if driver.is_some() { "d.id" } else { "n.id" };
        let tested = Tested { id, are_many };
        let parts = match condition {
            Condition::All(all) => all.as_slice(),
            whole => std::slice::from_ref(whole),
        };
        let is_other = |part: &&Condition| !drivers.iter().any(|driver| std::ptr::eq(*driver, *part));
        let others = parts.iter().filter(is_other);
        // The most selective tests come first.
        for part in drivers.iter().copied().skip(1).chain(others) {
            self.tests.push(predicate(part, tested, dialect, &mut self.parameters));
        }
        Ok(())
    }

    /// Starts from the collections below a collection.
    fn by_place(&mut self, under: ObjectId, after: &SqlValue) {
        if !under.is_root() {
            self.with = format!(
                "WITH RECURSIVE down (id) AS (SELECT id FROM nodes WHERE id = {} UNION ALL SELECT n.id
                    FROM down d CROSS JOIN nodes n WHERE n.parent = d.id AND n.kind = 0 AND n.trashed = 0)",
                self.parameters.bind(under)
            );
            self.from = "down d CROSS JOIN nodes n";
            self.tests.push("n.parent = d.id".to_owned());
        }
        self.after(after);
    }

    fn after(&mut self, after: &SqlValue) {
        let after = self.parameters.bind(after.clone());
        self.tests.push(format!("n.id > {after}"));
    }
}

/// Drivers of a condition, the one with the fewest objects first, and whether even that one has many. The order of larger ones
/// than the last bound is theirs in the condition.
fn ordered_drivers<'a, S: CatalogStore>(
    store: &mut S,
    condition: &'a Condition,
) -> Result<(Vec<&'a Condition>, bool)> {
    let drivers = drivers(condition);
    if drivers.len() < 2 {
        return Ok((drivers, false));
    }
    let mut counted = Vec::new();
    for bound in COUNTED {
        counted.clear();
        let mut least = bound;
        for driver in &drivers {
            // A larger one need not be counted to its end.
            let number = count(store, driver, least)?;
            least = least.min(number);
            counted.push((number, *driver));
        }
        if counted.iter().any(|(count, _)| *count < bound) {
            break;
        }
    }
    counted.sort_by_key(|(count, _)| *count);
    let are_many = counted.first().is_some_and(|(least, _)| *least >= COUNTED[0]);
    Ok((counted.into_iter().map(|(_, driver)| driver).collect(), are_many))
}

/// Number of entries of the index ranges of a driver, at most a bound.
fn count<S: CatalogStore>(store: &mut S, driver: &Condition, bound: u64) -> Result<u64> {
    let (mut parameters, first) = (Parameters::default(), SqlValue::from(ObjectId::ROOT));
    let searches = searches(driver, store.dialect(), &first, &mut parameters).join(" UNION ALL ");
    let limit = parameters.bind(bound);
    let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM ({searches}) s LIMIT {limit}) c");
    Ok(optional(store, &sql, &parameters.0, RowReader::count)?.unwrap_or(0))
}
