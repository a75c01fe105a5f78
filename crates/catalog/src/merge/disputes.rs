//! Conflicts between concurrent writes of one register, and their settlement.
//!
//! The earlier one loses of two writes whose sites had not seen the other one. The record of a lost write names the
//! earliest write that it lost against. Each pair is compared when its second write arrives, so the order of arrival
//! does not matter.

use super::{Merge, RecentOperations, Tables};
use crate::dispute::{Choice, Dispute, DisputeKind, Settlement, Write};
use crate::error::Result;
use crate::hlc::Hlc;
use crate::ids::ObjectId;
use crate::record::{Kind, Record};

impl<T: Tables> Merge<'_, T> {
    /// Records the conflicts of a move or a rename.
    pub(super) fn dispute_name(
        &mut self,
        object: ObjectId,
        replaces: Hlc,
        recent: &mut RecentOperations,
    ) -> Result<()> {
        let node = self.existing(object)?;
        // The register of a collection leaves out moves that would have made a cycle.
        let last = match node.kind {
            Kind::Collection => self.tables.last_move(object)?.unwrap_or(node.named),
            Kind::Object | Kind::Link => node.named,
        };
        if last == replaces { Ok(()) } else { self.dispute(DisputeKind::Name, object, recent) }
    }

    /// Records the conflicts of this operation's write. It need not be called if the origin saw the latest write.
    ///
    /// An earlier write that the origin did not see lost against the latest one already.
    pub(super) fn dispute(
        &mut self,
        kind: DisputeKind,
        object: ObjectId,
        recent: &mut RecentOperations,
    ) -> Result<()> {
        let own = Write::of(self.op);
        for other in recent.unseen_writes(self.tables, self.op.id, (kind, object), self.saw)? {
            let (lost, won) = (own.min(other), own.max(other));
            let held = self.tables.dispute(kind, object, lost.stamp)?;
            if held.is_none_or(|held| won < held.won) {
                let settled = held.and_then(|held| held.settled);
                self.tables.put(Record::Dispute(Dispute { kind, object, lost, won, settled }))?;
            }
        }
        Ok(())
    }

    /// Marks a conflict as settled; the latest settlement stays.
    pub(super) fn settle(
        &mut self,
        kind: DisputeKind,
        object: ObjectId,
        lost: Hlc,
        choice: Choice,
    ) -> Result<()> {
        // `check_references` has found it.
        let Some(held) = self.tables.dispute(kind, object, lost)? else { return Ok(()) };
        let settled = Some(Settlement { set: self.op.stamp(), choice });
        if settled > held.settled {
            self.tables.put(Record::Dispute(Dispute { settled, ..held }))?;
        }
        Ok(())
    }
}
