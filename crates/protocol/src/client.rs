//! Client end of the socket: a blocking connection with a time limit on every wait.

use crate::ProtocolError;
use crate::shared::SharedArea;
use crate::wire::{
    DeviceState, FrameHead, HEAD_BYTES, LaneFile, MAX_FRAME, OpenSlot, OpenSlotProjection, Reply, Request,
    VERSION, Welcome,
};
use holdfast_base::{HoldId, RingId, Sequence, StreamId};
use holdfast_format::OpenOutline;
use holdfast_ring::{ActKind, ActNumbers, ActStatus, HoldStatus, Order, Outcome, SlotStatus, StreamStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long an ordinary answer may take: the recorder answers from memory, or with one read of its device, which a
/// failing drive may hold up for some seconds.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);

/// How long an order may take: it waits for the open slot to be durable, and a purge writes slots.
pub const ORDER_TIME: Duration = Duration::from_mins(10);

/// After this long without an answer to an order, or to reads, the recorder is asked how it does: most take a flush interval at most.
const LOOK: Duration = Duration::from_secs(2);

/// How long a read may take while the device does well: it waits for the turns of all others.
const READ_TIME: Duration = Duration::from_mins(10);

/// What an order is called.
const ORDER: &str = "order";

/// Descriptors that are taken from one message: what is more than the two there are is closed.
const DESCRIPTORS: usize = 4;

/// A connection to a recorder.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    path: PathBuf,
    input: Vec<u8>,
    start: usize,
    /// Of the ticket area, and of the bird's-eye view, as they came.
    descriptors: VecDeque<OwnedFd>,
    next: u64,
    welcome: Welcome,
    area: Option<SharedArea>,
    view: Option<SharedArea>,
    /// Replies that came while another was waited for.
    early: VecDeque<(u64, Reply)>,
}

