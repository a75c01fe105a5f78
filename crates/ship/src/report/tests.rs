//! Tests of the report: golden file, balanced tags, hostile texts, gaps.
//!
//! `HOLDFAST_BLESS=1` renews the golden file.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::statistics::rate_bin;

/// First minute: 1996-11-14 00:00 UTC.
const START: i64 = 14_132_160;

/// Three hours of sending, four hours of silence, two hours of sending.
fn minutes() -> Vec<MinuteRow> {
    let sending = (0..180).chain(420..540);
    let row = |minute: i64| {
        let rate = 350e3 + 1e3 * ((minute * 37) % 200 - 100) as f64;
        MinuteRow {
            minute: START + minute,
            blocks: 40,
            bytes: 40 * 65_536,
            rate_sum: 40.0 * rate,
            rate_square_sum: 40.0 * (rate * rate + 1e10),
            read_us: 1_000_000,
            network_us: 50_000_000,
            archive_us: 4_000_000,
            produced_bytes: 420_000 + (minute % 60) as u64 * 10_000,
            resent_bytes: u64::from(minute == 90) * 65_536,
            damaged_blocks: u64::from(minute == 90),
        }
    };
    sending.map(row).collect()
}

fn histogram() -> Vec<HistogramRow> {
    let row = |rate: u32| {
        let distance = i64::from(rate) - 350;
        let count = (400 - distance.abs()).max(0) as u64;
        HistogramRow { hour: START / 60, bin: rate_bin(BitRate::from_bits(f64::from(rate) * 1e3)), count }
    };
    (20..720).step_by(2).map(row).collect()
}

fn with_report(change: impl FnOnce(&mut ReportInput<'_>)) -> String {
    let (minutes, histogram) = (minutes(), histogram());
    let sample =
        |minute: i64| BacklogSample { minute: START + minute, backlog: ByteSize((minute * 300_000) as u64) };
    let backlog: Vec<_> = (0..180).step_by(15).chain(420..540).map(sample).collect();
    let file =
        |path: &str, verified| FileResult { path: path.to_owned(), size: ByteSize(730_431_000), verified };
    let files = [file("n102a110.g10/visdata", true), file("n109a086.w51/flags", false)];
    let outages = [
        Outage { from: START + 180, until: Some(START + 420), reason: "archive not reachable".to_owned() },
        Outage { from: START + 530, until: None, reason: "disk of archive full".to_owned() },
    ];
    let mut input = ReportInput {
        instrument: "Hat Creek",
        created: START + 540,
        minutes: &minutes,
        histogram: &histogram,
        backlog: &backlog,
        files: &files,
        outages: &outages,
        general: Some(BitRate::from_bits(256e3)),
    };
    change(&mut input);
    report(&input)
}

fn empty() -> ReportInput<'static> {
    ReportInput {
        instrument: "x",
        created: 0,
        minutes: &[],
        histogram: &[],
        backlog: &[],
        files: &[],
        outages: &[],
        general: None,
    }
}

/// Checks that tags are balanced, attributes quoted and texts escaped.
fn assert_well_formed(page: &str) {
    let mut open = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("document type");
    while let Some((text, tail)) = rest.split_once('<') {
        assert!(!text.contains('>'), "unescaped text {text:?}");
        let (tag, tail) = tail.split_once('>').expect("end of tag");
        rest = tail;
        assert!(tag.matches('"').count() % 2 == 0 && !tag.contains('<'), "broken tag {tag:?}");
        let name = tag.split_whitespace().next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "closing tag");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "open tags");
    for (at, _) in page.match_indices('&') {
        let entity = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(entity.iter().any(|entity| page[at..].starts_with(entity)), "bare & at {at}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "), "broken number");
}

#[test]
fn small_report_equals_the_golden_file() {
    let found = with_report(|_| ());
    assert_well_formed(&found);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/report.html");
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert_eq!(differing, None, "renew {} by HOLDFAST_BLESS=1", golden.display());
    assert_eq!(expected, found);
}

#[test]
fn report_needs_no_network_and_no_script() {
    let page = with_report(|_| ());
    for word in ["http:", "https:", "<script", "<link", "url(", "src=", "@import"] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("<desc").count());
}

#[test]
fn empty_report_names_absent_figures() {
    let page = report(&empty());
    assert_well_formed(&page);
    assert_eq!(page.matches("is absent").count(), 4);
    assert!(page.contains("Limits are absent"));
}

#[test]
fn gaps_interrupt_the_backlog_line() {
    let page = with_report(|_| ());
    let line = page.split("class=\"first-line\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(line.matches('M').count(), 2, "{line}");
}

#[test]
fn limit_above_the_archive_rate_is_explained() {
    let page = with_report(|input| input.general = Some(BitRate::from_bits(1e6)));
    assert_well_formed(&page);
    assert!(page.contains("cannot use general limit 1 Mb/s"));
}

#[test]
fn extreme_times_and_long_records_are_drawn() {
    let row = |minute| MinuteRow { minute, produced_bytes: u64::MAX, ..MinuteRow::default() };
    let sample = |minute| BacklogSample { minute, backlog: ByteSize(u64::MAX) };
    let extreme = [i64::MIN, 0, i64::MAX];
    assert_well_formed(&report(&ReportInput {
        minutes: &extreme.map(row),
        backlog: &extreme.map(sample),
        outages: &[Outage { from: i64::MIN, until: Some(i64::MAX), reason: String::new() }],
        ..empty()
    }));
    let year: Vec<_> = (0..365 * 24).map(|hour| row(hour * 60)).collect();
    let page = report(&ReportInput { minutes: &year, ..empty() });
    assert!(page.contains("averaged over 12 hours"));
    assert!(page.len() < 400_000, "{}", page.len());
}

#[test]
fn hostile_texts_are_escaped() {
    let name = "</td><script>alert(1)</script>&amp;\"'\u{0}\u{1b}[31m\u{202e}gpj.exe\n";
    let files = [FileResult { path: name.to_owned(), size: ByteSize(1), verified: true }];
    let outages = [Outage { from: 0, until: None, reason: name.to_owned() }];
    let page = report(&ReportInput { instrument: name, files: &files, outages: &outages, ..empty() });
    assert_well_formed(&page);
    assert!(!page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\u{0}'));
    assert!(page.contains("&lt;/td&gt;&lt;script&gt;") && page.contains("\\u{202e}gpj.exe\\u{a}"));
}

proptest! {
    #[test]
    fn any_file_name_keeps_the_page_well_formed(name in any::<String>(), reason in "[<>&\"'/a-]{0,12}") {
        let files = [FileResult { path: name, size: ByteSize(1), verified: false }];
        let outages = [Outage { from: 0, until: None, reason }];
        assert_well_formed(&report(&ReportInput { files: &files, outages: &outages, ..empty() }));
    }
}
