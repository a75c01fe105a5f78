//! Policies of collections: the number of copies, and the sites that shall have them. Pure but for their reading.

use holdfast_catalog::{Catalog, CatalogPath, CatalogStore, FactKind, ObjectId, Result, SiteId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Policies that are read together.
const PAGE: usize = 1000;

/// Policy as its fact has it. The key of the fact is the id of the collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PolicyBody {
    /// Number of sites that shall have a verified replica.
    pub(crate) copies: usize,
    /// Sites in the order in which they are chosen.
    pub(crate) sites: Vec<SiteId>,
    /// Priority of the jobs; greater ones come first.
    pub(crate) priority: i32,
}

/// Policy of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Identity of the collection, the root included.
    pub(crate) collection: ObjectId,
    /// Path of the collection.
    pub(crate) path: CatalogPath,
    /// Number of copies, sites and priority.
    pub(crate) body: PolicyBody,
}

impl PolicyBody {
    /// True if a site shall fetch a copy, when others have verified ones: it is among the first sites that make the number full.
    pub(crate) fn wants(&self, site: SiteId, holders: &BTreeSet<SiteId>) -> bool {
        let missing = self.copies.saturating_sub(holders.len());
        self.sites
            .iter()
            .filter(|listed| !holders.contains(listed))
            .take(missing)
            .any(|listed| *listed == site)
    }
}

/// All policies of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policies(Vec<Policy>);

impl Policies {
    /// Reads the policies of visible collections, in the order of their paths. Unreadable ones of newer software are left out.
    pub(crate) fn read<S: CatalogStore>(catalog: &mut Catalog<S>) -> Result<Self> {
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let facts = catalog.facts(FactKind::Policy, after.as_deref(), PAGE)?;
            for fact in &facts {
                let body = fact.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
                let (Ok(collection), Some(body)) = (fact.key.parse::<ObjectId>(), body) else { continue };
                let is_root = collection.is_root();
                let path = if is_root { Some(CatalogPath::root()) } else { catalog.path_of(collection)? };
                all.extend(path.map(|path| Policy { collection, path, body }));
            }
            after = facts.last().map(|last| last.key.clone());
            if facts.len() < PAGE {
                all.sort_by_key(|policy| policy.path.to_string());
                return Ok(Self(all));
            }
        }
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Policies in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter()
    }

    /// Policy of an object: that of the nearest collection above it.
    pub(crate) fn of(&self, path: &CatalogPath) -> Option<&Policy> {
        let above = self.0.iter().filter(|policy| policy.path.holds(path));
        above.max_by_key(|policy| policy.path.components().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(numbers: &[u64]) -> Vec<SiteId> {
        numbers.iter().map(|number| SiteId::new(*number).unwrap()).collect()
    }

    #[test]
    fn the_first_sites_without_a_replica_make_the_number_full() {
        let body = PolicyBody { copies: 2, sites: sites(&[1, 2, 3]), priority: 0 };
        let wanting = |holders: &[u64]| {
            let holders = sites(holders).into_iter().collect();
            body.sites.iter().filter(|site| body.wants(**site, &holders)).copied().collect::<Vec<_>>()
        };
        assert_eq!(wanting(&[]), sites(&[1, 2]));
        assert_eq!(wanting(&[2]), sites(&[1]));
        assert_eq!(wanting(&[9]), sites(&[1]));
        assert_eq!(wanting(&[1, 3]), sites(&[]));
        assert!(!body.wants(SiteId::new(9).unwrap(), &BTreeSet::new()));
    }

    #[test]
    fn the_nearest_collection_counts() {
        let policy = |path: &str, copies| Policy {
            collection: ObjectId::ROOT,
            path: path.parse().unwrap(),
            body: PolicyBody { copies, sites: Vec::new(), priority: 0 },
        };
        let policies = Policies(vec![policy("/", 1), policy("/lab", 2), policy("/lab/raw", 3)]);
        let of = |path: &str| policies.of(&path.parse().unwrap()).unwrap().body.copies;
        assert_eq!((of("/x"), of("/lab/x"), of("/lab/raw/x"), of("/lab2/x")), (1, 2, 3, 1));
    }
}
