//! Object stores below vaults: S3 and compatible ones, and HDFS.
//!
//! HDFS renames: an upload is written under a hidden name, read back, and renamed. S3 does not: the parts of an upload become an
//! object under its own name, while a lock beside it hides the object until it was read back. The lock also names the upload, so
//! that the next process can abort it.

use crate::owner::Owner;
use crate::retry::{io_error, retry};
use crate::runtime::{handle, wait};
use crate::store::{Entry, HIDDEN};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;
use object_store::{
    GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload, RenameOptions, RenameTargetMode,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Bytes of one ranged request; longer reads are made of several at once.
const PIECE: u64 = 8 << 20;

/// Requests of one read or upload at a time.
const REQUESTS: usize = 4;

/// Bytes of the first parts of an upload. S3 takes 10 000 parts, so that later parts are larger.
const PART: usize = 16 << 20;
/// Parts of one size; S3's limit allows for uploads of 600 GiB.
const PARTS_OF_A_SIZE: usize = 2_500;

/// Ending of the name of a lock.
const LOCK: &str = ".lock";

/// Object store as the store of a vault.
#[derive(Debug)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    /// Uploads whose parts can be aborted by another process; `None`: the store renames instead.
    parts: Option<Parts>,
    root: String,
}

/// Interface for uploads in parts.
#[derive(Clone)]
pub(crate) struct Parts(pub(crate) Arc<dyn MultipartStore>);

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parts")
    }
}

/// Lock of an upload: its contents.
#[derive(Debug, Serialize, Deserialize)]
struct Lock {
    /// Number of the upload, as the store names it.
    upload: String,
    owner: String,
    /// True if an object is replaced, which is then not removed with the upload.
    replace: bool,
}

