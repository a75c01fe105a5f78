//! Moves and renames: last-writer-wins registers, with moves of collections replayed so that no cycle appears.
//!
//! Objects and links have no children, so their register alone decides. Moves of collections take effect in the order of their
//! stamps, and one that would make a cycle has no effect. The algorithm is that of Kleppmann et al., "A highly-available
//! move operation for replicated trees", 2022. A move that arrives late undoes the later ones, takes effect, and
//! replays them. First placements need no replay: a collection has no children before it is placed.

use super::{Conflict, Merge, MoveKey, Tables};
use crate::error::Result;
use crate::hlc::Hlc;
use crate::ids::ObjectId;
use crate::name::Name;
use crate::record::{Kind, Move, Node, Record};
use std::collections::BTreeSet;

impl<T: Tables> Merge<'_, T> {
    pub(super) fn set_name(
        &mut self,
        object: ObjectId,
        parent: ObjectId,
        name: Name,
        replaces: Hlc,
    ) -> Result<()> {
        let (node, stamp) = (self.existing(object)?, self.op.stamp());
        if node.named != replaces {
            self.conflicts.push(Conflict::Renamed { object, op: self.op.id });
        }
        if node.kind == Kind::Collection {
            return self.move_collection(Move {
                stamp,
                object,
                parent,
                name,
                placement: false,
                effective: true,
            });
        }
        if stamp > node.named {
            self.relocate(node, parent, name, stamp);
        }
        Ok(())
    }

    fn move_collection(&mut self, new: Move) -> Result<()> {
        let key = (new.stamp, new.object);
        let later = self.tables.moves_after(key)?;
        self.undo(&later, key)?;
        for (place, mut step) in [new].into_iter().chain(later).enumerate() {
            self.flush()?;
            let was_effective = step.effective;
            step.effective = !self.tables.is_below(step.parent, step.object)?;
            if place == 0 || step.effective != was_effective {
                self.tables.put(Record::Move(step.clone()))?;
            }
            if step.effective {
                let node = self.existing(step.object)?;
                self.relocate(node, step.parent, step.name, step.stamp);
            } else if place == 0 || was_effective {
                self.conflicts.push(Conflict::CycleAvoided { object: step.object });
            }
        }
        Ok(())
    }

    /// Puts each collection that moved after `key` back to its place before `key`.
    ///
    /// A collection that was first placed after `key` returns to its placement: it has no part in the tree at `key`.
    fn undo(&mut self, later: &[Move], key: MoveKey) -> Result<()> {
        let moved: BTreeSet<ObjectId> =
            later.iter().filter(|step| step.effective).map(|step| step.object).collect();
        for object in moved {
            let Some(before) = self.tables.place_before(object, key)? else {
                return Err(self.invalid(object, "has no placement"));
            };
            let node = self.existing(object)?;
            self.relocate(node, before.parent, before.name, before.stamp);
        }
        Ok(())
    }

    /// Sets the register of a node, and notes the names that may be shown differently.
    fn relocate(&mut self, mut node: Node, parent: ObjectId, name: Name, stamp: Hlc) {
        self.families.insert((node.parent, node.name.to_string()));
        self.families.insert((parent, name.to_string()));
        node.shown = name.to_string();
        (node.parent, node.name, node.named) = (parent, name, stamp);
        self.keep(node);
    }
}
