//! Meter of a shipper: sums of the current minute, histogram of block rates, and totals since the start.

use crate::ledger::Journal;
use crate::planning::BitRate;
use crate::statistics::{HistogramRow, MinuteRow, rate_bin};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that one segment spent in each place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) read: Duration,
    pub(super) network: Duration,
    pub(super) archive: Duration,
}

/// Totals since the start of the shipper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Files that were delivered.
    pub files: u64,
    /// Bytes of delivered files.
    pub bytes: u64,
    /// Bytes of file contents that were sent, each time they were sent.
    pub sent_bytes: u64,
    /// Bytes that went over the network as bodies.
    pub wire_bytes: u64,
    /// Bytes that were sent more than once.
    pub resent_bytes: u64,
    /// Blocks that arrived damaged and were sent again.
    pub damaged_blocks: u64,
    /// Files that the archive has with an unverifiable copy.
    pub unverified: u64,
}

#[derive(Debug, Default)]
pub(super) struct Meter {
    minute: MinuteRow,
    rates: BTreeMap<(i64, u16), u64>,
    pub(super) totals: Totals,
}

impl Meter {
    /// Counts a segment that the archive has acknowledged at `minute` (minutes since 1970).
    pub(super) fn segment(&mut self, minute: i64, bytes: u64, spent: &Spent) {
        let row = &mut self.minute;
        row.minute = minute;
        row.blocks += 1;
        row.bytes += bytes;
        row.read_us += spent.read.as_micros() as u64;
        row.network_us += spent.network.as_micros() as u64;
        row.archive_us += spent.archive.as_micros() as u64;
        let seconds = (spent.network + spent.archive).as_secs_f64().max(1e-6);
        let rate = BitRate::from_bytes(bytes, seconds);
        row.rate_sum += rate.bits();
        row.rate_square_sum += rate.bits() * rate.bits();
        *self.rates.entry((minute.div_euclid(60), rate_bin(rate))).or_default() += 1;
    }

    /// Counts bytes that are sent, `is_again` if not for the first time.
    pub(super) fn sent(&mut self, bytes: u64, is_again: bool) {
        self.totals.sent_bytes += bytes;
        if is_again {
            self.totals.resent_bytes += bytes;
            self.minute.resent_bytes += bytes;
        }
    }

    /// Counts a block that arrived damaged.
    pub(super) fn damaged(&mut self) {
        self.totals.damaged_blocks += 1;
        self.minute.damaged_blocks += 1;
    }

    /// Counts bytes that the instrument has written.
    pub(super) fn produced(&mut self, bytes: u64) {
        self.minute.produced_bytes += bytes;
    }

    /// Moves the sums of a minute to the ledger.
    pub(super) fn flush(&mut self, minute: i64, ledger: &mut Journal) {
        let row = MinuteRow { minute, ..std::mem::take(&mut self.minute) };
        if row == (MinuteRow { minute, ..MinuteRow::default() }) {
            return;
        }
        let rates = std::mem::take(&mut self.rates);
        let rates = rates.into_iter().map(|((hour, bin), count)| HistogramRow { hour, bin, count });
        ledger.add_throughput(row, rates.collect());
    }
}
