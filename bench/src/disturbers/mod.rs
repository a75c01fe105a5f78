//! What disturbs a recorder at its guaranteed rate: clients that stop, dawdle, crowd or scribble, logs that are full,
//! other work on the cores and in the memory, a drive that stalls. Which cases there are is in `case.rs`, how one is
//! played in `play.rs`. The verdict is about bytes; how fast anything is, is not asked here.

pub mod books;
pub mod case;
pub mod clients;
pub mod machine;
pub mod play;
pub mod scene;