impl Connection {
    /// Connects to the recorder that listens at `path` and says hello.
    pub fn connect(path: &Path) -> Result<Self, ProtocolError> {
        let wrong = |what: &'static str| {
            move |cause: Errno| match cause {
                Errno::NOENT | Errno::CONNREFUSED => ProtocolError::NoRecorder { path: path.to_owned() },
                Errno::ACCESS | Errno::PERM => ProtocolError::Denied { path: path.to_owned() },
                cause => ProtocolError::Socket { path: path.to_owned(), what, cause: cause.into() },
            }
        };
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(wrong("cannot create a socket for"))?;
        for timeout in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
            sockopt::set_socket_timeout(&socket, timeout, Some(ANSWER_TIME))
                .map_err(wrong("cannot set a time limit on"))?;
        }
        let address = SocketAddrUnix::new(path).map_err(wrong("cannot use the socket path"))?;
        rustix::net::connect(&socket, &address).map_err(wrong("cannot connect to"))?;
        let mut connection = Self {
            socket,
            path: path.to_owned(),
            input: Vec::new(),
            start: 0,
            descriptors: VecDeque::new(),
            next: 1,
            welcome: Welcome {
                version: 0,
                pid: 0,
                ring: RingId::default(),
                quantum: 0,
                place: 0,
                area: 0,
                superblock: Vec::new(),
                file: LaneFile::default(),
                lane: String::new(),
            },
            area: None,
            view: None,
            early: VecDeque::new(),
        };
        connection.hello()?;
        Ok(connection)
    }

    /// Connects to the recorder that listens at `path`, if it has this ring on this file or device: a copy of a ring has
    /// its UUID, too, and what is said of one is not true of the other.
    pub fn connect_to(path: &Path, ring: RingId, file: LaneFile) -> Result<Self, ProtocolError> {
        let connection = Self::connect(path)?;
        let Welcome { ring: theirs, file: there, ref lane, .. } = connection.welcome;
        match theirs == ring {
            true if there == file => Ok(connection),
            true => Err(ProtocolError::OtherCopy { path: path.to_owned(), lane: lane.clone() }),
            false => Err(ProtocolError::NoRecorder { path: path.to_owned() }),
        }
    }

    fn hello(&mut self) -> Result<(), ProtocolError> {
        let request = Request::Hello { version: VERSION };
        let welcome = match self.call(&request) {
            Ok(Reply::Hello(welcome)) => *welcome,
            Ok(other) => return Err(unexpected(&request, &other)),
            Err(ProtocolError::Gone { path, .. }) => return Err(ProtocolError::NoRecorder { path }),
            Err(error) => return Err(error),
        };
        if welcome.version != VERSION {
            let path = self.path.clone();
            return Err(ProtocolError::Version { path, theirs: welcome.version, ours: VERSION });
        }
        self.welcome = welcome;
        let view = if self.welcome.place > 0 { self.descriptors.remove(1) } else { None };
        // Without it, slots are read.
        self.view = view.and_then(|descriptor| SharedArea::whole(&descriptor).ok());
        Ok(())
    }

    /// What the recorder said first.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The memory that reads are answered in; mapped at first use.
    pub fn area(&mut self) -> Result<&SharedArea, ProtocolError> {
        if self.area.is_none() {
            let descriptor = self
                .descriptors
                .pop_front()
                .ok_or_else(|| ProtocolError::Area("the recorder did not pass its descriptor".to_owned()))?;
            self.area = Some(SharedArea::map(&descriptor, self.welcome.area)?);
        }
        self.area
            .as_ref()
            .ok_or_else(|| ProtocolError::Area("the recorder did not pass its descriptor".to_owned()))
    }

    /// The bird's-eye view, where the recorder keeps one, and bytes of each slot's place in it.
    pub fn view(&self) -> Option<(&SharedArea, usize)> {
        Some((self.view.as_ref()?, self.welcome.place as usize))
    }

    /// Sends a request and waits for its reply. An error that the recorder answers with is an error here.
    pub fn call(&mut self, request: &Request) -> Result<Reply, ProtocolError> {
        let id = self.begin(request)?;
        self.reply_to(id, request.name())
    }

    /// Sends a request whose reply is waited for next. Who is turned away is told why before anything is taken from him.
    fn begin(&mut self, request: &Request) -> Result<u64, ProtocolError> {
        match self.send(request) {
            Err(gone @ ProtocolError::Gone { .. }) => match self.frame(request.name()) {
                Ok((0, Reply::Error { text })) => {
                    Err(ProtocolError::Refused { request: request.name(), text })
                }
                _ => Err(gone),
            },
            sent => sent,
        }
    }

    /// Sends a request; its id will come with the reply.
    pub fn send(&mut self, request: &Request) -> Result<u64, ProtocolError> {
        let id = self.next;
        self.next += 1;
        let frame = request.encode(id);
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => rest = &rest[count.min(rest.len())..],
                Err(Errno::INTR) => {}
                Err(cause) => return Err(self.failed(cause, request.name(), ANSWER_TIME)),
            }
        }
        Ok(id)
    }

    /// Waits for the reply to request `id`, and keeps others for later.
    pub fn reply_to(&mut self, id: u64, name: &'static str) -> Result<Reply, ProtocolError> {
        if let Some(at) = self.early.iter().position(|(theirs, _)| *theirs == id)
            && let Some((_, reply)) = self.early.remove(at)
        {
            return self.checked(reply, name);
        }
        loop {
            let (theirs, reply) = self.frame(name)?;
            // An error without an id concerns the connection as a whole.
            let whole = theirs == 0 && matches!(reply, Reply::Error { .. });
            if theirs == id || whole {
                return self.checked(reply, name);
            }
            self.early.push_back((theirs, reply));
        }
    }

    /// Waits for the next reply to any request; for long, where the recorder says that its device does well: it may be long until it
    /// is our turn.
    pub fn next_reply(&mut self) -> Result<(u64, Reply), ProtocolError> {
        let since = Instant::now();
        loop {
            if let Some(early) = self.early.pop_front() {
                return Ok(early);
            }
            if self.has_reply_within(LOOK)? {
                return self.frame("a read");
            }
            let device = self.status()?.recorder.map(|recorder| recorder.device.state);
            let limit = if device == Some(DeviceState::Ok) { READ_TIME } else { ANSWER_TIME };
            if self.early.is_empty() && since.elapsed() >= limit {
                return Err(self.failed(Errno::AGAIN, "a read", limit));
            }
        }
    }

    /// Whether a reply, or a part of one, is there without waiting.
    pub fn has_reply(&self) -> Result<bool, ProtocolError> {
        self.has_reply_within(Duration::ZERO)
    }

    fn has_reply_within(&self, time: Duration) -> Result<bool, ProtocolError> {
        Ok(!self.early.is_empty() || self.has_input_within(time)?)
    }

    fn has_input_within(&self, time: Duration) -> Result<bool, ProtocolError> {
        if self.start < self.input.len() {
            return Ok(true);
        }
        let mut look = [PollFd::new(&self.socket, PollFlags::IN)];
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut look, Some(&time)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(cause) => Err(self.failed(cause, "a read", ANSWER_TIME)),
        }
    }

    /// A reply, unless it says that there is none.
    fn checked(&self, reply: Reply, request: &'static str) -> Result<Reply, ProtocolError> {
        match reply {
            Reply::Error { text } => Err(ProtocolError::Refused { request, text }),
            Reply::Ending => Err(ProtocolError::Ending { path: self.path.clone(), during: request }),
            reply => Ok(reply),
        }
    }

    fn failed(&self, cause: Errno, during: &'static str, limit: Duration) -> ProtocolError {
        let path = self.path.clone();
        match cause {
            Errno::AGAIN => ProtocolError::Timeout { path, during, seconds: limit.as_secs() },
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => ProtocolError::Gone { path, during },
            cause => ProtocolError::Socket { path, what: "cannot exchange data with", cause: cause.into() },
        }
    }

    /// The next whole frame.
    fn frame(&mut self, during: &'static str) -> Result<(u64, Reply), ProtocolError> {
        loop {
            let have = &self.input[self.start..];
            if have.len() >= HEAD_BYTES {
                let protocol = |wire| ProtocolError::Protocol { path: self.path.clone(), wire };
                let head = FrameHead::decode(have, MAX_FRAME).map_err(protocol)?;
                let end = HEAD_BYTES + head.body as usize;
                if let Some(body) = have.get(HEAD_BYTES..end) {
                    let reply = Reply::decode(head, body).map_err(protocol)?;
                    self.start += end;
                    if self.start == self.input.len() {
                        self.input.clear();
                        self.start = 0;
                    }
                    return Ok((head.id, reply));
                }
            }
            self.more(during)?;
        }
    }

    /// Receives what is there, and waits for it if there is nothing.
    fn more(&mut self, during: &'static str) -> Result<(), ProtocolError> {
        self.input.drain(..self.start);
        self.start = 0;
        let filled = self.input.len();
        self.input.resize(filled + (64 << 10), 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut pieces = [IoSliceMut::new(&mut self.input[filled..])];
            match rustix::net::recvmsg(&self.socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
                self.descriptors.truncate(2);
            }
        }
        let limit = if during == ORDER { ORDER_TIME } else { ANSWER_TIME };
        let count = received.as_ref().map_or(0, |message| message.bytes);
        self.input.truncate(filled + count);
        match received {
            Ok(_) if count == 0 => Err(ProtocolError::Gone { path: self.path.clone(), during }),
            Ok(_) => Ok(()),
            Err(cause) => Err(self.failed(cause, during, limit)),
        }
    }

    /// Gives an order and waits until it is durable, or as long as it says itself.
    pub fn order(&mut self, order: Order) -> Result<Outcome, ProtocolError> {
        self.order_watched(order, &mut |_| {})
    }

    /// The same; while it takes long, `meanwhile` is told how the ring and its recorder do.
    pub fn order_watched(
        &mut self,
        order: Order,
        meanwhile: &mut dyn FnMut(&crate::wire::Status),
    ) -> Result<Outcome, ProtocolError> {
        let id = self.give(order)?;
        let since = Instant::now();
        let reply = loop {
            self.patience(LOOK)?;
            let reply = self.reply_to(id, ORDER);
            self.patience(ANSWER_TIME)?;
            match reply {
                Err(ProtocolError::Timeout { .. }) if since.elapsed() < ORDER_TIME => {
                    if let Ok(status) = self.status() {
                        meanwhile(&status);
                    }
                }
                reply => break reply?,
            }
        };
        outcome(reply)
    }

    /// Gives an order whose outcome is asked for later, by this number.
    pub fn give(&mut self, order: Order) -> Result<u64, ProtocolError> {
        self.begin(&Request::Order(order))
    }

    /// What came of an order, if that is known within some time.
    pub fn outcome_within(&mut self, order: u64, time: Duration) -> Result<Option<Outcome>, ProtocolError> {
        while self.early.iter().all(|(request, _)| *request != order) {
            if !self.has_input_within(time)? {
                return Ok(None);
            }
            match self.frame(ORDER)? {
                // An error without an id concerns the connection as a whole.
                (0, reply) => drop(self.checked(reply, ORDER)?),
                other => self.early.push_back(other),
            }
        }
        outcome(self.reply_to(order, ORDER)?).map(Some)
    }

    fn patience(&self, limit: Duration) -> Result<(), ProtocolError> {
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, Some(limit))
            .map_err(|cause| self.failed(cause, "a time limit", limit))
    }

    /// How the ring and its recorder do.
    pub fn status(&mut self) -> Result<crate::wire::Status, ProtocolError> {
        match self.call(&Request::Status)? {
            Reply::Status(status) => Ok(*status),
            other => Err(unexpected(&Request::Status, &other)),
        }
    }

    /// All streams.
    pub fn streams(&mut self) -> Result<Vec<StreamStatus>, ProtocolError> {
        match self.call(&Request::Streams)? {
            Reply::Streams(streams) => Ok(streams),
            other => Err(unexpected(&Request::Streams, &other)),
        }
    }

    /// All slots.
    pub fn slots(&mut self) -> Result<Vec<SlotStatus>, ProtocolError> {
        let mut all = Vec::new();
        loop {
            let request = Request::Slots { from: all.len() as u32, count: u32::MAX };
            match self.call(&request)? {
                Reply::Slots { slots, .. } if slots.is_empty() => return Ok(all),
                Reply::Slots { total, mut slots } => {
                    all.append(&mut slots);
                    if all.len() >= total as usize {
                        return Ok(all);
                    }
                }
                other => return Err(unexpected(&request, &other)),
            }
        }
    }

    /// All holds.
    pub fn holds(&mut self) -> Result<Vec<HoldStatus>, ProtocolError> {
        let mut all: Vec<HoldStatus> = Vec::new();
        loop {
            let after = all.last().map_or(HoldId(0), |hold| hold.id);
            let request = Request::Holds { after };
            match self.call(&request)? {
                Reply::Holds { more, mut holds } => {
                    // A number that does not rise would keep us here for ever.
                    let rises = holds.last().is_some_and(|hold| hold.id > after);
                    all.append(&mut holds);
                    if !more || !rises {
                        return Ok(all);
                    }
                }
                other => return Err(unexpected(&request, &other)),
            }
        }
    }

    /// The audit log behind these numbers, and how much of all has been dropped.
    pub fn acts(&mut self, mut after: ActNumbers) -> Result<(Vec<ActStatus>, ActNumbers), ProtocolError> {
        let mut all: Vec<ActStatus> = Vec::new();
        loop {
            let request = Request::Acts { after };
            match self.call(&request)? {
                Reply::Acts { more, dropped, mut acts } => {
                    let before = after;
                    for act in &acts {
                        let last =
                            if act.kind == ActKind::Purge { &mut after.purges } else { &mut after.others };
                        *last = act.number.max(*last);
                    }
                    all.append(&mut acts);
                    // Numbers that do not rise would keep us here for ever.
                    if !more || after == before {
                        return Ok((all, dropped));
                    }
                }
                other => return Err(unexpected(&request, &other)),
            }
        }
    }

    /// A preamble; `None` when there is no such version.
    pub fn preamble(&mut self, stream: StreamId, version: u32) -> Result<Option<Vec<u8>>, ProtocolError> {
        let mut all = Vec::new();
        loop {
            let request = Request::Preamble { stream, version, offset: all.len() as u32 };
            match self.call(&request)? {
                Reply::Preamble { total, mut bytes } => {
                    let empty = bytes.is_empty();
                    all.append(&mut bytes);
                    if all.len() >= total as usize {
                        return Ok(Some(all));
                    }
                    if empty {
                        return Err(unexpected(&request, &Reply::Preamble { total, bytes }));
                    }
                }
                Reply::Expired => return Ok(None),
                other => return Err(unexpected(&request, &other)),
            }
        }
    }

    /// The schema of a stream as text; empty for none, and for a stream that is not there.
    pub fn schema(&mut self, stream: StreamId) -> Result<String, ProtocolError> {
        let request = Request::Schema { stream };
        match self.call(&request)? {
            Reply::Schema { text } => Ok(text),
            other => Err(unexpected(&request, &other)),
        }
    }

    /// The sequences that are not on the medium yet.
    pub fn open_slots(&mut self) -> Result<Vec<OpenSlot>, ProtocolError> {
        match self.call(&Request::OpenSlots)? {
            Reply::OpenSlots(slots) => Ok(slots),
            other => Err(unexpected(&Request::OpenSlots, &other)),
        }
    }

    /// Asks to keep slots from expiring, in the place of those that were asked for before; those that are needed first come
    /// first. How many are kept, until the connection ends.
    pub fn pin(&mut self, sequences: Vec<Sequence>) -> Result<u32, ProtocolError> {
        let request = Request::Pin { sequences };
        match self.call(&request)? {
            Reply::Pinned { granted } => Ok(granted),
            other => Err(unexpected(&request, &other)),
        }
    }

    /// The index of an open slot beyond a cursor: the reply itself, for it tells too when the slot is open no more.
    pub fn open_index(
        &mut self,
        sequence: Sequence,
        cursor: u64,
        wanted: &OpenSlotProjection,
    ) -> Result<Reply, ProtocolError> {
        let request = Request::OpenIndex { sequence, cursor, wanted: wanted.clone() };
        match self.call(&request)? {
            reply @ (Reply::OpenIndex { .. } | Reply::Pending | Reply::Expired) => Ok(reply),
            other => Err(unexpected(&request, &other)),
        }
    }

    /// What an open slot has of an attribute of a stream so far, and whether one of the values that have these hashes may be among
    /// it; `None`: nothing is told of it.
    pub fn open_outline(
        &mut self,
        sequence: Sequence,
        stream: StreamId,
        attribute: u16,
        values: Vec<u64>,
    ) -> Result<Option<OpenOutline>, ProtocolError> {
        let request = Request::OpenOutline { sequence, stream, attribute, values };
        match self.call(&request)? {
            Reply::OpenOutline(outline) => Ok(Some(outline)),
            Reply::Pending | Reply::Expired => Ok(None),
            other => Err(unexpected(&request, &other)),
        }
    }
}

fn outcome(reply: Reply) -> Result<Outcome, ProtocolError> {
    match reply {
        Reply::Outcome(outcome) => Ok(outcome),
        other => Err(ProtocolError::Unexpected { request: ORDER, reply: other.name() }),
    }
}

fn unexpected(request: &Request, reply: &Reply) -> ProtocolError {
    ProtocolError::Unexpected { request: request.name(), reply: reply.name() }
}
