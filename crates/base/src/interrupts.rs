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
}
