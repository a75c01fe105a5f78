//! `--where`, `--sample`, `--standing` and others: options of a condition hold.

use holdfast_base::Timestamp;
use holdfast_client::times;
use holdfast_query::condition_search::Sample;
use holdfast_reader::Selection;
use holdfast_standing::{self as standing, Options, Quota};
use std::time::Duration;

/// The options that choose by what is found.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct FindArgs {
    /// Hold the elements that match this SQL condition, in every stream that has its columns
    #[arg(long = "where", value_name = "SQL", group = "found", conflicts_with_all = ["ordinals", "event"])]
    condition: Option<String>,
    /// Hold the elements whose payload has a match of this regular expression of `holdfast grep`
    #[arg(long, value_name = "PATTERN", group = "found", conflicts_with_all = ["ordinals", "event"])]
    scan: Option<String>,
    /// Context to hold before each match
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "found")]
    before: Option<Duration>,
    /// Context to hold after each match
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "found")]
    after: Option<Duration>,
    /// Aggregate condition over matches within a window: `count(*) >= 100`
    #[arg(long, value_name = "SQL", requires_all = ["found", "within"])]
    when: Option<String>,
    /// Length of that window
    #[arg(long, value_name = "SPAN", value_parser = times::span, requires = "when")]
    within: Option<Duration>,
    /// Hold a regular sample instead, as length and period (`30s/1h`)
    #[arg(long, value_name = "SPAN/SPAN", value_parser = standing::sample, conflicts_with_all = [
        "found", "ordinals", "event", "before", "after", "when", "within",
    ])]
    sample: Option<Sample>,
    /// Continue with new data until interrupted
    #[arg(long, requires = "quota")]
    standing: bool,
    /// Slots reserved for a standing hold, or a share of the ring (20%)
    #[arg(long, value_name = "SLOTS", value_parser = standing::quota, requires = "standing")]
    quota: Option<Quota>,
    /// Copy matches and their context into dense slots when the original slots would expire, and free these
    #[arg(long)]
    distil: bool,
    /// Continue this hold
    #[arg(long, value_name = "ID", conflicts_with_all = [
        "found", "before", "after", "when", "within", "sample", "standing", "quota", "distil", "streams", "from", "to", "last", "ordinals", "event", "until", "owner", "reason",
    ])]
    pub(crate) resume: Option<u64>,
}

impl FindArgs {
    /// SQL condition of a match.
    fn condition(&self) -> Option<String> {
        let scan = self.scan.as_ref().map(|pattern| {
            // Anchors are those of lines, as in a scan.
            format!("matches(payload, '(?mu){}')", pattern.replace('\'', "''"))
        });
        self.condition.clone().or(scan)
    }

    /// Whether anything is to be looked for.
    pub(crate) fn is_some(&self) -> bool {
        self.condition().is_some() || self.sample.is_some()
    }

    /// An option that means something only where anything is looked for.
    pub(crate) fn only_for_condition_hold(&self) -> Option<&'static str> {
        [("--standing", self.standing), ("--distil", self.distil)]
            .into_iter()
            .find_map(|(name, is)| is.then_some(name))
    }

    /// The options of a hold with this reason, owner and end.
    pub(crate) fn options(
        &self,
        selection: Selection,
        reason: String,
        owner: String,
        until: Timestamp,
    ) -> Options {
        Options {
            condition: self.condition(),
            before: self.before,
            after: self.after,
            when: self.when.clone().zip(self.within),
            sample: self.sample,
            standing: self.standing,
            quota: self.quota,
            distil: self.distil,
            selection,
            reason,
            owner,
            until,
        }
    }
}
