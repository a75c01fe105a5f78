//! Reads under way, by tag: those that came early are kept until they are asked for.

use super::access::{Access, Got, Want};
use crate::LinkError;
use holdfast_media::Buffer;
use std::collections::{BTreeMap, BTreeSet};

/// An access and what it owes us.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) access: Access,
    next: u64,
    under_way: usize,
    ready: BTreeMap<u64, Got>,
    /// Asked for, and not wanted any more.
    forgotten: BTreeSet<u64>,
}

impl Pump {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, next: 0, under_way: 0, ready: BTreeMap::new(), forgotten: BTreeSet::new() }
    }

    /// Asks for a piece; its tag is what to ask for later.
    pub(crate) fn submit(&mut self, want: Want) -> Result<u64, LinkError> {
        let tag = self.next;
        self.next += 1;
        let buffer = self.access.take(want.len)?;
        self.access.submit(tag, want, buffer)?;
        self.under_way += 1;
        Ok(tag)
    }

    /// Whether as many reads are under way as are of use.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way >= self.access.at_once()
    }

    /// Takes what has come, without waiting.
    pub(crate) fn poll(&mut self) -> Result<(), LinkError> {
        while self.under_way > 0 && self.one(false)? {}
        Ok(())
    }

    fn one(&mut self, wait: bool) -> Result<bool, LinkError> {
        let Some((tag, got)) = self.access.complete(wait)? else { return Ok(false) };
        self.under_way -= 1;
        if !self.forgotten.remove(&tag) {
            self.ready.insert(tag, got);
        } else if let Got::Bytes(buffer) = got {
            self.give(buffer);
        }
        Ok(true)
    }

    /// Whether the answer is there.
    pub(crate) fn is_ready(&self, tag: u64) -> bool {
        self.ready.contains_key(&tag)
    }

    /// Waits until the answer is there.
    pub(crate) fn settle(&mut self, tag: u64) -> Result<(), LinkError> {
        while !self.is_ready(tag) {
            self.one(true)?;
        }
        Ok(())
    }

    /// Drops an answer that is not wanted any more, now or when it comes.
    pub(crate) fn forget(&mut self, tag: u64) {
        match self.ready.remove(&tag) {
            Some(Got::Bytes(buffer)) => self.give(buffer),
            Some(_) => {}
            None => {
                self.forgotten.insert(tag);
            }
        }
    }

    /// Waits for the answer.
    pub(crate) fn wait(&mut self, tag: u64) -> Result<Got, LinkError> {
        loop {
            if let Some(got) = self.ready.remove(&tag) {
                return Ok(got);
            }
            self.one(true)?;
        }
    }

    /// Asks for a piece and waits for it.
    pub(crate) fn fetch(&mut self, want: Want) -> Result<Got, LinkError> {
        let tag = self.submit(want)?;
        self.wait(tag)
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Buffer) {
        self.access.give(buffer);
    }

    /// Forgets everything asked for: waits for what is under way and drops it.
    pub(crate) fn drain(&mut self) -> Result<(), LinkError> {
        while self.under_way > 0 {
            self.one(true)?;
        }
        while let Some((_, got)) = self.ready.pop_first() {
            if let Got::Bytes(buffer) = got {
                self.give(buffer);
            }
        }
        Ok(())
    }
}
