//! Strangers: connections that have shown no valid token yet, counted by address, so that one client without a token cannot hold
//! all connections of the server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of strangers by their addresses.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// Place of a connection among the strangers of its address, until it shows a valid token or ends.
#[derive(Debug)]
pub(crate) struct Stranger {
    of: Arc<Strangers>,
    address: IpAddr,
    is_known: AtomicBool,
}

impl Strangers {
    /// Counts for at most `most` strangers of one address.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, counts: Mutex::default() })
    }

    /// Place for a new connection; nothing if its address has too many.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Arc<Stranger>> {
        let address = client(peer);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Arc::new(Stranger { of: Arc::clone(self), address, is_known: AtomicBool::new(false) }))
    }

    fn leave(&self, address: IpAddr) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

impl Stranger {
    /// Gives the place up: the connection has shown that it has access.
    pub(crate) fn is_known_now(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.of.leave(self.address);
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known_now();
    }
}

/// Address that stands for a client: who has one of IPv6 has a network of 64 bits of them.
fn client(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_of_one_address_are_bounded_until_they_are_known() {
        let strangers = Strangers::new(2);
        let [one, other]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let first = strangers.admit(one).unwrap();
        let second = strangers.admit("::ffff:192.0.2.1".parse().unwrap()).unwrap();
        assert!(strangers.admit(one).is_none() && strangers.admit(other).is_some());
        first.is_known_now();
        first.is_known_now();
        let third = strangers.admit(one).unwrap();
        assert!(strangers.admit(one).is_none());
        drop((first, second, third));
        assert!(strangers.counts.lock().unwrap().is_empty());
        let network = ["2001:db8::1", "2001:db8::ffff:1"].map(|text| strangers.admit(text.parse().unwrap()));
        assert!(
            network.iter().all(Option::is_some) && strangers.admit("2001:db8::7".parse().unwrap()).is_none()
        );
        assert!(strangers.admit("2001:db8:0:1::7".parse().unwrap()).is_some());
    }
}
