//! Folders of the user in which commands keep state and data, by the XDG rules. The configuration file is in `client`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folder of state that is worth nothing on another machine: marks of unfinished work.
pub(crate) fn state() -> PathBuf {
    of("XDG_STATE_HOME", ".local/state", |name| std::env::var_os(name))
}

/// Folder of data that is worth a backup.
pub(crate) fn data() -> PathBuf {
    of("XDG_DATA_HOME", ".local/share", |name| std::env::var_os(name))
}

fn of(variable: &str, below_home: &str, get: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let folder = get(variable)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| get("HOME").map(|home| Path::new(&home).join(below_home)))
        .unwrap_or_else(std::env::temp_dir);
    folder.join("holdfast")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_before_the_home() {
        let with = |pairs: &'static [(&str, &str)]| {
            of("X", "a/b", |name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into())
            })
        };
        assert_eq!(with(&[("X", "/x"), ("HOME", "/h")]), Path::new("/x/holdfast"));
        assert_eq!(with(&[("X", ""), ("HOME", "/h")]), Path::new("/h/a/b/holdfast"));
        assert_eq!(with(&[]), std::env::temp_dir().join("holdfast"));
    }
}
