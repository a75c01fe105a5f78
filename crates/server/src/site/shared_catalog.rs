//! Catalog of a site for all threads: one connection behind a mutex, opened again after a failure of the database.

use holdfast_catalog::{
    Catalog, CatalogError, CatalogStore, PostgresStore, Result, SiteId, SqliteStore, StoreError, SystemHost,
};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Database of a catalog, chosen at run time.
pub(crate) type AnyStore = Box<dyn CatalogStore + Send>;

/// Opener of the database of a catalog.
#[derive(Clone)]
pub struct CatalogSource(Arc<dyn Fn() -> Result<AnyStore, StoreError> + Send + Sync>);

impl CatalogSource {
    /// Catalog in a database that `open` opens, at the start and after every failure.
    pub fn new<S: CatalogStore + Send + 'static>(
        open: impl Fn() -> Result<S, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move || Ok(Box::new(open()?))))
    }

    /// Catalog in a file of `SQLite`.
    pub fn sqlite(path: &Path) -> Self {
        let path = path.to_owned();
        Self::new(move || SqliteStore::open(&path))
    }

    /// Catalog in a schema of `PostgreSQL`; `connection` is `host=… user=… dbname=…` or a URL.
    pub fn postgres(connection: &str, schema: &str) -> Self {
        let (connection, schema) = (connection.to_owned(), schema.to_owned());
        Self::new(move || PostgresStore::connect(&connection, &schema))
    }
}

impl fmt::Debug for CatalogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CatalogSource")
    }
}

/// Catalog that threads use in turn.
pub(crate) struct SharedCatalog {
    source: CatalogSource,
    site: SiteId,
    /// Open catalog; nothing after a failure, until the next use.
    catalog: Mutex<Option<Catalog<AnyStore>>>,
    /// Number of changes so far, for those who wait for the next one.
    commits: watch::Sender<u64>,
}

impl SharedCatalog {
    /// Opens the catalog. An empty database becomes that of a new site.
    pub(crate) fn open(source: CatalogSource) -> Result<Self> {
        let catalog = open(&source)?;
        let (site, commits) = (catalog.site(), watch::Sender::new(0));
        Ok(Self { source, site, catalog: Mutex::new(Some(catalog)), commits })
    }

    /// Site of the catalog.
    pub(crate) fn site(&self) -> SiteId {
        self.site
    }

    /// Opens the database once more, for a long read beside the other threads.
    pub(crate) fn open_another(&self) -> Result<Catalog<AnyStore>> {
        open(&self.source)
    }

    /// Receiver that tells of new operations in the log.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Runs `work` on the catalog, while other threads wait.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Catalog<AnyStore>) -> Result<T>) -> Result<T> {
        let mut place = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        // A panic in `work` drops the catalog, and with it an open transaction.
        let mut catalog = match place.take() {
            Some(catalog) => catalog,
            None => open(&self.source)?,
        };
        let before = catalog.entered();
        let done = work(&mut catalog);
        if catalog.entered() != before {
            self.commits.send_modify(|commits| *commits += 1);
        }
        if !matches!(done, Err(CatalogError::Store(_))) {
            *place = Some(catalog);
        }
        done
    }
}

fn open(source: &CatalogSource) -> Result<Catalog<AnyStore>> {
    Catalog::open_own((source.0)()?, SiteId::random(), Box::new(SystemHost))
}
