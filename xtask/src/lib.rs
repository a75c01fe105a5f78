//! Tidy: the house rules that a compiler does not check, as pure functions from the tree to findings.
//!
//! A rule belongs here when breaking it would go unnoticed until somebody is misled by it. Format and common
//! mistakes do not: rustfmt and clippy find those.
#![forbid(unsafe_code)]

mod code;
mod comments;
mod docs;
mod features;
mod foreign_paths;
mod layers;
mod ratchet;
mod real_inputs;
mod source;
mod tree;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use ratchet::lower;
pub use tree::{File, Tree};

/// A place where a rule is broken, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// File, from the root of the repository.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The fault, and what to do about it.
    pub what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// The root of the repository that cargo runs this for; of that it was built from otherwise. Several may have built it in one folder.
pub fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The result of checking a repository.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The places to mend, sorted.
    pub findings: Vec<Finding>,
    /// Hints that ask for nothing: numbers of the ratchet that can be lowered.
    pub notes: Vec<String>,
}

/// Checks the repository at `root` against every rule.
pub fn tidy(root: &Path) -> io::Result<Verdict> {
    let tree = Tree::load(root)?;
    let metadata = metadata(root)?;
    let (counted, notes) = ratchet::check(&tree);
    let mut findings = [
        docs::paths_exist(&tree),
        docs::make_targets_exist(&tree),
        layers::edges(&metadata),
        layers::recorder_tree(&metadata),
        layers::test_programs(&metadata),
        source::headers(&tree),
        source::unsafe_is_walled_in(&tree),
        source::roots_forbid_unsafe(&tree),
        source::sizes(&tree),
        source::unfinished(&tree),
        foreign_paths::foreign(&tree),
        real_inputs::are_listed(&tree),
        features::of_tests(root)?,
    ]
    .concat();
    findings.sort();
    // In the order in which the ratchet tells them: first the number, then the places.
    findings.extend(counted);
    Ok(Verdict { findings, notes })
}

/// The output of `cargo metadata` for this machine's platform. Cargo asks the network only for packages that the
/// build has not fetched: it wants the manifests of all, also of those that only other builds use.
fn metadata(root: &Path) -> io::Result<serde_json::Value> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ask = |network: &[&str]| {
        Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &platform])
            .args(network)
            .current_dir(root)
            .output()
    };
    let mut output = ask(&["--offline"])?;
    if !output.status.success() {
        output = ask(&[])?;
    }
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let super::Verdict { findings, notes } = super::tidy(&super::root()).unwrap();
        println!("{}", notes.join("\n"));
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "\n{}\n", list.join("\n"));
    }
}
