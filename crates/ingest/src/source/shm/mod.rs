//! Shared-memory source: one producer at a time writes bytes into a shared ring; they are framed like those of a pipe.
//!
//! The producer comes to a socket, gets the area there, and says through it that it is alive; a byte on it is a bell, which
//! only who sleeps is rung with. What the producer's words mean is `area`'s. Nothing that it does, or has done to it, reaches
//! further than its own stream.

mod area;

pub use area::{AREA_LIMITS, DEFAULT_AREA};

use super::error::{Fault, SourceError};
use super::open::problem;
use super::stop::{StopFlag, timespec};
use super::stream::end_of_stream;
use super::{Source, SourceEnd};
use crate::Cause;
use crate::counters::add;
use crate::framing::{Cutter, Framing};
use crate::producer::Producer;
use area::{Area, AreaEvent, CloseStage, ConsumedState, ProducerState};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_media::{FdListener, FdListenerError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with, recv, send,
    sendmsg,
};
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, take};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// How long nobody is asked to ring when something has come: who delivers many elements would ring for each of them.
const NAP: Duration = Duration::from_micros(250);

/// How often, in reads, it is looked who else is there while there is always more to read.
const TURNS: u32 = 64;

/// How long nobody is let in when the system has no descriptor for them.
const DEAF: Duration = Duration::from_secs(1);

/// First word of what a producer is told when it comes; the second is one of [`Answer`].
const GREETING: u64 = u64::from_le_bytes(*b"HFgreet\x01");

#[derive(Clone, Copy)]
enum Answer {
    /// The area comes with it.
    Area = 0,
    /// Another producer is here.
    Busy = 1,
    /// There is no memory for an area.
    NoMemory = 2,
}

/// A source of shared memory.
#[derive(Debug)]
pub(super) struct ShmSource {
    name: String,
    listener: FdListener,
    deaf: bool,
    framing: Framing,
    bytes: ByteSize,
    /// The next one's, if it is made already.
    area: Option<Area>,
    visit: Option<Visit>,
}

/// A producer that is here.
#[derive(Debug)]
struct Visit {
    socket: OwnedFd,
    area: Area,
    taken: ConsumedState,
    cutter: Cutter,
    /// Something was taken since the last wait.
    fresh: bool,
    /// When its losses were counted last.
    asked: Timestamp,
    /// It is over: the last words that count.
    last: Option<ProducerState>,
}

enum VisitProgress {
    Something,
    Nothing,
    Broken,
}

impl ShmSource {
    /// Makes the socket and the first producer's area.
    pub(super) fn open(
        name: String,
        path: &Path,
        bytes: ByteSize,
        framing: Framing,
    ) -> Result<Self, SourceError> {
        let unfit = |what: String| SourceError::Unfit { name: name.clone(), what };
        let listener = FdListener::open(path.to_owned()).map_err(|error| match error {
            FdListenerError::InUse(_) => unfit(
                "another recorder or source listens there; use a path of its own for each, or stop the other"
                    .to_owned(),
            ),
            FdListenerError::Occupied => unfit(
                "the path exists and is not a socket; use another path, or move the file away".to_owned(),
            ),
            FdListenerError::Failed { what, cause } => problem(&name, what, cause),
        })?;
        let area = Area::new(bytes, framing).map_err(|cause| {
            unfit(format!(
                "cannot allocate {bytes} of shared memory: {cause}; use a smaller --area, or free memory"
            ))
        })?;
        Ok(Self { name, listener, deaf: false, framing, bytes, area: Some(area), visit: None })
    }

