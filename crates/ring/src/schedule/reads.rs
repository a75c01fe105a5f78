//! Fair queue of reads: weighted deficit round-robin over classes, and over the clients of each (Shreedhar
//! and Varghese, “Efficient Fair Queuing Using Deficit Round-Robin”, section 3). A client's visit is long
//! where seeks are expensive, so that sequential reads run on.

use holdfast_format::Measured;

/// A client's turn lasts for so many times what the lane could read while it goes there.
const VISITS: f64 = 16.0;

/// Bytes of a client's turn on a lane that was measured.
pub fn visit(measured: &Measured, quantum: u32) -> u64 {
    let moved = measured.reposition.as_secs_f64() * measured.read.0 as f64;
    ((VISITS * moved) as u64).max(u64::from(quantum))
}

/// What a read is for, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// To rebuild what is held and has lost its protection.
    Rebuild,
    /// To bring a hold to an archive.
    Evacuation,
    /// To find something.
    Search,
    /// To give somebody data.
    Export,
    /// To see that everything is still there.
    Scrub,
}

impl Class {
    const ALL: [Self; 5] = [Self::Rebuild, Self::Evacuation, Self::Search, Self::Export, Self::Scrub];

    /// Half visits' worth of bytes a round: no more than it takes, for a class that asks a little at a time waits for the others'
    /// turns each time.
    const fn weight(self) -> u64 {
        match self {
            Self::Rebuild => 4,
            Self::Evacuation | Self::Search | Self::Export => 2,
            Self::Scrub => 1,
        }
    }
}

/// A read that waits, of a quantum at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// The caller's number.
    pub id: u64,
    /// What for.
    pub class: Class,
    /// Whose.
    pub client: u64,
    /// Where.
    pub offset: u64,
    /// How much.
    pub bytes: u32,
}

/// Somebody with reads waiting.
#[derive(Clone, Copy, Debug)]
struct Flow {
    class: Class,
    client: u64,
    /// Bytes that it may still have before the next one's turn.
    credit: i64,
}

/// The reads that wait. Their number is bounded by whoever lends the buffers for them.
#[derive(Clone, Debug)]
pub struct Reads {
    waiting: Vec<ReadRequest>,
    /// In the order of their turns within a class.
    flows: Vec<Flow>,
    credit: [i64; 5],
    /// The class whose turn it is.
    turn: usize,
    visit: u64,
    /// Who had the last read and asks for nothing more by now, though his turn is not over.
    away: Option<Flow>,
}

impl Reads {
    /// Room for `limit` reads; a client's turn lasts for `visit` bytes.
    pub fn new(limit: usize, visit: u64) -> Self {
        let visit = visit.max(1);
        let (waiting, flows) = (Vec::with_capacity(limit), Vec::with_capacity(limit));
        Self { waiting, flows, credit: [0; 5], turn: 0, visit, away: None }
    }

