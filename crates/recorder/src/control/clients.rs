//! Connected clients and their requests under way. A client that misbehaves is dropped; nobody else notices.

use super::figures::Figures;
use super::jobs::Jobs;
use super::sources::Watch;
use super::tickets::{ClientId, Tickets};
use super::{CaptureClient, interest};
use crate::capture::{Answer, Ask, NotRead, ReadOrigin};
use holdfast_base::BLOCK;
use holdfast_format::{MAX_COLUMNS, OPEN_REPLY};
use holdfast_protocol::server::{Arrival, Client, Hangup, Listener, MAX_CLIENTS};
use holdfast_protocol::wire::{MAX_PINS, MAX_VALUES, PIECE, Purpose, Reply, Request};
use holdfast_ring::{Class, Outcome, Refusal, Work};
use rustix::event::PollFd;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// A client that has asked nothing for so long gives way when all places are taken and another one comes. Who watches
/// asks every second.
const IDLE: Duration = Duration::from_secs(10);

/// Slots in one reply: about a piece of the protocol.
const SLOTS: usize = PIECE / 48;

/// An answer about the open slot gets on each time.
const _: () = assert!(PIECE >= OPEN_REPLY);

/// Sequences that can be on their way at once: every slot buffer, and what recovery rebuilt.
const OPEN_SLOTS: usize = 160;

/// Connection of one client and its requests under way.
#[derive(Debug)]
struct Session {
    id: ClientId,
    client: Client,
    /// Requests that found no room, in their order. They count as unanswered, so that there are few.
    parked: Vec<(u64, Request)>,
    /// Requests that wait for figures.
    waiting: Vec<(u64, Waits)>,
    /// When it came, asked something, or waited for an answer last.
    active: Instant,
    /// Whether it has asked to pin slots.
    pins: bool,
}

/// What a request that waits for figures is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Hello,
    Status,
    Streams,
}

/// All clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    all: Vec<Session>,
    next: ClientId,
    /// Who begins, so that nobody is always last.
    turn: usize,
    /// Asks under way: whose, and the request's id.
    asked: BTreeMap<u64, (ClientId, u64)>,
    /// Those who are gone, and whose pins are to be taken away as soon as there is room to ask for it.
    unpin: Vec<ClientId>,
}

/// What serving a request takes.
pub(super) struct Help<'a> {
    pub(super) capture: &'a mut CaptureClient,
    pub(super) tickets: &'a mut Tickets,
    pub(super) figures: &'a mut Figures,
    pub(super) jobs: &'a mut Jobs,
    pub(super) sources: &'a Watch,
    pub(super) now: Instant,
}

/// What became of a request.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
enum Served {
    /// It is answered.
    Now(Reply),
    /// The capture thread is asked.
    Asked(u64),
    /// It waits for figures.
    Figures(Waits),
    /// Somebody else answers.
    Elsewhere,
    /// There is no room: later.
    Later(Request),
}

