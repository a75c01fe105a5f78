//! The cases: what disturbs, what the profile covers, and what is to come of it.

use std::time::Duration;

/// What is done to the recorder, or to what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturber {
    /// Nothing but two readers who want all, as in every case.
    Readers,
    /// `holdfast read`, four times, stopped (SIGSTOP) in the middle.
    Stopped,
    /// Clients that ask for much and take a byte a second.
    Dawdlers,
    /// A thousand clients at once.
    Crowd,
    /// Clients that write to, cut off and drop what they were given, and send nonsense.
    Scribblers,
    /// The log lies on a partition that is full.
    FullLog,
    /// The log is a pipe that nobody empties.
    CloggedLog,
    /// A `holdfast query` a core, one after the other.
    Searches,
    /// `holdfast hold --standing`, which finds something every second.
    Standing,
    /// Two threads a core that only compute.
    Hogs,
    /// A memory group that is full all the while.
    Memory,
    /// The drive does nothing for so long, again and again, or once.
    Stall(Duration, Option<Duration>),
    /// The drive answers nothing for so long.
    Hang(Duration),
    /// The drive fails everything for so long.
    Errors(Duration),
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As the table has it.
    pub name: &'static str,
    /// What is done.
    pub disturber: Disturber,
    /// *σ* of the profile.
    pub stall: Duration,
    /// *ρ* of the profile, in millionths.
    pub stalled: u32,
    /// Whether elements are of 20 bytes with four attributes.
    pub small: bool,
    /// Whether the recorder is told `--realtime`.
    pub realtime: bool,
    /// Whether the profile covers it: nothing may be lost. Otherwise something has to be, and counted exactly.
    pub covered: bool,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What a machine of its own keeps the drive waiting for: no profile says less.
const USUAL: Duration = ms(500);

/// All of them.
pub fn cases() -> Vec<Case> {
    use Disturber::{
        CloggedLog, Crowd, Dawdlers, Errors, FullLog, Hang, Hogs, Memory, Readers, Scribblers, Searches,
        Stall, Standing, Stopped,
    };
    let case = |name, disturber| Case {
        name,
        disturber,
        stall: USUAL,
        stalled: 1000,
        small: false,
        realtime: false,
        covered: true,
    };
    let once = |millis| Stall(ms(millis), None);
    let stalls = |name, millis| Case { stall: ms(millis) + USUAL, ..case(name, once(millis)) };
    let beyond = |name, disturber| Case { covered: false, ..case(name, disturber) };
    vec![
        case("two greedy readers", Readers),
        case("four readers stopped", Stopped),
        case("eight clients, a byte a second", Dawdlers),
        case("a thousand clients", Crowd),
        case("clients that scribble", Scribblers),
        case("searches on all cores", Searches),
        Case { small: true, ..case("searches on all cores, 20 B", Searches) },
        case("a standing hold", Standing),
        Case { small: true, ..case("a standing hold, 20 B", Standing) },
        case("log partition full", FullLog),
        case("log never read", CloggedLog),
        case("hogs on all cores", Hogs),
        Case { realtime: true, ..case("hogs, --realtime", Hogs) },
        case("memory group full", Memory),
        // 0.5 s in 20 s.
        Case {
            stall: ms(500) + USUAL,
            stalled: 25_000,
            ..case("stalls of 0.5 s every 20 s", Stall(ms(500), Some(ms(20_000))))
        },
        stalls("a stall of 1 s", 1000),
        stalls("a stall of 3 s", 3000),
        stalls("a stall of 10 s", 10_000),
        beyond("a stall of 10 s, profiled 0.5 s", once(10_000)),
        beyond("12 s without an answer", Hang(ms(12_000))),
        beyond("8 s of I/O errors", Errors(ms(8000))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_lies_inside_its_profile_and_the_rest_outside() {
        for case in cases() {
            let share = f64::from(case.stalled) / 1e6;
            let (length, every) = match case.disturber {
                Disturber::Stall(length, every) => (length, every),
                Disturber::Hang(length) | Disturber::Errors(length) => (length, None),
                _ => continue,
            };
            let fits = length <= case.stall
                && every.is_none_or(|every| length.as_secs_f64() / every.as_secs_f64() <= share);
            assert_eq!(fits, case.covered, "{}", case.name);
        }
    }
}
