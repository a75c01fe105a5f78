//! `holdfast site`: the other sites that a site exchanges its catalog with.

use crate::args::{SiteArgs, token};
use crate::out::Out;
use crate::site::stored;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{UnitError, clean};
use holdfast_client::json::{DigestLine, PeerLine, RemovedPeer};
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_remote::{CatalogDigest, PeerChange, PeerState};
use std::path::PathBuf;
use std::time::Duration;

/// Join sites under one name space: add, list, pause and remove the sites that one exchanges its catalog with
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Each site has the whole catalog and writes without waiting for the others. Operations are pushed\n\
    when they are committed; a site that was away catches up by itself. Bytes stay where they were put:\n\
    `get` fetches them from the nearest site that has them. Add each site at the other, with a token\n\
    of the scope `replicate` that the other has created. docs/sites.md tells more.\n\n\
    Examples:\n  holdfast site add geneva http://127.0.0.1:7371\n  holdfast site status\n  \
    holdfast site pause geneva\n  holdfast site resume geneva\n  holdfast site remove geneva"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::Ls { .. } | What::Status { .. } | What::Digest { .. })
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Add a site, or change the settings of one; the exchange begins at once
    #[command(after_help = "Example:\n  holdfast site add geneva http://127.0.0.1:7371 --interval 5s")]
    Add {
        /// Name that the other site gets here
        #[arg(value_name = "NAME")]
        name: String,
        /// Address of the other site
        #[arg(value_name = "URL")]
        url: String,
        /// File with the token that the other site has created for this one
        #[arg(long, value_name = "FILE")]
        peer_token_file: Option<PathBuf>,
        /// SHA-256 of the only certificate of the other site to trust
        #[arg(long, value_name = "SHA256")]
        peer_fingerprint: Option<String>,
        /// Pause between two full exchanges; new operations are pushed at once [default: 10s]
        #[arg(long, value_name = "SPAN", value_parser = span)]
        interval: Option<Duration>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// List the other sites
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast site ls")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Show the exchange with each site: its queue, its lag and the last error
    #[command(
        after_help = "Exits with 3 if there are no other sites, and with 1 if the exchange with one does not work.\n\n\
        Example:\n  holdfast site status"
    )]
    Status {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Print the digest of the catalog, which is equal at sites that have applied the same operations
    #[command(after_help = "Reads the whole catalog.\n\nExample:\n  holdfast site digest")]
    Digest {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Stop the exchange with a site until it is resumed
    #[command(after_help = "Example:\n  holdfast site pause geneva")]
    Pause {
        #[command(flatten)]
        peer: Peer,
    },
    /// Exchange with a paused site again
    #[command(after_help = "Example:\n  holdfast site resume geneva")]
    Resume {
        #[command(flatten)]
        peer: Peer,
    },
    /// Remove a site; both keep what they have
    #[command(after_help = "Example:\n  holdfast site remove geneva")]
    Remove {
        #[command(flatten)]
        peer: Peer,
    },
}

/// Other site by its name here.
#[derive(clap::Args, Debug)]
struct Peer {
    /// Name of the other site
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    site: SiteArgs,
}

fn span(text: &str) -> Result<Duration, UnitError> {
    times::span(text)
}

/// Runs the command `holdfast site`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Add { name, url, peer_token_file, peer_fingerprint, interval, site } => {
            let change = PeerChange {
                url: Some(url.clone()),
                token: peer_token_file.as_deref().map(token).transpose()?,
                fingerprint: peer_fingerprint.clone(),
                interval_milliseconds: interval.map(|interval| interval.as_millis() as u64),
                paused: None,
            };
            set(site, name, &change, out)
        }
        What::Ls { site } => {
            let peers = peers(site)?;
            list(&peers, out)
        }
        What::Status { site } => status(&peers(site)?, out),
        What::Digest { site } => {
            let session = site.session()?;
            let CatalogDigest { site, name, digest, vector } =
                &session.request(session.site().catalog_digest())?;
            if out.is_json() {
                return out.object(&DigestLine { site, name, digest, vector });
            }
            out.line(format_args!("{}  {} ({})", clean(digest), clean(name), clean(site)))
        }
        What::Pause { peer } => pause(peer, true, out),
        What::Resume { peer } => pause(peer, false, out),
        What::Remove { peer } => {
            let session = peer.site.session()?;
            session.request(session.site().remove_peer(&peer.name))?;
            if out.is_json() {
                return out.object(&RemovedPeer { removed: &peer.name });
            }
            out.line(format_args!("removed {}", clean(&peer.name)))
        }
    }
}

