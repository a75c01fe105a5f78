//! Name space of a site: the commands of its tree, one after the other on a real server, and their wrong uses.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::site::Site;

use common::{Said, documented, folder};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Site with the files `notes.txt`, `run1.dada` and `run2.dada` in `/lab/2026`.
fn lab(dir: &Path) -> Site {
    let site = Site::start(dir, &[]);
    fs::create_dir(dir.join("2026")).unwrap();
    for (name, length) in [("notes.txt", 5), ("run1.dada", 1000), ("run2.dada", 2000)] {
        fs::write(dir.join("2026").join(name), &name.repeat(length).as_bytes()[..length]).unwrap();
    }
    site.ends("put -r 2026 /lab/2026 --meta target=m31", 0);
    site
}

fn paths(said: &Said) -> Vec<String> {
    said.lines().iter().map(|line| line["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn entries_are_made_moved_copied_and_deleted() {
    let folder = folder();
    let site = lab(folder.path());
    let made = site.ends("mkdir /archive --json", 0).json();
    documented("mkdir", [&made]);
    assert_eq!(made["path"], "/archive");
    assert_eq!(site.ends("mkdir -p /archive /lab/2027/raw", 0).out, "/archive/\n/lab/2027/raw/\n");
    assert!(site.ends("mkdir /archive", 1).err.contains("`/archive` by"));
    assert!(site.ends("mkdir /lab/q/r", 1).err.contains("the collection above it is missing"));

    let copied = site.ends("cp /lab/2026/run1.dada /lab/best.dada --json", 0).json();
    documented("cp", [&copied]);
    let wanted = json!({"from": "/lab/2026/run1.dada", "to": "/lab/best.dada", "objects": 1, "collections": 0, "bytes": 1000});
    assert_eq!(copied, wanted);
    assert_eq!(site.ends("cat /lab/best.dada", 0).out, site.ends("cat /lab/2026/run1.dada", 0).out);
    assert_eq!(site.ends("find /lab --meta target_=_'m31' --name best*", 0).out, "/lab/best.dada\n");
    assert!(site.ends("cp /lab/2026 /archive", 1).err.contains("it is a collection"));
    let copied = site.ends("cp -r /lab/2026 /archive --json", 0).json();
    assert_eq!((&copied["to"], &copied["objects"]), (&json!("/archive/2026"), &json!(3)));
    assert!(site.ends("cp -r /lab/2026 /archive", 1).err.contains("it exists already"));
    assert_eq!(site.ends("cp /lab/2026/run*.dada /lab/2027/ --json", 0).lines().len(), 2);

    let moved = site.ends("mv /lab/best.dada /lab/2027/raw --json", 0).json();
    documented("mv", [&moved]);
    assert_eq!(moved, json!({"from": "/lab/best.dada", "to": "/lab/2027/raw/best.dada"}));
    site.ends("mv /lab/2027/raw/best.dada /lab/2027/first", 0);
    assert_eq!(site.ends("mv /lab/2027/run[12].dada /lab/2027/raw", 0).out.lines().count(), 2);
    assert_eq!(
        site.ends("ls -R /lab/2027", 0).out,
        "/lab/2027/first\n/lab/2027/raw/\n/lab/2027/raw/run1.dada\n/lab/2027/raw/run2.dada\n"
    );
    assert!(site.ends("ls -l -R /lab/2027", 0).out.contains("/lab/2027/raw/run1.dada"));
    assert!(site.ends("mv /lab/2027 /lab/2027/raw", 1).err.contains("below the entry itself"));
    assert!(site.ends("mv /lab/2027/first /lab/2027/raw/run1.dada", 1).err.contains("it exists already"));
    assert!(site.ends("mv /lab/2027/first /first", 1).err.contains("/PROJECT/PATH"));
    site.ends("mv /lab/nothing /lab/x", 3);
    site.ends("mv /lab/2027/x* /lab", 3);

    assert!(site.ends("rm /lab/2027/raw", 1).err.contains("recursively"));
    let deleted = site.ends("rm -r /lab/2027/raw --json", 0).json();
    documented("rm", [&deleted]);
    site.ends("rm /lab/2027/f?rst", 0);
    site.ends("rm /lab/2027/first", 3);
    let trash = site.ends("trash ls --json", 0).lines();
    documented("trash", &trash);
    assert_eq!(trash.len(), 2);
    assert_eq!(paths(&site.ends("trash ls /lab/2027/raw --json", 0)), ["/lab/2027/raw"]);
    assert!(site.ends("trash ls", 0).out.contains("/lab/2027/first"));
    site.ends("trash ls /archive", 3);
    let restored = site.ends("trash restore /lab/2027/first --to /lab/again --json", 0).json();
    documented("trash", [&restored]);
    assert_eq!(restored["path"], "/lab/again");
    let id = deleted["id"].as_str().unwrap();
    assert_eq!(site.ends(&format!("trash restore {id}"), 0).out, "/lab/2027/raw: restored\n");
    assert_eq!(site.ends("cat /lab/2027/raw/run1.dada", 0).bytes.len(), 1000);
    site.ends(&format!("trash restore {id}"), 3);
    site.ends("trash restore /lab/2027/first", 3);
    site.ends("trash restore nonsense", 1);
}

#[test]
fn trees_sums_and_contents_are_shown() {
    let folder = folder();
    let site = lab(folder.path());
    site.ends("mkdir /lab/2026/a", 0);
    let touched = site.ends("touch /lab/2026/a/empty /lab/2026/notes.txt --json", 0).lines();
    documented("touch", &touched);
    assert_eq!((&touched[0]["made"], &touched[1]["made"]), (&json!(true), &json!(false)));
    assert_eq!(site.ends("touch /lab/2026/a", 0).out, "/lab/2026/a: exists\n");
    assert_eq!(site.ends("cat /lab/2026/a/empty /lab/2026/notes.txt", 0).out, "notes");
    site.ends("touch /lab/", 2);

    let tree = "/lab\n└── 2026/\n    ├── a/\n    │   └── empty\n    ├── notes.txt\n    ├── run1.dada\n    \
                └── run2.dada\n2 collections, 4 objects\n";
    assert_eq!(site.ends("tree /lab", 0).out, tree);
    assert_eq!(site.ends("tree /lab --depth 1", 0).out, "/lab\n└── 2026/\n1 collection, 0 objects\n");
    let lines = site.ends("tree --json", 0);
    documented("tree", &lines.lines());
    assert_eq!(paths(&lines)[..3], ["/lab", "/lab/2026", "/lab/2026/a"]);
    site.ends("tree /nowhere", 3);
    site.ends("tree --depth 0", 2);

    let usage = site.ends("du /lab --json", 0).lines();
    documented("du", &usage);
    assert_eq!(usage[0], json!({"path": "/lab/2026/a", "objects": 1, "bytes": 0}));
    assert_eq!(usage[2], json!({"path": "/lab", "objects": 4, "bytes": 3005}));
    assert!(site.ends("du", 0).out.ends_with("3005           4  /\n"));
    assert!(site.ends("du /lab/2026/run1.dada", 0).out.ends_with("1000           1  /lab/2026/run1.dada\n"));

    assert_eq!(site.ends("cat /lab/2026/run*", 0).bytes.len(), 3000);
    let version = site.ends("stat /lab/2026/notes.txt --json", 0).json()["current"].clone();
    fs::write(folder.path().join("new"), "newer").unwrap();
    site.ends("put new /lab/2026/notes.txt", 0);
    // An entry with that very name is no pattern.
    site.ends("put new /lab/2026/note?.txt", 0);
    assert_eq!(site.ends("cat /lab/2026/note?.txt", 0).out, "newer");
    let old = format!("cat /lab/2026/notes.txt --version {}", version.as_str().unwrap());
    assert_eq!(site.ends(&old, 0).out, "notes");
    site.ends(&format!("{old} /lab/2026/run1.dada"), 2);
    site.ends("cat /lab/2026/none", 3);
    site.ends("cat /lab/2026/none*", 3);
    assert!(site.ends("cat /lab/2026/[", 2).err.contains("pattern"));
    site.ends("cat /lab", 2);

    let replicas = site.ends("replicas /lab/2026/run1.dada --json", 0).lines();
    documented("replicas", &replicas);
    assert_eq!((replicas.len(), &replicas[0]["state"]), (1, &json!("verified")));
    site.ends("rm /lab/2026/run1.dada", 0);
    let only = site.ends("replicas --only-here --json", 0).lines();
    documented("replicas", &only);
    assert_eq!(only.iter().filter(|replica| replica["path"].is_null()).count(), 1);
    assert!(site.ends("replicas --only-here", 0).out.contains("in the trash"));
    site.ends("replicas /lab/2026/run1.dada", 3);
    site.ends("mkdir /none", 0);
    site.ends("replicas /none", 3);
}

#[test]
fn an_object_is_edited() {
    let folder = folder();
    let dir = folder.path();
    let site = lab(dir);
    fs::create_dir(dir.join("tmp")).unwrap();
    let edit = |editor: &str, code: i32| -> Said {
        let file = dir.join("editor");
        fs::write(&file, format!("#!/bin/sh\n{editor}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = site.command();
        command.args(["edit", "/lab/2026/notes.txt", "--json"]).env_remove("VISUAL");
        // The editor has an argument.
        command.env("EDITOR", format!("'{}' -x", file.display())).env("TMPDIR", dir.join("tmp"));
        let said: Said = command.output().unwrap().into();
        assert_eq!(said.code, Some(code), "{editor}: {}{}", said.out, said.err);
        said
    };
    let left = || fs::read_dir(dir.join("tmp")).unwrap().count();
    let same = edit("true", 0).json();
    documented("edit", [&same]);
    assert_eq!((&same["changed"], &same["bytes"]), (&json!(false), &json!(5)));
    let changed = edit("[ \"$1\" = -x ] && echo ' and more' >> \"$2\"", 0).json();
    documented("edit", [&changed]);
    assert_ne!(changed["version"], same["version"]);
    assert_eq!(site.ends("cat /lab/2026/notes.txt", 0).out, "notes and more\n");
    assert!(edit("exit 7", 1).err.contains("$EDITOR"));
    assert_eq!(left(), 0);
    // The object changes while it is edited: the copy stays.
    fs::write(dir.join("other"), "other").unwrap();
    let put = format!(
        "'{}' put '{}' /lab/2026/notes.txt > /dev/null",
        env!("CARGO_BIN_EXE_holdfast"),
        dir.join("other").display()
    );
    let failed = edit(&format!("{put} && echo mine > \"$2\""), 1).err;
    assert!(failed.contains("has changed since it was copied"), "{failed}");
    assert_eq!(site.ends("cat /lab/2026/notes.txt", 0).out, "other");
    let kept = failed.split("your copy is ").nth(1).unwrap().split(": ").next().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "mine\n");
    // An editor that fails after a change loses nothing, either.
    assert!(edit("echo mine > \"$2\"; exit 1", 1).err.contains("your copy is"));
    assert_eq!((left(), site.ends("cat /lab/2026/notes.txt", 0).out.as_str()), (2, "other"));
    site.ends("edit /lab/2026/none", 3);
    site.ends("edit /lab", 2);
}

#[test]
fn a_large_collection_is_copied_and_deleted_by_a_pattern() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    let names: Vec<String> = (0..1100).map(|number| format!("/lab/c/{number:04}")).collect();
    for part in names.chunks(550) {
        site.ends(&format!("mkdir -p {}", part.join(" ")), 0);
    }
    let copied = site.ends("cp -r /lab /copy --json", 0).json();
    assert_eq!(copied["collections"], 1102);
    assert_eq!(site.ends("rm -r /copy/c/?1* --json", 0).lines().len(), 100);
    assert_eq!(site.ends("tree /copy", 0).out.lines().count(), 1 + 1001 + 1);
    let all: Vec<Value> = site.ends("trash ls --json", 0).lines();
    assert_eq!(all.len(), 100);
    // A path has at most 900 bytes.
    let deep = format!("/deep{}", "/d".repeat(440));
    site.ends(&format!("mkdir -p {deep}"), 0);
    assert_eq!(site.ends("du /deep --json", 0).lines().len(), 441);
    assert_eq!(site.ends("tree /deep --json", 0).lines().len(), 440);
    assert_eq!(site.ends("cp -r /deep /deeper --json", 0).json()["collections"], 441);
    assert!(site.ends(&format!("mkdir -p {deep}{deep}"), 1).err.contains("900 bytes"));
}
