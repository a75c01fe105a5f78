//! Rule on paths outside of the repository: a clone stands alone, and no file names a place outside of it.

use crate::{Finding, Tree};

/// Places that exist on one machine only, put together here so that this file does not find itself, and the one
/// file that may name each.
const PLACES: [(&str, Option<&str>); 4] = [
    (concat!("/wo", "rk/"), None),
    (concat!("/ro", "ot/"), None),
    (concat!("../sh", "ared"), Some(".ci/run")),
    (concat!("../.lib", "rary"), None),
];

/// No file names a place outside of the repository.
pub(crate) fn foreign(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (place, home) in PLACES {
            if home == Some(file.path.as_str()) {
                continue;
            }
            let lines = file.text.lines().enumerate().filter(|(_, line)| line.contains(place));
            findings.extend(
                lines.map(|(n, _)| {
                    Finding::new(&file.path, n + 1, format!("names {place}, outside the clone"))
                }),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outside_of_the_clone_is_found() {
        let beside = format!("a\ndata={}/data\n", PLACES[2].0);
        let found =
            foreign(&Tree::of(&[("README.md", &beside), (".ci/run", &beside), ("a.rs", "/home/you/x")]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("README.md", 2));
        let local = format!("{}main", PLACES[0].0);
        assert_eq!(foreign(&Tree::of(&[(".ci/run", &local)])).len(), 1);
    }
}
