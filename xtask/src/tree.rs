//! The files of the repository, read once. Nothing here judges them.

use std::fs;
use std::io;
use std::path::Path;

/// Folders that hold what was built, found or downloaded, not written.
const NOT_OURS: [&str; 7] = [".git", "target", "corpus", "artifacts", "node_modules", "__pycache__", "venv"];

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// From the root, with `/` between folders.
    pub path: String,
    /// The contents of the file.
    pub text: String,
}

impl File {
    /// True if the path ends in `.EXTENSION`.
    pub fn is(&self, extension: &str) -> bool {
        self.path.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.'))
    }
}

/// All of the repository: its text files with their contents, and the names of everything.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Text files, sorted by path.
    pub files: Vec<File>,
    /// Every file and folder, texts or not.
    pub names: Vec<String>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.enter(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn enter(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            // In a second work tree `.git` is a file.
            if NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            if kind.is_dir() {
                self.enter(&entry.path(), &format!("{path}/"))?;
                self.names.push(path);
            } else if kind.is_file() {
                if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                    self.files.push(File { path: path.clone(), text });
                }
                self.names.push(path);
            }
        }
        Ok(())
    }

    /// Files that end in `.rs`.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is("rs"))
    }

    /// The file at `path`, if it is a text.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A file or folder of that path?
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.names.iter().any(|name| name == path)
    }

    /// A tree of these files, for tests of the rules.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
            for (at, _) in path.match_indices('/') {
                tree.names.push(path[..at].to_owned());
            }
            tree.names.push((*path).to_owned());
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_read_without_what_was_built_in_it() {
        let tree = Tree::load(&crate::root()).unwrap();
        assert!(tree.file("xtask/src/tree.rs").is_some_and(|file| file.is("rs")));
        assert!(tree.has("crates/base/") && tree.has("Makefile"));
        assert!(!tree.has(".git") && !tree.has("crates/nowhere"));
    }
}
