//! A plot of a few lines as SVG: two axes from zero, a legend. What the lines mean is not known here.

use crate::BenchError;
use std::fmt::Write as _;
use std::path::Path;

/// Of the picture, and of the area between the axes.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 520.0;
const BOTTOM: f64 = 380.0;

/// Colours that people who see few of them can tell apart, too (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// What was measured here.
    Ours,
    /// What somebody else has published.
    Theirs,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Which of the colours; those that belong together have the same.
    pub colour: usize,
    /// Whose it is.
    pub style: Style,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Above.
    pub title: String,
    /// Below the horizontal axis.
    pub across: String,
    /// Beside the vertical one.
    pub up: String,
    /// What is drawn.
    pub lines: Vec<Line>,
}

impl Plot {
    /// The largest that is drawn, in each direction, rounded up to what reads well.
    fn ends(&self) -> (f64, f64) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let most =
            |get: fn(&(f64, f64)) -> f64| points().map(get).filter(|v| v.is_finite()).fold(0.0, f64::max);
        (round(most(|point| point.0)), round(most(|point| point.1)))
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let (end_x, end_y) = self.ends();
        let x = |value: f64| LEFT + (RIGHT - LEFT) * value / end_x;
        let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / end_y;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<title>{0}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{0}</text>",
            escaped(&self.title)
        );
        for n in 0..=STEPS {
            let share = f64::from(n) / f64::from(STEPS);
            let (at_x, at_y) = (x(end_x * share), y(end_y * share));
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {at_y:.1}H{RIGHT}M{at_x:.1} {TOP}V{BOTTOM}\" stroke=\"#dddddd\" fill=\"none\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
                 <text x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                LEFT - 6.0,
                at_y + 4.0,
                number(end_y * share),
                BOTTOM + 18.0,
                number(end_x * share),
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" stroke=\"#000000\" fill=\"none\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, RIGHT),
            BOTTOM + 42.0,
            escaped(&self.across),
            f64::midpoint(TOP, BOTTOM),
            escaped(&self.up),
        );
        for (n, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[line.colour % COLOURS.len()];
            let dash = if line.style == Style::Theirs { " stroke-dasharray=\"6 4\"" } else { "" };
            let mut path = String::new();
            for (at_x, at_y) in line.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite())
            {
                let first = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{first}{:.1} {:.1}", x(*at_x), y(*at_y));
            }
            let at = TOP + 10.0 + 20.0 * n as f64;
            let stroke = format!("stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"{dash}");
            let _ = writeln!(
                out,
                "<path d=\"{path}\" {stroke}/>\n<path d=\"M{:.1} {at:.1}h28\" {stroke}/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                RIGHT + 16.0,
                RIGHT + 50.0,
                at + 4.0,
                escaped(&line.name)
            );
            if line.style == Style::Ours && line.points.len() <= 24 {
                for (at_x, at_y) in
                    line.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite())
                {
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                        x(*at_x),
                        y(*at_y)
                    );
                }
            }
        }
        out.push_str("</svg>\n");
        out
    }

    /// Writes the picture and its numbers to a folder, which is made if it is missing.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), BenchError> {
        std::fs::create_dir_all(folder).map_err(BenchError::file(folder, "make it"))?;
        for (extension, text) in [("svg", self.svg()), ("csv", self.csv())] {
            let path = folder.join(format!("{name}.{extension}"));
            std::fs::write(&path, text).map_err(BenchError::file(&path, "write it"))?;
        }
        Ok(())
    }

    /// The same as numbers.
    pub fn csv(&self) -> String {
        let mut out = format!("line,source,\"{}\",\"{}\"\n", self.across, self.up);
        for line in &self.lines {
            let source = if line.style == Style::Ours { "measured" } else { "published" };
            for (x, y) in &line.points {
                let _ = writeln!(out, "\"{}\",{source},{x:.4},{y:.4}", line.name);
            }
        }
        out
    }
}

/// Intervals of an axis.
const STEPS: u32 = 4;

/// The next end of an axis whose quarters are easy to read.
fn round(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let ends = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];
    ends.iter().map(|end| end * power).find(|end| *end >= value * 0.999_999).unwrap_or(10.0 * power)
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let line = |name: &str, colour, style, points: &[(f64, f64)]| Line {
            name: name.to_owned(),
            colour,
            style,
            points: points.to_vec(),
        };
        Plot {
            title: "Rates & places".to_owned(),
            across: "place".to_owned(),
            up: "MiB/s".to_owned(),
            lines: vec![
                line("writing", 0, Style::Ours, &[(0.0, 70.0), (0.8, 65.0), (1.0, 50.0)]),
                line("writing, <paper>", 0, Style::Theirs, &[(0.0, 70.0), (1.0, f64::NAN)]),
                line("nothing", 1, Style::Ours, &[]),
            ],
        }
    }

    #[test]
    fn the_picture_is_as_it_was() {
        let svg = plot().svg();
        let golden = include_str!("plot.golden.svg");
        if svg != golden {
            let new = std::env::temp_dir().join("plot.golden.svg");
            let _ = std::fs::write(&new, &svg);
            panic!("the picture has changed: compare {} with bench/src/plot.golden.svg", new.display());
        }
    }

    #[test]
    fn the_largest_value_lies_within_the_axes() {
        for value in [0.0, 1e-9, 0.7, 1.0, 9.9, 60.0, 61.0, 115.0, 999.0] {
            let end = round(value);
            assert!(end >= value && (end <= value * 2.01 || value < 1e-6), "{value}: {end}");
        }
        assert_eq!((round(70.0), round(115.0), round(12.0)), (80.0, 120.0, 12.0));
    }

    #[test]
    fn numbers_stand_beside_the_picture() {
        let csv = plot().csv();
        assert!(
            csv.starts_with("line,source,\"place\",\"MiB/s\"\n\"writing\",measured,0.0000,70.0000\n"),
            "{csv}"
        );
        assert_eq!(csv.lines().count(), 6);
    }
}
