//! Proof of a ring's guarantee: what is sent and how it is checked (`pattern`, `tally`), in which stages (`stages`), what is
//! concluded (`verdict`) and how it is told (`report`) are pure; the source (`source`), the readers (`readers`) and the
//! recorder's process (`recording`) do what is to be measured; `run` puts the stages in order.

mod drive;
mod pattern;
mod read_back;
mod readers;
mod recording;
mod report;
mod ring;
mod run;
mod source;
mod stages;
mod tally;
mod verdict;

pub use report::{Proof, ProofResult, ProvedDevice, ProvedRing, ProvedTerms, ProvingMachine};
pub use ring::{Subject, empty};
pub use run::{Progress, ProofRun, prove};
pub use stages::StageKind;
pub use verdict::{BurstResult, Measured, ReadBack, ReaderResult, StageResult, Verdict};
