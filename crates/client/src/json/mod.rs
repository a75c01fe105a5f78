//! JSON shapes of results: what commands, a server and Python give programs. Their fields are promised, and listed in
//! `docs/commands.md`. Results of planning and proving are shapes of `planning`.

mod act;
mod condition_hold;
mod counters;
mod figures;
mod guarantee;

pub use act::Act;
pub use condition_hold::{DistilledSlots, HoldProgress, UnseenElements};
pub use counters::Counters;
pub use figures::FiguresJson;
pub use guarantee::{AttributeLoad, Guarantee, GuaranteeFigures};
pub use holdfast_export::json::{Gap, time, time_if};
