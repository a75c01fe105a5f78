//! `holdfast status`: how far back can I go, when does the oldest expire, is anything being lost. The live view is
//! `watch`'s.

use crate::args::RingArg;
use crate::out::Out;
use crate::watch;
use holdfast_base::failure::Result;
use holdfast_base::{ByteSize, MAX_AWAY, many};
use holdfast_base::{clean, counted, grouped};
use holdfast_client::json::RingStatus;
use holdfast_client::losses::{ever_lost, lost};
use holdfast_client::rates::{self, Rates, Reach};
use holdfast_client::session::ring_failure;
use holdfast_client::times;
use holdfast_client::words;
use holdfast_planning::guarantee;
use holdfast_protocol::wire::{RecorderStatus, SourceStatus, Status};
use holdfast_ring::{SlotStatus, StreamStatus};
use std::path::Path;
use std::time::Duration;

/// Show a ring's reach, the expiry of its oldest data, and current losses
#[derive(clap::Args, Debug)]
#[command(
    after_help = "--watch shows a live view; q ends it. With --watch and --json, one object every second.\n\n\
    Examples:\n  holdfast status lab.hf\n  holdfast status lab.hf --watch"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Show a live view
    #[arg(long)]
    watch: bool,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, mut reader) = args.ring.open()?;
    if args.watch {
        return watch::run(&path, reader, out);
    }
    let status = reader.status().map_err(|error| ring_failure(&error))?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let slots = reader.slots().map_err(|error| ring_failure(&error))?;
    let guarantee = guarantee::seen(&path, reader.superblock(), &status);
    if out.is_json() {
        return out.object(&RingStatus::new(&path, &status, &streams, &slots).promising(guarantee));
    }
    for line in lines(&path, &status, &streams, &slots) {
        out.line(line)?;
    }
    for (at, line) in guarantee::lines(guarantee.as_ref()).into_iter().enumerate() {
        out.line(format_args!("{:<16} {line}", if at == 0 { "guarantee" } else { "" }))?;
    }
    Ok(())
}

/// The time over which rates were taken, in words.
fn over(rates: &Rates, recorder: &RecorderStatus) -> String {
    if rates.span < recorder.uptime {
        format!("of the last {}", times::spoken(rates.span))
    } else {
        format!("since the start {} ago", times::spoken(recorder.uptime))
    }
}

/// The status for people.
fn lines(path: &Path, status: &Status, streams: &[StreamStatus], slots: &[SlotStatus]) -> Vec<String> {
    let ring = &status.ring;
    let rates = rates::lately(status);
    let oldest_live = rates::oldest_live(status, slots);
    let reach =
        rates::reach(status, oldest_live, rates.as_ref().map_or_else(Default::default, |rates| rates.slots));
    let mut lines = vec![head(path, status)];
    let mut say = |what: &str, text: String| lines.push(format!("{what:<16} {text}"));
    match (&reach, ring.oldest) {
        (Some(reach), oldest) => {
            let held = oldest.filter(|oldest| *oldest < reach.oldest);
            let held =
                held.map_or(String::new(), |held| format!("; held data to {}", times::to_the_second(held)));
            let back = times::spoken(reach.back);
            say("reaches back", format!("{back}, to {}{held}", times::to_the_second(reach.oldest)));
        }
        (None, Some(oldest)) => {
            say("reaches back", format!("held data only, to {}", times::to_the_second(oldest)));
        }
        (None, None) => say("reaches back", "nothing is recorded yet".to_owned()),
    }
    let running = status.recorder.as_ref().zip(rates.as_ref());
    match (&reach, running) {
        (Some(Reach { expires_in: Some(expires), when_full: Some(full), .. }), Some((recorder, rates))) => {
            say(
                "oldest expires",
                format!(
                    "in about {} at {}, the average {}; a full ring reaches back {}",
                    times::spoken(*expires),
                    rates.slots,
                    over(rates, recorder),
                    times::spoken(*full)
                ),
            );
        }
        (Some(_), None) => say("oldest expires", "not while no recorder runs".to_owned()),
        (Some(_), Some(_)) => say("oldest expires", "not while nothing comes in".to_owned()),
        (None, _) => {}
    }
    say("being lost", lost(status));
    if let Some(ever) = ever_lost(status, streams) {
        say("ever lost", ever);
    }
    let slots = &ring.slots;
    let mut counts = vec![format!("{} of {}", grouped(slots.total.into()), ring.slot_bytes)];
    for (count, what) in [
        (slots.live, "live"),
        (slots.held, "held"),
        (slots.pinned, "pinned"),
        (slots.free, "free"),
        (slots.runway, "runway"),
        (slots.writing, "writing"),
        (slots.damaged, "damaged"),
        (slots.bad, "bad"),
    ] {
        if count > 0 {
            counts.push(format!("{} {what}", grouped(count.into())));
        }
    }
    say("slots", counts.join(", "));
    let room = ByteSize(u64::from(slots.holdable) * ring.slot_bytes.0);
    let promised = match slots.promised {
        0 => String::new(),
        count => format!("; {} promised to what they are still to find", counted(count.into(), "slot")),
    };
    say("holds", format!("{}{promised}; {room} more may be held", ring.holds));
    if !ring.scanned && status.recorder.is_some() {
        say("table", "still being read behind capture: some times are not known yet".to_owned());
    }
    if let (Some(recorder), Some(rates)) = (&status.recorder, &rates) {
        recorder_lines(recorder, rates, ring.durable_after, &mut say);
    }
    lines
}

