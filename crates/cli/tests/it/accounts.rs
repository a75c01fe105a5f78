//! Accounts of a site: commands of administrators, logging in with a password and by membership, and rights on collections.

use crate::common::site::Site;
use crate::common::{Said, documented, folder, holdfast};
use crate::serving::examples;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// No wait takes longer than this, unless something is wrong.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

fn secret(dir: &Path, name: &str, text: &str) -> String {
    let file = dir.join(name);
    fs::write(&file, format!("{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    name.to_owned()
}

/// Site with a token of an administrator.
fn site(dir: &Path) -> Site {
    let mut site = Site::start(dir, &[]);
    let said: Said = holdfast(dir)
        .args(["token", "create", "--name", "root", "--scope", "admin", "--data", "data", "--quiet"])
        .output()
        .unwrap()
        .into();
    site.token = Some(said.out.trim().to_owned());
    site
}

/// Runs a command line as the person who is logged in.
fn as_logged_in(site: &mut Site, line: &str, code: i32) -> Said {
    let admin = site.token.take();
    let said = site.ends(line, code);
    site.token = admin;
    said
}

#[test]
fn people_log_in_and_have_the_rights_that_they_were_granted() {
    let folder = folder();
    let dir = folder.path();
    let mut site = site(dir);
    let password = secret(dir, "ann", "correct horse");
    site.ends("account ls", 3);
    let ann = site.ends(&format!("account add ann --password-file {password} --json"), 0).json();
    documented("account", [&ann]);
    assert_eq!(ann, json!({"name": "ann", "kind": "person", "has_password": true, "disabled": false}));
    assert_eq!(site.ends("account add m31 --project", 0).out, "m31: project, without a password\n");
    assert!(site.ends("account add ann", 1).err.contains("an account or a group has it already"));
    assert!(site.ends("account ls", 0).out.contains("ann   person"));
    assert_eq!(site.ends("account ls --json", 0).lines().len(), 2);
    site.ends("group ls", 3);
    let members = site.ends("group add m31 ann --json", 0).lines();
    documented("group", &members);
    assert_eq!(site.ends("group add staff ann", 0).out, "ann added to staff\n");
    assert_eq!(site.ends("group ls m31 --json", 0).lines(), members);
    assert!(site.ends("group ls", 0).out.contains("staff  ann"));
    site.ends("group add staff nobody", 3);

    // Without a terminal there is no question for a password.
    assert!(as_logged_in(&mut site, "login --account ann", 2).err.contains("--password-file"));
    let wrong = secret(dir, "wrong", "wrong horse");
    assert!(
        as_logged_in(&mut site, &format!("login --account ann --password-file {wrong}"), 1)
            .err
            .contains("is wrong")
    );
    let line = format!("login --account ann --password-file {password} --json");
    let logged = as_logged_in(&mut site, &line, 0).json();
    documented("login", [&logged]);
    let file = Path::new(logged["file"].as_str().unwrap()).to_owned();
    assert!(file.starts_with(dir.join(".config/holdfast/tokens")), "{}", file.display());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    site.ends("mkdir /m31 --owner m31", 0);
    fs::write(dir.join("notes"), "notes").unwrap();
    site.ends("put notes /lab/a/notes", 0);
    site.ends("put notes /secret/notes", 0);
    let granted = site.ends("grant read /lab/a staff --json", 0).json();
    documented("grant", [&granted]);
    site.ends("grant read /lab/a nobody", 3);
    site.ends("grant all /lab/a ann", 2);
    assert_eq!(as_logged_in(&mut site, "ls -R /", 0).out, "/lab/\n/lab/a/\n/lab/a/notes\n/m31/\n");
    assert_eq!(as_logged_in(&mut site, "cat /lab/a/notes", 0).out, "notes");
    let refused = as_logged_in(&mut site, "put notes /lab/a/more", 1).err;
    assert!(refused.contains("the account needs the right write on `/lab/a/more`"), "{refused}");
    as_logged_in(&mut site, "ls /secret", 1);
    as_logged_in(&mut site, "account ls", 1);

    // As the project account, which the group of its name may use.
    let switched = as_logged_in(&mut site, "login --account m31", 0).out;
    assert!(switched.contains(" as m31 until "), "{switched}");
    as_logged_in(&mut site, "put notes /m31/raw/notes", 0);
    as_logged_in(&mut site, "grant write /m31/raw ann", 0);
    let grants = as_logged_in(&mut site, "grants /m31/raw --json", 0).lines();
    documented("grants", &grants);
    let own = json!({"subject": "m31", "right": "own", "path": "/m31"});
    assert_eq!(grants, [own, json!({"subject": "ann", "right": "write", "path": "/m31/raw"})]);
    assert!(as_logged_in(&mut site, "grants /m31/raw", 0).out.contains("ann      write  /m31/raw"));
    let revoked = as_logged_in(&mut site, "revoke /m31/raw ann --json", 0).json();
    documented("revoke", [&revoked]);
    as_logged_in(&mut site, "revoke /m31/raw ann", 1);
    site.ends("grants /secret", 3);

    let out = as_logged_in(&mut site, "logout --json", 0).json();
    documented("logout", [&out]);
    assert_eq!(out["revoked"], json!(true));
    assert!(!file.exists());
    as_logged_in(&mut site, "logout", 3);
    as_logged_in(&mut site, "ls /", 1);

    let denied = site.ends("log --denied --json", 0).lines();
    documented("log", &denied);
    assert!(denied.iter().all(|record| record["outcome"] == "denied"));
    let told = site.ends("log --since 1h", 0).out;
    assert!(told.contains("m31") && told.contains("read on /lab/a to staff"), "{told}");
    assert!(told.contains("account add") && told.contains("127.0.0.1"), "{told}");
    as_logged_in(&mut site, "log", 1);

    // A disabled account has no access, and a log-out forgets its token all the same.
    as_logged_in(&mut site, &line, 0);
    assert_eq!(site.ends("account disable ann", 0).out, "ann: person, disabled\n");
    assert!(as_logged_in(&mut site, "ls /", 1).err.contains("disabled or removed"));
    site.ends("account enable ann", 0);
    as_logged_in(&mut site, "ls /", 0);
    let removed = site.ends("account rm ann --json", 0).json();
    documented("account", [&removed]);
    site.ends("account rm ann", 3);
    assert_eq!(as_logged_in(&mut site, "logout --json", 0).json()["revoked"], json!(false));
    site.ends("group rm m31 ann", 3);
}

#[test]
fn tokens_of_accounts_are_made_in_the_data_folder() {
    let folder = folder();
    let dir = folder.path();
    let mut site = site(dir);
    site.ends("account add ann", 0);
    let made = site.ends("token create --name ann --scope read --account ann --data data --json", 0).json();
    documented("token", [&made]);
    assert_eq!(made["account"], "ann");
    assert!(site.ends("token list --data data", 0).out.contains("ann"));
    site.ends("token create --name x --scope replicate --account ann --data data", 2);
    site.ends("token create --name x --scope read --account a/b --data data", 2);
    site.token = made["token"].as_str().map(str::to_owned);
    assert!(site.ends("stat /", 1).err.contains("the right read on `/`"));
}

/// Runs a command at a terminal that controls it, and answers each question.
fn at_terminal(site: &Site, words: &[&str], answers: &[(&str, &str)]) -> (Option<i32>, String) {
    let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
    let mut options = File::options();
    let there = options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(name).unwrap();
    let program = site.command();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(program.get_program()).args(words);
    command.current_dir(program.get_current_dir().unwrap());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.stdin(there).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let (mut keys, mut shown) = (File::from(keys), String::new());
    for (question, answer) in answers {
        while !shown.ends_with(question) {
            let ready = poll(&mut [PollFd::new(&keys, PollFlags::IN)], Some(&PATIENCE)).unwrap();
            assert!(ready > 0, "nothing more is shown than {shown:?}");
            let mut some = [0; 4096];
            let read = keys.read(&mut some).unwrap();
            shown.push_str(&String::from_utf8_lossy(&some[..read]));
        }
        keys.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let code = child.wait().unwrap().code();
    assert!(answers.iter().all(|(_, answer)| !shown.contains(answer)), "{shown}");
    (code, said)
}

#[test]
fn passwords_are_asked_for_without_echo() {
    let folder = folder();
    let dir = folder.path();
    let mut site = site(dir);
    site.ends("account add ann", 0);
    let (first, again) = ("new password: ", "new password again: ");
    let differ = [(first, "correct horse"), (again, "correct hearse")];
    let (code, said) = at_terminal(&site, &["passwd", "ann"], &differ);
    assert!(code == Some(2) && said.contains("differ"), "{said}");
    let (code, said) =
        at_terminal(&site, &["passwd", "ann"], &[(first, "correct horse"), (again, "correct horse")]);
    assert_eq!((code, said.as_str()), (Some(0), "changed the password of ann\n"));
    let admin = site.token.take();
    let (code, said) =
        at_terminal(&site, &["login", "--account", "ann"], &[("password of ann: ", "correct horse")]);
    assert!(code == Some(0) && said.contains("as ann until"), "{said}");
    let answers =
        [("current password: ", "correct horse"), (first, "battery staple"), (again, "battery staple")];
    let (code, said) = at_terminal(&site, &["passwd"], &answers);
    assert_eq!((code, said.as_str()), (Some(0), "changed the password\n"));
    let (current, new) = (secret(dir, "current", "battery staple"), secret(dir, "new", "correct horse"));
    let line = format!("passwd --current-password-file {current} --password-file {new} --json");
    documented("passwd", [&site.ends(&line, 0).json()]);
    assert!(site.ends(&line, 1).err.contains("is wrong"));
    site.token = admin;
    assert_eq!(
        site.ends(&format!("passwd ann --password-file {current} --json"), 0).json(),
        json!({"account": "ann"})
    );
    fs::set_permissions(dir.join("current"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(site.ends("passwd ann --password-file current", 2).err.contains("chmod 600"));
    let listed: Vec<Value> = site.ends("account ls --json", 0).lines();
    assert_eq!(listed[0]["has_password"], json!(true));
}

#[test]
fn the_examples_of_log_ins_and_tokens_work() {
    let folder = folder();
    let dir = folder.path();
    let mut site = site(dir);
    let words = "correct horse";
    secret(dir, "ann.password", words);
    // The name of the user in tests, and that of the examples.
    for name in ["tester", "ann"] {
        site.ends(&format!("account add {name} --password-file ann.password"), 0);
    }
    site.ends("account add m31 --project", 0);
    site.ends("group add m31 ann", 0);
    let config = format!("[sites.lab]\nurl = \"{}\"\n", site.url());
    fs::create_dir_all(dir.join(".config/holdfast")).unwrap();
    fs::write(dir.join(".config/holdfast/config.toml"), config).unwrap();
    let (current, new, again) =
        (("current password: ", words), ("new password: ", words), ("new password again: ", words));
    let own = [("password of tester: ", words)];
    let ann = [("password of ann: ", words)];
    let answers = |example: &str| match example {
        "holdfast login" => own.to_vec(),
        "holdfast login --account ann" => ann.to_vec(),
        "holdfast passwd" => vec![current, new, again],
        "holdfast passwd ann" => vec![new, again],
        _ => Vec::new(),
    };
    let admin = site.token.take();
    for command in ["login", "passwd", "logout", "token", "token create", "token list", "token revoke"] {
        let all = examples(&site.ends(&format!("{command} --help"), 0).out);
        assert!(!all.is_empty(), "{command}");
        for example in &all {
            // An administrator changes the password of another account, and only who is logged in can log out.
            site.token = admin.clone().filter(|_| example.starts_with("holdfast passwd ann"));
            if command == "logout" {
                site.ends("login --account ann --password-file ann.password", 0);
            }
            let mut words: Vec<&str> = example.split(' ').skip(1).collect();
            // The identity of a token of this site.
            let made = site.ends("token create --name x --scope read --json", 0).json();
            if command.starts_with("token") && words[1] == "revoke" {
                words[2] = made["id"].as_str().unwrap();
            }
            let (code, said) = at_terminal(&site, &words, &answers(example));
            assert_eq!(code, Some(0), "{example}: {said}");
        }
    }
}
