//! Chunks of messages, compressed by worker threads and given back in order.

use crate::compression::Compression;
use crate::records::{HEAD, begin, content, end, message, put, record};
use mcap::parse_record;
use mcap::records::{ChunkHeader, ChunkIndex, MessageHeader, MessageIndex, MessageIndexEntry, Record, op};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Messages of a chunk before compression.
#[derive(Debug, Default)]
pub(crate) struct OpenChunk {
    records: Vec<u8>,
    times: Option<(u64, u64)>,
    index: BTreeMap<u16, Vec<MessageIndexEntry>>,
}

impl OpenChunk {
    /// Bytes of its records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a message; the offset of its record.
    pub(crate) fn message(&mut self, header: &MessageHeader, data: &[u8]) -> u64 {
        let offset = self.records.len() as u64;
        message(&mut self.records, header, data);
        let time = header.log_time;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        self.index.entry(header.channel_id).or_default().push(MessageIndexEntry { log_time: time, offset });
        offset
    }

    fn pack(self, compression: Compression) -> io::Result<PackedChunk> {
        let packed = compression.compress(&self.records)?;
        let (first, last) = self.times.unwrap_or_default();
        let header = ChunkHeader {
            message_start_time: first,
            message_end_time: last,
            uncompressed_size: self.records.len() as u64,
            uncompressed_crc: crc32fast::hash(&self.records),
            compression: compression.mcap_name().to_owned(),
            compressed_size: packed.len() as u64,
        };
        let mut bytes = Vec::with_capacity(packed.len() + 256);
        let head = begin(&mut bytes, op::CHUNK);
        content(&mut bytes, &header);
        bytes.extend_from_slice(&packed);
        end(&mut bytes, head);
        Ok(PackedChunk::new(bytes, header, self.index))
    }
}

/// Chunk as it lies in the file, and behind it its message indexes.
#[derive(Debug)]
pub(crate) struct PackedChunk {
    /// Chunk record and message index records.
    pub(crate) bytes: Vec<u8>,
    /// Its entry in the summary; offsets are relative to the chunk's beginning.
    pub(crate) index: ChunkIndex,
    /// BLAKE3 of the chunk record.
    pub(crate) hash: blake3::Hash,
}

impl PackedChunk {
    /// Adds message indexes to a chunk record.
    fn new(mut bytes: Vec<u8>, header: ChunkHeader, index: BTreeMap<u16, Vec<MessageIndexEntry>>) -> Self {
        let chunk_length = bytes.len() as u64;
        let hash = blake3::hash(&bytes);
        let mut offsets = BTreeMap::new();
        for (channel_id, records) in index {
            offsets.insert(channel_id, bytes.len() as u64);
            put(&mut bytes, op::MESSAGE_INDEX, &MessageIndex { channel_id, records });
        }
        let index = ChunkIndex {
            message_start_time: header.message_start_time,
            message_end_time: header.message_end_time,
            chunk_start_offset: 0,
            chunk_length,
            message_index_offsets: offsets,
            message_index_length: bytes.len() as u64 - chunk_length,
            compression: header.compression,
            compressed_size: header.compressed_size,
            uncompressed_size: header.uncompressed_size,
        };
        Self { bytes, index, hash }
    }

    /// Makes one of a chunk record and its messages, each with the offset of its record.
    pub(crate) fn adopt(chunk: &[u8], messages: &[(MessageHeader, u64)]) -> Result<Self, String> {
        let (opcode, content) = record(chunk).ok_or("its record is cut off")?;
        let parsed = parse_record(opcode, content).map_err(|error| error.to_string())?;
        let Record::Chunk { mut header, .. } = parsed else { return Err("it is no chunk record".to_owned()) };
        let mut index: BTreeMap<u16, Vec<MessageIndexEntry>> = BTreeMap::new();
        for (message, offset) in messages {
            let entry = MessageIndexEntry { log_time: message.log_time, offset: *offset };
            index.entry(message.channel_id).or_default().push(entry);
        }
        let times = || messages.iter().map(|(message, _)| message.log_time);
        header.message_start_time = times().min().unwrap_or_default();
        header.message_end_time = times().max().unwrap_or_default();
        Ok(Self::new(chunk.to_vec(), header, index))
    }
}

type Reply = SyncSender<io::Result<PackedChunk>>;

/// Threads that compress chunks. Results come in the order in which the chunks were given.
#[derive(Debug)]
pub(crate) struct Packers {
    jobs: Option<Sender<(OpenChunk, Reply)>>,
    threads: Vec<JoinHandle<()>>,
    /// Chunks under way, with their bytes before compression.
    pending: VecDeque<(usize, Receiver<io::Result<PackedChunk>>)>,
    most: usize,
}

impl Packers {
    /// Starts so many threads; at most twice as many chunks are in memory.
    pub(crate) fn start(threads: usize, compression: Compression) -> io::Result<Self> {
        let (jobs, queue) = channel::<(OpenChunk, Reply)>();
        let queue = Arc::new(Mutex::new(queue));
        let work = move |queue: Arc<Mutex<Receiver<(OpenChunk, Reply)>>>| {
            loop {
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((chunk, reply)) = job else { return };
                // Nobody waits for it where the writer has given up.
                let _ = reply.send(chunk.pack(compression));
            }
        };
        let started: io::Result<Vec<_>> = (0..threads.max(1))
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::Builder::new().name("holdfast-pack".to_owned()).spawn(move || work(queue))
            })
            .collect();
        Ok(Self { jobs: Some(jobs), threads: started?, pending: VecDeque::new(), most: 2 * threads.max(1) })
    }

    /// Gives a chunk; the oldest one that is done comes back where enough are at work.
    pub(crate) fn give(&mut self, chunk: OpenChunk) -> io::Result<Option<PackedChunk>> {
        let (reply, result) = sync_channel(1);
        let bytes = chunk.len();
        let gone = || io::Error::other("the threads that compress have ended");
        self.jobs.as_ref().ok_or_else(gone)?.send((chunk, reply)).map_err(|_| gone())?;
        self.pending.push_back((bytes, result));
        if self.pending.len() > self.most { self.next() } else { Ok(None) }
    }

    /// Bytes of the chunks under way, before compression.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending.iter().map(|(bytes, _)| *bytes as u64).sum()
    }

    /// Waits for the oldest chunk that was given.
    pub(crate) fn next(&mut self) -> io::Result<Option<PackedChunk>> {
        let Some((_, oldest)) = self.pending.pop_front() else { return Ok(None) };
        oldest.recv().map_err(|_| io::Error::other("a thread that compresses has broken off"))?.map(Some)
    }
}

impl Drop for Packers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Bytes of the chunk record's head and fixed fields, at most, before its compressed records.
pub(crate) const CHUNK_HEAD: usize = HEAD + 8 + 8 + 8 + 4 + 4 + 8 + 8;
