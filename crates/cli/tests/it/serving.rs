//! Sites: files are sent, found, followed, versioned and got back; tokens, certificates, drivers and vaults of a server.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::site::Site;
use crate::vaults::{configure, in_s3, servers};

use common::{Said, documented, ends, folder, holdfast, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

/// Bytes that do not compress, from a number.
fn noise(length: usize, mut state: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for byte in &mut bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    bytes
}

fn blake3(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[test]
fn a_file_is_sent_found_and_got_back() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    documented("serve", [&site.started]);
    assert_eq!(site.started["tokens"], 0);
    let first = noise((20 << 20) + 77, 1);
    fs::write(dir.join("run1.dada"), &first).unwrap();
    let line =
        "put run1.dada /lab/2026/run1.dada --meta target=m31 --meta exposure=1.5[s] --meta target=m33 --json";
    let sent = site.ends(line, 0).json();
    documented("put", [&sent]);
    assert_eq!((&sent["bytes"], &sent["resumed_bytes"]), (&json!(first.len()), &json!(0)));
    assert_eq!(sent["blake3"], blake3(&first));
    // The same bytes again are the same version.
    assert_eq!(site.ends("put run1.dada /lab/2026/run1.dada --json", 0).json()["version"], sent["version"]);
    let second = noise(100, 2);
    fs::write(dir.join("other"), &second).unwrap();
    let newer = site.ends("put other /lab/2026/run1.dada --json", 0).json();
    assert_ne!(newer["version"], sent["version"]);

    assert_eq!(site.ends("ls /", 0).out, "lab/\n");
    assert_eq!(site.ends("ls /lab/2026", 0).out, "run1.dada\n");
    assert_eq!(site.ends("ls -R /lab", 0).out, "/lab/2026/\n/lab/2026/run1.dada\n");
    assert!(site.ends("ls -l /lab/2026/run1.dada", 0).out.contains(newer["version"].as_str().unwrap()));
    let listed = site.ends("ls /lab/2026 --json", 0).json();
    documented("ls", [&listed]);
    assert_eq!((&listed["bytes"], &listed["path"]), (&json!(100), &json!("/lab/2026/run1.dada")));
    site.ends("ls /nowhere", 3);

    let stat = site.ends("stat /lab/2026/run1.dada --json", 0).json();
    documented("stat", [&stat]);
    assert_eq!(stat["versions"].as_array().unwrap().len(), 2);
    assert_eq!(stat["current"], newer["version"]);
    let told = site.ends("stat /lab/2026/run1.dada", 0).out;
    assert!(told.contains(", current") && told.contains("vault archive") && told.contains("m33"), "{told}");

    assert_eq!(site.ends("find /lab --meta exposure_>_1_and_target_=_'m31'", 0).out, "/lab/2026/run1.dada\n");
    assert_eq!(site.ends("find /lab --name *.dada --json", 0).json(), listed);
    documented("find", [&listed]);
    site.ends("find /lab --meta exposure_>_2", 3);
    let wrong = site.ends("find /lab --meta exposure_>", 2).err;
    assert!(wrong.contains("at character"), "{wrong}");

    let attributes = site.ends("meta set /lab/2026/run1.dada target=m42 day=2026-11-20 --json", 0);
    documented("meta", attributes.lines().iter());
    let listed = site.ends("meta ls /lab/2026/run1.dada", 0).out;
    assert!(listed.contains("m42") && !listed.contains("m31") && listed.contains("time"), "{listed}");
    site.ends("meta rm /lab/2026/run1.dada day exposure", 0);
    site.ends("meta add /lab/2026 note=all_of_it", 0);
    assert_eq!(site.ends("find / --meta note_like_'all*'", 0).out, "/lab/2026/\n");

    let got = site.ends("get /lab/2026/run1.dada got --json", 0).json();
    documented("get", [&got]);
    assert_eq!((&got["verified"], &got["version"]), (&json!(true), &newer["version"]));
    assert_eq!(fs::read(dir.join("got")).unwrap(), second);
    let taken = site.ends("get /lab/2026/run1.dada got", 1).err;
    assert!(taken.contains("--force"), "{taken}");
    let old = format!("get /lab/2026/run1.dada got --force --version {}", sent["version"].as_str().unwrap());
    site.ends(&old, 0);
    assert!(fs::read(dir.join("got")).unwrap() == first);
    assert_eq!(site.ends("get /lab/2026/run1.dada - --range 10-19", 0).bytes, second[10..20]);
    fs::create_dir(dir.join("into")).unwrap();
    site.ends("get /lab/2026/run1.dada into", 0);
    assert_eq!(fs::read(dir.join("into/run1.dada")).unwrap(), second);
    site.ends("get /lab/nowhere", 3);
    site.ends("get /lab/", 2);
    site.ends("put nofile /lab/x", 1);
    site.ends("put run1.dada relative/path", 2);
    assert_eq!(site.stop(), Some(0));
}

#[test]
fn a_hang_up_does_not_end_a_server() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    site.hang_up();
    site.ends("touch /lab/one", 0);
    site.hang_up();
    site.ends("touch /lab/two", 0);
    assert_eq!(site.stop(), Some(0));
}

