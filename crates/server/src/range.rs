//! Header `Range`: the part of the contents that an answer carries. Several ranges at once are answered by the whole.

/// Part of the contents that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// Whole contents, or a header that must be ignored.
    Whole,
    /// Bytes from `first` to `last` inclusive; `None` to the end.
    From {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte.
        last: Option<u64>,
    },
    /// Last bytes of the contents, this many.
    Last(u64),
}

impl Range {
    /// Range of a header's value; forms that RFC 9110 lets a server ignore give the whole.
    pub(crate) fn parse(header: &str) -> Self {
        let Some((first, last)) =
            header.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'))
        else {
            return Self::Whole;
        };
        let number = |text: &str| {
            let text = text.trim();
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten()
        };
        match (first.trim(), last.trim()) {
            ("", last) => number(last).map_or(Self::Whole, Self::Last),
            (first, "") => number(first).map_or(Self::Whole, |first| Self::From { first, last: None }),
            (first, last) => match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Self::From { first, last: Some(last) },
                _ => Self::Whole,
            },
        }
    }

    /// Offsets of the first byte and behind the last one in contents of `size` bytes; `None` if no byte is in the range.
    pub(crate) fn within(self, size: u64) -> Option<(u64, u64)> {
        match self {
            Self::Whole => Some((0, size)),
            Self::From { first, last } => {
                let end = last.map_or(size, |last| last.saturating_add(1).min(size));
                (first < size).then_some((first, end))
            }
            Self::Last(0) => None,
            Self::Last(count) => (size > 0).then(|| (size.saturating_sub(count), size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        let table = [
            ("bytes=0-0", Some((0, 1))),
            ("bytes=2-", Some((2, 10))),
            ("bytes=2-99", Some((2, 10))),
            ("bytes=-3", Some((7, 10))),
            ("bytes=-30", Some((0, 10))),
            ("bytes=10-", None),
            ("bytes=-0", None),
            ("bytes=0-18446744073709551615", Some((0, 10))),
            ("bytes=5-4", Some((0, 10))),
            ("bytes=0-1,3-4", Some((0, 10))),
            ("bytes=+1-", Some((0, 10))),
            ("bytes=-", Some((0, 10))),
            ("lines=1-2", Some((0, 10))),
        ];
        for (header, expected) in table {
            assert_eq!(Range::parse(header).within(10), expected, "{header}");
        }
        assert_eq!(Range::parse("bytes=-3").within(0), None);
    }
}
