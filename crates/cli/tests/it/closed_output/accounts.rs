//! Accounts, rights and tokens.

use super::Deaf;
use crate::common::folder;
use crate::common::site::Site;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(super) const COMMANDS: &[&str] = &[
    "account add",
    "account disable",
    "account enable",
    "account rm",
    "group add",
    "group rm",
    "passwd",
    "login",
    "logout",
    "grant",
    "revoke",
    "token create",
    "token revoke",
];

fn password(dir: &Path, name: &str) {
    let file = dir.join(name);
    fs::write(&file, "correct horse\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Files of kept tokens.
fn kept(dir: &Path) -> usize {
    fs::read_dir(dir.join(".config/holdfast/tokens")).map_or(0, Iterator::count)
}

#[test]
fn accounts_rights_and_tokens_are_changed_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let mut site = Site::start(dir, &[]);
    let root = site.ends("token create --name root --scope admin --data data --quiet", 0).out;
    site.token = Some(root.trim().to_owned());
    password(dir, "password");
    site.ends("mkdir /lab", 0);

    let mut deaf = Deaf::new(&site);
    deaf.run("account add ann");
    deaf.run("passwd ann --password-file password");
    assert!(site.ends("account ls --json", 0).out.contains("\"has_password\":true"));
    deaf.run("account disable ann");
    assert!(site.ends("account ls", 0).out.contains("disabled"));
    deaf.run("account enable ann");
    deaf.run("group add staff ann");
    assert!(site.ends("group ls staff", 0).out.contains("ann"));
    deaf.run("grant read /lab ann");
    assert!(site.ends("grants /lab", 0).out.contains("ann"));
    deaf.run("revoke /lab ann");
    assert!(!site.ends("grants /lab", 3).out.contains("ann"));
    deaf.run("token create --name guest --scope read --data data");
    let tokens = site.ends("token list --data data --json", 0).lines();
    let guest =
        tokens.iter().find(|token| token["name"] == "guest").unwrap()["id"].as_str().unwrap().to_owned();
    deaf.run(&format!("token revoke {guest} --data data"));
    let tokens = site.ends("token list --data data --json", 0).lines();
    let is_valid = |id: &str| tokens.iter().any(|token| token["id"] == id && token["revoked"].is_null());
    assert!(!is_valid(&guest), "{tokens:?}");

    deaf.run("login --account ann --password-file password");
    assert_eq!(kept(dir), 1);
    deaf.run("logout");
    assert_eq!(kept(dir), 0);
    deaf.run("group rm staff ann");
    site.ends("group ls staff", 3);
    deaf.run("account rm ann");
    site.ends("account ls", 3);
    deaf.tried_all(COMMANDS);
}
