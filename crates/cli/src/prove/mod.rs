//! Proving a ring's guarantee: what is sent and how it is checked (`pattern`, `tally`), in which stages (`stages`), what is
//! concluded (`verdict`) and how it is told (`report`) are pure; the source (`source`), the readers (`readers`) and the
//! recorder's process (`recording`) do what is to be measured. In which order, and what becomes of the ring, is the
//! command's.

pub(crate) mod drive;
pub(crate) mod pattern;
pub(crate) mod read_back;
pub(crate) mod readers;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod ring;
pub(crate) mod source;
pub(crate) mod stages;
pub(crate) mod tally;
pub(crate) mod verdict;
