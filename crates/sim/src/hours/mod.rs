//! Hours of a ring's life in milliseconds: the product's own admission and schedule over an emulated drive,
//! with payloads that are only counted. Slots, quanta and commits are events; the input is a fluid.
//!
//! A `Scene` says what there is, all of it drawn from a seed; `play` lets the hours pass and says what was lost. Bytes on
//! a failing disk are not looked at here: the `world` does that.

mod bounds;
mod capture;
mod intake;
mod lane;
mod play;
mod reader_fairness;
mod readers;
mod scene;
mod seeds;
mod source;

pub use bounds::{Shares, Tightness};
pub use intake::Wild;
pub use play::{Verdict, play, play_under};
pub use readers::{Habit, Reader};
pub use scene::{Places, Scene};
pub use source::{Burst, Lull, Stream};
