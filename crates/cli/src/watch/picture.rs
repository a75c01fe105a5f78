//! The slots as a picture: one cell a slot, or several slots a cell. Pure.

use holdfast_ring::{SlotLook, SlotStatus};
use ratatui::style::{Color, Style};

/// What a cell stands for, in the order of the legend.
pub(crate) const LEGEND: [(SlotLook, &str, &str); 8] = [
    (SlotLook::Free, "·", "free"),
    (SlotLook::Live, "■", "live"),
    (SlotLook::Held, "◆", "held"),
    (SlotLook::Pinned, "◇", "pinned"),
    (SlotLook::Runway, "▸", "runway"),
    (SlotLook::Writing, "●", "writing"),
    (SlotLook::Damaged, "!", "damaged"),
    (SlotLook::Bad, "×", "bad"),
];

/// Its sign.
pub(crate) fn sign(look: SlotLook) -> &'static str {
    LEGEND.iter().find(|(known, _, _)| *known == look).map_or("?", |(_, sign, _)| sign)
}

/// Its colour; the signs differ too, so that nothing is told by colour alone.
pub(crate) fn style(look: SlotLook) -> Style {
    Style::new().fg(match look {
        SlotLook::Free => Color::DarkGray,
        SlotLook::Live => Color::Green,
        SlotLook::Held => Color::Yellow,
        SlotLook::Pinned => Color::LightYellow,
        SlotLook::Runway => Color::Blue,
        SlotLook::Writing => Color::Cyan,
        SlotLook::Damaged => Color::Red,
        SlotLook::Bad => Color::Magenta,
    })
}

/// Slots a cell stands for when there are so many slots and so many cells.
pub(crate) fn slots_a_cell(slots: usize, cells: usize) -> usize {
    slots.div_ceil(cells.max(1)).max(1)
}

/// The cells of at most `cells` that show the slots.
pub(crate) fn cells(slots: &[SlotStatus], cells: usize) -> Vec<SlotLook> {
    slots.chunks(slots_a_cell(slots.len(), cells)).map(one).collect()
}

/// Several slots in one cell: what is rare and matters shows, otherwise what most of them are.
fn one(slots: &[SlotStatus]) -> SlotLook {
    let count = |look: SlotLook| slots.iter().filter(|slot| slot.look == look).count();
    for rare in [SlotLook::Damaged, SlotLook::Writing, SlotLook::Pinned, SlotLook::Bad] {
        if count(rare) > 0 {
            return rare;
        }
    }
    let common = [SlotLook::Free, SlotLook::Live, SlotLook::Runway, SlotLook::Held];
    common.into_iter().max_by_key(|look| count(*look)).unwrap_or(SlotLook::Free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Age, Sequence, SlotNo};

    fn slots(looks: &str) -> Vec<SlotStatus> {
        let look = |sign: char| {
            LEGEND.iter().find(|(_, known, _)| known.starts_with(sign)).map(|(look, _, _)| *look).unwrap()
        };
        let slot = |(at, sign)| SlotStatus {
            slot: SlotNo(at as u32),
            look: look(sign),
            sequence: Sequence(1),
            age: Age(1),
            first: None,
            last: None,
        };
        looks.chars().enumerate().map(slot).collect()
    }

    fn drawn(looks: &str, room: usize) -> String {
        cells(&slots(looks), room).into_iter().map(sign).collect()
    }

    #[test]
    fn every_slot_has_a_cell_while_there_is_room() {
        assert_eq!(drawn("·■◆▸●!×", 7), "·■◆▸●!×");
        assert_eq!(drawn("·■", 100), "·■");
        assert_eq!(drawn("", 7), "");
        assert_eq!(drawn("■■", 0), "■");
    }

    #[test]
    fn a_cell_of_many_slots_shows_what_matters() {
        assert_eq!(drawn("■■■■···■◆◆◆·", 3), "■·◆");
        assert_eq!(drawn("■■■●■■■!■●■×", 3), "●!●");
        assert_eq!(drawn(&"■".repeat(1000), 30).chars().count(), 30);
        assert_eq!(slots_a_cell(1000, 30), 34);
    }
}
