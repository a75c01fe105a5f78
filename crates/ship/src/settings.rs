//! Settings of a shipper: the TOML file and its programmatic form. Every key that has a default may be left out.
//!
//! Here belong the keys, their defaults and their checks. Not here: parsing of units (`units`) and the use of settings.

use crate::path_filter::{Marker, PathFilter};
use crate::rate_schedule::{RateLimit, RateSchedule};
use crate::settings_values::{duration, fingerprint, limit, rules, size};
use holdfast_remote::{DEFAULT_IDLE, Endpoint, Fingerprint, RemoteError};
use serde::Deserialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Greatest number of connections: a site serves 256 of all clients.
const MOST_CONNECTIONS: usize = 64;

/// Sizes of blocks that sites accept ahead of their turn.
const BLOCKS: std::ops::RangeInclusive<u64> = 64 << 10..=8 << 20;

/// Error of settings, of the form "cannot VERB OBJECT: REASON; REMEDY".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

/// Settings of a shipper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Site that receives the files.
    pub archive: ArchiveSettings,
    /// Folder trees whose files are sent.
    #[serde(default, rename = "folder")]
    pub folders: Vec<FolderSettings>,
    /// Rings whose closed holds are sent.
    #[serde(default, rename = "ring")]
    pub rings: Vec<RingSettings>,
    /// Connections, rates and compression.
    #[serde(default)]
    pub network: NetworkSettings,
    /// Space on the local disk.
    #[serde(default)]
    pub disk: DiskSettings,
    /// Command that is run when the archive cannot keep up.
    #[serde(default)]
    pub alarm: AlarmSettings,
    /// Durable state of the shipper.
    pub state: StateSettings,
}

/// Site that receives the files, table `[archive]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSettings {
    /// Address of the site, `http(s)://HOST[:PORT][/PREFIX]`.
    pub url: String,
    /// Project at the site.
    pub project: String,
    /// File with the token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Environment variable with the token.
    #[serde(default)]
    pub token_env: Option<String>,
    /// Fingerprint of the site's self-signed certificate.
    #[serde(default, deserialize_with = "fingerprint")]
    pub fingerprint: Option<Fingerprint>,
    /// Silence of the site after which a request ends; no key of the file.
    #[serde(skip, default = "default_idle")]
    pub idle: Duration,
}

/// Sign by which a file counts as finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderEnd {
    /// The last writer closes the file.
    #[default]
    Close,
    /// The file does not change for a time.
    Quiet,
    /// A marker file appears.
    Marker,
}

/// Order in which waiting files are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FolderOrder {
    /// Files that changed longest ago come first.
    #[default]
    Oldest,
    /// Files that changed last come first.
    Newest,
}

/// Folder tree whose files are sent, table `[[folder]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderSettings {
    /// Root of the tree.
    pub path: PathBuf,
    /// Path in the project before the file's path in the tree.
    #[serde(default)]
    pub into: String,
    /// Patterns of files that are sent; empty for all files.
    #[serde(default)]
    pub include: Vec<String>,
    /// Patterns of files and folders that are not sent.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Sign by which a file counts as finished.
    #[serde(default)]
    pub end: FolderEnd,
    /// Time without change after which a file counts as finished, for `end = "quiet"`.
    #[serde(default = "default_quiet", deserialize_with = "duration")]
    pub quiet: Duration,
    /// Marker for `end = "marker"`: a suffix such as `.done` beside the file, or a file name in its folder.
    #[serde(default)]
    pub marker: Option<String>,
    /// Folders with greater numbers come first.
    #[serde(default)]
    pub priority: i32,
    /// Order within one priority.
    #[serde(default)]
    pub order: FolderOrder,
    /// True to remove each file when the archive has it verified: for folders that a program makes for shipping.
    #[serde(skip)]
    pub removes: bool,
}

/// Closed holds of a ring that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingSelect {
    /// Holds that are marked for shipping.
    #[default]
    Marked,
    /// All closed holds of the ring.
    All,
}

/// Ring whose closed holds are sent, table `[[ring]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingSettings {
    /// Path of the ring.
    pub ring: PathBuf,
    /// Selection of closed holds.
    #[serde(default)]
    pub select: RingSelect,
    /// Path in the project before the hold's name.
    #[serde(default)]
    pub into: String,
    /// Rings and folders with greater numbers come first.
    #[serde(default)]
    pub priority: i32,
}

/// Use of compression on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Compress while the network is the limit and the data become shorter.
    #[default]
    Auto,
    /// Compress every block before sending.
    Always,
    /// Send every block as it is.
    Never,
}

/// Connections, rates and compression, table `[network]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Number of parallel connections.
    pub connections: usize,
    /// Size of a block in bytes.
    #[serde(deserialize_with = "size")]
    pub block: u64,
    /// Limit of the rate while no rule of the schedule holds.
    #[serde(deserialize_with = "limit")]
    pub rate: RateLimit,
    /// Use of compression on blocks.
    pub compress: Compress,
    /// Rate limits by local time; the first rule that holds counts.
    #[serde(deserialize_with = "rules")]
    pub schedule: Vec<crate::rate_schedule::ScheduleRule>,
}

/// Space on the local disk, table `[disk]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskSettings {
    /// Free bytes of the local disk below which the alarm is raised.
    #[serde(deserialize_with = "size")]
    pub reserve: u64,
}

/// Command of the alarm, table `[alarm]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlarmSettings {
    /// Program and its arguments; empty for no command. No shell reads them.
    pub command: Vec<String>,
}

/// Durable state, table `[state]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSettings {
    /// Folder of the ledger.
    pub folder: PathBuf,
}

fn default_idle() -> Duration {
    DEFAULT_IDLE
}

