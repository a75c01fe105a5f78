//! Configuration file: names for rings, vaults and sites, and what `record` is to do with rings. Where it lies and what it says;
//! nothing here opens a ring.

use holdfast_base::failure::{Failure, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a configuration file: thousands of rings.
const MOST_BYTES: u64 = 1 << 20;

/// One ring with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedRing {
    /// Its file or device.
    path: PathBuf,
    /// Arguments that `holdfast record NAME` puts before those of its command line.
    #[serde(default)]
    record: Vec<String>,
    /// The folder on an index drive that has copies of its index.
    #[serde(default)]
    index: Option<PathBuf>,
    /// Queries by name, which `holdfast mount` shows as files.
    #[serde(default)]
    queries: BTreeMap<String, String>,
}

/// One vault with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedVault {
    /// Folder, `s3://BUCKET/PREFIX` or `hdfs://HOST:PORT/FOLDER`.
    url: String,
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    credentials: Option<PathBuf>,
}

/// Site with its address and credentials.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedSite {
    url: String,
    #[serde(default)]
    token_file: Option<PathBuf>,
    #[serde(default)]
    fingerprint: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    rings: BTreeMap<String, NamedRing>,
    #[serde(default)]
    vaults: BTreeMap<String, NamedVault>,
    #[serde(default)]
    sites: BTreeMap<String, NamedSite>,
}

/// Vault of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultEntry {
    /// Name of the vault.
    pub name: String,
    /// Folder, `s3://BUCKET/PREFIX` or `hdfs://HOST:PORT/FOLDER`.
    pub url: String,
    /// URL of the S3 service, where it is not Amazon's.
    pub endpoint: Option<String>,
    /// Region of the S3 service.
    pub region: Option<String>,
    /// File with credentials, or `instance`.
    pub credentials: Option<PathBuf>,
}

impl VaultEntry {
    /// Entry of a folder that no file names.
    pub fn folder(path: &str) -> Self {
        Self { name: path.to_owned(), url: path.to_owned(), endpoint: None, region: None, credentials: None }
    }

    fn of(name: String, vault: NamedVault) -> Self {
        let NamedVault { url, endpoint, region, credentials } = vault;
        Self { name, url, endpoint, region, credentials }
    }
}

/// Site of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteEntry {
    /// Name of the site.
    pub name: String,
    /// Address of the site, `http(s)://HOST[:PORT][/PREFIX]`.
    pub url: String,
    /// File with the token, readable by its owner only.
    pub token_file: Option<PathBuf>,
    /// SHA-256 of the only certificate that is trusted, in hexadecimal digits.
    pub fingerprint: Option<String>,
}

/// All sites, ordered by name; the user's come before the system's of the same name.
pub fn sites() -> Result<Vec<SiteEntry>> {
    let entry =
        |(name, NamedSite { url, token_file, fingerprint })| SiteEntry { name, url, token_file, fingerprint };
    Ok(named_entries(|config| config.sites)?.into_iter().map(entry).collect())
}

/// Finds the vault of this name.
pub fn vault(name: &str) -> Result<VaultEntry> {
    let found = vaults()?.into_iter().find(|vault| vault.name == name);
    found.ok_or_else(|| {
        Failure::usage(format_args!("no vault is named `{name}`")).advice(format_args!(
            "write [vaults.{name}] with url = \"/FOLDER\" into the configuration file, or say ./{name}:… where a \
             file is meant; `holdfast vault list` lists the vaults"
        ))
    })
}

/// All vaults, ordered by name; the user's come before the system's of the same name.
pub fn vaults() -> Result<Vec<VaultEntry>> {
    let vaults = named_entries(|config| config.vaults)?;
    Ok(vaults.into_iter().map(|(name, vault)| VaultEntry::of(name, vault)).collect())
}

/// Ring of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRing {
    /// Name of the ring.
    pub name: String,
    /// Its file or device.
    pub path: PathBuf,
    /// Folder with copies of its index.
    pub index: Option<PathBuf>,
    /// Queries in SQL by their names.
    pub queries: BTreeMap<String, String>,
}

