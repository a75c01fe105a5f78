//! Totals of a whole record: sums, the limiting stage, long-term archive rate, backlog balance.

use super::moments::Moments;
use super::periods::Period;
use super::rows::MinuteRow;
use crate::planning::{BitRate, ByteSize, CatchUp};

/// Sums over all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of blocks sent.
    pub blocks: u64,
    /// Size of the blocks sent.
    pub sent: ByteSize,
    /// Size of the data that the instrument produced.
    pub produced: ByteSize,
    /// Size of the data sent again after a failed verification.
    pub resent: ByteSize,
    /// Blocks that arrived damaged.
    pub damaged_blocks: u64,
}

/// Sums over all rows; sums beyond 64 bits stay at the greatest value.
pub fn totals(rows: &[MinuteRow]) -> Totals {
    let sum = |field: fn(&MinuteRow) -> u64| rows.iter().map(field).fold(0, u64::saturating_add);
    Totals {
        blocks: sum(|row| row.blocks),
        sent: ByteSize(sum(|row| row.bytes)),
        produced: ByteSize(sum(|row| row.produced_bytes)),
        resent: ByteSize(sum(|row| row.resent_bytes)),
        damaged_blocks: sum(|row| row.damaged_blocks),
    }
}

/// Stage of archiving that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading of files from the local disk.
    Reading,
    /// Transfer over the network.
    Network,
    /// Writing and verification in the archive.
    Archive,
}

/// Time per stage in seconds, and the stage that limits the archive rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attribution {
    /// Seconds of each stage: reading, network, archive.
    pub seconds: [(Stage, f64); 3],
    /// Stage with the longest time.
    pub limiting: Stage,
}

impl Attribution {
    /// Share of a stage in the time of all stages, from 0 to 1.
    pub fn share(&self, stage: Stage) -> f64 {
        let all: f64 = self.seconds.iter().map(|(_, seconds)| seconds).sum();
        let own: f64 =
            self.seconds.iter().filter(|(other, _)| *other == stage).map(|(_, seconds)| seconds).sum();
        own / all
    }
}

/// Attribution of the time of all rows to the stages, absent if no time is recorded.
pub fn attribution(rows: &[MinuteRow]) -> Option<Attribution> {
    let sum = |field: fn(&MinuteRow) -> u64| {
        rows.iter().map(|row| u128::from(field(row))).sum::<u128>() as f64 / 1e6
    };
    let seconds = [
        (Stage::Reading, sum(|row| row.read_us)),
        (Stage::Network, sum(|row| row.network_us)),
        (Stage::Archive, sum(|row| row.archive_us)),
    ];
    let (limiting, longest) = seconds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (longest > 0.0).then_some(Attribution { seconds, limiting })
}

/// Long-term archive rate with deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongTerm {
    /// Mean of the hourly means over the hours in which blocks were sent: R of the limits.
    pub rate: BitRate,
    /// RMS deviation of the hourly means from R.
    pub rms: BitRate,
    /// Number of hours in which blocks were sent.
    pub hours: u64,
    /// Mean rate of all blocks, whatever their hour.
    pub block_rate: BitRate,
    /// RMS deviation of the block rates.
    pub block_rms: BitRate,
}

/// Long-term archive rate from hourly statistics, absent if no block was sent.
///
/// Each sending hour counts once. A mean over blocks favours fast hours, because they send more blocks, and
/// overestimates the volume that a slow day archives.
pub fn long_term(hours: &[Period]) -> Option<LongTerm> {
    let blocks: Moments = hours.iter().map(|hour| hour.rate).collect();
    let means: Moments = hours.iter().filter_map(|hour| hour.rate.mean()).map(Moments::of_value).collect();
    Some(LongTerm {
        rate: BitRate::from_bits(means.mean()?),
        rms: BitRate::from_bits(means.rms()?),
        hours: means.count(),
        block_rate: BitRate::from_bits(blocks.mean()?),
        block_rms: BitRate::from_bits(blocks.rms()?),
    })
}

/// Balance of production and archive rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// Production rate of the instrument.
    pub production: BitRate,
    /// Archive rate over the long term.
    pub archive: BitRate,
    /// Data produced and not yet archived.
    pub backlog: ByteSize,
    /// Time until the backlog is archived, at these rates.
    pub catch_up: CatchUp,
}

impl Balance {
    /// Balance with the catch-up time computed.
    pub fn new(production: BitRate, archive: BitRate, backlog: ByteSize) -> Self {
        Self { production, archive, backlog, catch_up: CatchUp::new(production, archive, backlog) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hourly;
    use super::*;

    fn sent(minute: i64, blocks: u64, rate: f64) -> MinuteRow {
        let count = blocks as f64;
        MinuteRow {
            minute,
            blocks,
            rate_sum: rate * count,
            rate_square_sum: rate * rate * count,
            bytes: blocks * 65_536,
            network_us: 1_500_000 * blocks,
            read_us: 1000,
            archive_us: 500_000 * blocks,
            ..MinuteRow::default()
        }
    }

    #[test]
    fn hours_count_once() {
        let rows =
            [sent(0, 30, 600e3), sent(60, 10, 200e3), MinuteRow { minute: 130, ..MinuteRow::default() }];
        let found = long_term(&hourly(&rows)).unwrap();
        assert_eq!((found.rate.bits(), found.rms.bits(), found.hours), (400e3, 200e3, 2));
        assert_eq!(found.block_rate, BitRate::from_bits(500e3));
        assert!((found.block_rms.bits() - 30_000_000_000f64.sqrt()).abs() < 1e-6);
        assert_eq!(long_term(&hourly(&rows[2..])), None);
    }

    #[test]
    fn network_limits() {
        let rows = [sent(0, 30, 600e3), sent(60, 10, 200e3)];
        let found = attribution(&rows).unwrap();
        assert_eq!(found.limiting, Stage::Network);
        assert!((found.share(Stage::Network) - 60.0 / 80.002).abs() < 1e-12);
        assert_eq!(attribution(&[MinuteRow::default()]), None);
        assert_eq!(totals(&rows).sent, ByteSize(40 * 65_536));
        let full = MinuteRow { bytes: u64::MAX, ..MinuteRow::default() };
        assert_eq!(totals(&[full, full]).sent, ByteSize(u64::MAX));
    }

    #[test]
    fn balance_computes_the_catch_up_time() {
        let balance =
            Balance::new(BitRate::from_bits(250e3), BitRate::from_bits(350e3), ByteSize(45_000_000));
        assert_eq!(balance.catch_up.to_string(), "1 h 0 min");
    }
}
