//! Helpers for tests of the real programs: their paths, a folder that takes direct I/O, a recorder that ends with
//! its test, and JSON that is compared with the documentation.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

pub mod between;
pub mod by_hand;
pub mod conditions;
pub mod evaluating;
pub mod figures;
pub mod filled;
pub mod made;
pub mod recording;
pub mod site;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Folders like /tmp are memory on many machines: direct I/O wants a disk.
pub fn folder() -> TempDir {
    let disk = Path::new("/var/tmp");
    let base = if disk.is_dir() { disk.to_path_buf() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("holdfast-cli.").tempdir_in(base).unwrap()
}

/// `holdfast`, in a folder, with no configuration file but those the test makes.
pub fn holdfast(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.current_dir(folder).env("HOME", folder).env("HOLDFAST_RUN", folder.join("run"));
    command
        .env_remove("HOLDFAST_CONFIG")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("HOLDFAST_SITE")
        .env_remove("HOLDFAST_TOKEN")
        .env("USER", "tester")
        .env_remove("SUDO_USER");
    command.stdin(Stdio::null());
    command
}

/// `holdfast` as `nohup` starts it: with SIGHUP ignored.
pub fn holdfast_without_hang_ups(folder: &Path) -> Command {
    let plain = holdfast(folder);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(plain.get_program());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// The recorder is another package's program: built beside ours, unless the whole workspace was built.
pub fn recorder_program() -> PathBuf {
    program("holdfast-recorder")
}

/// The host of modules, likewise.
pub fn module_program() -> PathBuf {
    program("holdfast-module")
}

fn program(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_holdfast")).with_file_name(name);
    if !path.is_file() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", name, "--bin", name]);
        let target = path.parent().and_then(Path::parent).unwrap();
        assert!(build.env("CARGO_TARGET_DIR", target).status().unwrap().success());
    }
    path
}

/// What a command said and how it ended.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub bytes: Vec<u8>,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }
}

impl Said {
    /// The only object that it said.
    pub fn json(&self) -> Value {
        let mut all = self.lines();
        assert_eq!(all.len(), 1, "{}{}", self.out, self.err);
        all.remove(0)
    }

    /// All objects that it said.
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        self.out.lines().map(parse).collect()
    }
}

/// Runs a command line; words are separated by spaces, `_` stands for a space in a word.
pub fn run(folder: &Path, line: &str) -> Said {
    let words = line.split_whitespace().map(|word| word.replace('_', " "));
    holdfast(folder).args(words).output().unwrap().into()
}

/// Runs a command line that must end with that code.
pub fn ends(folder: &Path, line: &str, code: i32) -> Said {
    let said = run(folder, line);
    assert_eq!(said.code, Some(code), "{line}\n{}{}", said.out, said.err);
    assert!(!said.err.contains("panicked") && !said.err.contains("this is a bug"), "{}", said.err);
    said
}

/// Every field of these objects is a row of the command's table in docs/commands.md.
pub fn documented<'a>(command: &str, objects: impl IntoIterator<Item = &'a Value>) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let mut paths = BTreeSet::new();
    for object in objects {
        collect(object, "", &mut paths);
    }
    let missing: Vec<_> = paths.iter().filter(|path| !has_row(&text, command, path)).collect();
    assert!(missing.is_empty(), "docs/commands.md has no row for {missing:?} of {command}");
}

/// Collects the paths of all members, as the tables write them: `a.b`, `a[].b`.
fn collect(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                collect(value, &path, paths);
                paths.insert(path);
            }
        }
        Value::Array(values) => {
            for value in values {
                collect(value, &format!("{at}[]"), paths);
            }
        }
        _ => {}
    }
}

/// True if the table below the heading `### NAME` has a row for `path`, or for an object that contains it and whose type
/// links to another table with such a row.
fn has_row(text: &str, name: &str, path: &str) -> bool {
    let heading = format!("\n### {name}\n");
    let start = text.find(&heading).unwrap_or_else(|| panic!("docs/commands.md has no heading for {name}"));
    let section = &text[start + heading.len()..];
    let section = &section[..section.find("\n#").unwrap_or(section.len())];
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ")).any(|(field, rest)| {
        let kind = rest.split(" | ").next().unwrap_or_default();
        let linked = kind.split_once("](#").and_then(|(_, rest)| rest.split_once(')'));
        let inner = path.strip_prefix(field).and_then(|rest| rest.strip_prefix('.'));
        field == path || linked.zip(inner).is_some_and(|((table, _), inner)| has_row(text, table, inner))
    })
}

/// A tool that is not part of this repository; a test that wants it says so and goes on without, where it is absent or cannot be
/// started.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin".into(), "/sbin".into()];
    let found = std::env::split_paths(&path)
        .chain(extra)
        .map(|dir: PathBuf| dir.join(name))
        .find(|path| path.is_file());
    let Some(found) = found else {
        eprintln!("{name} is not installed: this part is not checked");
        return None;
    };
    let tried = Command::new(&found).arg("--version").stdin(Stdio::null()).output();
    // A shell, a loader and a version manager say by these codes that there is no program.
    match tried.map(|tried| tried.status.code()) {
        Ok(Some(code)) if code != 126 && code != 127 => Some(found),
        tried => {
            eprintln!("{name} cannot be started ({tried:?}): this part is not checked");
            None
        }
    }
}

/// Runs a recorder to its end with an input; words as in `run`.
pub fn record(folder: &Path, line: &str, input: Stdio) -> Said {
    recorder_program();
    let words = line.split_whitespace().map(|word| word.replace('_', " "));
    holdfast(folder).arg("record").args(words).stdin(input).output().unwrap().into()
}

/// The output of a tool when it went well.
fn done(name: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(tool(name)?).args(args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A loop device over a new file, detached at the end.
pub struct Loop(pub String);

impl Loop {
    /// `None`, with the reason printed, where that is not possible.
    pub fn new(file: &Path, bytes: u64) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
        let made = done("losetup", &["-f", "--show", file.to_str().unwrap()]);
        if made.is_none() {
            eprintln!("no loop device can be made: this is not checked");
        }
        let made = made?;
        // One whose last user was killed while it was locked stays so.
        done("blockdev", &["--setrw", &made]);
        Some(Self(made))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        done("losetup", &["-d", &self.0]);
    }
}

/// A small file system of its own, unmounted at the end.
pub struct Mount(TempDir);

impl Mount {
    /// Of memory; `None`, with the reason printed, where that is not possible.
    pub fn new(kind: &str, options: &str) -> Option<Self> {
        Self::of(&["-t", kind, "-o", options, "none"])
    }

    /// Of a file of so many bytes, in a folder that outlives it.
    pub fn over(kind: &str, file: &Path, bytes: u64) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
        done(&format!("mkfs.{kind}"), &["-q", "-F", "-m", "0", file.to_str().unwrap()])?;
        Self::of(&["-t", kind, "-o", "loop", file.to_str().unwrap()])
    }

    fn of(args: &[&str]) -> Option<Self> {
        let folder = folder();
        let mounted = done("mount", &[args, &[folder.path().to_str().unwrap()]].concat());
        if mounted.is_none() {
            eprintln!("nothing can be mounted: this is not checked");
        }
        mounted.map(|_| Self(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        done("umount", &["-l", self.0.path().to_str().unwrap()]);
    }
}
