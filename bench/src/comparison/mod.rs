//! Recorders and file systems side by side on the emulated drive: what the published comparison did (Bigelow, Brandt,
//! Bent and Chen, "Mahanaxar", §VII, VIII), with today's contestants. A **cell** is one run: a contestant, a size of
//! element, what a reader asks for, on a fresh or an aged partition. What cells are there is in `cell`, what one came
//! to and where that is kept in `outcome`; `stand` is the drive, `tally` counts, `runner` runs a cell;
//! `holdfast`, `opponent` (with `flat_files` and `database`) are the contestants; `zones` measures the drive itself; `figures` draws.

pub mod cell;
pub mod database;
pub mod figures;
pub mod flat_files;
pub mod holdfast;
pub mod opponent;
pub mod outcome;
pub mod runner;
pub mod stand;
pub mod tally;
pub mod zones;

/// Bytes of a MiB, for rates.
pub const MIB: f64 = 1_048_576.0;
