//! A recorder made of the server's parts and a ring in memory.

use super::Maker;
use super::well::well;
use holdfast_base::{BLOCK, ByteSize, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{SlotState, ViewPlace};
use holdfast_media::{Buffer, BufferPool, Lock};
use holdfast_protocol::server::{Arrival, Client, Hangup, Listener};
use holdfast_protocol::wire::{LaneFile, OpenSequence, OpenWanted, Reply, Request, Status, Welcome};
use holdfast_ring::{Outcome, Refusal, SlotLook, SlotStatus, StreamStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What is done to a place of a bird's-eye view.
pub type Spoil = fn(&mut [u8]);

/// What the recorder does that a good one would do less often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mood {
    /// After so many reads everything before this sequence has expired.
    pub expire: Option<(usize, u64)>,
    /// So many reads are first answered with "pending".
    pub pending: usize,
    /// So many sealed slots are not on the medium until [`FakeRecorder::written`] says so; who asks for one waits for it.
    pub awaited: u64,
    /// What is behind the head of a slot is read once so many reads of that were asked for.
    pub together: usize,
    /// So many tickets are taken away before they are copied.
    pub hasty: usize,
    /// Say this version.
    pub version: Option<u16>,
    /// Say that this is the lane.
    pub file: LaneFile,
    /// Keep a bird's-eye view, and do this to every place of it.
    pub view: Option<Spoil>,
    /// So many slots may be pinned; none: it is of a release that knows no pins.
    pub pins: Option<usize>,
    /// Bytes of a read at most, if not [`QUANTUM`].
    pub quantum: Option<usize>,
}

impl Mood {
    fn quantum(&self) -> usize {
        self.quantum.unwrap_or(QUANTUM)
    }
}

pub struct FakeRecorder {
    pub socket: PathBuf,
    /// What reads were for.
    pub asked: Arc<Mutex<BTreeSet<u8>>>,
    /// Whether all that is sealed is on the medium.
    pub written: Arc<AtomicBool>,
    /// The sequences of reads, as they were asked for.
    pub reads: Arc<Mutex<Vec<u64>>>,
    /// Bytes that were read.
    pub bytes: Arc<AtomicUsize>,
    /// The sequences of which it was asked what is not on the medium yet.
    pub gains: Arc<Mutex<BTreeSet<u64>>>,
    /// What every client that is there has pinned.
    pub pinned: Arc<Mutex<BTreeMap<usize, Vec<u64>>>>,
    /// How often pins were asked for.
    pub pins_asked: Arc<AtomicUsize>,
    _thread: Thread,
    _directory: Option<tempfile::TempDir>,
}

struct Thread {
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

pub const QUANTUM: usize = 64 << 10;
const PLACE: usize = 4 << 10;
const TICKETS: usize = 3;

impl FakeRecorder {
    pub fn start(maker: Maker, mood: Mood) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("ring.sock");
        Self { _directory: Some(directory), ..Self::start_at(maker, mood, socket) }
    }

    pub fn start_at(maker: Maker, mood: Mood, socket: PathBuf) -> Self {
        let listener = Listener::bind_at(socket.clone()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&stop);
        let serving = Serving::new(maker, mood);
        let (asked, written) = (Arc::clone(&serving.asked), Arc::clone(&serving.written));
        let (reads, gains) = (Arc::clone(&serving.log), Arc::clone(&serving.taken));
        let bytes = Arc::clone(&serving.bytes);
        let (pinned, pins_asked) = (Arc::clone(&serving.pinned), Arc::clone(&serving.pins_asked));
        let thread = std::thread::spawn(move || serving.run(&listener, &shared));
        let thread = Thread { stop, handle: Some(thread) };
        Self {
            socket,
            asked,
            written,
            reads,
            bytes,
            gains,
            pinned,
            pins_asked,
            _thread: thread,
            _directory: None,
        }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.handle.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the recorder panicked");
        }
    }
}

