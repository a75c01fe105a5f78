//! Figures of the report: transfer rate, histogram, production rate, backlog.

use std::fmt::Write;

use super::axis::Axis;
use super::chart::{Chart, LINE, SQUARE, TRIANGLE};
use super::markup::{Page, minute_text};
use super::{BacklogSample, MAX_POINTS, ReportInput, Summary};
use crate::planning::BitRate;
use crate::statistics::{self, Period};

/// Time between two backlog samples, in minutes, above which the line is interrupted.
const BACKLOG_GAP: i64 = 60;

/// Middle of a period, the place of its marks.
fn middle(period: &Period, summary: &Summary) -> f64 {
    period.start as f64 + 30.0 * f64::from(summary.period_hours)
}

/// Time axis over all periods.
fn time_axis(summary: &Summary) -> Option<Axis> {
    let (first, last) = (summary.periods.first()?, summary.periods.last()?);
    Some(Axis::time(first.start, last.start.saturating_add(60 * i64::from(summary.period_hours))))
}

fn period_name(summary: &Summary) -> String {
    match summary.period_hours {
        1 => "one hour".to_owned(),
        hours => format!("{hours} hours"),
    }
}

fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

/// Adds figure 1: transfer rate of blocks, mean and RMS deviation per period.
pub(super) fn transfer_rate(page: &mut Page, summary: &Summary) {
    let rates: Vec<(f64, f64, f64)> = summary
        .periods
        .iter()
        .filter_map(|period| Some((middle(period, summary), period.rate.mean()?, period.rate.rms()?)))
        .collect();
    let (Some(x), Some(long_term)) = (time_axis(summary), summary.long_term) else {
        page.add(format_args!("<p>Figure 1 is absent: no blocks were sent.</p>\n"));
        return;
    };
    let top = greatest(rates.iter().map(|(_, mean, rms)| mean + rms));
    let mut chart = Chart::new(x, Axis::from_zero("transfer rate", "b/s", top));
    chart.mark("second-line", (LINE, "RMS deviation"), &rates, |chart, (at, mean, rms)| {
        format!("M{:.1} {:.1}V{:.1}", chart.across(*at), chart.down(mean - rms), chart.down(mean + rms))
    });
    chart.mark("first", (TRIANGLE, "mean rate"), &rates, |chart, (at, mean, _)| chart.triangle(*at, *mean));
    let description = format!(
        "{} points. Long-term mean {}, RMS deviation of single blocks {}, greatest mean {}.",
        rates.len(),
        long_term.rate,
        long_term.block_rms,
        BitRate::from_bits(greatest(rates.iter().map(|(_, mean, _)| *mean)))
    );
    let caption = format!(
        "Fig. 1. Archive transfer rates averaged over {}. Error bars show the RMS deviation above and below the \
         average. In gaps no blocks were sent.",
        period_name(summary)
    );
    chart.finish(page, "rate", "Archive transfer rate", &description, &caption);
}

/// Adds figure 2: histogram of the transfer rates of blocks.
pub(super) fn histogram(page: &mut Page, input: &ReportInput<'_>) {
    let Some(histogram) = statistics::histogram(input.histogram) else {
        page.add(format_args!("<p>Figure 2 is absent: no block rates were recorded.</p>\n"));
        return;
    };
    let (low, high) = match histogram.edges[..] {
        [first, .., last] => (first, last),
        _ => (0.0, 0.0),
    };
    let x = if histogram.logarithmic {
        Axis::logarithmic_rates("transfer rate", low, high)
    } else {
        Axis::from_zero("transfer rate", "b/s", high)
    };
    let tallest = greatest(histogram.counts.iter().copied());
    let mut chart = Chart::new(x, Axis::from_zero("blocks", "", tallest));
    let bars = histogram.edges.windows(2).zip(&histogram.counts).filter(|(_, count)| **count > 0.0);
    chart.mark("first", (SQUARE, "blocks"), bars, |chart, (edges, count)| {
        let (left, right) = (chart.across(edges[0]), chart.across(edges[1]));
        format!(
            "M{left:.1} {:.1}V{:.1}H{right:.1}V{:.1}z",
            chart.down(0.0),
            chart.down(*count),
            chart.down(0.0)
        )
    });
    let mode = histogram.edges.windows(2).zip(&histogram.counts).find(|(_, count)| **count >= tallest);
    let mode = mode.map_or_else(String::new, |(edges, _)| {
        format!(" The tallest bin is {} to {}.", BitRate::from_bits(edges[0]), BitRate::from_bits(edges[1]))
    });
    let description = format!("{:.0} blocks.{mode}", histogram.counts.iter().sum::<f64>());
    let caption = "Fig. 2. Histogram of the transfer rates of all blocks.";
    chart.finish(page, "histogram", "Histogram of transfer rates", &description, caption);
}

