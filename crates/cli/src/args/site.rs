//! Options that all commands for a site share: its address, token and fingerprint.

use crate::site::{KeptToken, Session};
use holdfast_base::failure::{Failure, Result};
use holdfast_client::config::{self, SiteEntry};
use holdfast_remote::Endpoint;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a token's file at most.
const MOST_TOKEN: u64 = 4096;

/// Site that a command works on.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SiteArgs {
    /// Site: its URL, or a name from the configuration file (default: `$HOLDFAST_SITE`, else the only site there)
    #[arg(long, value_name = "URL|NAME")]
    site: Option<String>,
    /// File with the token, readable by its owner only (default: `$HOLDFAST_TOKEN`, else that of the configuration file, else that of `holdfast login`)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// SHA-256 of the only certificate to trust, as the server prints it
    #[arg(long, value_name = "SHA256")]
    fingerprint: Option<String>,
}

impl SiteArgs {
    /// Session with the site. No connection is made yet.
    pub(crate) fn session(&self) -> Result<Session> {
        let (mut endpoint, token_file) = self.address()?;
        endpoint.token = match (&self.token_file, variable("HOLDFAST_TOKEN"), &token_file) {
            (Some(file), _, _) | (None, None, Some(file)) => Some(token(file)?),
            (None, Some(token), _) => Some(token),
            (None, None, None) => KeptToken::of(&endpoint).read()?,
        };
        Session::open(&endpoint)
    }

    /// Address of the site with its fingerprint and without a token, and the token's file of the configuration file.
    pub(crate) fn address(&self) -> Result<(Endpoint, Option<PathBuf>)> {
        let named = self.site.clone().or_else(|| variable("HOLDFAST_SITE"));
        let entry = entry(named.as_deref())?;
        let mut endpoint = Endpoint::parse(&entry.url).map_err(|error| Failure::usage(error).at("--site"))?;
        let fingerprint = self.fingerprint.as_ref().or(entry.fingerprint.as_ref());
        let fingerprint = fingerprint.map(|text| text.parse()).transpose();
        endpoint.fingerprint = fingerprint.map_err(|error| Failure::usage(error).at("--fingerprint"))?;
        Ok((endpoint, entry.token_file))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Entry of a URL, of a name in the configuration file, or of the only site there.
fn entry(named: Option<&str>) -> Result<SiteEntry> {
    if let Some(url) = named.filter(|named| named.contains("://")) {
        return Ok(SiteEntry {
            name: url.to_owned(),
            url: url.to_owned(),
            token_file: None,
            fingerprint: None,
        });
    }
    let mut sites = config::sites()?;
    let advice = "give --site URL, or write [sites.NAME] with url = \"https://HOST:7370\" into the configuration \
                  file";
    match named {
        Some(name) => {
            let found = sites.into_iter().find(|site| site.name == name);
            found.ok_or_else(|| {
                Failure::usage(format_args!("no site is named `{name}`")).at("--site").advice(advice)
            })
        }
        None => match sites.pop() {
            Some(only) if sites.is_empty() => Ok(only),
            Some(_) => {
                Err(Failure::usage("the configuration file has several sites").advice("choose one by --site"))
            }
            None => Err(Failure::usage("no site was given").advice(advice)),
        },
    }
}

/// Token in a file that only its owner may read.
pub(crate) fn token(file: &Path) -> Result<String> {
    Ok(secret("token", file)?.trim().to_owned())
}

/// Password in a file that only its owner may read.
pub(crate) fn password(file: &Path) -> Result<String> {
    Ok(secret("password", file)?.trim_end_matches(['\n', '\r']).to_owned())
}

/// Token or password in a file that only its owner may read.
fn secret(what: &str, file: &Path) -> Result<String> {
    let cannot = |error: &std::io::Error| Failure::io(&format!("cannot read the {what}"), file, error);
    let found = std::fs::metadata(file).map_err(|error| cannot(&error))?;
    if found.permissions().mode() & 0o077 != 0 {
        return Err(Failure::usage(format_args!("others may read the {what}"))
            .at_path(file)
            .advice(format_args!("chmod 600 {}", file.display())));
    }
    if found.len() > MOST_TOKEN {
        return Err(Failure::usage(format_args!("this is no file with a {what}")).at_path(file));
    }
    std::fs::read_to_string(file).map_err(|error| cannot(&error))
}
