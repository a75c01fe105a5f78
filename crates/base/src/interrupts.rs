//! Count of the signals that ask a program to end. Pure; handlers of signals belong to the programs.

use std::time::{Duration, Instant};

/// Signals within this time after the first one repeat it. `timeout`, `sudo`, shells and supervisors signal a process and
/// its group, so that both arrive together; under load their handler may run late.
pub const REPEATED_WITHIN: Duration = Duration::from_secs(1);

/// The meaning of a signal that asks for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The first one: end in order.
    First,
    /// The first one once more: nothing changes.
    Repeated,
    /// A second one: end at once.
    Second,
}

/// Interrupts of a program, counted by their times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupts {
    first: Option<Instant>,
}

impl Interrupts {
    /// Counts a signal that came at this time.
    pub fn count(&mut self, now: Instant) -> Interrupt {
        match self.first {
            None => {
                self.first = Some(now);
                Interrupt::First
            }
            Some(first) if now.duration_since(first) < REPEATED_WITHIN => Interrupt::Repeated,
            Some(_) => Interrupt::Second,
        }
    }
}

/// Returns true if a process ignores SIGHUP, by the text of its `/proc/PID/status`. A program that was started so (`nohup`) leaves it
/// ignored.
pub fn ignores_hang_ups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP has the number 1, and the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_counts_from_a_second_after_the_first() {
        let mut interrupts = Interrupts::default();
        let first = Instant::now();
        assert_eq!(interrupts.count(first), Interrupt::First);
        assert_eq!(interrupts.count(first), Interrupt::Repeated, "to the process and to its group");
        assert_eq!(interrupts.count(first + Duration::from_millis(999)), Interrupt::Repeated);
        assert_eq!(
            interrupts.count(first + REPEATED_WITHIN),
            Interrupt::Second,
            "counted from the first one"
        );
        assert_eq!(interrupts.count(first + Duration::from_millis(1500)), Interrupt::Second);
    }

    #[test]
    fn an_ignored_sighup_is_the_lowest_bit_of_the_mask() {
        let status =
            |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t1\n");
        assert!(ignores_hang_ups(&status("0000000000001001")));
        assert!(!ignores_hang_ups(&status("0000000000001000")));
        assert!(!ignores_hang_ups(""));
    }
}
