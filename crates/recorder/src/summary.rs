//! Summary of a run, printed at its end as text or JSON.

use holdfast_base::{ByteSize, Rate, many};
use holdfast_format::{Cause, Counters};
use holdfast_ring::DriverCounts;
use std::fmt::Write as _;
use std::time::Duration;

/// One stream's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// Its name.
    pub name: String,
    /// Its source, as given.
    pub source: String,
    /// What it came to in this run.
    pub counters: Counters,
    /// Elements lost, by cause.
    pub dropped: Vec<(Cause, u64)>,
    /// How often elements may have been lost upstream, and nobody knows how many.
    pub interrupted: u64,
    /// Frames that the interface lost before we could see them.
    pub interface_drops: u64,
    /// Frames that it counts as dropped, before we could see them or behind us.
    pub perhaps_lost: u64,
    /// Elements that are recorded without their options.
    pub options_left_out: u64,
    /// Elements that are not what the stream's schema takes them for: recorded, with null attributes.
    pub undecodable: u64,
    /// Texts longer than an attribute may be: null.
    pub too_long: u64,
    /// Elements whose event time has whole seconds, for want of a rate of frames.
    pub whole_seconds: u64,
    /// Format of files of whose headers attributes are read: that of `--attr dada` or `--attr sigproc`.
    pub header_format: Option<&'static str>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The ring's path.
    pub ring: String,
    /// How long it took.
    pub took: Duration,
    /// Slots sealed.
    pub slots: u64,
    /// What the disk did.
    pub counts: DriverCounts,
    /// Slot buffers, and the fewest that were free.
    pub buffers: (usize, usize),
    /// The longest time in which the capture thread did not look what there was.
    pub away: Duration,
    /// The streams.
    pub streams: Vec<StreamSummary>,
    /// What went wrong.
    pub errors: Vec<String>,
}

/// What a run added to a stream's counters.
pub fn gained(began: &Counters, now: &Counters) -> Counters {
    Counters {
        received: now.received.saturating_sub(began.received),
        received_bytes: now.received_bytes.saturating_sub(began.received_bytes),
        lost: now.lost.saturating_sub(began.lost),
        lost_bytes: now.lost_bytes.saturating_sub(began.lost_bytes),
        next_ordinal: now.next_ordinal,
        gaps: now.gaps.saturating_sub(began.gaps),
        unknown_gaps: now.unknown_gaps.saturating_sub(began.unknown_gaps),
    }
}

/// A cause in words.
pub fn cause_text(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSlot => "no free slot",
        Cause::NoBuffer => "no free buffer",
        Cause::Kernel => "dropped by the kernel",
        Cause::Crash => "crash",
        Cause::DeviceAbsent => "device absent",
        Cause::SourceFailed => "source failed",
        Cause::Purged => "purged",
        Cause::Aborted => "given up",
        Cause::Oversized => "too large",
        Cause::OverRate => "beyond the declared rate",
        Cause::NoProcessor => "no processor",
        Cause::Upstream => "lost upstream",
    }
}

/// Why there was no run, for a program: one object in one line.
pub fn failure_json(error: &str, exit: u8) -> String {
    format!("{{\"error\":{},\"exit\":{exit}}}\n", quoted(error))
}

impl StreamSummary {
    /// Elements that are not what the schema takes them for, and what to do where an input has one header at its head.
    fn undecodable(&self) -> Option<String> {
        let (count, all) = (self.undecodable, self.counters.received);
        match self.header_format {
            Some(format) if all > 1 && count <= all && count + 1 >= all => Some(format!(
                "{count} of {} have no {} header; if the input has one at its head, record with --preamble and its bytes{}, without --attr {format}",
                many(all, "element"),
                format.to_uppercase(),
                if format == "dada" { " (--preamble 4096)" } else { "" }
            )),
            _ => (count > 0).then(|| format!("{} undecodable", many(count, "element"))),
        }
    }

    /// Losses of every kind, separated by semicolons; "nothing lost" only if there are none.
    fn losses(&self) -> String {
        let mut lost = Vec::new();
        lost.extend(self.lost_here());
        lost.extend(self.lost_upstream());
        if self.interface_drops > 0 {
            lost.push(format!("{} lost by the interface", many(self.interface_drops, "frame")));
        }
        if lost.is_empty() {
            lost.push(
                if self.perhaps_lost > 0 { "nothing known to be lost" } else { "nothing lost" }.to_owned(),
            );
        }
        if self.perhaps_lost > 0 {
            let which = many(self.perhaps_lost, "frame");
            lost.push(format!("{which} perhaps lost: dropped by the kernel, before or behind us"));
        }
        lost.join("; ")
    }

