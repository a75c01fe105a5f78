//! Empty databases for tests: files of `SQLite`, and schemas of a `PostgreSQL` server.
//!
//! The server lives as long as the test process.

use crate::random::Random;
use holdfast_catalog::{
    Catalog, CatalogPath, CatalogStore, Host, Millis, ObjectId, PostgresStore, SiteId, SqliteStore,
};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maker of databases of one kind.
pub trait Databases {
    type Store: CatalogStore + Send;

    /// Opens the database with a name, empty at first.
    fn open(&self, name: &str) -> Self::Store;

    fn catalog(&self, name: &str, site: u64) -> Catalog<Self::Store> {
        catalog(self.open(name), site)
    }
}

pub fn catalog<S: CatalogStore>(store: S, site: u64) -> Catalog<S> {
    Catalog::open(store, SiteId::new(site).unwrap(), Box::new(TestHost::new(site))).unwrap()
}

pub fn path(text: &str) -> CatalogPath {
    text.parse().unwrap()
}

/// Host with a seed: its time moves by a millisecond a question.
pub struct TestHost {
    millis: u64,
    random: Random,
}

impl TestHost {
    pub fn new(seed: u64) -> Self {
        Self { millis: 1_800_000_000_000, random: Random::new(seed) }
    }

    pub fn at(millis: u64) -> Self {
        Self { millis, random: Random::new(millis) }
    }
}

impl Host for TestHost {
    fn now(&mut self) -> Millis {
        self.millis += 1;
        Millis(self.millis)
    }

    fn object_id(&mut self) -> ObjectId {
        self.random.id(self.millis)
    }
}

pub struct SqliteDatabases(tempfile::TempDir);

impl SqliteDatabases {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Databases for SqliteDatabases {
    type Store = SqliteStore;

    fn open(&self, name: &str) -> SqliteStore {
        SqliteStore::open(&self.0.path().join(name)).unwrap()
    }
}

/// Server that ends when its standard input does, and so with this process.
struct Server {
    folder: String,
    _child: Child,
}

fn start() -> Option<Server> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/postgres-server");
    let mut child = Command::new(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if let Some(folder) = line.trim().strip_prefix("ready ") {
        return Some(Server { folder: folder.to_owned(), _child: child });
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(3), "PostgreSQL does not start: try scripts/postgres-server");
    eprintln!("PostgreSQL is not installed (apt-get install postgresql): its store is not tested");
    None
}

pub struct PostgresDatabases {
    folder: &'static str,
    prefix: String,
}

impl PostgresDatabases {
    pub fn new() -> Option<Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let folder = &SERVER.get_or_init(start).as_ref()?.folder;
        let prefix = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Some(Self { folder, prefix })
    }
}

impl Databases for PostgresDatabases {
    type Store = PostgresStore;

    fn open(&self, name: &str) -> PostgresStore {
        let config = format!("host={} user=holdfast dbname=postgres", self.folder);
        PostgresStore::connect(&config, &format!("{}_{name}", self.prefix)).unwrap()
    }
}