impl Objects {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, parts: Option<Parts>, root: &str) -> Self {
        Self { store, parts, root: root.trim_matches('/').to_owned() }
    }

    fn at(&self, path: &str) -> io::Result<ObjectPath> {
        let full = if self.root.is_empty() { path.to_owned() } else { format!("{}/{path}", self.root) };
        let full = full.trim_end_matches('/');
        ObjectPath::parse(full).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))
    }

    fn lock_of(&self, path: &str) -> io::Result<ObjectPath> {
        self.at(&format!("{HIDDEN}/uploads/{path}{LOCK}"))
    }

    /// Path inside the vault of an object.
    fn inside(&self, location: &ObjectPath) -> String {
        let full = location.as_ref();
        let below = full.strip_prefix(&self.root).unwrap_or(full);
        below.trim_start_matches('/').to_owned()
    }

    async fn get(&self, path: &str, range: GetRange) -> io::Result<(Bytes, u64)> {
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let result = self.store.get_opts(&self.at(path)?, options).await.map_err(io_error)?;
        let size = result.meta.size;
        Ok((result.bytes().await.map_err(io_error)?, size))
    }

    pub(crate) async fn tail(&self, path: &str, most: u64) -> io::Result<(Bytes, u64)> {
        retry(|| async {
            match self.get(path, GetRange::Suffix(most)).await {
                Ok((bytes, size)) => complete(bytes, size.min(most)).map(|bytes| (bytes, size)),
                // S3 gives no range of an empty object.
                Err(error) => match self.store.head(&self.at(path)?).await {
                    Ok(meta) if meta.size == 0 => Ok((Bytes::new(), 0)),
                    _ => Err(error),
                },
            }
        })
        .await
    }

    pub(crate) async fn read(&self, path: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        let end = offset + length as u64;
        let starts = (offset..end).step_by(PIECE as usize);
        let pieces = futures::stream::iter(starts).map(|start| {
            let range = start..end.min(start + PIECE);
            retry(move || {
                let range = range.clone();
                async move {
                    let wanted = range.end - range.start;
                    let (bytes, _) = self.get(path, GetRange::Bounded(range)).await?;
                    complete(bytes, wanted)
                }
            })
        });
        let mut pieces = pieces.buffered(REQUESTS);
        let first = pieces.try_next().await?.unwrap_or_default();
        if first.len() == length {
            return Ok(first);
        }
        let mut bytes = BytesMut::with_capacity(length);
        bytes.extend_from_slice(&first);
        while let Some(piece) = pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }

    async fn metas(&self, path: &str) -> io::Result<Vec<ObjectMeta>> {
        let below = self.at(path)?;
        let below = (!below.as_ref().is_empty()).then_some(below);
        retry(|| async { self.store.list(below.as_ref()).try_collect::<Vec<_>>().await.map_err(io_error) })
            .await
    }

    pub(crate) async fn list(&self, prefix: &str) -> io::Result<Vec<Entry>> {
        let mut metas = self.metas(prefix).await?;
        if !prefix.is_empty() {
            match retry(|| async { self.store.head(&self.at(prefix)?).await.map_err(io_error) }).await {
                Ok(meta) => metas.push(meta),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let locked = self.locked(prefix).await?;
        let entries = metas.into_iter().map(|meta| Entry {
            path: self.inside(&meta.location),
            bytes: meta.size,
            modified: meta.last_modified.into(),
        });
        let is_hidden = |path: &str| path.starts_with(HIDDEN) || locked.contains(path);
        Ok(entries.filter(|entry| !is_hidden(&entry.path)).collect())
    }

    /// Paths of objects whose upload was not published.
    async fn locked(&self, prefix: &str) -> io::Result<HashSet<String>> {
        if self.parts.is_none() {
            return Ok(HashSet::new());
        }
        let mut locks = self.metas(&format!("{HIDDEN}/uploads/{prefix}")).await?;
        if !prefix.is_empty()
            && let Ok(meta) = self.store.head(&self.lock_of(prefix)?).await
        {
            locks.push(meta);
        }
        Ok(locks.iter().filter_map(|lock| self.path_of_lock(&lock.location)).collect())
    }

    fn path_of_lock(&self, location: &ObjectPath) -> Option<String> {
        let inside = self.inside(location);
        let path = inside.strip_prefix(HIDDEN)?.strip_prefix("/uploads/")?.strip_suffix(LOCK)?;
        Some(path.to_owned())
    }

    pub(crate) async fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.at(path)?;
        // A store may take the removal of an object that is not there.
        retry(|| async { self.store.head(&path).await.map_err(io_error) }).await?;
        retry(|| async { self.store.delete(&path).await.map_err(io_error) }).await
    }

    pub(crate) fn upload(self: &Arc<Self>, path: &str, replace: bool) -> io::Result<ObjectUpload> {
        let (objects, target) = (Arc::clone(self), path.to_owned());
        let (staged, transfer) = wait(async move { objects.begin(&target, replace).await })?;
        Ok(ObjectUpload {
            objects: Arc::clone(self),
            path: path.to_owned(),
            staged,
            replace,
            transfer: Some(transfer),
            buffer: Vec::new(),
            sent: Vec::new(),
            permits: Arc::new(Semaphore::new(REQUESTS)),
        })
    }

    async fn begin(&self, path: &str, replace: bool) -> io::Result<(String, Transfer)> {
        let target = self.at(path)?;
        if !replace {
            self.must_be_free(&target).await?;
        }
        let owner = Owner::new().to_string();
        let Some(Parts(parts)) = &self.parts else {
            let staged = format!("{HIDDEN}/uploads/{owner}");
            let upload = self.store.put_multipart(&self.at(&staged)?).await.map_err(io_error)?;
            return Ok((staged, Transfer::Sequential(upload)));
        };
        let id = retry(|| async { parts.create_multipart(&target).await.map_err(io_error) }).await?;
        let lock = Lock { upload: id.clone(), owner, replace };
        let text = serde_json::to_vec(&lock).map_err(io::Error::other)?;
        let put =
            self.store.put_opts(&self.lock_of(path)?, text.into(), PutOptions::from(PutMode::Create)).await;
        let put = match put.map_err(io_error) {
            // The answer to an earlier attempt may have been lost.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.owns(path, &lock).await => Ok(()),
            put => put.map(drop),
        };
        let begun = match put {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(io::Error::new(ErrorKind::AlreadyExists, "somebody else is uploading to this name"))
            }
            Err(error) => Err(error),
            Ok(()) if replace => Ok(()),
            // The upload that had the lock before may have been published meanwhile.
            Ok(()) => match self.must_be_free(&target).await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let _ = self.store.delete(&self.lock_of(path)?).await;
                    Err(error)
                }
            },
        };
        if let Err(error) = begun {
            let _ = parts.abort_multipart(&target, &id).await;
            return Err(error);
        }
        Ok((path.to_owned(), Transfer::Parts { parts: Arc::clone(parts), path: target, id }))
    }

    /// True if the lock of a path is this one.
    async fn owns(&self, path: &str, lock: &Lock) -> bool {
        let Ok(at) = self.lock_of(path) else { return false };
        let Ok(found) = self.store.get_opts(&at, GetOptions::default()).await else { return false };
        let Ok(text) = found.bytes().await else { return false };
        serde_json::from_slice::<Lock>(&text).is_ok_and(|found| found.owner == lock.owner)
    }

    async fn must_be_free(&self, target: &ObjectPath) -> io::Result<()> {
        match retry(|| async { self.store.head(target).await.map_err(io_error) }).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    pub(crate) async fn remove_abandoned(&self) -> io::Result<usize> {
        let mut removed = 0;
        for found in self.metas(&format!("{HIDDEN}/uploads")).await? {
            let modified: std::time::SystemTime = found.last_modified.into();
            let age = modified.elapsed().unwrap_or_default();
            let path = self.path_of_lock(&found.location);
            if let (Some(Parts(parts)), Some(path)) = (&self.parts, path) {
                let Ok(text) = self.store.get_opts(&found.location, GetOptions::default()).await else {
                    continue;
                };
                let text = text.bytes().await.map_err(io_error)?;
                let lock: Lock = serde_json::from_slice(&text).map_err(io::Error::other)?;
                if !Owner::parse(&lock.owner).is_none_or(|owner| owner.is_gone(age)) {
                    continue;
                }
                let target = self.at(&path)?;
                let _ = parts.abort_multipart(&target, &lock.upload).await;
                if !lock.replace {
                    let _ = self.store.delete(&target).await;
                }
            } else {
                // A writer of HDFS puts a dot before the name, and `.tmp.N` behind it.
                let name = found.location.filename().unwrap_or_default().trim_start_matches('.');
                let name = name.split('.').next().unwrap_or_default();
                if !Owner::parse(name).is_some_and(|owner| owner.is_gone(age)) {
                    continue;
                }
            }
            match self.store.delete(&found.location).await.map_err(io_error) {
                Ok(()) => removed += 1,
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }
}

/// Fails where a store gave fewer or more bytes than were asked for.
fn complete(bytes: Bytes, wanted: u64) -> io::Result<Bytes> {
    if bytes.len() as u64 == wanted {
        return Ok(bytes);
    }
    let what = format!("the store gave {} of {wanted} bytes", bytes.len());
    Err(io::Error::new(ErrorKind::UnexpectedEof, what))
}

/// Transfer of an upload's parts.
enum Transfer {
    Parts {
        parts: Arc<dyn MultipartStore>,
        path: ObjectPath,
        id: String,
    },
    /// Parts go to the store in their order.
    Sequential(Box<dyn MultipartUpload>),
}

/// Upload to an object store.
pub(crate) struct ObjectUpload {
    objects: Arc<Objects>,
    path: String,
    /// Path at which the bytes can be read back.
    staged: String,
    replace: bool,
    transfer: Option<Transfer>,
    buffer: Vec<u8>,
    sent: Vec<JoinHandle<io::Result<Option<PartId>>>>,
    permits: Arc<Semaphore>,
}

impl ObjectUpload {
    fn part_bytes(&self) -> usize {
        PART << (self.sent.len() / PARTS_OF_A_SIZE).min(3)
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.part_bytes().saturating_sub(self.buffer.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() >= self.part_bytes() {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Sends the buffer as one part, when one of the requests under way allows for it.
    fn send(&mut self) -> io::Result<()> {
        let payload = Bytes::from(std::mem::take(&mut self.buffer));
        let permits = Arc::clone(&self.permits);
        let permit = wait(async move { permits.acquire_owned().await.map_err(io::Error::other) })?;
        let number = self.sent.len();
        let task = match self.transfer.as_mut() {
            None => return Err(io::Error::other("the upload has ended")),
            Some(Transfer::Parts { parts, path, id }) => {
                let (parts, path, id) = (Arc::clone(parts), path.clone(), id.clone());
                handle()?.spawn(async move {
                    let _permit = permit;
                    let put = || async {
                        let payload = PutPayload::from(payload.clone());
                        parts.put_part(&path, &id, number, payload).await.map_err(io_error)
                    };
                    retry(put).await.map(Some)
                })
            }
            Some(Transfer::Sequential(upload)) => {
                let part = upload.put_part(PutPayload::from(payload));
                handle()?.spawn(async move {
                    let _permit = permit;
                    part.await.map_err(io_error).map(|()| None)
                })
            }
        };
        self.sent.push(task);
        Ok(())
    }

    pub(crate) fn complete(&mut self) -> io::Result<String> {
        if !self.buffer.is_empty() || self.sent.is_empty() {
            self.send()?;
        }
        let sent = std::mem::take(&mut self.sent);
        let ids = wait(async move {
            let mut ids = Vec::with_capacity(sent.len());
            for part in sent {
                ids.extend(part.await.map_err(io::Error::other)??);
            }
            Ok(ids)
        })?;
        match self.transfer.as_mut() {
            None => return Err(io::Error::other("the upload has ended")),
            Some(Transfer::Parts { parts, path, id }) => {
                let (parts, path, id) = (Arc::clone(parts), path.clone(), id.clone());
                let objects = Arc::clone(&self.objects);
                wait(async move {
                    match parts.complete_multipart(&path, &id, ids).await.map_err(io_error) {
                        Ok(_) => Ok(()),
                        // The answer may be lost, and the object be there: reading back tells.
                        Err(error) => objects.store.head(&path).await.map(drop).map_err(|_| error),
                    }
                })?;
            }
            Some(Transfer::Sequential(_)) => {
                let Some(Transfer::Sequential(mut upload)) = self.transfer.take() else {
                    return Err(io::Error::other("the upload has ended"));
                };
                wait(async move { upload.complete().await.map_err(io_error) })?;
            }
        }
        Ok(self.staged.clone())
    }

    pub(crate) fn publish(&mut self) -> io::Result<()> {
        let (objects, path, staged) = (Arc::clone(&self.objects), self.path.clone(), self.staged.clone());
        if objects.parts.is_some() {
            return wait(async move {
                let lock = objects.lock_of(&path)?;
                retry(|| async { objects.store.delete(&lock).await.map_err(io_error) }).await
            });
        }
        let mode = if self.replace { RenameTargetMode::Overwrite } else { RenameTargetMode::Create };
        wait(async move {
            let (from, to) = (objects.at(&staged)?, objects.at(&path)?);
            let options = RenameOptions::default().with_target_mode(mode);
            objects.store.rename_opts(&from, &to, options).await.map_err(io_error)
        })
    }

    pub(crate) fn abort(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        let transfer = self.transfer.take();
        let (objects, path, staged) = (Arc::clone(&self.objects), self.path.clone(), self.staged.clone());
        let replace = self.replace;
        let _ = wait(async move {
            for part in sent {
                part.abort();
                let _ = part.await;
            }
            match transfer {
                Some(Transfer::Parts { parts, path: target, id }) => {
                    let _ = parts.abort_multipart(&target, &id).await;
                    if !replace {
                        let _ = objects.store.delete(&target).await;
                    }
                    objects.store.delete(&objects.lock_of(&path)?).await.map_err(io_error)
                }
                Some(Transfer::Sequential(mut upload)) => upload.abort().await.map_err(io_error),
                None => objects.store.delete(&objects.at(&staged)?).await.map_err(io_error),
            }
        });
    }
}
