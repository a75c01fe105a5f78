//! Server end of the socket, without policy: access control, whole requests in, bounded replies out.
//!
//! Everything is non-blocking: the recorder polls the descriptors and calls [`Client::receive`] and [`Client::flush`]. The answers
//! to requests belong to the crate `recorder`.

use crate::ProtocolError;
use crate::socket_path::{make_run_directory, socket_in};
use crate::wire::{
    FrameHead, HEAD_BYTES, MAX_FRAME, MAX_PENDING, MAX_REQUEST, PIECE, Reply, Request, VERSION, Welcome,
};
use holdfast_base::RingId;
use holdfast_media::{FdListener, FdListenerError};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with, sendmsg,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Clients at once: with the most that each may make the recorder keep, they stay below 32 MiB.
pub const MAX_CLIENTS: usize = 32;

/// Bytes of replies that a client may leave unread: one large reply is being sent while the next is made.
const MAX_QUEUED: usize = 2 * PIECE + MAX_FRAME / 4;

/// A ring's socket, listening.
#[derive(Debug)]
pub struct Listener {
    listener: FdListener,
}

/// Who came.
#[derive(Debug)]
pub enum Arrival {
    /// A client.
    Client(Client),
    /// Somebody who was turned away, and why: for the log.
    Refused(String),
    /// Nobody is waiting.
    Nobody,
    /// Somebody waits, but the system has no descriptor or memory for another: try again in a while, not at once.
    Later,
}

impl Listener {
    /// Listens where clients of `ring` look. A dead socket there is removed; a living one is an error.
    pub fn bind(ring: RingId) -> Result<Self, ProtocolError> {
        Self::bind_at(socket_in(&make_run_directory()?, ring))
    }

    /// Listens at `path`.
    pub fn bind_at(path: PathBuf) -> Result<Self, ProtocolError> {
        let wrong = |what, cause| ProtocolError::Socket { path: path.clone(), what, cause };
        match FdListener::open(path.clone()) {
            Ok(listener) => Ok(Self { listener }),
            Err(FdListenerError::InUse(other)) => {
                let pid = rustix::net::sockopt::socket_peercred(&other).ok();
                let pid = pid.map(|peer| peer.pid.as_raw_nonzero().get().unsigned_abs());
                Err(ProtocolError::InUse { path, pid })
            }
            Err(FdListenerError::Failed { cause, .. }) => Err(wrong("cannot listen on", cause)),
            Err(occupied @ FdListenerError::Occupied) => {
                Err(wrong("cannot listen on", io::Error::other(occupied)))
            }
        }
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Takes the next client, if it is of our user or root, and `room` finds a place for it: nobody else makes it look.
    pub fn accept(&self, room: impl FnOnce() -> bool) -> Result<Arrival, ProtocolError> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = match accept_with(&self.listener, flags) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(Arrival::Nobody),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return Ok(Arrival::Later),
            Err(cause) => {
                let what = "cannot accept a client on";
                return Err(ProtocolError::Socket {
                    path: self.path().to_owned(),
                    what,
                    cause: cause.into(),
                });
            }
        };
        let Ok(peer) = rustix::net::sockopt::socket_peercred(&socket) else {
            return Ok(Arrival::Refused("a client without credentials of its process".to_owned()));
        };
        let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
        let mut client = Client::new(socket, pid);
        if !peer.uid.is_root() && peer.uid != rustix::process::geteuid() {
            let text = format!(
                "cannot accept a client of user {}: only root and the recorder's user may connect",
                peer.uid.as_raw()
            );
            return Ok(Arrival::Refused(client.turn_away(text)));
        }
        if !room() {
            let text = format!(
                "cannot accept another client: {MAX_CLIENTS} clients are connected and all are busy; end one of them, then retry"
            );
            return Ok(Arrival::Refused(client.turn_away(text)));
        }
        Ok(Arrival::Client(client))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Why a client is to be dropped. None of these is the recorder's trouble.
#[derive(Debug, thiserror::Error)]
pub enum Hangup {
    /// It closed its end.
    #[error("the client closed the connection")]
    Closed,
    /// It was told why, and that is sent.
    #[error("the client was refused: {0}")]
    Refused(String),
    /// It does not read its replies.
    #[error("the client does not read its replies")]
    Slow,
    /// The socket failed.
    #[error("the client's socket failed: {0}")]
    Socket(Errno),
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    pid: u32,
    input: Box<[u8]>,
    filled: usize,
    output: Vec<u8>,
    sent: usize,
    /// They go with the first byte of the queue.
    descriptors: Vec<OwnedFd>,
    pending: usize,
    greeted: bool,
    version: u16,
    /// Set when nothing more is to be read: the connection ends when the queue is sent.
    closing: Option<String>,
}

impl Client {
    /// Speaks with who is at the other end of `socket`, which is non-blocking.
    pub fn new(socket: OwnedFd, pid: u32) -> Self {
        let input = vec![0; MAX_REQUEST].into_boxed_slice();
        Self {
            socket,
            pid,
            input,
            filled: 0,
            output: Vec::new(),
            sent: 0,
            descriptors: Vec::new(),
            pending: 0,
            greeted: false,
            version: 0,
            closing: None,
        }
    }

    /// The client's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether to wait for its requests: not while it has too many unanswered or unread.
    pub fn wants_read(&self) -> bool {
        self.closing.is_none() && self.pending < MAX_PENDING && self.queued() <= PIECE
    }