/// Adds figure 3: production rate, mean and peak per period.
pub(super) fn production(page: &mut Page, summary: &Summary) {
    let Some(x) = time_axis(summary) else {
        page.add(format_args!("<p>Figure 3 is absent: no minutes were recorded.</p>\n"));
        return;
    };
    let archive = summary.long_term.map(|long_term| long_term.rate.bits());
    let peak = greatest(summary.periods.iter().map(|period| period.production_peak.bits()));
    let mut chart =
        Chart::new(x, Axis::from_zero("production rate", "b/s", peak.max(archive.unwrap_or(0.0))));
    chart.mark("second", (SQUARE, "peak of one minute"), &summary.periods, |chart, period| {
        chart.square(middle(period, summary), period.production_peak.bits())
    });
    chart.mark("first", (TRIANGLE, "mean rate"), &summary.periods, |chart, period| {
        chart.triangle(middle(period, summary), period.production.bits())
    });
    if let Some(archive) = archive {
        chart.mark("limit", (LINE, "archive rate R"), [archive], |chart, rate| {
            format!("M{:.1} {:.1}H{:.1}", chart.across(f64::MIN), chart.down(rate), chart.across(f64::MAX))
        });
    }
    let mean = greatest(summary.periods.iter().map(|period| period.production.bits()));
    let description = format!(
        "{} points. Greatest mean {}, greatest peak {}.",
        summary.periods.len(),
        BitRate::from_bits(mean),
        BitRate::from_bits(peak)
    );
    let caption = format!(
        "Fig. 3. Data production rate averaged over {} (triangles) and the peak of one minute (squares).",
        period_name(summary)
    );
    chart.finish(page, "production", "Data production rate", &description, &caption);
}

/// Adds figure 4: backlog over time.
pub(super) fn backlog(page: &mut Page, summary: &Summary) {
    let (Some(first), Some(last), Some(peak)) = (
        summary.backlog.first(),
        summary.backlog.last(),
        summary.backlog.iter().max_by_key(|sample| sample.backlog),
    ) else {
        page.add(format_args!("<p>Figure 4 is absent: no backlog was recorded.</p>\n"));
        return;
    };
    let y = Axis::from_zero("backlog", "B", peak.backlog.0 as f64);
    let mut chart = Chart::new(Axis::time(first.minute, last.minute), y);
    let runs = summary.backlog.chunk_by(|a, b| b.minute.saturating_sub(a.minute) <= BACKLOG_GAP);
    let group = summary.backlog.len() / MAX_POINTS as usize + 1;
    chart.mark("first-line", (LINE, "backlog"), runs, |chart, run| line(chart, run, group));
    let description = format!(
        "Greatest backlog {} at {}, last backlog {} at {}.",
        peak.backlog,
        minute_text(peak.minute),
        last.backlog,
        minute_text(last.minute)
    );
    let caption = "Fig. 4. Data produced and not yet archived. In gaps the backlog was not recorded.";
    chart.finish(page, "backlog", "Backlog", &description, caption);
}

/// Line through the greatest sample of each `group`; a single sample becomes a dot.
fn line(chart: &Chart, run: &[BacklogSample], group: usize) -> String {
    let mut path = String::new();
    for sample in run.chunks(group).filter_map(|group| group.iter().max_by_key(|sample| sample.backlog)) {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let (x, y) = (chart.across(sample.minute as f64), chart.down(sample.backlog.0 as f64));
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    if !path.contains('L') {
        path.push_str("h0");
    }
    path
}
