//! Memory plan: the number of buffers of each kind that stays within the memory bound. Pure.

use crate::capture::Capture;
use holdfast_base::{BLOCK, ByteSize, CHECK_BLOCK, MAX_AWAY, Rate};
use holdfast_format::{Classes, ViewPlace};
use holdfast_ingest::{BATCH_BYTES, BATCH_ROWS, Batch, BatchRow, MIN_BATCH_BYTES};
use holdfast_media::MemoryDisk;
use holdfast_ring::BirdsEye;

/// Slot buffers at least: one open, one being written, one between them.
pub const LEAST_SLOT_BUFFERS: u64 = 3;

/// Slot buffers unless slots are small.
const USUAL_SLOT_BUFFERS: u64 = 4;

/// Small slots get as many buffers as make up this, to ride out a drive's pauses.
const SLOT_BUFFER_BYTES: u64 = 64 << 20;

/// Where memory is plentiful there are as many as make up this: a second in which nothing is written, at 400 MB/s.
const PLENTY: u64 = 512 << 20;

/// The part of the memory to be had that they may take then.
const PLENTIFUL: u64 = 16;

/// So many cost a ring nothing: the runway is no shorter without them.
const FREE_SLOT_BUFFERS: u64 = 8;

/// Slot buffers at most: the runway is twice as long.
const MOST_SLOT_BUFFERS: u64 = 64;

/// Of a bound on memory the bird's-eye view takes so much at most, unless something else is said.
const VIEW_OF_BOUND: u64 = 16;

/// Without a bound so much of the memory to be had, and no more than is touched in a tenth of a second.
const VIEW_OF_AVAILABLE: u64 = 64;
const USUAL_VIEW: u64 = 128 << 20;

/// Streams whose summaries it has room for at least: a ring may have those of earlier runs.
const USUAL_STREAMS: usize = 8;

/// Batches of a source at most: some hundred MiB.
const MOST_BATCHES: usize = 1024;

/// Where memory is plentiful the batches of all sources make up this, promise or not: a million elements a second are not
/// lost because the capture thread had no processor for a moment.
const PLENTY_OF_BATCHES: u64 = 128 << 20;

/// The part of the memory to be had that they may take then, and of the ring: what waits there is soon on it.
const PLENTIFUL_BATCHES: u64 = 64;
const BATCHES_OF_RING: u64 = 32;

/// Where memory is plentiful so many bytes of reads may wait for their turn: those of several readers.
const PLENTY_OF_TICKETS: u64 = 64 << 20;

/// So many reads may, at most.
pub const MOST_TICKETS: usize = 32;

/// The part of the memory to be had that they may take then.
const PLENTIFUL_TICKETS: u64 = 256;

/// What the plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs<'a> {
    /// Slot size.
    pub slot_bytes: u64,
    /// Slots of the ring.
    pub slots: u32,
    /// Sources.
    pub sources: usize,
    /// Memory that sources take for themselves: packet rings, read buffers.
    pub source_bytes: u64,
    /// The bound, if one was given.
    pub bound: Option<ByteSize>,
    /// Memory that could be had.
    pub available: ByteSize,
    /// Slot buffers that a guarantee takes; 0 without one.
    pub promised: u32,
    /// What a guarantee is given for, of payload and elements a second; nothing without one.
    pub load: (Rate, u64),
    /// Bytes of the largest read that is started at once.
    pub quantum: usize,
    /// The columns of the sources' streams that have any: in every batch.
    pub columns: &'a [Classes],
    /// Memory that they take in the open slot, and where they are read.
    pub column_bytes: u64,
    /// What the bird's-eye view is to have at most, if that was said.
    pub view: Option<ByteSize>,
}

