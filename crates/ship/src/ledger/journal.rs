//! Journal of a ledger: changes that are not durable yet. A shipper goes on while the disk of its state takes nothing.

use super::{FileKey, FileRow, Ledger, LedgerEvent, Result, ShippedVersion};
use crate::statistics::{HistogramRow, MinuteRow};
use std::collections::HashMap;

/// Changes that wait at most, but for those of files: some hundred megabytes. Beyond it, removed files lose their versions.
const MOST_CHANGES: usize = 1 << 20;

/// Change of the ledger that is about no file.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Event(LedgerEvent),
    Throughput(MinuteRow, Vec<HistogramRow>),
    Backlog(i64, u64),
    BeginOutage(i64, String),
    EndOutage(i64),
}

/// Ledger with the changes that wait to be written. Only the last change of each file waits.
#[derive(Debug)]
pub struct Journal {
    ledger: Ledger,
    changes: Vec<Change>,
    /// Records of the files that have changed; `None` for removed ones.
    files: HashMap<FileKey, Option<FileRow>>,
    /// Newest versions of the files that were shipped.
    versions: HashMap<FileKey, ShippedVersion>,
}

impl Journal {
    /// Begins a journal of a ledger, without changes.
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, changes: Vec::new(), files: HashMap::new(), versions: HashMap::new() }
    }

    /// Makes all changes durable together. After an error they wait for the next call.
    pub fn sync(&mut self) -> Result<()> {
        if self.changes.is_empty() && self.files.is_empty() && self.versions.is_empty() {
            return Ok(());
        }
        self.ledger.begin()?;
        let written = self.write().and_then(|()| self.ledger.commit());
        if let Err(error) = written {
            self.ledger.roll_back();
            return Err(error);
        }
        self.changes.clear();
        self.files.clear();
        self.versions.clear();
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let Self { ledger, changes, files, versions } = self;
        for (key, row) in &*files {
            match row {
                Some(row) => ledger.put_file(row)?,
                None => ledger.remove_file(key)?,
            }
        }
        versions.values().try_for_each(|version| ledger.put_version(version))?;
        changes.iter().try_for_each(|change| apply(ledger, change))
    }

    fn add(&mut self, change: Change) {
        if self.changes.len() >= MOST_CHANGES {
            self.changes.retain(|change| matches!(change, Change::BeginOutage(..) | Change::EndOutage(_)));
        }
        if self.changes.len() >= MOST_CHANGES {
            self.changes.drain(..MOST_CHANGES / 2);
        }
        self.changes.push(change);
    }

    /// Record of a file; `None` if it is unknown.
    pub fn file(&self, key: &FileKey) -> Result<Option<FileRow>> {
        self.files.get(key).map_or_else(|| self.ledger.file(key), |known| Ok(known.clone()))
    }

    /// Records of the files with this identity in the file system.
    pub fn files_by_inode(&self, device: u64, inode: u64) -> Result<Vec<FileRow>> {
        let mut rows = self.ledger.files_by_inode(device, inode)?;
        rows.retain(|row| !self.files.contains_key(&row.key));
        let is_same = |row: &&FileRow| (row.device, row.inode) == (device, inode);
        rows.extend(self.files.values().flatten().filter(is_same).cloned());
        Ok(rows)
    }

    /// Records of the files of one folder tree.
    pub fn files(&self, folder: &str) -> Result<Vec<FileRow>> {
        let mut rows = self.ledger.files(folder)?;
        rows.retain(|row| !self.files.contains_key(&row.key));
        rows.extend(self.files.values().flatten().filter(|row| row.key.folder == folder).cloned());
        Ok(rows)
    }

    /// Newest shipped version of a file; `None` if there is none.
    pub fn newest_version(&self, key: &FileKey) -> Result<Option<ShippedVersion>> {
        self.versions
            .get(key)
            .map_or_else(|| self.ledger.newest_version(key), |known| Ok(Some(known.clone())))
    }

    /// Sums of the minutes from `from` until before `to` that are durable.
    pub fn minutes(&self, from: i64, to: i64) -> Result<Vec<MinuteRow>> {
        self.ledger.minutes(from, to)
    }

    /// Inserts or replaces the record of a file.
    pub fn put_file(&mut self, row: FileRow) {
        self.files.insert(row.key.clone(), Some(row));
    }

    /// Removes the record of a file that is gone.
    pub fn remove_file(&mut self, key: FileKey) {
        if self.versions.len() > MOST_CHANGES {
            self.versions.remove(&key);
        }
        if matches!(self.ledger.file(&key), Ok(None)) {
            self.files.remove(&key);
        } else {
            self.files.insert(key, None);
        }
    }

    /// Gives a file another name, in the place of the file that had it.
    pub fn rename_file(&mut self, from: &FileKey, to: &FileKey) -> Result<()> {
        if let Some(row) = self.file(from)? {
            self.files.insert(to.clone(), Some(FileRow { key: to.clone(), ..row }));
            self.remove_file(from.clone());
        }
        Ok(())
    }

    /// Records a shipped version together with the new record of its file.
    pub fn finish_file(&mut self, row: FileRow, version: ShippedVersion) {
        self.files.insert(row.key.clone(), Some(row));
        self.versions.insert(version.key.clone(), version);
    }

    /// Adds an event to the changes.
    pub fn add_event(&mut self, event: LedgerEvent) {
        self.add(Change::Event(event));
    }

    /// Adds the sums of a minute, and the numbers of blocks by rate.
    pub fn add_throughput(&mut self, minute: MinuteRow, rates: Vec<HistogramRow>) {
        self.add(Change::Throughput(minute, rates));
    }

    /// Records the backlog of a minute in bytes.
    pub fn set_backlog(&mut self, minute: i64, bytes: u64) {
        self.add(Change::Backlog(minute, bytes));
    }

    /// Records the begin of an outage.
    pub fn begin_outage(&mut self, begin_ms: i64, reason: &str) {
        self.add(Change::BeginOutage(begin_ms, reason.to_owned()));
    }

    /// Records the end of the outage that lasts.
    pub fn end_outage(&mut self, end_ms: i64) {
        self.add(Change::EndOutage(end_ms));
    }
}

