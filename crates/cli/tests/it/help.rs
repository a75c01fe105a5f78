//! Help texts, word for word: a change of the command line shows in review. To take over a change on purpose:
//! `HOLDFAST_BLESS=1 cargo test -p holdfast-cli --test it help`.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{ends, folder, recorder_program};
use std::fs;
use std::path::Path;

const COMMANDS: [&str; 70] = [
    "",
    "profile",
    "plan",
    "format",
    "prove",
    "record",
    "status",
    "streams",
    "slots",
    "gaps",
    "read",
    "query",
    "sql",
    "grep",
    "hash",
    "scan",
    "encrypt",
    "decrypt",
    "concat",
    "index",
    "hold",
    "holds",
    "release",
    "purge",
    "grow",
    "evacuate",
    "archive",
    "dataset",
    "vault",
    "serve",
    "ship",
    "token",
    "account",
    "group",
    "passwd",
    "login",
    "logout",
    "grant",
    "revoke",
    "grants",
    "log",
    "site",
    "conflicts",
    "policy",
    "jobs",
    "stage",
    "put",
    "get",
    "ls",
    "stat",
    "find",
    "meta",
    "mkdir",
    "mount",
    "shell",
    "touch",
    "cp",
    "mv",
    "ln",
    "rm",
    "trash",
    "cat",
    "edit",
    "tree",
    "du",
    "replicas",
    "audit",
    "check",
    "metrics",
    "completion",
];

#[test]
fn help_is_as_it_was() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = folder();
    recorder_program();
    for command in COMMANDS {
        let name = if command.is_empty() { "holdfast" } else { command };
        let said = ends(folder.path(), &format!("{command} --help"), 0).out;
        let file = golden.join(format!("help-{name}.txt"));
        if std::env::var_os("HOLDFAST_BLESS").is_some() {
            fs::write(&file, &said).unwrap();
        }
        let wanted = fs::read_to_string(&file).unwrap_or_default();
        assert!(said == wanted, "{name} --help has changed; it says now:\n{said}");
        // The recorder's is set by hand.
        let most = if name == "record" { 160 } else { 110 };
        assert!(said.lines().all(|line| line.chars().count() <= most), "{name} --help is too wide");
    }
}

#[test]
fn every_command_is_listed_and_wrong_use_is_told_with_code_2() {
    let folder = folder();
    let all = ends(folder.path(), "--help", 0).out;
    // What a command does may go on in the next line, further in.
    let listed =
        all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, [&COMMANDS[1..], &["help"]].concat());
    for line in [
        "",
        "frobnicate",
        "status",
        "status r --what",
        "hold r",
        "release r x",
        "read r --last --5m",
        "gaps r --from yesterday",
        "record r --source stdin --name s --metrics 127.0.0.1:x",
    ] {
        let said = ends(folder.path(), line, 2);
        assert!(
            said.err.starts_with("holdfast: ") && said.out.is_empty(),
            "{line}: {}{}",
            said.out,
            said.err
        );
    }
    let said = ends(folder.path(), "", 2);
    assert_eq!(said.err, "holdfast: no command was given: `holdfast --help` lists them\n");
    let said = ends(folder.path(), "release r x --json", 2);
    assert_eq!(said.json()["exit"], 2);
    assert!(said.json()["error"].as_str().unwrap().contains("`x` is not a hold: give its number"));
    assert!(ends(folder.path(), "--version", 0).out.starts_with("holdfast 0."));
}
