//! Runs of the comparison and their names.

use holdfast_media::Seed;
use std::fmt;

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    /// The format of old: no journal.
    Ext2,
    /// With journal, extents and delayed allocation.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// As `mount` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// How flat files are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// Each new element overwrites the file of the oldest.
    InPlace,
    /// The file of the oldest is deleted, and a new one made.
    Deleting,
    /// In place; the reader reads only while the writer has nothing to do.
    Priority,
    /// The same, past the page cache: stronger than what the paper tried.
    Direct,
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contestant {
    /// The recorder of Holdfast.
    Holdfast,
    /// A file an element.
    Flat(FileSystem, WritePolicy),
    /// A row an element, in `SQLite`.
    Database,
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holdfast => f.write_str("holdfast"),
            Self::Flat(kind, manner) => {
                f.write_str(kind.name())?;
                f.write_str(match manner {
                    WritePolicy::InPlace => "",
                    WritePolicy::Deleting => "-deleting",
                    WritePolicy::Priority => "-priority",
                    WritePolicy::Direct => "-direct",
                })
            }
            Self::Database => f.write_str("sqlite"),
        }
    }
}

/// Sizes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementSize {
    /// All the same.
    Fixed(u64),
    /// From 4 KiB to 4 MiB, each order of magnitude as often.
    Varied,
}

impl ElementSize {
    /// The least and the most of [`Size::Varied`].
    const VARIED: (u64, u64) = (4 << 10, 4 << 20);

    /// On average.
    pub fn mean(self) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Varied => {
                let (least, most) = Self::VARIED;
                ((most - least) as f64 / (most as f64 / least as f64).ln()) as u64
            }
        }
    }

    /// The next one.
    pub fn next(self, seed: &mut Seed) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Varied => {
                let (least, most) = Self::VARIED;
                let share = seed.below(1 << 20) as f64 / f64::from(1 << 20);
                (least as f64 * (most as f64 / least as f64).powf(share)) as u64
            }
        }
    }
}

impl fmt::Display for ElementSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) if bytes % MIB == 0 => write!(f, "{}MiB", bytes / MIB),
            Self::Fixed(bytes) if bytes % 1024 == 0 => write!(f, "{}KiB", bytes / 1024),
            Self::Fixed(bytes) => write!(f, "{bytes}B"),
            Self::Varied => f.write_str("varied"),
        }
    }
}

/// What the reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadDemand {
    /// MiB/s.
    Rate(u32),
    /// As much as it gets.
    All,
}

impl ReadDemand {
    /// Bytes a second, if it asks for less than all.
    pub fn bytes(self) -> Option<f64> {
        match self {
            Self::Rate(mib) => Some(f64::from(mib) * super::MIB),
            Self::All => None,
        }
    }
}

impl fmt::Display for ReadDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(mib) => write!(f, "{mib}"),
            Self::All => f.write_str("all"),
        }
    }
}

/// What the partition has been through before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionState {
    /// Nothing: the first cycle.
    Fresh,
    /// Filled to 99 %, and overwritten twice.
    Aged,
}

impl fmt::Display for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fresh => "fresh",
            Self::Aged => "aged",
        })
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Who.
    pub who: Contestant,
    /// Of elements.
    pub size: ElementSize,
    /// Of the partition.
    pub state: PartitionState,
    /// MiB/s that arrive.
    pub offer: u32,
    /// Of the reader.
    pub ask: ReadDemand,
}

impl Cell {
    /// Its file's name, without extension.
    pub fn key(&self) -> String {
        let Self { who, size, state, offer, ask } = self;
        format!("{who}_{size}_{state}_write-{offer}_read-{ask}")
    }

    /// Whether both can use the same prepared partition, one after the other.
    pub fn shares(&self, other: &Self) -> bool {
        self.state == PartitionState::Aged
            && (self.who, self.size, self.state) == (other.who, other.size, other.state)
    }
}

/// How many cells there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// None: for whoever runs all benches.
    None,
    /// A few, with everything small.
    Tiny,
    /// An hour.
    Daily,
    /// All: a few hours.
    All,
}

impl std::str::FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "tiny" => Ok(Self::Tiny),
            "daily" => Ok(Self::Daily),
            "all" => Ok(Self::All),
            other => Err(format!("HOLDFAST_CELLS={other}: none, tiny, daily or all is possible")),
        }
    }
}

const LARGE: ElementSize = ElementSize::Fixed(60 * MIB);
const MIDDLE: ElementSize = ElementSize::Fixed(MIB);

/// The paper's rate, MiB/s.
const OFFER: u32 = 60;

