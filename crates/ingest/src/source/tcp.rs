//! TCP source: many producers, one stream. One thread serves all connections.
//!
//! Elements of different connections never mix. A connection that has sent the beginning of an element keeps up to
//! [`CARRY`] bytes of it aside while others deliver; for a larger one the others wait until it is complete, at most
//! [`STALL`] after its last byte.

use super::error::{Fault, SourceError};
use super::stop::{StopFlag, Woken, timespec, wait};
use super::stream::end_of_stream;
use super::{Source, SourceEnd};
use crate::counters::add;
use crate::framing::{Cutter, Framing};
use crate::producer::{Carry, Producer};
use rustix::event::epoll;
use std::io::{self, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Connections at once: each has `CARRY` bytes set aside for it.
pub const MAX_CONNECTIONS: usize = 1024;

/// How long a producer may be silent in the middle of a large element while others wait. Then its connection is
/// closed and the element counts as lost.
pub const STALL: Duration = Duration::from_secs(5);

/// Bytes of an unfinished element that are kept aside per connection.
const CARRY: usize = 8 << 10;

/// Memory that is set aside for connections.
pub const CONNECTIONS_MEMORY: u64 = (MAX_CONNECTIONS * (CARRY + size_of::<Connection>())) as u64;

/// Events taken at once.
const EVENTS: usize = 64;

const STOP: u64 = 0;
const LISTENER: u64 = 1;
const FIRST: u64 = 2;

#[derive(Debug)]
struct Connection {
    stream: Option<TcpStream>,
    cutter: Cutter,
    carry: Carry,
}

/// A listening source.
#[derive(Debug)]
pub(super) struct TcpSource {
    name: String,
    listener: TcpListener,
    listening: bool,
    framing: Framing,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// The connection whose large element is open in the batch.
    floor: Option<usize>,
    stall: Duration,
}

/// What came of reading from a connection.
enum Served {
    /// Others may be served.
    Aside,
    /// It has the beginning of a large element in the batch: only it may deliver.
    Floor,
}

impl TcpSource {
    /// Everything that is ever needed is allocated here.
    pub(super) fn new(
        name: String,
        listener: TcpListener,
        framing: Framing,
        stop: &StopFlag,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        let connection =
            || Connection { stream: None, cutter: Cutter::new(framing), carry: Carry::new(CARRY) };
        let connections = (0..MAX_CONNECTIONS).map(|_| connection()).collect();
        let source =
            Self { name, listener, listening: true, framing, epoll, connections, floor: None, stall: STALL };
        source.listen()?;
        Ok(source)
    }

    fn failed(&self, error: io::Error) -> Fault {
        SourceError::Read { name: self.name.clone(), at: 0, error }.into()
    }

    fn serve_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; EVENTS];
        let mut at_most = Some(Duration::ZERO);
        loop {
            if stop.is_stopped() {
                return self.stopped(out);
            }
            let ready = match epoll::wait(&self.epoll, &mut events[..], at_most.map(timespec).as_ref()) {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => 0,
                Err(error) => return Err(self.failed(error.into())),
            };
            at_most = if ready == 0 { out.idle()? } else { Some(Duration::ZERO) };
            for event in &events[..ready] {
                match event.data.u64() {
                    STOP => return self.stopped(out),
                    LISTENER => self.accept(out),
                    token => {
                        let at = (token - FIRST) as usize;
                        if let Served::Floor = self.serve(at, out)?
                            && !self.finish_element(at, out, stop)?
                        {
                            return self.stopped(out);
                        }
                    }
                }
            }
            out.settle()?;
        }
    }

    /// Lets in who is there, up to as many as there may be: a crowd does not keep the others waiting.
    fn accept(&mut self, out: &Producer) {
        for _ in 0..MAX_CONNECTIONS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => continue,
                // Out of descriptors, most likely: nobody is accepted until a connection closes.
                Err(_) => {
                    add(&out.counters().refused, 1);
                    self.listening = epoll::delete(&self.epoll, &self.listener).is_err();
                    return;
                }
            };
            let place = self.connections.iter().position(|connection| connection.stream.is_none());
            let Some(at) = place.filter(|at| self.watch(&stream, *at).is_ok()) else {
                add(&out.counters().refused, 1);
                continue;
            };
            let connection = &mut self.connections[at];
            connection.cutter = Cutter::new(self.framing);
            connection.carry.clear();
            connection.stream = Some(stream);
            add(&out.counters().connections, 1);
        }
    }

    fn watch(&self, stream: &TcpStream, at: usize) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        // A producer whose machine vanished does not hold its place for ever.
        rustix::net::sockopt::set_socket_keepalive(stream, true)?;
        let token = epoll::EventData::new_u64(FIRST + at as u64);
        Ok(epoll::add(&self.epoll, stream, token, epoll::EventFlags::IN)?)
    }

    fn listen(&self) -> io::Result<()> {
        let token = epoll::EventData::new_u64(LISTENER);
        Ok(epoll::add(&self.epoll, &self.listener, token, epoll::EventFlags::IN)?)
    }

    /// Reads once from a connection.
    fn serve(&mut self, at: usize, out: &mut Producer) -> Result<Served, Fault> {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else { return Ok(Served::Aside) };
        out.resume(&mut connection.carry)?;
        let space = out.space(&connection.cutter)?;
        match stream.read(space) {
            Ok(n) if n > 0 => out.feed(n, &mut connection.cutter)?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // Its end, or a reset, which is the same to us: what is whole stays.
            Ok(_) | Err(_) => {
                self.close(at, out)?;
                return Ok(Served::Aside);
            }
        }
        Ok(if out.set_aside(&mut connection.carry) { Served::Aside } else { Served::Floor })
    }

    /// Reads from one connection only until its element is complete. False: stop.
    fn finish_element(&mut self, at: usize, out: &mut Producer, stop: &StopFlag) -> Result<bool, Fault> {
        self.floor = Some(at);
        loop {
            let Some(stream) = &self.connections[at].stream else { return Ok(true) };
            let mut at_most = Some(Duration::ZERO);
            let mut patience = self.stall;
            loop {
                match wait(stream, stop, at_most).map_err(|error| self.failed(error))? {
                    Woken::Ready => break,
                    Woken::Stopped => return Ok(false),
                    Woken::TimedOut => {
                        patience = patience.saturating_sub(at_most.unwrap_or_default());
                        if patience.is_zero() {
                            if self.others_wait().map_err(|error| self.failed(error))? {
                                add(&out.counters().refused, 1);
                                self.close(at, out)?;
                                self.floor = None;
                                return Ok(true);
                            }
                            patience = self.stall;
                        }
                        at_most = Some(out.idle()?.map_or(patience, |soon| soon.min(patience)));
                    }
                }
            }
            if let Served::Aside = self.serve(at, out)? {
                self.floor = None;
                return Ok(true);
            }
            out.settle()?;
        }
    }

    /// Whether any other connection has something.
    fn others_wait(&self) -> io::Result<bool> {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; 2];
        Ok(epoll::wait(&self.epoll, &mut events[..], Some(&timespec(Duration::ZERO)))? > 0)
    }

    /// Ends a connection whose element, if one is open, is in the batch.
    fn close(&mut self, at: usize, out: &mut Producer) -> Result<(), Fault> {
        let connection = &mut self.connections[at];
        if connection.stream.take().is_some() {
            end_of_stream(out, &connection.cutter)?;
            add(&out.counters().connections, 1u64.wrapping_neg());
            self.listening = self.listening || self.listen().is_ok();
        }
        Ok(())
    }

    /// What producers sent before the stop is taken, of those too that were not let in yet.
    fn stopped(&mut self, out: &mut Producer) -> Result<SourceEnd, Fault> {
        if self.listening {
            self.accept(out);
        }
        if let Some(at) = self.floor.take() {
            self.take_rest(at, out)?;
        }
        for at in 0..self.connections.len() {
            out.resume(&mut self.connections[at].carry)?;
            self.take_rest(at, out)?;
        }
        Ok(SourceEnd::Stopped)
    }

    /// Takes what a connection has, as far as it is there without waiting, and closes it. No more than its buffer in the
    /// kernel holds: a producer that goes on sending does not keep us from ending.
    fn take_rest(&mut self, at: usize, out: &mut Producer) -> Result<(), Fault> {
        let connection = &mut self.connections[at];
        let Some(stream) = &mut connection.stream else { return Ok(()) };
        let there = rustix::io::ioctl_fionread(&*stream).unwrap_or(0);
        let room = rustix::net::sockopt::socket_recv_buffer_size(&*stream).unwrap_or(0);
        let mut left = there.max(room as u64);
        while left > 0 {
            let space = out.space(&connection.cutter)?;
            let most = space.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match stream.read(&mut space[..most]) {
                Ok(n) if n > 0 => {
                    left -= n as u64;
                    out.feed(n, &mut connection.cutter)?;
                    out.settle()?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing more is there, or its end.
                Ok(_) | Err(_) => break,
            }
        }
        self.close(at, out)
    }
}

