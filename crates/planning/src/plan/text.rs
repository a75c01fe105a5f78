//! Text of a plan, for people.

use super::answer::Answer;
use super::{Ask, ELEMENT};
use holdfast_base::{ByteSize, Rate};
use holdfast_base::{counted, grouped};
use holdfast_client::json::AttributeLoad;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use std::time::Duration;

/// The bursts of which the lengths are told, as people write them.
const BURSTS: [&str; 3] = ["1.5", "2", "4"];

fn span(seconds: f64) -> String {
    times::spoken(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// What it takes at most: no less is shown than that.
fn bound(seconds: f64) -> String {
    times::spoken_up(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// A share, in hundredths with one place.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The most payload that may be asked for: no more is shown than there is, for it may be typed.
fn most(payload: u64) -> Rate {
    Rate(payload).shown_down()
}

fn both(medium: u64, payload: u64) -> String {
    format!("up to {} on the medium, {} of payload", Rate(medium), most(payload))
}

/// The lines before the tables: a word and what is said of it.
pub fn lines(answer: &Answer, ask: &Ask) -> Vec<(&'static str, String)> {
    let chosen = |given: bool| if given { "" } else { " (chosen)" };
    let elements = match (ask.elements, ask.size) {
        (_, Some(size)) => format!(" of {} each", ByteSize(size)),
        (Some(_), None) => String::new(),
        (None, None) => format!(" (taken to be of {}: see --elements)", ByteSize(ELEMENT)),
    };
    let burst = match answer.burst_bytes {
        0 => String::new(),
        bytes => format!(", and {} at once beyond that", ByteSize(bytes)),
    };
    let mut lines = vec![
        (
            "admitted",
            format!(
                "{} of payload, {} elements/s{elements}{burst}",
                Rate(answer.rate_bytes_per_second),
                grouped(answer.elements_per_second),
            ),
        ),
        (
            "on the medium",
            format!(
                "{}, {} of what may be promised",
                Rate(answer.medium_bytes_per_second),
                percent(answer.used_share)
            ),
        ),
        (
            "region",
            format!(
                "0..{}%: {}, written at {} and read at {} at worst",
                answer.region_percent,
                ByteSize(answer.region_bytes),
                Rate(answer.worst_write_bytes_per_second),
                Rate(answer.worst_read_bytes_per_second)
            ),
        ),
        (
            "slots",
            format!(
                "{} of {}{}; {} written in one go{}; reads in pieces of {}{}",
                grouped(answer.slots.into()),
                ByteSize(answer.slot_bytes),
                chosen(ask.slot.is_some()),
                answer.gather,
                chosen(ask.gather.is_some()),
                ByteSize(answer.quantum_bytes.into()),
                chosen(ask.quantum.is_some())
            ),
        ),
        (
            "memory",
            format!(
                "{}: {}{}",
                ByteSize(answer.memory_bytes),
                counted(answer.buffers.into(), "slot buffer"),
                if ask.memory.is_some() { "" } else { " (what it takes)" }
            ),
        ),
        (
            "a slot",
            format!(
                "fills in {}, takes up to {} to write, and may have to wait up to {} for a read",
                span(answer.period_seconds),
                bound(answer.write_seconds),
                bound(answer.wait_seconds)
            ),
        ),
        (
            "capture only",
            both(answer.capture_only_bytes_per_second, answer.capture_only_payload_bytes_per_second),
        ),
        ("with reads", both(answer.with_reads_bytes_per_second, answer.with_reads_payload_bytes_per_second)),
        ("left for reads", Rate(answer.reads_left_bytes_per_second).to_string()),
        ("bursts", bursts(&answer.burst_seconds)),
        ("durable after", bound(answer.durable_after_seconds)),
        ("reaches back", span(answer.kept_seconds)),
    ];
    let years = answer.endurance_years.map_or(String::new(), |years| {
        format!("; the stated endurance lasts {}", span(years * 365.25 * 86_400.0))
    });
    if answer.attributes.attributes > 0 {
        let AttributeLoad { attributes, attribute_bytes_per_element: bytes } = answer.attributes;
        let text = format!(
            "{} of each element, in columns of up to {bytes} bytes",
            counted(attributes.into(), "attribute")
        );
        lines.insert(1, ("attributes", text));
    }
    lines.push(("wear", format!("{:.2} drive writes a day{years}", answer.drive_writes_per_day)));
    lines
}

/// How long bursts are ridden out.
pub(crate) fn bursts(seconds: &[Option<f64>; 3]) -> String {
    let each = seconds.iter().zip(BURSTS).map(|(seconds, factor)| {
        let long = seconds.map_or("for ever".to_owned(), span);
        format!("{long} at {factor} times the rate")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What gathering more or fewer slots would change.
pub fn by_gather(answer: &Answer) -> Table {
    let mut table = Table::new(&[
        ("in one go", Side::Right),
        ("buffers", Side::Right),
        ("memory", Side::Right),
        ("left for reads", Side::Right),
        ("durable after", Side::Right),
    ]);
    for row in &answer.by_gather {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.row([
            row.gather.to_string(),
            or(row.buffers.map(|buffers| buffers.to_string())),
            or(row.memory_bytes.map(|memory| ByteSize(memory).to_string())),
            or(row.reads_left_bytes_per_second.map(|rate| Rate(rate).to_string())),
            or(row.durable_after_seconds.map(bound)),
        ]);
    }
    table
}

/// What other parts of the device would be good for.
pub fn by_region(answer: &Answer) -> Table {
    let mut table = Table::new(&[
        ("region", Side::Left),
        ("size", Side::Right),
        ("written at worst", Side::Right),
        ("guarantee, on the medium", Side::Right),
        ("of payload", Side::Right),
        ("reaches back", Side::Right),
    ]);
    for row in &answer.by_region {
        table.row([
            format!("0..{}%", row.region_percent),
            ByteSize(row.region_bytes).to_string(),
            Rate(row.worst_write_bytes_per_second).to_string(),
            Rate(row.medium_bytes_per_second).to_string(),
            most(row.rate_bytes_per_second).to_string(),
            row.kept_seconds.map_or("too fast for it".to_owned(), span),
        ]);
    }
    table
}
