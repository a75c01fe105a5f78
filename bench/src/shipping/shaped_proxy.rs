//! Proxy with the rate and latency of a link, between two programs of this machine; root and kernel modules are not
//! needed. It has no slow start and no loss: a sender gets the whole rate as soon as it has enough bytes on the way.

use crate::BenchError;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Most bytes that pass the link as one piece.
const CHUNK: usize = 16 << 10;

/// Time that bytes may wait in front of the link: it stays busy when a thread wakes up late.
const QUEUE: Duration = Duration::from_millis(20);

/// Most pieces of a connection on the way, 64 MiB.
const IN_FLIGHT: usize = 4096;

/// Receive buffer of a connection. The kernel's own choice of several megabytes would hide the link from the sender.
const RECEIVE_BUFFER: usize = 256 << 10;

/// Least bytes of a piece that ends in contents, not in the header of a request.
const CONTENTS: usize = 4096;

/// Rate, latency and damage of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkShape {
    /// Megabits per second in each direction; unlimited if absent.
    pub megabits: Option<u32>,
    /// Round-trip time of the link, half of it in each direction.
    pub round_trip: Duration,
    /// Number of bytes from the sender after which one byte is changed.
    pub flip_after: Option<u64>,
}

/// Pieces that have passed one direction of the link.
#[derive(Debug)]
struct Passage {
    busy_until: Instant,
    bytes: u64,
    /// End of each piece, and the number of bytes up to there.
    pieces: Vec<(Instant, u64)>,
    flip_after: Option<u64>,
}

/// One direction of the link, shared by all connections.
#[derive(Debug)]
struct Direction {
    bytes_per_second: Option<f64>,
    delay: Duration,
    passage: Mutex<Passage>,
}

impl Direction {
    fn new(shape: &LinkShape, flip_after: Option<u64>) -> Arc<Self> {
        let passage = Passage { busy_until: Instant::now(), bytes: 0, pieces: Vec::new(), flip_after };
        Arc::new(Self {
            bytes_per_second: shape.megabits.map(|megabits| f64::from(megabits) * 1e6 / 8.0),
            delay: shape.round_trip / 2,
            passage: Mutex::new(passage),
        })
    }

    fn passage(&self) -> MutexGuard<'_, Passage> {
        self.passage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a piece pass behind those of all connections. Returns the time at which its last byte has left.
    fn pass(&self, piece: &mut [u8]) -> Instant {
        let mut passage = self.passage();
        let start = passage.busy_until.max(Instant::now());
        let time = self.bytes_per_second.map_or(0.0, |rate| piece.len() as f64 / rate);
        passage.busy_until = start + Duration::from_secs_f64(time);
        if passage.flip_after.is_some_and(|after| passage.bytes >= after)
            && piece.len() >= CONTENTS
            && let Some(last) = piece.last_mut()
        {
            *last ^= 1;
            passage.flip_after = None;
        }
        passage.bytes += piece.len() as u64;
        let passed = (passage.busy_until, passage.bytes);
        passage.pieces.push(passed);
        passed.0
    }

    /// Carries the bytes of one connection until either side closes it.
    fn carry(&self, mut from: TcpStream, to: TcpStream) {
        let (sender, pieces) = sync_channel(IN_FLIGHT);
        let writer = thread::spawn(move || write(&to, &pieces));
        let mut buffer = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let left = self.pass(&mut buffer[..length]);
            if sender.send((left + self.delay, buffer[..length].to_vec())).is_err() {
                break;
            }
            sleep_until(left.checked_sub(QUEUE));
        }
        drop(sender);
        let _ = writer.join();
        // A sender whose receiver is gone must not wait for it.
        let _ = from.shutdown(Shutdown::Read);
    }
}

fn sleep_until(time: Option<Instant>) {
    let pause = time.map_or(Duration::ZERO, |time| time.saturating_duration_since(Instant::now()));
    if !pause.is_zero() {
        thread::sleep(pause);
    }
}

