//! Words for counts, as people write them. What is counted, and where it is said, is not known here.

/// The noun of a count: `slot` for one, `slots` for any other number.
pub fn plural(count: u64, one: &str) -> String {
    let ending = match one {
        _ if count == 1 => "",
        one if one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{one}{ending}")
}

/// A count with its noun: `1 slot`, `2 slots`.
pub fn many(count: u64, one: &str) -> String {
    format!("{count} {}", plural(count, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_nothing_is_many() {
        let shown = [(0, "gap"), (1, "gap"), (2, "batch"), (1, "batch")].map(|(n, one)| many(n, one));
        assert_eq!(shown, ["0 gaps", "1 gap", "2 batches", "1 batch"]);
    }
}
