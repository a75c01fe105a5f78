//! Recorders and file systems side by side on the emulated drive: what the published comparison did (Bigelow, Brandt,
//! Bent and Chen, "Mahanaxar", §VII, VIII), with today's contestants. A **cell** is one run: a contestant, a size of
//! element, what a reader asks for, on a fresh or an aged partition. What cells are there is in `cell`, what one came
//! to and where that is kept in `outcome`; `stand` is the drive, `tally` counts, `play` runs a cell; `ours`, `opponent`
//! (with `flat` and `database`) are the contestants; `zones` measures the drive itself; `figures` draws.

pub mod cell;
pub mod database;
pub mod figures;
pub mod flat;
pub mod opponent;
pub mod ours;
pub mod outcome;
pub mod play;
pub mod stand;
pub mod tally;
pub mod zones;

/// Bytes of a MiB, for rates.
pub const MIB: f64 = 1_048_576.0;
