//! Filter of a folder tree: which relative paths are files to send, markers, or ignored. No file system is touched here.
//!
//! A pattern without `/` is compared with every name of a path, any other with the whole relative path; `*` does not cross `/`,
//! `**` does. A path is ignored when it or a folder above it matches an exclusion.

use glob::{MatchOptions, Pattern};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Sign of a finished file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// File beside the finished one, whose name has this suffix in addition.
    Suffix(String),
    /// File of this name, which finishes all files of its folder.
    Name(String),
}

impl Marker {
    /// Reads a marker: a suffix if it begins with a dot, else a file name. The error is the reason and the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.contains('/') || text == "." || text == ".." {
            return Err(format!("marker = '{text}' is no file name; write '.done' or 'DONE'"));
        }
        let text = text.to_owned();
        Ok(if text.starts_with('.') { Self::Suffix(text) } else { Self::Name(text) })
    }
}

/// Role of a relative path in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRole {
    /// File that is sent.
    File,
    /// Marker of finished files, which is not sent.
    Marker,
    /// Path that the shipper does not touch.
    Ignored,
}

/// Filter of a folder tree.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFilter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    marker: Option<Marker>,
}

impl PathFilter {
    /// Compiles a filter; no inclusion means all files. The error is the reason and the remedy.
    pub fn new(include: &[String], exclude: &[String], marker: Option<Marker>) -> Result<Self, String> {
        let compile = |texts: &[String]| {
            let pattern = |text: &String| {
                Pattern::new(text)
                    .map_err(|error| format!("the pattern '{text}' has an error: {}; correct it", error.msg))
            };
            texts.iter().map(pattern).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { include: compile(include)?, exclude: compile(exclude)?, marker })
    }

    /// Marker of finished files.
    pub fn marker(&self) -> Option<&Marker> {
        self.marker.as_ref()
    }

    /// True when nothing below this folder is sent.
    pub fn excludes_folder(&self, relative: &str) -> bool {
        let ends = relative.match_indices('/').map(|(at, _)| at).chain([relative.len()]);
        ends.map(|end| &relative[..end]).any(|path| self.exclude.iter().any(|pattern| matches(pattern, path)))
    }

    /// Role of the file with this path.
    pub fn role(&self, relative: &str) -> PathRole {
        if self.excludes_folder(relative) {
            return PathRole::Ignored;
        }
        let name = relative.rsplit('/').next().unwrap_or_default();
        let is_marker = match &self.marker {
            Some(Marker::Suffix(suffix)) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
            Some(Marker::Name(marker)) => name == marker,
            None => false,
        };
        if is_marker {
            PathRole::Marker
        } else if self.include.is_empty() || self.include.iter().any(|pattern| matches(pattern, relative)) {
            PathRole::File
        } else {
            PathRole::Ignored
        }
    }

    /// Path of the marker that finishes a file; `None` without markers.
    pub fn marker_of(&self, relative: &str) -> Option<String> {
        match self.marker.as_ref()? {
            Marker::Suffix(suffix) => Some(format!("{relative}{suffix}")),
            Marker::Name(name) => match relative.rsplit_once('/') {
                Some((folder, _)) => Some(format!("{folder}/{name}")),
                None => Some(name.clone()),
            },
        }
    }
}

/// Compares a path; a pattern without `/` with its last name only.
fn matches(pattern: &Pattern, path: &str) -> bool {
    let subject =
        if pattern.as_str().contains('/') { path } else { path.rsplit('/').next().unwrap_or_default() };
    pattern.matches_with(subject, OPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(include: &[&str], exclude: &[&str], marker: Option<&str>) -> PathFilter {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        PathFilter::new(&own(include), &own(exclude), marker.map(|marker| Marker::parse(marker).unwrap()))
            .unwrap()
    }

    #[test]
    fn patterns_match_names_or_whole_paths() {
        let tree = filter(&["*.fits", "raw/*/x"], &["tmp", "*.part", "a/b"], None);
        for (path, role) in [
            ("1.fits", PathRole::File),
            ("deep/er/1.fits", PathRole::File),
            ("raw/1/x", PathRole::File),
            ("raw/1/2/x", PathRole::Ignored),
            ("1.txt", PathRole::Ignored),
            ("tmp/1.fits", PathRole::Ignored),
            ("c/tmp/d/1.fits", PathRole::Ignored),
            ("a/b/1.fits", PathRole::Ignored),
            ("a/bc/1.fits", PathRole::File),
            (".hidden.fits", PathRole::File),
        ] {
            assert_eq!(tree.role(path), role, "{path}");
        }
        assert!(tree.excludes_folder("a/b") && !tree.excludes_folder("a"));
        assert_eq!(filter(&[], &["*.part"], None).role("1.part"), PathRole::Ignored);
        assert_eq!(filter(&["**/x.dat"], &[], None).role("a/b/x.dat"), PathRole::File);
        assert!(PathFilter::new(&["[".to_owned()], &[], None).unwrap_err().contains("'['"));
    }

    #[test]
    fn markers_are_found_and_not_sent() {
        let suffix = filter(&["*.fits"], &[], Some(".done"));
        assert_eq!(suffix.role("a/1.fits.done"), PathRole::Marker);
        assert_eq!(suffix.role("a/1.fits"), PathRole::File);
        assert_eq!(suffix.role(".done"), PathRole::Ignored);
        assert_eq!(suffix.marker_of("a/1.fits").as_deref(), Some("a/1.fits.done"));
        let name = filter(&[], &[], Some("DONE"));
        assert_eq!(name.role("a/DONE"), PathRole::Marker);
        assert_eq!(name.marker_of("a/1").as_deref(), Some("a/DONE"));
        assert_eq!(name.marker_of("1").as_deref(), Some("DONE"));
        for bad in ["", "a/b", ".", ".."] {
            assert!(Marker::parse(bad).is_err(), "{bad}");
        }
    }
}
