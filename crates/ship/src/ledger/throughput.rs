//! Throughput of the ledger: sums by minute and histogram of rates by hour.

use super::{Ledger, Result};
use crate::statistics::{HistogramRow, MinuteRow};
use rusqlite::params;

impl Ledger {
    /// Adds the sums of a minute, and the numbers of blocks by rate, to those of the ledger.
    pub fn add_throughput(&mut self, minute: &MinuteRow, rates: &[HistogramRow]) -> Result<()> {
        self.write(|connection| {
            let sql = "INSERT INTO minutes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT(minute) DO UPDATE SET
                 blocks = blocks + excluded.blocks, bytes = bytes + excluded.bytes,
                 rate_sum = rate_sum + excluded.rate_sum, rate_square_sum = rate_square_sum + excluded.rate_square_sum,
                 read_us = read_us + excluded.read_us, network_us = network_us + excluded.network_us,
                 archive_us = archive_us + excluded.archive_us, produced_bytes = produced_bytes + excluded.produced_bytes,
                 resent_bytes = resent_bytes + excluded.resent_bytes,
                 damaged_blocks = damaged_blocks + excluded.damaged_blocks";
            connection.prepare_cached(sql)?.execute(params![
                minute.minute,
                minute.blocks as i64,
                minute.bytes as i64,
                minute.rate_sum,
                minute.rate_square_sum,
                minute.read_us as i64,
                minute.network_us as i64,
                minute.archive_us as i64,
                minute.produced_bytes as i64,
                minute.resent_bytes as i64,
                minute.damaged_blocks as i64,
            ])?;
            let sql = "INSERT INTO rates VALUES (?1, ?2, ?3)
                 ON CONFLICT(hour, bin) DO UPDATE SET count = count + excluded.count";
            let mut statement = connection.prepare_cached(sql)?;
            for HistogramRow { hour, bin, count } in rates {
                statement.execute(params![hour, bin, *count as i64])?;
            }
            Ok(())
        })
    }

    /// Sums of the minutes from `from` until before `to`. Minutes without traffic are absent.
    pub fn minutes(&self, from: i64, to: i64) -> Result<Vec<MinuteRow>> {
        let sql = "SELECT minute, blocks, bytes, rate_sum, rate_square_sum, read_us, network_us, archive_us,
             produced_bytes, resent_bytes, damaged_blocks FROM minutes WHERE minute >= ?1 AND minute < ?2
             ORDER BY minute";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([from, to], |row| {
            let count = |column: usize| row.get::<_, i64>(column).map(|count| count as u64);
            Ok(MinuteRow {
                minute: row.get(0)?,
                blocks: count(1)?,
                bytes: count(2)?,
                rate_sum: row.get(3)?,
                rate_square_sum: row.get(4)?,
                read_us: count(5)?,
                network_us: count(6)?,
                archive_us: count(7)?,
                produced_bytes: count(8)?,
                resent_bytes: count(9)?,
                damaged_blocks: count(10)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Numbers of blocks by rate in the hours from `from` until before `to`.
    pub fn rates(&self, from: i64, to: i64) -> Result<Vec<HistogramRow>> {
        let sql = "SELECT hour, bin, count FROM rates WHERE hour >= ?1 AND hour < ?2 ORDER BY hour, bin";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([from, to], |row| {
            let (hour, bin, count) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?);
            Ok(HistogramRow { hour, bin, count: count as u64 })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Records the backlog of a minute in bytes; the last record of a minute counts.
    pub fn set_backlog(&mut self, minute: i64, bytes: u64) -> Result<()> {
        self.write(|connection| {
            let sql = "INSERT OR REPLACE INTO backlog(minute, bytes) VALUES (?1, ?2)";
            connection.prepare_cached(sql)?.execute([minute, bytes as i64]).map(drop)
        })
    }

    /// Backlogs in bytes of the minutes from `from` until before `to`.
    pub fn backlogs(&self, from: i64, to: i64) -> Result<Vec<(i64, u64)>> {
        let sql = "SELECT minute, bytes FROM backlog WHERE minute >= ?1 AND minute < ?2 ORDER BY minute";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([from, to], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
