//! Replicas: their states, and the versions whose only verified copies are at this site.

use super::links::resolve_object;
use super::lookup::{WayFinder, path_of};
use super::{Catalog, MAX_PAGE};
use crate::error::{CatalogError, Result};
use crate::ids::{ObjectId, Tag};
use crate::name::CatalogPath;
use crate::operation::{Change, ReplicaPlace, ReplicaState};
use crate::record::Replica;
use crate::store::row::{REPLICA, RowReader};
use crate::store::{CatalogStore, SqlValue, collect, optional};

/// Replica of a version that no other site has a verified copy of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnlyReplica {
    /// Path of the object; nothing if it lies in the trash.
    pub path: Option<CatalogPath>,
    /// Replica at this site.
    pub replica: Replica,
}

impl<S: CatalogStore> Catalog<S> {
    /// Adds a replica of a version of an object, or sets its state.
    pub fn set_replica(
        &mut self,
        path: &CatalogPath,
        version: Tag,
        place: ReplicaPlace,
        state: ReplicaState,
    ) -> Result<()> {
        const VERB: &str = "set a replica of";
        self.write(|writer| {
            let (node, _) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            if node.current.is_none() {
                let remedy = "put a version first";
                return Err(CatalogError::unsuitable(VERB, path, "it has no versions", remedy));
            }
            writer.submit(vec![Change::SetReplica { object: node.id, place, version, state }], Vec::new())?;
            Ok(())
        })
    }

    /// Removes the record of a replica. The bytes in the vault are the caller's part.
    pub fn remove_replica(&mut self, path: &CatalogPath, place: ReplicaPlace) -> Result<()> {
        const VERB: &str = "remove a replica of";
        let is_there = self.replicas(path)?.iter().any(|replica| replica.place == place);
        if !is_there {
            let remedy = "choose one of those that are listed";
            return Err(CatalogError::unsuitable(VERB, path, "it has no such replica", remedy));
        }
        self.write(|writer| {
            let (node, _) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            writer.submit(vec![Change::RemoveReplica { object: node.id, place }], Vec::new())?;
            Ok(())
        })
    }

    /// Lists the replicas of all versions of an object.
    pub fn replicas(&mut self, path: &CatalogPath) -> Result<Vec<Replica>> {
        Ok(self.stat(path)?.replicas)
    }

    /// Lists the replicas of all versions of an object by its id.
    pub fn replicas_of(&mut self, object: ObjectId) -> Result<Vec<Replica>> {
        self.read(|store| replicas_of(store, object))
    }

    /// Finds the oldest object, with its version, that has a replica under a key of a vault of this site.
    pub fn replica_at(&mut self, vault: &str, key: &str) -> Result<Option<(ObjectId, Tag)>> {
        let site = self.site;
        self.read(|store| {
            let sql = format!(
                "SELECT {REPLICA} FROM replicas WHERE site = ?1 AND vault = ?2 AND key = ?3 AND state IS NOT NULL
                    ORDER BY object LIMIT 1"
            );
            let found = optional(store, &sql, &[site.into(), vault.into(), key.into()], RowReader::replica)?;
            Ok(found.and_then(|replica| Some((replica.object, replica.content?.0))))
        })
    }

    /// Lists objects after an id, of which this site has no verified replica of the current version, but another site has.
    pub fn lacking(&mut self, after: Option<ObjectId>, limit: usize) -> Result<Vec<(ObjectId, Tag)>> {
        self.lacking_where("n.id > ?3", after.unwrap_or(ObjectId::ROOT), limit)
    }

    /// Finds the current version of an object, if another site has a verified replica of it and this site has none.
    pub fn lacks(&mut self, object: ObjectId) -> Result<Option<Tag>> {
        let found = self.lacking_where("n.id = ?3", object, 1)?;
        Ok(found.first().map(|(_, version)| *version))
    }

    fn lacking_where(&mut self, range: &str, object: ObjectId, limit: usize) -> Result<Vec<(ObjectId, Tag)>> {
        let (site, limit) = (self.site, limit.clamp(1, MAX_PAGE) as u64);
        self.read(|store| {
            let of_current = "object = n.id AND r.state = ?2 AND r.version_site = n.current_site
                AND r.version_seq = n.current_seq AND r.version_position = n.current_position";
            let sql = format!(
                "SELECT n.id, n.current_site, n.current_seq, n.current_position FROM nodes n
                    WHERE {range} AND n.trashed = 0 AND n.current_site IS NOT NULL
                    AND EXISTS (SELECT 1 FROM replicas r WHERE r.{of_current} AND r.site <> ?1)
                    AND NOT EXISTS (SELECT 1 FROM replicas r WHERE r.{of_current} AND r.site = ?1)
                    ORDER BY n.id LIMIT ?4"
            );
            let verified = SqlValue::Integer(ReplicaState::Verified as i64);
            let values = [site.into(), verified, object.into(), limit.into()];
            collect(store, &sql, &values, |row| Ok((row.object()?, row.tag()?)))
        })
    }

    /// Lists verified replicas at this site, of objects after an id, whose version no other site holds verified.
    pub fn only_here(&mut self, after: Option<ObjectId>, limit: usize) -> Result<Vec<OnlyReplica>> {
        let (site, limit) = (self.site, limit.clamp(1, MAX_PAGE) as u64);
        self.read(|store| {
            // A page holds whole objects: the search for them is bounded, not that for their replicas.
            let only = "r.site = ?1 AND r.state = ?2 AND NOT EXISTS (SELECT 1 FROM replicas o
                WHERE o.object = r.object AND o.site <> r.site AND o.state = r.state
                AND o.version_site = r.version_site AND o.version_seq = r.version_seq
                AND o.version_position = r.version_position)";
            let sql = format!(
                "SELECT {REPLICA} FROM replicas r WHERE {only} AND r.object IN (SELECT r.object FROM replicas r
                    WHERE {only} AND r.object > ?3 GROUP BY r.object ORDER BY r.object LIMIT ?4)
                    ORDER BY object, vault, key"
            );
            let verified = SqlValue::Integer(ReplicaState::Verified as i64);
            let after = after.unwrap_or(ObjectId::ROOT);
            let values = [site.into(), verified, after.into(), limit.into()];
            let replicas = collect(store, &sql, &values, RowReader::replica)?;
            let mut finder = WayFinder::default();
            let place = |replica: Replica| {
                let path = path_of(store, &mut finder, replica.object)?;
                Ok(OnlyReplica { path, replica })
            };
            replicas.into_iter().map(place).collect()
        })
    }
}

/// Replicas of all versions of an object, without tombstones, by site, vault and key.
pub(super) fn replicas_of<S: CatalogStore>(store: &mut S, object: ObjectId) -> Result<Vec<Replica>> {
    let sql = format!(
        "SELECT {REPLICA} FROM replicas WHERE object = ?1 AND state IS NOT NULL ORDER BY site, vault, key"
    );
    collect(store, &sql, &[object.into()], RowReader::replica)
}
