//! Rule on tests that use real inputs: the profile that runs them with these names each of their files.

use crate::{Finding, Tree};

/// Settings of the test runner.
const SETTINGS: &str = ".config/nextest.toml";

/// Variable that names the folder of real inputs; put together so that this file is no test of the kind.
const VARIABLE: &str = concat!("HOLDFAST_TEST", "_DATA");

/// Package and module of a test file; `None` for other files, and for helpers of tests.
fn module(path: &str) -> Option<(&str, String)> {
    let (package, file) = path.strip_prefix("crates/")?.split_once("/tests/it/")?;
    let module = file.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    (!module.split('/').any(|part| part == "common")).then(|| (package, module.replace('/', "::")))
}

/// Modules that the settings list for a package: the alternatives of its pattern.
fn listed<'a>(settings: &'a str, package: &str) -> Vec<&'a str> {
    let line =
        settings.lines().find(|line| line.contains(&format!("package(holdfast-{package}) and test(/^")));
    let pattern =
        line.and_then(|line| line.split_once("/^")?.1.split_once("::/")).map(|(pattern, _)| pattern);
    pattern.map_or(Vec::new(), |pattern| pattern.trim_matches(['(', ')']).split('|').collect())
}

/// Every test file that names the folder of real inputs is run with them.
pub(crate) fn are_listed(tree: &Tree) -> Vec<Finding> {
    let settings = tree.file(SETTINGS).map_or("", |file| &file.text);
    let tests = tree.rust().filter(|file| file.text.contains(VARIABLE));
    tests
        .filter_map(|file| {
            let (package, module) = module(&file.path)?;
            let is_listed = listed(settings, package).into_iter().any(|listed| {
                module.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            (!is_listed).then(|| {
                let fault = format!(
                    "uses real inputs: name {module} of {package} in {SETTINGS}, profile real-inputs"
                );
                Finding::new(&file.path, 0, fault)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_file_that_the_profile_does_not_name_is_found() {
        let settings =
            "(package(holdfast-a) and test(/^(one|two::x)::/))\n or (package(holdfast-b) and test(/^y::/))";
        let uses = format!("std::env::var(\"{VARIABLE}\")");
        let tree = Tree::of(&[
            (SETTINGS, settings),
            ("crates/a/tests/it/one.rs", &uses),
            ("crates/a/tests/it/two/x.rs", &uses),
            ("crates/a/tests/it/two/mod.rs", &uses),
            ("crates/a/tests/it/common/mod.rs", &uses),
            ("crates/a/src/one.rs", &uses),
            ("crates/b/tests/it/y/mod.rs", &uses),
            ("crates/b/tests/it/yes.rs", &uses),
            ("crates/c/tests/it/one.rs", &uses),
        ]);
        let found: Vec<String> = are_listed(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(
            found,
            ["crates/a/tests/it/two/mod.rs", "crates/b/tests/it/yes.rs", "crates/c/tests/it/one.rs"]
        );
    }
}
