//! The configuration file: names for rings, and what `record` is to do with them. Where it lies and what it says;
//! nothing here opens a ring.

use crate::failure::{Failure, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is said of RING in the help of every command.
pub(crate) const HELP: &str = "path of a ring (file or device), or its name in the configuration file";

/// Bytes of a configuration file: thousands of rings.
const MOST_BYTES: u64 = 1 << 20;

/// One ring with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedRing {
    /// Its file or device.
    pub(crate) path: PathBuf,
    /// What `holdfast record NAME` adds to its command line, before what was typed.
    #[serde(default)]
    pub(crate) record: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    rings: BTreeMap<String, NamedRing>,
}

/// A ring as it was named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What `record` adds.
    pub(crate) record: Vec<String>,
}

/// The files that are looked at, in this order; what comes first wins.
fn files(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(file) = var("HOLDFAST_CONFIG").filter(|file| !file.is_empty()) {
        return vec![file.into()];
    }
    let home = var("XDG_CONFIG_HOME")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .or_else(|| var("HOME").map(|home| Path::new(&home).join(".config")));
    let mut files: Vec<PathBuf> = home.map(|dir| dir.join("holdfast/config.toml")).into_iter().collect();
    files.push("/etc/holdfast/config.toml".into());
    files
}

/// Finds the ring that was named: what has a slash in it is a path, the rest is looked up first.
pub(crate) fn ring(named: &Path) -> Result<Place> {
    find(
        named,
        &files(|name| std::env::var_os(name)),
        std::env::var_os("HOLDFAST_CONFIG").is_some_and(|file| !file.is_empty()),
    )
}

fn find(named: &Path, files: &[PathBuf], must_exist: bool) -> Result<Place> {
    let name = named.to_str().filter(|name| !name.contains('/'));
    if let Some(name) = name {
        for file in files {
            if let Some(ring) = read(file, must_exist)?.rings.remove(name) {
                return Ok(Place { path: ring.path, record: ring.record });
            }
        }
    }
    Ok(Place { path: named.to_owned(), record: Vec::new() })
}

fn read(file: &Path, must_exist: bool) -> Result<Config> {
    let cannot = |error: &std::io::Error| Failure::io("cannot read the configuration file", file, error);
    match std::fs::metadata(file) {
        Ok(found) if found.len() > MOST_BYTES => {
            return Err(Failure::usage(format_args!(
                "the configuration file has {} bytes, {MOST_BYTES} at most are taken",
                found.len()
            ))
            .at_path(file));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
            return Ok(Config::default());
        }
        Err(error) => return Err(cannot(&error)),
        Ok(_) => {}
    }
    parse(&std::fs::read_to_string(file).map_err(|error| cannot(&error))?, file)
}

fn parse(text: &str, file: &Path) -> Result<Config> {
    let wrong = |what: String, line: usize| {
        Failure::usage(what).at(format_args!("{} line {line}", file.display())).advice(
            "a ring is written as [rings.NAME] with path = \"/dev/sdb\" and, if wanted, \
             record = [\"--source\", \"iface:eth0\", \"--name\", \"eth0\"]",
        )
    };
    let config: Config = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..at].matches('\n').count() + 1;
        wrong(error.message().lines().collect::<Vec<_>>().join(", "), line)
    })?;
    for (name, ring) in &config.rings {
        let line = || {
            let header = text.lines().position(|line| line.contains("rings") && line.contains(name.as_str()));
            header.map_or(1, |at| at + 1)
        };
        if name.is_empty() || name.contains('/') {
            return Err(wrong(format!("`{name}` cannot name a ring: it is empty or has a slash"), line()));
        }
        if !ring.path.is_absolute() {
            let path = ring.path.display();
            return Err(wrong(
                format!("the path `{path}` of ring `{name}` does not start with a slash"),
                line(),
            ));
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# rings\n[rings.lwa1]\npath = \"/dev/sdb\"\nrecord = [\"--source\", \"iface:eth0\"]\n\n[rings.lab]\npath = \"/data/lab.hf\"\n";

    fn said(text: &str) -> String {
        parse(text, Path::new("/etc/x.toml")).unwrap_err().to_string()
    }

    #[test]
    fn names_are_looked_up_and_paths_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (own, system) = (dir.path().join("own.toml"), dir.path().join("system.toml"));
        std::fs::write(&own, GOOD).unwrap();
        std::fs::write(&system, "rings.lab.path = \"/dev/sdz\"\nrings.far.path = \"/far\"").unwrap();
        let files = [own, dir.path().join("absent.toml"), system];
        let place = |name: &str| find(Path::new(name), &files, false).unwrap();
        assert_eq!(place("lwa1").path, Path::new("/dev/sdb"));
        assert_eq!(place("lwa1").record, ["--source", "iface:eth0"]);
        assert_eq!(place("lab").path, Path::new("/data/lab.hf"), "the user's file comes before the system's");
        assert_eq!(place("far").path, Path::new("/far"));
        assert_eq!(place("./lab").path, Path::new("./lab"));
        assert_eq!(place("other.hf").path, Path::new("other.hf"));
        assert!(find(Path::new("lab"), &[dir.path().join("absent.toml")], true).is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_key() {
        let text = said("[rings.a]\npath = \"/x\"\npaht = \"/y\"\n");
        assert!(text.contains("unknown field `paht`") && text.contains("/etc/x.toml line 3"), "{text}");
        let text = said("\n[ring.a]\npath = \"/x\"\n");
        assert!(text.contains("unknown field `ring`") && text.contains("line 2"), "{text}");
        let text = said("[rings.a]\n");
        assert!(text.contains("missing field `path`"), "{text}");
        let text = said("[rings.a]\npath = 3\n");
        assert!(text.contains("line 2"), "{text}");
        let text = said("[rings.b]\npath = \"/b\"\n[rings.a]\npath = \"r.hf\"\n");
        assert!(text.contains("`r.hf` of ring `a`") && text.contains("line 3"), "{text}");
    }

    #[test]
    fn the_files_are_those_of_the_user_and_of_the_system() {
        let with = |pairs: &'static [(&str, &str)]| {
            files(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()))
        };
        assert_eq!(with(&[("HOLDFAST_CONFIG", "/c"), ("HOME", "/h")]), [Path::new("/c")]);
        let system = Path::new("/etc/holdfast/config.toml");
        assert_eq!(with(&[("HOME", "/h")]), [Path::new("/h/.config/holdfast/config.toml"), system]);
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]),
            [Path::new("/x/holdfast/config.toml"), system]
        );
        assert_eq!(with(&[]), [system]);
    }
}
