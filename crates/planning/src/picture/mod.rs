//! Pictures of a profile: rate over position, writing and reading, as in figure 2 of Bigelow et al., “Mahanaxar: Quality of
//! Service Guarantees in High-Bandwidth, Real-Time Streaming Data Storage”. For a browser and for a terminal; what is
//! measured is not known here.

mod svg;
mod text;

pub use svg::svg;
pub use text::text;

use holdfast_base::Rate;
use holdfast_media::{Profile, Zone};

const MIB: f64 = 1_048_576.0;

/// What is drawn: the middle of each zone as a share of the device, and MiB/s there.
struct Lines {
    write: Vec<(f64, f64)>,
    read: Vec<(f64, f64)>,
    /// The top of the picture, in MiB/s.
    top: f64,
    /// From mark to mark on the way there.
    step: f64,
}

impl Lines {
    fn of(profile: &Profile) -> Self {
        let all = profile.zones.last().map_or(1, |zone| zone.offset + zone.bytes).max(1) as f64;
        let line = |rate: fn(&Zone) -> Rate| -> Vec<(f64, f64)> {
            let point = |zone: &Zone| {
                let middle = zone.offset as f64 + zone.bytes as f64 / 2.0;
                (middle / all, rate(zone).0 as f64 / MIB)
            };
            profile.zones.iter().map(point).collect()
        };
        let (write, read) = (line(|zone| zone.write_mean), line(|zone| zone.read_mean));
        let most = write.iter().chain(&read).map(|(_, rate)| *rate).fold(0.0, f64::max);
        let step = step(most);
        Self { write, read, top: (most / step).ceil().max(1.0) * step, step }
    }
}

/// A round distance between marks, so that there are four to eight of them.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most.max(1e-3) / 4.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|factor| factor * power).find(|step| most / step >= 3.0).unwrap_or(power)
}

/// A number at a mark.
fn mark(rate: f64, step: f64) -> String {
    if step >= 1.0 { format!("{rate:.0}") } else { format!("{rate:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_file::tests::paper;

    #[test]
    fn marks_are_round_and_neither_few_nor_many() {
        for most in [0.02, 0.9, 1.0, 7.3, 70.0, 115.0, 999.0, 3520.0, 14_000.0] {
            let step = step(most);
            assert!((3.0..=10.0).contains(&(most / step)), "{most}: {step}");
        }
        let lines = Lines::of(&paper());
        assert_eq!((lines.top, lines.step, lines.write.len()), (120.0, 20.0, 20));
    }

    // What a person sees must be what was measured.
    #[test]
    fn both_pictures_show_the_curve_of_the_paper() {
        let text = text(&paper());
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows.iter().all(|row| row.chars().count() <= 80), "{text}");
        let height = |column: usize, sign: char| {
            rows.iter().position(|row| row.chars().nth(column) == Some(sign)).unwrap_or(usize::MAX)
        };
        let left = rows[0].chars().position(|c| c == '|').unwrap() + 2;
        assert!(height(left, 'r') < height(left, 'w'), "reading is faster outside:\n{text}");
        let signs = |row: &&str| row.chars().filter(|c| "wr*".contains(*c)).count();
        assert!(rows.iter().map(signs).sum::<usize>() >= 64, "{text}");
        let row = |words: [&str; 3]| words.map(str::to_owned);
        let svg = svg(&paper(), &[row(["region", "a", "b"]), row(["0..80%", "65 MiB/s", "62.3 MiB/s <"])]);
        for cell in [">region<", ">0..80%<", ">62.3 MiB/s &lt;<"] {
            assert_eq!(svg.matches(cell).count(), 1, "{cell}: {svg}");
        }
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("WDC WD15EARS") && svg.contains("1.4 TiB"), "{svg}");
        let mut named = paper();
        named.device.model = "<script>&\"".to_owned();
        let svg = super::svg::<0>(&named, &[]);
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;&amp;"), "{svg}");
    }
}