/// All rings, ordered by name.
pub fn rings() -> Result<Vec<ConfiguredRing>> {
    let rings = named_entries(|config| config.rings)?;
    let entry = |(name, ring): (String, NamedRing)| {
        let NamedRing { path, index, queries, .. } = ring;
        ConfiguredRing { name, path, index, queries }
    };
    Ok(rings.into_iter().map(entry).collect())
}

/// Entries of one section of all files; the user's come before the system's of the same name.
fn named_entries<T>(section: impl Fn(Config) -> BTreeMap<String, T>) -> Result<BTreeMap<String, T>> {
    let must_exist = std::env::var_os("HOLDFAST_CONFIG").is_some_and(|file| !file.is_empty());
    let mut all = BTreeMap::new();
    for file in files(|name| std::env::var_os(name)) {
        match read(&file, must_exist) {
            Ok(config) => {
                for (name, entry) in section(config) {
                    all.entry(name).or_insert(entry);
                }
            }
            Err(Unread::Denied(_)) if !must_exist => {}
            Err(Unread::Denied(why) | Unread::Wrong(why)) => return Err(why),
        }
    }
    Ok(all)
}

/// A ring as it was named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingEntry {
    /// The path of its file or device.
    pub path: PathBuf,
    /// Additional arguments of `record`.
    pub record: Vec<String>,
    /// The folder of its index copies.
    pub index: Option<PathBuf>,
}

/// The files that are looked at, in this order; what comes first wins.
fn files(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(file) = var("HOLDFAST_CONFIG").filter(|file| !file.is_empty()) {
        return vec![file.into()];
    }
    let own = user_folder(var).map(|folder| folder.join("config.toml"));
    let mut files: Vec<PathBuf> = own.into_iter().collect();
    files.push("/etc/holdfast/config.toml".into());
    files
}

/// Folder of the tokens that log-ins keep: `~/.config/holdfast/tokens`. Nothing without a home.
pub fn token_folder() -> Option<PathBuf> {
    Some(user_folder(|name| std::env::var_os(name))?.join("tokens"))
}

/// Folder of a user's configuration of Holdfast.
fn user_folder(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = var("XDG_CONFIG_HOME")
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .or_else(|| var("HOME").map(|home| Path::new(&home).join(".config")));
    home.map(|dir| dir.join("holdfast"))
}

/// Finds the ring that was named: what has a slash in it is a path, the rest is looked up first.
pub fn ring(named: &Path) -> Result<RingEntry> {
    let must_exist = std::env::var_os("HOLDFAST_CONFIG").is_some_and(|file| !file.is_empty());
    let files = files(|name| std::env::var_os(name));
    find(named, &files, must_exist, |file| read(file, must_exist))
}

fn find(
    named: &Path,
    files: &[PathBuf],
    must_exist: bool,
    read: impl Fn(&Path) -> Result<Config, Unread>,
) -> Result<RingEntry> {
    let name = named.to_str().filter(|name| !name.contains('/'));
    let mut unread = None;
    if let Some(name) = name {
        for file in files {
            match read(file) {
                Ok(mut config) => {
                    if let Some(ring) = config.rings.remove(name) {
                        return Ok(RingEntry { path: ring.path, record: ring.record, index: ring.index });
                    }
                }
                // Somebody else's, as where a program was started with another's HOME: it has no names for us.
                Err(Unread::Denied(why)) if !must_exist => unread = unread.or(Some((name, why))),
                Err(Unread::Denied(why) | Unread::Wrong(why)) => return Err(why),
            }
        }
    }
    match unread {
        // It may be a name from there, and nothing else of that name is here.
        Some((name, why)) if !named.exists() => {
            Err(why.advice(format_args!("let it be read, or say ./{name} where a file is meant")))
        }
        _ => Ok(RingEntry { path: named.to_owned(), record: Vec::new(), index: None }),
    }
}

/// Why nothing is known of a file.
enum Unread {
    /// It may not be read.
    Denied(Failure),
    /// It cannot be read, or makes no sense.
    Wrong(Failure),
}

