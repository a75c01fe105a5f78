//! Holds of a ring, with their conditions.

use super::time;
use crate::session::stream_name;
use holdfast_base::{ByteSize, Ordinal, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_ring::{HoldStatus, StreamStatus};
use serde::Serialize;
use std::time::Duration;

/// Hold of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Hold<'a> {
    pub id: u64,
    #[serde(serialize_with = "time")]
    pub created: Timestamp,
    #[serde(serialize_with = "time")]
    pub until: Timestamp,
    pub owner: &'a str,
    pub reason: &'a str,
    pub streams: Vec<String>,
    #[serde(serialize_with = "time")]
    pub from: Timestamp,
    #[serde(serialize_with = "time")]
    pub to: Timestamp,
    pub event: bool,
    pub ordinals: Option<[u64; 2]>,
    pub slots: u32,
    pub bytes: u64,
    pub sequences: Vec<[u64; 2]>,
    pub order: Option<String>,
    pub finding: Option<HoldCondition<'a>>,
}

/// Condition of a hold.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct HoldCondition<'a> {
    pub condition: Option<&'a str>,
    pub before_seconds: f64,
    pub after_seconds: f64,
    pub standing: bool,
    pub distil: bool,
    pub sample_seconds: Option<[f64; 2]>,
    pub when: Option<&'a str>,
    pub within_seconds: Option<f64>,
    pub quota: Option<u32>,
    pub evaluated: Vec<EvaluatedStream>,
}

/// Progress of a condition's evaluation in a stream.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct EvaluatedStream {
    pub stream: String,
    pub ordinal: u64,
}

fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

impl<'a> HoldCondition<'a> {
    /// The shape of a condition, with the names of streams.
    pub fn new(condition_hold: &'a ConditionHold, streams: &[StreamStatus]) -> Self {
        let when = condition_hold.when.as_ref();
        // In others nothing is looked for any more.
        let evaluated = condition_hold.watermarks.iter().filter(|(_, next)| *next < Ordinal(u64::MAX));
        Self {
            condition: condition_hold.sample.is_none().then_some(condition_hold.condition.as_str()),
            before_seconds: seconds(condition_hold.before),
            after_seconds: seconds(condition_hold.after),
            standing: condition_hold.standing,
            distil: condition_hold.distil,
            sample_seconds: condition_hold.sample.map(|(held, every)| [seconds(held), seconds(every)]),
            when: when.map(|(when, _)| when.as_str()),
            within_seconds: when.map(|(_, within)| seconds(*within)),
            quota: Some(condition_hold.quota).filter(|quota| *quota > 0),
            evaluated: evaluated
                .map(|(stream, next)| EvaluatedStream {
                    stream: stream_name(streams, *stream),
                    ordinal: next.0,
                })
                .collect(),
        }
    }
}

impl<'a> Hold<'a> {
    /// The shape of a hold, with the names of streams, on a ring with slots of this size.
    pub fn new(hold: &'a HoldStatus, streams: &[StreamStatus], slot: ByteSize) -> Self {
        Self {
            id: hold.id.0,
            created: hold.created,
            until: hold.until,
            owner: &hold.owner,
            reason: &hold.reason,
            streams: hold.streams.iter().map(|id| stream_name(streams, *id)).collect(),
            from: hold.range.from,
            to: hold.range.to,
            event: hold.range.by_event,
            ordinals: hold.range.ordinals.map(|(from, to)| [from.0, to.0]),
            slots: hold.slots,
            bytes: u64::from(hold.slots) * slot.0,
            sequences: hold.sequences.iter().map(|(first, last)| [first.0, last.0]).collect(),
            order: hold.order.map(|order| order.to_string()),
            finding: hold
                .condition_hold
                .as_ref()
                .map(|condition_hold| HoldCondition::new(condition_hold, streams)),
        }
    }
}
