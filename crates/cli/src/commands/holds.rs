//! `holdfast holds`: what is held on a ring, why, by whom and until when.

use crate::args::{RingArg, SiteArgs, SiteRing};
use crate::out::Out;
use crate::site::stored;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_client::json::{EvaluatedStream, Hold, HoldOrderLine};
use holdfast_client::session::ring_failure;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_client::words;
use holdfast_format::ConditionHold;
use holdfast_remote::SiteHoldOrder;
use holdfast_ring::{HoldStatus, StreamStatus};
use std::time::Duration;

/// List the holds of a ring
#[derive(clap::Args, Debug)]
#[command(after_help = "Exits with 3 if there is no hold.\n\n\
    For hf://SITE/rings/RING, hf://SITE or hf:// it lists the orders that were given to sites, with their\n\
    states: ordered, waiting (the ring is away), applied, expired (before the order arrived), refused.\n\n\
    Examples:\n  holdfast holds lab.hf\n  holdfast holds hf://ams")]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    #[command(flatten)]
    site: SiteArgs,
}

/// Lists the orders for the rings of sites with their states.
fn orders(ring: &SiteRing, site: &SiteArgs, out: &mut Out) -> Result<()> {
    let session = site.session()?;
    let mut orders = session.request(session.site().hold_orders())?;
    let is_meant = |wanted: &str, name: &str| wanted.is_empty() || wanted == name;
    orders.retain(|order| is_meant(&ring.site, &order.site) && is_meant(&ring.ring, &order.ring));
    if orders.is_empty() {
        return Err(
            Failure::nothing("no hold was ordered").advice("`holdfast hold hf://SITE/rings/RING` orders one")
        );
    }
    let mut table = Table::new(&[
        ("state", Side::Left),
        ("ring", Side::Left),
        ("hold", Side::Right),
        ("ordered", Side::Left),
        ("by", Side::Left),
        ("owner", Side::Left),
        ("reason", Side::Left),
        ("message", Side::Left),
    ]);
    for order in &orders {
        if out.is_json() {
            out.object(&order_line(order))?;
            continue;
        }
        table.row([
            clean(&order.state),
            format!("hf://{}/rings/{}", clean(&order.site), clean(&order.ring)),
            order.hold.map(|hold| hold.to_string()).unwrap_or_default(),
            stored(order.ordered),
            clean(&order.by),
            clean(&order.owner),
            clean(&order.reason),
            clean(order.message.as_deref().unwrap_or_default()),
        ]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

/// Shape of an order for programs.
pub(crate) fn order_line(order: &SiteHoldOrder) -> HoldOrderLine<'_> {
    let time = |time: Option<i64>| time.map(|time| times::rfc3339(Timestamp(time)));
    HoldOrderLine {
        order: &order.id,
        site: &order.site,
        ring: &order.ring,
        streams: &order.streams,
        from: time(order.from),
        to: time(order.to),
        reason: &order.reason,
        owner: &order.owner,
        by: &order.by,
        ordered: stored(order.ordered),
        state: &order.state,
        changed: order.changed.map(stored),
        hold: order.hold,
        slots: order.slots,
        bytes: order.bytes,
        message: order.message.as_deref(),
    }
}

/// What it looks for, in words.
fn in_words(condition_hold: &ConditionHold) -> String {
    let span = |nanos| times::spoken(Duration::from_nanos(nanos));
    let mut words = vec![match condition_hold.sample {
        Some((held, every)) => format!("{} of every {}", span(held), span(every)),
        None => condition_hold.condition.clone(),
    }];
    if let Some((when, within)) = &condition_hold.when {
        words.push(format!("when {when} within {}", span(*within)));
    }
    match (condition_hold.before, condition_hold.after) {
        (0, 0) => {}
        (before, 0) => words.push(format!("with {} before", span(before))),
        (0, after) => words.push(format!("with {} after", span(after))),
        (before, after) => words.push(format!("with {} before and {} after", span(before), span(after))),
    }
    words.extend(condition_hold.standing.then(|| "standing".to_owned()));
    words.extend(condition_hold.distil.then(|| "distilled".to_owned()));
    words.join(", ")
}

/// Slots that it keeps, and how many it may keep.
fn slots(hold: &Hold<'_>) -> String {
    let quota = hold.finding.as_ref().and_then(|condition_hold| condition_hold.quota);
    quota.map_or_else(|| hold.slots.to_string(), |quota| format!("{} of {quota}", hold.slots))
}

/// How far streams have been evaluated.
fn evaluated(hold: &Hold<'_>) -> String {
    let all = hold.finding.iter().flat_map(|condition_hold| &condition_hold.evaluated);
    let texts = all.map(|EvaluatedStream { stream, ordinal }| format!("{stream} to ordinal {ordinal}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if let Some(ring) = args.ring.site_ring()? {
        return orders(&ring, &args.site, out);
    }
    let (_, mut reader) = args.ring.open()?;
    let holds = reader.holds().map_err(|error| ring_failure(&error))?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let slot = ByteSize(reader.superblock().geometry.slot_bytes);
    if out.is_json() {
        for hold in &holds {
            out.object(&Hold::new(hold, &streams, slot))?;
        }
    } else if holds.is_empty() {
        out.line("nothing is held")?;
    } else {
        out.table(&table(&holds, &streams, slot))?;
    }
    if holds.is_empty() { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

/// The holds for people; what is looked for only where something is.
fn table(holds: &[HoldStatus], streams: &[StreamStatus], slot: ByteSize) -> Table {
    let mut columns = vec![
        ("hold", Side::Right),
        ("slots", Side::Right),
        ("bytes", Side::Right),
        ("streams", Side::Left),
        ("range", Side::Left),
        ("since", Side::Left),
        ("until", Side::Left),
        ("owner", Side::Left),
        ("reason", Side::Left),
    ];
    let by_condition = holds.iter().any(|hold| hold.condition_hold.is_some());
    if by_condition {
        columns.extend([("looks for", Side::Left), ("evaluated", Side::Left)]);
    }
    let mut table = Table::new(&columns);
    for hold in holds {
        let row = Hold::new(hold, streams, slot);
        let until =
            if hold.until == Timestamp::MAX { "no end".to_owned() } else { times::to_the_second(hold.until) };
        let mut cells = vec![
            row.id.to_string(),
            slots(&row),
            ByteSize(row.bytes).to_string(),
            if row.streams.is_empty() { "all".to_owned() } else { row.streams.join(", ") },
            words::range(&hold.range),
            times::to_the_second(hold.created),
            until,
            clean(row.owner),
            clean(row.reason),
        ];
        if by_condition {
            cells.extend([hold.condition_hold.as_ref().map_or_else(String::new, in_words), evaluated(&row)]);
        }
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{HoldId, OrderId, Ordinal, Sequence, StreamId};
    use holdfast_ring::Range;
    use holdfast_sim::samples as sample;

    const SECOND: u64 = 1_000_000_000;

    fn hold(condition_hold: Option<ConditionHold>) -> HoldStatus {
        HoldStatus {
            id: HoldId(3),
            created: sample::NOW,
            until: Timestamp::MAX,
            reason: "why".to_owned(),
            owner: "me".to_owned(),
            streams: Vec::new(),
            range: Range::ALL,
            slots: 3,
            sequences: vec![(Sequence(3), Sequence(5))],
            condition_hold,
            order: Some(OrderId([0x42; 16])),
        }
    }

    fn condition_hold() -> ConditionHold {
        ConditionHold {
            condition: "len > 9".to_owned(),
            before: 10 * SECOND,
            after: 90 * SECOND,
            standing: true,
            distil: true,
            sample: None,
            when: Some(("count(*) > 5".to_owned(), SECOND)),
            quota: 12,
            watermarks: vec![(StreamId(1), Ordinal(77)), (StreamId(2), Ordinal(0))],
        }
    }

    #[test]
    fn what_a_hold_looks_for_is_told_where_one_does() {
        let streams = sample::streams();
        let text = |holds: &[HoldStatus]| table(holds, &streams, ByteSize::mib(1)).to_string();
        let plain = text(&[hold(None)]);
        assert!(
            plain.starts_with(
                "hold  slots  bytes  streams  range  since                 until   owner  reason\n"
            ),
            "{plain}"
        );
        assert!(plain.contains("  no end  "), "{plain}");
        let sampled = ConditionHold {
            sample: Some((30 * SECOND, 3600 * SECOND)),
            condition: String::new(),
            ..ConditionHold::default()
        };
        let both = text(&[hold(None), hold(Some(condition_hold())), hold(Some(sampled))]);
        let lines: Vec<&str> = both.lines().collect();
        assert!(lines[0].contains("reason  looks for ") && lines[0].ends_with("evaluated"), "{both}");
        let said = "len > 9, when count(*) > 5 within 1.0 s, with 10 s before and 1 min 30 s after, standing, distilled";
        assert!(lines[2].contains(" 3 of 12 ") && lines[2].contains(said), "{both}");
        assert!(lines[2].ends_with("eth0 to ordinal 77, adc to ordinal 0"), "{both}");
        assert!(lines[3].ends_with("30 s of every 1 h"), "{both}");
    }

    #[test]
    fn programs_get_the_same() {
        let streams = sample::streams();
        let held = hold(Some(condition_hold()));
        let shown = serde_json::to_value(Hold::new(&held, &streams, ByteSize::mib(1))).unwrap();
        let wanted = serde_json::json!({
            "condition": "len > 9", "before_seconds": 10.0, "after_seconds": 90.0, "standing": true, "distil": true,
            "sample_seconds": null, "when": "count(*) > 5", "within_seconds": 1.0, "quota": 12,
            "evaluated": [{"stream": "eth0", "ordinal": 77}, {"stream": "adc", "ordinal": 0}],
        });
        assert_eq!(shown["finding"], wanted);
        assert_eq!(shown["order"], "42424242-4242-4242-4242-424242424242");
        let plain = serde_json::to_value(Hold::new(&hold(None), &streams, ByteSize::mib(1))).unwrap();
        assert_eq!(plain["finding"], serde_json::Value::Null);
    }
}
