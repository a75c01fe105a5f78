//! View that the watch draws: a pure function of the scene and the size of the terminal.

use super::{Scene, picture};
use holdfast_base::ByteSize;
use holdfast_base::{clean, grouped};
use holdfast_client::losses::{SourceLosses, lost};
use holdfast_client::rates::{self, Reach};
use holdfast_client::times;
use holdfast_client::words;
use holdfast_protocol::wire::{LaneStatus, Latency, MarginStatus, RecorderStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, Wrap};
use std::time::Duration;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, scene: &Scene) {
    let sources = scene.status.recorder.as_ref().map_or(0, |recorder| recorder.sources.len()) as u16;
    let disk_lines_wanted =
        scene.status.recorder.as_ref().map_or(0, |recorder| {
            recorder.lanes.len() as u16 + 3 + u16::from(!recorder.device.error.is_empty())
        });
    let [head, answers, slots, streams, disk, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(7),
        Constraint::Min(4),
        Constraint::Max(if sources > 0 { sources + 3 } else { 0 }),
        Constraint::Max(disk_lines_wanted),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(head_line(scene), head);
    frame.render_widget(Paragraph::new(answer_lines(scene)).block(block("The answers")), answers);
    slots_picture(frame, scene, slots);
    if let Some(recorder) = &scene.status.recorder {
        frame.render_widget(sources_table(scene, recorder), streams);
        frame.render_widget(disk_lines(recorder), disk);
    }
    frame.render_widget(foot_line(scene), foot);
}

fn block(title: &str) -> Block<'_> {
    Block::bordered().title(format!(" {title} ")).border_style(Style::new().fg(Color::DarkGray))
}

fn head_line(scene: &Scene) -> Line<'static> {
    let ring = &scene.status.ring;
    let mut spans = vec![" holdfast ".bold().reversed(), format!(" {} ", clean(&scene.path)).bold()];
    if !ring.name.is_empty() {
        spans.push(format!("\"{}\" ", clean(&ring.name)).into());
    }
    spans.push(format!("{} in slots of {}  ", ring.lane_bytes, ring.slot_bytes).dim());
    spans.push(match &scene.status.recorder {
        Some(recorder) => {
            format!("recorder {} up {}", recorder.pid, times::spoken(recorder.uptime)).fg(Color::Green)
        }
        None => "no recorder runs".fg(Color::Yellow),
    });
    Line::from(spans)
}

fn answer_lines(scene: &Scene) -> Vec<Line<'static>> {
    let ring = &scene.status.ring;
    let rate = scene.rates.as_ref().map(|rates| rates.slots).unwrap_or_default();
    let reach = rates::reach(&scene.status, rates::oldest_live(&scene.status, &scene.slots), rate);
    let label = |text: &str| Span::from(format!("{text:<15}")).dim();
    let back = match (&reach, ring.oldest) {
        (Some(reach), oldest) => {
            let held = oldest.filter(|oldest| *oldest < reach.oldest);
            let held =
                held.map_or(String::new(), |held| format!("; held data to {}", times::to_the_second(held)));
            let to = format!("  to {}{held}", times::to_the_second(reach.oldest));
            vec![times::spoken(reach.back).bold(), to.into()]
        }
        (None, Some(oldest)) => vec![format!("held data only, to {}", times::to_the_second(oldest)).into()],
        (None, None) => vec!["nothing is recorded yet".into()],
    };
    let expires = match &reach {
        Some(Reach { expires_in: Some(expires), when_full: Some(full), .. }) => vec![
            format!("in {}", times::spoken(*expires)).bold(),
            format!("  at {rate}; a full ring reaches back {}", times::spoken(*full)).into(),
        ],
        _ if scene.status.recorder.is_none() => vec!["not while no recorder runs".into()],
        _ => vec!["not while nothing comes in".into()],
    };
    let lost = lost(&scene.status);
    let lost = if lost.starts_with("yes") { lost.fg(Color::Red).bold() } else { lost.fg(Color::Green) };
    let flow = match &scene.rates {
        Some(rates) => vec![
            rates.payload.to_string().bold(),
            format!("  {} elements/s  ", grouped(rates.elements)).into(),
            "to disk ".dim(),
            rates.disk.to_string().bold(),
        ],
        None => vec!["-".into()],
    };
    let line = |name: &str, spans: Vec<Span<'static>>| Line::from([vec![label(name)], spans].concat());
    vec![
        line("reaches back", back),
        line("oldest expires", expires),
        line("being lost", vec![lost]),
        line("comes in", flow),
        line("guarantee", vec![clean(&scene.promise).into()]),
    ]
}

