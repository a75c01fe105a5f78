//! Shell patterns of names: `*`, `?` and `[abc]`. Names are matched exactly, and a star matches leading dots too.

use crate::error::{CatalogError, Result};
use glob::{MatchOptions, Pattern};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: false,
    require_literal_leading_dot: false,
};

/// Shell pattern of a shown name.
#[derive(Clone, Debug)]
pub struct NamePattern(Pattern);

impl NamePattern {
    /// Reads a pattern; a text without `*`, `?` and `[` matches itself.
    pub fn new(pattern: &str) -> Result<Self> {
        Pattern::new(pattern).map(Self).map_err(|error| {
            let (pattern, reason) = (pattern.to_owned(), error.msg.to_owned());
            CatalogError::Glob { pattern, reason }
        })
    }

    /// True if a text has characters that make it a pattern.
    pub fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    /// True if the whole name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches_with(name, OPTIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_match() {
        for (pattern, name, is_match) in [
            ("*.dada", "run.dada", true),
            ("*", ".hidden", true),
            ("run?", "run12", false),
            ("run[12]", "run2", true),
            ("RUN*", "run", false),
        ] {
            assert_eq!(NamePattern::new(pattern).unwrap().matches(name), is_match, "{pattern} {name}");
        }
        assert!(NamePattern::is_pattern("a[") && !NamePattern::is_pattern("a.b"));
        assert!(NamePattern::new("a[").is_err());
    }
}
