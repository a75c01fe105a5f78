//! Mounts of other programs beside those of Holdfast, with the stand of the bench `mount`.

pub use super::mount::bench_peers as bench;
