//! Background work: one task a complete or assembling upload, a bounded number of them at work, and the expiry sweep.

use crate::archive::Archive;
use crate::concatenation::assemble;
use crate::delivery::{Attempt, attempt};
use crate::live_upload::{LiveUpload, UploadGuard};
use crate::log::{Event, Log};
use crate::object_path::{ObjectPath, ProjectName};
use crate::store_error::{StoreError, blocking};
use crate::upload_record::{UploadKind, UploadRecord, UploadState};
use crate::upload_store::UploadStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

/// Pause between two sweeps of expired uploads.
const SWEEP: Duration = Duration::from_mins(1);

/// Users of the background work.
pub(crate) struct Background {
    pub(crate) store: Arc<UploadStore>,
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) log: Log,
    pub(crate) jobs: Semaphore,
}

/// Result of one step on an upload.
enum Step {
    /// The upload needs no more work, or another task has it.
    Done,
    /// The same step must be tried again after a pause, for this reason.
    Again(String),
}

/// Starts one task for every upload that arrives.
pub(crate) async fn run(background: Arc<Background>, mut work: UnboundedReceiver<Arc<LiveUpload>>) {
    while let Some(upload) = work.recv().await {
        let background = Arc::clone(&background);
        tokio::spawn(async move { background.finish(upload).await });
    }
}

/// Removes expired uploads, at once and then again and again.
pub(crate) async fn sweep(background: Arc<Background>) {
    loop {
        match background.store.sweep().await {
            Ok(0) => {}
            Ok(uploads) => {
                background.store.metrics.uploads_expired.add(uploads as u64);
                background.log.event(&Event::Expired { uploads });
            }
            Err(error) => background.log.trouble("expiry", format_args!("{error:?}")),
        }
        tokio::time::sleep(SWEEP).await;
    }
}

impl Background {
    /// Works on one upload until it is settled; failures are tried again with growing pauses.
    async fn finish(&self, upload: Arc<LiveUpload>) {
        let limits = &self.store.limits;
        let mut pause = limits.first_retry;
        loop {
            let step = {
                let Ok(_job) = self.jobs.acquire().await else { return };
                let guard = upload.lock().await;
                self.step(guard).await
            };
            match step {
                Step::Done => return,
                Step::Again(reason) => {
                    self.store.metrics.delivery_retries.add(1);
                    let upload = upload.record().id.to_string();
                    let retry_milliseconds = pause.as_millis() as u64;
                    self.log.event(&Event::DeliveryFailed { upload, reason, retry_milliseconds });
                }
            }
            tokio::time::sleep(pause).await;
            pause = pause.saturating_mul(2).min(limits.longest_retry);
        }
    }

    async fn step(&self, guard: UploadGuard) -> Step {
        let record = guard.record();
        match (&record.state, &record.kind, &record.project, &record.path) {
            (UploadState::Assembling, UploadKind::Final { parts, .. }, ..) => {
                self.assemble(guard, parts.len()).await
            }
            (
                UploadState::Complete,
                UploadKind::Whole | UploadKind::Final { .. },
                Some(project),
                Some(path),
            ) => {
                let (project, path) = (project.clone(), path.clone());
                self.deliver(guard, record, project, path).await
            }
            _ => Step::Done,
        }
    }

    /// Copies the parts of a final upload behind its durable offset. Its completion arrives as new work.
    async fn assemble(&self, guard: UploadGuard, parts: usize) -> Step {
        let pins = guard.upload().take_parts();
        if pins.len() != parts {
            return self.fail(&guard, "a part was removed before it was copied".to_owned()).await;
        }
        let store = Arc::clone(&self.store);
        let done = blocking(move || {
            let result = assemble(&store, &guard, &pins);
            guard.upload().keep_parts(pins);
            (guard, result)
        });
        match done.await {
            Ok((_, Ok(Attempt::Done(())))) => Step::Done,
            Ok((guard, Ok(Attempt::Failed(reason)))) => self.fail(&guard, reason).await,
            Err(error) | Ok((_, Err(error))) => Step::Again(text(&error)),
        }
    }

    async fn deliver(
        &self,
        guard: UploadGuard,
        record: UploadRecord,
        project: ProjectName,
        path: ObjectPath,
    ) -> Step {
        let store = Arc::clone(&self.store);
        let archive = Arc::clone(&self.archive);
        let upload = record.clone();
        let place = (project.clone(), path.clone());
        let stored = match blocking(move || attempt(&store, archive.as_ref(), &upload, place)).await {
            Err(error) => return Step::Again(text(&error)),
            Ok(Err(reason)) => return Step::Again(reason),
            Ok(Ok(Attempt::Failed(reason))) => return self.fail(&guard, reason).await,
            Ok(Ok(Attempt::Done(stored))) => stored,
        };
        let version = stored.version.clone();
        let expires = self.store.expiry();
        let change = |record: &mut UploadRecord| {
            record.state = UploadState::Stored(version);
            record.blake3 = Some(stored.blake3);
            record.expires = expires;
        };
        if let Err(error) = self.store.change(&guard, change).await {
            return Step::Again(text(&error));
        }
        self.store.metrics.uploads_stored.add(1);
        self.log.event(&Event::Stored {
            upload: record.id.to_string(),
            project: project.to_string(),
            path: path.to_string(),
            version: stored.version.to_string(),
            size: stored.size,
            blake3: stored.blake3.to_hex().to_string(),
        });
        drop(guard.upload().take_parts());
        self.clean(&record).await;
        Step::Done
    }

    /// Frees the space of a stored upload and of its parts. A failure only wastes space until the next start.
    async fn clean(&self, record: &UploadRecord) {
        let file = self.store.file(record.id);
        if let Ok(Err(error)) = blocking(move || crate::durable::remove_file(&file)).await {
            self.log.trouble("delivery", error);
        }
        let UploadKind::Final { parts, .. } = &record.kind else { return };
        for part in parts {
            if let Ok(Some(part)) = self.store.find(*part).await
                && let Some(guard) = part.try_lock()
                && !guard.record().state.is_settled()
                && let Err(error) = self.store.remove(&guard).await
            {
                self.log.trouble("concatenation", text(&error));
            }
        }
    }

    async fn fail(&self, guard: &UploadGuard, reason: String) -> Step {
        let upload = guard.record().id.to_string();
        let expires = self.store.expiry();
        let change = |record: &mut UploadRecord| {
            record.state = UploadState::Failed(reason.clone());
            record.expires = expires;
        };
        if let Err(error) = self.store.change(guard, change).await {
            return Step::Again(text(&error));
        }
        drop(guard.upload().take_parts());
        self.store.metrics.uploads_failed.add(1);
        self.log.event(&Event::UploadFailed { upload, reason });
        Step::Done
    }
}

fn text(error: &StoreError) -> String {
    match error {
        StoreError::Full => "the disk of the server is full".to_owned(),
        StoreError::TooMany => "too many uploads are open".to_owned(),
        StoreError::Failed(reason) => reason.clone(),
    }
}
