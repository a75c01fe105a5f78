//! Tickets: which client holds which piece of the shared area that reads are answered in. Pure bookkeeping over
//! buffers.
//!
//! A piece is lent to a client from the moment its read is answered until it says that it has copied it, or its time is
//! up while somebody else waits. A client that was too slow is told that what it copied is worth nothing. Where all are taken, the
//! next one goes to who has fewest: how much a client reads is the schedule's to say, and that knows only of what was asked for.

use holdfast_media::{Buffer, BufferPool};
use std::time::{Duration, Instant};

/// How long a client may keep a piece that somebody else waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Pieces taken back from a client that it has not yet been told of: more means that it never says done.
const MOST_OWED: usize = 64;

/// A client, as tickets know it.
pub(super) type ClientId = u64;

#[derive(Debug)]
enum State {
    Free(Buffer),
    /// With the capture thread, for this client.
    Reading(ClientId),
    Lent {
        to: ClientId,
        since: Instant,
        buffer: Buffer,
    },
}

/// The pieces of the area.
#[derive(Debug)]
pub(super) struct Tickets {
    /// Keeps the memory file.
    pool: BufferPool,
    places: Vec<State>,
    /// Pieces that were taken back, in that order.
    owed: Vec<(ClientId, u64)>,
    /// Clients with a read that waits for a piece.
    waiting: Vec<ClientId>,
}

impl Tickets {
    pub(super) fn new(mut pool: BufferPool) -> Self {
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| pool.take()).collect();
        buffers.sort_unstable_by_key(Buffer::index);
        Self {
            pool,
            places: buffers.into_iter().map(State::Free).collect(),
            owed: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub(super) fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// How many pieces a client has, or is going to.
    fn held(&self, client: ClientId) -> usize {
        let own = |place: &&State| match place {
            State::Free(_) => false,
            State::Reading(to) | State::Lent { to, .. } => *to == client,
        };
        self.places.iter().filter(own).count()
    }

    /// A piece for a read of a client: a free one, or one whose time is up. Not where somebody waits who has fewer.
    pub(super) fn take(&mut self, client: ClientId, now: Instant) -> Option<Buffer> {
        let held = self.held(client);
        let first = self.waiting.iter().all(|other| *other == client || self.held(*other) >= held);
        let taken = if first { self.take_any(client, now) } else { None };
        self.waiting.retain(|other| *other != client);
        if taken.is_none() {
            self.waiting.push(client);
        }
        taken
    }

    fn take_any(&mut self, client: ClientId, now: Instant) -> Option<Buffer> {
        let free = self.places.iter().position(|place| matches!(place, State::Free(_)));
        let late = || {
            let late = |place: &State| match place {
                State::Lent { since, .. } if now.duration_since(*since) >= PATIENCE => Some(*since),
                _ => None,
            };
            let lates = self.places.iter().enumerate().filter_map(|(at, place)| Some((late(place)?, at)));
            lates.min().map(|(_, at)| at)
        };
        let at = free.or_else(late)?;
        match std::mem::replace(&mut self.places[at], State::Reading(client)) {
            State::Free(buffer) => Some(buffer),
            State::Lent { to, buffer, .. } => {
                self.owed.push((to, buffer.position() as u64));
                Some(buffer)
            }
            State::Reading(_) => None,
        }
    }

    /// The read is answered: the piece is the client's.
    pub(super) fn lend(&mut self, buffer: Buffer, to: ClientId, now: Instant) -> u64 {
        let offset = buffer.position() as u64;
        let at = buffer.index();
        if let Some(place) = self.places.get_mut(at) {
            *place = State::Lent { to, since: now, buffer };
        }
        offset
    }

    /// The read failed, or nobody wants it any more.
    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let at = buffer.index();
        if let Some(place) = self.places.get_mut(at) {
            *place = State::Free(buffer);
        }
    }

