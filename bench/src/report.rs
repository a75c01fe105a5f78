//! Report of a bench: tables with verdicts on standard output and, on request, in the document that shows them.
//!
//! With `HOLDFAST_BENCH_DOC=FILE` a real run replaces what stands in FILE between `<!-- NAME -->` and
//! `<!-- end of NAME -->`; nothing is written otherwise.

use crate::plot::Plot;
use crate::rounds::Spread;
use crate::{BenchError, Scale, tools};
use std::fmt::Write as _;
use std::path::Path;

/// Characters of a line of prose in a document.
const WIDTH: usize = 110;

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// One, give or take this.
    Near(f64),
}

impl Goal {
    /// Whether the median is there.
    pub fn verdict(self, spread: &Spread) -> String {
        let (reached, sign, wanted) = match self {
            Self::AtLeast(wanted) => (spread.median >= wanted, '≥', wanted),
            Self::AtMost(wanted) => (spread.median <= wanted, '≤', wanted),
            Self::Near(wanted) => ((spread.median - 1.0).abs() <= wanted, '±', wanted),
        };
        format!("{} ({sign} {wanted})", if reached { "reached" } else { "**missed**" })
    }
}

/// One bench's output.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    text: String,
    scale: Scale,
}

impl Report {
    /// Begins the report of the bench `name`.
    pub fn new(name: &'static str, scale: Scale) -> Self {
        Self { name, text: String::new(), scale }
    }

    /// A paragraph.
    pub fn say(&mut self, text: &str) {
        self.put(text);
        self.put("");
    }

    /// A tiny run measures nothing, so it shows no figures.
    fn put(&mut self, text: &str) {
        if self.scale == Scale::Real {
            println!("{text}");
        }
        let _ = writeln!(self.text, "{text}");
    }

    /// A table in Markdown: the first row is its head.
    pub fn table(&mut self, rows: &[Vec<String>]) {
        self.put(&table(rows));
    }

    /// Draws a figure of a real run into the folder `figures` beside the document.
    pub fn figure(&self, name: &str, plot: &Plot) -> Result<(), BenchError> {
        let Some(path) = std::env::var_os("HOLDFAST_BENCH_DOC") else { return Ok(()) };
        let folder = Path::new(&path).with_file_name("figures");
        if self.scale == Scale::Real { plot.write(&folder, name) } else { Ok(()) }
    }

    /// Puts the report where the environment says, with the command and the machine.
    pub fn finish(self) -> Result<(), BenchError> {
        if self.scale == Scale::Tiny {
            println!("{}: works", self.name);
            return Ok(());
        }
        let Some(path) = std::env::var_os("HOLDFAST_BENCH_DOC") else { return Ok(()) };
        let path = Path::new(&path);
        let old = std::fs::read_to_string(path).map_err(BenchError::file(path, "read it"))?;
        let command = format!("`cargo bench -p holdfast-bench --bench {}`", self.name);
        let text = wrapped(&format!("{}{command}, {}.\n", self.text, machine()));
        let new = replaced(&old, self.name, &text).ok_or_else(|| {
            BenchError::during("writing the table")(format!(
                "{} has no `<!-- {} -->`",
                path.display(),
                self.name
            ))
        })?;
        std::fs::write(path, new).map_err(BenchError::file(path, "write it"))
    }
}

/// `document` with what stands between the marks of `name` replaced.
fn replaced(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let from = document.find(&begin)? + begin.len();
    let to = from + document[from..].find(&end)?;
    Some(format!("{}\n{text}\n{}", &document[..from], &document[to..]))
}

/// Wraps prose at the width of a document's line; rows of tables stay as they are.
fn wrapped(text: &str) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut width = 0;
        for word in line.split_inclusive(' ') {
            let long = width + word.trim_end().chars().count() > WIDTH && !line.starts_with('|');
            if long && width > 0 {
                wrapped.truncate(wrapped.trim_end().len());
                wrapped.push('\n');
                width = 0;
            }
            width += word.chars().count();
            wrapped.push_str(word);
        }
    }
    wrapped
}

fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let width = |at| rows.iter().map(|row| cell(row, at).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (at, width) in widths.iter().enumerate() {
            let _ = write!(text, "| {:width$} ", cell(row, at));
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Cells from anything that can be shown.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($cell.to_string()),*] };
}

/// The machine in a few words.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = read("/proc/cpuinfo");
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, m)| m);
    let memory: u64 = read("/proc/meminfo")
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .map_or(0, |kib: u64| kib >> 20);
    let kernel = read("/proc/sys/kernel/osrelease");
    let date = tools::output("date", &["+%Y-%m-%d"]).unwrap_or_default();
    format!(
        "{} on {cpus} cores ({}), {memory} GiB, Linux {}",
        date.trim(),
        model.unwrap_or("unknown processor"),
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_markdown() {
        let text = table(&[row!["a", "rate"], row!["long", 5], row!["x"]]);
        assert_eq!(text, "| a    | rate |\n|------|------|\n| long | 5    |\n| x    |      |\n");
    }

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let (word, row) = ("12345678 ", "| cell ".repeat(40));
        let text = wrapped(&format!("{}end.\n\n{row}|\n", word.repeat(13)));
        let first = word.repeat(12);
        assert_eq!(text, format!("{}\n{word}end.\n\n{row}|\n", first.trim_end()));
        assert_eq!(wrapped("short\n"), "short\n");
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let old = "# P\n<!-- a -->\nold\n<!-- end of a -->\ntail\n<!-- b -->\n<!-- end of b -->\n";
        let new = replaced(old, "a", "new\n").unwrap();
        assert_eq!(new, "# P\n<!-- a -->\n\nnew\n\n<!-- end of a -->\ntail\n<!-- b -->\n<!-- end of b -->\n");
        assert_eq!(replaced(&new, "a", "new\n").unwrap(), new);
        assert_eq!(replaced(old, "c", ""), None);
    }

    #[test]
    fn a_verdict_is_about_the_median() {
        let spread = Spread::of([0.9, 0.98, 1.0]);
        assert_eq!(Goal::AtLeast(0.97).verdict(&spread), "reached (≥ 0.97)");
        assert_eq!(Goal::AtMost(0.97).verdict(&spread), "**missed** (≤ 0.97)");
        assert_eq!(Goal::Near(0.03).verdict(&spread), "reached (± 0.03)");
        assert_eq!(Goal::Near(0.01).verdict(&spread), "**missed** (± 0.01)");
    }
}