fn default_quiet() -> Duration {
    Duration::from_secs(30)
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            connections: 32,
            block: 1 << 20,
            rate: RateLimit::Unlimited,
            compress: Compress::default(),
            schedule: Vec::new(),
        }
    }
}

impl NetworkSettings {
    /// Schedule of the rate limits.
    pub fn rate_schedule(&self) -> RateSchedule {
        RateSchedule { base: self.rate, rules: self.schedule.clone() }
    }
}

impl FolderSettings {
    /// Settings of a folder tree with the defaults of the file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            into: String::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            end: FolderEnd::default(),
            quiet: default_quiet(),
            marker: None,
            priority: 0,
            order: FolderOrder::default(),
            removes: false,
        }
    }

    /// Filter of the tree's files. The error is the reason and the remedy.
    pub fn filter(&self) -> Result<PathFilter, String> {
        let marker = match (self.end, &self.marker) {
            (FolderEnd::Marker, Some(marker)) => Some(Marker::parse(marker)?),
            (FolderEnd::Marker, None) => {
                return Err("end = \"marker\" needs the key 'marker'; name the marker".to_owned());
            }
            (_, Some(_)) => return Err("the key 'marker' needs end = \"marker\"; set it".to_owned()),
            (_, None) => None,
        };
        PathFilter::new(&self.include, &self.exclude, marker)
    }
}

impl ArchiveSettings {
    /// Endpoint of the site, with the token of its file or environment variable.
    pub fn endpoint(&self) -> Result<Endpoint, SettingsError> {
        let parsed: Result<_, RemoteError> = Endpoint::parse(&self.url);
        let mut endpoint = parsed.map_err(|error| SettingsError(error.message))?;
        endpoint.fingerprint = self.fingerprint;
        endpoint.idle = self.idle;
        endpoint.token = match (&self.token_file, &self.token_env) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    let file = file.display();
                    SettingsError(format!("cannot read the token file {file}: {error}; correct 'token_file'"))
                })?;
                Some(text.trim().to_owned())
            }
            (None, Some(name)) => {
                let text = std::env::var(name).map_err(|error| {
                    let reason = format!("cannot read the token in the variable {name}: {error}; set it");
                    SettingsError(reason)
                })?;
                Some(text.trim().to_owned())
            }
            (None, None) => None,
        };
        Ok(endpoint)
    }
}

impl Settings {
    /// Settings without folders and rings, with the defaults of the file.
    pub fn new(url: &str, project: &str, state: impl Into<PathBuf>) -> Self {
        let archive = ArchiveSettings {
            url: url.to_owned(),
            project: project.to_owned(),
            token_file: None,
            token_env: None,
            fingerprint: None,
            idle: DEFAULT_IDLE,
        };
        Self {
            archive,
            folders: Vec::new(),
            rings: Vec::new(),
            network: NetworkSettings::default(),
            disk: DiskSettings::default(),
            alarm: AlarmSettings::default(),
            state: StateSettings { folder: state.into() },
        }
    }

    /// Reads and checks a file of settings.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            SettingsError(format!("cannot read the settings {}: {error}; check the path", file.display()))
        })?;
        Self::parse(&text, &file.display().to_string())
    }

    /// Parses and checks the text of settings; errors name `source`.
    pub fn parse(text: &str, source: &str) -> Result<Self, SettingsError> {
        let settings: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let number = text[..at].matches('\n').count() + 1;
            let line = text.lines().nth(number - 1).unwrap_or_default().trim();
            let reason = error.message();
            let remedy = if reason.contains("; ") { "" } else { "; correct this line" };
            SettingsError(format!(
                "cannot use the settings {source}: line {number}, '{line}': {reason}{remedy}"
            ))
        })?;
        settings.check().map_err(|SettingsError(reason)| {
            SettingsError(reason.replacen("the settings", &format!("the settings {source}"), 1))
        })?;
        Ok(settings)
    }

    /// Checks the settings as a whole.
    pub fn check(&self) -> Result<(), SettingsError> {
        let refuse = |reason: String| Err(SettingsError(format!("cannot use the settings: {reason}")));
        if let Err(error) = Endpoint::parse(&self.archive.url) {
            return refuse(format!("[archive] url: {}", error.message));
        }
        if self.archive.project.is_empty() {
            return refuse("[archive] project is empty; name the project".to_owned());
        }
        if self.archive.token_file.is_some() && self.archive.token_env.is_some() {
            return refuse("[archive] has token_file and token_env; leave one out".to_owned());
        }
        if self.folders.is_empty() && self.rings.is_empty() {
            return refuse("nothing is to be sent; add a table [[folder]] or [[ring]]".to_owned());
        }
        let intos =
            self.folders.iter().map(|folder| &folder.into).chain(self.rings.iter().map(|ring| &ring.into));
        for into in intos {
            let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
            if !into.is_empty() && !into.split('/').all(is_plain) {
                return refuse(format!("into = '{into}' is no relative path; write it like 'a/b'"));
            }
        }
        let mut roots = HashSet::new();
        for folder in &self.folders {
            let path = folder.path.display();
            if !roots.insert((&folder.path, &folder.into)) {
                return refuse(format!("[[folder]] {path} occurs twice; leave one out or change 'into'"));
            }
            if let Err(reason) = folder.filter() {
                return refuse(format!("[[folder]] {path}: {reason}"));
            }
        }
        let network = &self.network;
        if !(1..=MOST_CONNECTIONS).contains(&network.connections) {
            let count = network.connections;
            return refuse(format!("[network] connections = {count}; use 1 to {MOST_CONNECTIONS}"));
        }
        if !BLOCKS.contains(&network.block) {
            return refuse(format!("[network] block has {} bytes; use 64KiB to 8MiB", network.block));
        }
        Ok(())
    }
}