    /// The client has copied what was at `offset`: whether it was its own until now.
    pub(super) fn done(&mut self, client: ClientId, offset: u64) -> bool {
        if let Some(at) = self.owed.iter().position(|owed| *owed == (client, offset)) {
            self.owed.remove(at);
            return false;
        }
        let own = |place: &State| matches!(place, State::Lent { to, buffer, .. } if *to == client && buffer.position() as u64 == offset);
        match self.places.iter().position(own) {
            Some(at) => {
                if let State::Lent { buffer, .. } =
                    std::mem::replace(&mut self.places[at], State::Reading(client))
                {
                    self.places[at] = State::Free(buffer);
                }
                true
            }
            None => false,
        }
    }

    /// Whether a client lets its pieces be taken back again and again without ever saying done.
    pub(super) fn is_abused(&self, client: ClientId) -> bool {
        self.owed.iter().filter(|(owed, _)| *owed == client).count() > MOST_OWED
    }

    /// The client is gone.
    pub(super) fn forget(&mut self, client: ClientId) {
        self.owed.retain(|(owed, _)| *owed != client);
        self.waiting.retain(|waits| *waits != client);
        for place in &mut self.places {
            if matches!(place, State::Lent { to, .. } if *to == client)
                && let State::Lent { buffer, .. } = std::mem::replace(place, State::Reading(client))
            {
                *place = State::Free(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_media::Lock;

    fn tickets() -> Tickets {
        Tickets::new(BufferPool::shared(2, 4096, Lock::No).unwrap())
    }

    // Promise 1: a slow client loses its ticket, and learns of it; promise 5: so it never takes foreign bytes for its own.
    #[test]
    fn a_slow_client_loses_its_piece_and_is_told_once() {
        let mut tickets = tickets();
        let start = Instant::now();
        for _ in 0..2 {
            let buffer = tickets.take(1, start).unwrap();
            tickets.lend(buffer, 1, start);
        }
        assert!(tickets.take(1, start + PATIENCE / 2).is_none(), "its time is not up");
        let late = start + PATIENCE;
        let taken = tickets.take(1, late).unwrap();
        let offset = taken.position() as u64;
        assert_eq!(tickets.lend(taken, 1, late), offset);
        assert!(!tickets.done(1, offset), "the first answer there is worth nothing");
        assert!(tickets.done(1, offset), "the second is good");
        assert!(!tickets.done(1, offset), "and is not given back twice");
        assert!(!tickets.done(2, 4096 - offset), "another's piece");
    }

    #[test]
    fn pieces_of_a_client_that_is_gone_are_free_at_once() {
        let mut tickets = tickets();
        let now = Instant::now();
        let first = tickets.take(7, now).unwrap();
        let second = tickets.take(7, now).unwrap();
        tickets.lend(first, 7, now);
        tickets.forget(7);
        assert!(tickets.take(7, now).is_some());
        tickets.give_back(second);
        assert!(tickets.take(7, now).is_some() && tickets.take(7, now).is_none());
    }

    // Who keeps sixteen reads under way leaves to who asks for one after the other what is his.
    #[test]
    fn where_all_are_taken_the_next_goes_to_who_has_fewest() {
        let mut tickets = Tickets::new(BufferPool::shared(6, 4096, Lock::No).unwrap());
        let now = Instant::now();
        let of = |tickets: &mut Tickets, client| {
            tickets.take(client, now).map(|buffer| tickets.lend(buffer, client, now))
        };
        let greedy: Vec<u64> = (0..6).map(|_| of(&mut tickets, 1).unwrap()).collect();
        assert!(of(&mut tickets, 2).is_none() && of(&mut tickets, 1).is_none());
        for (done, offset) in greedy.into_iter().enumerate() {
            assert!(tickets.done(1, offset));
            // It asks first, each time.
            let (one, other) = (of(&mut tickets, 1), of(&mut tickets, 2));
            assert_eq!((one.is_some(), other.is_some()), (done >= 3, done < 3), "{done}");
            assert!(of(&mut tickets, 2).is_none(), "it asks for the next one at once");
        }
        assert_eq!((tickets.held(1), tickets.held(2)), (3, 3));
        tickets.forget(2);
        assert!(of(&mut tickets, 1).is_some(), "who is gone waits no longer");
    }
}
