//! Journal of a ledger: changes that are not durable yet. A shipper goes on while the disk of its state takes nothing.

use super::{FileKey, FileRow, Ledger, LedgerEvent, Result, ShippedVersion};
use crate::statistics::{HistogramRow, MinuteRow};
use std::collections::HashMap;

/// Changes that wait at most, but for those of files: some hundred megabytes.
const MOST_CHANGES: usize = 1 << 20;

/// Change of the ledger.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    PutFile(FileRow),
    RemoveFile(FileKey),
    RenameFile(FileKey, FileKey),
    FinishFile(FileRow, ShippedVersion),
    Event(LedgerEvent),
    Throughput(MinuteRow, Vec<HistogramRow>),
    Backlog(i64, u64),
    BeginOutage(i64, String),
    EndOutage(i64),
}

/// Ledger with the changes that wait to be written.
#[derive(Debug)]
pub struct Journal {
    ledger: Ledger,
    changes: Vec<Change>,
    /// Records of the files that the changes are about; `None` for removed ones.
    files: HashMap<FileKey, Option<FileRow>>,
    /// Newest versions among the changes.
    versions: HashMap<FileKey, ShippedVersion>,
}

impl Journal {
    /// Begins a journal of a ledger, without changes.
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, changes: Vec::new(), files: HashMap::new(), versions: HashMap::new() }
    }

    /// Makes all changes durable together. After an error they wait for the next call.
    pub fn sync(&mut self) -> Result<()> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.ledger.begin()?;
        let written = self.changes.iter().try_for_each(|change| apply(&mut self.ledger, change));
        if let Err(error) = written.and_then(|()| self.ledger.commit()) {
            self.ledger.roll_back();
            return Err(error);
        }
        self.changes.clear();
        self.files.clear();
        self.versions.clear();
        Ok(())
    }

    fn add(&mut self, change: Change) {
        if self.changes.len() >= MOST_CHANGES {
            self.changes.retain(|change| {
                !matches!(change, Change::Event(_) | Change::Throughput(..) | Change::Backlog(..))
            });
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
        self.files.insert(row.key.clone(), Some(row.clone()));
        self.add(Change::PutFile(row));
    }

    /// Removes the record of a file that is gone.
    pub fn remove_file(&mut self, key: FileKey) {
        self.files.insert(key.clone(), None);
        self.add(Change::RemoveFile(key));
    }

    /// Gives a file another name, in the place of the file that had it.
    pub fn rename_file(&mut self, from: &FileKey, to: &FileKey) -> Result<()> {
        if let Some(row) = self.file(from)? {
            self.files.insert(to.clone(), Some(FileRow { key: to.clone(), ..row }));
            self.files.insert(from.clone(), None);
            self.add(Change::RenameFile(from.clone(), to.clone()));
        }
        Ok(())
    }

    /// Records a shipped version together with the new record of its file.
    pub fn finish_file(&mut self, row: FileRow, version: ShippedVersion) {
        self.files.insert(row.key.clone(), Some(row.clone()));
        self.versions.insert(version.key.clone(), version.clone());
        self.add(Change::FinishFile(row, version));
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
        Change::PutFile(row) => ledger.put_file(row),
        Change::RemoveFile(key) => ledger.remove_file(key),
        Change::RenameFile(from, to) => ledger.rename_file(from, to),
        Change::FinishFile(row, version) => ledger.finish_file(row, version),
        Change::Event(event) => ledger.add_event(event),
        Change::Throughput(minute, rates) => ledger.add_throughput(minute, rates),
        Change::Backlog(minute, bytes) => ledger.set_backlog(*minute, *bytes),
        Change::BeginOutage(begin_ms, reason) => ledger.begin_outage(*begin_ms, reason),
        Change::EndOutage(end_ms) => ledger.end_outage(*end_ms),
    }
}
