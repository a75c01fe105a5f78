//! Vaults of the tests: in a folder, and in memory with injected faults.

use async_trait::async_trait;
use futures::stream::BoxStream;
use holdfast_client::config::VaultEntry;
use holdfast_vault::Vault;
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Vault in a folder.
pub(crate) fn in_folder(folder: &Path) -> Arc<Vault> {
    Vault::open(&VaultEntry::folder(folder.to_str().unwrap())).unwrap()
}

/// Vault in memory, behind a store with faults.
pub(crate) fn in_memory(faults: Faults) -> (Arc<Vault>, Arc<Faulty>) {
    let store = Arc::new(Faulty {
        inner: InMemory::new(),
        faults,
        requests: AtomicU64::new(0),
        parts: Mutex::default(),
    });
    let vault = Vault::over("memory", Arc::clone(&store) as _, Some(Arc::clone(&store) as _), "root");
    (vault, store)
}

/// Faults of a store: each is injected into one request of so many; 0: into none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// The request fails at once.
    pub(crate) error: u64,
    /// The answer is cut.
    pub(crate) truncate: u64,
    /// One bit of the answer is wrong.
    pub(crate) flip: u64,
    /// The request fails after it was carried out.
    pub(crate) late: u64,
    /// One bit of what is stored is wrong.
    pub(crate) spoil: u64,
}

/// Store in memory with faults. They follow from the number of the request, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) inner: InMemory,
    faults: Faults,
    requests: AtomicU64,
    /// Parts of uploads, in any order, which those of the store in memory cannot be in.
    parts: Mutex<BTreeMap<String, BTreeMap<usize, Vec<u8>>>>,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn injected() -> Error {
    Error::Generic { store: "Faulty", source: "503 Slow Down".into() }
}

fn spoiled(payload: &PutPayload) -> PutPayload {
    let mut bytes: Vec<u8> = payload.iter().flat_map(|bytes| bytes.to_vec()).collect();
    let at = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 4;
    }
    bytes.into()
}

impl Faulty {
    /// Numbers a request, and returns those of the faults that it has.
    fn next(&self) -> impl Fn(u64) -> bool + use<> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        move |one_in: u64| one_in > 0 && number.is_multiple_of(one_in)
    }

    fn before(&self) -> Result<impl Fn(u64) -> bool + use<>> {
        let has = self.next();
        if has(self.faults.error) { Err(injected()) } else { Ok(has) }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, at: &ObjectPath, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        let has = self.before()?;
        let is_head = options.head;
        let mut result = self.inner.get_opts(at, options).await?;
        if is_head || !(has(self.faults.truncate) || has(self.faults.flip)) {
            return Ok(result);
        }
        let (meta, range, attributes) =
            (result.meta.clone(), result.range.clone(), result.attributes.clone());
        let mut bytes = std::mem::replace(
            &mut result,
            GetResult {
                payload: GetResultPayload::Stream(Box::pin(futures::stream::empty())),
                meta: meta.clone(),
                range: range.clone(),
                attributes: attributes.clone(),
            },
        )
        .bytes()
        .await?
        .to_vec();
        if has(self.faults.truncate) {
            bytes.truncate(bytes.len() / 2);
        }
        let middle = bytes.len() / 2;
        if has(self.faults.flip)
            && let Some(byte) = bytes.get_mut(middle)
        {
            *byte ^= 1;
        }
        let payload =
            GetResultPayload::Stream(Box::pin(futures::stream::once(async move { Ok(bytes.into()) })));
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        if let Err(error) = self.before() {
            return Box::pin(futures::stream::once(async move { Err(error) }));
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl MultipartStore for Faulty {
    async fn create_multipart(&self, _: &ObjectPath) -> Result<String> {
        let _ = self.before()?;
        let mut parts = self.parts.lock().unwrap();
        let id = self.requests.load(Ordering::Relaxed).to_string();
        parts.insert(id.clone(), BTreeMap::new());
        Ok(id)
    }

    async fn put_part(&self, _: &ObjectPath, id: &String, part: usize, data: PutPayload) -> Result<PartId> {
        let has = self.before()?;
        let data = if has(self.faults.spoil) { spoiled(&data) } else { data };
        let bytes = data.iter().flat_map(|bytes| bytes.to_vec()).collect();
        self.parts.lock().unwrap().get_mut(id).ok_or_else(injected)?.insert(part, bytes);
        Ok(PartId { content_id: part.to_string() })
    }

    async fn complete_multipart(&self, at: &ObjectPath, id: &String, ids: Vec<PartId>) -> Result<PutResult> {
        let has = self.next();
        let parts = self.parts.lock().unwrap().remove(id).ok_or_else(injected)?;
        assert_eq!(parts.len(), ids.len());
        let bytes: Vec<u8> = parts.into_values().flatten().collect();
        let done = self.inner.put_opts(at, bytes.into(), PutOptions::default()).await;
        if has(self.faults.late) { Err(injected()) } else { done }
    }

    async fn abort_multipart(&self, _: &ObjectPath, id: &String) -> Result<()> {
        self.parts.lock().unwrap().remove(id);
        Ok(())
    }
}
