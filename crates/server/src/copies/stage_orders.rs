//! Orders to stage that are not carried out: a file of the data folder, so that a restart of the site goes on with them.

use holdfast_catalog::{CatalogPath, ObjectId, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Version of an object that an order fetches.
pub(super) type OrderedVersion = (ObjectId, Tag);

/// Paths that are staged, kept in a file, each with the versions that are not fetched yet.
#[derive(Debug)]
pub(super) struct StageOrders {
    file: PathBuf,
    orders: BTreeMap<String, BTreeSet<OrderedVersion>>,
}

impl StageOrders {
    /// Reads the orders of an earlier process; their versions are unknown until they are added again.
    pub(super) fn read(file: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        // Paths have no control characters.
        let orders = text.lines().map(|path| (path.to_owned(), BTreeSet::new())).collect();
        Ok(Self { file: file.to_owned(), orders })
    }

    /// Name of the file, for messages.
    pub(super) fn place(&self) -> String {
        self.file.display().to_string()
    }

    /// Paths of all orders.
    pub(super) fn paths(&self) -> Vec<String> {
        self.orders.keys().cloned().collect()
    }

    /// Adds an order with its versions; it is durable afterwards. A known order gets the versions in addition.
    pub(super) fn add(
        &mut self,
        path: &CatalogPath,
        versions: impl IntoIterator<Item = OrderedVersion>,
    ) -> io::Result<()> {
        let path = path.to_string();
        if let Some(known) = self.orders.get_mut(&path) {
            known.extend(versions);
            return Ok(());
        }
        self.orders.insert(path.clone(), versions.into_iter().collect());
        let written = self.write();
        if written.is_err() {
            self.orders.remove(&path);
        }
        written
    }

    /// Takes a version off all orders, and removes the orders of which it was the last one. An order that stays in the file
    /// is carried out once more.
    pub(super) fn end(&mut self, version: OrderedVersion) -> io::Result<()> {
        let count = self.orders.len();
        self.orders.retain(|_, versions| !(versions.remove(&version) && versions.is_empty()));
        if self.orders.len() == count { Ok(()) } else { self.write() }
    }

    /// Removes an order from the file.
    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        if self.orders.remove(path).is_some() { self.write() } else { Ok(()) }
    }

    fn write(&self) -> io::Result<()> {
        let new = self.file.with_extension("new");
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        for path in self.orders.keys() {
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
    use holdfast_catalog::{OpId, SiteId};
    use std::os::unix::fs::PermissionsExt as _;

    fn version(number: u8) -> OrderedVersion {
        let op = OpId { site: SiteId::new(1).unwrap(), seq: 1 };
        (ObjectId([number; 16]), Tag { op, index: 0 })
    }

    #[test]
    fn orders_are_there_after_a_restart_until_nothing_is_left_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("staged");
        let mut orders = StageOrders::read(&file).unwrap();
        for (path, number) in [("/lab/b", 1), ("/lab/a", 2), ("/lab/b", 3)] {
            orders.add(&path.parse().unwrap(), [version(number)]).unwrap();
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let kept = || StageOrders::read(&file).unwrap().paths();
        assert_eq!(kept(), ["/lab/a", "/lab/b"]);
        orders.end(version(1)).unwrap();
        assert_eq!(kept(), ["/lab/a", "/lab/b"]);
        orders.end(version(3)).unwrap();
        assert_eq!(kept(), ["/lab/a"]);
        orders.remove("/lab/a").unwrap();
        assert!(kept().is_empty());
    }

    #[test]
    fn the_end_of_one_order_keeps_those_that_wait_to_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("staged");
        StageOrders::read(&file).unwrap().add(&"/lab/old".parse().unwrap(), [version(1)]).unwrap();
        let mut again = StageOrders::read(&file).unwrap();
        again.add(&"/lab/new".parse().unwrap(), [version(2)]).unwrap();
        again.end(version(2)).unwrap();
        assert_eq!(StageOrders::read(&file).unwrap().paths(), ["/lab/old"]);
    }
}
