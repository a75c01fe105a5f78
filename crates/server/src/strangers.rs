//! Strangers: connections that have shown no valid token yet, bounded by address, so that one client without a token cannot hold
//! all connections of the server. Here belong the places of all connections within the limit; those beyond it are in `overload`.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Strangers by their addresses, the oldest first.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    connections: Arc<Semaphore>,
    places: Mutex<HashMap<IpAddr, VecDeque<Arc<Place>>>>,
}

/// Connection among the strangers of its address, until it shows a valid token or ends.
#[derive(Debug)]
pub(crate) struct Stranger {
    of: Arc<Strangers>,
    address: IpAddr,
    place: Arc<Place>,
    is_known: AtomicBool,
}

/// Place of a connection among all connections.
#[derive(Debug)]
struct Place {
    /// Permit of the connection; nothing once a newer connection has taken it.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    taken: Notify,
}

impl Strangers {
    /// Places for `connections` connections, of which at most `most` are strangers of one address.
    pub(crate) fn new(connections: usize, most: usize) -> Arc<Self> {
        let connections = Arc::new(Semaphore::new(connections));
        Arc::new(Self { most, connections, places: Mutex::default() })
    }

    /// Place for a new connection; nothing if there are too many. Behind a proxy many clients share an address, so the oldest
    /// stranger of a full one gives way: the new connection may show a valid token.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Arc<Stranger>> {
        let address = client_address(peer);
        let mut places = self.places();
        let own = places.get_mut(&address).filter(|own| own.len() >= self.most);
        let taken = own.and_then(VecDeque::pop_front).and_then(|oldest| oldest.give_way());
        let permit = taken.or_else(|| Arc::clone(&self.connections).try_acquire_owned().ok())?;
        let place = Arc::new(Place { permit: Mutex::new(Some(permit)), taken: Notify::new() });
        places.entry(address).or_default().push_back(Arc::clone(&place));
        drop(places);
        Some(Arc::new(Stranger { of: Arc::clone(self), address, place, is_known: AtomicBool::new(false) }))
    }

    fn places(&self) -> MutexGuard<'_, HashMap<IpAddr, VecDeque<Arc<Place>>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Ends the connection, and takes its permit for another one.
    fn give_way(&self) -> Option<OwnedSemaphorePermit> {
        self.taken.notify_one();
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Stranger {
    /// Stops the count of the connection among the strangers: it has shown a valid token. It keeps its place among all.
    pub(crate) fn is_known_now(&self) {
        if self.is_known.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut places = self.of.places();
        if let Some(own) = places.get_mut(&self.address) {
            own.retain(|place| !Arc::ptr_eq(place, &self.place));
            if own.is_empty() {
                places.remove(&self.address);
            }
        }
    }

    /// Makes the connection the youngest stranger of its address: it has access without a token, and has begun a request.
    pub(crate) fn is_active_now(&self) {
        let mut places = self.of.places();
        if let Some(own) = places.get_mut(&self.address)
            && let Some(at) = own.iter().position(|place| Arc::ptr_eq(place, &self.place))
            && let Some(place) = own.remove(at)
        {
            own.push_back(place);
        }
    }

    /// Waits until a newer connection of the address takes the place.
    pub(crate) async fn place_taken(&self) {
        self.place.taken.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known_now();
    }
}

/// Address that stands for a client: who has one of IPv6 has a network of 64 bits of them.
pub(crate) fn client_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True once another connection has the place.
    fn is_taken(stranger: &Stranger) -> bool {
        stranger.place.permit.lock().unwrap().is_none()
    }

    #[test]
    fn strangers_of_one_address_are_bounded_until_they_are_known() {
        let strangers = Strangers::new(5, 2);
        let [one, other]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let first = strangers.admit(one).unwrap();
        let second = strangers.admit("::ffff:192.0.2.1".parse().unwrap()).unwrap();
        first.is_known_now();
        first.is_known_now();
        let third = strangers.admit(one).unwrap();
        assert!([&first, &second, &third].iter().all(|stranger| !is_taken(stranger)));
        // The next takes the place of the oldest stranger, and no further one of all.
        let fourth = strangers.admit(one).unwrap();
        assert!(is_taken(&second) && ![&first, &third, &fourth].iter().any(|stranger| is_taken(stranger)));
        let others = [other, other].map(|address| strangers.admit(address).unwrap());
        assert!(strangers.admit("192.0.2.3".parse().unwrap()).is_none());
        drop((first, second, third, fourth, others));
        assert!(strangers.places().is_empty());
        assert_eq!(strangers.connections.available_permits(), 5);
    }

    #[test]
    fn the_longest_idle_stranger_gives_way() {
        let strangers = Strangers::new(9, 3);
        let address = "192.0.2.1".parse().unwrap();
        let [first, second, third] = [(); 3].map(|()| strangers.admit(address).unwrap());
        first.is_active_now();
        let _fourth = strangers.admit(address).unwrap();
        assert_eq!([&first, &second, &third].map(|stranger| is_taken(stranger)), [false, true, false]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let [one, same, other] = ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::7"]
            .map(|text| client_address(text.parse().unwrap()));
        assert!(one == same && one != other);
    }
}
