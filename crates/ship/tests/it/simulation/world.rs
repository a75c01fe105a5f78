//! World of a history: instrument, shipper with its durable ledger, network, archive, and the checks at its end.

use super::archive::{Address, Answer, Archive, Request};
use super::files::{Change, Files, Handle};
use super::random::Random;
use holdfast_ship::fleet::{FileKey, Fleet, Rank};
use holdfast_ship::link::Outage;
use holdfast_ship::run_end::{RunEnd, RunFacts, RunState};
use holdfast_ship::transfer::{
    Action, Comparison, Delivery, Event, Failure, Observation, Resumption, Rules, Segment, Transfer,
};
use std::collections::BTreeMap;
use std::time::Duration;

const BLOCK: u64 = 8;
/// Quiet time that ends a run of files that may be opened again.
const QUIET: Duration = Duration::from_secs(5);
/// Quiet time of files that are written once: their runs end by closing.
const NEVER: Duration = Duration::from_hours(1);
const RULES: Rules = Rules { block: BLOCK, lag: Duration::from_millis(200), window: 4, can_defer: true };
const MOST: usize = 6;
/// Time until an unanswered request counts as failed.
const TIMEOUT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(50);

/// Kinds of faults in a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) is_rewriting: bool,
    pub(super) has_crashes: bool,
    pub(super) has_damage: bool,
}

/// Reading position of one file in the shipper's memory.
#[derive(Default)]
struct Reading {
    handle: Option<Handle>,
    /// Bytes as they were sent; the real driver keeps their running hash.
    sent: Vec<u8>,
    kept: BTreeMap<(u32, u64), Vec<u8>>,
}

struct File {
    name: String,
    facts: RunFacts,
    reading: Reading,
}

/// Durable state of the shipper.
#[derive(Default)]
struct Ledger {
    /// Address of the upload of each file, and its path at the archive.
    uploads: BTreeMap<String, (Address, String)>,
    delivered: BTreeMap<String, (Observation, Delivery)>,
}

/// Request on its way, or its answer on its way back.
struct Message {
    due: Duration,
    call: u64,
    request: Option<Request>,
    answer: Option<Answer>,
}

/// Action that waits for an answer.
struct Call {
    key: FileKey,
    action: Action<Address>,
    /// Contents that were read for the action.
    root: Option<(blake3::Hash, u64)>,
    /// Path of the file when the action began.
    name: String,
    expires: Duration,
}

