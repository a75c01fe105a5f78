//! End of a run: the decision that a growing file is complete. Pure: observations and times in, decision out.

use std::time::Duration;

/// Rule that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// A writer has closed the file and nothing followed, or nothing was written for the quiet time.
    Close,
    /// Nothing was written for the quiet time.
    Quiet,
    /// A marker file exists.
    Marker,
}

/// Facts about a file's run, with times since any fixed instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Time of the last observed change.
    pub changed_at: Duration,
    /// True when a writer has closed the file since the last change.
    pub is_closed: bool,
    /// True when the marker exists.
    pub is_marked: bool,
}

/// Decision on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The file is complete.
    Ended,
    /// The file may grow; without further facts it ends at this time, `None` for never.
    Open(Option<Duration>),
}

impl RunEnd {
    /// State of a run at `now`, when a file without changes for `quiet` counts as complete.
    pub fn state(self, facts: &RunFacts, quiet: Duration, now: Duration) -> RunState {
        let quiet_at = facts.changed_at + quiet;
        match self {
            Self::Close if facts.is_closed => RunState::Ended,
            Self::Marker if facts.is_marked => RunState::Ended,
            Self::Marker => RunState::Open(None),
            Self::Close | Self::Quiet if now >= quiet_at => RunState::Ended,
            Self::Close | Self::Quiet => RunState::Open(Some(quiet_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_secs(30);

    fn state(rule: RunEnd, is_closed: bool, is_marked: bool, now: u64) -> RunState {
        let facts = RunFacts { changed_at: Duration::from_secs(10), is_closed, is_marked };
        rule.state(&facts, QUIET, Duration::from_secs(now))
    }

    #[test]
    fn each_rule_ends_a_run_by_its_own_fact() {
        let open = RunState::Open(Some(Duration::from_secs(40)));
        assert_eq!(state(RunEnd::Close, true, false, 10), RunState::Ended);
        assert_eq!(state(RunEnd::Close, false, true, 39), open);
        assert_eq!(state(RunEnd::Close, false, false, 40), RunState::Ended);
        assert_eq!(state(RunEnd::Quiet, true, true, 39), open);
        assert_eq!(state(RunEnd::Quiet, false, false, 40), RunState::Ended);
        assert_eq!(state(RunEnd::Marker, true, false, 4000), RunState::Open(None));
        assert_eq!(state(RunEnd::Marker, false, true, 10), RunState::Ended);
    }
}
