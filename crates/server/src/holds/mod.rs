//! Holds as facts of the catalog: orders that any site gives, and their states, which the site of the ring writes.
//!
//! An order reaches the site of its ring with the other operations, however late. That site gives it to the recorder by a
//! [`HoldTaker`], which the program supplies, and writes the outcome for all to see. Rings are not known here.

mod fact;
mod keeper;

pub(crate) use fact::{HoldOrder, HoldOutcomeFact, HoldProgress, orders};
pub(crate) use keeper::Keeper;

use holdfast_catalog::ObjectId;

/// Order to hold a range of a ring, for the program that knows rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedHold {
    /// UUID of the order; a repeated one makes no second hold.
    pub id: ObjectId,
    /// Name of the ring in the configuration of its site.
    pub ring: String,
    /// Names of streams; none for all.
    pub streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    pub from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    pub to: Option<i64>,
    /// True if times mean event times.
    pub by_event: bool,
    /// Reason of the hold.
    pub reason: String,
    /// Owner of the hold.
    pub owner: String,
    /// End of the hold, in nanoseconds since 1970.
    pub until: Option<i64>,
}

/// Outcome of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The range is held.
    Applied {
        /// Number of the hold on the ring.
        hold: u64,
        /// Number of slots that are kept.
        slots: u64,
        /// Number of bytes that are kept.
        bytes: u64,
        /// Part that had expired, in words.
        expired: Option<String>,
    },
    /// All of the range had expired when the order arrived.
    Expired(String),
    /// The order cannot be carried out, however often it is tried.
    Refused(String),
    /// The ring or its recorder is away; the order is tried again.
    Away(String),
}

/// Giver of orders to the recorders of a site. Calls block.
pub trait HoldTaker: Send + Sync {
    /// Gives an order, and waits for its outcome.
    fn take(&self, order: &OrderedHold) -> HoldOutcome;
}
