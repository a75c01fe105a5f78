//! The report of a proof: the machine-readable part, which is kept beside it, and the text that a person reads and signs.
//! Pure.

use super::stages::StageKind;
use super::verdict::{BurstResult, Measured, StageResult, Verdict};
use holdfast_base::{ByteSize, Rate, Timestamp, plural};
use holdfast_base::{clean, counted, grouped};
use holdfast_client::json;
use holdfast_client::json::AttributeLoad;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// What every such file says of itself.
const FORMAT: &str = "holdfast proof";

/// The version that is written, and the only one there is.
const VERSION: u32 = 1;

/// A proof, as it is kept for programs.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    pub format: &'static str,
    pub version: u32,
    pub holdfast: &'static str,
    pub verdict: Verdict,
    pub reasons: Vec<String>,
    pub notes: Vec<String>,
    #[serde(serialize_with = "json::time")]
    pub began: Timestamp,
    #[serde(serialize_with = "json::time")]
    pub ended: Timestamp,
    pub ring: ProvedRing,
    pub device: ProvedDevice,
    pub machine: ProvingMachine,
    /// What the guarantee rests on, what was declared, and what follows; `null` where nothing was promised.
    pub terms: Option<ProvedTerms>,
    /// Of which the content of every element follows.
    pub seed: u64,
    pub element_bytes: u64,
    pub rate_bytes_per_second: u64,
    pub sent_elements: u64,
    pub sent_bytes: u64,
    pub lost_elements: u64,
    pub gaps: u64,
    #[serde(flatten)]
    pub measured: Measured,
}

#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProvedRing {
    pub path: String,
    pub name: String,
    pub lane_bytes: u64,
    pub slot_bytes: u64,
    pub slots: u32,
}

#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProvedDevice {
    pub path: String,
    pub model: String,
    pub serial: String,
    pub medium: String,
    pub device_bytes: u64,
    pub rotational: Option<bool>,
}

#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProvingMachine {
    pub host: String,
    pub kernel: String,
    pub processor: String,
    pub cores: usize,
    pub realtime: bool,
}

/// As the superblock has them, with what `plan` says of them.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct ProvedTerms {
    #[serde(serialize_with = "json::time")]
    pub measured_at: Timestamp,
    pub worst_write_bytes_per_second: u64,
    pub worst_read_bytes_per_second: u64,
    pub worst_reposition_seconds: f64,
    pub commit_seconds: f64,
    pub read_error_seconds: f64,
    pub stall_seconds: f64,
    pub stalled_share: f64,
    pub parallel: u16,
    pub elements_per_second: u64,
    #[serde(flatten)]
    pub attributes: AttributeLoad,
    pub burst_bytes: u64,
    pub medium_bytes_per_second: u64,
    pub gather: u16,
    pub quantum_bytes: u32,
    pub buffers: u32,
    /// Of payload.
    pub capture_only_bytes_per_second: u64,
    /// Of payload.
    pub with_reads_bytes_per_second: u64,
    pub reads_left_bytes_per_second: u64,
    pub burst_seconds: [Option<f64>; 3],
    pub durable_after_seconds: f64,
}

impl Proof {
    /// What every proof begins with.
    pub(crate) fn head() -> (&'static str, u32, &'static str) {
        (FORMAT, VERSION, env!("CARGO_PKG_VERSION"))
    }