/// A bird's-eye view of all slots of data, spoiled place by place.
fn view(maker: &Maker, spoil: Spoil) -> BufferPool {
    let slot_bytes = maker.superblock.geometry.slot_bytes as usize;
    let mut pool = BufferPool::shared(1, PLACE * maker.table.len(), Lock::No).unwrap();
    let mut memory = pool.take().unwrap();
    for (number, entry) in maker.table.iter().enumerate().filter(|(_, entry)| entry.state == SlotState::Data)
    {
        let mut image = vec![0; slot_bytes];
        maker.image.read(maker.superblock.geometry.slot_offset(SlotNo(number as u32)), &mut image);
        let bytes = &mut memory[number * PLACE..(number + 1) * PLACE];
        let mut place = ViewPlace::new(bytes).unwrap();
        assert!(place.begin(entry.sequence, &image));
        place.take(0, &image);
        place.publish();
        spoil(bytes);
    }
    pool
}

struct Serving {
    maker: Maker,
    mood: Mood,
    pool: BufferPool,
    view: Option<BufferPool>,
    out: Vec<(usize, u64, Buffer, bool)>,
    waiting: Vec<(usize, u64, Request)>,
    reads: usize,
    asked: Arc<Mutex<BTreeSet<u8>>>,
    written: Arc<AtomicBool>,
    log: Arc<Mutex<Vec<u64>>>,
    bytes: Arc<AtomicUsize>,
    /// How many reads behind the head of a slot were asked for.
    behind: BTreeMap<u64, usize>,
    taken: Arc<Mutex<BTreeSet<u64>>>,
    pinned: Arc<Mutex<BTreeMap<usize, Vec<u64>>>>,
    pins_asked: Arc<AtomicUsize>,
}

impl Serving {
    fn new(maker: Maker, mood: Mood) -> Self {
        let pool = BufferPool::shared(TICKETS, mood.quantum(), Lock::No).unwrap();
        let view = mood.view.map(|spoil| view(&maker, spoil));
        let (out, waiting) = (Vec::new(), Vec::new());
        let (asked, written, log, taken) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        let (pinned, pins_asked, behind) = (Arc::default(), Arc::default(), BTreeMap::new());
        let reads = 0;
        Self {
            maker,
            mood,
            pool,
            view,
            out,
            waiting,
            reads,
            asked,
            written,
            log,
            bytes: Arc::default(),
            behind,
            taken,
            pinned,
            pins_asked,
        }
    }

    /// Sequences that are sealed and not on the medium.
    fn awaited(&self) -> std::ops::Range<u64> {
        let end = self.maker.sequence + u64::from(!self.maker.is_open());
        let count = if self.written.load(Ordering::SeqCst) { 0 } else { self.mood.awaited };
        end - count..end
    }

    fn run(mut self, listener: &Listener, stop: &AtomicBool) {
        let mut clients: Vec<(usize, Client)> = Vec::new();
        let mut number = 0;
        while !stop.load(Ordering::SeqCst) {
            {
                let mut look = vec![PollFd::new(listener, PollFlags::IN)];
                for (_, client) in &clients {
                    let mut wants = PollFlags::empty();
                    wants.set(PollFlags::IN, client.wants_read());
                    wants.set(PollFlags::OUT, client.wants_write());
                    look.push(PollFd::new(client, wants));
                }
                let brief = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                poll(&mut look, Some(&brief)).unwrap();
            }
            while let Arrival::Client(client) = listener.accept(|| true).unwrap() {
                number += 1;
                clients.push((number, client));
            }
            clients.retain_mut(|(number, client)| self.serve(*number, client).is_ok());
            let here = |number: usize| clients.iter().any(|(other, _)| *other == number);
            self.waiting.retain(|(number, ..)| here(*number));
            self.pinned.lock().unwrap().retain(|number, _| here(*number));
            let (stay, gone): (Vec<_>, Vec<_>) = self.out.drain(..).partition(|(number, ..)| here(*number));
            self.out = stay;
            for (_, _, buffer, _) in gone {
                self.pool.give(buffer).unwrap();
            }
            for (number, id, request) in std::mem::take(&mut self.waiting) {
                if let Some((_, client)) = clients.iter_mut().find(|(other, _)| *other == number) {
                    let _ = self.answer(number, client, id, request);
                }
            }
        }
    }

    fn serve(&mut self, number: usize, client: &mut Client) -> Result<(), Hangup> {
        client.flush()?;
        while let Some((id, request)) = client.receive()? {
            if let Request::Read { sequence, offset, .. } = &request {
                self.log.lock().unwrap().push(sequence.0);
                *self.behind.entry(sequence.0).or_default() += usize::from(*offset > 0);
            }
            self.answer(number, client, id, request)?;
        }
        Ok(())
    }