/// All cells of an extent, those that share a partition side by side.
pub fn cells(extent: Extent) -> Vec<Cell> {
    use Contestant::{Database, Flat, Holdfast};
    use WritePolicy::{Deleting, Direct, InPlace, Priority};
    let sweep: Vec<ReadDemand> = (0..=12).step_by(2).map(ReadDemand::Rate).chain([ReadDemand::All]).collect();
    let two = [ReadDemand::Rate(0), ReadDemand::All];
    let mut all = Vec::new();
    let mut add = |who, size, state, asks: &[ReadDemand]| {
        all.extend(asks.iter().map(|ask| Cell { who, size, state, offer: OFFER, ask: *ask }));
    };
    let files = [
        Flat(FileSystem::Ext2, InPlace),
        Flat(FileSystem::Ext4, InPlace),
        Flat(FileSystem::Xfs, InPlace),
        Flat(FileSystem::Ext2, Deleting),
        Flat(FileSystem::Ext2, Priority),
        Flat(FileSystem::Ext2, Direct),
    ];
    let (ext2, paper) = (files[0], files[4]);
    match extent {
        Extent::None => {}
        Extent::Tiny => {
            add(Holdfast, ElementSize::Fixed(64 << 10), PartitionState::Aged, &two);
            for who in [ext2, Flat(FileSystem::Ext2, Deleting), paper, files[5], Database] {
                add(who, ElementSize::Fixed(64 << 10), PartitionState::Aged, &[ReadDemand::All]);
            }
            add(Holdfast, ElementSize::Varied, PartitionState::Fresh, &[ReadDemand::All]);
        }
        Extent::Daily => {
            let few = [
                ReadDemand::Rate(0),
                ReadDemand::Rate(2),
                ReadDemand::Rate(6),
                ReadDemand::Rate(10),
                ReadDemand::All,
            ];
            for who in [Holdfast, ext2] {
                add(who, LARGE, PartitionState::Aged, &few);
            }
            for who in [Holdfast, paper] {
                add(who, LARGE, PartitionState::Fresh, &[ReadDemand::All]);
                add(who, MIDDLE, PartitionState::Aged, &two);
            }
            add(paper, LARGE, PartitionState::Aged, &[ReadDemand::All]);
            add(Holdfast, ElementSize::Fixed(20), PartitionState::Aged, &two);
            for who in [files[1], files[2], files[3], files[5], Database] {
                add(who, LARGE, PartitionState::Aged, &[ReadDemand::All]);
            }
        }
        Extent::All => {
            for who in [Holdfast].into_iter().chain(files).chain([Database]) {
                for size in [LARGE, MIDDLE] {
                    add(who, size, PartitionState::Aged, &sweep);
                }
                for size in [64 << 10, 4 << 10] {
                    add(who, ElementSize::Fixed(size), PartitionState::Aged, &two);
                }
            }
            add(Holdfast, ElementSize::Fixed(20), PartitionState::Aged, &two);
            // The paper's way of being strong, on the file systems of today.
            for kind in [FileSystem::Ext4, FileSystem::Xfs] {
                for size in [LARGE, MIDDLE] {
                    add(Flat(kind, Priority), size, PartitionState::Aged, &sweep);
                }
            }
            // Overwriting in place wants elements of one size; a file of 20 bytes takes 4 KiB.
            for who in [Holdfast, Flat(FileSystem::Ext2, Deleting), Database] {
                add(who, ElementSize::Varied, PartitionState::Aged, &two);
            }
            for who in [Holdfast, paper] {
                for size in [LARGE, MIDDLE] {
                    add(who, size, PartitionState::Fresh, &[ReadDemand::All]);
                }
            }
        }
    }
    // What the strongest opponent of the paper still takes of elements of 1 MiB, and what it can read then.
    let lower: &[u32] = match extent {
        Extent::All => &[55, 50, 45, 40, 38, 35, 30],
        Extent::Daily => &[45, 35],
        Extent::Tiny | Extent::None => &[],
    };
    all.extend(lower.iter().map(|offer| Cell {
        who: paper,
        size: MIDDLE,
        state: PartitionState::Aged,
        offer: *offer,
        ask: ReadDemand::All,
    }));
    group(all)
}

/// Brings together what shares a partition, in the order of the first of each.
fn group(all: Vec<Cell>) -> Vec<Cell> {
    let mut ordered: Vec<Cell> = Vec::with_capacity(all.len());
    for cell in all {
        let at = ordered.iter().rposition(|other| other.shares(&cell)).map_or(ordered.len(), |at| at + 1);
        ordered.insert(at, cell);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cell_has_a_name_of_its_own_and_partners_stand_together() {
        for extent in [Extent::Tiny, Extent::Daily, Extent::All] {
            let all = cells(extent);
            let names: HashSet<String> = all.iter().map(Cell::key).collect();
            assert_eq!(names.len(), all.len(), "{extent:?}");
            let mut parted = HashSet::new();
            for pair in all.windows(2).filter(|pair| !pair[0].shares(&pair[1])) {
                let Cell { who, size, state, .. } = pair[0];
                assert!(parted.insert((who, size, state)) || state == PartitionState::Fresh, "{:?}", pair[0]);
            }
        }
        assert!(cells(Extent::None).is_empty());
        assert!(cells(Extent::All).len() > 2 * cells(Extent::Daily).len());
    }

    #[test]
    fn a_day_s_cells_are_among_all() {
        let all: HashSet<Cell> = cells(Extent::All).into_iter().collect();
        for cell in cells(Extent::Daily) {
            assert!(all.contains(&cell), "{}", cell.key());
        }
    }

    #[test]
    fn varied_sizes_have_the_mean_that_is_told() {
        let mut seed = Seed::new(1);
        let count = 20_000;
        let sum: u64 = (0..count).map(|_| ElementSize::Varied.next(&mut seed)).sum();
        let mean = sum as f64 / f64::from(count);
        assert!((mean / ElementSize::Varied.mean() as f64 - 1.0).abs() < 0.05, "{mean}");
    }
}