fn peers(site: &SiteArgs) -> Result<Vec<PeerState>> {
    let session = site.session()?;
    let peers = session.request(session.site().peers())?;
    if peers.is_empty() {
        return Err(Failure::nothing("this site has no other sites").advice("`holdfast site add` adds one"));
    }
    Ok(peers)
}

fn pause(peer: &Peer, is_paused: bool, out: &mut Out) -> Result<()> {
    let session = peer.site.session()?;
    let peers = session.request(session.site().peers())?;
    if peers.iter().all(|known| known.name != peer.name) {
        return Err(Failure::nothing("there is no such site")
            .at(clean(&peer.name))
            .advice("`holdfast site ls` lists the sites"));
    }
    let change = PeerChange { paused: Some(is_paused), ..PeerChange::default() };
    set(&peer.site, &peer.name, &change, out)
}

fn set(site: &SiteArgs, name: &str, change: &PeerChange, out: &mut Out) -> Result<()> {
    let session = site.session()?;
    let peer = session.request(session.site().set_peer(name, change))?;
    if out.is_json() {
        return out.object(&shape(&peer));
    }
    let state = if peer.state == "paused" { "paused" } else { "exchanging" };
    out.line(format_args!("{} at {}: {state}", clean(&peer.name), clean(&peer.url)))
}

fn list(peers: &[PeerState], out: &mut Out) -> Result<()> {
    let columns =
        [("name", Side::Left), ("address", Side::Left), ("every", Side::Right), ("state", Side::Left)];
    let mut table = Table::new(&columns);
    for peer in peers {
        if out.is_json() {
            out.object(&shape(peer))?;
            continue;
        }
        let every = format!("{} s", seconds(peer.interval_milliseconds));
        table.row([clean(&peer.name), clean(&peer.url), every, clean(&peer.state)]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

fn status(peers: &[PeerState], out: &mut Out) -> Result<()> {
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("state", Side::Left),
        ("queue", Side::Right),
        ("lag", Side::Right),
        ("latency", Side::Right),
        ("pushed", Side::Right),
        ("pulled", Side::Right),
        ("last contact", Side::Left),
    ]);
    for peer in peers {
        if out.is_json() {
            out.object(&shape(peer))?;
            continue;
        }
        let latency = peer.latency_microseconds.map(|us| format!("{:.1} ms", us as f64 / 1000.0));
        table.row([
            clean(&peer.name),
            clean(&peer.state),
            peer.queue.to_string(),
            format!("{} s", seconds(peer.lag_milliseconds)),
            latency.unwrap_or_default(),
            peer.pushed.to_string(),
            peer.pulled.to_string(),
            peer.contact.map(stored).unwrap_or_default(),
        ]);
    }
    if !out.is_json() {
        out.table(&table)?;
    }
    match peers.iter().find_map(|peer| Some((peer, peer.error.as_ref()?))) {
        Some((peer, error)) => {
            Err(Failure::failed(clean(error)).at(format_args!("site {}", clean(&peer.name))))
        }
        None => Ok(()),
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn shape(peer: &PeerState) -> PeerLine<'_> {
    PeerLine {
        name: &peer.name,
        url: &peer.url,
        fingerprint: peer.fingerprint.as_deref(),
        interval_seconds: seconds(peer.interval_milliseconds),
        state: &peer.state,
        site: peer.site.as_deref(),
        contact: peer.contact.map(stored),
        latency_seconds: peer.latency_microseconds.map(|us| us as f64 / 1e6),
        queue: peer.queue,
        lag_seconds: seconds(peer.lag_milliseconds),
        pushed: peer.pushed,
        pulled: peer.pulled,
        failed_since: peer.failed_since.map(stored),
        error: peer.error.as_deref(),
    }
}
