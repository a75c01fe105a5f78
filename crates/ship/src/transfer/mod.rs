//! State machine of one file's transfer to the archive.
//!
//! Events come in, actions go out; no I/O, no clock, no threads. The driver carries an action out and answers it with one
//! event. Here belong the rules for growing, rewritten, truncated, replaced, renamed and deleted files, and for resuming. Not
//! here: the end of a run (`end_rule`), the order of files and the state of the link (`fleet`).

mod action;
mod answers;
mod event;
mod flights;

pub use action::{Action, Segment};
pub use event::{Comparison, Event, Failure, Resumption};

use flights::Flights;
use std::time::Duration;

/// Failures of one segment after which the archive is asked for its state.
const MOST_RETRIES: u32 = 3;

/// Copies of one file that the archive may fail to store before the file counts as refused: damage on its disk is rare, but a
/// conflict of names stays.
const MOST_COPIES: u32 = 3;

/// Pause after a failure that follows a success.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Identity of a file on its device: stays when the file is renamed, changes when it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIdentity {
    /// Device of the file system.
    pub device: u64,
    /// Inode on the device.
    pub inode: u64,
}

/// Observation of a file: equal observations mean that nothing has been written between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Identity of the file.
    pub identity: FileIdentity,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last modification of the contents, in nanoseconds since 1970.
    pub modified: i64,
    /// Time of the last change of the inode, in nanoseconds since 1970; users cannot set it.
    pub changed: i64,
}

/// Rules of a transfer, equal for all files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Size of a block in bytes; also the greatest size of a file that is sent whole in one request.
    pub block: u64,
    /// Age of unsent bytes at which a segment shorter than a block is sent.
    pub lag: Duration,
    /// Segments of one upload that may be on their way together; 1 for servers that only append.
    pub window: usize,
    /// False for archives that must know the length of an upload at first: they get files after their end.
    pub can_defer: bool,
}

/// Contents that the archive holds as a verified version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// BLAKE3 of the contents; `None` until the archive tells the hash of a file that is gone.
    pub root: Option<blake3::Hash>,
    /// Size of the contents in bytes.
    pub size: u64,
    /// False when the archive cannot tell a hash of its copy.
    pub is_verified: bool,
    /// True when the file was deleted before its end could be read.
    pub is_cut: bool,
}

/// Stage of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing of the current contents is at the archive.
    Fresh,
    /// The archive makes an upload for the file with this identity.
    Creating(FileIdentity),
    /// The whole file is on its way in one request.
    Whole(Observation),
    /// The upload's state and the file's prefix are compared.
    Resuming { is_busy: bool },
    /// Segments are on their way.
    Sending(Flights),
    /// The file's contents are compared with the bytes that were sent.
    Comparing { size: u64, is_busy: bool },
    /// The upload gets its length.
    Sealing { delivery: Delivery, observed: Option<Observation>, is_busy: bool },
    /// The archive stores the upload.
    Awaiting { delivery: Delivery, observed: Option<Observation>, is_busy: bool },
    /// The upload is removed, because the file's contents are others.
    Retiring { is_busy: bool },
    /// The archive has the contents of this observation.
    Delivered { delivery: Delivery, observed: Option<Observation> },
    /// The file has changed in some way; its contents are compared with those that the archive has.
    Checking { delivery: Delivery },
    /// The archive refuses the file as it was observed.
    Refused(Option<Observation>),
}

/// Transfer of one file. `A` is the driver's address of an upload.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that are independent of each other and of the stage"
)]
pub struct Transfer<A> {
    stage: Stage,
    address: Option<A>,
    /// Length that the upload was made with.
    fixed: Option<u64>,
    observed: Option<Observation>,
    /// Time since which bytes wait that are fewer than a block.
    waiting_since: Option<Duration>,
    has_ended: bool,
    is_gone: bool,
    /// The file was rewritten while it was open: it is sent after its end only.
    is_rewritten: bool,
    must_rename: bool,
    /// Distinguishes answers to segments of this upload from late answers to earlier ones.
    generation: u32,
    /// Number of copies of the file that the archive could not store since the last delivery.
    failed_copies: u32,
    /// Failures since the last success.
    failures: u32,
    /// Time before which nothing is tried again.
    retry_at: Duration,
}