    /// From here on a client's turn lasts for `visit` bytes.
    pub fn set_visit(&mut self, visit: u64) {
        self.visit = visit.max(1);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether somebody else is next only because who had the last read asks for nothing more at this moment: his turn is not over,
    /// and he may be on his way.
    pub fn is_away(&self) -> bool {
        self.away.is_some()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Puts a read in; gives it back when there is no room.
    pub fn push(&mut self, wanted: ReadRequest) -> Result<(), ReadRequest> {
        if self.waiting.len() == self.waiting.capacity() {
            return Err(wanted);
        }
        let known = |flow: &Flow| flow.class == wanted.class && flow.client == wanted.client;
        if !self.flows.iter().any(known) {
            if self.flows.len() == self.flows.capacity() {
                return Err(wanted);
            }
            if let Some(flow) = self.away.take_if(|away| known(away)) {
                // He goes on where he was.
                self.flows.insert(0, flow);
            } else {
                let ReadRequest { class, client, .. } = wanted;
                self.flows.push(Flow { class, client, credit: self.visit as i64 });
            }
        }
        self.waiting.push(wanted);
        Ok(())
    }

    /// Takes out what a client that is gone still wanted; whether there was such a read.
    pub fn forget(&mut self, client: u64) -> Option<ReadRequest> {
        self.away.take_if(|away| away.client == client);
        let at = self.waiting.iter().position(|wanted| wanted.client == client)?;
        Some(self.take(at))
    }

    /// Takes out a read by its number; nobody is waited for any more.
    pub fn remove(&mut self, id: u64) {
        self.away = None;
        if let Some(at) = self.waiting.iter().position(|wanted| wanted.id == id) {
            self.take(at);
        }
    }

    /// The read that is next.
    pub fn pick(&mut self) -> Option<ReadRequest> {
        if self.waiting.is_empty() {
            return None;
        }
        // Each round of turns adds credit to a class that has something waiting, so this ends.
        loop {
            let class = Class::ALL[self.turn];
            let first = self.flows.iter().position(|flow| flow.class == class);
            let Some(first) = first.filter(|_| self.credit[self.turn] > 0) else {
                self.turn = (self.turn + 1) % Class::ALL.len();
                let next = Class::ALL[self.turn];
                // Nobody saves up: neither while nothing waits, nor, beyond one round's worth, by asking for less at a time. Else
                // all others would wait while it is spent. One is left to who asks for more than a round's worth, and then for
                // nothing for a moment: a search, slot by slot.
                let waits = self.flows.iter().any(|flow| flow.class == next);
                let round = (next.weight() * self.visit).div_ceil(2) as i64;
                self.credit[self.turn] =
                    if waits { (self.credit[self.turn] + round).min(2 * round) } else { 0 };
                continue;
            };
            let Flow { client, credit, .. } = self.flows[first];
            if credit <= 0 {
                let mut flow = self.flows.remove(first);
                flow.credit += self.visit as i64;
                self.flows.push(flow);
                continue;
            }
            // The oldest of the client's; it asks in the order in which it reads.
            let at = self.waiting.iter().position(|w| w.class == class && w.client == client)?;
            let bytes = i64::from(self.waiting[at].bytes);
            self.credit[self.turn] -= bytes;
            let flow = &mut self.flows[first];
            flow.credit -= bytes;
            let (flow, waits) = (*flow, self.flows.len());
            let taken = self.take(at);
            let has_left = self.flows.len() < waits;
            self.away = Some(flow).filter(|flow| has_left && flow.credit > 0 && self.credit[self.turn] > 0);
            return Some(taken);
        }
    }

    /// Takes one out, and its client with its last.
    fn take(&mut self, at: usize) -> ReadRequest {
        let taken = self.waiting.remove(at);
        let same = |client: u64, class: Class| client == taken.client && class == taken.class;
        if !self.waiting.iter().any(|wanted| same(wanted.client, wanted.class)) {
            self.flows.retain(|flow| !same(flow.client, flow.class));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(id: u64, class: Class, client: u64) -> ReadRequest {
        ReadRequest { id, class, client, offset: id << 20, bytes: 1 << 20 }
    }

    /// Serves `count` reads of clients that always have two more waiting; whose they were.
    fn served(clients: &[(Class, u64)], visit: u64, count: usize) -> Vec<(Class, u64)> {
        let mut reads = Reads::new(clients.len() * 2, visit);
        for id in 0..2 {
            for (class, client) in clients {
                reads.push(read(id, *class, *client)).unwrap();
            }
        }
        let serve = |_| {
            let done = reads.pick().unwrap();
            reads.push(read(done.id + 2, done.class, done.client)).unwrap();
            (done.class, done.client)
        };
        (0..count).map(serve).collect()
    }

    #[test]
    fn a_client_runs_on_for_a_visit_and_comes_back_in_turn() {
        let served = served(&[(Class::Export, 1), (Class::Export, 2)], 4 << 20, 16);
        let runs: Vec<u64> = served.chunks(4).map(|run| run[0].1).collect();
        assert!(served.chunks(4).all(|run| run.iter().all(|one| one == &run[0])), "{served:?}");
        assert_eq!(runs, [1, 2, 1, 2]);
    }

    #[test]
    fn classes_share_by_their_weights_and_clients_evenly() {
        let clients = [
            (Class::Rebuild, 1),
            (Class::Export, 2),
            (Class::Export, 3),
            (Class::Export, 4),
            (Class::Scrub, 5),
        ];
        let served = served(&clients, 4 << 20, 7 * 4 * 30);
        let of = |class| served.iter().filter(|one| one.0 == class).count();
        assert_eq!((of(Class::Rebuild), of(Class::Export), of(Class::Scrub)), (480, 240, 120));
        for client in 2..5 {
            assert!(served.iter().filter(|one| one.1 == client).count().abs_diff(80) <= 4);
        }
    }

    // No read starves: who asked for little for a long time has no more than others then.
    #[test]
    fn a_class_that_asked_for_little_has_saved_nothing() {
        let visit = 4 << 20;
        let mut reads = Reads::new(64, visit);
        let asks = |reads: &mut Reads, class, client, count: u64| {
            for id in 0..count {
                reads.push(read(id, class, client)).unwrap();
            }
        };
        asks(&mut reads, Class::Export, 2, 2);
        for _ in 0..200 {
            // One at a time.
            asks(&mut reads, Class::Rebuild, 1, 1);
            while reads.pick().unwrap().class != Class::Rebuild {
                asks(&mut reads, Class::Export, 2, 1);
            }
        }
        asks(&mut reads, Class::Rebuild, 1, 40);
        let first = (0..40).position(|_| reads.pick().unwrap().class == Class::Export).unwrap();
        assert!(first <= 16, "two rounds of 8 MiB, not {first}");
    }

    // Who asks for a little more than a round's worth at a time, and again when all of it is there, has his share all the same.
    #[test]
    fn a_class_that_asks_again_and_again_for_more_than_a_round_has_its_share() {
        let mut reads = Reads::new(64, 4 << 20);
        let (mut search, mut export) = (0u64, 0u64);
        for id in 0..2 {
            reads.push(read(id, Class::Export, 2)).unwrap();
        }
        for _ in 0..100 {
            for id in 0..5 {
                reads.push(read(id, Class::Search, 1)).unwrap();
            }
            let mut left = 5;
            while left > 0 {
                if reads.pick().unwrap().class == Class::Search {
                    (search, left) = (search + 1, left - 1);
                } else {
                    reads.push(read(export, Class::Export, 2)).unwrap();
                    export += 1;
                }
            }
        }
        let share = search as f64 / (search + export) as f64;
        assert!(share > 0.45, "{search} and {export}");
    }

    // A search asks for what comes next once it has looked at what came: who waits for it for a moment gives it its share.
    #[test]
    fn who_asks_for_one_after_the_other_has_his_share_where_he_is_waited_for() {
        let share = |waited_for: bool| {
            let mut reads = Reads::new(64, 8 << 20);
            for client in [2, 3] {
                reads.push(read(0, Class::Export, client)).unwrap();
                reads.push(read(1, Class::Export, client)).unwrap();
            }
            let (mut search, mut asks) = (0, true);
            for id in 2..4000 {
                if asks && (!reads.is_away() || waited_for) {
                    reads.push(read(id, Class::Search, 1)).unwrap();
                    asks = false;
                }
                let taken = reads.pick().unwrap();
                if taken.class == Class::Search {
                    (search, asks) = (search + 1, true);
                } else {
                    reads.push(read(id, Class::Export, taken.client)).unwrap();
                }
            }
            f64::from(search) / 3998.0
        };
        let (with, without) = (share(true), share(false));
        assert!((0.45..=0.55).contains(&with) && without < 0.2, "{with} and {without}");
        // Who is gone is not waited for, nor who has had his turn.
        let mut reads = Reads::new(8, 2 << 20);
        reads.push(read(1, Class::Search, 1)).unwrap();
        assert!(reads.pick().is_some() && reads.is_away());
        assert!(reads.forget(1).is_none() && !reads.is_away());
        for id in 0..2 {
            reads.push(read(id, Class::Search, 1)).unwrap();
        }
        assert!(reads.pick().is_some() && !reads.is_away() && reads.pick().is_some() && !reads.is_away());
    }

    #[test]
    fn what_has_no_room_comes_back_and_what_is_forgotten_is_gone() {
        let mut reads = Reads::new(1, 1);
        reads.push(read(1, Class::Search, 1)).unwrap();
        assert_eq!(reads.push(read(2, Class::Search, 1)).unwrap_err().id, 2);
        assert_eq!(reads.forget(2), None);
        assert_eq!(reads.forget(1).unwrap().id, 1);
        assert_eq!(reads.pick(), None);
        reads.push(read(3, Class::Search, 1)).unwrap();
        reads.remove(4);
        assert_eq!(reads.len(), 1);
        reads.remove(3);
        assert_eq!(reads.pick(), None);
    }

    proptest! {
        // No read starves: whatever the others want, each is served within the rounds that its credit takes.
        #[test]
        fn every_read_is_served_in_bounded_turns(
            wanted in prop::collection::vec((0usize..5, 0u64..4, 1u32..(8 << 20)), 1..60), visit in 1u64..(16 << 20),
        ) {
            let mut reads = Reads::new(64, visit);
            for (id, (class, client, bytes)) in wanted.iter().enumerate() {
                let class = Class::ALL[*class];
                reads.push(ReadRequest { id: id as u64, class, client: *client, offset: 0, bytes: *bytes }).unwrap();
            }
            let mut seen: Vec<u64> = std::iter::from_fn(|| reads.pick()).map(|wanted| wanted.id).collect();
            prop_assert!(reads.is_empty() && reads.flows.is_empty());
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..wanted.len() as u64).collect::<Vec<_>>());
        }
    }
}
