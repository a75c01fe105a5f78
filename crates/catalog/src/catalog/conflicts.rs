//! Recorded conflicts: listing, showing and settling them.
//!
//! A conflict over a name can be settled for a limited time. The home site of an object, the one that made it, decides
//! between two contents on its own: the later version is accepted, the other one is rejected and stays as a version.
//! Numbered names and refused moves are conflicts that the tree itself shows; a rename or a new move ends them.

use super::lookup::{WayFinder, node, path_of, resolve};
use super::{Catalog, MAX_PAGE, Writer};
use crate::dispute::{Choice, ConflictId, Dispute, DisputeKind, Settlement, Write};
use crate::error::{CatalogError, Result};
use crate::hlc::Millis;
use crate::ids::{ObjectId, SiteId, Tag};
use crate::name::{CatalogPath, Name};
use crate::operation::Change;
use crate::record::{Move, Node};
use crate::store::row::{DISPUTE, MOVE, NODE, RowReader};
use crate::store::tables::SqlTables;
use crate::store::{CatalogStore, SqlValue, collect, optional};
use std::time::Duration;

/// Time for which a conflict over a name can be settled, unless another one is set: 24 hours.
pub(super) const SETTLE_WINDOW: Duration = Duration::from_hours(24);

/// Value that one of two concurrent writes set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WrittenValue {
    /// Collection and name of an entry.
    Name {
        /// Collection that holds the entry.
        parent: ObjectId,
        /// Name of the entry.
        name: Name,
    },
    /// Version that is made current.
    Version(Tag),
}

/// State of a recorded conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConflictState {
    /// Conflict that can be settled until a time; one over contents waits for the home site.
    Open {
        /// End of the time for settling it.
        until: Millis,
    },
    /// Conflict that an operation has settled.
    Settled(Settlement),
    /// Conflict that can no longer be settled: the later write stays.
    Final,
}

/// Recorded conflict with both values, as this site shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedConflict {
    /// Register, object, both writes and the settlement.
    pub dispute: Dispute,
    /// Path of the object; nothing if it lies in the trash.
    pub path: Option<CatalogPath>,
    /// Value of the write that lost.
    pub lost: WrittenValue,
    /// Value of the write that won.
    pub won: WrittenValue,
    /// Time at which this site learned of the conflict.
    pub noted: Millis,
    /// State at the time of the question.
    pub state: ConflictState,
}

impl<S: CatalogStore> Catalog<S> {
    /// Sets the time for which this site lets conflicts over names be settled.
    pub fn set_settle_window(&mut self, window: Duration) {
        self.settle_window = window;
    }

    /// Lists recorded conflicts after an id, at most `limit` and at most [`MAX_PAGE`].
    pub fn conflicts(&mut self, after: Option<ConflictId>, limit: usize) -> Result<Vec<RecordedConflict>> {
        let (now, window, limit) = (self.host.now(), self.settle_window, limit.clamp(1, MAX_PAGE) as u64);
        self.read(|store| {
            let (start, mut values) = match after {
                Some(id) => {
                    ("WHERE (kind, object, lost_time, lost_site) > (?1, ?2, ?3, ?4)", key(id).to_vec())
                }
                None => ("", Vec::new()),
            };
            values.push(limit.into());
            let sql = format!(
                "SELECT {DISPUTE}, noted_ms FROM conflicts {start}
                    ORDER BY kind, object, lost_time, lost_site LIMIT ?{}",
                values.len()
            );
            let rows = collect(store, &sql, &values, read_noted)?;
            let mut finder = WayFinder::default();
            rows.into_iter().map(|row| recorded(store, &mut finder, row, now, window)).collect()
        })
    }

    /// Shows one recorded conflict.
    pub fn conflict(&mut self, id: ConflictId) -> Result<RecordedConflict> {
        let (now, window) = (self.host.now(), self.settle_window);
        self.read(|store| show(store, "show", id, now, window))
    }

    /// Settles a conflict over a name: keeps the later value, or sets the earlier one again.
    pub fn settle(&mut self, id: ConflictId, choice: Choice) -> Result<()> {
        let window = self.settle_window;
        self.write(|writer| writer.settle(id, choice, window))
    }

