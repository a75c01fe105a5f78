//! Placeholders in arguments of commands. Values are put in once, so a value with braces stays as it is.

use std::ffi::{OsStr, OsString};

/// Names of all placeholders.
const NAMES: [&str; 6] = ["project", "path", "version", "file", "blake3", "size"];

/// Values of the placeholders for one version.
pub(crate) struct Values<'a> {
    pub(crate) project: &'a str,
    pub(crate) path: &'a str,
    pub(crate) version: &'a str,
    pub(crate) file: &'a OsStr,
    pub(crate) blake3: &'a str,
    pub(crate) size: &'a str,
}

/// Part of an argument.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

/// Argument split at its placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template<'a>(Vec<Part<'a>>);

impl<'a> Template<'a> {
    /// Splits an argument. The error is the name of an unknown placeholder: lower-case letters and digits in braces. Other
    /// braces are text.
    pub(crate) fn parse(argument: &'a str) -> Result<Self, &'a str> {
        let mut parts = Vec::new();
        let mut rest = argument;
        while let Some(open) = rest.find('{') {
            let (text, behind) = (&rest[..=open], &rest[open + 1..]);
            let name = behind.split('}').next().filter(|name| name.len() < behind.len());
            let is_name = |name: &&str| {
                !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            };
            match name.filter(is_name) {
                Some(name) if NAMES.contains(&name) => {
                    parts.push(Part::Text(&text[..open]));
                    parts.push(Part::Placeholder(name));
                    rest = &behind[name.len() + 1..];
                }
                Some(name) => return Err(name),
                None => {
                    parts.push(Part::Text(text));
                    rest = behind;
                }
            }
        }
        parts.push(Part::Text(rest));
        Ok(Self(parts))
    }

    /// Argument with the values in the place of the placeholders.
    pub(crate) fn fill(&self, values: &Values<'_>) -> OsString {
        let mut filled = OsString::new();
        for part in &self.0 {
            filled.push(match part {
                Part::Text(text) => OsStr::new(text),
                Part::Placeholder("project") => OsStr::new(values.project),
                Part::Placeholder("path") => OsStr::new(values.path),
                Part::Placeholder("version") => OsStr::new(values.version),
                Part::Placeholder("file") => values.file,
                Part::Placeholder("blake3") => OsStr::new(values.blake3),
                Part::Placeholder(_) => OsStr::new(values.size),
            });
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let values = Values {
            project: "p",
            path: "{file} $(x); rm",
            version: "v",
            file: OsStr::new("/f"),
            blake3: "b",
            size: "7",
        };
        for (argument, expected) in [
            ("{path}", "{file} $(x); rm"),
            ("a={project}/{version},{size}{blake3}", "a=p/v,7b"),
            ("{file}", "/f"),
            ("{\"a\": {}}", "{\"a\": {}}"),
            ("{{size}}", "{7}"),
            ("{", "{"),
            ("", ""),
        ] {
            assert_eq!(Template::parse(argument).unwrap().fill(&values), expected, "{argument}");
        }
        assert_eq!(Template::parse("{sizes}"), Err("sizes"));
    }
}
