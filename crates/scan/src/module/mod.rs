//! Modules: the processing that a scan runs over the contents of items. One file a module.

pub(crate) mod approximate;
pub(crate) mod biology;
pub(crate) mod crypt;
pub(crate) mod hash;
pub(crate) mod search;
pub(crate) mod statistics;
pub(crate) mod wasm;

use crate::item::Item;
use std::time::Instant;

/// Way in which a module takes items that exceed a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// In order: folding does the work, and one item is processed on one core.
    Serial,
    /// In blocks that are examined on all cores at once.
    Blocks {
        /// Bytes in front of its own that a block shows, where the item has them.
        before: usize,
        /// Bytes behind its own that a block shows, where the item has them.
        behind: usize,
    },
    /// In blocks of whole lines, examined on all cores at once. Only a line longer than [`Options::longest_line`] is divided:
    /// into pieces that overlap.
    ///
    /// [`Options::longest_line`]: crate::Options::longest_line
    Lines,
}

impl Division {
    /// Bytes in front of its own and behind them that a block shows, where the item has them.
    pub(crate) fn margins(self) -> (usize, usize) {
        match self {
            Self::Serial | Self::Lines => (0, 0),
            Self::Blocks { before, behind } => (before, behind),
        }
    }
}

/// Piece of a line that exceeds the longest line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// True if the line begins at the block's own bytes.
    pub begins: bool,
    /// True if the line ends at the end of the block's own bytes.
    pub ends: bool,
    /// Bytes by which pieces overlap: a quarter of the longest line.
    pub overlap: usize,
}

/// Bytes of an item, as a module sees them.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// Item that has the bytes.
    pub item: Item<'a>,
    /// Own bytes, and those around them that the division asks for.
    pub bytes: &'a [u8],
    /// Offset of the first byte in the item.
    pub offset: u64,
    /// Range of `bytes` that this block answers for: own ranges of all blocks make up the item.
    pub own: std::ops::Range<usize>,
    /// True for the first block of an item.
    pub first: bool,
    /// True for the last block of an item.
    pub last: bool,
    /// Piece of one long line that the block is; `None`: its own bytes are whole lines, or it is not divided by lines.
    pub piece: Option<Piece>,
}

impl Block<'_> {
    /// Bytes that this block answers for.
    pub fn own_bytes(&self) -> &[u8] {
        &self.bytes[self.own.clone()]
    }
}

/// Decision of a module after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next block is wanted.
    Continue,
    /// The rest of the item is not wanted.
    Enough,
}

/// Bytes of results that wait for the output at most.
const MOST_WAITING: usize = 256 << 10;

/// Way of results to the output.
type Way<'a, O> = &'a (dyn Fn(Vec<O>) + 'a);

/// Results of a module on their way to the output, and the time that a module spent writing by itself.
pub struct Outputs<'a, O> {
    pub(crate) results: Vec<O>,
    /// Bytes of the results.
    waiting: usize,
    /// Way on which results leave early; `None`: all of them wait.
    way: Option<Way<'a, O>>,
    pub(crate) seconds: f64,
    /// Limits of the module that the item met.
    pub(crate) warnings: Vec<String>,
}

impl<O> Default for Outputs<'_, O> {
    fn default() -> Self {
        Self { results: Vec::new(), waiting: 0, way: None, seconds: 0.0, warnings: Vec::new() }
    }
}

impl<'a, O> Outputs<'a, O> {
    /// Results that leave for the output when they are many.
    pub(crate) fn leaving(way: Way<'a, O>) -> Self {
        Self { way: Some(way), ..Self::default() }
    }

    /// Adds a result to the others.
    pub fn push(&mut self, result: O) {
        self.push_sized(result, 0);
    }

    /// Adds a result that has so many bytes elsewhere.
    pub fn push_sized(&mut self, result: O, bytes: usize) {
        self.results.push(result);
        self.waiting += size_of::<O>() + bytes;
        if let Some(way) = self.way.filter(|_| self.waiting >= MOST_WAITING) {
            self.waiting = 0;
            let results = std::mem::take(&mut self.results);
            self.writing(|| way(results));
        }
    }

    /// Reports that the results of the item may be incomplete; the item goes on.
    pub fn warn(&mut self, reason: String) {
        self.warnings.push(reason);
    }

    /// The result that was added last, if it still waits.
    pub fn last_mut(&mut self) -> Option<&mut O> {
        self.results.last_mut()
    }

    /// All results so far.
    pub fn into_results(self) -> Vec<O> {
        self.results
    }

    /// Writes to an output of the module's own: its time counts as that of the output.
    pub fn writing<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let written = write();
        self.seconds += began.elapsed().as_secs_f64();
        written
    }
}

/// Failure of a module over one item, in words: the scan goes on with the next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModuleError(pub String);

/// Processing that a scan runs over items.
///
/// An item begins with `start` and ends with `end`. Each of its blocks goes to `examine` on any core, in any order, then to
/// `fold` in the order of the item.
pub trait Module: Send + Sync {
    /// Scratch memory of a worker thread.
    type Worker;
    /// Result of examining one block.
    type Partial: Send;
    /// State of one item.
    type State: Send;
    /// Results of the module, mergeable in any order.
    type Output: Send;

    /// Way in which items that exceed a buffer are taken.
    fn division(&self) -> Division;

    /// Makes the scratch memory of a worker thread.
    fn worker(&self) -> Result<Self::Worker, ModuleError>;

    /// Examines a block on its own.
    fn examine(&self, worker: &mut Self::Worker, block: &Block<'_>) -> Result<Self::Partial, ModuleError>;

    /// Begins to process an item.
    fn start(&self, item: &Item<'_>) -> Result<Self::State, ModuleError>;

    /// Adds a block to its item, in order.
    fn fold(
        &self,
        state: &mut Self::State,
        block: &Block<'_>,
        partial: Self::Partial,
        out: &mut Outputs<'_, Self::Output>,
    ) -> Result<Flow, ModuleError>;

    /// Ends an item, of which all was folded or enough was seen.
    fn end(
        &self,
        item: &Item<'_>,
        state: Self::State,
        out: &mut Outputs<'_, Self::Output>,
    ) -> Result<(), ModuleError>;
}