impl Needs<'_> {
    /// What the bird's-eye view has if it may have as much: no more than there can be to tell.
    fn view(&self, most: ByteSize) -> ByteSize {
        let columns = self.columns.iter().map(Classes::len).sum();
        let place = ViewPlace::most(self.slot_bytes, self.sources.max(USUAL_STREAMS), columns);
        BirdsEye::memory(most, place, self.slots)
    }

    /// What it has whatever else there is: all that was said.
    fn said_view(&self) -> u64 {
        self.view.map_or(0, |most| self.view(most).0)
    }

    /// What it has beside buffers that take so much, where nothing was said: it gives way.
    fn usual_view(&self, taken: u64) -> ByteSize {
        let (usual, all) = match self.bound {
            Some(bound) => (bound.0 / VIEW_OF_BOUND, bound.0),
            None => ((self.available.0 / VIEW_OF_AVAILABLE).min(USUAL_VIEW), self.available.0),
        };
        self.view(ByteSize(usual.min(all.saturating_sub(taken))))
    }
}

/// How memory is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Slot buffers, each of one slot.
    pub slot_buffers: usize,
    /// Batches of each source.
    pub batches: usize,
    /// Bytes of a batch.
    pub batch_bytes: ByteSize,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Buffers that clients' reads are answered in.
    pub tickets: usize,
    /// Bytes of each.
    pub quantum: usize,
    /// The bird's-eye view; nothing: there is none.
    pub view: ByteSize,
    /// All of it.
    pub total: ByteSize,
}

/// The bound is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--memory {bound} is too little: slots of {slot}{} {sources} source{}{} take at least {least}", if view.0 == 0 { " and" } else { "," }, if *sources == 1 { "" } else { "s" }, of_view(*view))]
pub struct TooLittle {
    bound: ByteSize,
    slot: ByteSize,
    sources: usize,
    /// What was said that the bird's-eye view is to have.
    view: ByteSize,
    least: ByteSize,
}

fn of_view(view: ByteSize) -> String {
    if view.0 == 0 { String::new() } else { format!(" and a bird's-eye view of {view} (--birds-eye)") }
}

impl TooLittle {
    /// The least bound that would do.
    pub fn least(&self) -> ByteSize {
        self.least
    }
}

/// Slot buffers that a bound has room for, whatever they are needed for.
pub fn fitting(needs: &Needs<'_>, bound: ByteSize) -> u32 {
    let buffers = bound.0.saturating_sub(SMALL.bytes(needs)) / needs.slot_bytes;
    u32::try_from(buffers).unwrap_or(u32::MAX)
}

/// What is not slot buffers, as generous as it gets, and as small.
const GENEROUS: Rest =
    Rest { batches: 16, batch_bytes: BATCH_BYTES, batch_rows: BATCH_ROWS, tickets: 8, quantum: 1 << 20 };
/// The same where a guarantee was admitted, which counts on reads of that size: what is left for readers is as much only then.
const ADMITTED: Rest = Rest { quantum: 8 << 20, ..GENEROUS };
const SMALL: Rest =
    Rest { batches: 4, batch_bytes: MIN_BATCH_BYTES, batch_rows: 1024, tickets: 2, quantum: 128 << 10 };

#[derive(Clone, Copy)]
struct Rest {
    batches: usize,
    batch_bytes: ByteSize,
    batch_rows: usize,
    tickets: usize,
    quantum: usize,
}

impl Rest {
    fn quantum(&self, needs: &Needs<'_>) -> usize {
        let most = needs.quantum.min(needs.slot_bytes as usize);
        self.quantum.min(most).max(CHECK_BLOCK).next_multiple_of(BLOCK)
    }

    /// Batches of a source: any of them may be all that comes.
    fn batches(&self, needs: &Needs<'_>) -> usize {
        let (rate, elements) = needs.load;
        // As long may the capture thread wait for a core that others keep busy.
        let comes = |a_second: u64| u128::from(a_second) * MAX_AWAY.as_millis() / 1000;
        let bytes = comes(rate.0).div_ceil(u128::from(self.batch_bytes.0));
        let rows = comes(elements).div_ceil(self.batch_rows as u128);
        let batches = usize::try_from(bytes.max(rows)).unwrap_or(usize::MAX);
        batches.clamp(self.batches, MOST_BATCHES.max(self.batches))
    }

