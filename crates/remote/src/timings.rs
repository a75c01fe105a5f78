//! Times of one append: total time of the client, and the server's times from the header `Server-Timing`.

use std::time::Duration;

/// Times of one append. Foreign servers tell no times of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Time from the start of the request to its answer.
    pub total: Duration,
    /// Time from the first to the last byte of the body at the server.
    pub receive: Option<Duration>,
    /// Time that a segment waited for its turn.
    pub wait: Option<Duration>,
    /// Time of writing and syncing.
    pub store: Option<Duration>,
}

impl Timings {
    /// Times of a request that took `total`, with the header's value.
    pub(crate) fn of(total: Duration, header: Option<&str>) -> Self {
        let mut timings = Self { total, ..Self::default() };
        for metric in header.unwrap_or_default().split(',') {
            let mut parts = metric.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let milliseconds = parts.find_map(|part| part.strip_prefix("dur=")?.parse::<f64>().ok());
            let Some(milliseconds) = milliseconds else { continue };
            let duration = Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
            match name {
                "receive" => timings.receive = duration,
                "wait" => timings.wait = duration,
                "store" => timings.store = duration,
                _ => {}
            }
        }
        timings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_timings_are_read_and_nonsense_ignored() {
        let total = Duration::from_secs(1);
        let timings =
            Timings::of(total, Some("receive;dur=1.500, wait;desc=turn;dur=2, store;dur=0.250,x;dur=1"));
        let expected = Timings {
            total,
            receive: Some(Duration::from_micros(1500)),
            wait: Some(Duration::from_millis(2)),
            store: Some(Duration::from_micros(250)),
        };
        assert_eq!(timings, expected);
        for nonsense in [None, Some(""), Some(";;,dur=1"), Some("store;dur=-1"), Some("store;dur=x, wait")] {
            assert_eq!(Timings::of(total, nonsense), Timings { total, ..Timings::default() });
        }
    }
}
