//! Recovery of uploads at a start: compares records with files, and resumes background work.

use crate::clock::Clock;
use crate::database::{Database, Sharing};
use crate::durable::{make_folders, sync_folder};
use crate::error::ServerError;
use crate::live_upload::LiveUpload;
use crate::metrics::Metrics;
use crate::options::Limits;
use crate::upload_record::{BLOCK_BYTES, UploadKind, UploadRecord, UploadState};
use crate::upload_store::{UploadStore, remove_orphans};
use crate::upload_table;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

/// Database of uploads in the data folder.
const UPLOADS_FILE: &str = "uploads.db";

/// Folder of growing files in the data folder.
const UPLOADS_FOLDER: &str = "uploads";

/// Opens the uploads of a locked data folder. Unfinished background work is sent to `work`.
pub(crate) fn open_uploads(
    data: &Path,
    lock: File,
    limits: Limits,
    clock: Clock,
    metrics: Arc<Metrics>,
    work: UnboundedSender<Arc<LiveUpload>>,
) -> Result<UploadStore, ServerError> {
    let folder = data.join(UPLOADS_FOLDER);
    let failed = |error: io::Error| ServerError::io("open the uploads in", data, &error);
    make_folders(data, &folder).map_err(failed)?;
    let database = Database::open(&data.join(UPLOADS_FILE), Sharing::Exclusive, upload_table::prepare)?;
    sync_folder(data).map_err(failed)?;
    let database_failed = |error| {
        ServerError::failed("read the uploads", error, "check the file uploads.db in the data folder")
    };
    let mut records = database.read_blocking(upload_table::unsettled).map_err(database_failed)?;
    for record in &mut records {
        if repair(record, &folder).map_err(failed)? {
            let row = record.clone();
            let blocks = row.offset / BLOCK_BYTES;
            let cut = move |connection: &_| upload_table::cut(connection, &row, blocks);
            database.write_blocking(cut).map_err(database_failed)?;
        }
    }
    records.retain(|record| !record.state.is_settled());
    let live: HashMap<_, _> =
        records.into_iter().map(|record| (record.id, LiveUpload::new(record))).collect();
    let kept = database.read_blocking(upload_table::failed).map_err(database_failed)?;
    remove_orphans(&folder, |id| live.contains_key(&id) || kept.contains(&id)).map_err(failed)?;
    let body_memory = Arc::new(Semaphore::new(limits.ahead_bytes.min(Semaphore::MAX_PERMITS)));
    let live = Mutex::new(live);
    let store =
        UploadStore { folder, database, clock, limits, metrics, live, work, body_memory, _lock: lock };
    store.resume_work();
    Ok(store)
}

/// Lowers the offset of an upload whose file is shorter than recorded, as after the loss of a disk's cache. True if the record
/// has changed.
fn repair(record: &mut UploadRecord, folder: &Path) -> io::Result<bool> {
    let length = match fs::metadata(folder.join(record.id.to_string())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            record.state = UploadState::Failed("its file is missing".to_owned());
            return Ok(true);
        }
        found => found?.len(),
    };
    if length >= record.offset {
        return Ok(false);
    }
    record.offset = length;
    if record.state == UploadState::Complete {
        let is_final = matches!(record.kind, UploadKind::Final { .. });
        record.state = if is_final { UploadState::Assembling } else { UploadState::Receiving };
    }
    Ok(true)
}