impl<A: Clone> Transfer<A> {
    /// Transfer of a file that the archive knows nothing of.
    pub fn new() -> Self {
        Self {
            stage: Stage::Fresh,
            address: None,
            fixed: None,
            observed: None,
            waiting_since: None,
            has_ended: false,
            is_gone: false,
            is_rewritten: false,
            must_rename: false,
            generation: 0,
            failed_copies: 0,
            failures: 0,
            retry_at: Duration::ZERO,
        }
    }

    /// Transfer that goes on with an upload of an earlier process.
    /// `is_renamed` tells that the upload has another path than the file.
    pub fn resumed(address: A, is_renamed: bool) -> Self {
        let stage = Stage::Resuming { is_busy: false };
        Self { stage, address: Some(address), must_rename: is_renamed, ..Self::new() }
    }

    /// Transfer of a file that was delivered as it was observed.
    pub fn delivered(observed: Observation, delivery: Delivery) -> Self {
        let stage = Stage::Delivered { delivery, observed: Some(observed) };
        Self { stage, observed: Some(observed), ..Self::new() }
    }

    /// Address of the upload at the archive.
    pub fn address(&self) -> Option<&A> {
        self.address.as_ref()
    }

    /// Newest observation of the file.
    pub fn observed(&self) -> Option<&Observation> {
        self.observed.as_ref()
    }

    /// Bytes that the archive has acknowledged of the current contents.
    pub fn acknowledged(&self) -> u64 {
        match &self.stage {
            Stage::Sending(flights) => flights.acknowledged(),
            Stage::Comparing { size, .. } => *size,
            Stage::Sealing { delivery, .. } | Stage::Awaiting { delivery, .. } => delivery.size,
            Stage::Delivered { delivery, .. } if !self.is_dirty() => delivery.size,
            _ => 0,
        }
    }

    /// Bytes of the file that the archive has not acknowledged.
    pub fn backlog(&self) -> u64 {
        let size = self.observed.filter(|_| !self.is_settled()).map_or(0, |seen| seen.size);
        size.saturating_sub(self.acknowledged())
    }

    /// True when nothing is left to do until the file changes.
    pub fn is_settled(&self) -> bool {
        match &self.stage {
            Stage::Delivered { .. } | Stage::Refused(_) => !self.is_dirty(),
            Stage::Fresh => self.is_gone,
            _ => false,
        }
    }

    /// Contents that the archive has of the file as it was observed last.
    pub fn delivery(&self) -> Option<Delivery> {
        match self.stage {
            Stage::Delivered { delivery, .. } if !self.is_dirty() => Some(delivery),
            _ => None,
        }
    }