    /// Whether to wait until its socket takes more.
    pub fn wants_write(&self) -> bool {
        self.queued() > 0
    }

    fn queued(&self) -> usize {
        self.output.len() - self.sent
    }

    /// The next whole request and its id, if there is one. The first is always a hello. Call it until there is none, or
    /// [`Client::wants_read`] says no.
    pub fn receive(&mut self) -> Result<Option<(u64, Request)>, Hangup> {
        loop {
            if !self.wants_read() {
                return Ok(None);
            }
            if let Some(request) = self.whole()? {
                return Ok(Some(request));
            }
            if self.closing.is_some() {
                return self.flush().map(|()| None);
            }
            match rustix::net::recv(&self.socket, &mut self.input[self.filled..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) | Err(Errno::CONNRESET | Errno::PIPE) => return Err(Hangup::Closed),
                Ok((_, count)) => self.filled += count,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(cause) => return Err(Hangup::Socket(cause)),
            }
        }
    }

    /// Takes a whole request out of the input. A frame that makes no sense is answered and ends the connection: what
    /// follows it could not be told apart.
    fn whole(&mut self) -> Result<Option<(u64, Request)>, Hangup> {
        if self.filled < HEAD_BYTES {
            return Ok(None);
        }
        let head = match FrameHead::decode(&self.input[..HEAD_BYTES], MAX_REQUEST) {
            Ok(head) => head,
            Err(wrong) => return self.refuse(0, wrong.to_string()).map(|()| None),
        };
        let end = HEAD_BYTES + head.body as usize;
        if self.filled < end {
            return Ok(None);
        }
        let request = Request::decode(head, &self.input[HEAD_BYTES..end]);
        self.input.copy_within(end..self.filled, 0);
        self.filled -= end;
        match request {
            Ok(Request::Hello { version }) if !self.greeted => {
                self.greeted = true;
                self.version = version;
                self.pending += 1;
                Ok(Some((head.id, Request::Hello { version })))
            }
            Ok(_) if !self.greeted => {
                self.refuse(head.id, "the first request must be `hello`".to_owned()).map(|()| None)
            }
            Ok(Request::Hello { .. }) => {
                self.refuse(head.id, "`hello` may be sent only once".to_owned()).map(|()| None)
            }
            Ok(request) => {
                self.pending += 1;
                Ok(Some((head.id, request)))
            }
            Err(wrong) => self.refuse(head.id, wrong.to_string()).map(|()| None),
        }
    }

    fn refuse(&mut self, id: u64, text: String) -> Result<(), Hangup> {
        self.queue(&Reply::Error { text: text.clone() }.encode(id))?;
        self.closing = Some(text);
        Ok(())
    }

    /// Whether it waits for an answer, or has not taken one yet.
    pub fn is_busy(&self) -> bool {
        self.pending > 0 || self.wants_write()
    }

    /// Says why it is to go, as far as the socket takes it at once.
    pub fn turn_away(&mut self, text: String) -> String {
        if self.refuse(0, text.clone()).is_ok() {
            let _ = self.flush();
        }
        text
    }

    /// Answers the hello, with the memory files of the ticket area and of the bird's-eye view, where there is one. A client of
    /// another version is told ours, and that is the end.
    pub fn welcome(
        &mut self,
        id: u64,
        welcome: Welcome,
        area: BorrowedFd<'_>,
        view: Option<BorrowedFd<'_>>,
    ) -> Result<(), Hangup> {
        for memory in [Some(area), view].into_iter().flatten() {
            let descriptor = memory
                .try_clone_to_owned()
                .map_err(|cause| Hangup::Socket(Errno::from_io_error(&cause).unwrap_or(Errno::MFILE)))?;
            self.descriptors.push(descriptor);
        }
        if self.version != VERSION {
            self.closing = Some(format!("it speaks version {} of the protocol", self.version));
        }
        self.reply(id, &Reply::Hello(Box::new(welcome)))
    }

    /// Queues the reply to a request and sends what the socket takes.
    pub fn reply(&mut self, id: u64, reply: &Reply) -> Result<(), Hangup> {
        self.pending = self.pending.saturating_sub(1);
        self.queue(&reply.encode(id))?;
        self.flush()
    }

    fn queue(&mut self, frame: &[u8]) -> Result<(), Hangup> {
        if self.queued() > 0 && self.queued() + frame.len() > MAX_QUEUED {
            return Err(Hangup::Slow);
        }
        if self.sent > 0 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        self.output.extend_from_slice(frame);
        Ok(())
    }

    /// Sends what the socket takes.
    pub fn flush(&mut self) -> Result<(), Hangup> {
        while self.sent < self.output.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let descriptors: Vec<BorrowedFd<'_>> = self.descriptors.iter().map(AsFd::as_fd).collect();
            if !descriptors.is_empty() {
                ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
            }
            let piece = IoSlice::new(&self.output[self.sent..]);
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.socket, &[piece], &mut ancillary, flags) {
                Ok(count) => {
                    self.sent += count;
                    self.descriptors.clear();
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Hangup::Closed),
                Err(cause) => return Err(Hangup::Socket(cause)),
            }
        }
        // Nothing is kept for a client that has read everything.
        self.output = Vec::new();
        self.sent = 0;
        self.closing.clone().map_or(Ok(()), |why| Err(Hangup::Refused(why)))
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