    fn take_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        let mut turns = 0u32;
        loop {
            if stop.is_stopped() {
                // What is in the area arrived before the stop.
                match &mut self.visit {
                    Some(visit) => visit.end(),
                    None => return Ok(SourceEnd::Stopped),
                }
            }
            let found = self.visit.as_mut().map_or(Ok(VisitProgress::Nothing), |visit| visit.take(out))?;
            match found {
                VisitProgress::Something => {
                    out.settle()?;
                    turns = turns.wrapping_add(1);
                    if turns.is_multiple_of(TURNS) {
                        self.look(out, stop, Some(Duration::ZERO))?;
                    }
                }
                VisitProgress::Broken => self.leave(out, true)?,
                VisitProgress::Nothing if self.visit.as_ref().is_some_and(|visit| visit.last.is_some()) => {
                    self.leave(out, false)?;
                }
                VisitProgress::Nothing => self.wait(out, stop)?,
            }
        }
    }

    /// Waits until there may be something to do; what is in the batch is sent before that takes long.
    fn wait(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<(), Fault> {
        if let Some(visit) = &mut self.visit {
            let fresh = take(&mut visit.fresh);
            let least = if fresh { visit.taken.size / 4 } else { 1 };
            if visit.area.ask_bell(visit.taken.tail, visit.taken.tail + least) {
                return Ok(());
            }
            if fresh {
                return self.look(out, stop, Some(NAP));
            }
        }
        let at_most = out.idle()?;
        self.look(out, stop, at_most)
    }

    /// Sees to who comes, rings or goes; waits for that.
    fn look(&mut self, out: &Producer, stop: &StopFlag, at_most: Option<Duration>) -> Result<(), Fault> {
        // Who is not there, or not to be looked at, is stood in for by the flag.
        let listener = if self.deaf { stop.as_fd() } else { self.listener.as_fd() };
        let visit = self.visit.as_ref().map_or(stop.as_fd(), |visit| visit.socket.as_fd());
        let at_most =
            if take(&mut self.deaf) { Some(at_most.map_or(DEAF, |time| time.min(DEAF))) } else { at_most };
        let mut fds = [stop.as_fd(), listener, visit].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, at_most.map(timespec).as_ref()) {
            Ok(_) => {}
            // A signal: the caller looks around and comes back.
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(self.failed(error)),
        }
        let [stopped, comes, rings] = fds.map(|fd| fd.revents());
        if !stopped.is_empty() {
            return Ok(());
        }
        if !rings.is_empty()
            && let Some(visit) = &mut self.visit
        {
            visit.hear(rings.contains(PollFlags::HUP));
        }
        // Who comes while the last one's rest is taken waits for that.
        if !comes.is_empty() && self.visit.as_ref().is_none_or(|visit| visit.last.is_none()) {
            self.let_in(out);
        }
        Ok(())
    }

    fn failed(&self, error: Errno) -> Fault {
        SourceError::Read { name: self.name.clone(), at: 0, error: error.into() }.into()
    }

    fn let_in(&mut self, out: &Producer) {
        let socket = match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
            Err(_) => {
                add(&out.counters().refused, 1);
                self.deaf = true;
                return;
            }
        };
        if self.visit.is_some() {
            add(&out.counters().refused, 1);
            // Whoever does not hear it sees the socket close.
            let _ = greet(&socket, Answer::Busy, None);
            return;
        }
        let Ok(area) = self.area.take().map_or_else(|| Area::new(self.bytes, self.framing), Ok) else {
            add(&out.counters().refused, 1);
            let _ = greet(&socket, Answer::NoMemory, None);
            return;
        };
        if greet(&socket, Answer::Area, area.fd()).is_err() {
            // It has left, and nobody has got the area.
            self.area = Some(area);
            return;
        }
        add(&out.counters().connections, 1);
        self.visit = Some(Visit {
            socket,
            area,
            taken: ConsumedState { size: self.bytes.0, ..ConsumedState::default() },
            cutter: Cutter::new(self.framing),
            fresh: false,
            asked: out.now(),
            last: None,
        });
    }

    /// The producer is gone, or goes because it `broke` the area. The next one gets another.
    fn leave(&mut self, out: &mut Producer, broke: bool) -> Result<(), Fault> {
        let Some(mut visit) = self.visit.take() else { return Ok(()) };
        add(&out.counters().connections, 1u64.wrapping_neg());
        end_of_stream(out, &visit.cutter)?;
        if broke {
            add(&out.counters().refused, 1);
            let now = out.stamp();
            out.unknown_loss(Cause::Aborted, visit.asked, now);
        } else {
            visit.count_last(out);
        }
        Ok(())
    }
}

/// Tells who has come what becomes of it.
fn greet(socket: &OwnedFd, answer: Answer, area: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut words = [0; 16];
    words[..8].copy_from_slice(&GREETING.to_ne_bytes());
    words[8..].copy_from_slice(&(answer as u64).to_ne_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if let Some(area) = &area {
        ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(area)));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(&words)], &mut ancillary, flags)?;
    Ok(())
}

impl Visit {
    fn said(&self) -> ProducerState {
        self.last.unwrap_or_else(|| self.area.said())
    }

    /// Its socket has something: bells, or its end; that may be there already `behind` bells.
    fn hear(&mut self, behind: bool) {
        let mut bells = [0; 64];
        let over = match recv(&self.socket, &mut bells[..], RecvFlags::DONTWAIT) {
            Ok((_, heard)) => heard == 0 || behind,
            Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
        };
        if over {
            self.last = Some(self.said());
        }
    }

    /// We end: what was put until now counts, and the producer knows that nothing else does.
    fn end(&mut self) {
        if self.last.is_none() {
            self.area.close(CloseStage::Closing);
            self.last = Some(self.area.said());
        }
    }

    /// Takes what comes next.
    fn take(&mut self, out: &mut Producer) -> Result<VisitProgress, Fault> {
        let said = self.said();
        let elapsed = if said.dropped == self.taken.dropped {
            self.asked = out.now();
            Duration::ZERO
        } else {
            out.stamp().since(self.asked)
        };
        match self.taken.next(&said, !out.in_element(), elapsed) {
            AreaEvent::Nothing => return Ok(VisitProgress::Nothing),
            AreaEvent::Broken => return Ok(VisitProgress::Broken),
            AreaEvent::Lost(elements, bytes) => self.count(&said, elements, bytes, out),
            AreaEvent::Bytes(most) => {
                let space = out.space(&self.cutter)?;
                let n = space.len().min(usize::try_from(most).unwrap_or(usize::MAX));
                let from = self.taken.tail;
                self.area.copy(from, &mut space[..n]);
                self.taken.tail += n as u64;
                // Before anything is made of the bytes: what is recorded was seen to be taken.
                if self.area.took(from, self.taken.tail) {
                    // One that cannot be rung has bells enough, or is gone.
                    let _ = send(&self.socket, b"!", SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                }
                out.feed(n, &mut self.cutter)?;
            }
        }
        self.fresh = true;
        Ok(VisitProgress::Something)
    }

    fn count(&mut self, said: &ProducerState, elements: u64, bytes: Option<u64>, out: &mut Producer) {
        out.given_up(elements, bytes, self.asked);
        (self.taken.dropped, self.taken.dropped_bytes) = (said.dropped, said.dropped_bytes);
        self.area.counted(said.dropped);
    }

    /// What was given up inside of an element that is none any more.
    fn count_last(&mut self, out: &mut Producer) {
        let (said, elapsed) = (self.said(), out.stamp().since(self.asked));
        if let AreaEvent::Lost(elements, bytes) = self.taken.next(&said, true, elapsed) {
            self.count(&said, elements, bytes, out);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Before its socket closes: then the producer looks how much was taken.
        self.area.close(CloseStage::Closed);
    }
}

impl Source for ShmSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.take_all(out, stop))
    }
}