impl Clients {
    /// Descriptors and events to poll for, in the order of the clients.
    pub(super) fn interests(&self, room: bool) -> impl Iterator<Item = PollFd<'_>> {
        self.all.iter().map(move |session| {
            let read = room && session.client.wants_read();
            interest(&session.client, read, session.client.wants_write())
        })
    }

    /// Drops clients by their places, in rising order.
    pub(super) fn hang_up(&mut self, places: &[usize], tickets: &mut Tickets) {
        for at in places.iter().rev() {
            if *at < self.all.len() {
                let session = self.all.remove(*at);
                tickets.forget(session.id);
                self.unpin.extend(session.pins.then_some(session.id));
            }
        }
    }

    /// Takes those who wait; `false` if some wait on for whom there is nothing left: they are tried again at the next
    /// round, which they are no reason for.
    pub(super) fn accept(&mut self, listener: &Listener, tickets: &mut Tickets, now: Instant) -> bool {
        loop {
            match listener.accept(|| self.has_room(tickets, now)) {
                Ok(Arrival::Client(client)) => {
                    self.next += 1;
                    self.all.push(Session {
                        id: self.next,
                        client,
                        parked: Vec::new(),
                        waiting: Vec::new(),
                        active: now,
                        pins: false,
                    });
                }
                Ok(Arrival::Nobody | Arrival::Refused(_)) => return true,
                Ok(Arrival::Later) | Err(_) => return false,
            }
        }
    }

    /// Whether there is a place for another client: who has been idle longest may have to leave his.
    fn has_room(&mut self, tickets: &mut Tickets, now: Instant) -> bool {
        if self.all.len() < MAX_CLIENTS {
            return true;
        }
        let idle =
            |session: &Session| !session.client.is_busy() && now.duration_since(session.active) >= IDLE;
        let places = self.all.iter().enumerate().filter(|(_, session)| idle(session));
        let Some(at) = places.min_by_key(|(_, session)| session.active).map(|(at, _)| at) else {
            return false;
        };
        let session = &mut self.all[at];
        let idle = now.duration_since(session.active).as_secs();
        session.client.turn_away(format!(
            "{MAX_CLIENTS} clients are connected, and this one has asked nothing for {idle} s: another took its place; \
             connect again"
        ));
        self.hang_up(&[at], tickets);
        true
    }

    /// Takes what every client asks, in turn, as long as there is room for it.
    pub(super) fn serve(&mut self, help: &mut Help<'_>) {
        while help.capture.has_room()
            && let Some(gone) = self.unpin.pop()
        {
            // Behind all that it has asked itself; nobody waits for the answer.
            help.capture.ask(Ask::Pin(gone, Vec::new()));
        }
        let count = self.all.len();
        let turn = self.turn;
        self.turn = (turn + 1) % count.max(1);
        let in_turn = || (0..count).map(|offset| (turn + offset) % count);
        let mut gone = BTreeSet::new();
        for at in in_turn() {
            if self.receive_from(at, help).is_err() || help.tickets.is_abused(self.all[at].id) {
                gone.insert(at);
            }
        }
        // What came may have given tickets back; each round of turns hands out at least one of them.
        let mut served = true;
        while std::mem::take(&mut served) {
            for at in in_turn().filter(|at| !gone.contains(at)).collect::<Vec<_>>() {
                match self.all[at].serve_parked(help, &mut self.asked) {
                    Ok(some) => served |= some,
                    Err(_) => _ = gone.insert(at),
                }
            }
        }
        self.hang_up(&gone.into_iter().collect::<Vec<_>>(), help.tickets);
    }

    fn receive_from(&mut self, at: usize, help: &mut Help<'_>) -> Result<(), Hangup> {
        let session = &mut self.all[at];
        if session.client.is_busy() {
            session.active = help.now;
        }
        if session.client.wants_write() {
            session.client.flush()?;
        }
        while help.capture.has_room() {
            let Some((id, request)) = session.client.receive()? else { break };
            session.active = help.now;
            session.serve_or_park(id, request, help, &mut self.asked)?;
        }
        Ok(())
    }

    /// Answers a request of a client that may be gone by now.
    pub(super) fn reply(&mut self, caller: ClientId, request: u64, reply: &Reply, tickets: &mut Tickets) {
        let Some(at) = self.all.iter().position(|c| c.id == caller) else { return };
        if self.all[at].client.reply(request, reply).is_err() {
            self.hang_up(&[at], tickets);
        }
    }

    /// The capture thread has answered.
    pub(super) fn answer(
        &mut self,
        ask: u64,
        answer: Answer,
        tickets: &mut Tickets,
        figures: &mut Figures,
        now: Instant,
    ) {
        let asked = self.asked.remove(&ask);
        let there = asked.filter(|(caller, _)| self.all.iter().any(|c| c.id == *caller));
        let reply = match answer {
            Answer::Read(buffer, len, result) => match (result, there) {
                (Ok(()), Some((caller, _))) => {
                    Reply::Ready { offset: tickets.lend(buffer, caller, now), len }
                }
                (result, _) => {
                    tickets.give_back(buffer);
                    not_read(result.err().unwrap_or(NotRead::Expired))
                }
            },
            Answer::Slots(total, slots) => Reply::Slots { total, slots },
            Answer::Holds(more, holds) => Reply::Holds { more, holds },
            Answer::Acts(more, dropped, acts) => Reply::Acts { more, dropped, acts },
            Answer::Preamble(Some(total), bytes) => Reply::Preamble { total, bytes },
            Answer::Preamble(None, _) => Reply::Expired,
            Answer::Ending => Reply::Ending,
            Answer::Outcome(outcome) => {
                figures.forget(matches!(outcome, Outcome::Grown { .. }));
                Reply::Outcome(outcome)
            }
            Answer::OpenSlots(slots) => Reply::OpenSlots(slots),
            Answer::Index(Ok((cursor, end)), parts, _) => Reply::OpenIndex { cursor, end, parts },
            Answer::Index(Err(why), ..) => not_read(why),
            Answer::Outline(Some(outline), _) => Reply::OpenOutline(outline),
            Answer::Outline(None, _) => Reply::Pending,
            Answer::Pinned(granted, _) => Reply::Pinned { granted },
            Answer::Figures(_) | Answer::JobStep(_) => return,
        };
        if let Some((caller, request)) = there {
            self.reply(caller, request, &reply, tickets);
        }
    }

    /// Answers those who wait for figures.
    pub(super) fn answer_waiting(&mut self, figures: &Figures, sources: &Watch, tickets: &mut Tickets) {
        let mut gone = Vec::new();
        for (at, session) in self.all.iter_mut().enumerate() {
            if session.answer_waiting(figures, sources, tickets).is_err() {
                gone.push(at);
            }
        }
        self.hang_up(&gone, tickets);
    }
}

