//! Queue of outstanding reads, by tag. It keeps early answers until their turn, and takes requests ahead of use.

use super::access::Access;
use super::live::{AHEAD, MOST_AHEAD};
use super::read_request::{ReadOutcome, ReadRequest};
use crate::ReaderError;
use holdfast_base::Sequence;
use holdfast_media::Buffer;
use std::collections::{BTreeMap, BTreeSet};

/// An access and what it owes us.
#[derive(Debug)]
pub(crate) struct ReadQueue {
    pub(crate) access: Access,
    next: u64,
    /// Bytes that were asked for.
    pub(crate) asked: u64,
    under_way: usize,
    ready: BTreeMap<u64, ReadOutcome>,
    /// Asked for, and not wanted any more.
    forgotten: BTreeSet<u64>,
    /// Asked for before anybody wanted it.
    ahead: Vec<(ReadRequest, u64)>,
}

impl ReadQueue {
    pub(crate) fn new(access: Access) -> Self {
        let (ready, forgotten) = (BTreeMap::new(), BTreeSet::new());
        Self { access, next: 0, asked: 0, under_way: 0, ready, forgotten, ahead: Vec::new() }
    }

    /// Asks for a piece; its tag is what to ask for later.
    pub(crate) fn submit(&mut self, want: ReadRequest) -> Result<u64, ReaderError> {
        match self.ahead.iter().position(|(ahead, _)| *ahead == want) {
            Some(at) => Ok(self.ahead.swap_remove(at).1),
            None => self.ask(want),
        }
    }

    /// Asks for a piece that is wanted later, once; `false`: enough has been asked for ahead.
    pub(crate) fn ahead(&mut self, want: ReadRequest) -> Result<bool, ReaderError> {
        self.poll()?;
        if self.ahead.iter().any(|(ahead, _)| *ahead == want) {
            return Ok(true);
        }
        let of_slot = self.ahead.iter().filter(|(ahead, _)| ahead.sequence == want.sequence);
        let asked: usize = of_slot.map(|(ahead, _)| ahead.len).sum();
        if self.under_way >= MOST_AHEAD || asked > 0 && asked + want.len > AHEAD {
            return Ok(false);
        }
        let tag = self.ask(want)?;
        self.ahead.push((want, tag));
        Ok(true)
    }

    /// Drops what was asked for ahead of a slot.
    pub(crate) fn forget_ahead(&mut self, sequence: Sequence) {
        for (_, tag) in self.ahead.extract_if(.., |(want, _)| want.sequence == sequence).collect::<Vec<_>>() {
            self.forget(tag);
        }
    }

    fn ask(&mut self, want: ReadRequest) -> Result<u64, ReaderError> {
        let tag = self.next;
        self.next += 1;
        self.asked += want.len as u64;
        self.access.submit(tag, want)?;
        self.under_way += 1;
        Ok(tag)
    }

    /// Whether as many reads are under way as are of use, besides those ahead.
    pub(crate) fn is_busy(&self) -> bool {
        let ahead = self.ahead.iter().filter(|(_, tag)| !self.is_ready(*tag)).count();
        self.under_way - ahead >= self.access.at_once()
    }

    /// Takes what has come, without waiting.
    pub(crate) fn poll(&mut self) -> Result<(), ReaderError> {
        while self.under_way > 0 && self.one(false)? {}
        Ok(())
    }

    fn one(&mut self, wait: bool) -> Result<bool, ReaderError> {
        let Some((tag, got)) = self.access.complete(wait)? else { return Ok(false) };
        self.under_way -= 1;
        if !self.forgotten.remove(&tag) {
            self.ready.insert(tag, got);
        } else if let ReadOutcome::Bytes(buffer) = got {
            self.give(buffer);
        }
        Ok(true)
    }

    /// Whether the answer is there.
    pub(crate) fn is_ready(&self, tag: u64) -> bool {
        self.ready.contains_key(&tag)
    }

    /// Waits until the answer is there.
    pub(crate) fn settle(&mut self, tag: u64) -> Result<(), ReaderError> {
        while !self.is_ready(tag) {
            self.one(true)?;
        }
        Ok(())
    }

    /// Drops an answer that is not wanted any more, now or when it comes.
    pub(crate) fn forget(&mut self, tag: u64) {
        match self.ready.remove(&tag) {
            Some(ReadOutcome::Bytes(buffer)) => self.give(buffer),
            Some(_) => {}
            None => {
                self.forgotten.insert(tag);
            }
        }
    }

    /// Waits for the answer.
    pub(crate) fn wait(&mut self, tag: u64) -> Result<ReadOutcome, ReaderError> {
        loop {
            if let Some(got) = self.ready.remove(&tag) {
                return Ok(got);
            }
            self.one(true)?;
        }
    }

    /// Asks for a piece and waits for it.
    pub(crate) fn fetch(&mut self, want: ReadRequest) -> Result<ReadOutcome, ReaderError> {
        let tag = self.submit(want)?;
        self.wait(tag)
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Buffer) {
        self.access.give(buffer);
    }

    /// Forgets everything asked for: waits for what is under way and drops it.
    pub(crate) fn drain(&mut self) -> Result<(), ReaderError> {
        self.ahead.clear();
        while self.under_way > 0 {
            self.one(true)?;
        }
        while let Some((_, got)) = self.ready.pop_first() {
            if let ReadOutcome::Bytes(buffer) = got {
                self.give(buffer);
            }
        }
        Ok(())
    }
}
