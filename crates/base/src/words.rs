//! Words for counts, as people write and type them. Callers decide what is counted.

use std::fmt::Display;

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

/// A number with thin groups of three, as people read it.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun and thin groups: `1 gap`, `1 000 gaps`.
pub fn counted(number: u64, word: &str) -> String {
    format!("{} {}", grouped(number), plural(number, word))
}

/// Text of foreign origin with its control characters escaped, so that it cannot move a terminal's cursor.
pub fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// A size or rate without the space, as it can be typed.
pub fn typed(amount: impl Display) -> String {
    amount.to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_to_be_read_and_sizes_joined_to_be_typed() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
        assert_eq!(typed(crate::ByteSize::mib(64)), "64MiB");
    }

    #[test]
    fn one_is_one_and_nothing_is_many() {
        let shown = [(0, "gap"), (1, "gap"), (2, "batch"), (1, "batch")].map(|(n, one)| many(n, one));
        assert_eq!(shown, ["0 gaps", "1 gap", "2 batches", "1 batch"]);
        let shown = [0, 1, 1000].map(|n| counted(n, "gap"));
        assert_eq!(shown, ["0 gaps", "1 gap", "1 000 gaps"]);
    }
}
