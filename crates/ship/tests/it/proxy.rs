//! TCP proxy between shipper and archive that damages, cuts, holds and delays, by command. It knows nothing of the tests.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes that are passed on together.
const PIECE: usize = 16 << 10;

/// End of the head of a request.
const HEAD_END: &[u8] = b"\r\n\r\n";

#[derive(Default)]
struct State {
    archive: Mutex<Option<SocketAddr>>,
    /// Body bytes until a bit is flipped, zero for never.
    flip_in: AtomicU64,
    /// Body bytes until all connections are cut, zero for never.
    cut_in: AtomicU64,
    /// Answers that are held back for ever.
    swallow: AtomicU64,
    /// True to pass no byte on to the archive.
    is_held: AtomicBool,
    latency_ms: AtomicU64,
    /// Bytes of bodies that were passed on to the archive.
    body_bytes: AtomicU64,
    connections: Mutex<Vec<TcpStream>>,
}

/// Proxy on its own threads.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

/// Position in a stream of requests with `Content-Length`.
#[derive(Default)]
struct Parser {
    head: Vec<u8>,
    body: usize,
}

impl Parser {
    /// Marks the bytes of a piece that belong to bodies, as ranges.
    fn bodies(&mut self, piece: &[u8]) -> Vec<std::ops::Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < piece.len() {
            if self.body > 0 {
                let length = self.body.min(piece.len() - at);
                found.push(at..at + length);
                self.body -= length;
                at += length;
                continue;
            }
            self.head.push(piece[at]);
            at += 1;
            if self.head.ends_with(HEAD_END) {
                let head = String::from_utf8_lossy(&self.head).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                self.body = length.map_or(0, |length| length.trim().parse().unwrap());
                self.head.clear();
            }
        }
        found
    }
}

/// Counts bytes down; returns the place in `length` bytes at which the counter reaches zero.
fn count_down(counter: &AtomicU64, length: usize) -> Option<usize> {
    // Connections count at the same time.
    let less = |before: u64| (before > 0).then(|| before.saturating_sub(length as u64));
    let before = counter.fetch_update(SeqCst, SeqCst, less).ok()?;
    (before <= length as u64).then(|| before as usize - 1)
}

impl State {
    /// Passes pieces on, each one after the latency, without making the pieces behind it wait longer.
    fn pass(
        self: &Arc<Self>,
        mut from: TcpStream,
        mut to: TcpStream,
        mut change: impl FnMut(&mut Vec<u8>) -> bool,
    ) {
        let (sender, pieces) = std::sync::mpsc::sync_channel::<(Instant, Vec<u8>)>(1 << 10);
        let (mut last, state) = (to.try_clone().unwrap(), Arc::clone(self));
        std::thread::spawn(move || {
            for (at, piece) in pieces {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                if to.write_all(&piece).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let mut piece = buffer[..length].to_vec();
            let goes_on = change(&mut piece);
            let at = Instant::now() + Duration::from_millis(state.latency_ms.load(SeqCst));
            if sender.send((at, piece)).is_err() || !goes_on {
                break;
            }
        }
        drop(sender);
        let _ = from.shutdown(Shutdown::Both);
        let _ = last.flush();
    }

    fn connect(self: &Arc<Self>, client: TcpStream) {
        let Some(archive) = *self.archive.lock().unwrap() else { return };
        let Ok(server) = TcpStream::connect(archive) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.connections.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            let swallows = Arc::clone(&state);
            state.pass(back_from, back_to, move |piece| {
                let taken = swallows.swallow.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
                if taken.is_ok() {
                    piece.clear();
                }
                true
            });
        });
        let state = Arc::clone(self);
        std::thread::spawn(move || {
            let mut parser = Parser::default();
            let changes = Arc::clone(&state);
            state.pass(client, server, move |piece| {
                while changes.is_held.load(SeqCst) {
                    std::thread::park_timeout(Duration::from_millis(2));
                }
                for body in parser.bodies(&piece.clone()) {
                    if let Some(at) = count_down(&changes.flip_in, body.len()) {
                        piece[body.start + at] ^= 0x10;
                    }
                    if let Some(at) = count_down(&changes.cut_in, body.len()) {
                        piece.truncate(body.start + at);
                        changes.body_bytes.fetch_add(at as u64, SeqCst);
                        changes.cut();
                        return false;
                    }
                    changes.body_bytes.fetch_add(body.len() as u64, SeqCst);
                }
                true
            });
        });
    }

    fn cut(&self) {
        for stream in self.connections.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Proxy {
    /// Starts a proxy before an archive.
    pub(crate) fn start(archive: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { archive: Mutex::new(Some(archive)), ..State::default() });
        let accepts = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accepts.connect(client);
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Turns to another archive; open connections stay.
    pub(crate) fn set_archive(&self, archive: SocketAddr) {
        *self.state.archive.lock().unwrap() = Some(archive);
    }

    /// Flips a bit of the body byte with this number from now on, counted from one.
    pub(crate) fn flip_in(&self, bytes: u64) {
        self.state.flip_in.store(bytes, SeqCst);
    }

    /// Cuts all connections at the body byte with this number from now on, counted from one.
    pub(crate) fn cut_in(&self, bytes: u64) {
        self.state.cut_in.store(bytes, SeqCst);
    }

    /// True while a commanded cut has not happened.
    pub(crate) fn is_cut_due(&self) -> bool {
        self.state.cut_in.load(SeqCst) > 0
    }

    /// Holds the next answers back for ever.
    pub(crate) fn swallow(&self, answers: u64) {
        self.state.swallow.store(answers, SeqCst);
    }

    /// Number of answers that are still to be held back.
    pub(crate) fn to_swallow(&self) -> u64 {
        self.state.swallow.load(SeqCst)
    }

    /// Stops or continues to pass bytes on to the archive.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state.is_held.store(is_held, SeqCst);
    }

    /// Delays every piece in each direction.
    pub(crate) fn delay(&self, latency: Duration) {
        self.state.latency_ms.store(latency.as_millis() as u64, SeqCst);
    }

    /// Bytes of bodies that were passed on to the archive.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.state.body_bytes.load(SeqCst)
    }
}
