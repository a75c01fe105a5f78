//! Commands of the name space.

use super::{Deaf, MANY};
use crate::common::folder;
use crate::common::site::Site;
use std::fs;
use std::fs::OpenOptions;
use std::path::Path;

pub(super) const COMMANDS: &[&str] = &[
    "put",
    "get",
    "mkdir",
    "touch",
    "cp",
    "mv",
    "ln",
    "rm",
    "edit",
    "meta add",
    "meta set",
    "meta import",
    "meta rm",
    "trash restore",
    "trash purge",
];

/// Number of entries of a collection.
fn count(site: &Site, path: &str) -> usize {
    site.ends(&format!("ls {path}"), 0).out.lines().count()
}

/// Folder with many files.
fn many_files(dir: &Path) {
    fs::create_dir(dir.join("many")).unwrap();
    for at in 0..MANY {
        fs::write(dir.join(format!("many/file-{at:03}")), at.to_string()).unwrap();
    }
}

fn paths(collection: &str) -> String {
    let paths: Vec<String> = (0..MANY).map(|at| format!("{collection}/name-{at:03}")).collect();
    paths.join(" ")
}

#[test]
fn many_names_are_changed_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    many_files(dir);
    let mut deaf = Deaf::new(&site);
    deaf.run("put -r many /lab/many");
    assert_eq!(count(&site, "/lab/many"), MANY);
    deaf.run(&format!("touch {} --json", paths("/lab/touched")));
    assert_eq!(count(&site, "/lab/touched"), MANY);
    deaf.run(&format!("mkdir -p {}", paths("/lab/made")));
    assert_eq!(count(&site, "/lab/made"), MANY);
    site.ends("mkdir /lab/copied /lab/moved /lab/second", 0);
    deaf.run("cp /lab/many/* /lab/copied/");
    assert_eq!(count(&site, "/lab/copied"), MANY);
    deaf.run("mv /lab/copied/* /lab/moved/ --json");
    assert_eq!(count(&site, "/lab/moved"), MANY);
    site.ends("ls /lab/copied", 3);
    deaf.run("ln /lab/moved/* /lab/second/");
    assert_eq!(count(&site, "/lab/second"), MANY);
    deaf.run("rm /lab/second/*");
    site.ends("ls /lab/second", 3);

    deaf.run("get /lab/many/file-007 back");
    assert_eq!(fs::read(dir.join("back")).unwrap(), b"7");
    let attributes: Vec<String> = (0..MANY).map(|at| format!("attribute-{at:03}=value")).collect();
    deaf.run(&format!("meta add /lab/many/file-007 {}", attributes.join(" ")));
    assert_eq!(site.ends("meta ls /lab/many/file-007 --json", 0).lines().len(), MANY);
    deaf.run("meta set /lab/many/file-007 attribute-000=other");
    assert!(site.ends("meta ls /lab/many/file-007", 0).out.contains("other"));
    let lines: Vec<String> = (0..MANY).map(|at| format!("/lab/many/file-{at:03},{at}\n")).collect();
    fs::write(dir.join("many.csv"), format!("path,number\n{}", lines.concat())).unwrap();
    deaf.run("meta import many.csv --json");
    let found = site.ends("find /lab/many --meta number_>=_0", 0).out.lines().count();
    assert_eq!(found, MANY);
    site.ends("meta rm /lab/many/file-007 number", 0);
    let names: Vec<&str> = attributes.iter().map(|attribute| &attribute[..13]).collect();
    deaf.run(&format!("meta rm /lab/many/file-007 {}", names.join(" ")));
    site.ends("meta ls /lab/many/file-007", 3);
    deaf.run("trash restore /lab/second/file-001");
    assert_eq!(site.ends("ls /lab/second", 0).out, "file-001\n");
    deaf.run("trash purge /lab/second/file-002");
    site.ends("trash restore /lab/second/file-002", 3);

    let words = ["edit", "/lab/many/file-008"].map(str::to_owned).to_vec();
    deaf.note(&words);
    let mut edit = site.command();
    super::close_output(edit.args(&words).env("EDITOR", "sh -c 'echo edited > \"$1\"' sh"));
    assert_eq!(edit.status().unwrap().code(), Some(0));
    assert_eq!(site.ends("cat /lab/many/file-008", 0).out, "edited\n");
    deaf.tried_all(COMMANDS);
}

#[test]
fn a_full_disk_of_the_output_fails_a_command_after_its_work() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    let mut touch = site.command();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let said = touch.arg("touch").args(paths("/lab/touched").split(' ')).stdout(full).output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(err.contains("no space left on device, standard output: make room"), "{err}");
    assert_eq!(count(&site, "/lab/touched"), MANY);
}
