//! Overload places: the few connections beyond the limit, which are told so. A new one takes the place of another, so that one
//! that asks is answered however many say nothing.

use crate::strangers::client_address;
use std::cmp::Reverse;
use std::net::IpAddr;
use tokio::task::AbortHandle;

/// Connections beyond the limit that are answered at once.
const PLACES: usize = 16;

/// Connections beyond the limit, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Overload {
    places: Vec<(IpAddr, AbortHandle)>,
}

impl Overload {
    /// Ends connections until there is room for one more.
    pub(crate) fn make_room(&mut self) {
        self.places.retain(|(_, connection)| !connection.is_finished());
        while self.places.len() >= PLACES {
            let addresses: Vec<IpAddr> = self.places.iter().map(|(address, _)| *address).collect();
            let (_, connection) = self.places.remove(first_to_end(&addresses));
            connection.abort();
        }
    }

    /// Adds a connection, for which there is room.
    pub(crate) fn add(&mut self, peer: IpAddr, connection: AbortHandle) {
        self.places.push((client_address(peer), connection));
    }
}

/// Index of the connection that gives way to a new one: the oldest of the address with the most.
fn first_to_end(addresses: &[IpAddr]) -> usize {
    let count = |address: IpAddr| addresses.iter().filter(|other| **other == address).count();
    let first = (0..addresses.len()).min_by_key(|at| Reverse(count(addresses[*at])));
    first.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_address_with_the_most_gives_way() {
        let ends = |hosts: &[u8]| {
            let addresses: Vec<_> = hosts.iter().map(|host| IpAddr::from([192, 0, 2, *host])).collect();
            first_to_end(&addresses)
        };
        assert_eq!(ends(&[1, 2, 3, 2]), 1);
        assert_eq!(ends(&[3, 3, 1, 1]), 0);
        assert_eq!(ends(&[7, 8, 9]), 0);
    }
}
