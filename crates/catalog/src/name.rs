//! Names and paths of the name space, and the numbers by which equal names are told apart.
//!
//! Names are kept exactly as given: no case folding, no Unicode normalisation.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name in bytes, the limit of common file systems.
pub const MAX_NAME_BYTES: usize = 255;

/// Longest shown name: a name, an underscore and a number of ten digits.
pub(crate) const MAX_SHOWN_BYTES: usize = MAX_NAME_BYTES + 11;

/// Most components of a path: bounds the size of an operation that lists the collections above an object.
pub(crate) const MAX_DEPTH: usize = 4096;

/// Text that cannot be a name or a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use `{text}` as a {noun}: {reason}; {remedy}")]
pub struct NameError {
    text: String,
    noun: &'static str,
    reason: &'static str,
    remedy: &'static str,
}

impl NameError {
    fn new(text: &str, noun: &'static str, reason: &'static str, remedy: &'static str) -> Self {
        Self {
            text: text.chars().take(80).collect::<String>().escape_debug().to_string(),
            noun,
            reason,
            remedy,
        }
    }
}

/// Checks a component: not empty, no slash, no NUL, not `.` or `..`, at most `limit` bytes.
fn check(text: &str, limit: usize) -> Result<(), NameError> {
    let refuse = |reason, remedy| Err(NameError::new(text, "name", reason, remedy));
    match text {
        "" => refuse("it is empty", "give at least one character"),
        "." | ".." => refuse("it is reserved for relative paths", "choose another name"),
        _ if text.contains('/') => refuse("it contains a slash", "leave the slash out"),
        _ if text.contains('\0') => refuse("it contains a NUL character", "leave the NUL out"),
        _ if text.len() > limit => refuse("it is longer than 255 bytes", "shorten it"),
        _ => Ok(()),
    }
}

/// Name of an object or a collection within its parent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Checks a text and makes it a name.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        check(&text, MAX_NAME_BYTES)?;
        Ok(Self(text))
    }

    /// Text of this name, exactly as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name under which the `number`-th later holder of an equal name is shown.
pub(crate) fn numbered(name: &str, number: u64) -> String {
    format!("{name}_{number}")
}

/// Name that `numbered` extends to `shown`, if there is one.
pub(crate) fn base_of(shown: &str) -> Option<&str> {
    let (base, digits) = shown.rsplit_once('_')?;
    let is_number = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !base.is_empty() && (1..=10).contains(&digits.len())).then_some(base)
}

/// Absolute path of shown names, such as `/survey/m31/run_7`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CatalogPath(Vec<String>);

impl CatalogPath {
    /// Path of the root collection.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Components from the root downwards.
    pub fn components(&self) -> &[String] {
        &self.0
    }

    /// True for the path of the root collection.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Path of the parent and the last component; nothing for the root.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        let (last, above) = self.0.split_last()?;
        Some((Self(above.to_vec()), last))
    }

    /// Path of a child of this collection.
    pub fn child(&self, shown: &str) -> Result<Self, NameError> {
        check(shown, MAX_SHOWN_BYTES)?;
        let mut components = self.0.clone();
        components.push(shown.to_owned());
        Ok(Self(components))
    }

    /// True if `other` is this path or lies below it.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl FromStr for CatalogPath {
    type Err = NameError;

    /// Reads an absolute path. One slash at the end is accepted.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = |reason, remedy| Err(NameError::new(text, "path", reason, remedy));
        let Some(below) = text.strip_prefix('/') else {
            return refuse(
                "it does not begin with a slash",
                "give the path from the root, such as /survey/m31",
            );
        };
        if below.is_empty() {
            return Ok(Self::root());
        }
        let below = below.strip_suffix('/').unwrap_or(below);
        let components: Vec<String> = below.split('/').map(str::to_owned).collect();
        if components.len() > MAX_DEPTH {
            return refuse("it has more than 4096 components", "use fewer levels");
        }
        components.iter().try_for_each(|component| check(component, MAX_SHOWN_BYTES))?;
        Ok(Self(components))
    }
}

impl fmt::Display for CatalogPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|component| write!(f, "/{component}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_kept_exactly() {
        for text in ["a\nb", "Straße", "e\u{301}", "é", "  ", "'; DROP TABLE nodes; --", "%_*?[", "\u{202e}x"]
        {
            assert_eq!(Name::new(text).unwrap().as_str(), text);
        }
        assert!(Name::new("x".repeat(255)).is_ok());
    }

    #[test]
    fn impossible_names_are_refused_with_a_reason() {
        for text in ["", ".", "..", "a/b", "a\0b"] {
            assert!(Name::new(text).is_err(), "{text:?}");
        }
        let error = Name::new("ü".repeat(128)).unwrap_err().to_string();
        assert!(error.contains("longer than 255 bytes; shorten it"), "{error}");
    }

    #[test]
    fn numbers_at_the_end_are_recognised() {
        assert_eq!(base_of(&numbered("run", 12)), Some("run"));
        assert_eq!(base_of("a_1_2"), Some("a_1"));
        for text in ["run", "run_", "run_01", "run_0", "_1", "run_x", "run_12345678901"] {
            assert_eq!(base_of(text), None, "{text}");
        }
    }

    #[test]
    fn paths_are_read_and_written() {
        let path: CatalogPath = "/a/b c/".parse().unwrap();
        assert_eq!(path.to_string(), "/a/b c");
        assert_eq!(path.split_last().unwrap().0.to_string(), "/a");
        assert!("/a".parse::<CatalogPath>().unwrap().holds(&path));
        assert!(!"/a/b".parse::<CatalogPath>().unwrap().holds(&path));
        assert!("/".parse::<CatalogPath>().unwrap().is_root());
        for text in ["", "a", "//", "/a//b", "/a/../b"] {
            assert!(text.parse::<CatalogPath>().is_err(), "{text}");
        }
    }
}
