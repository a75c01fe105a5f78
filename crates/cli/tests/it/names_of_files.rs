//! Names, order and choice of files in scans; lists of digests that are compared.

use crate::common::{Said, documented, ends, folder, holdfast, tool};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

fn bytes(dir: &Path, words: &[&str]) -> Said {
    Said::from(holdfast(dir).args(words).output().unwrap())
}

/// Path whose name has an escape sequence, a line end and a byte that is no UTF-8.
fn odd(dir: &Path) -> std::path::PathBuf {
    dir.join("tree").join(OsStr::from_bytes(b"red \x1b[31m\n\xe9"))
}

#[test]
fn control_characters_of_names_are_escaped_and_other_bytes_stay() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("tree")).unwrap();
    fs::write(odd(dir), "needle").unwrap();
    let shown = b"tree/red \\x1b[31m\\x0a\xe9".as_slice();
    let raw = b"tree/red \x1b[31m\n\xe9".as_slice();
    for (words, wanted) in [
        (&["grep", "needle", "tree"][..], [shown, b":0: needle\n"].concat()),
        (&["grep", "needle", "tree", "-l"], [shown, b"\n"].concat()),
        (&["grep", "needle", "tree", "-l", "-0"], [raw, b"\0"].concat()),
        (&["grep", "needle", "tree", "-c", "-0"], [raw, b"\x001\n"].concat()),
        (&["grep", "needle", "tree", "-n", "-0"], [raw, b"\x001: needle\n"].concat()),
        (&["scan", "tree", "--module", "approx", "--pattern", "eed"], [shown, b":1..4: 0 eed\n"].concat()),
    ] {
        let said = bytes(dir, words);
        assert_eq!(
            (said.code, said.bytes.escape_ascii().to_string()),
            (Some(0), wanted.escape_ascii().to_string())
        );
    }
    let digest = blake3::hash(b"needle").to_hex();
    let said = bytes(dir, &["hash", "tree", "-0"]);
    assert_eq!(said.bytes, [digest.as_bytes(), b"  ", raw, b"\0"].concat());
    for line in ["grep needle tree --json", "hash tree --json", "scan tree --module stats --json"] {
        let found = ends(dir, line, 0).json();
        documented(line.split(' ').next().unwrap(), [&found]);
        assert_eq!(found["source_bytes"], "dHJlZS9yZWQgG1szMW0K6Q==", "{line}");
    }
    let said = bytes(dir, &["grep", "needle", "no\x1b[31m", "tree"]);
    assert!(said.err.contains("holdfast: no\\x1b[31m: cannot open"), "{}", said.err);
}

#[test]
fn results_are_sorted_by_the_bytes_of_names() {
    if tool("find").is_none() || tool("sort").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    let names = ["a/b", "a.txt", "a-b", "B", "z/1/2", "z/1.log", "Z", "a/c/d", "\u{e9}"];
    for (number, name) in names.iter().enumerate() {
        let path = dir.join("tree").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Some have several buffers.
        fs::write(path, "needle\n".repeat(if number % 3 == 0 { 400_000 } else { 2 })).unwrap();
    }
    fs::write(dir.join("first"), "needle").unwrap();
    let sorted =
        Command::new("sh").current_dir(dir).args(["-c", "find tree -type f | LC_ALL=C sort"]).output();
    let sorted = format!("tree/z/1.log\nfirst\n{}", String::from_utf8(sorted.unwrap().stdout).unwrap());
    let said = ends(dir, "grep -l needle --sort tree/z/1.log first tree", 0);
    assert_eq!(said.out, sorted);
    let said = ends(dir, "grep -c needle --sort --threads 4 tree/z/1.log first tree", 0);
    let counted: String =
        said.out.lines().flat_map(|line| [line.rsplit_once(':').unwrap().0, "\n"]).collect();
    assert_eq!(counted, sorted);
    let said = ends(dir, "hash --sort tree/z/1.log first tree", 0);
    let hashed: String = said.out.lines().flat_map(|line| [line.split_once("  ").unwrap().1, "\n"]).collect();
    assert_eq!(hashed, sorted);
    let said = ends(dir, "grep -l needle --sort -g *.txt -g z/** -g !*.log tree", 0);
    assert_eq!(said.out, "tree/a.txt\ntree/z/1/2\n");
    let said = ends(dir, "grep -l needle -g !z -g !a* tree --sort", 0);
    assert_eq!(said.out, "tree/B\ntree/Z\ntree/\u{e9}\n");
    ends(dir, "grep needle -g a[ tree", 2);
}

