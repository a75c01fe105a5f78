//! Frames over a Unix socket, each read and written before a deadline.

use crate::frame::{HEAD_BYTES, WireError, payload_bytes};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Reasons why a frame cannot be sent or received.
#[derive(Debug)]
pub enum ChannelError {
    /// The other end closed the socket.
    Closed,
    /// The deadline passed before the frame was complete.
    Late,
    /// The frame is longer than its limit.
    Wire(WireError),
    /// The operating system refused the operation.
    System(io::Error),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the other end closed the socket"),
            Self::Late => f.write_str("the deadline passed"),
            Self::Wire(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChannelError {}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::System(error),
        }
    }
}

/// One end of a socket that carries frames.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    payload: Vec<u8>,
}

/// Capacity above which the buffer of a payload is not kept: most answers are small.
const KEPT_BYTES: usize = 256 << 10;

impl Channel {
    /// Takes over a connected socket in blocking mode.
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, payload: Vec::new() }
    }

    /// Sends whole frames, before `deadline` if there is one.
    pub fn send(&mut self, mut frames: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        while !frames.is_empty() {
            self.socket.set_write_timeout(left(deadline)?)?;
            match self.socket.write(frames) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(count) => frames = frames.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the payload of one frame of at most `limit` bytes, before `deadline` if there is one.
    pub fn receive(&mut self, limit: usize, deadline: Option<Instant>) -> Result<&[u8], ChannelError> {
        let mut head = [0; HEAD_BYTES];
        fill(&mut self.socket, &mut head, deadline)?;
        let length = payload_bytes(head, limit).map_err(ChannelError::Wire)?;
        if self.payload.capacity() > KEPT_BYTES {
            self.payload = Vec::new();
        }
        self.payload.resize(length, 0);
        fill(&mut self.socket, &mut self.payload, deadline)?;
        Ok(&self.payload)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Time until `deadline`, at least a millisecond, for a zero time-out means none.
fn left(deadline: Option<Instant>) -> Result<Option<Duration>, ChannelError> {
    let Some(deadline) = deadline else { return Ok(None) };
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ChannelError::Late),
        left => Ok(Some(left.max(Duration::from_millis(1)))),
    }
}

fn fill(socket: &mut UnixStream, mut into: &mut [u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
    while !into.is_empty() {
        socket.set_read_timeout(left(deadline)?)?;
        match socket.read(into) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(count) => into = into.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;

    fn pair() -> (Channel, Channel) {
        let (a, b) = UnixStream::pair().unwrap();
        (Channel::new(a), Channel::new(b))
    }

    #[test]
    fn frames_arrive_in_order() {
        let (mut a, mut b) = pair();
        let mut frames = Vec::new();
        let sent = [Request::Item { name: "x".to_owned(), size: None }, Request::End];
        for request in &sent {
            request.encode(&mut frames);
        }
        a.send(&frames, None).unwrap();
        for request in sent {
            assert_eq!(Request::decode(b.receive(100, None).unwrap()), Ok(request));
        }
        drop(a);
        assert!(matches!(b.receive(100, None), Err(ChannelError::Closed)));
        assert!(matches!(b.send(&frames, None), Err(ChannelError::Closed)));
    }

    #[test]
    fn a_silent_other_end_is_not_waited_for() {
        let (mut a, mut b) = pair();
        let past = Some(Instant::now());
        assert!(matches!(a.receive(100, past), Err(ChannelError::Late)));
        let soon = || Some(Instant::now() + Duration::from_millis(2));
        assert!(matches!(a.receive(100, soon()), Err(ChannelError::Late)));
        b.send(&[9, 0, 0, 0, 1], None).unwrap();
        assert!(matches!(a.receive(100, soon()), Err(ChannelError::Late)));
        // Nobody reads: the socket's buffer fills up.
        assert!(matches!(a.send(&vec![0; 64 << 20], soon()), Err(ChannelError::Late)));
    }

    #[test]
    fn a_frame_above_its_limit_is_refused() {
        let (mut a, mut b) = pair();
        a.send(&[101, 0, 0, 0], None).unwrap();
        assert!(matches!(b.receive(100, None), Err(ChannelError::Wire(WireError::TooLong { .. }))));
    }
}
