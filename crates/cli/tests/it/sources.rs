//! Lists of sources: what is missing or unreadable is told and passed over, pipes are read, as GNU grep does it.

use crate::common::{Said, ends, folder, holdfast, tool};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// Sources of the comparison. The last ones are none.
const SOURCES: [&str; 9] = ["a", "b", "empty", "binary", "pipe", "missing", "dangling", "loop", "a/below"];

fn sources(dir: &Path) {
    fs::write(dir.join("a"), "needle one\nhay\nneedle two").unwrap();
    fs::write(dir.join("b"), "hay\nhay\n".repeat(100_000) + "a needle at the end\n").unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    fs::write(dir.join("binary"), b"\0\xff\nneedle\xfe\n\0").unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    symlink("loop", dir.join("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
}

/// Runs a search whose sources may include the named pipe, which is written to meanwhile.
fn searched(mut command: Command, dir: &Path, sources: &[&str]) -> Said {
    let is_piped = sources.contains(&"pipe");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if is_piped {
        // It waits until the search opens the pipe.
        let mut pipe = fs::OpenOptions::new().write(true).open(dir.join("pipe")).unwrap();
        pipe.write_all(b"hay\na needle in a pipe\n").unwrap();
    }
    Said::from(child.wait_with_output().unwrap())
}

/// Lines of a search: source, offset and text.
type Lines = BTreeSet<(String, u64, String)>;

#[test]
fn lists_with_missing_sources_have_the_lines_and_exit_codes_of_grep() {
    if tool("grep").is_none() || tool("mkfifo").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    sources(dir);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut codes = BTreeSet::new();
    for round in 0..60 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every other list has no source that is none.
        let count = if round % 2 == 0 { SOURCES.len() } else { 5 };
        let list: Vec<&str> =
            (0..count).filter(|at| random >> (40 + at) & 1 == 1).map(|at| SOURCES[at]).collect();
        if list.len() < 2 {
            continue;
        }
        let pattern = if (random >> 33).is_multiple_of(4) { "nothing" } else { "needle" };
        let mut theirs = Command::new("grep");
        theirs.current_dir(dir).env("LC_ALL", "C").args(["-a", "-H", "-b", pattern]).args(&list);
        let theirs = searched(theirs, dir, &list);
        let mut ours = holdfast(dir);
        ours.args(["grep", "--json", pattern]).args(&list);
        let ours = searched(ours, dir, &list);
        let lines: Lines = theirs
            .bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let line = String::from_utf8_lossy(line);
                let mut parts = line.splitn(3, ':').map(str::to_owned);
                let mut next = || parts.next().unwrap();
                (next(), next().parse().unwrap(), next())
            })
            .collect();
        let found: Lines = ours
            .lines()
            .iter()
            .map(|line| {
                let text = |field: &str| line[field].as_str().unwrap().to_owned();
                (text("source"), line["offset"].as_u64().unwrap(), text("text"))
            })
            .collect();
        assert_eq!(found, lines, "{list:?}");
        let code = match theirs.code {
            Some(2) => 1,
            Some(1) => 3,
            _ => 0,
        };
        assert_eq!(ours.code, Some(code), "{list:?}\n{}{}", ours.err, theirs.err);
        for missing in list.iter().filter(|source| SOURCES[5..].contains(*source)) {
            assert!(ours.err.contains(&format!("holdfast: {missing}: ")), "{}", ours.err);
        }
        codes.insert(code);
    }
    assert_eq!(codes.len(), 3, "the lists have all ends");
}

#[test]
fn digests_and_statistics_go_on_behind_a_missing_source() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("a"), "some").unwrap();
    let said = ends(dir, "hash missing nosuchvault:x a /proc/self/mem/x", 1);
    assert_eq!(said.out, format!("{}  a\n", blake3::hash(b"some").to_hex()));
    assert!(said.err.contains("missing: cannot open the source: no such file or directory"), "{}", said.err);
    assert!(said.err.contains("nosuchvault:x: "), "{}", said.err);
    let said = ends(dir, "scan missing a --module stats", 1);
    assert!(said.out.starts_with("a: 4 B"), "{}", said.out);
    let said = ends(dir, "encrypt missing a -o out --key-file key", 1);
    assert!(said.err.contains("key"), "{}", said.err);
    // A ring that is none among others, and a source alone.
    fs::write(dir.join("r.hf"), "HFRING").unwrap();
    ends(dir, "hash missing", 1);
    ends(dir, "grep some missing missing", 1);
    ends(dir, "grep some a /dev/null", 0);
}

#[test]
fn pipes_and_process_substitutions_are_sources() {
    if tool("bash").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("a"), "from a file\n").unwrap();
    let plain = holdfast(dir);
    let mut bash = Command::new("bash");
    let line = "\"$0\" grep -n from <(echo x; echo from a process) - a /dev/fd/9 9< <(printf 'from nine') <<< 'from stdin'";
    bash.current_dir(dir).args(["-c", line]).arg(plain.get_program()).env("HOME", dir);
    let said = Said::from(bash.output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: BTreeSet<&str> =
        said.out.lines().map(|line| line.split_once(':').map_or("", |(_, rest)| rest)).collect();
    let wanted =
        ["2: from a process", "1: from stdin", "1: from a file", "1: from nine"].into_iter().collect();
    assert_eq!(lines, wanted, "{}", said.out);
    // A stream that does not end is left when enough of it was seen.
    let line = "yes | \"$0\" grep -l y -";
    let mut bash = Command::new("bash");
    bash.current_dir(dir).args(["-c", line]).arg(plain.get_program()).env("HOME", dir);
    let said = Said::from(bash.output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (Some(0), "-\n"), "{}", said.err);
}
