//! `PostgreSQL` server of a bench, in a folder of its own. It ends with the bench.

use crate::{BenchError, Scale, tools, work_folder};
use holdfast_catalog::{CatalogStore as _, PostgresStore};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// Settings of a real run: commits are durable, and statistics are kept, as on an installed server.
const SETTINGS: [&str; 4] = [
    "ALTER SYSTEM SET fsync = on",
    "ALTER SYSTEM SET autovacuum = on",
    "ALTER SYSTEM SET max_wal_size = '4GB'",
    "SELECT pg_reload_conf()",
];

/// Running server, ended when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    child: Child,
    folder: String,
}

impl PostgresServer {
    /// Starts a server; nothing if none is installed.
    pub fn start(scale: Scale) -> Result<Option<Self>, BenchError> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/catalog/scripts/postgres-server");
        let command = || "postgres-server".to_owned();
        let child = tools::command(script)
            .env("TMPDIR", work_folder::parent())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.map_err(|cause| BenchError::program(command(), cause))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out)
                .read_line(&mut line)
                .map_err(|cause| BenchError::program(command(), cause))?;
        }
        let Some(folder) = line.trim().strip_prefix("ready ") else {
            let status = child.wait().map_err(|cause| BenchError::program(command(), cause))?;
            return if status.code() == Some(3) {
                Ok(None)
            } else {
                Err(BenchError::program(command(), status))
            };
        };
        let server = Self { child, folder: folder.to_owned() };
        if scale == Scale::Real {
            let mut store = server.connect("settings")?;
            for setting in SETTINGS {
                store.execute(setting, &[]).map_err(BenchError::during("setting up PostgreSQL"))?;
            }
        }
        Ok(Some(server))
    }

    /// Connection string of the server.
    pub fn connection(&self) -> String {
        format!("host={} user=holdfast dbname=postgres", self.folder)
    }

    /// Connects to a schema, made if it is missing.
    pub fn connect(&self, schema: &str) -> Result<PostgresStore, BenchError> {
        PostgresStore::connect(&self.connection(), schema)
            .map_err(BenchError::during("connecting to PostgreSQL"))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // The script stops the server at the end of its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
