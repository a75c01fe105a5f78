//! Disturbances of a recorder at its guaranteed rate: clients that stop, dawdle, crowd or scribble, full logs, other
//! work on the cores and in the memory, a drive that stalls. `case.rs` lists the cases, `runner.rs` runs one. The
//! verdict is about bytes; no time is judged here.

pub mod case;
pub mod clients;
pub mod machine_load;
pub mod ring_contents;
pub mod runner;
pub mod scene;
