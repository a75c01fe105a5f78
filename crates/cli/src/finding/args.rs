//! What is typed to hold what a condition finds.

use holdfast_base::UnitError;
use holdfast_client::times;
use holdfast_query::condition_search::Sample;
use std::time::Duration;

/// The options that choose by what is found.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct FindArgs {
    /// Hold the elements that match this SQL condition, in every stream that has its columns
    #[arg(long = "where", value_name = "SQL", conflicts_with_all = ["ordinals", "event"])]
    pub(crate) condition: Option<String>,
    /// Context to hold before each match
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "condition")]
    pub(crate) before: Option<Duration>,
    /// Context to hold after each match
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "condition")]
    pub(crate) after: Option<Duration>,
    /// Aggregate condition over matches within a window: `count(*) >= 100`
    #[arg(long, value_name = "SQL", requires_all = ["condition", "within"])]
    pub(crate) when: Option<String>,
    /// Length of that window
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "when")]
    pub(crate) within: Option<Duration>,
    /// Hold a regular sample instead, as length and period (`30s/1h`)
    #[arg(long, value_name = "SPAN/SPAN", value_parser = sample, conflicts_with_all = [
        "condition", "ordinals", "event", "before", "after", "when", "within",
    ])]
    pub(crate) sample: Option<Sample>,
    /// Continue with new data until interrupted
    #[arg(long, requires = "quota")]
    pub(crate) standing: bool,
    /// Slots reserved for a standing hold, or a share of the ring (20%)
    #[arg(long, value_name = "SLOTS", value_parser = quota, requires = "standing")]
    pub(crate) quota: Option<Quota>,
    /// Copy matches and their context into dense slots when the original slots would expire, and free these
    #[arg(long)]
    pub(crate) distil: bool,
    /// Continue this hold
    #[arg(long, value_name = "ID", conflicts_with_all = [
        "condition", "before", "after", "when", "within", "sample", "standing", "quota", "distil", "streams", "from", "to", "last", "ordinals", "event", "until", "owner", "reason",
    ])]
    pub(crate) resume: Option<u64>,
}

/// How many slots a hold may come to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    Slots(u32),
    /// In percent of the ring's.
    Share(u32),
}

impl Quota {
    /// Slots of a ring that has so many: one at least.
    pub(crate) fn of(self, slots: u32) -> u32 {
        match self {
            Self::Slots(quota) => quota,
            Self::Share(percent) => (u64::from(slots) * u64::from(percent) / 100).max(1) as u32,
        }
    }
}

fn quota(text: &str) -> Result<Quota, UnitError> {
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

impl FindArgs {
    /// Whether anything is to be looked for.
    pub(crate) fn is_some(&self) -> bool {
        self.condition.is_some() || self.sample.is_some()
    }

    /// An option that means something only where anything is looked for.
    pub(crate) fn only_for_condition_hold(&self) -> Option<&'static str> {
        [("--standing", self.standing), ("--distil", self.distil)]
            .into_iter()
            .find_map(|(name, is)| is.then_some(name))
    }
}

fn sample(text: &str) -> Result<Sample, UnitError> {
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