impl Session {
    /// Serves what found no room before, as far as there is some now; whether there was for anything.
    fn serve_parked(
        &mut self,
        help: &mut Help<'_>,
        asked: &mut BTreeMap<u64, (ClientId, u64)>,
    ) -> Result<bool, Hangup> {
        let parked = std::mem::take(&mut self.parked);
        let before = parked.len();
        for (id, request) in parked {
            self.serve_or_park(id, request, help, asked)?;
        }
        Ok(self.parked.len() < before)
    }

    fn serve_or_park(
        &mut self,
        id: u64,
        request: Request,
        help: &mut Help<'_>,
        asked: &mut BTreeMap<u64, (ClientId, u64)>,
    ) -> Result<(), Hangup> {
        let later =
            if self.must_wait(&request) { Some(request) } else { self.serve(id, request, help, asked)? };
        self.parked.extend(later.map(|request| (id, request)));
        Ok(())
    }

    /// Whether a request must wait for those that found no room before it. What gives tickets back overtakes all of them; and whatever is
    /// no read overtakes reads: a client that waits for such an answer takes none of its reads meanwhile, and gives no ticket back.
    fn must_wait(&self, request: &Request) -> bool {
        match request {
            Request::Done { .. } => false,
            Request::Read { .. } => !self.parked.is_empty(),
            _ => self.parked.iter().any(|(_, parked)| !matches!(parked, Request::Read { .. })),
        }
    }

    /// Serves one request; gives it back when there is no room for it.
    fn serve(
        &mut self,
        id: u64,
        request: Request,
        help: &mut Help<'_>,
        asked: &mut BTreeMap<u64, (ClientId, u64)>,
    ) -> Result<Option<Request>, Hangup> {
        self.pins |= matches!(request, Request::Pin { .. });
        match answer(self.id, id, request, help) {
            Served::Now(reply) => self.client.reply(id, &reply)?,
            Served::Asked(ask) => {
                asked.insert(ask, (self.id, id));
            }
            Served::Figures(waits) => {
                self.waiting.push((id, waits));
                if help.figures.are_fresh(help.now) {
                    self.answer_waiting(help.figures, help.sources, help.tickets)?;
                } else {
                    help.figures.want();
                }
            }
            Served::Elsewhere => {}
            Served::Later(request) => return Ok(Some(request)),
        }
        Ok(None)
    }

    /// Answers what waits for figures.
    fn answer_waiting(
        &mut self,
        figures: &Figures,
        sources: &Watch,
        tickets: &Tickets,
    ) -> Result<(), Hangup> {
        for (id, waits) in std::mem::take(&mut self.waiting) {
            match waits {
                Waits::Hello => {
                    let area = tickets.pool().fd().ok_or(Hangup::Closed)?;
                    let welcome = figures.welcome(tickets.pool());
                    self.client.welcome(id, welcome, area.as_fd(), figures.view())?;
                }
                Waits::Status => self.client.reply(id, &Reply::Status(Box::new(figures.status(sources))))?,
                Waits::Streams => self.client.reply(id, &Reply::Streams(figures.streams()))?,
            }
        }
        Ok(())
    }
}

