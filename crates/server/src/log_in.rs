//! Limits of logging in: attempts of one address, and computations of password hashes at once.

use crate::clock::Timestamp;
use crate::rate_limiter::{Client, RateLimiter};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Attempts of one address per second on average.
const PER_SECOND: u32 = 1;

/// Attempts of one address at once: people who share an address, and mistakes.
const BURST: u32 = 10;

/// Password hashes that are computed at once; each takes a core.
const MOST_HASHES: usize = 2;

/// Limits of logging in.
pub(crate) struct LogIns {
    limiter: Mutex<RateLimiter>,
    hashes: Semaphore,
}

impl LogIns {
    /// Limits that nobody has used yet.
    pub(crate) fn new() -> Self {
        let limiter = Mutex::new(RateLimiter::new(PER_SECOND, BURST));
        Self { limiter, hashes: Semaphore::new(MOST_HASHES) }
    }

    /// Admits an attempt of an address, or tells the time until the next one.
    pub(crate) fn admit(&self, peer: Option<IpAddr>, now: Timestamp) -> Result<(), Duration> {
        let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter.admit(peer.map_or(Client::Others, Client::Peer), now)
    }

    /// Waits for the turn to compute a hash.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.hashes.acquire().await.ok()
    }
}
