//! Facts: texts by kind and key that all sites share, outside of the tree. The meaning of a text is not here (`server`).

use crate::hlc::Hlc;
use serde::{Deserialize, Serialize};

/// Longest key of a fact in bytes, that of a name.
pub const MAX_FACT_KEY_BYTES: usize = 255;

/// Longest body of a fact in bytes: bounds the size of a page of facts.
pub const MAX_FACT_BYTES: usize = 16 << 10;

/// Kind of a fact. New kinds are appended, as the databases and the log hold their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum FactKind {
    /// Site of the collaboration.
    Site,
    /// Account of a person or a project.
    Account,
    /// Group of several accounts.
    Group,
    /// Policy of a collection.
    Policy,
    /// Order to hold data of a ring.
    HoldOrder,
    /// State of an ordered hold.
    HoldState,
}

impl FactKind {
    /// All kinds, each at the place of its number.
    pub(crate) const ALL: [Self; 6] =
        [Self::Site, Self::Account, Self::Group, Self::Policy, Self::HoldOrder, Self::HoldState];
}

/// Register of a text. A removed one stays as a tombstone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Fact {
    /// Kind of the fact.
    pub kind: FactKind,
    /// Key among the facts of its kind.
    pub key: String,
    /// Text of the fact; nothing once it is removed.
    pub body: Option<String>,
    /// Stamp of the operation that set the register.
    pub set: Hlc,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_numbers() {
        for (number, kind) in FactKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
