//! State of the link to an archive: after a failure everything waits, then a single action probes the link. Pure.

use std::time::Duration;

/// Pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause: an outage is noticed to be over after at most this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Kind of a failure that concerns all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// The archive cannot be reached.
    Unreachable,
    /// The archive's disk is full.
    Full,
    /// The archive asks for patience.
    Busy,
    /// The token is not valid, or does not allow the uploads.
    Denied,
}

impl Outage {
    /// Name of the outage for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Full => "archive full",
            Self::Busy => "archive busy",
            Self::Denied => "denied",
        }
    }
}

/// Kind of a request, by the rights and the room that it needs at the archive. The lesser ones come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// Question about the state of an upload.
    #[default]
    Question,
    /// Change of an upload without bytes.
    Change,
    /// Bytes of an upload.
    Bytes,
}

/// Link to an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    outage: Option<Outage>,
    /// Least request that must succeed before the outage ends.
    least: Request,
    failures: u32,
    since: Duration,
    probe_at: Duration,
    is_probing: bool,
}

impl Link {
    /// Kind and begin of the outage that is going on.
    pub fn outage(&self) -> Option<(Outage, Duration)> {
        self.outage.map(|outage| (outage, self.since))
    }

    /// Time of the next probe during an outage.
    pub fn probe_at(&self) -> Option<Duration> {
        (self.outage.is_some() && !self.is_probing).then_some(self.probe_at)
    }

    /// Takes leave to act: always while the link is up; during an outage for one probe after each pause.
    pub fn admit(&mut self, now: Duration) -> bool {
        if self.outage.is_none() {
            return true;
        }
        let admits = !self.is_probing && now >= self.probe_at;
        self.is_probing |= admits;
        admits
    }

    /// Gives leave back that was not used.
    pub fn decline(&mut self) {
        self.is_probing = false;
    }

    /// Counts a failure. `pause` is the pause that the archive asks for.
    pub fn fail(&mut self, now: Duration, outage: Outage, request: Request, pause: Option<Duration>) {
        let needed = if outage == Outage::Unreachable { Request::Question } else { request };
        if self.outage.is_none() {
            self.since = now;
            self.failures = 0;
        } else if !self.is_probing && now < self.probe_at {
            // One of several actions that were on their way when the outage began.
            return;
        }
        self.least = if self.outage == Some(outage) { self.least.max(needed) } else { needed };
        self.outage = Some(outage);
        let own = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.is_probing = false;
        self.probe_at = now + pause.map_or(own, |pause| pause.clamp(own.min(LONGEST_PAUSE), LONGEST_PAUSE));
    }

    /// Counts an answer of the archive; returns the outage that it ends and its begin. A full archive still answers questions:
    /// their success lets the next request probe at once.
    pub fn succeed(&mut self, request: Request) -> Option<(Outage, Duration)> {
        if self.outage.is_some() && request < self.least {
            self.decline();
            return None;
        }
        let ended = self.outage();
        *self = Self::default();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_probe_at_a_time_with_growing_pauses() {
        let mut link = Link::default();
        assert!(link.admit(at(0)) && link.admit(at(0)));
        link.fail(at(100), Outage::Unreachable, Request::Bytes, None);
        link.fail(at(110), Outage::Unreachable, Request::Bytes, None);
        assert_eq!(link.probe_at(), Some(at(350)));
        assert!(!link.admit(at(349)));
        assert!(link.admit(at(350)) && !link.admit(at(360)));
        link.fail(at(400), Outage::Full, Request::Bytes, None);
        assert_eq!(link.outage(), Some((Outage::Full, at(100))));
        assert_eq!(link.probe_at(), Some(at(900)));
        assert!(link.admit(at(900)));
        // The full archive answers questions, and makes uploads without bytes.
        assert_eq!(link.succeed(Request::Question), None);
        assert!(link.admit(at(901)));
        assert_eq!(link.succeed(Request::Change), None);
        assert!(link.admit(at(902)));
        assert_eq!(link.succeed(Request::Bytes), Some((Outage::Full, at(100))));
        assert!(link.admit(at(903)) && link.outage().is_none());
    }

    #[test]
    fn any_answer_ends_the_silence() {
        let mut link = Link::default();
        link.fail(at(0), Outage::Unreachable, Request::Bytes, None);
        assert!(link.admit(at(250)));
        assert!(link.succeed(Request::Question).is_some());
    }

    #[test]
    fn pauses_have_a_bound() {
        let mut link = Link::default();
        let mut now = at(0);
        for _ in 0..100 {
            assert!(link.admit(now));
            link.fail(now, Outage::Busy, Request::Change, Some(Duration::from_secs(4000)));
            let probe = link.probe_at().unwrap();
            assert!(probe <= now + LONGEST_PAUSE);
            now = probe;
        }
    }
}
