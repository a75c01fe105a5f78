//! Figures in what the engine says of what it did.
#![allow(unreachable_pub, clippy::unwrap_used)]

/// A figure in what `EXPLAIN ANALYZE` says, large ones to a hundredth.
pub fn figure(said: &str, name: &str) -> u64 {
    let (_, rest) = said.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name} in {said}"));
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, unit) = rest.split_at(end);
    let factor = match unit.trim_start().chars().next() {
        Some('K') => 1e3,
        Some('M') => 1e6,
        _ => 1.0,
    };
    (number.parse::<f64>().unwrap() * factor) as u64
}