pub(super) struct World {
    random: Random,
    faults: Faults,
    now: Duration,
    files: Files,
    fleet: Fleet<Address>,
    known: BTreeMap<FileKey, File>,
    keys: u64,
    ledger: Ledger,
    calls: BTreeMap<u64, Call>,
    next_call: u64,
    network: Vec<Message>,
    archive: Archive,
    is_healed: bool,
    sent: u64,
    crashes: u64,
    losses: u64,
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            random: Random::new(seed),
            faults,
            now: Duration::ZERO,
            files: Files::default(),
            fleet: Fleet::new(MOST),
            known: BTreeMap::new(),
            keys: 0,
            ledger: Ledger::default(),
            calls: BTreeMap::new(),
            next_call: 0,
            network: Vec::new(),
            archive: Archive::default(),
            is_healed: false,
            sent: 0,
            crashes: 0,
            losses: 0,
        }
    }

    pub(super) fn run(mut self) {
        let steps = 20 + self.random.below(120);
        for _ in 0..steps {
            if self.random.once_in(2) {
                let changes = self.files.step(&mut self.random, self.faults.is_rewriting);
                self.report(changes);
            }
            self.disturb();
            self.advance();
        }
        self.is_healed = true;
        self.archive.is_full = false;
        let changes = self.files.close_all();
        self.report(changes);
        for _ in 0..4000 {
            self.advance();
            if self.is_quiet() {
                break;
            }
        }
        self.check();
    }

    /// True when every file that exists is delivered as it is.
    fn is_quiet(&self) -> bool {
        let is_delivered = |name: &String| {
            let seen = self.files.observe(name);
            let file = self.known.iter().find(|(_, file)| file.name == *name);
            file.and_then(|(key, _)| self.fleet.get(*key))
                .is_some_and(|transfer| transfer.delivery().is_some() && transfer.observed().copied() == seen)
        };
        self.calls.is_empty() && self.files.names.keys().all(is_delivered)
    }

    fn check(&self) {
        for (name, inode) in &self.files.names {
            let newest = self.archive.versions.get(name).and_then(|versions| versions.last());
            assert_eq!(newest, Some(&inode.borrow().bytes), "{name} after {} crashes", self.crashes);
        }
        assert!(self.is_quiet(), "the shipper has not come to rest at {:?}", self.now);
        let appended = self.files.appended;
        if !self.faults.is_rewriting {
            // A crash costs the segments that were on their way, and those that late arrivals of them overlap.
            let lost = (self.crashes * 2 * MOST as u64 + self.losses) * BLOCK;
            assert!(self.sent <= appended + lost, "{} bytes sent for {appended}", self.sent);
        }
    }

    // ---- instrument and watcher ----

    fn report(&mut self, changes: Vec<Change>) {
        for change in changes {
            // Watchers lose events; a later scan finds what they told.
            if !self.is_healed && self.random.once_in(10) {
                continue;
            }
            match change {
                Change::Changed(name) => self.sight(&name, false),
                Change::Closed(name) => self.sight(&name, true),
                Change::Removed(name) => self.vanish(&name),
                Change::Renamed(from, to) => self.rename(&from, &to),
            }
        }
    }

    fn key_of(&self, name: &str) -> Option<FileKey> {
        self.known.iter().find(|(_, file)| file.name == name).map(|(key, _)| *key)
    }

    fn sight(&mut self, name: &str, is_closed: bool) {
        let Some(seen) = self.files.observe(name) else { return };
        let key = self.key_of(name).unwrap_or_else(|| self.meet(name));
        let is_new = self.fleet.get(key).and_then(|transfer| transfer.observed().copied()) != Some(seen);
        let Some(file) = self.known.get_mut(&key) else { return };
        if is_new {
            file.facts = RunFacts { changed_at: self.now, ..RunFacts::default() };
        }
        file.facts.is_closed |= is_closed;
        self.fleet.observe(self.now, key, Event::Observed(seen));
        self.fleet.set_rank(key, Rank::new(0, seen.modified, false));
        self.end_runs();
    }

    fn meet(&mut self, name: &str) -> FileKey {
        self.keys += 1;
        let transfer = match (self.ledger.uploads.get(name), self.ledger.delivered.get(name)) {
            (Some((address, at)), _) => Transfer::resumed(*address, at != name),
            (None, Some((observed, delivery))) => Transfer::delivered(*observed, *delivery),
            (None, None) => Transfer::new(),
        };
        self.fleet.insert(self.keys, transfer, RULES, Rank::new(0, 0, false));
        let facts = RunFacts { changed_at: self.now, ..RunFacts::default() };
        let file = File { name: name.to_owned(), facts, reading: Reading::default() };
        self.known.insert(self.keys, file);
        self.keys
    }

    fn vanish(&mut self, name: &str) {
        if let Some(key) = self.key_of(name)
            && self.files.observe(name).is_none()
        {
            self.fleet.observe(self.now, key, Event::Gone);
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let (Some(key), None) = (self.key_of(from), self.key_of(to)) else {
            self.vanish(from);
            self.sight(to, false);
            return;
        };
        if self.files.observe(from).is_some() || self.files.observe(to).is_none() {
            return;
        }
        if let Some(file) = self.known.get_mut(&key) {
            to.clone_into(&mut file.name);
        }
        if let Some(address) = self.ledger.uploads.remove(from) {
            self.ledger.uploads.insert(to.to_owned(), address);
        }
        self.fleet.observe(self.now, key, Event::Renamed);
        self.sight(to, false);
    }

    fn scan(&mut self) {
        let names: Vec<String> = self.files.names.keys().cloned().collect();
        for name in names {
            self.sight(&name, false);
        }
        let known: Vec<String> = self.known.values().map(|file| file.name.clone()).collect();
        for name in known {
            self.vanish(&name);
        }
        let uploads: Vec<String> = self.ledger.uploads.keys().cloned().collect();
        for name in uploads {
            if self.key_of(&name).is_none() {
                let key = self.meet(&name);
                self.fleet.observe(self.now, key, Event::Gone);
            }
        }
        // Settled transfers of files that are gone are forgotten.
        let settled: Vec<FileKey> = self
            .known
            .iter()
            .filter(|(key, file)| {
                let is_there = self.files.names.contains_key(&file.name);
                !is_there && self.fleet.get(**key).is_some_and(Transfer::is_settled)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in settled {
            if let Some(file) = self.known.remove(&key) {
                self.ledger.uploads.remove(&file.name);
            }
            self.fleet.remove(key);
        }
    }

    fn end_runs(&mut self) {
        for (key, file) in &self.known {
            let quiet = if self.faults.is_rewriting { QUIET } else { NEVER };
            if RunEnd::Close.state(&file.facts, quiet, self.now) == RunState::Ended {
                self.fleet.observe(self.now, *key, Event::Ended);
            }
        }
    }

    // ---- faults ----

    fn disturb(&mut self) {
        if !self.faults.has_crashes {
            return;
        }
        if self.random.once_in(40) {
            self.crash_shipper();
        }
        if self.random.once_in(40) {
            // Requests that the archive has taken and not answered are gone.
            self.crashes += 1;
            self.network.retain(|message| message.request.is_none());
        }
        if self.random.once_in(60) {
            self.archive.is_full = !self.archive.is_full;
        }
    }

    fn crash_shipper(&mut self) {
        self.crashes += 1;
        self.fleet = Fleet::new(MOST);
        self.known.clear();
        self.calls.clear();
        self.scan();
    }

    // ---- time ----

    fn advance(&mut self) {
        self.now += STEP;
        if self.random.once_in(20) || self.is_healed && self.random.once_in(4) {
            self.scan();
        }
        self.end_runs();
        self.deliver();
        let expired: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.expires <= self.now).map(|(id, _)| *id).collect();
        for id in expired {
            self.losses += 1;
            self.finish(id, None);
        }
        while let Some((key, action)) = self.fleet.next(self.now) {
            self.act(key, action);
        }
    }

    fn deliver(&mut self) {
        // Messages that are due in one step arrive in random order.
        let mut due = Vec::new();
        let mut at = 0;
        while at < self.network.len() {
            if self.network[at].due <= self.now { due.push(self.network.swap_remove(at)) } else { at += 1 }
        }
        while !due.is_empty() {
            let chosen = self.random.below(due.len() as u64) as usize;
            let mut message = due.swap_remove(chosen);
            let is_lost = !self.is_healed && self.faults.has_crashes && self.random.once_in(30);
            if is_lost {
                continue;
            }
            if let Some(request) = &message.request {
                match self.archive.take(request) {
                    Some(answer) => {
                        message.answer = Some(answer);
                        message.request = None;
                    }
                    // A segment waits for its predecessor, at most as long as its sender.
                    None if message.due + TIMEOUT < self.now => continue,
                    None => {
                        self.network.push(message);
                        continue;
                    }
                }
                message.due = self.now + self.delay();
                self.network.push(message);
            } else if let Some(answer) = message.answer {
                self.finish(message.call, Some(answer));
            }
        }
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.random.below(if self.is_healed { 50 } else { 400 }))
    }

    // ---- driver ----

    fn act(&mut self, key: FileKey, action: Action<Address>) {
        let Some(file) = self.known.get_mut(&key) else { return };
        let name = file.name.clone();
        let at = name.clone();
        let mut root = None;
        let request = match &action {
            Action::Create { .. } => {
                file.reading = Reading { handle: self.files.names.get(&name).cloned(), ..Reading::default() };
                Request::Create { name }
            }
            Action::SendWhole { .. } => match self.files.names.get(&name) {
                Some(inode) => {
                    let bytes = inode.borrow().bytes.clone();
                    root = Some((blake3::hash(&bytes), bytes.len() as u64));
                    self.sent += bytes.len() as u64;
                    Request::Whole { name, bytes }
                }
                None => return self.fleet.answer(self.now, key, Some(Event::Failed(Failure::Transient))),
            },
            Action::Resume { address } => Request::Ask { address: *address },
            Action::Send { address, generation, segment } => {
                let Some(bytes) = read(&mut file.reading, *generation, *segment) else {
                    let (generation, start, failure) = (*generation, segment.start, Failure::Transient);
                    let event = Event::SegmentFailed { generation, start, failure };
                    return self.fleet.answer(self.now, key, Some(event));
                };
                self.sent += bytes.len() as u64;
                let is_damaged = self.faults.has_damage && !self.is_healed && self.random.once_in(10);
                Request::Append { address: *address, start: segment.start, bytes, is_damaged }
            }
            Action::Compare { size } => {
                let event = compare(&file.reading, *size);
                return self.fleet.answer(self.now, key, Some(Event::Compared(event)));
            }
            Action::Check { delivery } => {
                let result = match self.files.names.get(&name).map(|inode| inode.borrow()) {
                    Some(inode) if Some(blake3::hash(&inode.bytes)) == delivery.root => {
                        Comparison::Equal { root: blake3::hash(&inode.bytes), observed: inode.observe() }
                    }
                    _ => Comparison::Changed,
                };
                return self.fleet.answer(self.now, key, Some(Event::Compared(result)));
            }
            Action::Seal { address, length, .. } => Request::Seal { address: *address, length: *length },
            Action::Await { address, .. } => Request::Await { address: *address },
            Action::Retire { address } => Request::Retire { address: *address },
            Action::Rename { address } => Request::Rename { address: *address, name },
        };
        let id = self.next_call;
        self.next_call += 1;
        self.calls.insert(id, Call { key, action, root, name: at, expires: self.now + TIMEOUT });
        let due = self.now + self.delay();
        self.network.push(Message { due, call: id, request: Some(request), answer: None });
    }

    /// Turns the answer to a call, or its time-out, into an event.
    fn finish(&mut self, id: u64, answer: Option<Answer>) {
        let Some(Call { key, action, root, name, .. }) = self.calls.remove(&id) else { return };
        let now = self.now;
        match &answer {
            None => self.fleet.link_failed(now, Outage::Unreachable, action.request(), None),
            Some(Answer::Full) => {
                self.losses += 1;
                self.fleet.link_failed(now, Outage::Full, action.request(), None);
            }
            Some(_) => drop(self.fleet.link_succeeded(action.request())),
        }
        let Some(file) = self.known.get_mut(&key) else {
            self.fleet.answer(now, key, None);
            return;
        };
        let failure = match &answer {
            Some(Answer::Offset(offset)) => Failure::OffsetMismatch { offset: *offset },
            Some(Answer::Damaged) => Failure::Damaged,
            Some(Answer::Lost) => Failure::Lost,
            _ => Failure::Transient,
        };
        let event = match (action, answer) {
            (Action::Create { .. }, Some(Answer::Created(address))) => {
                self.ledger.uploads.insert(file.name.clone(), (address, name));
                Event::Created(address)
            }
            (Action::SendWhole { .. }, Some(Answer::Created(address))) => {
                let (root, size) = root.unwrap_or((blake3::hash(b""), 0));
                Event::SentWhole { address, root, size }
            }
            (Action::Resume { .. }, Some(Answer::State { bytes, length })) => {
                file.reading = Reading {
                    handle: self.files.names.get(&file.name).cloned(),
                    sent: bytes.clone(),
                    kept: BTreeMap::new(),
                };
                let seen = self.files.observe(&file.name);
                Event::Resumed(resumption(&file.reading, &bytes, length, seen))
            }
            (Action::Send { generation, segment, .. }, Some(Answer::Appended)) => {
                file.reading.kept.remove(&(generation, segment.start));
                Event::Acknowledged { generation, start: segment.start }
            }
            (Action::Send { generation, segment, .. }, _) => {
                Event::SegmentFailed { generation, start: segment.start, failure }
            }
            (Action::Seal { .. }, Some(Answer::Sealed)) => Event::Sealed,
            (Action::Await { .. }, Some(Answer::Stored(root))) => Event::Stored { root: Some(root) },
            (Action::Retire { .. }, Some(Answer::Retired)) => Event::Retired,
            (Action::Rename { address }, Some(Answer::Renamed)) => {
                self.ledger.uploads.insert(file.name.clone(), (address, name.clone()));
                // The file may have been renamed once more.
                if file.name != name {
                    self.fleet.answer(now, key, Some(Event::Failed(Failure::Transient)));
                    return;
                }
                self.fleet.answer(now, key, None);
                return;
            }
            _ => Event::Failed(failure),
        };
        self.fleet.answer(now, key, Some(event));
        self.record(key);
    }

    /// Writes to the ledger that a file was delivered, or that its upload is no more.
    fn record(&mut self, key: FileKey) {
        let (Some(transfer), Some(file)) = (self.fleet.get(key), self.known.get(&key)) else { return };
        if let (Some(delivery), Some(observed)) = (transfer.delivery(), transfer.observed()) {
            assert!(
                self.archive.versions[&file.name]
                    .iter()
                    .any(|bytes| Some(blake3::hash(bytes)) == delivery.root),
                "{} is reported as delivered and is not",
                file.name
            );
            self.ledger.delivered.insert(file.name.clone(), (*observed, delivery));
        }
        if transfer.address().is_none() {
            self.ledger.uploads.remove(&file.name);
        }
        if let Some(address) = transfer.address()
            && let Some(bytes) = self.archive.bytes_of(*address)
        {
            assert!(transfer.acknowledged() <= bytes.len() as u64, "acknowledged bytes are gone");
        }
    }
}