#[test]
fn a_damaged_object_leaves_no_file() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    fs::write(dir.join("a"), noise(3 << 20, 3)).unwrap();
    site.ends("put a /lab/a", 0);
    let stat = site.ends("stat /lab/a --json", 0).json();
    let stored = dir.join("data/archive").join(stat["replicas"][0]["key"].as_str().unwrap());
    let mut bytes = fs::read(&stored).unwrap();
    bytes[1_000_000] ^= 1;
    fs::remove_file(&stored).unwrap();
    fs::write(&stored, bytes).unwrap();
    let said = site.ends("get /lab/a got", 1);
    assert!(!said.err.is_empty() && !dir.join("got").exists(), "{}", said.err);
    let left = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("got")));
}

#[test]
fn folders_are_sent_with_all_files() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    fs::create_dir_all(dir.join("2026/b")).unwrap();
    for name in ["a.txt", "empty", "b/c.txt"] {
        fs::write(dir.join("2026").join(name), if name == "empty" { "" } else { name }).unwrap();
    }
    assert!(site.ends("put 2026 /lab/2026", 2).err.contains("-r"));
    assert_eq!(site.ends("put -r 2026 /lab/2026 --json", 0).lines().len(), 3);
    let below = site.ends("ls -R /lab/2026", 0).out;
    assert_eq!(below, "/lab/2026/a.txt\n/lab/2026/b/\n/lab/2026/b/c.txt\n/lab/2026/empty\n");
    site.ends("put -r 2026 /lab/again/", 0);
    assert_eq!(site.ends("get /lab/again/2026/b/c.txt -", 0).out, "b/c.txt");
    assert_eq!(site.ends("get /lab/2026/empty -", 0).out, "");
    assert_eq!(site.ends("put 2026/a.txt 2026/b/c.txt /lab --json", 0).lines()[1]["path"], "/lab/c.txt");
}