impl Source for TcpSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.serve_all(out, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::spawn;
    use crate::{Content, Overload, Parker, Pressure, ProducerSettings, channel};
    use holdfast_base::{Ordinal, SystemClock};
    use std::io::Write;
    use std::sync::Arc;

    #[test]
    fn a_producer_that_stalls_in_a_large_element_does_not_keep_the_others_waiting() {
        let stop = StopFlag::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut source = TcpSource::new("tcp".into(), listener, Framing::Fixed(100_000), &stop).unwrap();
        // No patience at all: the others need only be there.
        source.stall = Duration::ZERO;
        let mut parker = Parker::new();
        let (producer, mut inlet) = channel(
            &ProducerSettings::new(Overload::Block, Ordinal(0)),
            Arc::new(SystemClock::new()),
            Arc::new(Pressure::default()),
            parker.waker(),
        );
        let running = spawn("tcp", Box::new(source), producer, stop.clone(), || {}).unwrap();
        let mut stalled = TcpStream::connect(address).unwrap();
        stalled.write_all(&vec![1; 50_000]).unwrap();
        let mut other = TcpStream::connect(address).unwrap();
        other.write_all(&vec![2; 100_000]).unwrap();
        let (mut whole, mut lost, mut bytes) = (0, 0, Vec::new());
        while whole == 0 || lost == 0 {
            while let Some(batch) = inlet.take() {
                for row in batch.rows() {
                    match row.content {
                        Content::First { .. } => bytes.clear(),
                        Content::Gap => lost += 1,
                        _ => {}
                    }
                    bytes.extend_from_slice(batch.bytes_of(row));
                    whole += usize::from(matches!(row.content, Content::Whole | Content::Last));
                }
                inlet.give_back(batch);
            }
            if whole == 0 || lost == 0 {
                parker.wait(None);
            }
        }
        assert_eq!((whole, lost), (1, 1));
        assert!(bytes.ends_with(&vec![2; 100_000]));
        stop.stop();
        drop(inlet);
        assert!(matches!(running.join(), Ok(SourceEnd::Stopped | SourceEnd::CaptureGone)));
    }
}
