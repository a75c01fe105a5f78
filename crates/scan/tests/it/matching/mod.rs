//! Modules `approx` and `bio` beside naive references over generated items, divided in all ways (promise 5).

mod approximate;
mod biology;
pub(crate) mod common;
mod formats;
mod genome;
mod long;
mod naive;
