//! The seeded world for tests: a ring on a disk that fails as told, in virtual time, beside a naive model of what it must
//! hold. Never in the product.
//!
//! Here belong the world, the model and their comparison. What is shown with them, promise by promise, is in `tests`.
#![forbid(unsafe_code)]

mod attributes;
mod content;
mod crash;
pub mod fixture;
mod hours;
mod model;
mod observe;
mod op;
mod recorder;
pub mod samples;
mod shrink;
mod sparse;
mod view;
mod world;

pub use attributes::schema;
pub use content::Content;
pub use crash::Bound;
pub use hours::{
    Burst, Habit, Lull, Places, Reader, Scene, Shares, Stream, Tightness, Verdict, Wild, play, play_under,
};
pub use model::{Before, Model, ModelHold, ModelSlot, Preambles, Pushed, Stage, Swap};
pub use observe::{RingSnapshot, prefix, same_rows};
pub use op::{Diet, Doom, Op, ops};
pub use recorder::Recorder;
pub use shrink::{SeedReport, check, run, seeds};
pub use sparse::SparseDisk;
pub use view::{SeenRow, SeenSlot, Survey, SurveyedSlot, read_slot, survey, survey_disk};
pub use world::{Setup, World};