/// Writes pieces at their times of arrival, then the end of the stream.
fn write(mut to: &TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
    for (arrival, piece) in pieces {
        sleep_until(Some(arrival));
        if to.write_all(&piece).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Running proxy; its connections end with those of the programs.
#[derive(Debug)]
pub struct ShapedProxy {
    address: SocketAddr,
    up: Arc<Direction>,
    is_over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ShapedProxy {
    /// Starts a proxy in front of `target` on a free port.
    pub fn start(target: SocketAddr, shape: LinkShape) -> Result<Self, BenchError> {
        let listen = || -> io::Result<(TcpListener, SocketAddr)> {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = listen().map_err(BenchError::during("starting the proxy"))?;
        let (up, down) = (Direction::new(&shape, shape.flip_after), Direction::new(&shape, None));
        let is_over = Arc::new(AtomicBool::new(false));
        let (stop, upstream) = (Arc::clone(&is_over), Arc::clone(&up));
        let acceptor = thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                // A client whose connection is dropped here sees its end.
                let _ = connect(client, target, &upstream, &down);
            }
        });
        Ok(Self { address, up, is_over, acceptor: Some(acceptor) })
    }

    /// Address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of bytes that clients have sent.
    pub fn bytes_up(&self) -> u64 {
        self.up.passage().bytes
    }

    /// Bytes per second from clients, without the first and last twentieth of the bytes: start-up and final checks
    /// are not in it.
    pub fn sustained(&self) -> f64 {
        let passage = self.up.passage();
        let edge = passage.bytes / 20;
        let at = |bytes: u64| passage.pieces.iter().find(|(_, passed)| *passed >= bytes);
        match (at(edge), at(passage.bytes - edge)) {
            (Some(first), Some(last)) => {
                (last.1 - first.1) as f64 / last.0.saturating_duration_since(first.0).as_secs_f64()
            }
            _ => f64::NAN,
        }
    }
}

impl Drop for ShapedProxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let woken = TcpStream::connect(self.address);
        if let (Ok(_), Some(acceptor)) = (woken, self.acceptor.take()) {
            let _ = acceptor.join();
        }
    }
}

fn connect(
    client: TcpStream,
    target: SocketAddr,
    up: &Arc<Direction>,
    down: &Arc<Direction>,
) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    for (from, to, direction) in [(client.try_clone()?, server.try_clone()?, up), (server, client, down)] {
        let direction = Arc::clone(direction);
        thread::spawn(move || direction.carry(from, to));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(megabits: Option<u32>, flip_after: Option<u64>) -> Arc<Direction> {
        let shape = LinkShape { megabits, round_trip: Duration::from_millis(50), flip_after: None };
        Direction::new(&shape, flip_after)
    }

    #[test]
    fn pieces_of_all_connections_pass_one_after_the_other() {
        let link = direction(Some(8), None);
        let first = link.pass(&mut [0; 1000]);
        let second = link.pass(&mut [0; 2000]);
        // A byte takes a microsecond at 8 Mbit/s.
        assert!(second >= first + Duration::from_millis(2));
        assert_eq!(link.passage().bytes, 3000);
    }

    #[test]
    fn one_byte_behind_the_offset_is_changed() {
        let link = direction(None, Some(5000));
        let mut pieces = [vec![0; 4999], vec![0; 10], vec![0; 5000], vec![0; 5000]];
        for piece in &mut pieces {
            link.pass(piece);
        }
        let changed = pieces.map(|piece| piece.iter().filter(|byte| **byte != 0).count());
        assert_eq!(changed, [0, 0, 1, 0]);
    }

    #[test]
    fn bytes_arrive_both_ways() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shape = LinkShape { megabits: Some(1000), ..LinkShape::default() };
        let proxy = ShapedProxy::start(listener.local_addr().unwrap(), shape).unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let sent = vec![7; 100_000];
        client.write_all(&sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received, sent);
        assert_eq!(proxy.bytes_up(), 100_000);
        server.write_all(b"answer").unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
    }
}
