//! Shown names: entries of equal name in one collection stay, and the later ones get a number.
//!
//! Among the visible children of one parent, the entry that took a name first (by stamp, then by id) is shown under it.
//! Each later one, in that order, is shown as `name_N` with the smallest N that no given name and no earlier entry has.
//! The numbered names of two different names never collide, so each name is a family of its own.

use super::{Conflict, Merge, Tables};
use crate::error::Result;
use crate::ids::ObjectId;
use crate::name::{base_of, numbered};

impl<T: Tables> Merge<'_, T> {
    /// Recomputes the shown names of all families that the operation has touched.
    pub(super) fn refresh_shown_names(&mut self) -> Result<()> {
        let mut families = std::mem::take(&mut self.families);
        // A given name such as `run_1` may push a second `run` to `run_2`.
        let bases: Vec<_> =
            families.iter().filter_map(|(parent, name)| Some((*parent, base_of(name)?.to_owned()))).collect();
        families.extend(bases);
        families.iter().try_for_each(|(parent, name)| self.refresh_family(*parent, name))
    }

    fn refresh_family(&mut self, parent: ObjectId, name: &str) -> Result<()> {
        let mut members = self.tables.named(parent, name)?;
        members.sort_by_key(|node| (node.named, node.id));
        let mut number = 0;
        for (place, mut node) in members.into_iter().enumerate() {
            let shown = if place == 0 { name.to_owned() } else { self.next_free(parent, name, &mut number)? };
            if node.shown == shown {
                continue;
            }
            if place > 0 {
                self.conflicts.push(Conflict::SameName { object: node.id, shown: shown.clone() });
            }
            node.shown = shown;
            self.tables.put(crate::record::Record::Node(node))?;
        }
        Ok(())
    }

    /// Next numbered name that is no given name of a visible sibling.
    fn next_free(&mut self, parent: ObjectId, name: &str, number: &mut u64) -> Result<String> {
        loop {
            *number += 1;
            let shown = numbered(name, *number);
            if self.tables.named(parent, &shown)?.is_empty() {
                return Ok(shown);
            }
        }
    }
}