fn slots_picture(frame: &mut Frame<'_>, scene: &Scene, area: Rect) {
    let counts = &scene.status.ring.slots;
    let count = |name: &str| match name {
        "free" => counts.free,
        "live" => counts.live,
        "held" => counts.held,
        "pinned" => counts.pinned,
        "runway" => counts.runway,
        "writing" => counts.writing,
        "damaged" => counts.damaged,
        _ => counts.bad,
    };
    let mut legend = Vec::new();
    for (look, sign, name) in picture::LEGEND {
        legend.push(Span::styled(format!(" {sign} "), picture::style(look)));
        legend.push(format!("{name} {} ", grouped(count(name).into())).dim());
    }
    let inner = block("").inner(area);
    let room = usize::from(inner.width) * usize::from(inner.height);
    let each = picture::slots_a_cell(scene.slots.len(), room);
    let title = if each > 1 {
        format!("{} slots, {each} a cell", scene.slots.len())
    } else {
        format!("{} slots", scene.slots.len())
    };
    let block = block(&title).title_bottom(Line::from(legend));
    frame.render_widget(block, area);
    let width = usize::from(inner.width.max(1));
    let cells = picture::cells(&scene.slots, room);
    let lines: Vec<Line<'_>> = cells
        .chunks(width)
        .map(|row| row.iter().map(|look| Span::styled(picture::sign(*look), picture::style(*look))).collect())
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn sources_table(scene: &Scene, recorder: &RecorderStatus) -> Table<'static> {
    let rows = recorder.sources.iter().enumerate().map(|(at, source)| {
        let (rate, elements) =
            scene.rates.as_ref().and_then(|rates| rates.sources.get(at)).copied().unwrap_or_default();
        let lost = SourceLosses::of(source);
        let unknown = if lost.unknown > 0 { " + ?" } else { "" };
        let lost_style = if lost.is_any() { Style::new().fg(Color::Red) } else { Style::new() };
        let state = words::source_state(source.state);
        let beyond = scene.rates.as_ref().and_then(|rates| rates.beyond.get(at)).filter(|rate| rate.0 > 0);
        let state = match (source.error.as_str(), beyond, source.perhaps_lost) {
            ("", None, 0) => state.to_owned(),
            ("", None, frames) => format!("{} perhaps lost", grouped(frames)),
            ("", Some(rate), _) => format!("{rate} beyond"),
            (error, _, _) => format!("{state}: {}", clean(error)),
        };
        Row::new(vec![
            Cell::from(clean(&source.name).bold()),
            Cell::from(clean(&source.spec)),
            Cell::from(rate.to_string()),
            Cell::from(grouped(elements)),
            Cell::from(grouped(source.elements)),
            Cell::from(Span::styled(grouped(lost.elements) + unknown, lost_style)),
            Cell::from(state),
        ])
    });
    let widths = [
        Constraint::Min(8),
        Constraint::Min(12),
        Constraint::Length(12),
        Constraint::Length(11),
        Constraint::Length(14),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let head = Row::new(["stream", "source", "in", "elements/s", "elements", "lost", "state"]).dim();
    Table::new(rows, widths).header(head).block(block("Sources"))
}

fn disk_lines(recorder: &RecorderStatus) -> Paragraph<'static> {
    let buffers = recorder.buffers;
    let mut lines = vec![Line::from(vec![
        Span::from("buffers  ").dim(),
        meter(buffers.in_use, buffers.most_in_use, buffers.count),
        format!("  {} of {} in use, {} at most; ", buffers.in_use, buffers.count, buffers.most_in_use).into(),
        "margin ".dim(),
        format!("{}", buffers.least_free()).bold(),
        recorder.margin.map_or(String::new(), |margin| slack(&margin)).into(),
    ])];
    lines.extend(recorder.lanes.iter().map(lane_line));
    if !recorder.device.error.is_empty() {
        let state = words::device_state(recorder.device.state);
        lines.push(format!("device {state}: {}", clean(&recorder.device.error)).fg(Color::Red).into());
    }
    Paragraph::new(lines).wrap(Wrap { trim: false }).block(block("Disk"))
}

/// How near it came to breaking its promise.
fn slack(margin: &MarginStatus) -> String {
    let (least, kept) = (times::spoken(margin.least), times::spoken(margin.kept));
    format!("; least slack {least}, {kept} are kept")
}

