//! Verdict of a proof: whether the ring kept what it promised, and if not, which promise was broken and
//! whether the device was another than was measured. Pure.

use super::stages::{Promised, StageKind};
use holdfast_base::{MAX_AWAY, Rate, many};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What reaches so much of a promised rate for reading counts as that rate: a stage is short, and a reader's first and last
/// pieces are not whole.
const READS: f64 = 0.9;

/// The source counts as having driven the ring when it sent so much of the declared rate.
const DRIVEN: f64 = 0.98;

/// A reader that checks for more of its time than this was not waiting for the device.
const CHECKING: f64 = 0.5;

/// A device that was busy for less of the time was not what readers waited for: this machine was.
const BUSY: f64 = 0.9;

/// How finely the age of data is seen: the capture thread looks every 20 ms, and a busy machine later.
const SEEN: Duration = Duration::from_millis(100);

/// What a burst came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BurstResult {
    /// How many times the declared rate were asked for.
    pub factor: f64,
    /// How many times it came to.
    pub reached: f64,
    /// For how long the ring promised to take it; `null`: for ever, or nothing was promised.
    pub promised_seconds: Option<f64>,
    /// For how long it was driven.
    pub driven_seconds: f64,
    /// When the first loss was seen.
    pub lost_after_seconds: Option<f64>,
}

/// What a reader got.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReaderResult {
    /// What it does.
    pub reads: &'static str,
    pub elements: u64,
    pub bytes: u64,
    /// The longest that it waited for something.
    pub longest_wait_seconds: f64,
    /// The share of its time in which it checked what it had.
    pub checking_share: f64,
}

/// What a stage came to.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageResult {
    #[serde(skip)]
    pub kind: Option<StageKind>,
    pub stage: &'static str,
    pub seconds: f64,
    /// Payload that was to come, and that came.
    pub asked_bytes_per_second: u64,
    pub sent_bytes_per_second: u64,
    pub sent_elements: u64,
    pub sent_bytes: u64,
    /// What the recorder says it has recorded, and lost.
    pub recorded_elements: u64,
    pub lost_elements: u64,
    pub gaps: u64,
    pub unknown_gaps: u64,
    /// Elements, by the causes that `gaps` names.
    pub lost_by_cause: BTreeMap<String, u64>,
    /// The least slack; `null` where nothing was promised.
    pub slack_least_seconds: Option<f64>,
    /// The greatest age of data that was not durable yet.
    pub durable_after_worst_seconds: Option<f64>,
    /// The longest time in which the recorder did not look what its source had.
    pub away_worst_seconds: f64,
    pub buffers: u32,
    pub buffers_most_in_use: u32,
    /// As the device served them.
    pub worst_write_seconds: f64,
    pub worst_read_seconds: f64,
    pub disk_errors: u64,
    /// The share of the time in which the device had something to do.
    pub device_busy_share: f64,
    /// What was read from the device, in how many requests, and how long it had one of them.
    pub read_bytes: u64,
    pub device_reads: u64,
    pub device_read_seconds: f64,
    pub readers: Vec<ReaderResult>,
    pub bursts: Vec<BurstResult>,
}

impl StageResult {
    /// What the device gave readers.
    pub(crate) fn read_rate(&self) -> Rate {
        Rate((self.read_bytes as f64 / self.seconds.max(1e-3)) as u64)
    }

    /// How fast the device read while it did.
    fn device_read_rate(&self) -> Rate {
        Rate((self.read_bytes as f64 / self.device_read_seconds.max(1e-6)) as u64)
    }

    /// Whether it took longer for what it read than it was measured to.
    fn device_is_slow(&self, promised: &Promised) -> bool {
        let ways = self.device_reads as f64 * seconds(promised.reposition);
        let wanted = ways + self.read_bytes as f64 / (promised.read.0 as f64).max(1.0);
        wanted < self.device_read_seconds * READS
    }

    /// Losses of bursts that went on for longer than was promised are no broken promise.
    fn may_lose(&self) -> bool {
        let beyond = |burst: &BurstResult| {
            burst
                .lost_after_seconds
                .zip(burst.promised_seconds)
                .is_some_and(|(lost, promised)| lost > promised)
        };
        self.kind == Some(StageKind::Bursts) && self.bursts.iter().any(beyond)
    }
}

