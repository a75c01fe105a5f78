//! Databases of catalogs: files of `SQLite`, and schemas of a `PostgreSQL` server that lives as long as the test process.

use holdfast_catalog::{CatalogStore, PostgresStore, SqliteStore};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Database of one catalog.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres { connection: String, schema: String },
}

impl Place {
    /// File in a folder.
    pub(crate) fn sqlite(folder: &Path) -> Self {
        Self::Sqlite(folder.join("test-catalog.db"))
    }

    /// New schema; nothing, with a message, if `PostgreSQL` is not installed.
    pub(crate) fn postgres() -> Option<Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let folder = &SERVER.get_or_init(start).as_ref()?.folder;
        let connection = format!("host={folder} user=holdfast dbname=postgres");
        let schema = format!("site_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        Some(Self::Postgres { connection, schema })
    }

    pub(crate) fn open(&self) -> Box<dyn CatalogStore + Send> {
        match self {
            Self::Sqlite(path) => Box::new(SqliteStore::open(path).unwrap()),
            Self::Postgres { connection, schema } => {
                Box::new(PostgresStore::connect(connection, schema).unwrap())
            }
        }
    }
}

/// Server that ends when its standard input does, and so with this process.
struct Server {
    folder: String,
    _child: Child,
}

fn start() -> Option<Server> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog/scripts/postgres-server");
    let mut command = Command::new(script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if let Some(folder) = line.trim().strip_prefix("ready ") {
        return Some(Server { folder: folder.to_owned(), _child: child });
    }
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(3), "PostgreSQL does not start: try crates/catalog/scripts/postgres-server");
    eprintln!("PostgreSQL is not installed (apt-get install postgresql): its catalog is not tested");
    None
}
