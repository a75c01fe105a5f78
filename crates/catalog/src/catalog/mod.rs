//! Catalog of one site over a store: the public operations, each one transaction.

mod attributes;
mod batch;
mod collections;
mod conflicts;
mod copies;
mod facts;
mod find;
mod grants;
mod host;
mod links;
mod lookup;
mod objects;
mod purge;
mod quarantine;
mod replicas;
mod replication;
mod snapshots;
mod stat;
mod tree;

use crate::error::{CatalogError, Result};
use crate::hlc::HlcTime;
use crate::ids::{ObjectId, SiteId, Tag};
use crate::ledger::Ledger;
use crate::merge::Conflict;
use crate::operation::Change;
use crate::store::row::RowReader;
use crate::store::schema::migrate;
use crate::store::{Access, CatalogStore, collect, optional, transaction};
use std::time::Duration;

pub use attributes::{AttributeChange, FailedChange};
pub use collections::{Entry, Listing, VersionInfo};
pub use conflicts::{ConflictState, RecordedConflict, WrittenValue};
pub use copies::CopyBatch;
pub use find::{Find, FindPage, Found};
pub use host::{Host, SystemHost};
pub use links::LinkTarget;
pub use objects::{NewReplica, NewVersion, Put, Stored};
pub use quarantine::Quarantined;
pub use replicas::OnlyReplica;
pub use replication::Applied;
pub use stat::{Stat, StatById};
pub use tree::Trashed;

/// Most rows of one page: bounds memory and the length of a transaction.
pub const MAX_PAGE: usize = 10_000;

/// Catalog of one site in a database.
pub struct Catalog<S> {
    store: S,
    site: SiteId,
    host: Box<dyn Host>,
    settle_window: Duration,
    /// Operations that were logged since the catalog was opened.
    entered: u64,
}

/// Write transaction of a catalog.
struct Writer<'a, S> {
    store: &'a mut S,
    host: &'a mut dyn Host,
    ledger: Ledger,
}

impl<S: CatalogStore> Catalog<S> {
    /// Opens the catalog in a store, and makes it if the store is empty.
    pub fn open(mut store: S, site: SiteId, mut host: Box<dyn Host>) -> Result<Self> {
        migrate(&mut store, host.now())?;
        transaction(&mut store, Access::Write, |store| {
            let found = optional(store, "SELECT site FROM identity", &[], RowReader::site)?;
            match found {
                Some(found) if found == site => Ok(()),
                Some(found) => Err(CatalogError::OtherSite { asked: site, found }),
                None => {
                    store.execute("INSERT INTO identity VALUES (1, ?1, 0)", &[site.into()])?;
                    Ok(())
                }
            }
        })?;
        Ok(Self { store, site, host, settle_window: conflicts::SETTLE_WINDOW, entered: 0 })
    }

    /// Opens the catalog in a store as the site that it belongs to. An empty store becomes the catalog of site `fresh`.
    pub fn open_own(mut store: S, fresh: SiteId, mut host: Box<dyn Host>) -> Result<Self> {
        migrate(&mut store, host.now())?;
        let found = transaction(&mut store, Access::Read, |store| {
            optional(store, "SELECT site FROM identity", &[], RowReader::site)
        })?;
        Self::open(store, found.unwrap_or(fresh), host)
    }

    /// Makes an id that nothing has yet.
    pub fn fresh_id(&mut self) -> ObjectId {
        self.host.object_id()
    }

    /// Site that this catalog belongs to.
    pub fn site(&self) -> SiteId {
        self.site
    }

    /// Number of operations, local and remote ones, that this open catalog has logged. A change of it means new ones.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Runs `work` on one snapshot.
    fn read<T>(&mut self, work: impl FnOnce(&mut S) -> Result<T>) -> Result<T> {
        transaction(&mut self.store, Access::Read, work)
    }

    /// Runs `work` in a write transaction, and keeps the clock with its effects.
    fn write<T>(&mut self, work: impl FnOnce(&mut Writer<'_, S>) -> Result<T>) -> Result<T> {
        let host = &mut *self.host;
        let (done, entered) = transaction(&mut self.store, Access::Write, |store| {
            let ledger = load_ledger(store)?;
            let last = ledger.last_time();
            let mut writer = Writer { store, host, ledger };
            let done = work(&mut writer)?;
            let now = writer.ledger.last_time();
            if now != last {
                writer.store.execute("UPDATE identity SET clock = ?1", &[now.0.into()])?;
            }
            Ok((done, writer.ledger.entered()))
        })?;
        self.entered += entered;
        Ok(done)
    }
}

/// Reads the clock and the version vector.
fn load_ledger<S: CatalogStore>(store: &mut S) -> Result<Ledger> {
    let identity =
        optional(store, "SELECT site, clock FROM identity", &[], |row| Ok((row.site()?, row.count()?)))?;
    let Some((site, clock)) = identity else {
        return Err(CatalogError::Damaged("it has no identity".into()));
    };
    let applied =
        collect(store, "SELECT site, applied FROM sites", &[], |row| Ok((row.site()?, row.count()?)))?;
    Ok(Ledger::new(site, HlcTime(clock), applied.into_iter().collect()))
}

impl<S: CatalogStore> Writer<'_, S> {
    /// Tag of a change of the next operation.
    fn next_tag(&self, place: usize) -> Tag {
        Tag { op: self.ledger.next_op(), index: place as u16 }
    }

    /// Makes one operation of the changes, applies it and logs it.
    fn submit(&mut self, changes: Vec<Change>, under: Vec<ObjectId>) -> Result<Vec<Conflict>> {
        self.batch(|batch| batch.submit(changes, under))
    }
}
