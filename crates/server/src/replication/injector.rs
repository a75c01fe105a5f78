//! Injector: applies operations of other sites, and tells people of the conflicts that they met. Calls block.

use super::names::SiteNames;
use crate::log::{Event, Log};
use crate::site::SiteArchive;
use holdfast_catalog::{Catalog, CatalogStore, Conflict, ObjectId, Operation, Result, VersionVector};

/// Effect of operations of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Injected {
    /// Number of operations that were applied.
    pub(crate) applied: u64,
    /// Number of operations that wait for earlier ones, and were not kept.
    pub(crate) waiting: u64,
    /// Number of operations in quarantine, as their stamps are too far ahead.
    pub(crate) quarantined: u64,
    /// Operations that this site has applied afterwards.
    pub(crate) vector: VersionVector,
}

/// Applies operations in causal order: all or none, known ones again without effect.
pub(crate) fn inject(site: &SiteArchive, log: &Log, operations: &[Operation]) -> Result<Injected> {
    let (applied, events, names, vector) = site.catalog.with(|catalog| {
        let applied = catalog.apply(operations)?;
        let events: Vec<_> = applied.conflicts.iter().map(|conflict| told(catalog, conflict)).collect();
        let names =
            if applied.quarantined.is_empty() { SiteNames::default() } else { SiteNames::read(catalog)? };
        Ok((applied, events, names, catalog.vector()?))
    })?;
    for event in &events {
        log.event(event);
    }
    for id in &applied.quarantined {
        log.event(&Event::Quarantined { site: names.of(id.site), operation: id.seq });
    }
    Ok(Injected {
        applied: applied.applied as u64,
        waiting: applied.waiting.len() as u64,
        quarantined: applied.quarantined.len() as u64,
        vector,
    })
}

/// Event of a conflict. The path is that after merging.
fn told<S: CatalogStore>(catalog: &mut Catalog<S>, conflict: &Conflict) -> Event {
    let (kind, object) = kind_of(conflict);
    let path = catalog.path_of(object).ok().flatten().map(|path| path.to_string());
    Event::Conflict { kind, object: object.to_string(), path }
}

fn kind_of(conflict: &Conflict) -> (&'static str, ObjectId) {
    match conflict {
        Conflict::SameName { object, .. } => ("same_name", *object),
        Conflict::Renamed { object, .. } => ("renamed_twice", *object),
        Conflict::Versions { object, .. } => ("contents_twice", *object),
        Conflict::CycleAvoided { object } => ("cycle_avoided", *object),
        Conflict::Rescued { object } => ("rescued", *object),
    }
}
