//! Encryption and decryption: interruptions are told truly, names of outputs are found before work, and plain text is private.

use crate::common::{Said, ends, folder, holdfast};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

fn key(dir: &Path) {
    fs::write(dir.join("key"), [7; 32]).unwrap();
    fs::set_permissions(dir.join("key"), Permissions::from_mode(0o600)).unwrap();
}

/// Names in a folder that end so.
fn names(dir: &Path, ending: &str) -> Vec<String> {
    let names = fs::read_dir(dir).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

#[test]
fn an_interrupted_encryption_tells_which_outputs_are_there() {
    let folder = folder();
    let dir = folder.path();
    key(dir);
    fs::create_dir(dir.join("vault")).unwrap();
    crate::vaults::configure(dir, &[("v", format!("url = \"{}\"", dir.join("vault").display()))]);
    fs::write(dir.join("a"), "whole").unwrap();
    fs::write(dir.join("b"), "whole, too").unwrap();
    for place in ["out", "v:"] {
        let mut child = holdfast(dir)
            .args(["encrypt", "-", "a", "b", "--key-file", "key", "-o", place])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Standard input does not end: its output stays unfinished.
        let mut input = child.stdin.take().unwrap();
        input.write_all(&vec![7; 4 << 20]).unwrap();
        let out = dir.join(if place == "out" { "out" } else { "vault" });
        let is_ready = || {
            let is_begun = place != "out" || !names(&out, ".part").is_empty();
            names(&out, ".enc").len() == 2 && is_begun
        };
        while !is_ready() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        if place == "out" {
            let id = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
            let said = Said::from(child.wait_with_output().unwrap());
            assert_eq!(said.code, Some(130), "{}", said.err);
            let message =
                "interrupted: 2 outputs are complete, others are missing; 1 unfinished file was removed";
            assert!(said.err.contains(message), "{}", said.err);
            assert!(names(&out, ".part").is_empty());
        } else {
            drop(input);
            assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
        }
    }
}

#[test]
fn outputs_of_one_name_are_found_before_work() {
    let folder = folder();
    let dir = folder.path();
    key(dir);
    for (place, file) in [("s1", "x"), ("s2", "x"), ("s3/s1", "x"), ("s4", "x.enc")] {
        fs::create_dir_all(dir.join(place)).unwrap();
        fs::write(dir.join(place).join(file), place).unwrap();
    }
    for (command, sources, name) in [
        ("encrypt", "s1/x s2/x", "x.enc"),
        ("encrypt", "s1/x s1/x", "x.enc"),
        ("encrypt", "s1 s3/s1", "s1"),
        ("decrypt", "s1/x s2/x", "x.dec"),
    ] {
        let said = ends(dir, &format!("{command} {sources} -o out --key-file key"), 2);
        let (one, other) = sources.split_once(' ').unwrap();
        let message = format!(
            "cannot {command} {one} and {other} to one place: both outputs are named `{name}`: {command} them by two \
             commands, to two places"
        );
        assert!(said.err.contains(&message), "{}", said.err);
        assert!(!dir.join("out").exists());
    }
    let said = ends(dir, "encrypt s1/x s1 s2 -o out --key-file key", 2);
    assert!(said.err.contains("cannot encrypt s1/x twice: it lies in s1"), "{}", said.err);
    ends(dir, "encrypt s3/s1/x s1 s2 -o out --key-file key", 0);
    // An existing output is kept, and no option is named that the command has not.
    let said = ends(dir, "encrypt s1/x s4/x.enc -o out --key-file key", 1);
    assert!(
        said.err.contains("there is a file of that name") && !said.err.contains("--force"),
        "{}",
        said.err
    );
    assert!(dir.join("out/x.enc.enc").exists(), "the other sources are encrypted");
}

#[test]
fn plain_text_of_a_source_without_permissions_is_private() {
    let folder = folder();
    let dir = folder.path();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    key(dir);
    fs::write(dir.join("a"), "secret").unwrap();
    ends(dir, "encrypt a -o out --key-file key", 0);
    let mut child = holdfast(dir)
        .args(["decrypt", "-", "-o", "back", "--key-file", "key"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(dir.join("out/a.enc")).unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    let path = dir.join("back/stdin.dec");
    assert_eq!(fs::read(&path).unwrap(), b"secret");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
