//! Facts of holds: the order, and its state at the site of the ring. The key of both is the UUID of the order.

use super::{HoldOutcome, OrderedHold};
use holdfast_catalog::{Catalog, CatalogStore, FactKind, Result, SiteId};
use serde::{Deserialize, Serialize};

/// Facts that are read together.
const PAGE: usize = 1000;

/// Order as its fact has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HoldOrder {
    /// Site of the ring.
    pub(crate) site: SiteId,
    /// Name of the ring in the configuration of its site.
    pub(crate) ring: String,
    /// Names of streams; none for all.
    pub(crate) streams: Vec<String>,
    /// Begin of the range, in nanoseconds since 1970.
    pub(crate) from: Option<i64>,
    /// End of the range, in nanoseconds since 1970.
    pub(crate) to: Option<i64>,
    /// True if times mean event times.
    pub(crate) by_event: bool,
    /// Reason of the hold.
    pub(crate) reason: String,
    /// Owner of the hold.
    pub(crate) owner: String,
    /// End of the hold, in nanoseconds since 1970.
    pub(crate) until: Option<i64>,
    /// Site at which the order was given.
    pub(crate) by: SiteId,
    /// Time of the order, in milliseconds since 1970.
    pub(crate) ordered: i64,
}

/// State of an order as its fact has it; without a fact it is ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum HoldOutcomeFact {
    /// The range is held.
    Applied { hold: u64, slots: u64, bytes: u64, expired: Option<String> },
    /// All of the range had expired when the order arrived.
    Expired { reason: String },
    /// The order cannot be carried out.
    Refused { reason: String },
    /// The ring or its recorder is away; the order is tried again.
    Waiting { reason: String },
}

impl From<HoldOutcome> for HoldOutcomeFact {
    fn from(outcome: HoldOutcome) -> Self {
        match outcome {
            HoldOutcome::Applied { hold, slots, bytes, expired } => {
                Self::Applied { hold, slots, bytes, expired }
            }
            HoldOutcome::Expired(reason) => Self::Expired { reason },
            HoldOutcome::Refused(reason) => Self::Refused { reason },
            HoldOutcome::Away(reason) => Self::Waiting { reason },
        }
    }
}

/// Order with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldProgress {
    /// UUID of the order.
    pub(crate) id: String,
    pub(crate) order: HoldOrder,
    /// State with the time at which it was written; nothing while the site of the ring has not answered.
    pub(crate) state: Option<(HoldOutcomeFact, u64)>,
}

impl HoldProgress {
    /// True if the site of the ring has to give the order to a recorder.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, None | Some((HoldOutcomeFact::Waiting { .. }, _)))
    }

    /// Order for the program that knows rings; nothing if its UUID is unreadable.
    pub(super) fn ordered(&self) -> Option<OrderedHold> {
        let HoldOrder { ring, streams, from, to, by_event, reason, owner, until, .. } = self.order.clone();
        Some(OrderedHold {
            id: self.id.parse().ok()?,
            ring,
            streams,
            from,
            to,
            by_event,
            reason,
            owner,
            until,
        })
    }
}

/// Reads all orders with their states, oldest first. Unreadable ones of newer software are left out.
pub(crate) fn orders<S: CatalogStore>(catalog: &mut Catalog<S>) -> Result<Vec<HoldProgress>> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let facts = catalog.facts(FactKind::HoldOrder, after.as_deref(), PAGE)?;
        for fact in &facts {
            let order = fact.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
            let Some(order) = order else { continue };
            let state = catalog.fact(FactKind::HoldState, &fact.key)?;
            let state = state.and_then(|state| {
                let outcome = serde_json::from_str(state.body.as_deref()?).ok()?;
                Some((outcome, state.set.time.millis().0))
            });
            all.push(HoldProgress { id: fact.key.clone(), order, state });
        }
        after = facts.last().map(|last| last.key.clone());
        if facts.len() < PAGE {
            return Ok(all);
        }
    }
}
