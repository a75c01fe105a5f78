//! Parts of the bench of sites: three sites behind links with latency, the three ways to keep their catalogs, the lag of
//! replication, and the paper's figures. Not here: the tables of the case (`cases/sites.rs`), and the link (`shipping`).

pub mod collaboration;
pub mod lag;
pub mod paper;
pub mod scenario;