    /// Gives the name of `first` to the entry at `numbered`, which is shown under a number because of it, and the numbered name
    /// to the entry at `first`.
    pub fn swap_names(&mut self, numbered: &CatalogPath, first: &CatalogPath) -> Result<()> {
        const VERB: &str = "swap the name of";
        self.write(|writer| {
            let (later, _) = resolve(writer.store, VERB, numbered)?.not_root(VERB)?;
            let (node, under) = resolve(writer.store, VERB, first)?.not_root(VERB)?;
            if later.parent != node.parent || later.name != node.name || later.id == node.id {
                let (reason, remedy) = ("the other entry does not have its name", "list the conflicts again");
                return Err(CatalogError::unsuitable(VERB, numbered, reason, remedy));
            }
            let (object, parent, name) = (node.id, node.parent, Name::new(&later.shown)?);
            writer.submit(vec![Change::SetName { object, parent, name, replaces: node.named }], under)?;
            Ok(())
        })
    }

    /// Lists visible entries after an id that are shown under a number, as an earlier one has their name.
    pub fn numbered_names(&mut self, after: Option<ObjectId>, limit: usize) -> Result<Vec<Node>> {
        let limit = limit.clamp(1, MAX_PAGE) as u64;
        self.read(|store| {
            let sql = format!(
                "SELECT {NODE} FROM nodes n WHERE n.trashed = 0 AND n.shown <> n.name AND n.id > ?1
                    ORDER BY n.id LIMIT ?2"
            );
            let values = [after.unwrap_or(ObjectId::ROOT).into(), SqlValue::from(limit)];
            collect(store, &sql, &values, RowReader::node)
        })
    }

    /// Lists moves of collections after an id that have no effect, as each would make a cycle.
    ///
    /// A page holds the moves of whole collections.
    pub fn refused_moves(&mut self, after: Option<ObjectId>, limit: usize) -> Result<Vec<Move>> {
        let limit = limit.clamp(1, MAX_PAGE) as u64;
        self.read(|store| {
            let sql = format!(
                "SELECT {MOVE} FROM moves WHERE effective = 0 AND object IN (SELECT DISTINCT object FROM moves
                    WHERE effective = 0 AND object > ?1 ORDER BY object LIMIT ?2) ORDER BY object, time, site"
            );
            let values = [after.unwrap_or(ObjectId::ROOT).into(), SqlValue::from(limit)];
            collect(store, &sql, &values, RowReader::step)
        })
    }
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Notes the time of new conflicts, and accepts the later contents of objects that this site made.
    pub(super) fn note_conflicts(&mut self, now: Millis) -> Result<()> {
        let own: SiteId = self.ledger.next_op().site;
        let sql = format!(
            "SELECT {DISPUTE} FROM conflicts WHERE kind = ?1 AND noted_ms IS NULL AND settled_time IS NULL
                AND object IN (SELECT id FROM nodes WHERE made_site = ?2) ORDER BY object, lost_time, lost_site"
        );
        let values = [SqlValue::Integer(DisputeKind::Contents as i64), own.into()];
        for dispute in collect(self.store, &sql, &values, RowReader::dispute)? {
            let Dispute { object, kind, lost, .. } = dispute;
            let change = Change::Settle { object, kind, lost: lost.stamp, choice: Choice::Keep };
            self.submit(vec![change], Vec::new())?;
        }
        self.store.execute("UPDATE conflicts SET noted_ms = ?1 WHERE noted_ms IS NULL", &[now.0.into()])?;
        Ok(())
    }

    /// Notes the time of conflicts that came with a snapshot, but for those that this site is to decide.
    pub(super) fn note_imported_conflicts(&mut self, now: Millis) -> Result<()> {
        let own: SiteId = self.ledger.next_op().site;
        let sql = "UPDATE conflicts SET noted_ms = ?1 WHERE kind <> ?2 OR settled_time IS NOT NULL
            OR object NOT IN (SELECT id FROM nodes WHERE made_site = ?3)";
        let values = [now.0.into(), SqlValue::Integer(DisputeKind::Contents as i64), own.into()];
        self.store.execute(sql, &values)?;
        Ok(())
    }

    fn settle(&mut self, id: ConflictId, choice: Choice, window: Duration) -> Result<()> {
        const VERB: &str = "settle conflict";
        let refuse = |reason, remedy| {
            Err(CatalogError::Unsuitable { verb: VERB, object: id.to_string(), reason, remedy })
        };
        let found = show(self.store, VERB, id, self.host.now(), window)?;
        match found.state {
            ConflictState::Open { .. } => {}
            ConflictState::Settled(_) => return refuse("it is settled already", "rename the entry instead"),
            ConflictState::Final => return refuse("its time is over", "rename the entry instead"),
        }
        let WrittenValue::Name { parent, name } = found.lost else {
            return refuse("the home site of the object decides", "make another version current instead");
        };
        let object = id.object;
        let mut changes = vec![Change::Settle { object, kind: id.kind, lost: id.lost, choice }];
        let mut under = Vec::new();
        if choice == Choice::Flip {
            let Some(node) = node(self.store, object)?.filter(|node| !node.trashed) else {
                return refuse("its entry is in the trash", "restore the entry first");
            };
            let mut finder = WayFinder::default();
            let Some(way) = finder.way(self.store, parent)? else {
                return refuse("its former collection is in the trash", "restore the collection first");
            };
            if way.ids.contains(&object) {
                return refuse("its former collection lies below it now", "move that collection first");
            }
            under.clone_from(&way.ids);
            changes.push(Change::SetName { object, parent, name, replaces: node.named });
        }
        self.submit(changes, under)?;
        Ok(())
    }
}

