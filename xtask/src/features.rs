//! Rule on features of dependencies: the tests ask for none that the programs lack, so that both share one build.

use crate::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::Command;

/// Manifest that asks for the features of tests without being one.
const HOME: &str = "xtask/Cargo.toml";

/// Sets of features by package and version, of lines such as `name v1.2.3 [a,b]`. A package that build scripts use, too, may
/// have two.
fn by_package(lines: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (package, features) in lines.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once(" ["))
    {
        found.entry(package).or_default().insert(features);
    }
    found
}

/// Packages whose features differ: a build with tests would build them again.
fn differing(without: &str, with: &str) -> Vec<Finding> {
    let with = by_package(with);
    let findings = by_package(without).into_iter().filter_map(|(package, features)| {
        let tests = with.get(package)?;
        let missing = features.iter().find(|features| !tests.contains(*features))?;
        let tests: Vec<&str> = tests.iter().copied().collect();
        let fault = format!(
            "{package} has the features [{} in tests, but [{missing} without them: name the missing ones here, so that \
             it is built once",
            tests.join(" and [")
        );
        Some(Finding::new(HOME, 0, fault))
    });
    findings.collect()
}

/// Checks that dependencies of programs have the same features with the tests and without.
pub(crate) fn of_tests(root: &Path) -> io::Result<Vec<Finding>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = |edges: &str| -> io::Result<String> {
        let output = Command::new(&cargo)
            .args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none"])
            .args(["--format", "{p} [{f}]", "--edges", edges])
            .current_dir(root)
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("cargo tree: {}", said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Ok(differing(&tree("no-dev")?, &tree("all")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_tests_ask_for_is_found() {
        let without = "a v1.0.0 [x]\nb v2.0.0 []\nb v3.0.0 [y] (*)\n";
        assert_eq!(differing(without, "a v1.0.0 [x]\nb v2.0.0 []\nb v3.0.0 [y]\nc v1.0.0 [z]"), []);
        let found = differing(without, "a v1.0.0 [x]\nb v2.0.0 [z]\nb v3.0.0 [y]");
        assert!(found.len() == 1 && found[0].what.starts_with("b v2.0.0 has the features [z]"), "{found:?}");
    }
}