    fn answer(
        &mut self,
        number: usize,
        client: &mut Client,
        id: u64,
        request: Request,
    ) -> Result<(), Hangup> {
        let reply = match request {
            Request::Hello { .. } => {
                let welcome = self.welcome();
                let view = self.view.as_ref().and_then(BufferPool::fd);
                return client.welcome(id, welcome, self.pool.fd().unwrap(), view);
            }
            Request::Read { sequence, offset, len, purpose } => {
                self.asked.lock().unwrap().insert(purpose as u8);
                let Some(reply) = self.read(number, sequence.0, offset as usize, len as usize) else {
                    self.waiting.push((number, id, request));
                    return Ok(());
                };
                reply
            }
            Request::Done { offset } => self.done(number, offset),
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Slots { from, count } => {
                let slots = self.slots();
                let total = slots.len() as u32;
                // Few at a time, so that clients must ask again.
                let slots = slots.into_iter().skip(from as usize).take((count as usize).min(7)).collect();
                Reply::Slots { total, slots }
            }
            Request::Streams => Reply::Streams(self.streams()),
            Request::Preamble { stream, version, offset } => self.preamble(stream, version, offset as usize),
            Request::Schema { stream } => {
                let place = self.maker.entries.iter().position(|entry| entry.stream == stream);
                Reply::Schema { text: place.map(|at| self.maker.schemas[at].clone()).unwrap_or_default() }
            }
            Request::Holds { .. } => Reply::Holds { more: false, holds: Vec::new() },
            Request::Acts { .. } => {
                Reply::Acts { more: false, dropped: holdfast_ring::ActNumbers::default(), acts: Vec::new() }
            }
            Request::Order(_) => Reply::Outcome(Outcome::Refused(Refusal::Busy("purge"))),
            Request::OpenSlots => {
                let open = self.maker.is_open().then_some((self.maker.sequence, false));
                let all = self.awaited().map(|sequence| (sequence, true)).chain(open);
                let brief = |(sequence, sealed)| OpenSequence { sequence: Sequence(sequence), sealed };
                Reply::OpenSlots(all.map(brief).collect())
            }
            Request::OpenIndex { sequence, cursor, wanted } => {
                self.taken.lock().unwrap().insert(sequence.0);
                self.open_index(sequence.0, cursor, &wanted)
            }
            Request::OpenOutline { sequence, stream, attribute, values } => {
                let open = self.maker.is_open() && sequence.0 == self.maker.sequence;
                let outline = open.then(|| self.maker.outline(stream, attribute, &values)).flatten();
                outline.map_or(Reply::Pending, Reply::OpenOutline)
            }
            Request::Pin { sequences } => {
                self.pins_asked.fetch_add(1, Ordering::SeqCst);
                let Some(most) = self.mood.pins else {
                    client.reply(id, &Reply::Error { text: "frames of type 14 are not known".to_owned() })?;
                    return Err(Hangup::Closed);
                };
                let kept: Vec<u64> = sequences.iter().take(most).map(|sequence| sequence.0).collect();
                let granted = kept.len() as u32;
                self.pinned.lock().unwrap().insert(number, kept);
                Reply::Pinned { granted }
            }
        };
        client.reply(id, &reply)
    }

    fn welcome(&self) -> Welcome {
        Welcome {
            version: self.mood.version.unwrap_or(holdfast_protocol::wire::VERSION),
            pid: std::process::id(),
            ring: self.maker.superblock.ring,
            quantum: self.mood.quantum() as u32,
            place: if self.view.is_some() { PLACE as u32 } else { 0 },
            area: (TICKETS * self.mood.quantum()) as u64,
            superblock: self.maker.superblock.encode(),
            file: self.mood.file,
            lane: "memory".to_owned(),
        }
    }

    fn is_expired(&self, sequence: u64) -> bool {
        self.mood.expire.is_some_and(|(reads, before)| self.reads >= reads && sequence < before)
    }

