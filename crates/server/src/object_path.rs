//! Names of projects and paths of objects, safe as file names below any folder. No file system is touched here.

use holdfast_catalog::CatalogPath;
use serde::Serialize;
use std::fmt;

/// Greatest length of one name of a path in bytes: the limit of Linux file systems.
const MOST_NAME: usize = 255;

/// Greatest length of a path in bytes: with project and version it fits a key of S3 and of the catalog, 1024 bytes.
const MOST_PATH: usize = 900;

/// Greatest length of a project's name in bytes.
const MOST_PROJECT: usize = 64;

/// Prefix of names that the archive keeps for itself.
const RESERVED: &str = ".holdfast";

/// Reason why a text is neither a project's name nor a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(pub(crate) String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NameError {}

/// Name of a project: letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProjectName(String);

impl ProjectName {
    /// Project of uploads that name none.
    pub(crate) fn fallback() -> Self {
        Self("default".to_owned())
    }

    /// Checks the name of a project.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let refuse = |reason: &str| {
            let shown = shown(text);
            Err(NameError(format!(
                "the project's name {shown} {reason}; use up to {MOST_PROJECT} letters, digits, '.', '_' and \
                 '-', beginning with a letter or digit"
            )))
        };
        if text.is_empty() {
            return refuse("is empty");
        }
        if text.len() > MOST_PROJECT {
            return refuse("is too long");
        }
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return refuse("begins with another character");
        }
        if !text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
            return refuse("contains another character");
        }
        Ok(Self(text.to_owned()))
    }

    /// Name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Relative path of an object in a project: names separated by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectPath(String);

impl ObjectPath {
    /// Checks a path: no absolute path, no `.` or `..`, no control characters, no reserved names.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let refuse = |reason: &str| Err(NameError(format!("the path {} {reason}", shown(text))));
        if text.is_empty() {
            return refuse("is empty; name the file");
        }
        if text.len() > MOST_PATH {
            return refuse(&format!("has more than {MOST_PATH} bytes; shorten it"));
        }
        if text.starts_with('/') {
            return refuse("is absolute; leave out the first '/'");
        }
        if text.contains(char::is_control) {
            return refuse("contains a control character; rename the file");
        }
        for name in text.split('/') {
            match name {
                "" => return refuse("contains an empty name; leave out doubled and final '/'"),
                "." | ".." => return refuse("contains '.' or '..'; give the path without them"),
                name if name.len() > MOST_NAME => {
                    return refuse(&format!("contains a name of more than {MOST_NAME} bytes; shorten it"));
                }
                name if name.starts_with(RESERVED) => {
                    return refuse(&format!(
                        "contains a name with the reserved prefix '{RESERVED}'; rename it"
                    ));
                }
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Path of an entry that exists. It is not checked: below a collection that got a longer name, paths are longer than
    /// those of new entries may be.
    pub(crate) fn of_entry(path: &CatalogPath) -> Self {
        Self(path.components().get(1..).unwrap_or_default().join("/"))
    }

    /// Path as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Quoted text for an error, shortened and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(80).flat_map(char::escape_debug).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("'{start}{more}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_paths_pass_and_unsafe_ones_are_refused() {
        let long = "n".repeat(255);
        for good in ["a", "a/b.c", "Größe/日本.bin", "..a/b..", "a b", "\\", "-", ".hidden", long.as_str()]
        {
            assert!(ObjectPath::parse(good).is_ok(), "{good}");
        }
        let longer = "n".repeat(256);
        let deep = "d/".repeat(1100) + "f";
        let bad = [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a/.",
            "a\0b",
            "a\nb",
            "\u{85}",
            ".holdfast/x",
            "a/.holdfast-versions",
            &longer,
            &deep,
        ];
        for bad in bad {
            assert!(ObjectPath::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn project_names_are_single_plain_names() {
        for good in ["a", "lab-7_x.y", "9"] {
            assert!(ProjectName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "a/b", "ä", "a b", &"p".repeat(65)] {
            assert!(ProjectName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn errors_show_no_control_characters() {
        let error = ObjectPath::parse("a\u{1b}[2J").unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error}");
    }
}