/// What reading everything back came to.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadBack {
    /// Elements that are on the medium as they were sent.
    pub elements: u64,
    pub bytes: u64,
    /// Elements that gaps on the ring tell of.
    pub lost_elements: u64,
    pub gaps: u64,
    /// Elements that had expired before they were read back, as the oldest do.
    pub expired_elements: u64,
}

/// All that was measured.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    pub stages: Vec<StageResult>,
    pub read_back: ReadBack,
    /// Wrong, missing, damaged: how many, and the first of them.
    pub wrong: u64,
    pub faults: Vec<String>,
}

/// How a proof ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All that was promised was kept.
    Pass,
    /// A promise was broken.
    Fail,
    /// Nothing follows: the device was another than was measured, or the machine did not drive it.
    Void,
    /// Nothing was promised, nothing was wrong.
    Measured,
}

/// A verdict and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) reasons: Vec<String>,
    /// What a reader should know who takes the figures further than they go.
    pub(crate) notes: Vec<String>,
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

/// Judges a proof of a ring that promised `promised`, or nothing, at the declared `rate`.
pub(crate) fn judge(measured: &Measured, rate: Rate, promised: Option<&Promised>) -> Judged {
    let (mut broken, mut void, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    // Wrong bytes and silent loss are wrong on any ring, whatever its device does.
    let mut wrong = Vec::new();
    if measured.wrong > 0 {
        let more = measured.wrong - measured.faults.len().min(measured.wrong as usize) as u64;
        wrong.extend(measured.faults.iter().cloned());
        if more > 0 {
            wrong.push(format!("and {more} more"));
        }
    }
    for stage in &measured.stages {
        let told = stage.recorded_elements + stage.lost_elements;
        if told != stage.sent_elements {
            wrong.push(format!(
                "{}: {} were sent, and the recorder knows of {told}",
                stage.stage,
                many(stage.sent_elements, "element")
            ));
        }
        if stage.unknown_gaps > 0 {
            wrong.push(format!("{}: a gap does not know how many were lost", stage.stage));
        }
        if stage.disk_errors > 0 {
            void.push(format!("{}: the device failed {}", stage.stage, many(stage.disk_errors, "request")));
        }
        if let Some(promised) = promised {
            stalls(stage, promised, &mut void);
            kept(stage, rate, promised, &mut broken, &mut void, &mut notes);
        }
    }
    let verdict = match promised {
        _ if !wrong.is_empty() => Verdict::Fail,
        None => Verdict::Measured,
        // The promise rests on what was measured of the device.
        Some(_) if !void.is_empty() => Verdict::Void,
        Some(_) if !broken.is_empty() => Verdict::Fail,
        Some(_) => Verdict::Pass,
    };
    wrong.extend(void);
    wrong.extend(broken);
    Judged { verdict, reasons: wrong, notes }
}

/// What the device did that its profile does not know.
fn stalls(stage: &StageResult, promised: &Promised, void: &mut Vec<String>) {
    for (what, worst, limit) in [
        ("write", stage.worst_write_seconds, promised.longest.write),
        ("read", stage.worst_read_seconds, promised.longest.read),
    ] {
        if worst > seconds(limit) {
            void.push(format!(
                "{}: the device took {worst:.2} s for a {what}, by its profile {:.2} s at most: measure it again, for longer",
                stage.stage,
                seconds(limit)
            ));
        }
    }
}

fn kept(
    stage: &StageResult,
    rate: Rate,
    promised: &Promised,
    broken: &mut Vec<String>,
    void: &mut Vec<String>,
    notes: &mut Vec<String>,
) {
    let name = stage.stage;
    let kind = stage.kind.unwrap_or(StageKind::Guarantee);
    let sent = Rate(stage.sent_bytes_per_second);
    let asked = Rate(stage.asked_bytes_per_second);
    let short = kind != StageKind::Bursts && (sent.0 as f64) < asked.0 as f64 * DRIVEN;
    // Above what was declared the machine may be what is too slow: then there was memory left when it lost something.
    let spare = stage.buffers.saturating_sub(stage.buffers_most_in_use);
    let machine = short && asked > rate && spare > 0;
    if stage.lost_elements > 0 && machine {
        notes.push(format!(
            "{name}: this machine sent {sent} instead of {asked}, and lost {} of it before the disk had to do with it ({spare} \
             of {} slot buffers were never needed): more was not shown",
            many(stage.lost_elements, "element"),
            stage.buffers
        ));
    } else if stage.lost_elements > 0 && !stage.may_lose() {
        let causes: Vec<&str> = stage.lost_by_cause.keys().map(String::as_str).collect();
        let why = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
        let lost = format!("{name}: {} lost{why}", many(stage.lost_elements, "element"));
        if stage.away_worst_seconds > seconds(MAX_AWAY) {
            void.push(format!(
                "{lost}: this machine gave the recorder no processor for {:.2} s, and a guarantee counts on {:.2} s at most: end what else runs there",
                stage.away_worst_seconds,
                seconds(MAX_AWAY)
            ));
        } else {
            broken.push(lost);
        }
    }
    if let Some(worst) = stage.durable_after_worst_seconds
        && kind != StageKind::Bursts
        && worst > seconds(promised.durable_after + SEEN)
    {
        let limit = seconds(promised.durable_after);
        broken.push(format!(
            "{name}: data was {worst:.2} s old before it was durable, promised are {limit:.2} s"
        ));
    }
    if short {
        if (sent.0 as f64) < rate.0 as f64 * DRIVEN {
            void.push(format!("{name}: this machine sent only {sent} instead of {asked}: the ring was not driven at its guarantee"));
        } else if stage.lost_elements == 0 {
            notes.push(format!("{name}: this machine sent {sent} instead of {asked}; more was not shown"));
        }
    }
    if kind == StageKind::Left {
        reading(stage, promised, broken, void, notes);
    }
    if stage.buffers < promised.buffers && stage.buffers > 0 {
        void.push(format!(
            "{name}: the recorder had {} slot buffers instead of {}",
            stage.buffers, promised.buffers
        ));
    }
    for burst in &stage.bursts {
        bursts(burst, broken, notes);
    }
}

fn reading(
    stage: &StageResult,
    promised: &Promised,
    broken: &mut Vec<String>,
    void: &mut Vec<String>,
    notes: &mut Vec<String>,
) {
    let read = stage.read_rate();
    if read.0 as f64 >= promised.reads_left.0 as f64 * READS {
        return;
    }
    let checking = stage.readers.iter().map(|reader| reader.checking_share).fold(0.0, f64::max);
    let text =
        format!("{}: readers got {read}, left for them should be {}", stage.stage, promised.reads_left);
    if stage.device_busy_share < BUSY {
        let busy = stage.device_busy_share * 100.0;
        notes
            .push(format!("{text}; the device was busy {busy:.0} % of the time only, so more was not shown"));
    } else if checking > CHECKING {
        notes.push(format!(
            "{text}; they were busy checking {:.0} % of the time, so more was not shown",
            checking * 100.0
        ));
    } else if stage.device_is_slow(promised) {
        void.push(format!(
            "{text}; the device read at {}, by its profile at {}: measure it again, with this machine as busy as it will be",
            stage.device_read_rate(),
            promised.read
        ));
    } else {
        broken.push(text);
    }
}

fn bursts(burst: &BurstResult, broken: &mut Vec<String>, notes: &mut Vec<String>) {
    let BurstResult { factor, reached, promised_seconds, driven_seconds, lost_after_seconds } = *burst;
    let times = format!("burst of {factor} times the rate");
    match (lost_after_seconds, promised_seconds) {
        (Some(lost), None) => broken.push(format!("{times}: lost after {lost:.1} s, promised for ever")),
        (Some(lost), Some(promised)) if lost <= promised => {
            broken.push(format!("{times}: lost after {lost:.1} s, promised are {promised:.1} s"));
        }
        _ => {}
    }
    if reached < factor * DRIVEN {
        notes.push(format!("{times}: this machine sent {reached:.2} times the rate; more was not shown"));
    }
    let wanted = promised_seconds.unwrap_or(f64::INFINITY);
    if lost_after_seconds.is_none() && driven_seconds < wanted {
        let wanted = promised_seconds.map_or("for ever".to_owned(), |promised| format!("{promised:.1} s"));
        notes.push(format!(
            "{times}: driven for {driven_seconds:.1} s, promised are {wanted}: a longer proof shows more"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::tests::promised;
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const RATE: Rate = Rate(60 * MIB);

    fn stage(kind: StageKind) -> StageResult {
        StageResult {
            kind: Some(kind),
            stage: kind.name(),
            seconds: 10.0,
            asked_bytes_per_second: RATE.0,
            sent_bytes_per_second: RATE.0,
            sent_elements: 9600,
            sent_bytes: RATE.0 * 10,
            recorded_elements: 9600,
            slack_least_seconds: Some(2.0),
            durable_after_worst_seconds: Some(16.9),
            buffers: 10,
            buffers_most_in_use: 7,
            worst_write_seconds: 3.9,
            worst_read_seconds: 0.2,
            read_bytes: 40 * MIB,
            device_reads: 5,
            device_read_seconds: 0.6,
            device_busy_share: 0.97,
            ..StageResult::default()
        }
    }

    fn good() -> Measured {
        let mut bursts = stage(StageKind::Bursts);
        bursts.bursts = vec![
            BurstResult {
                factor: 2.0,
                reached: 2.0,
                promised_seconds: Some(5.0),
                driven_seconds: 6.0,
                lost_after_seconds: None,
            },
            BurstResult {
                factor: 4.0,
                reached: 4.0,
                promised_seconds: Some(2.0),
                driven_seconds: 3.0,
                lost_after_seconds: Some(2.6),
            },
        ];
        bursts.lost_elements = 100;
        bursts.recorded_elements = 9500;
        bursts.gaps = 1;
        let stages = vec![
            stage(StageKind::Capture),
            stage(StageKind::Left),
            stage(StageKind::Guarantee),
            stage(StageKind::Reads),
            bursts,
        ];
        Measured { stages, ..Measured::default() }
    }

    fn verdict(change: impl FnOnce(&mut Measured)) -> (Verdict, String) {
        let mut measured = good();
        change(&mut measured);
        let judged = judge(&measured, RATE, Some(&promised()));
        (judged.verdict, judged.reasons.join("; "))
    }

    type Change = fn(&mut Measured);

    // Promises 1, 2 and 6: what a proof says is kept was kept.
    #[test]
    fn every_broken_promise_fails_and_is_named() {
        assert_eq!(verdict(|_| {}), (Verdict::Pass, String::new()));
        let lose = |measured: &mut Measured, at: usize| {
            measured.stages[at].lost_elements += 3;
            measured.stages[at].recorded_elements -= 3;
        };
        for at in 0..4 {
            let (verdict, why) = verdict(|measured| lose(measured, at));
            assert!(verdict == Verdict::Fail && why.contains("3 elements lost"), "{why}");
        }
        let cases: [(Change, &str); 8] = [
            (|m| m.stages[2].recorded_elements -= 1, "9599"),
            (|m| m.stages[4].unknown_gaps = 1, "does not know"),
            (|m| (m.wrong, m.faults) = (1, vec!["element 7 is not what was sent".to_owned()]), "element 7"),
            (|m| m.stages[0].durable_after_worst_seconds = Some(17.2), "17.20 s old"),
            (|m| m.stages[1].read_bytes = 30 * MIB, "left for them should be 4 MiB/s"),
            (|m| m.stages[4].bursts[1].lost_after_seconds = Some(1.9), "lost after 1.9 s"),
            (|m| m.stages[4].bursts[0].lost_after_seconds = Some(4.0), "promised are 5.0 s"),
            (|m| (m.wrong, m.faults) = (9, vec!["x".to_owned()]), "and 8 more"),
        ];
        for (change, wanted) in cases {
            let (verdict, why) = verdict(change);
            assert!(verdict == Verdict::Fail && why.contains(wanted), "{wanted}: {verdict:?} {why}");
        }
    }

    #[test]
    fn a_loss_proves_nothing_when_the_device_was_not_what_was_measured() {
        let lost = |measured: &mut Measured| {
            measured.stages[2].lost_elements = 5;
            measured.stages[2].recorded_elements -= 5;
        };
        let (stalled, why) = verdict(|m| {
            lost(m);
            m.stages[2].worst_write_seconds = 4.1;
        });
        assert!(
            stalled == Verdict::Void
                && why.contains("took 4.10 s for a write")
                && why.contains("5 elements lost"),
            "{why}"
        );
        assert_eq!(verdict(|m| m.stages[2].worst_read_seconds = 8.1).0, Verdict::Void);
        assert_eq!(verdict(|m| m.stages[2].disk_errors = 1).0, Verdict::Void);
        let (starved, why) = verdict(|m| {
            lost(m);
            m.stages[2].away_worst_seconds = 0.31;
        });
        assert!(starved == Verdict::Void && why.contains("no processor for 0.31 s"), "{why}");
        let (late, _) = verdict(|m| {
            lost(m);
            m.stages[2].away_worst_seconds = 0.2;
        });
        assert_eq!(late, Verdict::Fail, "that is counted on");
        assert_eq!(verdict(|m| m.stages[2].away_worst_seconds = 0.31).0, Verdict::Pass);
        // Wrong bytes are wrong on any device.
        let (wrong, _) = verdict(|m| {
            m.stages[2].worst_write_seconds = 4.1;
            m.wrong = 1;
        });
        assert_eq!(wrong, Verdict::Fail);
    }

    #[test]
    fn a_machine_that_cannot_drive_the_ring_proves_nothing() {
        let (slow, why) = verdict(|m| m.stages[2].sent_bytes_per_second = 50 * MIB);
        assert!(slow == Verdict::Void && why.contains("sent only 50 MiB/s"), "{why}");
        // Above what was declared what it loses before the disk has to do with it is its own, and told.
        let lost = |spare: u32, sent: u64| {
            verdict(|m| {
                let stage = &mut m.stages[0];
                (stage.lost_elements, stage.recorded_elements) = (3, 9597);
                (stage.asked_bytes_per_second, stage.sent_bytes_per_second) = (100 * MIB, sent * MIB);
                stage.buffers_most_in_use = 10 - spare;
            })
        };
        assert_eq!(lost(1, 80).0, Verdict::Pass);
        assert_eq!(lost(0, 80).0, Verdict::Fail, "the disk was what it waited for");
        assert_eq!(lost(1, 100).0, Verdict::Fail, "what came is what was promised");
        assert_eq!(lost(1, 50).0, Verdict::Void, "it did not even send what was declared");
        // More than was declared need not be reached, but is told.
        let mut measured = good();
        measured.stages[0].asked_bytes_per_second = 100 * MIB;
        measured.stages[0].sent_bytes_per_second = 80 * MIB;
        let judged = judge(&measured, RATE, Some(&promised()));
        assert!(
            judged.verdict == Verdict::Pass && judged.notes[0].contains("80 MiB/s instead of 100 MiB/s"),
            "{judged:?}"
        );
    }

    #[test]
    fn readers_that_the_device_did_not_keep_waiting_say_nothing_of_it() {
        for change in
            [(|stage: &mut StageResult| stage.device_busy_share = 0.6) as fn(&mut StageResult), |stage| {
                stage.readers = vec![ReaderResult { checking_share: 0.7, ..ReaderResult::default() }];
            }]
        {
            let mut measured = good();
            measured.stages[1].read_bytes = 30 * MIB;
            change(&mut measured.stages[1]);
            let judged = judge(&measured, RATE, Some(&promised()));
            assert!(
                judged.verdict == Verdict::Pass && judged.notes[0].contains("more was not shown"),
                "{judged:?}"
            );
        }
    }

    // What is left for readers rests on what was measured of reading.
    #[test]
    fn a_device_that_reads_more_slowly_than_it_was_measured_to_proves_nothing() {
        let slow = |took: f64| {
            verdict(|m| (m.stages[1].read_bytes, m.stages[1].device_read_seconds) = (30 * MIB, took))
        };
        // Five ways of 30 ms, and 30 MiB at 70 MiB/s: 0.58 s.
        assert_eq!(slow(0.6).0, Verdict::Fail, "it did as it was measured");
        let (verdict, why) = slow(2.0);
        assert!(
            verdict == Verdict::Void && why.contains("read at 15 MiB/s, by its profile at 70 MiB/s"),
            "{why}"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_was_lost_inside_a_promise_passes(
            at in 0usize..4, lost in 1u64..9600, counted: bool, write in 0.0f64..10.0, sent in 0u64..100,
        ) {
            let (verdict, _) = verdict(|m| {
                m.stages[at].recorded_elements -= lost;
                m.stages[at].lost_elements = if counted { lost } else { 0 };
                m.stages[at].worst_write_seconds = write;
                m.stages[at].sent_bytes_per_second = sent * MIB;
            });
            prop_assert_ne!(verdict, Verdict::Pass);
            prop_assert!(counted || verdict == Verdict::Fail);
        }
    }

    #[test]
    fn a_ring_that_promised_nothing_is_only_measured() {
        let mut measured = good();
        measured.stages[0].lost_elements = 5;
        measured.stages[0].recorded_elements -= 5;
        assert_eq!(judge(&measured, RATE, None).verdict, Verdict::Measured);
        measured.wrong = 1;
        assert_eq!(judge(&measured, RATE, None).verdict, Verdict::Fail);
    }
}