    fn lost_here(&self) -> Option<String> {
        let c = &self.counters;
        if c.gaps == 0 {
            return None;
        }
        let mut out = format!("{}: ", many(c.gaps, "gap"));
        if c.lost == 0 && c.unknown_gaps > 0 {
            out.push_str("an unknown number lost");
        } else {
            let _ = write!(out, "{} lost", many(c.lost, "element"));
        }
        let here = self.dropped.iter().filter(|(cause, _)| *cause != Cause::Upstream);
        let causes: Vec<String> =
            here.map(|(cause, count)| format!("{} {count}", cause_text(*cause))).collect();
        if !causes.is_empty() {
            let _ = write!(out, " ({})", causes.join(", "));
        }
        if c.lost > 0 && c.unknown_gaps > 0 {
            let _ = write!(out, ", and an unknown number in {}", c.unknown_gaps);
        }
        Some(out)
    }

    fn lost_upstream(&self) -> Option<String> {
        let known = self.dropped.iter().find(|(cause, _)| *cause == Cause::Upstream);
        let known = known.map(|(cause, count)| format!("{} {}", many(*count, "element"), cause_text(*cause)));
        match (known, self.interrupted) {
            (known, 0) => known,
            (None, _) => Some("an unknown number lost upstream".to_owned()),
            (Some(known), unknown) => {
                Some(format!("{known}, and an unknown number {}", many(unknown, "time")))
            }
        }
    }
}

impl Summary {
    /// For a person.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let seconds = self.took.as_secs_f64();
        let _ = writeln!(out, "recorded to {} for {seconds:.1} s:", self.ring);
        for stream in &self.streams {
            let c = &stream.counters;
            let bytes = ByteSize(c.received_bytes);
            let rate = Rate::of(c.received_bytes, self.took);
            let _ = write!(out, "  {}: {}, {bytes} ({rate})", stream.name, many(c.received, "element"));
            let _ = write!(out, ", {}", stream.losses());
            if stream.options_left_out > 0 {
                let which = many(stream.options_left_out, "element");
                let _ = write!(out, "; options of {which} left out: an eighth of a slot does not hold them");
            }
            if let Some(said) = stream.undecodable() {
                let _ = write!(out, "; {said}");
            }
            if stream.too_long > 0 {
                let _ = write!(out, "; {} too long", many(stream.too_long, "text"));
            }
            if stream.whole_seconds > 0 {
                let which = many(stream.whole_seconds, "element");
                let _ = write!(
                    out,
                    "; event times of {which} in whole seconds: their headers have no sample rate, give vdif:event_time,rate=N with the frames a second"
                );
            }
            out.push('\n');
        }
        let counts = &self.counts;
        let written = ByteSize(counts.write_bytes);
        let journal = ByteSize(counts.journal_bytes);
        let worst = counts.writing.worst.as_secs_f64() * 1e3;
        let _ = writeln!(
            out,
            "  {}, {written} written at {}, and {journal} of journal; longest write {worst:.1} ms; {} of {} buffers free at least; capture away for {:.1} ms at most",
            many(self.slots, "slot"),
            Rate::of(counts.write_bytes, self.took),
            self.buffers.1,
            self.buffers.0,
            self.away.as_secs_f64() * 1e3,
        );
        if counts.errors > 0 {
            let _ = writeln!(out, "  the disk failed {}", many(counts.errors, "request"));
        }
        out
    }

    /// For a program: one object in one line.
    pub fn json(&self) -> String {
        let mut out = String::from("{");
        let _ = write!(out, "\"ring\":{},\"seconds\":{:.3}", quoted(&self.ring), self.took.as_secs_f64());
        let c = &self.counts;
        let _ = write!(
            out,
            ",\"slots\":{},\"written_bytes\":{},\"journal_bytes\":{},\"longest_write_ms\":{:.3},\"disk_errors\":{},\"buffers\":{},\"least_free_buffers\":{},\"longest_away_ms\":{:.3}",
            self.slots,
            c.write_bytes,
            c.journal_bytes,
            c.writing.worst.as_secs_f64() * 1e3,
            c.errors,
            self.buffers.0,
            self.buffers.1,
            self.away.as_secs_f64() * 1e3
        );
        out.push_str(",\"streams\":[");
        for (at, stream) in self.streams.iter().enumerate() {
            let c = &stream.counters;
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(
                out,
                "{comma}{{\"name\":{},\"source\":{},\"elements\":{},\"bytes\":{},\"lost_elements\":{},\"lost_bytes\":{},\"gaps\":{},\"unknown_gaps\":{},\"next_ordinal\":{},\"lost\":{{",
                quoted(&stream.name),
                quoted(&stream.source),
                c.received,
                c.received_bytes,
                c.lost,
                c.lost_bytes,
                c.gaps,
                c.unknown_gaps,
                c.next_ordinal
            );
            for (at, (cause, count)) in stream.dropped.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(out, "{comma}{}:{count}", quoted(cause.name()));
            }
            let _ = write!(out, "}},\"interrupted\":{}", stream.interrupted);
            let _ = write!(out, ",\"interface_drops\":{}", stream.interface_drops);
            let _ = write!(out, ",\"interface_perhaps_lost\":{}", stream.perhaps_lost);
            let _ = write!(out, ",\"options_left_out\":{}", stream.options_left_out);
            let (undecodable, too_long) = (stream.undecodable, stream.too_long);
            let _ = write!(out, ",\"undecodable_elements\":{undecodable},\"too_long_texts\":{too_long}");
            let _ = write!(out, ",\"whole_second_times\":{}}}", stream.whole_seconds);
        }
        out.push_str("],\"errors\":[");
        let errors: Vec<String> = self.errors.iter().map(|error| quoted(error)).collect();
        out.push_str(&errors.join(","));
        out.push_str("]}\n");
        out
    }
}

