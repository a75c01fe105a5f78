//! Chart: the frame of an SVG figure with axes, grid, legend and text alternative.
//!
//! Marks are SVG paths that the figures compute. Contents of single figures do not belong here.

use std::fmt::Write;

use super::axis::Axis;
use super::markup::{Page, Text};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 860.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 290.0;

/// Legend sample of a line, relative to its left end.
pub(super) const LINE: &str = "h18";
/// Legend sample of a triangle, relative to the left end of a line.
pub(super) const TRIANGLE: &str = "m9 -5l4 7h-8z";
/// Legend sample of a square, relative to the left end of a line.
pub(super) const SQUARE: &str = "m6 -3h6v6h-6z";

/// Figure in progress, drawn into the page at the end.
pub(super) struct Chart {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Marks as class, path data, legend sample and legend.
    marks: Vec<(&'static str, String, &'static str, &'static str)>,
}

impl Chart {
    pub(super) fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, marks: Vec::new() }
    }

    /// Adds a mark; the path has one part for each item that `part` writes.
    pub(super) fn mark<T>(
        &mut self,
        class: &'static str,
        (sample, legend): (&'static str, &'static str),
        items: impl IntoIterator<Item = T>,
        part: impl Fn(&Self, T) -> String,
    ) {
        let mut path = String::new();
        for item in items {
            path.push_str(&part(self, item));
        }
        self.marks.push((class, path, sample, legend));
    }

    /// Horizontal coordinate of a value.
    pub(super) fn across(&self, value: f64) -> f64 {
        LEFT + self.x.position(value) * (RIGHT - LEFT)
    }

    /// Vertical coordinate of a value.
    pub(super) fn down(&self, value: f64) -> f64 {
        BOTTOM - self.y.position(value) * (BOTTOM - TOP)
    }

    /// Triangle around a point.
    pub(super) fn triangle(&self, x: f64, y: f64) -> String {
        format!("M{:.1} {:.1}l4 7h-8z", self.across(x), self.down(y) - 4.5)
    }

    /// Square around a point.
    pub(super) fn square(&self, x: f64, y: f64) -> String {
        format!("M{:.1} {:.1}h5v5h-5z", self.across(x) - 2.5, self.down(y) - 2.5)
    }

    /// Appends the figure to the page; `description` is its text alternative, `caption` stands below.
    pub(super) fn finish(self, page: &mut Page, id: &str, title: &str, description: &str, caption: &str) {
        page.add(format_args!(
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title {id}-text\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-text\">{}</desc>\n",
            Text(title),
            Text(description)
        ));
        let mut grid = String::new();
        let mut labels = Page::default();
        for (value, label) in &self.x.ticks {
            let x = self.across(*value);
            let _ = write!(grid, "M{x:.1} {TOP}V{BOTTOM}");
            labels.add(format_args!(
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                BOTTOM + 18.0,
                Text(label)
            ));
        }
        for (value, label) in &self.y.ticks {
            let y = self.down(*value);
            let _ = write!(grid, "M{LEFT} {y:.1}H{RIGHT}");
            labels.add(format_args!(
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                LEFT - 6.0,
                y + 4.0,
                Text(label)
            ));
        }
        page.add(format_args!("<path class=\"grid\" d=\"{grid}\" />\n{}", labels.into_text()));
        let (middle, centre) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
        page.add(format_args!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(16 {centre}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n\
             <path class=\"frame\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" />\n",
            HEIGHT - 10.0,
            Text(&self.x.label),
            Text(&self.y.label)
        ));
        for (index, (class, path, sample, legend)) in self.marks.iter().enumerate() {
            let x = LEFT + 200.0 * index as f64;
            page.add(format_args!(
                "<path class=\"{class}\" d=\"{path}\" />\n<path class=\"{class}\" d=\"M{x} 14{sample}\" />\n\
                 <text x=\"{}\" y=\"18\">{legend}</text>\n",
                x + 24.0
            ));
        }
        page.add(format_args!("</svg>\n<figcaption>{}</figcaption>\n</figure>\n", Text(caption)));
    }
}