fn read(reading: &mut Reading, generation: u32, segment: Segment) -> Option<Vec<u8>> {
    let key = (generation, segment.start);
    if segment.is_again {
        return reading.kept.get(&key).cloned();
    }
    let handle = reading.handle.as_ref()?.borrow();
    let (start, end) = (segment.start as usize, (segment.start + segment.length) as usize);
    let bytes = handle.bytes.get(start..end)?.to_vec();
    assert_eq!(reading.sent.len(), start, "segments are read in order");
    reading.sent.extend(&bytes);
    reading.kept.insert(key, bytes.clone());
    Some(bytes)
}

fn compare(reading: &Reading, size: u64) -> Comparison {
    let sent = &reading.sent[..size as usize];
    let root = blake3::hash(sent);
    match &reading.handle {
        None => Comparison::Unreadable { root },
        Some(inode) => {
            let bytes = &inode.borrow().bytes;
            if bytes.len() as u64 > size && bytes[..size as usize] == *sent {
                Comparison::Grown(inode.borrow().observe())
            } else if bytes == sent {
                Comparison::Equal { root, observed: inode.borrow().observe() }
            } else {
                Comparison::Changed
            }
        }
    }
}

fn resumption(
    reading: &Reading,
    archived: &[u8],
    length: Option<u64>,
    seen: Option<Observation>,
) -> Resumption {
    let (Some(inode), Some(observed)) = (&reading.handle, seen) else {
        return Resumption::Unreadable { offset: archived.len() as u64 };
    };
    let bytes = &inode.borrow().bytes;
    match length {
        Some(_) if bytes == archived => {
            Resumption::Sealed { root: blake3::hash(bytes), size: bytes.len() as u64, observed }
        }
        Some(_) => Resumption::Settled,
        None if bytes.starts_with(archived) => {
            Resumption::Matches { offset: archived.len() as u64, length: None }
        }
        None => Resumption::Differs,
    }
}
