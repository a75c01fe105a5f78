//! Times of one request with a body, for the header `Server-Timing`.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::{Duration, Instant};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Span from the first to the last byte of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveSpan {
    first: Option<Instant>,
    length: Duration,
}

impl ReceiveSpan {
    /// Extends the span to now, the arrival of bytes.
    pub(crate) fn extend(&mut self) {
        let now = Instant::now();
        self.length = now - *self.first.get_or_insert(now);
    }

    /// Length of the span; zero without bytes, and for a body that arrives at once.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }
}

/// Times that the server spent on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Time from the first to the last byte.
    pub(crate) receive: Duration,
    /// Time until the turn of a segment came; `None` for other requests.
    pub(crate) wait: Option<Duration>,
    /// Time of writing and syncing.
    pub(crate) store: Duration,
}

impl Timing {
    /// Adds the header `Server-Timing`, in milliseconds.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let wait = self.wait.map_or(String::new(), |wait| format!("wait;dur={:.3}, ", milliseconds(wait)));
        let (receive, store) = (milliseconds(self.receive), milliseconds(self.store));
        let text = format!("receive;dur={receive:.3}, {wait}store;dur={store:.3}");
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(SERVER_TIMING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_with_three_decimals() {
        let mut timing = Timing {
            receive: Duration::from_micros(1_500),
            wait: None,
            store: Duration::from_nanos(2_000_400),
        };
        let mut headers = HeaderMap::new();
        timing.add_to(&mut headers);
        assert_eq!(headers[SERVER_TIMING], "receive;dur=1.500, store;dur=2.000");
        timing.wait = Some(Duration::from_secs(3));
        timing.add_to(&mut headers);
        assert_eq!(headers[SERVER_TIMING], "receive;dur=1.500, wait;dur=3000.000, store;dur=2.000");
    }
}
