//! Reader of one open version: the bytes of its advance buffer, and the fetches under way.

use crate::advance_buffer::{AdvanceBuffer, BufferMode};
use crate::error::FsError;
use crate::fetch::Source;
use crate::memory::{Memory, Reservation};
use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that come, or that are there.
type Coming = Shared<BoxFuture<'static, Result<Bytes, FsError>>>;

/// Fetched range, or one under way. Its fetch ends when nobody waits for it any more.
#[derive(Debug)]
struct Chunk {
    range: Range<u64>,
    bytes: Coming,
    task: tokio::task::AbortHandle,
    _memory: Option<Reservation>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reader of one open version.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Source,
    size: u64,
    memory: Arc<Memory>,
    state: Mutex<State>,
    last_use: AtomicU64,
}

#[derive(Debug)]
struct State {
    buffer: AdvanceBuffer,
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

/// Number of the next use of any reader.
static USES: AtomicU64 = AtomicU64::new(0);

impl Reader {
    pub(crate) fn open(source: Source, size: u64, mode: BufferMode, memory: &Arc<Memory>) -> Arc<Self> {
        let state = State { buffer: AdvanceBuffer::new(mode, size), chunks: BTreeMap::new() };
        let (memory, last_use) = (Arc::clone(memory), AtomicU64::new(0));
        let reader = Arc::new(Self { source, size, memory, state: Mutex::new(state), last_use });
        reader.memory.register(&reader);
        reader
    }

    /// Number of the last use, greater for later ones.
    pub(crate) fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    /// Gives up all buffers.
    pub(crate) fn give_up(&self) {
        let mut state = self.lock();
        for (_, chunk) in std::mem::take(&mut state.chunks) {
            state.buffer.forget(&chunk.range);
        }
    }

    /// Reads some bytes: all that were asked for, but at the end of the file.
    pub(crate) async fn read(&self, offset: u64, length: u64) -> Result<Bytes, FsError> {
        self.last_use.store(USES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let range = offset.min(self.size)..offset.saturating_add(length).min(self.size);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let chunks = self.plan(&range);
        let (mut parts, mut at) = (Vec::with_capacity(chunks.len()), range.start);
        for chunk in &chunks {
            // Chunks may overlap where one was fetched for this read only.
            let to = range.end.min(chunk.range.end);
            if to <= at {
                continue;
            }
            match chunk.bytes.clone().await {
                Ok(bytes) => {
                    let begin = chunk.range.start;
                    parts.push(bytes.slice((at - begin) as usize..(to - begin) as usize));
                    at = to;
                }
                Err(error) => {
                    self.forget(chunk);
                    return Err(error);
                }
            }
        }
        if let [whole] = parts.as_slice() {
            return Ok(whole.clone());
        }
        let mut all = BytesMut::with_capacity((range.end - range.start) as usize);
        for part in &parts {
            all.extend_from_slice(part);
        }
        Ok(all.freeze())
    }

    /// Starts the fetches of a read, and returns the chunks that cover it, in order.
    fn plan(&self, range: &Range<u64>) -> Vec<Arc<Chunk>> {
        let mut state = self.lock();
        let plan = state.buffer.read(range.start, range.end - range.start, self.memory.room());
        let mut cover: Vec<Arc<Chunk>> = Vec::new();
        for needed in plan.needed {
            let bytes = needed.end - needed.start;
            let memory = self.memory.reserve(bytes).or_else(|| {
                self.memory.reclaim(bytes, self);
                self.memory.reserve(bytes)
            });
            let is_counted = memory.is_some();
            let chunk = self.start(needed.clone(), memory);
            // Without memory the bytes go to this read only: their number is bounded by that of the reads.
            if is_counted && state.buffer.holds(&needed) {
                state.chunks.insert(needed.start, chunk);
            } else {
                state.buffer.forget(&needed);
                cover.push(chunk);
            }
        }
        for ahead in plan.ahead {
            match self.memory.reserve(ahead.end - ahead.start) {
                Some(memory) => drop(state.chunks.insert(ahead.start, self.start(ahead, Some(memory)))),
                None => state.buffer.forget(&ahead),
            }
        }
        let held = state.chunks.range(..range.end);
        cover.extend(
            held.rev().map(|(_, chunk)| chunk).take_while(|chunk| chunk.range.end > range.start).cloned(),
        );
        for dropped in plan.dropped {
            state.chunks.remove(&dropped.start);
        }
        cover.sort_by_key(|chunk| chunk.range.start);
        cover
    }

    fn start(&self, range: Range<u64>, memory: Option<Reservation>) -> Arc<Chunk> {
        let (source, fetched) = (self.source.clone(), range.clone());
        let task = tokio::spawn(async move { source.fetch(&fetched).await });
        let abort = task.abort_handle();
        let stopped = || FsError::new(Errno::INTR, "cannot read: the fetch was stopped; read again");
        let bytes = task.map(move |done| done.unwrap_or_else(|_| Err(stopped()))).boxed().shared();
        Arc::new(Chunk { range, bytes, task: abort, _memory: memory })
    }

    fn forget(&self, chunk: &Arc<Chunk>) {
        let mut state = self.lock();
        let is_held = state.chunks.get(&chunk.range.start).is_some_and(|held| Arc::ptr_eq(held, chunk));
        if is_held {
            state.chunks.remove(&chunk.range.start);
            state.buffer.forget(&chunk.range);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
