//! Orders to stage that are not carried out: a file of the data folder, so that a restart of the site goes on with them.

use holdfast_catalog::CatalogPath;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Paths that are staged, kept in a file.
#[derive(Debug)]
pub(super) struct StageOrders {
    file: PathBuf,
    paths: BTreeSet<String>,
}

impl StageOrders {
    /// Reads the orders of an earlier process.
    pub(super) fn read(file: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        // Paths have no control characters.
        let paths = text.lines().map(str::to_owned).collect();
        Ok(Self { file: file.to_owned(), paths })
    }

    /// Name of the file, for messages.
    pub(super) fn place(&self) -> String {
        self.file.display().to_string()
    }

    /// Paths of all orders.
    pub(super) fn paths(&self) -> Vec<String> {
        self.paths.iter().cloned().collect()
    }

    /// Adds an order; it is durable afterwards.
    pub(super) fn add(&mut self, path: &CatalogPath) -> io::Result<()> {
        if !self.paths.insert(path.to_string()) {
            return Ok(());
        }
        let written = self.write();
        if written.is_err() {
            self.paths.remove(&path.to_string());
        }
        written
    }

    /// Removes the orders of which nothing is left to do. An order that stays in the file is carried out once more.
    pub(super) fn retain(&mut self, is_open: impl Fn(&str) -> bool) -> io::Result<()> {
        let count = self.paths.len();
        self.paths.retain(|path| is_open(path));
        if self.paths.len() == count { Ok(()) } else { self.write() }
    }

    fn write(&self) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let mut file = File::create(&new)?;
        for path in &self.paths {
            writeln!(file, "{path}")?;
        }
        file.sync_all()?;
        fs::rename(&new, &self.file)?;
        self.file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_there_after_a_restart_until_nothing_is_left_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("staged");
        let mut orders = StageOrders::read(&file).unwrap();
        for path in ["/lab/b", "/lab/a", "/lab/b"] {
            orders.add(&path.parse().unwrap()).unwrap();
        }
        let mut again = StageOrders::read(&file).unwrap();
        assert_eq!(again.paths(), ["/lab/a", "/lab/b"]);
        again.retain(|path| path == "/lab/b").unwrap();
        assert_eq!(StageOrders::read(&file).unwrap().paths(), ["/lab/b"]);
    }
}
