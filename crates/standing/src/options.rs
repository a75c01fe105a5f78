//! Options of a condition hold.

use holdfast_base::{Timestamp, UnitError};
use holdfast_client::attribution::current_user;
use holdfast_client::times;
use holdfast_query::condition_search::Sample;
use holdfast_reader::Selection;
use std::time::Duration;

/// Options of a condition hold.
#[derive(Clone, Debug)]
pub struct Options {
    /// SQL condition of the elements to be held, in every stream that has its columns.
    pub condition: Option<String>,
    /// Context to hold before each match.
    pub before: Option<Duration>,
    /// Context to hold after each match.
    pub after: Option<Duration>,
    /// Aggregate condition over matches within a window, and the length of that window.
    pub when: Option<(String, Duration)>,
    /// Regular sample to be held instead.
    pub sample: Option<Sample>,
    /// Go on with what arrives, until interrupted.
    pub standing: bool,
    /// Slots that a standing hold may come to keep.
    pub quota: Option<Quota>,
    /// Copy matches and their context into dense slots when the original slots would expire, and free these.
    pub distil: bool,
    /// Streams and range of the hold.
    pub selection: Selection,
    /// Reason of the hold.
    pub reason: String,
    /// Owner of the hold.
    pub owner: String,
    /// Time at which the hold ends by itself.
    pub until: Timestamp,
}

impl Options {
    /// Options of a hold of all elements that match an SQL condition, in all streams that have its columns, for ever. A reason
    /// must be given.
    pub fn matching(condition: &str, reason: &str) -> Self {
        Self {
            condition: Some(condition.to_owned()),
            before: None,
            after: None,
            when: None,
            sample: None,
            standing: false,
            quota: None,
            distil: false,
            selection: Selection::ALL,
            reason: reason.to_owned(),
            owner: current_user(),
            until: Timestamp::MAX,
        }
    }
}

/// Quota of slots that a hold may come to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// A fixed number of slots.
    Slots(u32),
    /// In percent of the ring's.
    Share(u32),
}

impl Quota {
    /// Slots of a ring that has so many: one at least.
    pub fn of(self, slots: u32) -> u32 {
        match self {
            Self::Slots(quota) => quota,
            Self::Share(percent) => (u64::from(slots) * u64::from(percent) / 100).max(1) as u32,
        }
    }
}

/// Parses a quota: a number of slots, or a share of the ring (`20%`).
pub fn quota(text: &str) -> Result<Quota, UnitError> {
    let wrong = || UnitError::new("quota", text, "a number of slots, or a share of the ring's, such as 20%");
    let share = text.strip_suffix('%');
    let number: u32 = share.unwrap_or(text).parse().map_err(|_| wrong())?;
    match share {
        _ if number == 0 => Err(wrong()),
        Some(_) if number > 100 => Err(wrong()),
        Some(_) => Ok(Quota::Share(number)),
        None => Ok(Quota::Slots(number)),
    }
}

/// Parses a sample: length and period (`30s/1h`).
pub fn sample(text: &str) -> Result<Sample, UnitError> {
    let wrong = || UnitError::new("sample", text, "a length of time of every longer one, such as 30s/1h");
    let (length, period) = text.split_once('/').ok_or_else(wrong)?;
    let length = times::span(length).map_err(|_| wrong())?;
    // "1h" may be written as "h".
    let period = match times::span(period) {
        Ok(period) => period,
        Err(_) => times::span(&format!("1{}", period.trim())).map_err(|_| wrong())?,
    };
    if length.is_zero() || length >= period {
        return Err(wrong());
    }
    Ok(Sample { length, period })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_slots_or_a_share_of_the_ring() {
        assert_eq!(quota("200").map(|quota| quota.of(59)), Ok(200));
        for (share, slots, of) in
            [("20%", 59, 11), ("100%", 59, 59), ("1%", 59, 1), ("7%", u32::MAX, 300_647_710)]
        {
            assert_eq!(quota(share).map(|quota| quota.of(slots)), Ok(of), "{share}");
        }
        for wrong in ["0", "0%", "101%", "-1", "%", "1.5%", "20 %", "many"] {
            let said = quota(wrong).unwrap_err().to_string();
            assert!(said.contains("such as 20%"), "{said}");
        }
    }

    #[test]
    fn samples_are_read_as_they_are_typed() {
        let of = |length, period| {
            Ok(Sample { length: Duration::from_secs(length), period: Duration::from_secs(period) })
        };
        assert_eq!(sample("30s/1h"), of(30, 3600));
        assert_eq!(sample("1m / d"), of(60, 86_400));
        for wrong in ["30s", "0s/1h", "1h/1h", "2h/1h", "a/b", "1h/0s", "/"] {
            let said = sample(wrong).unwrap_err().to_string();
            assert!(said.contains("30s/1h"), "{said}");
        }
    }
}