#[test]
fn quiet_searches_end_with_a_hit_and_colours_are_those_of_grep() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("a"), "one needle, two needles\n").unwrap();
    for (line, code) in [
        ("grep -q needle a", 0),
        ("grep -q needle missing a", 0),
        ("grep -q nothing missing a", 1),
        ("grep -q nothing a", 3),
        ("grep -q needle a --json", 0),
    ] {
        assert_eq!(ends(dir, line, code).out, "", "{line}");
    }
    let said = ends(dir, "grep -H -n needle a --color always", 0);
    let wanted = "\x1b[35ma\x1b[m\x1b[36m:\x1b[m\x1b[32m1\x1b[m\x1b[36m:\x1b[m one \x1b[1;31mneedle\x1b[m, two \
                  \x1b[1;31mneedle\x1b[ms\n";
    assert_eq!(said.out, wanted);
    assert_eq!(ends(dir, "grep -H -n needle a", 0).out, "a:1: one needle, two needles\n");
}

#[test]
fn lists_of_digests_are_compared_as_other_tools_do() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("tree")).unwrap();
    for (number, name) in ["a", "odd\nname", "back\\slash", "sp ace", "empty"].iter().enumerate() {
        fs::write(dir.join("tree").join(name), vec![7; number % 4 * 300_000]).unwrap();
    }
    fs::write(odd(dir), "odd").unwrap();
    let sh = |line: &str| {
        let said = Command::new("sh").current_dir(dir).args(["-c", line]).output().unwrap();
        (said.status.code(), String::from_utf8_lossy(&said.stdout).into_owned())
    };
    let mut tools = vec!["holdfast"];
    for name in ["md5sum", "sha1sum", "sha256sum", "b3sum"] {
        if tool(name).is_some() {
            tools.push(name);
        }
    }
    for tool in tools {
        let (code, list) = match tool {
            "holdfast" => (Some(0), bytes(dir, &["hash", "tree", "--algorithm", "sha256,md5,blake3"]).bytes),
            tool => {
                let plain = Command::new("sh")
                    .current_dir(dir)
                    .args(["-c", &format!("{tool} tree/*")])
                    .output()
                    .unwrap();
                (plain.status.code(), plain.stdout)
            }
        };
        assert_eq!(code, Some(0), "{tool}");
        fs::write(dir.join("list"), list).unwrap();
        let said = ends(dir, "hash --check list", 0);
        let lines = fs::read(dir.join("list")).unwrap().split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(said.out.matches(": OK\n").count(), lines, "{tool}: {}", said.out);
        if tool != "holdfast" && tool != "b3sum" {
            sh(&format!("{tool} --tag tree/* > tags"));
            ends(dir, "hash --check tags", 0);
        }
    }
    // A changed and a missing file, in the order of the list, as md5sum tells them.
    ends(dir, "hash --check list --json", 0);
    ends(dir, "hash tree/a tree/empty missing --algorithm md5", 1);
    let list = ends(dir, "hash tree/a tree/empty --algorithm md5 --sort", 0).out;
    fs::write(dir.join("md5s"), format!("{list}{}  missing\n", "0".repeat(32))).unwrap();
    fs::write(dir.join("tree/a"), "changed").unwrap();
    let said = ends(dir, "hash --check md5s", 1);
    assert_eq!(said.out, "tree/a: FAILED\ntree/empty: OK\nmissing: FAILED open or read\n");
    assert!(
        said.err.contains("1 of 3 files has another digest, 1 of 3 files could not be read"),
        "{}",
        said.err
    );
    if tool("md5sum").is_some() {
        assert_eq!(sh("md5sum -c md5s"), (Some(1), said.out));
    }
    let found = ends(dir, "hash --check md5s --json", 1).lines();
    documented("hash", &found);
    let checks: Vec<_> = found.iter().map(|line| line["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["changed", "ok", "unread"]);
    // One missing file alone, a damaged line, and no list at all.
    fs::write(dir.join("one"), format!("{}  missing\n", "0".repeat(32))).unwrap();
    assert_eq!(ends(dir, "hash --check one", 1).out, "missing: FAILED open or read\n");
    fs::write(dir.join("damaged"), format!("{list}nonsense\n")).unwrap();
    assert!(ends(dir, "hash --check damaged", 1).err.contains("1 line of the lists without a digest"));
    fs::write(dir.join("damaged"), "nonsense\n").unwrap();
    ends(dir, "hash --check damaged", 1);
}
