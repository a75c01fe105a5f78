//! Options file of `holdfast serve`: address, encryption, database of the catalog, vaults, limits and drivers, in TOML.

use holdfast_base::ByteSize;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::times;
use holdfast_server::{DriverOptions, Limits, Transport};
use serde::{Deserialize, Deserializer, de};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// Options of a server as its file has them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptionsFile {
    /// Name of this site at other sites.
    pub(crate) name: Option<String>,
    /// Address to listen on.
    pub(crate) listen: Option<SocketAddr>,
    /// Encryption of the connections.
    #[serde(default, deserialize_with = "parsed_if")]
    pub(crate) tls: Option<TransportChoice>,
    /// Database of the catalog.
    #[serde(default)]
    pub(crate) catalog: CatalogSection,
    /// Vaults of the objects.
    #[serde(default)]
    pub(crate) store: StoreSection,
    /// Rings that clients may search.
    #[serde(default)]
    pub(crate) search: SearchSection,
    /// Limits that differ from the defaults.
    #[serde(default)]
    limits: LimitsSection,
    /// Drivers of new versions.
    #[serde(default, rename = "driver")]
    pub(crate) drivers: Vec<DriverOptions>,
}

/// Section `[catalog]` of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogSection {
    /// Connection to `PostgreSQL`; without it the catalog is a file in the data folder.
    pub(crate) postgres: Option<String>,
    /// Schema of the tables.
    pub(crate) schema: Option<String>,
}

/// Section `[store]` of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSection {
    /// Vault of new versions; without it they are in the data folder.
    pub(crate) vault: Option<String>,
    /// Further vaults, to which drivers copy.
    #[serde(default)]
    pub(crate) copies: Vec<String>,
}

/// Section `[search]` of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchSection {
    /// Rings of the configuration file that clients may search.
    #[serde(default)]
    pub(crate) rings: Vec<String>,
}

/// Section `[limits]` of the file. The meanings and defaults are those of [`Limits`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsSection {
    connections: Option<usize>,
    strangers: Option<usize>,
    #[serde(default, deserialize_with = "parsed_if")]
    request: Option<ByteSize>,
    #[serde(default, deserialize_with = "parsed_if")]
    upload: Option<ByteSize>,
    open_uploads: Option<usize>,
    #[serde(default, deserialize_with = "span_if")]
    upload_lifetime: Option<Duration>,
    requests_per_second: Option<u32>,
    request_burst: Option<u32>,
    #[serde(default, deserialize_with = "parsed_if")]
    memory: Option<ByteSize>,
    #[serde(default, deserialize_with = "parsed_if")]
    reserved_space: Option<ByteSize>,
    background_jobs: Option<usize>,
    driver_jobs: Option<usize>,
}

/// Encryption as the command line and the file write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransportChoice(pub(crate) Transport);

impl FromStr for TransportChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "plain" => Ok(Self(Transport::Plain)),
            "self-signed" => Ok(Self(Transport::SelfSigned)),
            files => match files.split_once(',') {
                Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() => {
                    Ok(Self(Transport::Files { certificate: certificate.into(), key: key.into() }))
                }
                _ => Err(format!("`{text}` is no encryption: take plain, self-signed, or CERT.pem,KEY.pem")),
            },
        }
    }
}

/// Value of a text that has a notation of its own.
fn parsed_if<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(de::Error::custom)
}

fn span_if<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    times::span(&text).map(Some).map_err(de::Error::custom)
}

impl OptionsFile {
    /// Reads the file at a path.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path);
        let text =
            text.map_err(|error| Failure::io("cannot read the options of the server", path, &error))?;
        toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..at].matches('\n').count() + 1;
            Failure::usage(error.message().lines().collect::<Vec<_>>().join(", "))
                .at(format_args!("{} line {line}", path.display()))
                .advice("`holdfast serve --help` shows a file")
        })
    }

    /// Limits of the server: those of the file over the defaults.
    pub(crate) fn limits(&self) -> Limits {
        let (given, defaults) = (&self.limits, Limits::default());
        let size = |given: Option<ByteSize>, default: u64| given.map_or(default, |size| size.0);
        Limits {
            connections: given.connections.unwrap_or(defaults.connections),
            strangers: given.strangers.or(defaults.strangers),
            request_body: size(given.request, defaults.request_body),
            upload: size(given.upload, defaults.upload),
            open_uploads: given.open_uploads.unwrap_or(defaults.open_uploads),
            upload_lifetime: given.upload_lifetime.unwrap_or(defaults.upload_lifetime),
            requests_per_second: given.requests_per_second.unwrap_or(defaults.requests_per_second),
            request_burst: given.request_burst.unwrap_or(defaults.request_burst),
            ahead_bytes: size(given.memory, defaults.ahead_bytes as u64) as usize,
            reserved_space: size(given.reserved_space, defaults.reserved_space),
            background_jobs: given.background_jobs.unwrap_or(defaults.background_jobs),
            driver_jobs: given.driver_jobs.unwrap_or(defaults.driver_jobs),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_server::DriverAction;

    fn read(text: &str) -> Result<OptionsFile> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.toml");
        fs::write(&path, text).unwrap();
        OptionsFile::read(&path)
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = "listen = \"0.0.0.0:7370\"\ntls = \"self-signed\"\n[catalog]\npostgres = \"host=db\"\n\
            [store]\nvault = \"s3\"\ncopies = [\"tape\"]\n[limits]\nupload = \"1TiB\"\nupload_lifetime = \"2d\"\n\
            connections = 9\n[[driver]]\nname = \"copy\"\naction = { copy = { vault = \"tape\" } }\n";
        let file = read(text).unwrap();
        assert_eq!(file.tls, Some(TransportChoice(Transport::SelfSigned)));
        assert_eq!((file.store.vault.as_deref(), file.store.copies.len()), (Some("s3"), 1));
        let limits = file.limits();
        assert_eq!((limits.upload, limits.connections), (1 << 40, 9));
        assert_eq!(limits.upload_lifetime, Duration::from_hours(48));
        assert_eq!(limits.open_uploads, Limits::default().open_uploads);
        assert_eq!(file.drivers[0].action, DriverAction::Copy { vault: "tape".to_owned() });
    }

    #[test]
    fn an_error_names_line_and_key() {
        for (text, wanted) in [
            ("\nlisen = \"x\"\n", "line 2"),
            ("[limits]\nupload = \"many\"\n", "many"),
            ("tls = \"maybe\"\n", "self-signed"),
            ("[[driver]]\nname = \"x\"\naction = { fly = {} }\n", "fly"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(wanted) && said.contains("site.toml line"), "{said}");
        }
    }

    #[test]
    fn certificate_and_key_are_two_files() {
        let files = "c.pem,k.pem".parse::<TransportChoice>().unwrap();
        let wanted = Transport::Files { certificate: "c.pem".into(), key: "k.pem".into() };
        assert_eq!(files, TransportChoice(wanted));
        assert!("c.pem,".parse::<TransportChoice>().is_err());
    }
}
