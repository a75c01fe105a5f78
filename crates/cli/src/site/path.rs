//! Path of the name space of a site: `/PROJECT/PATH`.

use std::fmt;
use std::str::FromStr;

/// Path that begins with a project; without one it is the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SitePath {
    names: Vec<String>,
    /// True if the path ends with a slash, which stands for a collection.
    is_folder: bool,
}

impl SitePath {
    /// Name of the project; `None` for the root.
    pub(crate) fn project(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// Path of the object in its project; empty for the project itself.
    pub(crate) fn inside(&self) -> String {
        self.names.get(1..).unwrap_or_default().join("/")
    }

    /// Last name of the path; `None` for the root.
    pub(crate) fn name(&self) -> Option<&str> {
        self.names.last().map(String::as_str)
    }

    /// True if the path cannot be an object: it ends with a slash, or is a project or the root.
    pub(crate) fn is_folder(&self) -> bool {
        self.is_folder || self.names.len() < 2
    }

    /// True if the path was written with a slash at its end.
    pub(crate) fn ends_with_slash(&self) -> bool {
        self.is_folder
    }

    /// Path of the collection above; the root is above itself.
    pub(crate) fn parent(&self) -> Self {
        let above = self.names.len().saturating_sub(1);
        Self { names: self.names[..above].to_vec(), is_folder: true }
    }

    /// Path of an entry below this one; `below` has names with slashes between them.
    pub(crate) fn child(&self, below: &str) -> Self {
        let mut names = self.names.clone();
        names.extend(below.split('/').map(str::to_owned));
        Self { names, is_folder: false }
    }
}

impl fmt::Display for SitePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("/");
        }
        self.names.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl FromStr for SitePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("`{text}` does not begin with a slash: write /PROJECT/PATH"));
        };
        let is_folder = rest.ends_with('/') || rest.is_empty();
        let names = rest.strip_suffix('/').unwrap_or(rest).split('/').map(str::to_owned);
        let names: Vec<String> = names.filter(|_| !rest.is_empty()).collect();
        if names.iter().any(|name| matches!(name.as_str(), "" | "." | "..")) {
            return Err(format!("`{text}` has an empty name, `.` or `..` in it: write /PROJECT/PATH"));
        }
        Ok(Self { names, is_folder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_project_and_names() {
        let path: SitePath = "/lab/2026/run1.dada".parse().unwrap();
        assert_eq!((path.project(), path.inside().as_str()), (Some("lab"), "2026/run1.dada"));
        assert_eq!((path.name(), path.is_folder()), (Some("run1.dada"), false));
        let folder: SitePath = "/lab/2026/".parse().unwrap();
        assert!(folder.is_folder() && "/lab".parse::<SitePath>().unwrap().is_folder());
        assert_eq!(folder.parent().to_string(), "/lab");
        assert_eq!(folder.child("a/b").to_string(), "/lab/2026/a/b");
        let root: SitePath = "/".parse().unwrap();
        assert_eq!((root.project(), root.to_string().as_str()), (None, "/"));
        for bad in ["", "lab/x", "//", "/lab//x", "/lab/../x", "/lab/."] {
            assert!(bad.parse::<SitePath>().is_err(), "{bad}");
        }
    }
}