    /// The machine-readable part: what is kept, and of which the text has the digest.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    fn stage(&self, kind: StageKind) -> Option<&StageResult> {
        self.measured.stages.iter().find(|stage| stage.kind == Some(kind))
    }

    /// The text. `kept` is the name of the file with the machine-readable part.
    pub fn text(&self, kept: &str, json: &str) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        let digest = blake3::hash(json.as_bytes());
        let _ = write!(
            text,
            "\nThe figures, for programs, are in {}\nBLAKE3 {digest}\n\n\
             I was there and have read this.\n\n\
             Name      ______________________________\n\n\
             Date      ______________________________\n\n\
             Signature ______________________________\n",
            clean(kept)
        );
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let ring = &self.ring;
        let of = if ring.name.is_empty() { &ring.path } else { &ring.name };
        let title = match self.terms {
            Some(_) => format!("Proof of the guarantee of the ring \"{}\"", clean(of)),
            None => format!("Measurement of the ring \"{}\", which promises nothing", clean(of)),
        };
        writeln!(text, "{title}\n{}\n", "=".repeat(title.chars().count()))?;
        writeln!(text, "{}\n", self.verdict())?;
        for reason in &self.reasons {
            writeln!(text, "  - {}", clean(reason))?;
        }
        if !self.reasons.is_empty() {
            writeln!(text)?;
        }
        let mut say = |what: &str, said: String| writeln!(text, "{what:<17} {said}");
        say("bytes in", self.came())?;
        say("on disk", self.on_disk())?;
        say("gaps", self.lost())?;
        say("worst slack", self.slack())?;
        say("worst read", self.worst_read())?;
        writeln!(text, "\nWhat was promised, and what was measured\n\n{}", self.figures())?;
        writeln!(text, "The stages\n\n{}", self.stages())?;
        let readers = self.readers();
        if !readers.is_empty() {
            writeln!(text, "Who read meanwhile\n\n{readers}")?;
        }
        if !self.notes.is_empty() {
            writeln!(text, "To be known\n")?;
            for note in &self.notes {
                writeln!(text, "  - {}", clean(note))?;
            }
            writeln!(text)?;
        }
        writeln!(text, "What was proved\n")?;
        for (what, said) in self.about() {
            writeln!(text, "{what:<17} {said}")?;
        }
        Ok(())
    }

    fn verdict(&self) -> &'static str {
        match self.verdict {
            Verdict::Pass => "PASS: all that was promised was kept.",
            Verdict::Fail => "FAIL: this ring did not keep what it promised.",
            Verdict::Void => {
                "NO VERDICT: this proves nothing, for the device or the machine was not what was counted on."
            }
            Verdict::Measured => {
                "MEASURED, NOT PROMISED: nothing was wrong; what was lost, if anything, is told."
            }
        }
    }

    fn came(&self) -> String {
        format!(
            "{}, {} of {} (seed {:016x})",
            ByteSize(self.sent_bytes),
            counted(self.sent_elements, "element"),
            ByteSize(self.element_bytes),
            self.seed
        )
    }

    fn on_disk(&self) -> String {
        let back = &self.measured.read_back;
        let expired = match back.expired_elements {
            0 => String::new(),
            expired => format!("; {} had expired, as the oldest do", counted(expired, "element")),
        };
        let wrong = match self.measured.wrong {
            0 => "each as it was sent".to_owned(),
            wrong => format!("{} WRONG", grouped(wrong)),
        };
        format!("{} verified, {}, {wrong}{expired}", ByteSize(back.bytes), counted(back.elements, "element"))
    }

    fn lost(&self) -> String {
        if self.gaps == 0 && self.lost_elements == 0 {
            return "none".to_owned();
        }
        let counted = counted(self.lost_elements, "element");
        format!("{} {}, of {counted}", grouped(self.gaps), plural(self.gaps, "gap"))
    }

    /// The stage with the least slack; bursts beyond what was promised are not asked.
    fn slack(&self) -> String {
        let promised = |stage: &&StageResult| stage.kind != Some(StageKind::Bursts);
        let stages = self.measured.stages.iter().filter(promised);
        let least = stages
            .filter_map(|stage| Some((stage.slack_least_seconds?, stage.stage)))
            .min_by(|one, other| one.0.total_cmp(&other.0));
        least.map_or("not known of a ring that promises nothing".to_owned(), |(least, stage)| {
            format!("{} left before a write had to end ({stage})", span(least))
        })
    }

    fn worst_read(&self) -> String {
        let stages = &self.measured.stages;
        let device = stages.iter().map(|stage| stage.worst_read_seconds).fold(0.0, f64::max);
        let readers = stages.iter().flat_map(|stage| &stage.readers);
        let waited = readers.map(|reader| reader.longest_wait_seconds).fold(0.0, f64::max);
        format!("{} at the device; a reader waited {} at most", bound(device), bound(waited))
    }

    fn figures(&self) -> Table {
        let mut table = Table::new(&[("", Side::Left), ("promised", Side::Left), ("measured", Side::Left)]);
        let terms = self.terms.as_ref();
        let none = || "nothing".to_owned();
        let rate = |bytes: u64| Rate(bytes).to_string();
        let lost = |stage: &StageResult| match stage.lost_elements {
            0 => "nothing lost".to_owned(),
            lost => format!("{} LOST", counted(lost, "element")),
        };
        for (kind, promised) in [
            (StageKind::Guarantee, Some(self.rate_bytes_per_second)),
            (StageKind::Capture, terms.map(|terms| terms.capture_only_bytes_per_second)),
            (StageKind::Reads, terms.map(|terms| terms.with_reads_bytes_per_second)),
        ] {
            let Some(stage) = self.stage(kind) else { continue };
            let name =
                if kind == StageKind::Guarantee { "the guarantee, whoever reads" } else { kind.name() };
            let measured = format!("{}, {}", rate(stage.sent_bytes_per_second), lost(stage));
            let promised = promised.filter(|_| terms.is_some()).map_or_else(none, rate);
            table.row([name.to_owned(), promised, measured]);
        }
        if let Some(stage) = self.stage(StageKind::Left) {
            let promised = terms.map(|terms| terms.reads_left_bytes_per_second);
            table.row([
                "left for reads".to_owned(),
                promised.map_or_else(none, rate),
                stage.read_rate().to_string(),
            ]);
        }
        for burst in self.stage(StageKind::Bursts).iter().flat_map(|stage| &stage.bursts) {
            let promised = match (terms, burst.promised_seconds) {
                (None, _) => none(),
                (Some(_), None) => "for ever".to_owned(),
                (Some(_), Some(seconds)) => span(seconds),
            };
            let name = format!("burst of {} times the rate", burst.factor);
            table.row([name, promised, burst_in_words(burst)]);
        }
        let eldest = self.measured.stages.iter().filter(|stage| stage.kind != Some(StageKind::Bursts));
        let eldest = eldest
            .filter_map(|stage| stage.durable_after_worst_seconds)
            .fold(None, |most, seconds| Some(f64::max(most.unwrap_or(0.0), seconds)));
        let promised = terms.map(|terms| terms.durable_after_seconds);
        let measured =
            eldest.map_or("not known".to_owned(), |seconds| format!("{} at worst", bound(seconds)));
        table.row(["durable after".to_owned(), promised.map_or_else(none, bound), measured]);
        table
    }

    fn stages(&self) -> Table {
        let mut table = Table::new(&[
            ("stage", Side::Left),
            ("seconds", Side::Right),
            ("came", Side::Right),
            ("read", Side::Right),
            ("lost", Side::Right),
            ("slack", Side::Right),
            ("buffers", Side::Right),
            ("worst write", Side::Right),
            ("worst read", Side::Right),
        ]);
        for stage in &self.measured.stages {
            table.row([
                stage.stage.to_owned(),
                format!("{:.1}", stage.seconds),
                Rate(stage.sent_bytes_per_second).to_string(),
                stage.read_rate().to_string(),
                grouped(stage.lost_elements),
                stage.slack_least_seconds.map_or("-".to_owned(), span),
                format!("{} of {}", stage.buffers_most_in_use, stage.buffers),
                bound(stage.worst_write_seconds),
                bound(stage.worst_read_seconds),
            ]);
        }
        table
    }

    fn readers(&self) -> String {
        let mut table = Table::new(&[
            ("stage", Side::Left),
            ("reader", Side::Left),
            ("elements", Side::Right),
            ("bytes", Side::Right),
            ("longest wait", Side::Right),
        ]);
        let mut any = false;
        for stage in &self.measured.stages {
            for reader in &stage.readers {
                any = true;
                table.row([
                    stage.stage.to_owned(),
                    reader.reads.to_owned(),
                    grouped(reader.elements),
                    ByteSize(reader.bytes).to_string(),
                    bound(reader.longest_wait_seconds),
                ]);
            }
        }
        if any { table.to_string() } else { String::new() }
    }

    /// Which ring, on which device, in which machine, resting on what.
    fn about(&self) -> Vec<(&'static str, String)> {
        let (ring, device, machine) = (&self.ring, &self.device, &self.machine);
        let slots = format!("{} of {}", grouped(ring.slots.into()), ByteSize(ring.slot_bytes));
        let known = [device.model.as_str(), device.serial.as_str()].join(" ");
        let known = if known.trim().is_empty() { "unnamed".to_owned() } else { clean(known.trim()) };
        let mut all = vec![
            ("ring", format!("{}, {}, slots {slots}", clean(&ring.path), ByteSize(ring.lane_bytes))),
            ("device", format!("{known}, {}, {}", clean(&device.medium), ByteSize(device.device_bytes))),
        ];
        if let Some(terms) = &self.terms {
            all.push(("profile", format!(
                "of {}: writing {}, reading {}, repositioning {}, commit {}, bad places {}, stalls {} and {:.2} % of the time",
                times::to_the_second(terms.measured_at),
                Rate(terms.worst_write_bytes_per_second),
                Rate(terms.worst_read_bytes_per_second),
                bound(terms.worst_reposition_seconds),
                bound(terms.commit_seconds),
                bound(terms.read_error_seconds),
                bound(terms.stall_seconds),
                terms.stalled_share * 100.0
            )));
            all.push(("terms", format!(
                "{} of payload, {} on the medium, {} elements/s{}, bursts of {}; {} written in one go, reads of {}, {} slot buffers",
                Rate(self.rate_bytes_per_second),
                Rate(terms.medium_bytes_per_second),
                grouped(terms.elements_per_second),
                attributes(&terms.attributes),
                ByteSize(terms.burst_bytes),
                counted(terms.gather.into(), "slot"),
                ByteSize(terms.quantum_bytes.into()),
                terms.buffers
            )));
        }
        let realtime = if machine.realtime { ", the disk's thread in real time" } else { "" };
        all.push((
            "machine",
            format!(
                "{}, Linux {}, {} cores of {}{realtime}",
                clean(&machine.host),
                clean(&machine.kernel),
                machine.cores,
                clean(&machine.processor)
            ),
        ));
        all.push(("program", format!("Holdfast {}", self.holdfast)));
        all.push((
            "time",
            format!("{} to {}", times::to_the_second(self.began), times::to_the_second(self.ended)),
        ));
        all
    }
}

