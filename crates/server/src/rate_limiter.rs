//! Rate limiter: a token bucket for every client. Pure: the time is passed in.

use crate::clock::Timestamp;
use crate::token::TokenId;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Clients that are remembered; beyond that all new ones share one bucket.
const MOST_CLIENTS: usize = 10_000;

/// Client whose requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// Holder of a valid token.
    Token(TokenId),
    /// Address without a valid token.
    Peer(IpAddr),
    /// All clients beyond those that are remembered.
    Others,
}

/// Bucket of one client: one request costs a thousand millis.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    millis: u64,
    at: Timestamp,
}

/// Buckets of all clients.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_second: u64,
    burst: u64,
    buckets: HashMap<Client, Bucket>,
}

impl RateLimiter {
    /// Limiter for `per_second` requests on average, and `burst` at once; zero counts as one.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let (per_second, burst) = (u64::from(per_second.max(1)), u64::from(burst.max(1)));
        Self { per_second, burst, buckets: HashMap::new() }
    }

    /// Admits a request, or tells the time until the next one is admitted.
    pub(crate) fn admit(&mut self, client: Client, now: Timestamp) -> Result<(), Duration> {
        let full = Bucket { millis: self.burst * 1000, at: now };
        let client = self.remembered(client, now);
        let bucket = self.buckets.entry(client).or_insert(full);
        let gained = (now.since(bucket.at).as_millis() as u64).saturating_mul(self.per_second);
        bucket.millis = bucket.millis.saturating_add(gained).min(full.millis);
        bucket.at = now;
        match bucket.millis.checked_sub(1000) {
            Some(rest) => {
                bucket.millis = rest;
                Ok(())
            }
            None => Err(Duration::from_millis((1000 - bucket.millis).div_ceil(self.per_second))),
        }
    }

    /// Client itself if it has or gets a bucket, else the common one.
    fn remembered(&mut self, client: Client, now: Timestamp) -> Client {
        if self.buckets.contains_key(&client) || self.buckets.len() < MOST_CLIENTS {
            return client;
        }
        let (per_second, full) = (self.per_second, self.burst * 1000);
        self.buckets.retain(|_, bucket| {
            let gained = (now.since(bucket.at).as_millis() as u64).saturating_mul(per_second);
            bucket.millis.saturating_add(gained) < full
        });
        if self.buckets.len() < MOST_CLIENTS { client } else { Client::Others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut limiter = RateLimiter::new(10, 3);
        let client = Client::Token(TokenId::from_bits(1));
        let mut now = Timestamp::from_milliseconds(0);
        for _ in 0..3 {
            assert_eq!(limiter.admit(client, now), Ok(()));
        }
        assert_eq!(limiter.admit(client, now), Err(Duration::from_millis(100)));
        assert_eq!(limiter.admit(Client::Token(TokenId::from_bits(2)), now), Ok(()));
        now = now.plus(Duration::from_millis(99));
        assert_eq!(limiter.admit(client, now), Err(Duration::from_millis(1)));
        now = now.plus(Duration::from_millis(1));
        assert_eq!(limiter.admit(client, now), Ok(()));
        now = now.plus(Duration::from_hours(1));
        assert_eq!((0..9).filter(|_| limiter.admit(client, now).is_ok()).count(), 3);
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let mut limiter = RateLimiter::new(1, 2);
        let now = Timestamp::from_milliseconds(0);
        for peer in 0..MOST_CLIENTS as u64 + 50 {
            let _ = limiter.admit(Client::Token(TokenId::from_bits(peer)), now);
        }
        assert_eq!(limiter.buckets.len(), MOST_CLIENTS + 1);
        let later = now.plus(Duration::from_secs(10));
        assert_eq!(limiter.admit(Client::Token(TokenId::from_bits(u64::MAX)), later), Ok(()));
        assert_eq!(limiter.buckets.len(), 1);
    }
}
