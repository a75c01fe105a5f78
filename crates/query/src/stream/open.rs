//! What a recorder tells of the slot that it fills: enough, most times, to pass over it without asking for what is in it.

use super::known::between;
use super::wants::Wants;
use crate::columns::{Column, Fixed};
use crate::predicate::{Facts, Pick, Points};
use holdfast_format::{Cell, OpenOutline};
use holdfast_protocol::LinkError;
use holdfast_protocol::wire::MAX_VALUES;
use holdfast_reader::{PlannedSlot, RingReader};
use std::cell::RefCell;

/// Whether a slot may hold what is looked for, by what its recorder tells of it while it is open; true where nothing is told.
pub(super) fn may_hold(
    reader: &mut RingReader,
    wants: &Wants,
    slot: &PlannedSlot,
) -> Result<bool, LinkError> {
    if slot.slot.is_some() || !reader.is_live() {
        return Ok(true);
    }
    let known = OpenKnown { wants, slot, reader: RefCell::new(reader), trouble: RefCell::new(None) };
    // There are as many cells of each attribute as elements.
    let is_empty = known.ask(0, Vec::new()).is_some_and(|outline| outline.cells == 0);
    let may_hold = !is_empty && wants.predicate.may_hold(&known);
    known.trouble.into_inner().map_or(Ok(may_hold), Err)
}

struct OpenKnown<'a> {
    wants: &'a Wants,
    slot: &'a PlannedSlot,
    reader: RefCell<&'a mut RingReader>,
    /// Why nothing is told any more.
    trouble: RefCell<Option<LinkError>>,
}

impl OpenKnown<'_> {
    fn ask(&self, attribute: usize, values: Vec<u64>) -> Option<OpenOutline> {
        let mut trouble = self.trouble.borrow_mut();
        if trouble.is_some() || values.len() > MAX_VALUES {
            return None;
        }
        let mut reader = self.reader.borrow_mut();
        let told = reader.open_outline(self.slot, self.wants.stream, attribute as u16, values);
        told.unwrap_or_else(|error| {
            *trouble = Some(error);
            None
        })
    }
}

impl Pick for OpenKnown<'_> {
    fn facts(&self, column: usize) -> Option<Facts> {
        match self.wants.columns.at(column)?.0 {
            Column::Attribute(number) => {
                let OpenOutline { cells, nulls, bounds, .. } = self.ask(number, Vec::new())?;
                Some(Facts { bounds, nulls: Some(nulls.into()), cells: cells.into() })
            }
            Column::Fixed(Fixed::Slot) => Some(between(self.slot.sequence.0, self.slot.sequence.0)),
            Column::Fixed(_) => None,
        }
    }

    fn may_have(&self, column: usize, values: &Points<'_>) -> bool {
        let Some((Column::Attribute(number), _)) = self.wants.columns.at(column) else { return true };
        let hashes = match values {
            Points::Words(values) => values.iter().map(|value| Cell::Word(**value).hash()).collect(),
            Points::Wide(values) => values.iter().map(|value| Cell::Wide(**value).hash()).collect(),
            Points::Bytes(values) => values.iter().map(|value| Cell::Bytes(value).hash()).collect(),
        };
        self.ask(number, hashes).is_none_or(|outline| outline.may_have)
    }
}
