//! Tables of the report: totals, limits, balance, attribution, outages, files, values per period.

use super::markup::{Page, minute_text};
use super::{ReportInput, Summary};
use crate::planning::{
    BitRate, Hours, OUTAGE, PlanningError, general_limit, maximum_limit, outage_catch_up, outage_space,
};
use crate::statistics::{self, Balance, Stage};

/// Greatest number of files and of outages listed; keeps the page readable.
const MAX_ROWS: usize = 1000;

/// Observing times of the table of limits, in hours.
const OBSERVING_TIMES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 12.0, 24.0];

fn row<const N: usize>(cells: [&dyn ToString; N]) -> [String; N] {
    cells.map(ToString::to_string)
}

/// Adds the totals of all rows.
pub(super) fn totals(page: &mut Page, input: &ReportInput<'_>) {
    let totals = statistics::totals(input.minutes);
    let verified = input.files.iter().filter(|file| file.verified).count();
    let rows = [
        row([&"Data produced", &totals.produced]),
        row([&"Data sent", &totals.sent]),
        row([&"Blocks sent", &totals.blocks]),
        row([&"Data sent again", &totals.resent]),
        row([&"Damaged blocks", &totals.damaged_blocks]),
        row([&"Files verified", &verified]),
        row([&"Files not verified", &(input.files.len() - verified)]),
    ];
    page.table("Totals", ["Quantity", "Value"], rows);
}

/// Adds the archive rate and the limits of the production rate.
pub(super) fn limits(page: &mut Page, input: &ReportInput<'_>, summary: &Summary) {
    let Some(long_term) = summary.long_term else {
        page.add(format_args!(
            "<p>Limits are absent: no blocks were sent, so no archive rate is known.</p>\n"
        ));
        return;
    };
    let archive = long_term.rate;
    let mut rows = vec![
        row([&"Archive rate R, mean of sending hours", &archive]),
        row([&"RMS deviation of hourly means", &long_term.rms]),
        row([&"Sending hours", &long_term.hours]),
        row([&"Mean rate of all blocks", &long_term.block_rate]),
        row([&"RMS deviation of block rates", &long_term.block_rms]),
    ];
    let limit_rows = || -> Result<Vec<[String; 2]>, PlanningError> {
        let general = general_limit(archive, input.general)?;
        let name = if input.general.is_some() { "General limit" } else { "General limit, proposed" };
        let mut rows = vec![row([&name, &general])];
        for hours in OBSERVING_TIMES {
            let maximum = maximum_limit(archive, general, Hours::new(hours))?;
            rows.push(row([&format!("Maximum limit of a project of {hours} h"), &maximum]));
        }
        rows.push(row([&"Disk space for an outage of 2 days", &outage_space(general, OUTAGE)]));
        rows.push(row([
            &"Catch-up time after an outage of 2 days",
            &outage_catch_up(archive, general, OUTAGE),
        ]));
        Ok(rows)
    };
    match limit_rows() {
        Ok(found) => rows.extend(found),
        Err(error) => rows.push(row([&"General limit", &error])),
    }
    page.table("Archive rate and limits of the production rate", ["Quantity", "Value"], rows);
}

/// Adds production against archive rate, the backlog and the catch-up estimate.
pub(super) fn balance(page: &mut Page, input: &ReportInput<'_>, summary: &Summary) {
    let (Some(last), Some(long_term)) = (summary.backlog.last(), summary.long_term) else {
        return;
    };
    let balance = Balance::new(recent_production(input), long_term.rate, last.backlog);
    let rows = [
        row([&"Production rate, mean of the last recorded day", &balance.production]),
        row([&"Archive rate R", &balance.archive]),
        row([&format!("Backlog at {}", minute_text(last.minute)), &balance.backlog]),
        row([&"Time until caught up, at these rates", &balance.catch_up]),
    ];
    page.table("Backlog", ["Quantity", "Value"], rows);
}

/// Mean production rate of the last 24 recorded hours.
fn recent_production(input: &ReportInput<'_>) -> BitRate {
    let times = || input.minutes.iter().map(|row| row.minute);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return BitRate::default();
    };
    let from = first.max(last.saturating_sub(1439));
    let recent = input.minutes.iter().filter(|row| row.minute >= from);
    let bytes = recent.fold(0u64, |sum, row| sum.saturating_add(row.produced_bytes));
    BitRate::from_bytes(bytes, (last - from + 1) as f64 * 60.0)
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "reading of local files",
        Stage::Network => "network",
        Stage::Archive => "archive",
    }
}

/// Adds the attribution of time to the stages.
pub(super) fn attribution(page: &mut Page, input: &ReportInput<'_>) {
    let Some(found) = statistics::attribution(input.minutes) else {
        return;
    };
    let rows = found.seconds.map(|(stage, seconds)| {
        let share = format!("{:.1} %", 100.0 * found.share(stage));
        row([&stage_name(stage), &Hours::new(seconds / 3600.0), &share])
    });
    let caption =
        format!("Time by stage; the stage that limits the archive rate: {}", stage_name(found.limiting));
    page.table(&caption, ["Stage", "Time", "Share"], rows);
}

/// Adds the outages, the latest first.
pub(super) fn outages(page: &mut Page, input: &ReportInput<'_>) {
    let mut outages: Vec<_> = input.outages.iter().collect();
    outages.sort_by_key(|outage| std::cmp::Reverse(outage.from));
    let rows = outages.iter().take(MAX_ROWS).map(|outage| {
        let until = outage.until.map_or_else(|| "lasting".to_owned(), minute_text);
        let end = outage.until.unwrap_or(input.created);
        let length = Hours::new(end.saturating_sub(outage.from) as f64 / 60.0);
        row([&minute_text(outage.from), &until, &length, &outage.reason])
    });
    page.table(&listed("Outages", outages.len()), ["From", "Until", "Duration", "Reason"], rows);
}

/// Adds the results per file: unverified files first, then in order of path.
pub(super) fn files(page: &mut Page, input: &ReportInput<'_>) {
    let mut files: Vec<_> = input.files.iter().collect();
    files.sort_by_key(|file| (file.verified, &file.path));
    let rows = files.iter().take(MAX_ROWS).map(|file| {
        let result = if file.verified { "verified" } else { "NOT VERIFIED" };
        row([&file.path, &file.size, &result])
    });
    page.table(&listed("Files", files.len()), ["File", "Size", "Result"], rows);
}

fn listed(name: &str, count: usize) -> String {
    if count > MAX_ROWS {
        format!("{name} ({MAX_ROWS} of {count} listed)")
    } else {
        format!("{name} ({count})")
    }
}

/// Adds the values of figures 1 and 3.
pub(super) fn periods(page: &mut Page, summary: &Summary) {
    let rows = summary.periods.iter().map(|period| {
        let rate = |bits: Option<f64>| {
            bits.map_or_else(|| "–".to_owned(), |bits| BitRate::from_bits(bits).to_string())
        };
        let (mean, rms) = (rate(period.rate.mean()), rate(period.rate.rms()));
        let blocks = period.rate.count();
        row([&minute_text(period.start), &blocks, &mean, &rms, &period.production, &period.production_peak])
    });
    let head = ["From", "Blocks", "Transfer rate", "RMS deviation", "Production rate", "Production peak"];
    page.add(format_args!("<details>\n<summary>Values of figures 1 and 3</summary>\n"));
    page.table("Values of figures 1 and 3", head, rows);
    page.add(format_args!("</details>\n"));
}
