//! Sparse disk in memory: it keeps only what is not zero, so that a large ring with little in each slot fits;
//! it counts its requests. No faults, no time.

use holdfast_base::BLOCK;
use holdfast_media::{Completion, Disk, DiskInfo, Medium, Op, Request};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Requests in flight at most.
const DEPTH: usize = 64;

/// What is kept or left out as one.
const CELL: usize = 64;

/// Where in a block a kept stretch begins, and its bytes.
type Stretch = (usize, Box<[u8]>);

/// The disk.
#[derive(Debug)]
pub struct SparseDisk {
    info: DiskInfo,
    /// By number of the block.
    blocks: BTreeMap<u64, Vec<Stretch>>,
    /// How often they are asked for in vain, and whether they are reads.
    done: VecDeque<(u32, bool, Completion)>,
    /// How many times a completion is asked for in vain.
    pub lag: u32,
    /// Reads so far: offset and length.
    pub reads: Vec<(u64, usize)>,
    /// Writes so far.
    pub writes: u64,
    /// Most reads under way when one was asked for: without a write under way, and beside one.
    pub reads_at_once: [usize; 2],
}

impl SparseDisk {
    /// A disk of `bytes` zeros.
    pub fn new(bytes: u64) -> Self {
        let info = DiskInfo {
            name: "sparse memory".to_owned(),
            medium: Medium::Memory,
            bytes,
            block: BLOCK,
            depth: DEPTH,
            direct: true,
        };
        Self {
            info,
            blocks: BTreeMap::new(),
            done: VecDeque::new(),
            lag: 0,
            reads: Vec::new(),
            writes: 0,
            reads_at_once: [0; 2],
        }
    }

    /// The same contents, as after a power cut.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { blocks: self.blocks.clone(), ..Self::new(self.info.bytes) }
    }

    /// What stands somewhere.
    pub fn range(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.read(offset, &mut bytes);
        bytes
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        for (number, block) in data.chunks(BLOCK).enumerate() {
            let mut kept: Vec<(usize, Vec<u8>)> = Vec::new();
            for (cell, bytes) in block.chunks(CELL).enumerate().filter(|(_, c)| c.iter().any(|b| *b != 0)) {
                let at = cell * CELL;
                match kept.last_mut() {
                    Some((start, run)) if *start + run.len() == at => run.extend_from_slice(bytes),
                    _ => kept.push((at, bytes.to_vec())),
                }
            }
            let kept = kept.into_iter().map(|(at, run)| (at, run.into_boxed_slice())).collect();
            self.blocks.insert(offset / BLOCK as u64 + number as u64, kept);
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        for (number, block) in into.chunks_mut(BLOCK).enumerate() {
            let kept = self.blocks.get(&(offset / BLOCK as u64 + number as u64));
            for (at, run) in kept.into_iter().flatten() {
                block[*at..at + run.len()].copy_from_slice(run);
            }
        }
    }
}

impl Disk for SparseDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.done.len() >= DEPTH {
            return Err(request);
        }
        let is_read = matches!(request.op, Op::Read { .. });
        let buffer = match request.op {
            Op::Write { offset, buffer, len, .. } => {
                self.writes += 1;
                self.write(offset, &buffer[..len]);
                Some(buffer)
            }
            Op::Read { offset, mut buffer, len } => {
                self.reads.push((offset, len));
                let reads = self.done.iter().filter(|(_, is_read, _)| *is_read).count();
                let most = &mut self.reads_at_once[usize::from(reads < self.done.len())];
                *most = (*most).max(reads + 1);
                self.read(offset, &mut buffer[..len]);
                Some(buffer)
            }
            Op::Flush | Op::Measure => None,
        };
        self.done.push_back((self.lag, is_read, Completion { tag: request.tag, buffer, result: Ok(()) }));
        Ok(())
    }

    fn complete(&mut self, _wait: Duration) -> Option<Completion> {
        if self.done.front().is_some_and(|(lag, ..)| *lag == 0) {
            return self.done.pop_front().map(|(.., done)| done);
        }
        self.done.iter_mut().for_each(|(lag, ..)| *lag = lag.saturating_sub(1));
        None
    }
}
