//! History of a shipper: what its ledger tells about limits, for reports and plans. Reads; computes nothing of its own.

use crate::ledger::{self, Ledger};
use crate::planning::{BitRate, ByteSize};
use crate::report::{BacklogSample, FileResult, Outage, ReportInput, report};
use crate::statistics::{HistogramRow, LongTerm, MinuteRow, hourly, long_term};

/// Minutes of an hour.
const HOUR: i64 = 60;

/// Files of a report at most, the latest ones.
const MOST_FILES: usize = 1000;

/// Rows of a ledger over a span of time.
#[derive(Clone, Debug, Default)]
pub struct History {
    minutes: Vec<MinuteRow>,
    histogram: Vec<HistogramRow>,
    backlog: Vec<BacklogSample>,
    files: Vec<FileResult>,
    outages: Vec<Outage>,
}

impl History {
    /// Reads the minutes from `from` until before `to` (minutes since 1970).
    pub fn read(ledger: &Ledger, from: i64, to: i64) -> ledger::Result<Self> {
        let minutes = ledger.minutes(from, to)?;
        let histogram = ledger.rates(from.div_euclid(HOUR), to.div_euclid(HOUR) + 1)?;
        let sample = |(minute, bytes)| BacklogSample { minute, backlog: ByteSize(bytes) };
        let backlog = ledger.backlogs(from, to)?.into_iter().map(sample).collect();
        let versions = ledger.versions(from * 60_000, to * 60_000)?;
        let latest = versions.len().saturating_sub(MOST_FILES);
        let files = versions.into_iter().skip(latest).map(|version| FileResult {
            path: version.key.relative,
            size: ByteSize(version.size),
            verified: version.verified,
        });
        let outages = ledger.outages(from * 60_000)?.into_iter().map(|outage| Outage {
            from: outage.begin_ms.div_euclid(60_000),
            until: outage.end_ms.map(|end| end.div_euclid(60_000)),
            reason: outage.reason,
        });
        Ok(Self { minutes, histogram, backlog, files: files.collect(), outages: outages.collect() })
    }

    /// Long-term rate of archiving; `None` if nothing was sent.
    pub fn archive_rate(&self) -> Option<LongTerm> {
        long_term(&hourly(&self.minutes))
    }

    /// Report as an HTML page. `created` is the time of the report in minutes since 1970.
    pub fn report(&self, instrument: &str, created: i64, general: Option<BitRate>) -> String {
        report(&ReportInput {
            instrument,
            created,
            minutes: &self.minutes,
            histogram: &self.histogram,
            backlog: &self.backlog,
            files: &self.files,
            outages: &self.outages,
            general,
        })
    }
}