#[test]
fn an_upload_is_followed_while_it_grows() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    let mut put = site
        .command()
        .args(["put", "-", "/lab/live", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = noise(3 << 20, 4);
    let mut input = put.stdin.take().unwrap();
    input.write_all(&bytes[..1 << 20]).unwrap();
    // The upload is there as soon as its first bytes are.
    let growing = || -> Option<Value> {
        let said: Said = site.command().args(["ls", "/lab", "--growing", "--json"]).output().unwrap().into();
        (said.code == Some(0)).then(|| said.json())
    };
    let grown = loop {
        if let Some(grown) = growing().filter(|grown| grown["bytes"].as_u64() >= Some(1 << 20)) {
            break grown;
        }
    };
    documented("ls", [&grown]);
    assert_eq!((&grown["state"], &grown["path"]), (&json!("receiving"), &json!("/lab/live")));
    let stat = site.ends("stat /lab/live --json", 0).json();
    documented("stat", [&stat]);
    let refused = site.ends("get /lab/live", 1).err;
    assert!(refused.contains("--follow") && !dir.join("live").exists(), "{refused}");
    assert_eq!(site.ends("get /lab/live - --range 0-99", 0).bytes, bytes[..100]);
    let mut get =
        site.command().args(["get", "/lab/live", "-", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = get.stdout.take().unwrap();
    let mut first = vec![0; 1 << 20];
    output.read_exact(&mut first).unwrap();
    assert!(first == bytes[..1 << 20]);
    input.write_all(&bytes[1 << 20..]).unwrap();
    drop(input);
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!(rest == bytes[1 << 20..]);
    assert_eq!(get.wait().unwrap().code(), Some(0));
    let sent: Said = put.wait_with_output().unwrap().into();
    assert_eq!((sent.code, &sent.json()["blake3"]), (Some(0), &json!(blake3(&bytes))));
    site.ends("ls /lab --growing", 3);
}

#[test]
fn a_killed_upload_is_continued() {
    let folder = folder();
    let dir = folder.path();
    // The first requests pass at once, and then one a second.
    fs::write(dir.join("slow.toml"), "[limits]\nrequests_per_second = 1\nrequest_burst = 5\n").unwrap();
    let mut slow = Site::start(dir, &["--config", "slow.toml"]);
    let bytes = noise(64 << 20, 5);
    fs::write(dir.join("big"), &bytes).unwrap();
    let mut put = slow.command().args(["put", "big", "/lab/big"]).stdout(Stdio::null()).spawn().unwrap();
    slow.event_where(|event| event["method"] == "PATCH" && event["status"] == 204);
    put.kill().unwrap();
    assert!(!put.wait().unwrap().success());
    let address = slow.url().strip_prefix("http://").unwrap().to_owned();
    assert_eq!(slow.stop(), Some(0));
    // A site at the same address goes on where the other one was.
    let site = Site::at(dir, &address, &[]);
    let sent = site.ends("put big /lab/big --json", 0).json();
    let resumed = sent["resumed_bytes"].as_u64().unwrap();
    assert!(resumed >= 8 << 20 && resumed < bytes.len() as u64, "{sent}");
    assert_eq!(sent["blake3"], blake3(&bytes));
    let marks = fs::read_dir(dir.join(".local/state/holdfast/uploads")).unwrap();
    assert_eq!(marks.count(), 0, "nothing is left to continue");
}

#[test]
fn tokens_give_access() {
    let folder = folder();
    let dir = folder.path();
    let mut site = Site::start(dir, &[]);
    fs::write(dir.join("a"), "text").unwrap();
    site.ends("put a /lab/a", 0);
    ends(dir, "token list", 3);
    let created = ends(dir, "token create --name all --scope read,write --data data --json", 0).json();
    documented("token", [&created]);
    // From here on the site is closed, although it runs.
    let closed = site.ends("ls /lab", 1).err;
    assert!(closed.contains("token"), "{closed}");
    site.token = created["token"].as_str().map(str::to_owned);
    site.ends("ls /lab", 0);
    let quiet = ends(
        dir,
        "token create --name guest --scope read --project lab --expires 30d --quiet --data data",
        0,
    );
    let guest = quiet.out.trim().to_owned();
    assert!(guest.starts_with("hft_") && !guest.contains(char::is_whitespace), "{guest}");
    site.token = Some(guest.clone());
    assert_eq!(site.ends("get /lab/a -", 0).out, "text");
    for (line, wanted) in [("put a /lab/b", "write"), ("ls /other", "project lab")] {
        let refused = site.ends(line, 1).err;
        assert!(refused.contains(wanted), "{line}: {refused}");
    }
    // A file is taken before the variable, and only if it is private.
    fs::write(dir.join("token"), created["token"].as_str().unwrap()).unwrap();
    fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(site.ends("ls /lab --token-file token", 2).err.contains("chmod 600"));
    fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    site.ends("put a /lab/b --token-file token", 0);
    let all = ends(dir, "token list --data data --json", 0).lines();
    documented("token", &all);
    assert!(
        all.len() == 2 && all[1]["name"] == "guest" && all.iter().all(|token| token.get("token").is_none())
    );
    let id = all[1]["id"].as_str().unwrap();
    documented("token", [&ends(dir, &format!("token revoke {id} --data data --json"), 0).json()]);
    assert!(site.ends("get /lab/a -", 1).err.contains("revoked"));
    site.token = Some("hft_nothing".to_owned());
    assert!(site.ends("ls /lab", 1).err.contains("unknown"));
    ends(dir, "token revoke 0000000000000000 --data data", 3);
    ends(dir, "token revoke x --data data", 2);
    ends(dir, "token create --name x --scope all --data data", 2);
    assert!(ends(dir, "token list --data data", 0).out.contains("revoked"));
}

#[test]
fn a_certificate_is_trusted_by_its_fingerprint() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &["--tls", "self-signed"]);
    let fingerprint = site.started["fingerprint"].as_str().unwrap().to_owned();
    fs::write(dir.join("a"), "text").unwrap();
    let untrusted = site.ends("put a /lab/a", 1).err;
    assert!(untrusted.contains("not trusted"), "{untrusted}");
    site.ends(&format!("put a /lab/a --fingerprint {fingerprint}"), 0);
    let other = format!("{}00", &fingerprint[..fingerprint.len() - 2]);
    let other =
        if other == fingerprint { format!("{}01", &fingerprint[..fingerprint.len() - 2]) } else { other };
    assert!(site.ends(&format!("ls /lab --fingerprint {other}"), 1).err.contains("not trusted"));
    site.ends("ls /lab --fingerprint xyz", 2);
    // The configuration file has address, token and fingerprint under a name.
    let token = ends(dir, "token create --name all --scope read --data data --quiet", 0).out;
    fs::write(dir.join("token"), token).unwrap();
    fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let settings = format!(
        "[sites.lab]\nurl = \"{}\"\nfingerprint = \"{fingerprint}\"\ntoken_file = \"{}\"\n",
        site.url(),
        dir.join("token").display()
    );
    fs::create_dir_all(dir.join(".config/holdfast")).unwrap();
    fs::write(dir.join(".config/holdfast/config.toml"), settings).unwrap();
    for line in ["ls /lab --site lab", "ls /lab"] {
        assert_eq!(run(dir, line).out, "a\n", "{line}");
    }
    ends(dir, "ls /lab --site other", 2);
}

#[test]
fn drivers_copy_extract_and_run_commands() {
    let folder = folder();
    let dir = folder.path();
    let vault = |name: &str| {
        fs::create_dir(dir.join(name)).unwrap();
        format!("url = \"{}\"", dir.join(name).display())
    };
    configure(dir, &[("main", vault("main")), ("tape", vault("tape"))]);
    let ran = dir.join("ran");
    let config = format!(
        "[store]\nvault = \"main\"\ncopies = [\"tape\"]\n\
         [[driver]]\nname = \"copy\"\naction = {{ copy = {{ vault = \"tape\" }} }}\n\
         [[driver]]\nname = \"headers\"\naction = {{ extract = {{ extractors = [\"dataset\", \"mcap\"] }} }}\n\
         [[driver]]\nname = \"mirror\"\nprojects = [\"lab\"]\n\
         [driver.action.command]\nprogram = \"cp\"\narguments = [\"--\", \"{{file}}\", \"{}\"]\n",
        ran.display()
    );
    fs::write(dir.join("site.toml"), config).unwrap();
    fs::create_dir(dir.join("run")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(dir.join("run").join(name), name.repeat(1000)).unwrap();
    }
    ends(dir, "dataset pack run -o run.mcap", 0);
    let bytes = fs::read(dir.join("run.mcap")).unwrap();
    let mut site = Site::start(dir, &["--config", "site.toml"]);
    assert_eq!(site.started["vaults"], json!(["main", "tape"]));
    site.ends("put run.mcap /lab/run.mcap", 0);
    let mut left = vec!["copy", "headers", "mirror"];
    while !left.is_empty() {
        let event = site.event_where(|event| event["event"].as_str().unwrap().starts_with("driver_"));
        assert_eq!(event["event"], "driver_succeeded", "{event}");
        left.retain(|name| event["driver"] != *name);
    }
    assert!(fs::read(&ran).unwrap() == bytes);
    assert_eq!(site.ends("find /lab --meta dataset.files_=_3_and_mcap.chunks_>_0", 0).out, "/lab/run.mcap\n");
    let stat = site.ends("stat /lab/run.mcap --json", 0).json();
    let replicas: Vec<_> = stat["replicas"].as_array().unwrap().iter().collect();
    assert_eq!(replicas.len(), 2, "{stat}");
    for replica in replicas {
        let (vault, key) = (replica["vault"].as_str().unwrap(), replica["key"].as_str().unwrap());
        assert!(fs::read(dir.join(vault).join(key)).unwrap() == bytes, "{replica}");
    }
    site.ends("get /lab/run.mcap got.mcap", 0);
    ends(dir, "dataset verify got.mcap", 0);
}

#[test]
fn objects_are_kept_in_s3() {
    let folder = folder();
    let dir = folder.path();
    let Some(server) = servers::server("s3", "bin/versitygw", &dir.join("s3")) else { return };
    configure(dir, &[("s3", in_s3(dir, &server, "s3://lab/site"))]);
    fs::write(dir.join("site.toml"), "[store]\nvault = \"s3\"\n").unwrap();
    let site = Site::start(dir, &["--config", "site.toml"]);
    let bytes = noise((9 << 20) + 5, 6);
    fs::write(dir.join("a"), &bytes).unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    site.ends("put a empty /lab/", 0);
    assert_eq!(site.ends("get /lab/empty -", 0).out, "");
    assert_eq!(site.stop(), Some(0));
    let site = Site::start(dir, &["--config", "site.toml"]);
    site.ends("get /lab/a got", 0);
    assert!(fs::read(dir.join("got")).unwrap() == bytes);
    assert_eq!(site.ends("get /lab/a - --range 9437179-9437188", 0).bytes, bytes[9_437_179..]);
}

#[test]
fn wrong_options_of_a_site_are_told() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("bad.toml"), "[store]\nvalut = \"x\"\n").unwrap();
    fs::write(dir.join("gone.toml"), "[store]\nvault = \"gone\"\n").unwrap();
    fs::write(dir.join("file"), "").unwrap();
    let _site = Site::start(dir, &[]);
    for (line, code, wanted) in [
        ("serve data --listen nowhere", 2, "--listen"),
        ("serve data --listen 127.0.0.1:0", 1, "another server uses it"),
        ("serve d --config bad.toml", 2, "line 2"),
        ("serve d --config gone.toml", 2, "[vaults.gone]"),
        ("serve d --config nofile.toml", 1, "nofile.toml"),
        ("serve d --tls maybe", 2, "self-signed"),
        ("serve d --tls a,b", 2, "cannot use the file a"),
        ("serve file/d", 1, "data folder"),
        ("ls /lab", 2, "[sites.NAME]"),
        ("ls /lab --site http://127.0.0.1:1", 1, "http://127.0.0.1:1"),
        ("ls /lab --site ftp://x", 2, "http"),
        ("ls lab --site http://127.0.0.1:1", 2, "begin with a slash"),
        ("get /lab/a --site http://127.0.0.1:1 --range 9-1", 2, "FIRST-LAST"),
        ("put file /lab/a --site http://127.0.0.1:1 --meta x", 2, "NAME=VALUE"),
        ("put - /lab/ --site http://127.0.0.1:1", 2, "standard input"),
    ] {
        let said = ends(dir, line, code).err;
        assert!(said.contains(wanted), "{line}: {said}");
    }
}