fn apply(ledger: &mut Ledger, change: &Change) -> Result<()> {
    match change {
        Change::Event(event) => ledger.add_event(event),
        Change::Throughput(minute, rates) => ledger.add_throughput(minute, rates),
        Change::Backlog(minute, bytes) => ledger.set_backlog(*minute, *bytes),
        Change::BeginOutage(begin_ms, reason) => ledger.begin_outage(*begin_ms, reason),
        Change::EndOutage(end_ms) => ledger.end_outage(*end_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::FileStage;

    fn row(name: &str, inode: u64) -> FileRow {
        let key = FileKey { folder: "/f".to_owned(), relative: name.to_owned() };
        FileRow { key, device: 1, inode, upload: None, upload_path: None, stage: FileStage::Done }
    }

    fn version(row: &FileRow, number: i64) -> ShippedVersion {
        ShippedVersion {
            key: row.key.clone(),
            shipped_ms: number,
            size: 1,
            modified_ns: number,
            changed_ns: number,
            blake3: blake3::hash(&number.to_le_bytes()),
            version: number.to_string(),
            verified: true,
        }
    }

    #[test]
    fn only_the_last_change_of_a_file_waits() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(Ledger::open(folder.path()).unwrap());
        for number in 0..1000 {
            let (same, passing) = (row("same", 7), row(&format!("passing-{number}"), 8));
            journal.finish_file(same.clone(), version(&same, number));
            journal.put_file(passing.clone());
            journal.remove_file(passing.key);
        }
        journal.put_file(row("before", 9));
        journal.rename_file(&row("before", 9).key, &row("after", 9).key).unwrap();
        assert_eq!((journal.changes.len(), journal.files.len(), journal.versions.len()), (0, 2, 1));
        journal.sync().unwrap();
        assert_eq!(journal.ledger.files("/f").unwrap(), [row("after", 9), row("same", 7)]);
        assert_eq!(journal.newest_version(&row("same", 7).key).unwrap(), Some(version(&row("same", 7), 999)));
        // A durable record is renamed and removed, too.
        journal.rename_file(&row("after", 9).key, &row("same", 7).key).unwrap();
        journal.sync().unwrap();
        assert_eq!(journal.ledger.files("/f").unwrap(), [row("same", 9)]);
        journal.remove_file(row("same", 9).key);
        assert!(journal.files("/f").unwrap().is_empty());
        journal.sync().unwrap();
        assert!(journal.ledger.files("/f").unwrap().is_empty());
    }
}
