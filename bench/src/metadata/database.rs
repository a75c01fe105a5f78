//! Databases of objects with triples, and the one that is a catalog of Holdfast.

use super::objects;
use crate::BenchError;
use holdfast_catalog::{
    Attribute, AttributeChange, Catalog, CatalogStore, Condition, Dialect, Find, SiteId, StoreError,
    SystemHost,
};
use std::ops::Range;

/// Matches that one question asks for at most.
pub const MOST_MATCHES: usize = 1000;

/// Change of the triples of one object.
#[derive(Clone, Debug)]
pub struct TripleChange {
    /// Number of the object.
    pub number: u64,
    /// Triples that the object loses.
    pub removed: Vec<Attribute>,
    /// Triples that the object gets.
    pub added: Vec<Attribute>,
}

/// Database of objects with triples.
pub trait MetadataDatabase {
    /// Adds the objects of a range in one transaction, each with the triples that `triples` gives.
    fn load(&mut self, numbers: Range<u64>, triples: fn(u64) -> Vec<Attribute>) -> Result<(), BenchError>;
    /// Gathers statistics, where a server does so by itself in time.
    fn settle(&mut self) -> Result<(), BenchError>;
    /// Changes the triples of objects in one transaction.
    fn change(&mut self, changes: &[TripleChange]) -> Result<(), BenchError>;
    /// Number of objects that match, at most [`MOST_MATCHES`].
    fn ask(&mut self, question: &Condition) -> Result<usize, BenchError>;
}

type Store = Box<dyn CatalogStore>;

type Open = Box<dyn Fn() -> Result<Store, StoreError>>;

/// Catalog of Holdfast in one store.
pub struct CatalogDatabase {
    catalog: Catalog<Store>,
    open: Open,
}

impl CatalogDatabase {
    /// Makes a catalog in the store that `open` opens.
    pub fn new<S: CatalogStore + 'static>(
        open: impl Fn() -> Result<S, StoreError> + 'static,
    ) -> Result<Self, BenchError> {
        let open: Open = Box::new(move || open().map(|store| Box::new(store) as Store));
        let store = open().map_err(BenchError::during("opening the store"))?;
        let site = SiteId::new(1).map_err(BenchError::during("opening the catalog"))?;
        let catalog = Catalog::open(store, site, Box::new(SystemHost));
        let catalog = catalog.map_err(BenchError::during("opening the catalog"))?;
        Ok(Self { catalog, open })
    }
}

impl MetadataDatabase for CatalogDatabase {
    fn load(&mut self, numbers: Range<u64>, triples: fn(u64) -> Vec<Attribute>) -> Result<(), BenchError> {
        let failed = BenchError::during("loading the catalog");
        let made = self.catalog.make_collection(&objects::collection(numbers.start), true);
        let puts: Vec<_> = numbers.map(|number| objects::put(number, triples(number))).collect();
        made.and_then(|_| self.catalog.put_all(&puts)).map(drop).map_err(failed)
    }

    fn settle(&mut self) -> Result<(), BenchError> {
        let failed = BenchError::during("gathering statistics");
        let analyze = || {
            let mut store = (self.open)()?;
            // SQLite gathers none by itself.
            if store.dialect() == Dialect::Postgres {
                store.execute("VACUUM ANALYZE", &[])?;
            }
            Ok::<_, StoreError>(())
        };
        analyze().map_err(failed)
    }

    fn change(&mut self, changes: &[TripleChange]) -> Result<(), BenchError> {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| AttributeChange {
                path: objects::path(change.number),
                replaced: change.removed.iter().map(|triple| triple.name.clone()).collect(),
                attributes: change.added.clone(),
            })
            .collect();
        self.catalog.change_attributes_all(&changes).map(drop).map_err(BenchError::during("changing triples"))
    }

    fn ask(&mut self, question: &Condition) -> Result<usize, BenchError> {
        let find = Find { condition: Some(question.clone()), ..Find::default() };
        let page = self.catalog.find(&find, None, MOST_MATCHES);
        page.map(|page| page.found.len()).map_err(BenchError::during("searching the catalog"))
    }
}