/// Commands of a help text, as they stand there.
pub(crate) fn examples(help: &str) -> Vec<String> {
    let shown = help.split_once("\nExample").unwrap_or_default().1;
    let lines = shown.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with("holdfast ") || line.starts_with("cat "));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_examples_of_site_commands_work() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    for name in ["run1.dada", "run2.dada", "2026/notes.txt"] {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), noise(5000, name.len() as u64)).unwrap();
    }
    fs::write(dir.join("targets.csv"), "path,target\n/lab/2026/run1.dada,m31\n").unwrap();
    fs::write(dir.join("targets.jsonl"), "{\"path\": \"run1.dada\", \"target\": \"m31\"}\n").unwrap();
    let password = dir.join("ann.password");
    fs::write(&password, "correct horse\n").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let reading = [
        "put",
        "meta",
        "meta import",
        "meta add",
        "meta ls",
        "meta set",
        "meta rm",
        "find",
        "ls",
        "stat",
        "get",
    ];
    let accounts =
        ["account", "account add", "account ls", "account disable", "account enable", "account rm"];
    let groups = ["group", "group add", "group ls", "group rm"];
    let rights = ["mkdir", "grant", "grants", "revoke", "log"];
    let tree =
        ["touch", "tree", "du", "cat", "replicas", "cp", "ln", "mv", "rm", "trash ls", "trash", "edit"];
    let all = reading.into_iter().chain(accounts).chain(groups).chain(rights).chain(tree);
    for command in all {
        let all = examples(&ends(dir, &format!("{command} --help"), 0).out);
        assert!(!all.is_empty(), "{command}");
        if command == "group" {
            // The examples of `account` have made and removed their accounts.
            for line in ["account add ann", "account add bob", "mkdir /public"] {
                site.ends(line, 0);
            }
        }
        for example in all.iter().filter(|example| !example.contains("--growing")) {
            if command == "get" {
                // The file that the example makes.
                let _ = fs::remove_file(dir.join("run1.dada"));
            }
            let said = run_example(dir, &site, example);
            // Nothing was denied on a site with open access.
            let code = if example.starts_with("holdfast log --denied") { 3 } else { 0 };
            assert_eq!(said.code, Some(code), "{example}: {}{}", said.out, said.err);
        }
    }
}

/// Runs an example of a help text as it stands there, for a site.
pub(crate) fn run_example(dir: &Path, site: &Site, example: &str) -> Said {
    let program = Path::new(env!("CARGO_BIN_EXE_holdfast"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", example]).current_dir(dir).env("PATH", &path).stdin(Stdio::null());
    let settings = holdfast(dir);
    let pairs = settings.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.envs(pairs).env("HOLDFAST_SITE", site.url()).env("EDITOR", "true");
    shell.env_remove("VISUAL").output().unwrap().into()
}
