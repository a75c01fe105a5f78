//! Preconditions of an admitted guarantee on this machine, and the messages for each that fails. Pure.

use super::Refused;
use holdfast_base::{Rate, grouped, plural};
use holdfast_media::Footing;
use std::fmt;

/// What is said of a ring that was made without a profile.
pub const NOTHING_PROMISED: &str = "best effort: it was made without a profile";

/// Why what was admitted is not guaranteed, here or yet.
#[derive(Clone, PartialEq, Debug)]
pub enum Lack {
    /// Nothing can be promised at this place, whatever was measured.
    Place(String),
    /// So many slots of a file were never written. That goes away by itself.
    Unwritten(u32),
    /// The recorder has fewer slot buffers than were admitted.
    Buffers {
        /// So many.
        has: u32,
        /// As were admitted.
        takes: u32,
    },
    /// The inequality says no by now.
    Refused(Refused),
}

impl Lack {
    /// Of a ring with so many slots that were never written.
    pub fn of(footing: &Footing, unwritten: u32) -> Vec<Self> {
        let place = footing.doubt.clone().map(Self::Place);
        let unwritten = (footing.file && unwritten > 0).then_some(Self::Unwritten(unwritten));
        place.into_iter().chain(unwritten).collect()
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(why) => f.write_str(why),
            Self::Unwritten(count) => {
                let count = u64::from(*count);
                let have = if count == 1 { "has" } else { "have" };
                let slots = plural(count, "slot");
                write!(f, "until {} more {slots} {have} been written once", grouped(count))
            }
            Self::Buffers { has, takes } => {
                let buffers = plural((*has).into(), "slot buffer");
                write!(f, "the recorder has {has} {buffers}, and it takes {takes}: give it more --memory")
            }
            Self::Refused(refused) => {
                write!(f, "what was measured would not be admitted any more: {refused}")
            }
        }
    }
}

/// What was admitted, of payload and on the medium, and whether it holds.
pub fn standing(payload: Rate, medium: Rate, lacks: &[Lack]) -> String {
    let promise = format!("{payload} of payload, {medium} on the medium");
    match lacks {
        [] => format!("guaranteed {promise}"),
        [until @ Lack::Unwritten(_)] => format!("best effort {until}; then guaranteed {promise}"),
        lacks => {
            let why: Vec<String> = lacks.iter().map(Lack::to_string).collect();
            format!("best effort: {} (admitted for {promise})", why.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: no rate is called guaranteed where it is not, or not yet.
    #[test]
    fn it_is_guaranteed_only_where_nothing_is_lacking() {
        let said = |file, doubt: Option<&str>, unwritten| {
            let footing = Footing { file, doubt: doubt.map(str::to_owned) };
            standing(Rate(20 << 20), Rate(21 << 20), &Lack::of(&footing, unwritten))
        };
        let promise = "20 MiB/s of payload, 21 MiB/s on the medium";
        assert_eq!(said(false, None, 40), format!("guaranteed {promise}"), "a device has places for all");
        assert_eq!(said(true, None, 0), format!("guaranteed {promise}"));
        let until = "until 1 more slot has been written once";
        assert_eq!(said(true, None, 1), format!("best effort {until}; then guaranteed {promise}"));
        let until = "until 1 234 more slots have been written once";
        assert_eq!(said(true, None, 1234), format!("best effort {until}; then guaranteed {promise}"));
        let never = format!("best effort: it copies; {until} (admitted for {promise})");
        assert_eq!(said(true, Some("it copies"), 1234), never);
        assert_eq!(
            said(false, Some("it is shared"), 7),
            format!("best effort: it is shared (admitted for {promise})")
        );
    }
}
