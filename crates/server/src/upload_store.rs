//! Store of uploads: creation, look-up, durable progress, removal and expiry. The bytes of requests come from `receiver`.
//!
//! Order of a step forward: the bytes are durable in the file, then offset and block hashes are durable in the database, then
//! the record in memory changes, then the client is answered. A crash between two of these leaves a file that is longer than
//! its offset; the surplus is cut off before the next append.

use crate::clock::{Clock, Timestamp};
use crate::database::Database;
use crate::durable::{remove_file, sync_folder};
use crate::growing_file::GrowingFile;
use crate::live_upload::{LiveUpload, Pin, UploadGuard};
use crate::metrics::Metrics;
use crate::object_path::{ObjectPath, ProjectName};
use crate::options::Limits;
use crate::store_error::{StoreError, blocking};
use crate::upload_id::UploadId;
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use crate::upload_table::{self, BlockHash};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

/// Uploads of one data folder. One process at a time uses the folder.
#[derive(Debug)]
pub(crate) struct UploadStore {
    pub(crate) folder: PathBuf,
    pub(crate) database: Database,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    /// Uploads that are not settled.
    pub(crate) live: Mutex<HashMap<UploadId, Arc<LiveUpload>>>,
    /// Uploads that need work in the background: concatenation or delivery to the archive.
    pub(crate) work: UnboundedSender<Arc<LiveUpload>>,
    /// Memory for bodies that are held in memory, one permit for a byte.
    pub(crate) body_memory: Arc<Semaphore>,
    /// Lock of the data folder, released when the last user of this store is gone.
    pub(crate) _lock: File,
}

impl UploadStore {
    fn live(&self) -> MutexGuard<'_, HashMap<UploadId, Arc<LiveUpload>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of uploads that are not settled.
    pub(crate) fn open_count(&self) -> usize {
        self.live().len()
    }

