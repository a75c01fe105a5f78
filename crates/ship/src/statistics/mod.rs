//! Statistics of archiving: block rates, histograms, production, totals, and the limiting stage.
//!
//! Everything is computed from rows that the shipper records per minute and per hour. Recording the rows
//! does not belong here (see the ledger), nor does drawing them (see `report`).

mod histogram;
mod moments;
mod periods;
mod rows;
mod totals;

pub(crate) use histogram::nice_step;
pub use histogram::{Histogram, histogram, rate_bin, rate_bin_bounds};
pub use moments::Moments;
pub use periods::{Period, hourly, periods};
pub use rows::{HistogramRow, MinuteRow};
pub use totals::{Attribution, Balance, LongTerm, Stage, Totals, attribution, long_term, totals};