/// A string as JSON has it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let counters = Counters {
            received: 10,
            received_bytes: 4096,
            lost: 3,
            gaps: 2,
            unknown_gaps: 1,
            ..Counters::default()
        };
        Summary {
            ring: "r \"x\"\n".into(),
            took: Duration::from_secs(2),
            slots: 4,
            counts: DriverCounts::default(),
            buffers: (4, 1),
            away: Duration::from_micros(20_500),
            streams: vec![StreamSummary {
                name: "s".into(),
                source: "stdin".into(),
                counters,
                dropped: vec![(Cause::NoBuffer, 3)],
                interrupted: 0,
                interface_drops: 0,
                perhaps_lost: 0,
                options_left_out: 0,
                undecodable: 0,
                too_long: 0,
                whole_seconds: 0,
                header_format: None,
            }],
            errors: vec!["a\\b".into()],
        }
    }

    #[test]
    fn losses_are_told_by_cause() {
        let text = summary().text();
        assert!(text.contains("s: 10 elements, 4 KiB (2 KiB/s), 2 gaps: 3 elements lost (no free buffer 3), and an unknown number in 1"), "{text}");
    }

    #[test]
    fn a_loss_of_unknown_size_is_not_told_as_none() {
        let mut summary = summary();
        let counters = Counters { received: 10, gaps: 1, unknown_gaps: 1, ..Counters::default() };
        summary.streams[0] = StreamSummary { counters, dropped: Vec::new(), ..summary.streams[0].clone() };
        let text = summary.text();
        assert!(text.contains(", 1 gap: an unknown number lost\n"), "{text}");
    }

    #[test]
    fn what_was_lost_upstream_is_told_beside_what_was_lost_here() {
        let mut summary = summary();
        let stream = |dropped: &[(Cause, u64)], interrupted, here: &StreamSummary| StreamSummary {
            dropped: dropped.to_vec(),
            interrupted,
            ..here.clone()
        };
        let both = [(Cause::NoBuffer, 3), (Cause::Upstream, 7)];
        summary.streams[0] = stream(&both, 2, &summary.streams[0]);
        let text = summary.text();
        let said = "3 elements lost (no free buffer 3), and an unknown number in 1; 7 elements lost upstream, and an unknown number 2 times\n";
        assert!(text.contains(said), "{text}");
        assert!(summary.json().contains("\"lost\":{\"no_buffer\":3,\"upstream\":7},\"interrupted\":2,"));
        summary.streams[0].counters = Counters::default();
        summary.streams[0] = stream(&[(Cause::Upstream, 1)], 0, &summary.streams[0]);
        assert!(summary.text().contains(" (0 B/s), 1 element lost upstream\n"), "{}", summary.text());
        summary.streams[0] = stream(&[], 1, &summary.streams[0]);
        assert!(summary.text().contains(" (0 B/s), an unknown number lost upstream\n"));
    }

    #[test]
    fn what_the_interface_lost_is_told_beside_what_was_lost_here() {
        let mut summary = summary();
        summary.streams[0].counters = Counters::default();
        summary.streams[0].interface_drops = 1;
        let text = summary.text();
        assert!(text.contains(" (0 B/s), 1 frame lost by the interface\n"), "{text}");
        assert!(summary.json().contains(",\"interrupted\":0,\"interface_drops\":1,"), "{}", summary.json());
        summary.streams[0].perhaps_lost = 2;
        let text = summary.text();
        let said = " (0 B/s), 1 frame lost by the interface; 2 frames perhaps lost: dropped by the kernel, before or behind us\n";
        assert!(text.contains(said), "{text}");
        let json = summary.json();
        assert!(json.contains("\"interface_drops\":1,\"interface_perhaps_lost\":2,"), "{json}");
        summary.streams[0].interface_drops = 0;
        let text = summary.text();
        assert!(text.contains(", nothing known to be lost; 2 frames perhaps lost: "), "{text}");
    }

    #[test]
    fn options_that_were_left_out_are_told() {
        let mut summary = summary();
        assert!(!summary.text().contains("options"));
        summary.streams[0].options_left_out = 7;
        assert!(summary.text().contains("; options of 7 elements left out: "), "{}", summary.text());
        assert!(summary.json().contains("\"options_left_out\":7,"), "{}", summary.json());
    }

    #[test]
    fn what_could_not_be_read_as_attributes_is_told() {
        let mut summary = summary();
        assert!(!summary.text().contains("undecodable") && !summary.text().contains("too long"));
        (summary.streams[0].undecodable, summary.streams[0].too_long) = (7, 1);
        let text = summary.text();
        assert!(text.contains("; 7 elements undecodable; 1 text too long\n"), "{text}");
        let json = summary.json();
        assert!(
            json.contains(",\"undecodable_elements\":7,\"too_long_texts\":1,\"whole_second_times\":0}"),
            "{json}"
        );
        summary.streams[0].whole_seconds = 9;
        assert!(summary.text().contains("; event times of 9 elements in whole seconds: "));
        assert!(summary.json().contains(",\"whole_second_times\":9}"));
    }

    #[test]
    fn one_header_at_the_head_of_the_input_is_told_with_what_to_do() {
        let mut summary = summary();
        (summary.streams[0].header_format, summary.streams[0].undecodable) = (Some("dada"), 9);
        let text = summary.text();
        let said = "; 9 of 10 elements have no DADA header; if the input has one at its head, record with --preamble and its bytes \
                    (--preamble 4096), without --attr dada\n";
        assert!(text.contains(said), "{text}");
        summary.streams[0].undecodable = 4;
        assert!(summary.text().contains("; 4 elements undecodable\n"));
        summary.streams[0].undecodable = 0;
        assert!(!summary.text().contains("header"));
    }

    #[test]
    fn one_is_told_as_one() {
        let mut summary = summary();
        summary.slots = 1;
        let counters =
            Counters { received: 1, received_bytes: 7, lost: 1, gaps: 1, ..summary.streams[0].counters };
        summary.streams[0].counters = Counters { unknown_gaps: 0, ..counters };
        summary.counts.errors = 1;
        let text = summary.text();
        for said in ["s: 1 element, 7 B", ", 1 gap: 1 element lost (", "  1 slot, ", "failed 1 request\n"] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn json_is_escaped() {
        let json = summary().json();
        assert!(json.starts_with("{\"ring\":\"r \\\"x\\\"\\n\",\"seconds\":2.000,"), "{json}");
        assert!(
            json.ends_with("\"lost\":{\"no_buffer\":3},\"interrupted\":0,\"interface_drops\":0,\"interface_perhaps_lost\":0,\"options_left_out\":0,\"undecodable_elements\":0,\"too_long_texts\":0,\"whole_second_times\":0}],\"errors\":[\"a\\\\b\"]}\n"),
            "{json}"
        );
    }
}