    /// File with the bytes of an upload.
    pub(crate) fn file(&self, id: UploadId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// End of life of a record that is used now.
    pub(crate) fn expiry(&self) -> Timestamp {
        self.clock.now().plus(self.limits.upload_lifetime)
    }

    /// Creates an upload durably: first its file, then its record. A concatenation that exists already is returned instead.
    pub(crate) async fn create(
        self: &Arc<Self>,
        record: UploadRecord,
    ) -> Result<Arc<LiveUpload>, StoreError> {
        if self.open_count() >= self.limits.open_uploads {
            return Err(StoreError::TooMany);
        }
        let path = self.file(record.id);
        let made = path.clone();
        let folder = self.folder.clone();
        let create = move || GrowingFile::create(&path).and_then(|()| sync_folder(&folder));
        blocking(create).await??;
        let row = record.clone();
        // Live before its record is durable: a request that finds the record must find this upload, not make another of it.
        let upload = LiveUpload::new(record);
        self.live().insert(row.id, Arc::clone(&upload));
        let id = row.id;
        let inserted = self.database.write(move |connection| match &row.kind {
            UploadKind::Final { parts, .. } => upload_table::insert_final(connection, &row, parts),
            _ => upload_table::insert(connection, &row).map(|()| None),
        });
        let same = match inserted.await {
            Ok(None) => {
                self.metrics.uploads_created.add(1);
                self.work_on(&upload);
                return Ok(upload);
            }
            same => same,
        };
        self.live().remove(&id);
        remove_file(&made)?;
        match same? {
            Some(same) => Ok(self.live().get(&same.id).cloned().unwrap_or_else(|| LiveUpload::new(same))),
            None => Err(StoreError::Failed("the record was not stored".to_owned())),
        }
    }

    /// Upload of an identity, also a settled one; `None` if it was never created or is forgotten.
    pub(crate) async fn find(&self, id: UploadId) -> Result<Option<Arc<LiveUpload>>, StoreError> {
        let live = self.live().get(&id).cloned();
        if live.is_some() {
            return Ok(live);
        }
        let found = self.database.read(move |connection| upload_table::find(connection, id)).await?;
        match found {
            Some(record) if record.state.is_settled() => Ok(Some(LiveUpload::new(record))),
            // The creation of the upload has ended meanwhile.
            Some(_) => Ok(self.live().get(&id).cloned()),
            None => Ok(None),
        }
    }

    /// Newest upload to a path that the archive does not have yet.
    pub(crate) async fn newest_unsettled(
        &self,
        project: &ProjectName,
        path: &ObjectPath,
    ) -> Result<Option<Arc<LiveUpload>>, StoreError> {
        let (project, path) = (project.clone(), path.clone());
        let find = move |connection: &_| upload_table::newest_unsettled(connection, &project, &path);
        let found = self.database.read(find).await?;
        Ok(found.and_then(|found| self.live().get(&found.id).cloned()))
    }

    /// Protects live uploads against removal; `None` if one of them is not live.
    pub(crate) fn pin(&self, ids: &[UploadId]) -> Option<Vec<Pin>> {
        let live = self.live();
        ids.iter().map(|id| live.get(id).and_then(LiveUpload::pin)).collect()
    }

    /// Makes the appended bytes of a locked upload durable, and publishes its new offset. Blocks.
    pub(crate) fn commit(&self, guard: &UploadGuard, file: &mut GrowingFile) -> Result<(), StoreError> {
        file.sync()?;
        let mut record = guard.record();
        record.offset = file.written();
        record.state = record.state_at(record.offset);
        record.expires = self.expiry();
        let blocks = file.take_blocks();
        self.store_progress(record.clone(), blocks)?;
        let is_complete = record.state == UploadState::Complete;
        guard.publish(record);
        if is_complete {
            self.metrics.uploads_finished.add(1);
            self.work_on(guard.upload());
        }
        Ok(())
    }

    fn store_progress(&self, record: UploadRecord, blocks: Vec<BlockHash>) -> Result<(), StoreError> {
        let write = move |connection: &_| upload_table::advance(connection, &record, &blocks);
        Ok(self.database.write_blocking(write)?)
    }

    /// Changes the record of a locked upload durably. A settled upload leaves the map of live ones.
    pub(crate) async fn change(
        &self,
        guard: &UploadGuard,
        change: impl FnOnce(&mut UploadRecord),
    ) -> Result<(), StoreError> {
        let mut record = guard.record();
        change(&mut record);
        let row = record.clone();
        self.database.write(move |connection| upload_table::update(connection, &row)).await?;
        if record.state.is_settled() {
            self.live().remove(&record.id);
        }
        let was_complete = guard.record().state == UploadState::Complete;
        let becomes_complete = record.state == UploadState::Complete && !was_complete;
        guard.publish(record);
        if becomes_complete {
            self.metrics.uploads_finished.add(1);
            self.work_on(guard.upload());
        }
        Ok(())
    }

    /// Hands an upload to the background if it needs work there.
    fn work_on(&self, upload: &Arc<LiveUpload>) {
        let record = upload.record();
        let is_work = match (&record.state, &record.kind) {
            (UploadState::Assembling, UploadKind::Final { parts, .. }) => {
                // A part that is missing here fails the concatenation later.
                upload.keep_parts(self.pin(parts).unwrap_or_default());
                true
            }
            (UploadState::Complete, kind) => *kind != UploadKind::Partial,
            _ => false,
        };
        if is_work {
            // Without a receiver the server is stopping; the next start finds the work in the database.
            let _ = self.work.send(Arc::clone(upload));
        }
    }

    /// Hands all live uploads that need it to the background, at a start.
    pub(crate) fn resume_work(&self) {
        let uploads: Vec<_> = self.live().values().cloned().collect();
        for upload in &uploads {
            self.work_on(upload);
        }
    }

    /// Removes a locked upload: first its record, then its file. False if a concatenation reads it.
    pub(crate) async fn remove(&self, guard: &UploadGuard) -> Result<bool, StoreError> {
        let upload = guard.upload();
        {
            let _live = self.live();
            if upload.is_pinned() {
                return Ok(false);
            }
            upload.set_removing(true);
        }
        let mut record = guard.record();
        record.state = UploadState::Removed;
        record.expires = self.expiry();
        let row = record.clone();
        let stored = self.database.write(move |connection| upload_table::remove(connection, &row)).await;
        if stored.is_err() {
            upload.set_removing(false);
        }
        stored?;
        self.live().remove(&record.id);
        let file = self.file(record.id);
        guard.publish(record);
        blocking(move || remove_file(&file)).await??;
        Ok(true)
    }

    /// Removes abandoned uploads, and forgets settled ones whose time has passed. Returns the number of removed uploads.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let abandoned: Vec<_> =
            self.live().values().filter(|upload| upload.record().is_abandoned(now)).cloned().collect();
        let mut removed = 0;
        for upload in abandoned {
            if let Some(guard) = upload.try_lock()
                && upload.record().is_abandoned(now)
                && self.remove(&guard).await?
            {
                removed += 1;
            }
        }
        self.database.write(move |connection| upload_table::forget(connection, now)).await?;
        Ok(removed)
    }

    /// Hashes of complete blocks of an upload from number `first` on.
    pub(crate) async fn blocks(
        &self,
        id: UploadId,
        first: u64,
        most: usize,
    ) -> Result<Vec<BlockHash>, StoreError> {
        let read = move |connection: &_| upload_table::blocks(connection, id, first, most);
        Ok(self.database.read(read).await?)
    }
}

/// Removes files that belong to no upload; an interrupted creation or removal leaves them.
pub(crate) fn remove_orphans(folder: &Path, is_used: impl Fn(UploadId) -> bool) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse::<UploadId>().ok());
        if id.is_some_and(|id| !is_used(id)) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}
