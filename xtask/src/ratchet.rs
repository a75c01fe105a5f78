//! Rules that old code does not keep yet, with the number of places allowed for each crate or document. A number
//! only ever goes down: `xtask/ratchet.toml` holds them, and `cargo xtask ratchet` lowers them.

use crate::{Finding, Tree, comments, docs};
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The file of the allowed numbers, from the root of the repository.
const FILE: &str = "xtask/ratchet.toml";

/// The lines above the numbers in the file.
const HEAD: &str = "# Places that break a rule, allowed for each crate or document. `cargo xtask ratchet` lowers these numbers.\n\n";

type Rule = fn(&Tree) -> Vec<Finding>;

/// The rules by the name under which the file holds their numbers.
const RULES: [(&str, Rule); 3] = [
    ("clause-openings", comments::clause_openings),
    ("long-lines", docs::long_lines),
    ("short-comments", comments::short_comments),
];

/// Numbers of places by rule, then by crate or document.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// Findings that exceed the allowed numbers, and notes on numbers that can be lowered.
pub(crate) fn check(tree: &Tree) -> (Vec<Finding>, Vec<String>) {
    let allowed = match allowed(tree) {
        Ok(allowed) => allowed,
        Err(finding) => return (vec![finding], Vec::new()),
    };
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for (rule, find) in RULES {
        let by_unit = by_unit(find(tree));
        let numbers = allowed.get(rule);
        let most = |unit: &str| numbers.and_then(|numbers| numbers.get(unit)).copied().unwrap_or(0);
        for (unit, found) in &by_unit {
            let (count, most) = (found.len(), most(unit));
            if count > most {
                let what = format!(
                    "{count} places break the rule `{rule}`, {most} are allowed in {FILE}: mend {}, or run `cargo xtask ratchet` \
                     if code moved here from another crate",
                    count - most
                );
                findings.push(Finding::new(unit, 0, what));
                findings.extend(found.iter().cloned());
            }
        }
        for (unit, most) in numbers.into_iter().flatten() {
            let count = by_unit.get(unit).map_or(0, Vec::len);
            if count < *most {
                notes.push(format!("{unit}: {count} places break the rule `{rule}`, {most} are allowed: run `cargo xtask ratchet`"));
            }
        }
    }
    (findings, notes)
}

/// Writes today's numbers into the file. Code may have moved from one crate to another; no rule's total may rise.
pub fn lower(root: &Path) -> io::Result<()> {
    let tree = Tree::load(root)?;
    let text = lowered(&tree).map_err(io::Error::other)?;
    fs::write(root.join(FILE), text)
}

/// The text of the file with today's numbers.
fn lowered(tree: &Tree) -> Result<String, String> {
    let before = allowed(tree).map_err(|finding| finding.to_string())?;
    let mut now = Counts::new();
    for (rule, find) in RULES {
        let counts: BTreeMap<_, _> =
            by_unit(find(tree)).into_iter().map(|(unit, found)| (unit, found.len())).collect();
        let total = counts.values().sum::<usize>();
        if let Some(before) = before.get(rule).map(|counts| counts.values().sum::<usize>())
            && total > before
        {
            return Err(format!(
                "{total} places break the rule `{rule}`, {before} are allowed: mend {}",
                total - before
            ));
        }
        now.insert(rule.to_owned(), counts);
    }
    let text = toml::to_string(&now).map_err(|error| error.to_string())?;
    Ok(format!("{HEAD}{text}"))
}

/// The numbers of the file; a rule that it does not know yet is allowed whatever there is when it is first lowered.
fn allowed(tree: &Tree) -> Result<Counts, Finding> {
    let text = tree.file(FILE).map(|file| file.text.as_str()).unwrap_or_default();
    toml::from_str(text).map_err(|error| Finding::new(FILE, 0, format!("cannot be read: {error}")))
}

fn by_unit(findings: Vec<Finding>) -> BTreeMap<String, Vec<Finding>> {
    let mut all: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        all.entry(unit(&finding.path).to_owned()).or_default().push(finding);
    }
    all
}

/// The crate of a source file; a document stands for itself.
fn unit(path: &str) -> &str {
    if path.strip_suffix(".rs").is_none() {
        return path;
    }
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.match_indices('/').nth(depth - 1).map_or(path, |(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "/// Bytes.\n/// Of it.\n";

    fn tree(ratchet: &str, files: &[(&str, &str)]) -> Tree {
        Tree::of(&[files, &[(FILE, ratchet)]].concat())
    }

    #[test]
    fn a_number_may_not_rise_and_a_lower_one_is_told() {
        let two = "/// What it is in the end.\nfn a() {}\n/// How it is in the end.\n";
        let ratchet = "[clause-openings]\n\"crates/a\" = 1\n";
        let (found, notes) = check(&tree(ratchet, &[("crates/a/src/lib.rs", two)]));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(
            found[0].starts_with("crates/a: 2 places break the rule `clause-openings`, 1 are allowed in ")
        );
        assert!(found.len() == 3 && found[2].starts_with("crates/a/src/lib.rs:3: ") && notes.is_empty());
        let (found, notes) = check(&tree(ratchet, &[("crates/a/src/lib.rs", "")]));
        assert!(found.is_empty() && notes[0].starts_with("crates/a: 0 places"), "{notes:?}");
        let (found, notes) =
            check(&tree(ratchet, &[("crates/a/tests/it/main.rs", "/// What it is in the end.\n")]));
        assert!(found.is_empty() && notes.is_empty());
        assert_eq!(check(&tree("what", &[])).0.len(), 1);
    }

    #[test]
    fn numbers_are_lowered_and_move_with_the_code() {
        let long = format!("{} x\n", "word ".repeat(50));
        let text = lowered(&tree("", &[("bench/src/lib.rs", OLD), ("docs/a.md", &long)])).unwrap();
        let counts: Counts = toml::from_str(&text).unwrap();
        assert_eq!(counts["short-comments"]["bench"], 1);
        assert_eq!(counts["long-lines"]["docs/a.md"], 1);
        let moved = lowered(&tree(&text, &[("crates/a/src/b/c.rs", OLD)])).unwrap();
        let counts: Counts = toml::from_str(&moved).unwrap();
        assert_eq!(counts["short-comments"], BTreeMap::from([("crates/a".to_owned(), 1)]));
        let more = format!("{OLD}fn a() {{}}\n{OLD}");
        assert!(lowered(&tree(&moved, &[("crates/a/src/b/c.rs", &more)])).is_err());
    }

    #[test]
    fn a_file_belongs_to_its_crate() {
        assert_eq!(unit("crates/ring/src/a/b.rs"), "crates/ring");
        assert_eq!(unit("bench/benches/a.rs"), "bench");
        assert_eq!(unit("docs/decisions/a.md"), "docs/decisions/a.md");
        assert_eq!(unit("a.rs"), "a.rs");
    }
}
