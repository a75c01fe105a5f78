//! Documents name only what there is: paths in backticks, links and fences; make targets.

use crate::{File, Finding, Tree};

/// Characters of a line of prose: past this it is a paragraph that nobody can compare with its next version.
const MOST_CHARACTERS: usize = 200;

/// Folders at the top by which a name in backticks is known to be a path of this repository.
const TOP: [&str; 10] =
    [".cargo", ".ci", "bench", "crates", "docs", "examples", "fuzz", "scripts", "sdk", "xtask"];

fn documents(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files
        .iter()
        .filter(|file| file.is("md") && (!file.path.contains('/') || file.path.starts_with("docs/")))
}

/// Every path that a document names exists.
pub(crate) fn paths_exist(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in documents(tree) {
        for (line, text, fenced) in lines(&document.text) {
            let named: Vec<&str> = if fenced {
                text.split_whitespace().collect()
            } else {
                backticked(text).chain(links(text)).collect()
            };
            for name in named {
                let path = name.split('#').next().unwrap_or_default();
                if !missing(tree, document, path) {
                    continue;
                }
                findings.push(Finding::new(
                    &document.path,
                    line,
                    format!("`{name}` is not there: mend the name"),
                ));
            }
            for link in links(text).filter(|link| !fenced && !link.contains(':') && !link.starts_with('#')) {
                let path = link.split('#').next().unwrap_or_default();
                if !tree.has(&beside(document, path)) {
                    findings.push(Finding::new(
                        &document.path,
                        line,
                        format!("the link `{link}` leads nowhere"),
                    ));
                }
            }
        }
    }
    findings.dedup();
    findings
}

/// A name that looks like a path of this repository, and is not one.
fn missing(tree: &Tree, document: &File, name: &str) -> bool {
    let name = name.trim_end_matches(['.', ',', ':', ';', ')']);
    let name =
        name.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok()).map_or(name, |(path, _)| path);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)) {
        return false;
    }
    if let Some((top, _)) = name.split_once('/') {
        return TOP.contains(&top) && !tree.has(name) && !tree.has(&beside(document, name));
    }
    let source =
        name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && ["rs", "md"].contains(&end));
    source && !tree.names.iter().any(|path| path.rsplit('/').next() == Some(name))
}

/// `path` as seen from the folder of `document`.
fn beside(document: &File, path: &str) -> String {
    let mut parts: Vec<&str> = document.path.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Every `make X` in a document's code is a target of the Makefile.
pub(crate) fn make_targets_exist(tree: &Tree) -> Vec<Finding> {
    let makefile = tree.file("Makefile").map(|file| file.text.as_str()).unwrap_or_default();
    let known = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let mut findings = Vec::new();
    for document in documents(tree) {
        for (line, text, fenced) in lines(&document.text) {
            let code: Vec<&str> = if fenced { vec![text] } else { backticked(text).collect() };
            for code in code {
                let command = code.trim_start().trim_start_matches("$ ");
                let Some(target) =
                    command.strip_prefix("make ").and_then(|rest| rest.split_whitespace().next())
                else {
                    continue;
                };
                if target.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !known(target) {
                    findings.push(Finding::new(
                        &document.path,
                        line,
                        format!("the Makefile has no target `{target}`"),
                    ));
                }
            }
        }
    }
    findings
}

/// No line of a document is too long, but for tables and fences.
pub(crate) fn long_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in tree.files.iter().filter(|file| file.is("md")) {
        for (line, text, fenced) in lines(&document.text) {
            let (count, table) = (text.chars().count(), text.trim_start().starts_with('|'));
            if count > MOST_CHARACTERS && !fenced && !table {
                let what = format!("{count} characters, over {MOST_CHARACTERS}: break the line");
                findings.push(Finding::new(&document.path, line, what));
            }
        }
    }
    findings
}

/// Lines with their numbers, and whether they stand in a fence.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        Some((number + 1, line, fenced))
    })
}

fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("Makefile", "test: deps ## Run\n"),
            ("README.md", ""),
            ("crates/ring/src/slots.rs", ""),
            ("docs/format.md", ""),
            (document, text),
        ]);
        [paths_exist(&tree), make_targets_exist(&tree)].concat().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_there_may_be_named() {
        let text = "See `docs/format.md`, [the format](format.md#slot), [out](https://example.org/a), `slots.rs`,\n\
                    `crates/ring/src/slots.rs:12`, `crates/ring/`, `a/b`, `crates/*/src`, [home](../README.md), [up](#up).\n\
                    Make sure that `make test` runs.\n```\n$ make test\ncrates/ring   the heart\n```\n";
        assert_eq!(found("docs/guide.md", text), [""; 0]);
    }

    #[test]
    fn a_path_that_is_gone_is_found() {
        assert_eq!(
            found("docs/a.md", "\nin `docs/gone.md`"),
            ["docs/a.md:2: `docs/gone.md` is not there: mend the name"]
        );
        assert_eq!(found("a.md", "in `gone.rs`").len(), 1);
        assert_eq!(found("a.md", "```\ncrates/gone  the heart\n```").len(), 1);
        assert_eq!(
            found("docs/a.md", "[x](docs/format.md)"),
            ["docs/a.md:1: the link `docs/format.md` leads nowhere"]
        );
        assert_eq!(found("crates/ring/notes.md", "in `docs/gone.md`"), [""; 0]);
    }

    #[test]
    fn a_path_is_known_by_every_folder_at_the_top() {
        for top in TOP {
            let (here, gone) = (format!("{top}/here.c"), format!("{top}/gone.c"));
            let tree = Tree::of(&[(&here, ""), ("a.md", &format!("`{here}`, `{gone}`"))]);
            let found = paths_exist(&tree);
            assert_eq!(found.len(), 1, "{top}");
            assert!(found[0].to_string().contains(&gone), "{top}");
        }
    }

    #[test]
    fn all_folders_at_the_top_are_listed() {
        let tree = Tree::load(&crate::root()).unwrap();
        assert!(TOP.iter().all(|top| tree.has(top)), "one of them does not exist");
        // Hidden ones that we do not know are those of somebody's editor.
        let tops = tree.names.iter().filter_map(|path| path.split_once('/')).map(|(top, _)| top);
        for top in tops.filter(|top| !top.starts_with('.')) {
            assert!(TOP.contains(&top), "{top} is not listed");
        }
    }

    #[test]
    fn a_line_of_prose_that_is_too_long_is_found() {
        let (most, long) = ("x".repeat(MOST_CHARACTERS), "x".repeat(MOST_CHARACTERS + 1));
        let text = format!("{most}\n{long}\n| {long} |\n```\n{long}\n```\n  {most}\n");
        let found = long_lines(&Tree::of(&[("crates/a/README.md", &text), ("a.rs", &long)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 7]);
    }

    #[test]
    fn a_make_target_that_is_gone_is_found() {
        assert_eq!(found("a.md", "`make tost`"), ["a.md:1: the Makefile has no target `tost`"]);
        assert_eq!(found("a.md", "```\nmake deps\n```").len(), 1);
    }
}
