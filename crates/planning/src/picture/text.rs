//! The picture in letters, for a terminal of 80 columns.

use super::{Lines, mark};
use holdfast_media::Profile;

const COLUMNS: usize = 64;
const ROWS: usize = 12;

/// The picture, in lines.
pub fn text(profile: &Profile) -> String {
    let lines = Lines::of(profile);
    let mut grid = [[' '; COLUMNS]; ROWS];
    for (sign, points) in [('r', &lines.read), ('w', &lines.write)] {
        let shares = (0..COLUMNS).map(|column| (column, (column as f64 + 0.5) / COLUMNS as f64));
        for (column, rate) in shares.filter_map(|(column, share)| Some((column, at(points, share)?))) {
            let row = ROWS - 1 - ((rate / lines.top * ROWS as f64) as usize).min(ROWS - 1);
            let here = &mut grid[row][column];
            *here = if *here == ' ' { sign } else { '*' };
        }
    }
    let labels: Vec<String> = (0..ROWS).map(|row| label(row, &lines)).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0).max(5);
    let mut rows: Vec<String> = grid
        .iter()
        .zip(labels)
        .map(|(cells, label)| {
            let cells: String = cells.iter().collect();
            format!("{label:>width$} | {cells}").trim_end().to_owned()
        })
        .collect();
    rows.push(format!("{:>width$} +-{}", "MiB/s", "-".repeat(COLUMNS)));
    let middle = "position on the device";
    let gap = (COLUMNS - 2 - middle.len() - 5) / 2;
    let (before, after) = (" ".repeat(gap), " ".repeat(COLUMNS - 3 - gap - middle.len() - 5));
    rows.push(format!("{:width$}   0 %{before}{middle}{after}100 %", ""));
    rows.push(format!("{:width$}   w writing, r reading, * both\n", ""));
    rows.join("\n")
}

/// The rate at a place: straight from zone to zone.
fn at(points: &[(f64, f64)], share: f64) -> Option<f64> {
    let next = points.partition_point(|(place, _)| *place <= share);
    match (next.checked_sub(1).map(|n| points[n]), points.get(next)) {
        (Some((a, low)), Some((b, high))) => Some(low + (high - low) * (share - a) / (b - a)),
        (Some((_, rate)), None) => Some(rate),
        (None, Some((_, rate))) => Some(*rate),
        (None, None) => None,
    }
}

/// The mark that lies in a row, if one does.
fn label(row: usize, lines: &Lines) -> String {
    let height = lines.top / ROWS as f64;
    let (low, high) = ((ROWS - 1 - row) as f64 * height, (ROWS - row) as f64 * height);
    let at = (low / lines.step).ceil() * lines.step;
    if at < high - height * 1e-6 { mark(at, lines.step) } else { String::new() }
}
