//! The picture as SVG: no fonts, styles or scripts from elsewhere; colours that can be seen on light and dark grounds.

use super::{Lines, mark};
use holdfast_base::{ByteSize, Rate};
use holdfast_media::Profile;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
/// Room for numbers and words around the lines: left, right, top, bottom.
const AROUND: (f64, f64, f64, f64) = (62.0, 18.0, 52.0, 48.0);
/// From one row of the table under them to the next.
const ROW: f64 = 18.0;
const WRITE: &str = "#d9761a";
const READ: &str = "#2f83c7";
const GREY: &str = "#808080";

/// The picture, with a table under it: heads, then rows.
pub fn svg<const COLUMNS: usize>(profile: &Profile, table: &[[String; COLUMNS]]) -> String {
    let lines = Lines::of(profile);
    let (left, right, top, bottom) = AROUND;
    let across = |share: f64| left + share * (WIDTH - left - right);
    let up = |rate: f64| HEIGHT - bottom - rate / lines.top * (HEIGHT - top - bottom);
    let height = HEIGHT + if table.is_empty() { 0.0 } else { ROW * (table.len() as f64 + 0.5) };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"{GREY}\">\n"
    );
    let mut put = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    put(format!("<text x=\"{left}\" y=\"20\" font-size=\"14\">{}</text>", escaped(&title(profile))));
    let marks = (lines.top / lines.step).round() as u32;
    for n in 0..=marks {
        let (rate, y) = (f64::from(n) * lines.step, up(f64::from(n) * lines.step));
        put(format!(
            "<path d=\"M{left} {y:.1}H{:.1}\" stroke=\"{GREY}\" stroke-opacity=\"0.3\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            WIDTH - right,
            left - 8.0,
            y + 4.0,
            mark(rate, lines.step)
        ));
    }
    for tenth in 0..=5 {
        let share = f64::from(tenth) / 5.0;
        let anchor = if tenth == 5 { "end" } else { "middle" };
        put(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{:.0} %</text>",
            across(share),
            HEIGHT - bottom + 18.0,
            share * 100.0
        ));
    }
    put(format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">position on the device</text>",
        across(0.5),
        HEIGHT - 10.0
    ));
    put(format!("<text x=\"{left}\" y=\"{:.1}\">MiB/s</text>", top - 10.0));
    for (n, (name, points, colour, dashes)) in
        [("reading", &lines.read, READ, " stroke-dasharray=\"6 3\""), ("writing", &lines.write, WRITE, "")]
            .into_iter()
            .enumerate()
    {
        let mut path = String::new();
        // To both edges, as it is in the first and in the last zone.
        let (first, last) = (points.first(), points.last());
        let edges = (first.map(|point| (0.0, point.1)), last.map(|point| (1.0, point.1)));
        for (share, rate) in edges.0.into_iter().chain(points.iter().copied()).chain(edges.1) {
            // Writing to a text does not fail.
            let _ = write!(path, "{:.1},{:.1} ", across(share), up(rate));
        }
        put(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            path.trim_end()
        ));
        let x = WIDTH - right - 190.0 + 100.0 * n as f64;
        put(format!(
            "<path d=\"M{x:.1} {:.1}h26\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/><text x=\"{:.1}\" \
             y=\"{:.1}\">{name}</text>",
            top - 14.0,
            x + 32.0,
            top - 10.0
        ));
    }
    // Columns are as wide as what is in them, and some space.
    let wide = |column: usize| table.iter().map(|cells| cells[column].chars().count() + 2).max().unwrap_or(0);
    let all = (0..COLUMNS).map(wide).sum::<usize>().max(1) as f64;
    for (row, cells) in table.iter().enumerate() {
        let (y, mut end) = (HEIGHT + ROW * (row as f64 + 0.5), 0);
        for (column, cell) in cells.iter().enumerate() {
            end += wide(column);
            // The first column is what the others are about.
            let (share, anchor) = if column == 0 { (0.0, "start") } else { (end as f64 / all, "end") };
            let (x, cell) = (across(share), escaped(cell));
            put(format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{cell}</text>"));
        }
    }
    out.push_str("</svg>\n");
    out
}

fn title(profile: &Profile) -> String {
    let device = &profile.device;
    let name = if device.model.is_empty() { &device.path } else { &device.model };
    let least = profile.zones.iter().map(|zone| zone.write_worst).min().unwrap_or(Rate(0));
    format!("{name}, {}: written at {least} at worst", ByteSize(device.bytes.0))
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
