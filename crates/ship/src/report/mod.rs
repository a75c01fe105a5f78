//! Report of an archive: one self-contained HTML page with figures and tables.
//!
//! The page needs neither network nor scripts. Figures 1 to 3 follow those of R. Plante, "A Performance
//! Study of the BIMA Archiving System" (1996). Computation of the numbers does not belong here (see
//! `statistics` and `planning`), nor does reading or writing of files.

mod axis;
mod chart;
mod figures;
mod markup;
mod tables;
#[cfg(test)]
mod tests;

use crate::planning::{BitRate, ByteSize};
use crate::statistics::{HistogramRow, LongTerm, MinuteRow, Period, hourly, long_term, periods};
use markup::{Page, Text, minute_text};

/// Greatest number of points of a figure, about one per pixel; keeps the page small.
const MAX_POINTS: u32 = 800;

/// Input of a report. All times are minutes since 1970-01-01 00:00 UTC; no order is required.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// Name of the instrument or the site.
    pub instrument: &'a str,
    /// Time of the report.
    pub created: i64,
    /// Counters of archiving per minute.
    pub minutes: &'a [MinuteRow],
    /// Histogram of block rates.
    pub histogram: &'a [HistogramRow],
    /// Backlog over time; a gap of more than one hour between two samples interrupts the line.
    pub backlog: &'a [BacklogSample],
    /// Results of the archived files.
    pub files: &'a [FileResult],
    /// Outages of network or archive.
    pub outages: &'a [Outage],
    /// General limit in force; the proposed limit if absent.
    pub general: Option<BitRate>,
}

/// Backlog at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogSample {
    /// Minute of the sample.
    pub minute: i64,
    /// Data produced and not yet archived.
    pub backlog: ByteSize,
}

/// Result of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileResult {
    /// Path of the file.
    pub path: String,
    /// Size of the archived copy.
    pub size: ByteSize,
    /// The archived copy equals the local file.
    pub verified: bool,
}

/// Interruption of network or archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// First minute of the outage.
    pub from: i64,
    /// First minute after the outage, absent while it lasts.
    pub until: Option<i64>,
    /// Reason in a few words.
    pub reason: String,
}

/// Numbers that several figures and tables share.
struct Summary {
    /// Number of hours per period.
    period_hours: u32,
    periods: Vec<Period>,
    long_term: Option<LongTerm>,
    backlog: Vec<BacklogSample>,
}

impl Summary {
    fn new(input: &ReportInput<'_>) -> Self {
        let hours = hourly(input.minutes);
        let period_hours = match (hours.first(), hours.last()) {
            (Some(first), Some(last)) => {
                period_hours((last.start as f64 - first.start as f64) / 60.0 / f64::from(MAX_POINTS))
            }
            _ => 1,
        };
        let mut backlog = input.backlog.to_vec();
        backlog.sort_by_key(|sample| sample.minute);
        let long_term = long_term(&hours);
        let periods = if period_hours == 1 { hours } else { periods(input.minutes, period_hours) };
        Self { period_hours, periods, long_term, backlog }
    }
}

/// Length of a period: the least part or multiple of a day that is at least `hours`.
fn period_hours(hours: f64) -> u32 {
    let part = [1, 2, 3, 4, 6, 8, 12].into_iter().find(|part| f64::from(*part) >= hours);
    part.unwrap_or_else(|| ((hours / 24.0).ceil() as u32).max(1).saturating_mul(24))
}

/// Report as the text of an HTML file.
pub fn report(input: &ReportInput<'_>) -> String {
    let summary = Summary::new(input);
    let mut page = Page::default();
    let title = Text(input.instrument);
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\" />\n\
         <meta name=\"viewport\" content=\"width=device-width\" />\n\
         <title>Archive report of {title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n\
         <h1>Archive report of {title}</h1>\n<p>Created {} UTC. All times are UTC. Rates are in bits per \
         second (b/s), sizes in bytes (B), with prefixes of powers of 1000.</p>\n",
        include_str!("style.css"),
        minute_text(input.created),
    ));
    tables::totals(&mut page, input);
    tables::limits(&mut page, input, &summary);
    tables::balance(&mut page, input, &summary);
    figures::transfer_rate(&mut page, &summary);
    figures::histogram(&mut page, input);
    figures::production(&mut page, &summary);
    figures::backlog(&mut page, &summary);
    tables::attribution(&mut page, input);
    tables::outages(&mut page, input);
    tables::files(&mut page, input);
    tables::periods(&mut page, &summary);
    page.add(format_args!("</main>\n</body>\n</html>\n"));
    page.into_text()
}