    /// True when the archive refuses the file as it was observed last.
    pub fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Refused(_)) && !self.is_dirty()
    }

    /// True when the file has changed since it was delivered or refused.
    fn is_dirty(&self) -> bool {
        match &self.stage {
            Stage::Delivered { observed: at, .. } | Stage::Refused(at) => {
                !self.is_gone && self.observed.is_some() && *at != self.observed
            }
            _ => true,
        }
    }

    /// Time after `now` at which the transfer may act although nothing happens.
    pub fn wakes_at(&self, now: Duration, rules: &Rules) -> Option<Duration> {
        if self.is_settled() {
            return None;
        }
        let due = self.waiting_since.map(|since| since + rules.lag);
        let retry = (self.failures > 0).then_some(self.retry_at);
        // A time that has passed changed nothing: the transfer waits for an event.
        [due, retry].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Takes an event. `now` is the time since any fixed instant.
    pub fn take(&mut self, now: Duration, event: Event<A>) {
        match event {
            Event::Observed(seen) => self.observe(now, seen),
            Event::Ended => self.has_ended = true,
            Event::Gone => {
                self.is_gone = true;
                self.has_ended = true;
            }
            // Under another name the contents become another object.
            Event::Renamed => match self.stage {
                Stage::Fresh => {}
                Stage::Delivered { .. } | Stage::Refused(_) => self.start_over(),
                _ => self.must_rename = true,
            },
            Event::Created(address) => {
                if let Stage::Creating(identity) = self.stage {
                    self.begin(address, 0);
                    if self.observed.is_some_and(|seen| seen.identity != identity) {
                        self.retire();
                    }
                }
            }
            Event::Resumed(resumption) => self.resume(resumption),
            Event::Acknowledged { generation, start } => {
                if let (true, Stage::Sending(flights)) = (generation == self.generation, &mut self.stage) {
                    self.failures = 0;
                    flights.acknowledge(start);
                }
            }
            Event::SegmentFailed { generation, start, failure } => {
                if generation == self.generation {
                    self.segment_failed(now, start, failure);
                }
            }
            Event::Compared(comparison) => self.compare(now, comparison),
            Event::Sealed => {
                if let Stage::Sealing { delivery, observed, .. } = self.stage {
                    self.stage = Stage::Awaiting { delivery, observed, is_busy: false };
                }
            }
            Event::SentWhole { address, root, size } => {
                if let Stage::Whole(observed) = self.stage {
                    self.address = Some(address);
                    let delivery = Delivery { root: Some(root), size, is_verified: true, is_cut: false };
                    self.failures = 0;
                    self.stage = Stage::Awaiting { delivery, observed: Some(observed), is_busy: false };
                }
            }
            Event::Stored { root } => self.stored(root),
            Event::Retired => {
                if let Stage::Retiring { .. } = self.stage {
                    self.start_over();
                }
            }
            Event::Failed(failure) => self.failed(now, failure),
        }
    }

    fn observe(&mut self, now: Duration, seen: Observation) {
        if self.observed == Some(seen) {
            return;
        }
        let is_replaced = self.observed.is_some_and(|old| old.identity != seen.identity);
        self.is_gone = false;
        self.has_ended = false;
        self.observed = Some(seen);
        if self.waiting_since.is_none() && seen.size > 0 {
            self.waiting_since = Some(now);
        }
        // An action on its way ends as it was begun; what has changed meanwhile is found by hashes.
        if let Stage::Sending(flights) = &self.stage {
            let is_shorter = seen.size < flights.next();
            self.is_rewritten |= is_shorter;
            if is_shorter || is_replaced {
                self.retire();
            }
        }
    }

    fn begin(&mut self, address: A, offset: u64) {
        self.address = Some(address);
        self.failures = 0;
        self.generation += 1;
        self.stage = Stage::Sending(Flights::new(offset));
    }

    fn retire(&mut self) {
        self.generation += 1;
        self.stage = Stage::Retiring { is_busy: false };
    }

    fn start_over(&mut self) {
        self.address = None;
        self.must_rename = false;
        self.waiting_since.get_or_insert(Duration::ZERO);
        self.stage = Stage::Fresh;
    }

    /// Sends the whole file again, unless it was in vain too often.
    fn copy_failed(&mut self) {
        self.failed_copies += 1;
        if self.failed_copies < MOST_COPIES {
            self.retire();
        } else {
            self.failed_copies = 0;
            self.refuse();
        }
    }

    /// Takes a success of a rename.
    pub fn renamed(&mut self) {
        self.must_rename = false;
        self.failures = 0;
        if let Stage::Sending(flights) = &mut self.stage {
            flights.end_rename();
        }
    }

    /// Next action, or `None` until the next event. The driver must answer each action with one event.
    pub fn next(&mut self, now: Duration, rules: &Rules) -> Option<Action<A>> {
        if now < self.retry_at && self.failures > 0 {
            return None;
        }
        let is_dirty = self.is_dirty();
        match &mut self.stage {
            Stage::Fresh => self.first_action(now, rules),
            Stage::Refused(_) if is_dirty => {
                self.stage = Stage::Fresh;
                self.first_action(now, rules)
            }
            Stage::Delivered { .. } if is_dirty => self.check(now, rules),
            Stage::Creating(_)
            | Stage::Whole(_)
            | Stage::Checking { .. }
            | Stage::Delivered { .. }
            | Stage::Refused(_) => None,
            Stage::Sending(_) => self.next_segment(now, rules),
            Stage::Sealing { delivery, is_busy: false, .. } if self.must_rename && !delivery.is_cut => {
                self.stage = Stage::Sending(Flights::new(delivery.size));
                self.next_segment(now, rules)
            }
            Stage::Resuming { is_busy }
            | Stage::Comparing { is_busy, .. }
            | Stage::Sealing { is_busy, .. }
            | Stage::Awaiting { is_busy, .. }
            | Stage::Retiring { is_busy } => {
                if std::mem::replace(is_busy, true) {
                    return None;
                }
                let address = self.address.clone()?;
                Some(match self.stage {
                    Stage::Resuming { .. } => Action::Resume { address },
                    Stage::Comparing { size, .. } => Action::Compare { size },
                    Stage::Sealing { delivery, .. } => {
                        Action::Seal { address, length: delivery.size, has_length: self.fixed.is_some() }
                    }
                    Stage::Awaiting { delivery, .. } => Action::Await { address, delivery },
                    _ => Action::Retire { address },
                })
            }
        }
    }

    /// First action for a file that has changed since its delivery, be it in its contents or in its attributes alone.
    fn check(&mut self, now: Duration, rules: &Rules) -> Option<Action<A>> {
        let Stage::Delivered { delivery, .. } = self.stage else { return None };
        let observed = self.observed?;
        if observed.size != delivery.size {
            self.stage = Stage::Fresh;
            return self.first_action(now, rules);
        }
        if !self.has_ended {
            return None;
        }
        self.stage = Stage::Checking { delivery };
        Some(Action::Check { delivery })
    }

    fn first_action(&mut self, now: Duration, rules: &Rules) -> Option<Action<A>> {
        let observed = self.observed.filter(|_| !self.is_gone)?;
        if self.has_ended && observed.size <= rules.block {
            self.generation += 1;
            self.stage = Stage::Whole(observed);
            return Some(Action::SendWhole { size: observed.size });
        }
        let is_due = self.waiting_since.is_some_and(|since| now >= since + rules.lag);
        let has_bytes = observed.size >= rules.block || (observed.size > 0 && is_due);
        if self.has_ended || (has_bytes && !self.is_rewritten && rules.can_defer) {
            self.stage = Stage::Creating(observed.identity);
            self.fixed = (!rules.can_defer).then_some(observed.size);
            return Some(Action::Create { length: self.fixed });
        }
        None
    }

    fn next_segment(&mut self, now: Duration, rules: &Rules) -> Option<Action<A>> {
        let Stage::Sending(flights) = &mut self.stage else { return None };
        let address = self.address.clone()?;
        let generation = self.generation;
        if let Some(segment) = flights.resend() {
            return Some(Action::Send { address, generation, segment });
        }
        let size = self.observed.map_or(flights.next(), |seen| seen.size);
        let size = size.min(self.fixed.unwrap_or(size));
        let unsent = size.saturating_sub(flights.next());
        let is_due = self.has_ended
            || self.fixed.is_some()
            || self.waiting_since.is_some_and(|since| now >= since + rules.lag);
        if unsent > 0 && (unsent >= rules.block || is_due) {
            let segment = flights.launch(unsent.min(rules.block), rules.window)?;
            if unsent <= rules.block {
                self.waiting_since = None;
            }
            return Some(Action::Send { address, generation, segment });
        }
        if !flights.is_empty() {
            return None;
        }
        if self.must_rename {
            return flights.rename().then_some(Action::Rename { address });
        }
        if (self.has_ended || self.fixed.is_some()) && unsent == 0 {
            let size = flights.next();
            self.stage = Stage::Comparing { size, is_busy: true };
            return Some(Action::Compare { size });
        }
        None
    }
}

impl<A: Clone> Default for Transfer<A> {
    fn default() -> Self {
        Self::new()
    }
}