fn not_read(why: NotRead) -> Reply {
    match why {
        NotRead::Expired => Reply::Expired,
        NotRead::Pending => Reply::Pending,
        NotRead::Failed(error) => Reply::Error { text: error.to_string() },
        NotRead::Ending => Reply::Ending,
    }
}

/// Answers a request, or says who will.
fn answer(caller: ClientId, id: u64, request: Request, help: &mut Help<'_>) -> Served {
    let wrong = |text: &str| Served::Now(Reply::Error { text: text.to_owned() });
    if let Request::Order(order) = &request
        && let Some(work) = Work::of(order)
    {
        return begin(caller, id, request, work, help);
    }
    match request {
        Request::Hello { .. } => Served::Figures(Waits::Hello),
        Request::Status => Served::Figures(Waits::Status),
        Request::Streams => Served::Figures(Waits::Streams),
        Request::Schema { stream } => {
            Served::Now(Reply::Schema { text: help.figures.schema(stream).to_owned() })
        }
        Request::Pin { sequences } if sequences.len() > MAX_PINS => {
            wrong(&format!("a client may pin at most {MAX_PINS} slots: request the most urgent ones"))
        }
        Request::OpenOutline { values, .. } if values.len() > MAX_VALUES => {
            wrong(&format!("a request to an open slot may have at most {MAX_VALUES} values"))
        }
        Request::OpenIndex { wanted, .. } if wanted.columns.len() > MAX_COLUMNS => {
            wrong(&format!("a request to an open slot may have at most {MAX_COLUMNS} attributes"))
        }
        Request::Done { offset } => Served::Now(Reply::Done { kept: help.tickets.done(caller, offset) }),
        request if !help.capture.has_room() => Served::Later(request),
        Request::Order(order) => Served::Asked(help.capture.ask(Ask::Order(order))),
        Request::Slots { from, count } => {
            let slots = Vec::with_capacity(SLOTS.min(count.max(1) as usize));
            Served::Asked(help.capture.ask(Ask::Slots(holdfast_base::SlotNo(from), slots)))
        }
        Request::Preamble { stream, version, offset } => {
            let bytes = Vec::with_capacity(PIECE);
            Served::Asked(help.capture.ask(Ask::Preamble(stream, version, offset, bytes)))
        }
        Request::Holds { after } => Served::Asked(help.capture.ask(Ask::Holds(after))),
        Request::Acts { after } => Served::Asked(help.capture.ask(Ask::Acts(after))),
        Request::OpenSlots => Served::Asked(help.capture.ask(Ask::OpenSlots(Vec::with_capacity(OPEN_SLOTS)))),
        Request::OpenIndex { sequence, cursor, wanted } => {
            Served::Asked(help.capture.ask(Ask::Index(sequence, cursor, wanted, vec![0; PIECE])))
        }
        Request::OpenOutline { sequence, stream, attribute, values } => {
            Served::Asked(help.capture.ask(Ask::Outline(sequence, stream, attribute, values)))
        }
        Request::Pin { sequences } => Served::Asked(help.capture.ask(Ask::Pin(caller, sequences))),
        Request::Read { sequence, offset, len, purpose } => {
            let block = BLOCK as u32;
            let quantum = help.tickets.pool().stride() as u64;
            let slot = help.figures.slot_bytes();
            if !offset.is_multiple_of(block)
                || !len.is_multiple_of(block)
                || len == 0
                || u64::from(len) > quantum
            {
                return wrong("a read must consist of whole blocks of 4 KiB, at most a quantum");
            }
            if u64::from(offset) + u64::from(len) > slot {
                return wrong("a read must end inside its slot");
            }
            match help.tickets.take(caller, help.now) {
                Some(buffer) => {
                    let reader = ReadOrigin { class: class(purpose), client: caller };
                    Served::Asked(help.capture.ask(Ask::Read(sequence, offset, len, buffer, reader)))
                }
                None => Served::Later(Request::Read { sequence, offset, len, purpose }),
            }
        }
    }
}

