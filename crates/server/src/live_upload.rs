//! Upload in memory: its record with notification of followers, its lock, and its pins.

use crate::upload_record::{UploadRecord, UploadState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

/// Upload that requests share. Only the holder of its lock changes it.
#[derive(Debug)]
pub(crate) struct LiveUpload {
    record: watch::Sender<UploadRecord>,
    lock: Arc<Mutex<()>>,
    /// Counted by clones: an upload with pins is being read by a concatenation and must not be removed.
    pin: Arc<()>,
    /// Set while the upload is being removed: nobody can pin it any more.
    is_removing: AtomicBool,
    /// Pins of the parts of a final upload, until it is settled.
    parts: std::sync::Mutex<Vec<Pin>>,
}

/// Exclusive right to change an upload.
#[derive(Debug)]
pub(crate) struct UploadGuard {
    upload: Arc<LiveUpload>,
    _guard: OwnedMutexGuard<()>,
}

/// Protection of an upload against removal, as long as it lives.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(crate) upload: Arc<LiveUpload>,
    _pin: Arc<()>,
}

impl LiveUpload {
    pub(crate) fn new(record: UploadRecord) -> Arc<Self> {
        let (record, _) = watch::channel(record);
        Arc::new(Self {
            record,
            lock: Arc::default(),
            pin: Arc::default(),
            is_removing: AtomicBool::new(false),
            parts: std::sync::Mutex::default(),
        })
    }

    /// Copy of the current record.
    pub(crate) fn record(&self) -> UploadRecord {
        self.record.borrow().clone()
    }

    /// Receiver that is notified of every change of the record.
    pub(crate) fn subscribe(&self) -> watch::Receiver<UploadRecord> {
        self.record.subscribe()
    }

    /// Lock of the upload, unless somebody else holds it.
    pub(crate) fn try_lock(self: &Arc<Self>) -> Option<UploadGuard> {
        let guard = Arc::clone(&self.lock).try_lock_owned().ok()?;
        Some(UploadGuard { upload: Arc::clone(self), _guard: guard })
    }

    /// Lock of the upload, awaited behind other holders.
    pub(crate) async fn lock(self: &Arc<Self>) -> UploadGuard {
        let guard = Arc::clone(&self.lock).lock_owned().await;
        UploadGuard { upload: Arc::clone(self), _guard: guard }
    }

    /// Protects the upload against removal; `None` while it is being removed. Call it with the map of live uploads locked, see
    /// `UploadStore::pin`.
    pub(crate) fn pin(self: &Arc<Self>) -> Option<Pin> {
        let is_removing = self.is_removing.load(Ordering::SeqCst);
        (!is_removing).then(|| Pin { upload: Arc::clone(self), _pin: Arc::clone(&self.pin) })
    }

    /// Allows or forbids new pins. Call it with the map of live uploads locked, see `UploadStore::remove`.
    pub(crate) fn set_removing(&self, is_removing: bool) {
        self.is_removing.store(is_removing, Ordering::SeqCst);
    }

    /// Keeps the pins of the parts of this final upload.
    pub(crate) fn keep_parts(&self, pins: Vec<Pin>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = pins;
    }

    /// Takes the pins of the parts out of this final upload.
    pub(crate) fn take_parts(&self) -> Vec<Pin> {
        std::mem::take(&mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True while a concatenation reads the upload.
    pub(crate) fn is_pinned(&self) -> bool {
        Arc::strong_count(&self.pin) > 1
    }
}

impl UploadGuard {
    /// Upload that this guard locks.
    pub(crate) fn upload(&self) -> &Arc<LiveUpload> {
        &self.upload
    }

    /// Copy of the current record.
    pub(crate) fn record(&self) -> UploadRecord {
        self.upload.record()
    }

    /// Publishes a record that has become durable.
    pub(crate) fn publish(&self, record: UploadRecord) {
        self.upload.record.send_replace(record);
    }

    /// True when bytes can be appended on behalf of a client.
    pub(crate) fn is_receiving(&self) -> bool {
        self.upload.record.borrow().state == UploadState::Receiving
    }
}
