//! Globs: shell patterns that choose among the files of folders, with the rules of ripgrep's `--glob`.

use glob::{MatchOptions, Pattern};
use holdfast_base::failure::{Failure, Result};
use std::path::Path;

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Patterns of names; the last one that matches decides.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<Glob>);

#[derive(Clone, Debug)]
struct Glob {
    pattern: Pattern,
    excludes: bool,
    /// True if the pattern is of the whole path below the folder, false if it is of the last name.
    is_path: bool,
    folders_alone: bool,
}

impl Globs {
    /// Reads patterns. One that begins with `!` excludes.
    pub fn new(patterns: &[String]) -> Result<Self> {
        patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Result<_>>().map(Self)
    }

    /// True if a path found below the folder `root` is wanted. Folders are entered unless a pattern excludes them.
    pub(crate) fn admits(&self, path: &Path, root: &Path, is_folder: bool) -> bool {
        let below = path.strip_prefix(root).unwrap_or(path);
        let last = self.0.iter().rev().find(|glob| glob.matches(below, is_folder));
        match last {
            Some(glob) => !glob.excludes,
            None => is_folder || self.0.iter().all(|glob| glob.excludes),
        }
    }
}

impl Glob {
    fn new(text: &str) -> Result<Self> {
        let (excludes, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (folders_alone, pattern) =
            pattern.strip_suffix('/').map_or((false, pattern), |rest| (true, rest));
        let is_path = pattern.contains('/');
        let wrong = |error: glob::PatternError| {
            Failure::usage(format_args!("cannot understand the glob `{text}`: {}", error.msg))
                .at("--glob")
                .advice("take *, **, ? and [abc]; more globs are given by more -g")
        };
        let pattern = Pattern::new(pattern.strip_prefix('/').unwrap_or(pattern)).map_err(wrong)?;
        Ok(Self { pattern, excludes, is_path, folders_alone })
    }

    fn matches(&self, below: &Path, is_folder: bool) -> bool {
        let subject = if self.is_path { Some(below.as_os_str()) } else { below.file_name() };
        let subject = subject.unwrap_or_default().to_string_lossy();
        (is_folder || !self.folders_alone) && self.pattern.matches_with(&subject, OPTIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_glob_that_matches_decides() {
        let files = ["a.txt", "a.log", "deep/b.txt", "deep/c.log", "build/d.txt"];
        for (globs, wanted) in [
            (&[][..], &files[..]),
            (&["*.txt"], &["a.txt", "deep/b.txt", "build/d.txt"]),
            (&["!*.log"], &["a.txt", "deep/b.txt", "build/d.txt"]),
            (&["*.txt", "!build"], &["a.txt", "deep/b.txt"]),
            (&["!build/"], &files[..4]),
            (&["deep/*"], &["deep/b.txt", "deep/c.log"]),
            (&["/*.txt"], &["a.txt"]),
            (&["**/[bc].*"], &["deep/b.txt", "deep/c.log"]),
            (&["*.log", "!*.log"], &[]),
            (&["!*.log", "*.log"], &["a.log", "deep/c.log"]),
        ] {
            let texts: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let globs = Globs::new(&texts).unwrap();
            let root = Path::new("/root");
            let found = files.iter().filter(|file| {
                let path = root.join(file);
                let folder = path.parent().unwrap();
                (folder == root || globs.admits(folder, root, true)) && globs.admits(&path, root, false)
            });
            assert_eq!(found.copied().collect::<Vec<_>>(), wanted, "{texts:?}");
        }
        assert!(Globs::new(&["a[".to_owned()]).is_err());
    }
}