/// How the schedule calls it. To rebuild is the recorder's own affair.
fn class(purpose: Purpose) -> Class {
    match purpose {
        Purpose::Export => Class::Export,
        Purpose::Search => Class::Search,
        Purpose::Evacuation => Class::Evacuation,
        Purpose::Scrub => Class::Scrub,
    }
}

/// Begins an order that takes many steps, if it can begin now.
fn begin(caller: ClientId, id: u64, request: Request, work: Work, help: &mut Help<'_>) -> Served {
    let refused = |what| Served::Now(Reply::Outcome(Outcome::Refused(Refusal::Busy(what))));
    match help.jobs.at_work() {
        // Distilling goes on for as long as somebody asks for it, and nobody should wait for that who destroys something.
        Some("distilling") if matches!(work, Work::Purge(_)) => {
            help.jobs.hurry();
            return Served::Later(request);
        }
        Some(what) => return refused(what),
        None => {}
    }
    let Some(superblock) = help.figures.superblock() else {
        help.figures.want();
        return Served::Later(request);
    };
    let (what, now) = (work.name(), help.figures.now());
    if help.jobs.begin(caller, id, work, superblock, now) { Served::Elsewhere } else { refused(what) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_media::{BufferPool, Lock};
    use holdfast_protocol::wire::VERSION;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    /// All places, taken by clients that have come one after the other, a millisecond apart.
    struct Full {
        _directory: tempfile::TempDir,
        path: std::path::PathBuf,
        listener: Listener,
        table: Clients,
        tickets: Tickets,
        clients: Vec<UnixStream>,
        last: Instant,
    }

    fn full() -> Full {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listener = Listener::bind_at(path.clone()).unwrap();
        let mut tickets = Tickets::new(BufferPool::shared(1, 4096, Lock::No).unwrap());
        let (mut table, mut clients) = (Clients::default(), Vec::new());
        let mut last = Instant::now();
        for _ in 0..MAX_CLIENTS {
            last += Duration::from_millis(1);
            clients.push(UnixStream::connect(&path).unwrap());
            assert!(table.accept(&listener, &mut tickets, last));
        }
        assert_eq!(table.all.len(), MAX_CLIENTS);
        Full { _directory: directory, path, listener, table, tickets, clients, last }
    }

    impl Full {
        /// Another one comes: who had to leave for it, or what it was told.
        fn comes(&mut self, now: Instant) -> Result<Option<ClientId>, String> {
            let before: Vec<_> = self.table.all.iter().map(|session| session.id).collect();
            let mut new = UnixStream::connect(&self.path).unwrap();
            assert!(self.table.accept(&self.listener, &mut self.tickets, now));
            assert!(self.table.all.len() <= MAX_CLIENTS);
            let there = |id: &ClientId| self.table.all.iter().any(|session| session.id == *id);
            if there(&(before.last().unwrap() + 1)) {
                self.clients.push(new);
                return Ok(before.into_iter().find(|id| !there(id)));
            }
            let mut told = Vec::new();
            new.read_to_end(&mut told).unwrap();
            Err(String::from_utf8_lossy(&told).into_owned())
        }
    }

    // Promise 1, of the places: who only sits there keeps nobody out.
    #[test]
    fn who_has_been_idle_longest_gives_way_and_who_is_not_idle_never_does() {
        let mut full = full();
        let soon = full.last + IDLE / 2;
        assert!(full.comes(soon).unwrap_err().contains("clients are connected"));
        // The first waits for an answer, the second has asked since, the third has not.
        full.clients[0].write_all(&Request::Hello { version: VERSION }.encode(1)).unwrap();
        assert!(matches!(full.table.all[0].client.receive(), Ok(Some(_))));
        full.table.all[1].active = soon;
        let late = full.last + IDLE;
        assert_eq!(full.comes(late), Ok(Some(3)));
        let mut told = Vec::new();
        full.clients[2].read_to_end(&mut told).unwrap();
        let told = String::from_utf8_lossy(&told);
        assert!(told.contains("asked nothing for 10 s"), "{told}");
        for id in 4..=MAX_CLIENTS as ClientId {
            assert_eq!(full.comes(late), Ok(Some(id)));
        }
        assert!(full.comes(late).unwrap_err().contains("all are busy"));
        assert_eq!(full.comes(soon + IDLE), Ok(Some(2)));
    }
}