/// The worst of something: no less is shown than that.
fn bound(seconds: f64) -> String {
    times::spoken_up(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn span(seconds: f64) -> String {
    times::spoken(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn burst_in_words(burst: &BurstResult) -> String {
    match (burst.lost_after_seconds, burst.promised_seconds) {
        (None, _) => format!("nothing lost in {}", span(burst.driven_seconds)),
        (Some(lost), Some(promised)) if lost > promised => {
            format!("{} (then, beyond the promise, an exact gap)", span(lost))
        }
        (Some(lost), _) => format!("{}, then a LOSS", span(lost)),
    }
}

/// What each element has of them.
fn attributes(shown: &AttributeLoad) -> String {
    match shown.attributes {
        0 => String::new(),
        count => format!(
            " with {} in up to {} bytes",
            counted(count.into(), "attribute"),
            shown.attribute_bytes_per_element
        ),
    }
}

/// Result of a proof: its files, the new recovery string, and the proof itself.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ProofResult<'a> {
    pub report: &'a Path,
    pub figures: &'a Path,
    pub recovery: &'a str,
    #[serde(flatten)]
    pub proof: &'a Proof,
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{ReadBack, ReaderResult};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn stage(kind: StageKind, slack: f64) -> StageResult {
        StageResult {
            kind: Some(kind),
            stage: kind.name(),
            seconds: 60.0,
            sent_bytes_per_second: 60 * MIB,
            sent_elements: 3600,
            recorded_elements: 3600,
            slack_least_seconds: Some(slack),
            durable_after_worst_seconds: Some(9.5),
            buffers: 13,
            buffers_most_in_use: 6,
            worst_write_seconds: 4.25,
            worst_read_seconds: 0.75,
            read_bytes: 600 * MIB,
            ..StageResult::default()
        }
    }

    fn proof() -> Proof {
        let mut bursts = stage(StageKind::Bursts, 0.25);
        bursts.bursts = vec![BurstResult {
            factor: 2.0,
            reached: 2.0,
            promised_seconds: Some(5.0),
            driven_seconds: 6.0,
            lost_after_seconds: Some(5.5),
        }];
        (bursts.lost_elements, bursts.gaps) = (40, 1);
        let mut all = stage(StageKind::Guarantee, 8.0);
        all.readers = vec![ReaderResult {
            reads: "the newest",
            elements: 1500,
            bytes: 1500 * MIB,
            longest_wait_seconds: 5.0,
            checking_share: 0.1,
        }];
        let (format, version, _) = Proof::head();
        Proof {
            format,
            version,
            holdfast: "1.0.0",
            verdict: Verdict::Pass,
            reasons: Vec::new(),
            notes: Vec::new(),
            began: Timestamp(0),
            ended: Timestamp(180_000_000_000),
            ring: ProvedRing {
                path: "/dev/sdb".to_owned(),
                name: "lab".to_owned(),
                lane_bytes: 3 << 30,
                slot_bytes: 64 * MIB,
                slots: 44,
            },
            device: ProvedDevice {
                medium: "spinning".to_owned(),
                device_bytes: 3 << 30,
                ..ProvedDevice::default()
            },
            machine: ProvingMachine {
                host: "crate".to_owned(),
                kernel: "6.1".to_owned(),
                cores: 4,
                processor: "a processor".to_owned(),
                realtime: true,
            },
            terms: Some(ProvedTerms {
                measured_at: Timestamp(0),
                worst_write_bytes_per_second: 65 * MIB,
                worst_read_bytes_per_second: 70 * MIB,
                worst_reposition_seconds: 0.03,
                commit_seconds: 0.008,
                read_error_seconds: 7.0,
                stall_seconds: 0.5,
                stalled_share: 0.001,
                parallel: 1,
                elements_per_second: 60,
                attributes: AttributeLoad { attributes: 4, attribute_bytes_per_element: 36 },
                burst_bytes: 4 * MIB,
                medium_bytes_per_second: 61 * MIB,
                gather: 4,
                quantum_bytes: 8 << 20,
                buffers: 13,
                capture_only_bytes_per_second: 65 * MIB,
                with_reads_bytes_per_second: 64 * MIB,
                reads_left_bytes_per_second: 8 * MIB,
                burst_seconds: [None, Some(5.0), Some(2.0)],
                durable_after_seconds: 12.5,
            }),
            seed: 7,
            element_bytes: MIB,
            rate_bytes_per_second: 60 * MIB,
            sent_elements: 10_840,
            sent_bytes: 10_840 * MIB,
            lost_elements: 40,
            gaps: 1,
            measured: Measured {
                stages: vec![stage(StageKind::Left, 9.0), all, bursts],
                read_back: ReadBack {
                    elements: 2500,
                    bytes: 2500 * MIB,
                    expired_elements: 8300,
                    ..ReadBack::default()
                },
                ..Measured::default()
            },
        }
    }

    // What a person signs says all that was measured, and says it where one looks for it.
    #[test]
    fn a_proof_reads_as_it_always_has() {
        let text = proof().text("lab.proof.json", "{}");
        let golden = include_str!("report.golden.txt");
        assert!(text == golden, "\n{text}");
    }

    #[test]
    fn a_broken_promise_and_wrong_bytes_are_seen_at_a_glance() {
        let mut proof = proof();
        (proof.verdict, proof.reasons) =
            (Verdict::Fail, vec!["all readers: 3 elements were lost".to_owned()]);
        proof.measured.wrong = 2;
        proof.measured.stages[1].lost_elements = 3;
        let text = proof.text("lab.proof.json", "{}");
        for wanted in ["\nFAIL: ", "  - all readers: 3 elements were lost\n", "2 WRONG", "3 elements LOST"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