/// Buffers as a bar: in use now, in use at most, never used.
fn meter(now: u32, most: u32, count: u32) -> Span<'static> {
    const MOST_CELLS: u32 = 32;
    let each = count.div_ceil(MOST_CELLS).max(1);
    let cell = |at: u32| match at * each {
        at if at < now => '█',
        at if at < most => '▒',
        _ => '░',
    };
    (0..count.div_ceil(each)).map(cell).collect::<String>().fg(Color::Cyan)
}

fn lane_line(lane: &LaneStatus) -> Line<'static> {
    let half = quantile(&lane.write_latency, 0.5);
    let most = quantile(&lane.write_latency, 0.99);
    Line::from(vec![
        clean(&lane.path).bold(),
        format!(
            "  written {} + journal {}, read {}  ",
            ByteSize(lane.slot_bytes),
            ByteSize(lane.journal_bytes),
            ByteSize(lane.read_bytes)
        )
        .into(),
        "a write takes ".dim(),
        format!("{half}, 99 % {most}, worst {}", times::spoken_up(lane.write_latency.worst)).into(),
        if lane.errors > 0 { format!("  {} errors", lane.errors).fg(Color::Red) } else { "".into() },
    ])
}

/// What this part of the requests took at most, as far as the buckets tell.
fn quantile(latency: &Latency, part: f64) -> String {
    let wanted = (latency.count() as f64 * part).ceil() as u64;
    let mut below = 0;
    for (at, count) in latency.buckets.iter().enumerate() {
        below += count;
        if below >= wanted && below > 0 {
            let end = Duration::from_micros(1 << at).min(latency.worst);
            return format!("≤ {}", times::spoken(end));
        }
    }
    "-".to_owned()
}

fn foot_line(scene: &Scene) -> Line<'static> {
    match &scene.trouble {
        Some(trouble) => Line::from(format!(" {}", clean(trouble))).fg(Color::Red),
        None => Line::from(vec![" q ".bold(), "ends".dim()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples as sample;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn scene() -> Scene {
        let status = sample::status();
        Scene {
            path: "/data/lab.hf".to_owned(),
            rates: rates::average(&status),
            promise: "best effort: it was made without a profile".to_owned(),
            status,
            slots: sample::slots(),
            trouble: None,
        }
    }

    fn drawn(scene: &Scene, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, scene)).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_screen_answers_what_one_wants_to_know() {
        let lines = drawn(&scene(), 110, 32);
        let all = lines.join("\n");
        for wanted in [
            " holdfast  /data/lab.hf \"lab \"one\"\" 1 GiB in slots of 1 MiB  recorder 4711 up 10 min",
            "reaches back   10 min  to 2026-11-20T09:55:00Z",
            "oldest expires in 5 min 8 s  at 1 MiB/s; a full ring reaches back 15 min 10 s",
            "being lost     yes, the last 3.0 s ago: eth0 1 234 elements (dropped by the kernel); eth0 7 frames (by the i",
            "1 241",
            "50 perhaps lost",
            "comes in       1 MiB/s  1 010 elements/s  to disk 1.0 MiB/s",
            "guarantee      best effort: it was made without a profile",
            "· free 300",
            "◆ held 100",
            "! damaged 1",
            "eth0",
            "512 KiB/s",
            "buffers  ██▒▒▒░░░  2 of 8 in use, 5 at most; margin 3; least slack 4.2 s, 9.0 s are kept",
            "5.1 KiB/s beyond",
            "0 + ?",
            "a write takes ≤ 1 ms, 99 % ≤ 1 ms, worst 70 ms",
        ] {
            assert!(all.contains(wanted), "{wanted:?} is not in\n{all}");
        }
        assert_eq!(lines.last().map(String::as_str), Some(" q ends"));
    }

    #[test]
    fn no_terminal_is_too_small_and_no_name_leaves_its_place() {
        let mut scene = scene();
        scene.status.ring.name = "\u{1b}[2J".to_owned();
        scene.trouble = Some("the recorder has gone".to_owned());
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            let all = drawn(&scene, width, height).join("\n");
            assert!(!all.contains('\u{1b}'));
        }
        assert_eq!(drawn(&scene, 80, 24).last().map(String::as_str), Some(" the recorder has gone"));
        scene.status.recorder = None;
        scene.rates = None;
        assert!(drawn(&scene, 110, 24).join("\n").contains("oldest expires not while no recorder runs"));
        scene.status.ring.oldest = None;
        scene.slots.clear();
        let all = drawn(&scene, 110, 24).join("\n");
        assert!(all.contains("no recorder runs") && all.contains("nothing is recorded yet"), "{all}");
    }
}