fn read(file: &Path, must_exist: bool) -> Result<Config, Unread> {
    let cannot = |error: &std::io::Error| {
        let failure = Failure::io("cannot read the configuration file", file, error);
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => Unread::Denied(failure),
            _ => Unread::Wrong(failure),
        }
    };
    match std::fs::metadata(file) {
        Ok(found) if found.len() > MOST_BYTES => {
            return Err(Unread::Wrong(
                Failure::usage(format_args!(
                    "the configuration file has {} bytes, {MOST_BYTES} at most are taken",
                    found.len()
                ))
                .at_path(file),
            ));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {
            return Ok(Config::default());
        }
        Err(error) => return Err(cannot(&error)),
        Ok(_) => {}
    }
    parse(&std::fs::read_to_string(file).map_err(|error| cannot(&error))?, file).map_err(Unread::Wrong)
}

fn parse(text: &str, file: &Path) -> Result<Config> {
    let wrong = |what: String, line: usize| {
        Failure::usage(what).at(format_args!("{} line {line}", file.display())).advice(
            "a ring is written as [rings.NAME] with path = \"/dev/sdb\" and, if wanted, \
             record = [\"--source\", \"iface:eth0\", \"--name\", \"eth0\"]; a vault as [vaults.NAME] with \
             url = \"/archive\"; a site as [sites.NAME] with url = \"https://HOST:7370\"",
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
    for name in config.vaults.keys() {
        if name.is_empty() || name.contains(['/', ':']) || name == "hf" {
            return Err(wrong(
                format!("`{name}` cannot name a vault: it is empty, hf, or has a slash or colon"),
                1,
            ));
        }
    }
    for name in config.sites.keys() {
        if name.is_empty() || name.contains(['/', ':']) {
            return Err(wrong(
                format!("`{name}` cannot name a site: it is empty, or has a slash or colon"),
                1,
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
        let place = |name: &str| find(Path::new(name), &files, false, |file| read(file, false)).unwrap();
        assert_eq!(place("lwa1").path, Path::new("/dev/sdb"));
        assert_eq!(place("lwa1").record, ["--source", "iface:eth0"]);
        assert_eq!(place("lab").path, Path::new("/data/lab.hf"), "the user's file comes before the system's");
        assert_eq!(place("far").path, Path::new("/far"));
        assert_eq!(place("./lab").path, Path::new("./lab"));
        assert_eq!(place("other.hf").path, Path::new("other.hf"));
        let absent = [dir.path().join("absent.toml")];
        assert!(find(Path::new("lab"), &absent, true, |file| read(file, true)).is_err());
    }

    // As root everything can be read, so that it is only said here that it cannot.
    #[test]
    fn a_file_that_may_not_be_read_matters_only_where_a_name_from_it_may_be_meant() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().join("lab.hf");
        std::fs::write(&here, "").unwrap();
        let (own, system) = (PathBuf::from("/theirs/config.toml"), PathBuf::from("/etc/config.toml"));
        let read = |file: &Path| {
            if file.starts_with("/theirs") {
                Err(Unread::Denied(Failure::failed("cannot read").at_path(file)))
            } else {
                parse("rings.far.path = \"/far\"", file).map_err(Unread::Wrong)
            }
        };
        let files = [own, system];
        let place = |name: &Path| find(name, &files, false, read);
        assert_eq!(place(&here).unwrap().path, here);
        assert_eq!(place(Path::new("far")).unwrap().path, Path::new("/far"));
        // What is there in the folder in which tests run is a file; what is not may be a name.
        assert_eq!(place(Path::new("Cargo.toml")).unwrap().path, Path::new("Cargo.toml"));
        let said = place(Path::new("lwa1")).unwrap_err().to_string();
        assert!(said.contains("/theirs/config.toml") && said.contains("say ./lwa1"), "{said}");
        assert!(
            find(Path::new("Cargo.toml"), &files, true, read).is_err(),
            "it was named by HOLDFAST_CONFIG"
        );
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
    fn sites_have_an_address_and_credentials() {
        let text = "[sites.lab]\nurl = \"https://lab:7370\"\ntoken_file = \"/t\"\nfingerprint = \"AB\"\n";
        let config = parse(text, Path::new("/etc/x.toml")).unwrap();
        assert_eq!(config.sites["lab"].url, "https://lab:7370");
        assert!(said("[sites.lab]\ntoken = \"hft_1\"\n").contains("unknown field `token`"));
        assert!(said("[sites.\"a/b\"]\nurl = \"x\"\n").contains("cannot name a site"));
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
