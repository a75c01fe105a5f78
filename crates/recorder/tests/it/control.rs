//! Tests of the control thread with a capture thread that answers reads only when told to.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use holdfast_base::{Clock as _, ManualClock, RingId, Sequence};
use holdfast_format::{Geometry, Key};
use holdfast_ingest::{Parker, StopFlag, Waker};
use holdfast_media::{Buffer, BufferPool, Lock, MemoryDisk};
use holdfast_protocol::client::Connection;
use holdfast_protocol::server::Listener;
use holdfast_protocol::wire::{LaneFile, Purpose, Reply, Request};
use holdfast_recorder::capture::{Answer, Ask};
use holdfast_recorder::control::{ControlServer, ControlThread, ControlWaker, Facts, Setup, Watch, channel};
use holdfast_ring::{Config, Driver, NewRing, create, recover};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SLOT: u64 = 64 << 10;
const PIECE: u32 = 4096;
const TICKETS: usize = 4;

/// Control thread over a ring without a writer.
struct Rig {
    folder: tempfile::TempDir,
    /// Raised when reads are to be answered.
    reads: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    waker: ControlWaker,
    capture: Waker,
    threads: Vec<JoinHandle<()>>,
}

impl Rig {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::default();
        let bytes = (1 << 20) + 12 * SLOT;
        let mut lane = MemoryDisk::new(bytes);
        let geometry = Geometry::for_lane(bytes, SLOT, Vec::new()).unwrap();
        let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
        create(&mut lane, new, clock.now()).unwrap();
        let recovered = recover(&mut lane).unwrap();
        let pool = (0..3).map(|_| Buffer::aligned(SLOT as usize).unwrap()).collect();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 4 };
        let driver = Driver::start(lane, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        let facts = Facts {
            since: clock.now(),
            started: Instant::now(),
            ring: driver.ring().status("lane"),
            file: LaneFile::default(),
            superblock: driver.superblock().clone(),
            streams: Vec::new(),
            schemas: Vec::new(),
            sources: Vec::new(),
            warnings: Vec::new(),
            view: None,
        };
        let (reads, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (parker, waker) = (Parker::new(), ControlWaker::new().unwrap());
        let capture = parker.waker();
        let (server, way) = channel(parker.waker(), waker.clone());
        let setup = Setup {
            listener: Listener::bind_at(folder.path().join("socket")).unwrap(),
            area: BufferPool::shared(TICKETS, PIECE as usize, Lock::No).unwrap(),
            facts,
            sources: Watch::default(),
            stop: StopFlag::new().unwrap(),
            over: Arc::clone(&over),
            progress: false,
            quiet: true,
        };
        let control = ControlThread::new(setup, way);
        let answering = {
            let (reads, over) = (Arc::clone(&reads), Arc::clone(&over));
            std::thread::spawn(move || answer(server, parker, &reads, &over))
        };
        let threads = vec![std::thread::spawn(move || drop(control.run())), answering];
        Self { folder, reads, over, waker, capture, threads }
    }

    fn connect(&self) -> Connection {
        Connection::connect(&self.folder.path().join("socket")).unwrap()
    }

    /// From here on reads are answered.
    fn answer_reads(&self) {
        self.reads.store(true, Ordering::Release);
        self.capture.wake();
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.waker.wake();
        self.capture.wake();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// The capture thread's part.
fn answer(mut server: ControlServer, mut parker: Parker, reads: &AtomicBool, over: &AtomicBool) {
    let mut waiting = Vec::new();
    while !over.load(Ordering::Acquire) {
        while let Some((id, ask)) = server.ask() {
            match ask {
                Ask::Figures(stats) => server.answer(Some(id), Answer::Figures(stats)),
                Ask::Slots(_, slots) => server.answer(Some(id), Answer::Slots(0, slots)),
                Ask::Pin(_, sequences) => server.answer(Some(id), Answer::Pinned(0, sequences)),
                Ask::Read(_, _, len, buffer, _) => waiting.push((id, buffer, len)),
                other => panic!("nobody asks for this: {other:?}"),
            }
        }
        if reads.load(Ordering::Acquire) {
            for (id, buffer, len) in waiting.drain(..) {
                server.answer(Some(id), Answer::Read(buffer, len, Ok(())));
            }
        }
        server.deliver();
        parker.wait(None);
    }
}

// Who waits for an answer takes none of its reads meanwhile, and gives no piece back: it must not have to wait for one.
#[test]
fn what_is_no_read_overtakes_reads_that_wait_for_a_piece() {
    let rig = Rig::start();
    let (mut greedy, mut other) = (rig.connect(), rig.connect());
    let read = Request::Read { sequence: Sequence(1), offset: 0, len: PIECE, purpose: Purpose::Search };
    let asked = 3 * TICKETS;
    let ids: Vec<u64> = (0..asked).map(|_| greedy.send(&read).unwrap()).collect();
    for connection in [&mut greedy, &mut other] {
        assert_eq!(connection.slots().unwrap(), []);
        assert!(connection.status().unwrap().recorder.is_some());
        let pins = Request::Pin { sequences: vec![Sequence(1)] };
        assert_eq!(connection.call(&pins).unwrap(), Reply::Pinned { granted: 0 });
    }
    rig.answer_reads();
    // Each read is answered, in its turn.
    let (mut answered, mut kept) = (Vec::new(), 0);
    while kept < asked {
        match greedy.next_reply().unwrap() {
            (id, Reply::Ready { offset, .. }) => {
                answered.push(id);
                greedy.send(&Request::Done { offset }).unwrap();
            }
            (_, Reply::Done { kept: true }) => kept += 1,
            reply => panic!("{reply:?}"),
        }
    }
    assert_eq!(answered, ids);
}