    /// `None`: no ticket is free.
    fn read(&mut self, number: usize, sequence: u64, offset: usize, len: usize) -> Option<Reply> {
        if self.mood.pending > 0 {
            self.mood.pending -= 1;
            return Some(Reply::Pending);
        }
        if self.awaited().contains(&sequence) {
            return Some(Reply::Pending);
        }
        let place = self.maker.table.iter().position(|entry| entry.sequence.0 == sequence);
        let is_open = self.maker.is_open() && sequence == self.maker.sequence;
        if (place.is_none() && !is_open) || self.is_expired(sequence) {
            return Some(Reply::Expired);
        }
        let slot_bytes = self.maker.superblock.geometry.slot_bytes as usize;
        let inside = offset.checked_add(len).is_some_and(|end| end <= slot_bytes);
        if len == 0 || len > self.mood.quantum() || !(offset | len).is_multiple_of(BLOCK) || !inside {
            return Some(Reply::Error { text: format!("a read of {len} bytes at {offset}") });
        }
        if offset > 0 && self.behind.get(&sequence).is_none_or(|asked| *asked < self.mood.together) {
            return None;
        }
        let mut buffer = self.pool.take()?;
        self.reads += 1;
        self.bytes.fetch_add(len, Ordering::SeqCst);
        if let Some(place) = place {
            let at = self.maker.superblock.geometry.slot_offset(SlotNo(place as u32));
            self.maker.image.read(at + offset as u64, &mut buffer[..len]);
        } else if !self.maker.open_payload(offset, &mut buffer[..len]) {
            self.pool.give(buffer).unwrap();
            return Some(Reply::Pending);
        }
        let offset = buffer.position() as u64;
        let kept = self.mood.hasty == 0;
        if !kept {
            self.mood.hasty -= 1;
            buffer[..len].fill(0xee);
        }
        self.out.push((number, offset, buffer, kept));
        Some(Reply::Ready { offset, len: len as u32 })
    }

    fn done(&mut self, number: usize, offset: u64) -> Reply {
        let Some(at) = self.out.iter().position(|(owner, place, ..)| *owner == number && *place == offset)
        else {
            return Reply::Done { kept: false };
        };
        let (_, _, buffer, kept) = self.out.swap_remove(at);
        self.pool.give(buffer).unwrap();
        Reply::Done { kept }
    }

    fn preamble(&self, stream: StreamId, version: u32, offset: usize) -> Reply {
        let found = self.maker.preambles.iter().find(|(id, number, _)| (*id, *number) == (stream.0, version));
        let Some((_, _, bytes)) = found else { return Reply::Expired };
        let piece = bytes.get(offset..).unwrap_or_default();
        Reply::Preamble { total: bytes.len() as u32, bytes: piece[..piece.len().min(100)].to_vec() }
    }

    fn open_index(&mut self, sequence: u64, cursor: u64, wanted: &OpenWanted) -> Reply {
        if self.is_expired(sequence) || sequence > self.maker.sequence {
            return Reply::Expired;
        }
        if !self.maker.is_open() || sequence != self.maker.sequence {
            return Reply::Pending;
        }
        let (parts, told) = self.maker.write_open_slot(cursor, wanted, 32 << 10);
        Reply::OpenIndex { cursor: told.cursor.into(), end: told.end, parts }
    }

    fn slots(&self) -> Vec<SlotStatus> {
        let awaited = self.awaited();
        let is_there = |sequence: u64| !awaited.contains(&sequence);
        let slots = self.maker.table.iter().enumerate().map(|(number, entry)| SlotStatus {
            slot: SlotNo(number as u32),
            look: if entry.state == SlotState::Data && is_there(entry.sequence.0) {
                SlotLook::Live
            } else {
                SlotLook::Free
            },
            sequence: entry.sequence,
            age: entry.age,
            first: None,
            last: None,
        });
        slots.collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let streams = self.maker.entries.iter().enumerate().map(|(number, entry)| StreamStatus {
            id: entry.stream,
            name: entry.name.as_str().to_owned(),
            kind: entry.kind,
            framing: "lines".to_owned(),
            created: Timestamp(0),
            counters: self.maker.counters(number),
            preamble: entry.preamble,
            preamble_bytes: 0,
            schema: self.maker.schemas[number].lines().count() as u32,
        });
        streams.collect()
    }

    fn status(&self) -> Status {
        let superblock = &self.maker.superblock;
        let mut status = well();
        status.ring.ring = superblock.ring;
        status.ring.lane_bytes = ByteSize(superblock.geometry.lane_bytes);
        status.ring.slot_bytes = ByteSize(superblock.geometry.slot_bytes);
        status.ring.sequence = Sequence(self.maker.sequence);
        status
    }
}
