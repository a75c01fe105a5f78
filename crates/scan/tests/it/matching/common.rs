//! Driver of a module over one item in blocks of any sizes, as the engine of scans does it; generators of data.

use holdfast_scan::{Block, Container, Division, Flow, Item, Module, ModuleError, Outputs};
use proptest::prelude::*;
use std::sync::Arc;

/// Results of a module over one item, and the error that ended it.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome<O> {
    pub(crate) outputs: Vec<O>,
    pub(crate) error: Option<ModuleError>,
}

/// Runs a module over an item that is divided into blocks; `sizes` are their sizes, used in turn. Without sizes, or for one that
/// exceeds the item, the item is one block.
pub(crate) fn run<M: Module>(module: &M, bytes: &[u8], sizes: &[usize]) -> Outcome<M::Output> {
    let container = Arc::new(Container::named("item"));
    let mut outputs = Outputs::default();
    let error = divided(module, Item::whole(&container), bytes, sizes, &mut outputs).err();
    Outcome { outputs: outputs.into_results(), error }
}

/// Results of a module over an item without an error.
pub(crate) fn outputs<M: Module>(module: &M, bytes: &[u8], sizes: &[usize]) -> Vec<M::Output> {
    let outcome = run(module, bytes, sizes);
    assert_eq!(outcome.error, None);
    outcome.outputs
}

fn divided<M: Module>(
    module: &M,
    item: Item<'_>,
    bytes: &[u8],
    sizes: &[usize],
    outputs: &mut Outputs<'_, M::Output>,
) -> Result<(), ModuleError> {
    let (before, behind) = match module.division() {
        Division::Serial | Division::Lines => (0, 0),
        Division::Blocks { before, behind } => (before, behind),
    };
    let mut sizes = sizes.iter().copied().cycle();
    let mut blocks = Vec::new();
    let mut at = 0;
    loop {
        let to = bytes.len().min(at + sizes.next().unwrap_or(usize::MAX - at).max(1));
        let (from, until) = (at.saturating_sub(before), bytes.len().min(to + behind));
        blocks.push(Block {
            item,
            bytes: &bytes[from..until],
            offset: from as u64,
            own: at - from..to - from,
            first: at == 0,
            last: to == bytes.len(),
            piece: None,
        });
        at = to;
        if at == bytes.len() {
            break;
        }
    }
    // Two workers take blocks in an order that is not that of the item.
    let mut workers = [module.worker()?, module.worker()?];
    let mut partials: Vec<_> = blocks.iter().map(|_| None).collect();
    for number in (0..blocks.len()).rev() {
        partials[number] = Some(module.examine(&mut workers[number % 2], &blocks[number])?);
    }
    let mut state = module.start(&item)?;
    for (block, partial) in blocks.iter().zip(partials) {
        if module.fold(&mut state, block, partial.unwrap(), outputs)? == Flow::Enough {
            break;
        }
    }
    module.end(&item, state, outputs)
}

/// Sizes of blocks: one block, tiny ones, or ones of some hundred bytes.
pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(1_usize..8, 1..6),
        prop::collection::vec(1_usize..400, 1..6),
    ]
}

/// Text of some letters with damaged copies of a pattern in it, also at both ends.
pub(crate) fn text_around(
    pattern: Vec<u8>,
    letters: &'static [u8],
    length: usize,
) -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(letters);
    let noise = prop::collection::vec(letter.clone(), 0..length);
    let edit = (0_usize..1000, 0_u8..3, letter);
    let copy = prop::collection::vec(edit, 0..4).prop_map(move |edits| {
        let mut copy = pattern.clone();
        for (place, kind, letter) in edits {
            let place = place % (copy.len() + 1);
            match kind {
                0 => copy.insert(place, letter),
                1 if place < copy.len() => copy[place] = letter,
                _ if place < copy.len() => drop(copy.remove(place)),
                _ => {}
            }
        }
        copy
    });
    prop::collection::vec(prop_oneof![noise, copy], 0..6).prop_map(|parts| parts.concat())
}

/// Pseudo-random numbers (xorshift), the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    pub(crate) fn letters(&mut self, letters: &[u8], count: usize) -> Vec<u8> {
        (0..count).map(|_| letters[self.below(letters.len())]).collect()
    }
}
