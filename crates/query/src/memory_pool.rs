//! Memory pool of a query. Half of the memory is reserved for consumers that cannot spill: merges within a
//! thread, and the final merge, which begins when the sorts have taken their shares. A merge of spilled
//! data gets a fixed share, so that concurrent sorts can always proceed. A join holds one side in memory; if that
//! does not fit, the query ends with an error.

use datafusion::common::resources_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// One part in so many is reserved for consumers that cannot spill.
const KEPT: usize = 2;
/// A merge of spilled data gets one part in so many of its share.
const MERGED: usize = 2;
/// A thread can always sort with one part in so many of its share.
const SORTED: usize = 4;
/// Consumer name of merges within a thread.
const MERGE: &str = "ExternalSorterMerge";
/// Consumer names of joins, each of which holds one side in memory.
const JOINS: [&str; 3] = ["HashJoinInput", "NestedLoopJoin", "CrossJoinExec"];

/// Error of a nested-loop join whose left side does not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot join: out of memory; the left side does not fit")]
pub(crate) struct JoinTooLarge;

/// Returns true if a query ended because a side of a join does not fit into memory.
pub fn is_join_memory(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(cause) => JOINS.iter().any(|join| cause.contains(join)),
        DataFusionError::External(cause) => cause.is::<JoinTooLarge>(),
        _ => false,
    }
}

/// Memory pool of a query: see the module.
#[derive(Debug)]
pub(crate) struct QueryMemoryPool {
    /// Part for consumers that can spill.
    shared: FairSpillPool,
    /// Bytes in total, the reserved part included.
    all: usize,
    /// Share of a thread.
    share: usize,
    threads: usize,
    /// Number of merges, running or registered. A thread may have several.
    merging: AtomicUsize,
    /// Held while memory is granted.
    giving: Mutex<()>,
}

impl QueryMemoryPool {
    /// Creates a pool of `all` bytes for a number of threads.
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
        } else {
            self.all
        };
        let (has, free) = (reservation.size(), self.all.saturating_sub(self.shared.reserved()));
        let left = most.saturating_sub(has).min(free);
        if additional > left {
            return resources_err!(
                "cannot allocate {additional} bytes for {}: it has {has} bytes, and {left} are free",
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
