//! Memory pool of a query. Half of the memory is reserved for consumers that cannot spill: merges within a
//! thread, and the final merge, which begins when the sorts have taken their shares. A merge of spilled
//! data, and a join of sorted inputs, each get a fixed share, so that concurrent sorts can always proceed.

use datafusion::common::resources_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// One part in so many is for those that cannot put anything aside, and for nobody else.
const KEPT: usize = 2;
/// What was put aside is merged with one part in so many of what each has who merges.
const MERGED: usize = 2;
/// One part in so many of its share a thread can sort with whatever others have.
const SORTED: usize = 4;
/// What the engine calls a thread's merging, and its joining of what is sorted.
const MERGE: &str = "ExternalSorterMerge";
const JOIN: &str = "SMJStream";
/// A thread joins with one part in so many of its share.
const JOINED: usize = 4;

/// See the module.
#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    /// What those share that can put something aside.
    shared: FairSpillPool,
    /// All there is, with what is kept.
    all: usize,
    /// A thread's share of it.
    share: usize,
    threads: usize,
    /// How many merge, or are going to: where both sides of a join are sorted a thread has two.
    merging: AtomicUsize,
    /// Held while something is given.
    giving: Mutex<()>,
}

impl QueryMemoryPool {
    /// So many bytes, for so many threads.
    pub(crate) fn new(all: usize, threads: NonZeroUsize) -> Self {
        let shared = FairSpillPool::new(all - all / KEPT);
        let (merging, giving) = (AtomicUsize::new(0), Mutex::default());
        Self { shared, all, share: all / threads.get(), threads: threads.get(), merging, giving }
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.shared.reserved(), self.all)
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &'static str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.name().starts_with(MERGE) {
            self.merging.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.name().starts_with(MERGE) {
            self.merging.fetch_sub(1, Ordering::Relaxed);
        }
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shared.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let _giving = self.giving.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = reservation.consumer();
        let most = if consumer.can_spill() {
            if self.shared.try_grow(reservation, additional).is_ok() {
                return Ok(());
            }
            self.share / SORTED
        } else if consumer.name().starts_with(MERGE) {
            self.all / self.merging.load(Ordering::Relaxed).max(self.threads) / MERGED
        } else if consumer.name().starts_with(JOIN) {
            self.share / JOINED
        } else {
            self.all
        };
        let (has, free) = (reservation.size(), self.all.saturating_sub(self.shared.reserved()));
        let left = most.saturating_sub(has).min(free);
        if additional > left {
            return resources_err!(
                "{} has {has} bytes and wants {additional} more, but there are {left} for it",
                consumer.name()
            );
        }
        self.shared.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.shared.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn register(pool: &Arc<dyn MemoryPool>, name: &str) -> MemoryReservation {
        let spills = !name.contains("Merge");
        MemoryConsumer::new(name).with_can_spill(spills).register(pool)
    }

    fn pool() -> Arc<dyn MemoryPool> {
        Arc::new(QueryMemoryPool::new(1600, NonZeroUsize::new(2).unwrap()))
    }

    #[test]
    fn what_cannot_be_put_aside_finds_room_when_the_others_have_theirs() {
        let pool = pool();
        let sorts = ["ExternalSorter[0]", "ExternalSorter[1]"].map(|name| register(&pool, name));
        for sort in &sorts {
            sort.try_grow(400).unwrap();
        }
        assert!(sorts[0].try_grow(1).is_err());
        let last = register(&pool, "SortPreservingMergeExec");
        last.try_grow(800).unwrap();
        assert!(last.try_grow(1).is_err());
        sorts[0].free();
        last.try_grow(400).unwrap();
        assert!(sorts[0].try_grow(1).is_err());
        assert_eq!(pool.reserved(), 1600);
    }

    #[test]
    fn one_that_merges_leaves_the_others_theirs() {
        let pool = pool();
        let merges = ["ExternalSorterMerge[0]", "ExternalSorterMerge[1]"].map(|name| register(&pool, name));
        for merge in &merges {
            merge.try_grow(400).unwrap();
            assert!(merge.try_grow(1).is_err());
        }
        let sort = register(&pool, "ExternalSorter[1]");
        sort.try_grow(200).unwrap();
        assert!(sort.try_grow(1).is_err());
        // What it has sorted and not put aside is merged as far as there is any memory.
        let part = merges[1].new_empty();
        part.try_grow(400).unwrap();
    }
}