    /// With as many batches and tickets as cost nothing where memory is plentiful.
    fn plentiful(self, needs: &Needs<'_>) -> Self {
        let columns: u64 = needs.columns.iter().map(|classes| self.in_a_batch(*classes)).sum();
        let one_of_each = (self.batch() * needs.sources as u64 + columns).max(1);
        let of_ring = u64::from(needs.slots) * needs.slot_bytes / BATCHES_OF_RING;
        let each = PLENTY_OF_BATCHES.min(needs.available.0 / PLENTIFUL_BATCHES).min(of_ring) / one_of_each;
        let tickets =
            PLENTY_OF_TICKETS.min(needs.available.0 / PLENTIFUL_TICKETS) / self.quantum(needs) as u64;
        Self {
            batches: usize::try_from(each).unwrap_or(usize::MAX).clamp(self.batches, MOST_BATCHES),
            tickets: usize::try_from(tickets).unwrap_or(usize::MAX).clamp(self.tickets, MOST_TICKETS),
            ..self
        }
    }

    /// Bytes of a batch without columns.
    fn batch(&self) -> u64 {
        self.batch_bytes.0 + (self.batch_rows * size_of::<BatchRow>()) as u64
    }

    fn bytes(&self, needs: &Needs<'_>) -> u64 {
        // One more than the pool has: what is dropped goes there.
        let batches = (self.batches(needs) as u64 + 1) * self.batch() * needs.sources as u64;
        let tickets = (self.tickets * self.quantum(needs)) as u64;
        let columns: u64 = needs.columns.iter().map(|classes| self.in_a_batch(*classes)).sum();
        let columns = self.batches(needs) as u64 * columns + needs.column_bytes;
        batches
            + columns
            + tickets
            + Capture::<MemoryDisk>::own_memory(needs.slot_bytes).0
            + needs.source_bytes
            + needs.said_view()
    }

    fn in_a_batch(&self, classes: Classes) -> u64 {
        Batch::column_bytes(classes, self.batch_bytes.0 as usize, self.batch_rows)
    }

    fn plan(&self, needs: &Needs<'_>, slot_buffers: u64) -> Plan {
        let taken = self.bytes(needs) + slot_buffers * needs.slot_bytes;
        let (view, total) = match needs.view {
            Some(_) => (ByteSize(needs.said_view()), taken),
            None => (needs.usual_view(taken), taken + needs.usual_view(taken).0),
        };
        Plan {
            slot_buffers: slot_buffers as usize,
            batches: self.batches(needs),
            batch_bytes: self.batch_bytes,
            batch_rows: self.batch_rows,
            tickets: self.tickets,
            quantum: self.quantum(needs),
            view,
            total: ByteSize(total),
        }
    }
}

impl Plan {
    /// The same buffers where there are other columns than were planned for.
    #[must_use]
    pub fn with_columns(&self, needs: &Needs<'_>) -> Self {
        let Self { batches, batch_bytes, batch_rows, tickets, quantum, .. } = *self;
        Rest { batches, batch_bytes, batch_rows, tickets, quantum }.plan(needs, self.slot_buffers as u64)
    }
}