fn head(path: &Path, status: &Status) -> String {
    let ring = &status.ring;
    let name = if ring.name.is_empty() { String::new() } else { format!(" \"{}\"", clean(&ring.name)) };
    let recorder = status.recorder.as_ref().map_or("no recorder runs".to_owned(), |recorder| {
        format!("recorder {} up {}", recorder.pid, times::spoken(recorder.uptime))
    });
    format!("{}{name}: {}, {recorder}", clean(&path.to_string_lossy()), ring.lane_bytes)
}

/// What the attributes of a source's elements lack.
fn nulls(source: &SourceStatus) -> String {
    let said = |count: u64, noun, what| match count {
        0 => String::new(),
        _ => format!(", {} {what}", counted(count, noun)),
    };
    said(source.undecodable, "element", "undecodable") + &said(source.too_long, "text", "too long")
}

fn recorder_lines(
    recorder: &RecorderStatus,
    rates: &Rates,
    durable: Duration,
    say: &mut impl FnMut(&str, String),
) {
    say(
        "comes in",
        format!(
            "{} {}, {} elements/s; {} to disk",
            if rates.span < recorder.uptime {
                format!("in the last {}", times::spoken(rates.span))
            } else {
                "on average".to_owned()
            },
            rates.payload,
            grouped(rates.elements),
            rates.disk
        ),
    );
    for (source, (rate, elements)) in recorder.sources.iter().zip(&rates.sources) {
        let error =
            if source.error.is_empty() { String::new() } else { format!(": {}", clean(&source.error)) };
        let beyond = match source.beyond_bytes {
            0 => String::new(),
            bytes => format!(", {} of it beyond its rate", ByteSize(bytes)),
        };
        let before = match source.interface_drops {
            0 => String::new(),
            frames => format!(", {} lost by the interface", counted(frames, "frame")),
        };
        let perhaps = match source.perhaps_lost {
            0 => String::new(),
            frames => format!(", {} perhaps lost", counted(frames, "frame")),
        };
        let refused = match source.refused {
            0 => String::new(),
            producers => format!(", {} refused or put out", counted(producers, "producer")),
        };
        let nulls = nulls(source);
        say(
            "",
            format!(
                "{} ({}) {rate}, {} elements/s{beyond}{before}{perhaps}{nulls}{refused}, {}{error}",
                clean(&source.name),
                clean(&source.spec),
                grouped(*elements),
                words::source_state(source.state)
            ),
        );
    }
    let buffers = recorder.buffers;
    let (spare, at) = (buffers.least_free(), times::to_the_second(buffers.most_at));
    say("margin", format!("{spare} of {} buffers were never needed, the others at {at}", buffers.count));
    if let Some(margin) = &recorder.margin {
        let (least, kept) = (times::spoken(margin.least), times::spoken(margin.kept));
        say(
            "",
            format!(
                "{least} of slack at least, at {}; with {kept} nothing but writing is begun ({} on the medium)",
                times::to_the_second(margin.since),
                margin.rate
            ),
        );
    }
    if recorder.away.longest > MAX_AWAY {
        say(
            "processor",
            format!(
                "capture was away from its sources for {} until {}; a guarantee counts on {} at most",
                times::spoken_up(recorder.away.longest),
                times::to_the_second(recorder.away.since),
                times::spoken(MAX_AWAY)
            ),
        );
    }
    let seen = recorder.margin.as_ref().map_or_else(String::new, |margin| {
        format!("; {} at worst since the start", times::spoken_up(margin.eldest))
    });
    say("durable after", times::spoken_up(durable) + &seen);
    if let Some(view) = &recorder.view {
        let slots = many(view.slots.into(), "slot");
        say("bird's-eye view", format!("of {slots}, {} each at most, {} in all", view.place, view.bytes));
    }
    if !recorder.device.error.is_empty() {
        let state = words::device_state(recorder.device.state);
        say("device", format!("{state}: {}", clean(&recorder.device.error)));
    }
    for warning in &recorder.warnings {
        say("warning", clean(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples as sample;

    fn said(status: &Status) -> String {
        lines(Path::new("/data/lab.hf"), status, &sample::streams(), &sample::slots()).join("\n")
    }

    #[test]
    fn the_questions_of_a_newcomer_are_answered_first() {
        let text = said(&sample::status());
        let first: Vec<&str> = text.lines().take(4).collect();
        assert_eq!(
            first,
            [
                "/data/lab.hf \"lab \"one\"\": 1 GiB, recorder 4711 up 10 min",
                "reaches back     10 min, to 2026-11-20T09:55:00Z",
                "oldest expires   in about 5 min 8 s at 1 MiB/s, the average of the last 1 min; a full ring reaches back 15 min 10 s",
                "being lost       yes, the last 3.0 s ago: eth0 1 234 elements (dropped by the kernel); eth0 7 frames (by the interface); adc an unknown number; perhaps eth0 50 frames (dropped by the kernel, before or behind the recorder)",
            ]
        );
        assert!(text.contains("bird's-eye view  of 600 slots, 64 KiB each at most, 64 MiB in all"), "{text}");
        assert!(text.contains("30 elements and an unknown number in 3 gaps"), "{text}");
        assert!(
            text.contains("3 of 8 buffers were never needed, the others at 2026-11-20T10:00:00Z")
                && text.contains("memory could not be locked")
        );
        assert!(
            text.contains(
                "eth0 (iface:eth0) 512 KiB/s, 1 000 elements/s, 7 frames lost by the interface, 50 frames perhaps lost, running"
            ),
            "{text}"
        );
        let holds =
            "holds            2; 40 slots promised to what they are still to find; 500 MiB more may be held";
        assert!(text.lines().any(|line| line == holds), "{text}");
        let over = text.lines().find(|line| line.contains("adc (file")).unwrap();
        let said = ", 3 MiB of it beyond its rate, 17 elements undecodable, 2 texts too long, 3 producers refused or put out, running";
        assert!(over.contains(said), "{over}");
    }

    #[test]
    fn a_ring_without_a_recorder_and_an_empty_one_say_so() {
        let mut status = sample::status();
        status.recorder = None;
        let text = said(&status);
        assert!(text.contains("no recorder runs") && text.contains("nothing is being recorded"), "{text}");
        status.ring.oldest = None;
        let text = lines(Path::new("r"), &status, &[], &[]).join("\n");
        assert!(text.contains("nothing is recorded yet"), "{text}");
    }

    #[test]
    fn rates_are_those_of_the_last_minute() {
        let mut status = sample::status();
        let recorder = status.recorder.as_mut().unwrap();
        recorder.now = recorder.now + Duration::from_hours(72);
        recorder.uptime += Duration::from_hours(72);
        let text = said(&status);
        assert!(text.contains("at 1 MiB/s, the average of the last 1 min; a full ring"), "{text}");
        let said = "comes in         in the last 1 min 1 MiB/s, 1 010 elements/s; 1.0 MiB/s to disk";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn programs_get_the_same_answers() {
        let status = sample::status();
        let streams = sample::streams();
        let shown = serde_json::to_value(RingStatus::new(
            Path::new("/data/lab.hf"),
            &status,
            &streams,
            &sample::slots(),
        ))
        .unwrap();
        assert_eq!(shown["reaches_back_seconds"], 600.0);
        assert_eq!(shown["oldest_expires_in_seconds"], 308.0);
        assert_eq!((&shown["losing"], &shown["losing_now"]), (&true.into(), &true.into()));
        assert_eq!(
            (&shown["recorder"]["recent_seconds"], &shown["recorder"]["recent_elements_per_second"]),
            (&60.0.into(), &1010.into())
        );
        let source = &shown["recorder"]["sources"][0];
        assert_eq!(
            (&source["recent_lost_elements"], &source["last_lost_at"]),
            (&12.into(), &"2026-11-20T10:04:57Z".into())
        );
        assert_eq!((&source["interface_drops"], &source["interface_perhaps_lost"]), (&7.into(), &50.into()));
        assert_eq!(shown["recorder"]["sources"][1]["unknown_losses"], 1);
        assert_eq!((&shown["slots"]["held"], &shown["slots"]["promised"]), (&100.into(), &40.into()));
        assert_eq!(shown["recorder"]["sources"][0]["dropped"][0]["cause"], "kernel");
        assert_eq!(shown["recorder"]["sources"][1]["beyond_rate_bytes"], 3 << 20);
        assert_eq!(shown["recorder"]["sources"][1]["beyond_rate_elements"], 60);
        assert_eq!(shown["recorder"]["sources"][1]["undecodable_elements"], 17);
        assert_eq!(shown["recorder"]["sources"][1]["too_long_texts"], 2);
        assert_eq!(shown["recorder"]["sources"][1]["refused_producers"], 3);
        assert_eq!(shown["recorder"]["payload_bytes_per_second"], 1 << 20);
        assert_eq!(shown["recorder"]["birds_eye"]["slots"], 600);
    }
}