/// Values of the key columns of a conflict.
fn key(id: ConflictId) -> [SqlValue; 4] {
    [SqlValue::Integer(id.kind as i64), id.object.into(), id.lost.time.0.into(), id.lost.site.into()]
}

fn read_noted(row: &mut RowReader) -> Result<(Dispute, Millis)> {
    // A conflict that came with a snapshot, and waits for this site to decide, is noted with the next operations.
    Ok((row.dispute()?, Millis(row.optional_integer()?.unwrap_or(0).unsigned_abs())))
}

fn show<S: CatalogStore>(
    store: &mut S,
    verb: &'static str,
    id: ConflictId,
    now: Millis,
    window: Duration,
) -> Result<RecordedConflict> {
    let sql = format!(
        "SELECT {DISPUTE}, noted_ms FROM conflicts
            WHERE kind = ?1 AND object = ?2 AND lost_time = ?3 AND lost_site = ?4"
    );
    let Some(row) = optional(store, &sql, &key(id), read_noted)? else {
        let (reason, remedy) = ("it is not recorded", "list the conflicts to see their ids");
        return Err(CatalogError::Unsuitable { verb, object: id.to_string(), reason, remedy });
    };
    recorded(store, &mut WayFinder::default(), row, now, window)
}

/// Adds values, path and state to the record of a conflict.
fn recorded<S: CatalogStore>(
    store: &mut S,
    finder: &mut WayFinder,
    (dispute, noted): (Dispute, Millis),
    now: Millis,
    window: Duration,
) -> Result<RecordedConflict> {
    let path = path_of(store, finder, dispute.object)?;
    let (lost, won) = (written(store, &dispute, dispute.lost)?, written(store, &dispute, dispute.won)?);
    let until = Millis(noted.0.saturating_add(u64::try_from(window.as_millis()).unwrap_or(u64::MAX)));
    let state = match (dispute.settled, dispute.kind) {
        (Some(settled), _) => ConflictState::Settled(settled),
        (None, DisputeKind::Name) if now >= until => ConflictState::Final,
        (None, _) => ConflictState::Open { until },
    };
    Ok(RecordedConflict { dispute, path, lost, won, noted, state })
}

/// Value that a write set, from the log.
fn written<S: CatalogStore>(store: &mut S, dispute: &Dispute, write: Write) -> Result<WrittenValue> {
    use crate::merge::Tables;
    let op = SqlTables::new(store).logged(write.op())?;
    let changes = op.into_iter().flat_map(|op| op.changes);
    let mut values = changes.filter(|change| change.object() == dispute.object).filter_map(|change| {
        match (dispute.kind, change) {
            (DisputeKind::Name, Change::SetName { parent, name, .. }) => {
                Some(WrittenValue::Name { parent, name })
            }
            (DisputeKind::Contents, Change::SetCurrent { version, .. }) => {
                Some(WrittenValue::Version(version))
            }
            _ => None,
        }
    });
    values.next().ok_or_else(|| CatalogError::Damaged(format!("operation {} is not in the log", write.op())))
}