/// Spends the memory: slot buffers first, for they carry capture over a drive's pauses.
pub fn plan(needs: &Needs<'_>) -> Result<Plan, TooLittle> {
    // The more buffers, the longer the runway, and the fewer slots may be held: never more than a few of a small ring.
    let promised = u64::from(needs.promised);
    let most = (u64::from(needs.slots) / 8).clamp(USUAL_SLOT_BUFFERS, MOST_SLOT_BUFFERS).max(promised);
    let least = LEAST_SLOT_BUFFERS.max(promised);
    let usual = (SLOT_BUFFER_BYTES / needs.slot_bytes).clamp(USUAL_SLOT_BUFFERS, most);
    let generous = if promised > 0 { ADMITTED } else { GENEROUS };
    let Some(bound) = needs.bound else {
        // A ring should not expire much earlier only because memory is there.
        let cheap = (u64::from(needs.slots) / 32).clamp(FREE_SLOT_BUFFERS.min(most), most);
        let plenty = PLENTY.min(needs.available.0 / PLENTIFUL) / needs.slot_bytes;
        let generous = generous.plentiful(needs);
        return Ok(generous.plan(needs, usual.max(plenty.min(cheap)).max(promised)));
    };
    for rest in [generous, GENEROUS, SMALL] {
        let left = bound.0.saturating_sub(rest.bytes(needs));
        let buffers = left / needs.slot_bytes;
        if buffers >= least {
            // The view takes none but those beyond the usual.
            let view = if needs.view.is_some() { 0 } else { needs.usual_view(0).0 };
            let beside = (left.saturating_sub(view) / needs.slot_bytes).max(usual.max(promised));
            return Ok(rest.plan(needs, buffers.min(beside).min(most)));
        }
    }
    let bare = Needs { view: Some(ByteSize(needs.said_view())), ..*needs };
    let least = SMALL.plan(&bare, least).total.shown_up();
    let view = ByteSize(needs.said_view());
    Err(TooLittle { bound, slot: ByteSize(needs.slot_bytes), sources: needs.sources, view, least })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_format::Class;

    fn needs(slot_bytes: u64, bound: Option<u64>) -> Needs<'static> {
        let bound = bound.map(ByteSize);
        let available = ByteSize(2 << 30);
        Needs {
            slot_bytes,
            slots: 10_000,
            sources: 1,
            source_bytes: 1 << 20,
            bound,
            available,
            promised: 0,
            load: (Rate(0), 0),
            quantum: usize::MAX,
            columns: &[],
            column_bytes: 0,
            view: Some(ByteSize(0)),
        }
    }

    // Promise 1: a drive's pause is ridden out where memory is there for it, and only there; and what a ring keeps does
    // not depend on it.
    #[test]
    fn without_a_bound_buffers_grow_with_the_memory_to_be_had_but_not_at_the_cost_of_the_ring() {
        let buffers = |slots, slot_mib: u64, available_gib: u64| {
            let available = ByteSize(available_gib << 30);
            plan(&Needs { slots, available, ..needs(slot_mib << 20, None) }).unwrap().slot_buffers
        };
        assert_eq!(buffers(10_000, 32, 0), 4);
        assert_eq!(buffers(10_000, 32, 4), 8);
        assert_eq!(buffers(10_000, 32, 8), 16);
        assert_eq!(buffers(10_000, 32, 800), 16);
        assert_eq!(buffers(10_000, 256, 800), 4);
        assert_eq!(buffers(10_000, 1, 800), 64);
        assert_eq!(buffers(123, 32, 800), 8);
        assert_eq!(buffers(500, 8, 800), 15);
        assert_eq!(buffers(40, 32, 800), 5);
    }

    // Promise 1: a guarantee has the buffers that it takes, or the bound is refused.
    #[test]
    fn a_guarantee_has_the_buffers_that_it_takes() {
        let promising = |bound| Needs { promised: 70, quantum: 256 << 10, ..needs(8 << 20, bound) };
        let usual = plan(&promising(None)).unwrap();
        assert_eq!((usual.slot_buffers, usual.quantum), (70, 256 << 10));
        // Reads are as large as was counted on, where the bound has room for that.
        let admitted = |bound| Needs { quantum: 8 << 20, ..promising(bound) };
        assert_eq!(plan(&admitted(None)).unwrap().quantum, 8 << 20);
        assert_eq!(plan(&admitted(Some(700 << 20))).unwrap().quantum, 8 << 20);
        assert_eq!(plan(&admitted(Some(610 << 20))).unwrap().quantum, 1 << 20);
        let too_little = plan(&promising(Some(560 << 20))).unwrap_err();
        assert_eq!(fitting(&promising(None), ByteSize::mib(560)), 69);
        let least = too_little.least().0;
        assert_eq!(plan(&promising(Some(least))).unwrap().slot_buffers, 70);
    }

    // Promise 1: what comes while the capture thread waits for a core has a place to wait in.
    #[test]
    fn a_guarantee_has_batches_for_a_quarter_of_a_second() {
        let batches = |load, bound| plan(&Needs { load, ..needs(8 << 20, bound) }).unwrap();
        let held = |plan: &Plan| plan.batches as u64 * plan.batch_bytes.0;
        let poor = Needs { available: ByteSize::mib(256), ..needs(8 << 20, None) };
        assert_eq!(plan(&poor).unwrap().batches, 16);
        let plan = batches((Rate(200 << 20), 3200), None);
        assert!(held(&plan) >= 50 << 20 && plan.total.0 < 256 << 20, "{plan:?}");
        assert!(batches((Rate(60 << 20), 3_000_000), None).batches * 4096 >= 750_000);
        assert_eq!(batches((Rate(u64::MAX), u64::MAX), None).batches, MOST_BATCHES);
        // Also where memory is short.
        let least = super::plan(&Needs { load: (Rate(200 << 20), 3200), ..needs(8 << 20, Some(1 << 20)) });
        let plan = batches((Rate(200 << 20), 3200), Some(least.unwrap_err().least().0));
        assert!(held(&plan) >= 50 << 20, "{plan:?}");
    }

    // Promise 2: without a guarantee as much is ridden out as costs nothing, and a bound is not spent on it.
    #[test]
    fn batches_grow_with_the_memory_to_be_had() {
        let rich = Needs { available: ByteSize::gib(8), ..needs(64 << 20, None) };
        let one = plan(&rich).unwrap();
        assert!(one.batches * 4096 >= 900_000, "{one:?}");
        let four = plan(&Needs { sources: 4, ..rich }).unwrap();
        assert_eq!(four.batches, one.batches / 4);
        let small = Needs { slots: 8, ..rich };
        assert!((16..64).contains(&plan(&small).unwrap().batches));
        let texts: Classes = std::iter::repeat_n(Class::Bytes, 3).collect();
        let wide = plan(&Needs { columns: &[texts], ..rich }).unwrap();
        assert!(wide.total.0 <= one.total.0 && wide.batches < one.batches / 2, "{wide:?}");
        assert_eq!(plan(&Needs { bound: Some(ByteSize::gib(4)), ..rich }).unwrap().batches, 16);
    }

    // Reads of several readers wait where the schedule sees them, as far as that costs nothing.
    #[test]
    fn tickets_grow_with_the_memory_to_be_had() {
        let tickets = |quantum, available| {
            let needs = Needs { promised: 4, quantum, available, ..needs(8 << 20, None) };
            plan(&needs).unwrap().tickets
        };
        assert_eq!(tickets(1 << 20, ByteSize::gib(16)), 32);
        assert_eq!(tickets(4 << 20, ByteSize::gib(16)), 16);
        assert_eq!(tickets(8 << 20, ByteSize::gib(16)), 8);
        assert_eq!(tickets(1 << 20, ByteSize::gib(4)), 16);
        assert_eq!(tickets(1 << 20, ByteSize::gib(1)), 8);
    }

    // Promise 1: columns are memory like any other.
    #[test]
    fn columns_count_in_every_plan() {
        let some: Classes = [Class::Word, Class::Wide, Class::Bytes].into_iter().collect();
        let columns = &[some, some];
        let available = ByteSize::gib(1);
        let without = |bound| Needs { sources: 2, available, ..needs(8 << 20, bound) };
        let with = |bound| Needs { columns, column_bytes: 777, ..without(bound) };
        let (more, less) = (plan(&with(None)).unwrap(), plan(&without(None)).unwrap());
        let batches = 16 * 2 * Batch::column_bytes(some, 256 << 10, 4096);
        assert_eq!(more.total.0 - less.total.0, batches + 777);
        assert_eq!(less.with_columns(&with(None)), more);
        assert_eq!(more.with_columns(&without(None)), less);
        let bounded = plan(&with(Some(less.total.0))).unwrap();
        assert!(bounded.total <= less.total && bounded.slot_buffers < less.slot_buffers, "{bounded:?}");
        let least = plan(&without(Some(1))).unwrap_err().least().0;
        assert!(plan(&without(Some(least))).is_ok() && plan(&with(Some(least))).is_err());
    }

    // Promise 1: the bird's-eye view takes memory that nothing else needs, unless it was asked for.
    #[test]
    fn a_view_that_nobody_asked_for_gives_way_to_everything_else() {
        let columns = &[std::iter::repeat_n(Class::Word, 4).collect::<Classes>()];
        for log2 in 16..=28 {
            let with = |bound, view| Needs { view, columns, slots: 2000, ..needs(1 << log2, bound) };
            let (none, usual) = (Some(ByteSize(0)), None);
            let least = plan(&with(Some(1), none)).unwrap_err().least().0;
            assert_eq!(plan(&with(Some(1), usual)).unwrap_err(), plan(&with(Some(1), none)).unwrap_err());
            let mut seen = 0;
            for bound in (0..=200).map(|n| least + (n * least) / 20) {
                let (bare, plan) =
                    (plan(&with(Some(bound), none)).unwrap(), plan(&with(Some(bound), usual)).unwrap());
                assert!(plan.total.0 <= bound && plan.view.0 <= bound / 16, "{plan:?} for {bound}");
                assert!(plan.slot_buffers >= bare.slot_buffers.min(4), "{plan:?} and {bare:?}");
                assert_eq!((plan.batches, plan.quantum), (bare.batches, bare.quantum));
                seen += usize::from(plan.view.0 > 0);
            }
            assert!(seen > 0, "slots of 2^{log2} bytes");
            let usual = plan(&with(None, usual)).unwrap();
            assert!(usual.view.0 > 0 && usual.view.0 <= usual.total.0.min(USUAL_VIEW), "{usual:?}");
            // Asked for, it counts like anything else, and is no larger than there can be to tell.
            let said = ByteSize::mib(2);
            let refused = plan(&with(Some(least), Some(said))).unwrap_err();
            assert!(refused.to_string().contains("a bird's-eye view of"), "{refused}");
            let plan = plan(&with(Some(refused.least().0), Some(said))).unwrap();
            assert!(plan.view.0 > 3 << 19 && plan.view <= said, "{plan:?}");
        }
        let few = plan(&Needs { view: Some(ByteSize::gib(1)), slots: 64, ..needs(1 << 20, None) }).unwrap();
        assert!(few.view.0 <= 64 * 3000 + 4096, "{few:?}");
    }

    // Promise 1: memory is bounded, and a bound that cannot be kept is refused with what it would take.
    #[test]
    fn every_plan_stays_within_its_bound_or_says_what_it_takes() {
        for log2 in 16..=28 {
            let slot = 1u64 << log2;
            let usual = plan(&needs(slot, None)).unwrap();
            assert!((4..=64).contains(&usual.slot_buffers), "{usual:?}");
            let mut refused = 0;
            for bound in (0..=40).map(|n| n * usual.total.0 / 20) {
                match plan(&needs(slot, Some(bound))) {
                    Ok(plan) => {
                        assert!(plan.total.0 <= bound, "{plan:?} for {bound}");
                        assert!(plan.slot_buffers >= 3 && plan.quantum as u64 <= slot.max(64 << 10));
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(plan(&needs(slot, Some(error.least.0))).is_ok());
                        assert!(error.to_string().contains("take at least"), "{error}");
                    }
                }
            }
            assert!(refused > 0 && refused < 40);
        }
    }
}
