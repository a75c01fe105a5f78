//! Rules on source files: headers, where `unsafe` may stand, sizes, and nothing unfinished.

use crate::{Finding, Tree, code};

/// Paths where `unsafe` may stand: the rings of `io_uring`, of packets, the compiler of packet filters, the shared memory,
/// answered system calls, and pointers of modules.
const UNSAFE: [&str; 6] = [
    "crates/media/",
    "crates/ingest/src/packet/af_packet",
    "crates/ingest/src/packet/libpcap.rs",
    "crates/protocol/src/shared",
    "crates/fs/src/shell/sys",
    "sdk/rust/src/",
];

/// Crates that hold one of those places; they deny at the root and allow in the module.
const WITH_UNSAFE: [&str; 5] =
    ["crates/media/src/", "crates/ingest/src/", "crates/protocol/src/", "crates/fs/src/", "sdk/rust/src/"];

/// Lines of a file without its tests: past this it holds two things.
const MOST_LINES: usize = 600;

/// Every file says first what belongs in it.
pub(crate) fn headers(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            Finding::new(&file.path, 1, "begins without `//!`: say what belongs here and what does not")
        })
        .collect()
}

/// `unsafe` stands only where its walls are.
pub(crate) fn unsafe_is_walled_in(tree: &Tree) -> Vec<Finding> {
    let outside = tree.rust().filter(|file| !UNSAFE.iter().any(|place| file.path.starts_with(place)));
    outside
        .flat_map(|file| {
            let lines = code::lines_with(&code::only(&file.text), "unsafe");
            lines
                .into_iter()
                .map(|line| Finding::new(&file.path, line, format!("`unsafe` outside of {UNSAFE:?}")))
        })
        .collect()
}

/// The roots of all crates forbid `unsafe`; those of the crates that need it somewhere deny it.
pub(crate) fn roots_forbid_unsafe(tree: &Tree) -> Vec<Finding> {
    // Exported symbols of a module are unsafe attributes.
    let is_module = |path: &str| path.starts_with("sdk/examples/");
    let root = |path: &str| {
        let is_root =
            path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || path.contains("/src/bin/");
        is_root && !is_module(path)
    };
    tree.rust()
        .filter(|file| root(&file.path))
        .filter_map(|file| {
            let walls = WITH_UNSAFE.iter().any(|place| file.path.starts_with(place));
            let wanted = if walls { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
            let kept = |line: &str| line == wanted || line == "#![forbid(unsafe_code)]";
            (!file.text.lines().any(kept)).then(|| Finding::new(&file.path, 0, format!("lacks `{wanted}`")))
        })
        .collect()
}

/// No file holds more than fits one noun.
pub(crate) fn sizes(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter_map(|file| {
            let lines = file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
            (lines > MOST_LINES).then(|| {
                Finding::new(
                    &file.path,
                    0,
                    format!("{lines} lines without tests, over {MOST_LINES}: split it"),
                )
            })
        })
        .collect()
}

/// Nothing says of itself that it is unfinished.
pub(crate) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = code::only(&file.text);
        for word in ["todo!", "unimplemented!", "dbg!", "#[ignore]", "#[ignore ="] {
            let lines = code.lines().enumerate().filter(|(_, line)| line.contains(word));
            findings.extend(
                lines.map(|(n, _)| Finding::new(&file.path, n + 1, format!("`{word}` must not stay"))),
            );
        }
    }
    // Put together here so that this file does not find itself.
    for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        for file in &tree.files {
            let lines = code::lines_with(&file.text, word);
            findings.extend(
                lines.into_iter().map(|n| Finding::new(&file.path, n, format!("`{word}` must not stay"))),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&Tree) -> Vec<Finding>;

    /// The lines of `path`, with that text, on which the rule finds something.
    fn lines(rule: Rule, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_without_header_is_found() {
        assert_eq!(lines(headers, "a.rs", "//! Sizes.\n"), [0; 0]);
        assert_eq!(lines(headers, "a.rs", "// Sizes.\n"), [1]);
        assert_eq!(lines(headers, "a.rs", ""), [1]);
        assert_eq!(lines(headers, "a.c", ""), [0; 0]);
    }

    #[test]
    fn unsafe_outside_its_walls_is_found() {
        let text = "// unsafe\n#![deny(unsafe_code)]\nlet a = \"unsafe\";\nunsafe { b() }\n";
        assert_eq!(lines(unsafe_is_walled_in, "crates/ring/src/a.rs", text), [4]);
        assert_eq!(lines(unsafe_is_walled_in, "crates/ingest/src/packet/filter.rs", text), [4]);
        for inside in [
            "crates/media/src/a.rs",
            "crates/ingest/src/packet/af_packet.rs",
            "crates/protocol/src/shared/map.rs",
        ] {
            assert_eq!(lines(unsafe_is_walled_in, inside, text), [0; 0]);
        }
    }

    #[test]
    fn a_root_that_does_not_forbid_unsafe_is_found() {
        let (forbid, deny) = ("//! A.\n#![forbid(unsafe_code)]\n", "//! A.\n#![deny(unsafe_code)]\n");
        assert_eq!(lines(roots_forbid_unsafe, "crates/ring/src/lib.rs", forbid), [0; 0]);
        assert_eq!(lines(roots_forbid_unsafe, "crates/ring/src/lib.rs", deny), [0]);
        assert_eq!(lines(roots_forbid_unsafe, "crates/ring/src/slots.rs", ""), [0; 0]);
        assert_eq!(lines(roots_forbid_unsafe, "crates/cli/src/bin/b.rs", ""), [0]);
        assert_eq!(lines(roots_forbid_unsafe, "crates/media/src/lib.rs", deny), [0; 0]);
        assert_eq!(lines(roots_forbid_unsafe, "crates/media/src/lib.rs", ""), [0]);
    }

    #[test]
    fn a_file_that_grew_too_long_is_found() {
        let long = "line\n".repeat(MOST_LINES);
        assert_eq!(lines(sizes, "a.rs", &long), [0; 0]);
        assert_eq!(lines(sizes, "a.rs", &format!("{long}#[cfg(test)]\n{long}")), [0; 0]);
        assert_eq!(lines(sizes, "a.rs", &format!("{long}one more\n")), [0]);
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(lines(unfinished, "a.rs", "a\n todo!()\n// todo!()\n#[ignore]\ndbg!(x)\n"), [2, 5, 4]);
        let notes = format!("a\n{}: b\n{}S\n", concat!("TO", "DO"), concat!("TO", "DO"));
        assert_eq!(lines(unfinished, "notes.md", &notes), [2]);
    }
}
