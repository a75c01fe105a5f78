//! `holdfast ship CONFIG|FOLDER`: a shipper at work, with its happenings as lines.

use super::Shipping;
use super::rings::RingFeeds;
use crate::folders;
use crate::interruption::interruption;
use crate::out::Out;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::ShipEvent;
use holdfast_client::times;
use holdfast_remote::Endpoint;
use holdfast_ship::ledger::Ledger;
use holdfast_ship::settings::{FolderEnd, FolderSettings, Settings};
use holdfast_ship::shipper::{Notice, Status, UnsentFile, Until, ship};
use holdfast_ship::{RateLimit, transfer::Delivery};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

pub(super) fn run(shipping: &Shipping, out: &mut Out) -> Result<()> {
    let mut settings = settings(shipping)?;
    let stop = interruption()?;
    let until = if shipping.once { Until::Shipped } else { Until::Stopped };
    let mut unwritten = None;
    let mut tell = |notice: &Notice| {
        match notice {
            Notice::StateUnwritten { reason } => unwritten = Some(clean(reason)),
            Notice::StateWritten => unwritten = None,
            _ => {}
        }
        // A lost output ends no shipping.
        let _ = say(notice, out).and_then(|()| out.flush());
    };
    let is_over = || stop.load(Ordering::Relaxed);
    let feeds = RingFeeds::start(&mut settings, shipping.once, &stop)?;
    let status = ship(settings, until, &is_over, &mut tell).map_err(Failure::failed)?;
    stop.store(true, Ordering::Relaxed);
    feeds.join()?;
    if out.is_json() {
        out.object(&status)?;
    } else {
        let totals = &status.totals;
        let files = holdfast_base::counted(totals.files, "file");
        out.line(format_args!(
            "{files}, {} delivered; {} sent, backlog {}",
            ByteSize(totals.bytes),
            ByteSize(totals.sent_bytes),
            ByteSize(status.counts.backlog_bytes)
        ))?;
    }
    if shipping.once && !(status.unsent.is_empty() && status.counts.open == 0) {
        return Err(unsent(&status));
    }
    if status.counts.refused > 0 {
        let files = holdfast_base::counted(status.counts.refused, "file");
        return Err(Failure::failed(format_args!("the archive refuses {files}")));
    }
    match unwritten {
        None => Ok(()),
        Some(reason) => Err(Failure::failed(reason)),
    }
}

/// Lists the files that were not sent on standard error.
fn unsent(status: &Status) -> Failure {
    for UnsentFile { path, reason } in &status.unsent {
        crate::out::say(&format!("not sent: {}: {}", clean(path), clean(reason)));
    }
    let files = status.counts.open.max(status.unsent.len() as u64);
    let files = holdfast_base::counted(files, "file");
    Failure::failed(format_args!("{files} not sent")).advice("the lines before say why; start it again")
}

/// Settings of a configuration file, or those of a folder and the options.
fn settings(shipping: &Shipping) -> Result<Settings> {
    let source = &shipping.source;
    let Some(to) = &shipping.to else {
        if source.is_dir() {
            return Err(Failure::usage("the archive of the folder is not known")
                .at_path(source)
                .advice("give --to URL/PROJECT"));
        }
        return Settings::read(source).map_err(|error| Failure::usage(error).at_path(source));
    };
    if !source.is_dir() {
        return Err(Failure::usage("it is no folder")
            .at_path(source)
            .advice("name a folder, or leave --to out"));
    }
    let (endpoint, project) =
        Endpoint::parse_with_project(to).map_err(|error| Failure::usage(error).at("--to"))?;
    let state = match &shipping.state {
        Some(folder) => folder.clone(),
        None => state_folder(source, to, shipping.into.as_deref())?,
    };
    let mut settings = Settings::new(endpoint.url.as_str(), &project, state);
    settings.archive.token_file.clone_from(&shipping.token_file);
    if shipping.token_file.is_none() && std::env::var_os("HOLDFAST_TOKEN").is_some() {
        settings.archive.token_env = Some("HOLDFAST_TOKEN".to_owned());
    }
    let fingerprint = shipping.fingerprint.as_ref().map(|text| text.parse()).transpose();
    settings.archive.fingerprint = fingerprint.map_err(|error| Failure::usage(error).at("--fingerprint"))?;
    let mut folder = FolderSettings::new(source);
    folder.into = shipping.into.clone().unwrap_or_default();
    folder.quiet = shipping.quiet.unwrap_or(folder.quiet);
    folder.marker.clone_from(&shipping.marker);
    folder.end = match shipping.end.as_deref() {
        None | Some("close") => FolderEnd::Close,
        Some("quiet") => FolderEnd::Quiet,
        Some("marker") => FolderEnd::Marker,
        Some(other) => {
            return Err(Failure::usage(format_args!("`{other}` ends no file"))
                .at("--end")
                .advice("take close, quiet or marker"));
        }
    };
    settings.folders = vec![folder];
    if let Some(rate) = shipping.rate {
        settings.network.rate = RateLimit::BytesPerSecond(rate.0);
    }
    settings.network.connections = shipping.connections.unwrap_or(settings.network.connections);
    Ok(settings)
}

/// State folder of a source and its destination: the same at each start.
fn state_folder(source: &Path, to: &str, into: Option<&str>) -> Result<PathBuf> {
    let source = std::fs::canonicalize(source);
    let source = source.map_err(|error| Failure::io("cannot find the folder", &shipping_path(to), &error))?;
    let into = into.unwrap_or_default().trim_matches('/');
    Ok(state_folder_below(&folders::state().join("ship"), &source, to, into))
}

/// State folder below a parent. Earlier versions had one for every `into`; it stays with the `into` of its ledger.
fn state_folder_below(parent: &Path, source: &Path, to: &str, into: &str) -> PathBuf {
    let folder = |hasher: &blake3::Hasher| {
        let name: String = hasher.finalize().to_hex().chars().take(16).collect();
        parent.join(name)
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(source.as_os_str().as_encoded_bytes()).update(b"\0").update(to.as_bytes());
    let shared = folder(&hasher);
    hasher.update(b"\0").update(into.as_bytes());
    let own = folder(&hasher);
    let is_usable = match Ledger::read(&shared).and_then(|ledger| ledger.destinations()) {
        Ok(known) => known.is_empty() || known.iter().any(|known| known.into == into),
        Err(_) => into.is_empty(),
    };
    if is_usable && !own.exists() { shared } else { own }
}

fn shipping_path(to: &str) -> PathBuf {
    PathBuf::from(to)
}

fn say(notice: &Notice, out: &mut Out) -> Result<()> {
    let mut event = ShipEvent::default();
    let line = match notice {
        Notice::Delivered { path, delivery } => {
            let Delivery { root, size, is_verified, is_cut } = delivery;
            event.event = "delivered";
            event.path = Some(path);
            event.bytes = Some(*size);
            event.blake3 = root.map(|root| root.to_hex().to_string());
            event.verified = Some(*is_verified);
            event.cut = Some(*is_cut);
            let verified = if *is_verified { "verified" } else { "unverified" };
            let cut = if *is_cut { ", deleted before its end" } else { "" };
            format!("{}: {}, {verified}{cut}", clean(path), ByteSize(*size))
        }
        Notice::Refused { path, reason } => {
            (event.event, event.path, event.reason) = ("refused", Some(path.as_str()), Some(clean(reason)));
            format!("{}: refused: {}", clean(path), clean(reason))
        }
        Notice::Lost { path } => {
            (event.event, event.path) = ("lost", Some(path.as_str()));
            format!("{}: deleted before the archive had it", clean(path))
        }
        Notice::OutageBegan { outage, reason } => {
            (event.event, event.reason) = ("outage", Some(clean(reason)));
            event.outage = Some(outage.name());
            format!("{}: {}", outage.name(), clean(reason))
        }
        Notice::OutageEnded { outage, lasted } => {
            (event.event, event.outage) = ("recovered", Some(outage.name()));
            event.seconds = Some(lasted.as_secs_f64());
            format!("the archive answers again after {}", times::spoken(*lasted))
        }
        Notice::Warning { path, reason } => {
            (event.event, event.path, event.reason) = ("warning", Some(path.as_str()), Some(clean(reason)));
            format!("{}: {}", clean(path), clean(reason))
        }
        Notice::StateUnwritten { reason } => {
            (event.event, event.reason) = ("state_unwritten", Some(clean(reason)));
            format!("{}; shipping goes on, and it is tried again", clean(reason))
        }
        Notice::StateWritten => {
            event.event = "state_written";
            "the state is written again".to_owned()
        }
        Notice::Alarm(report) => {
            (event.event, event.reason) = ("alarm", Some(report.text()));
            report.text()
        }
    };
    if out.is_json() { out.object(&event) } else { out.line(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_ship::ledger::{Binding, Destination};

    #[test]
    fn a_state_folder_of_an_earlier_version_stays_with_its_into() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |into: &str| state_folder_below(parent.path(), Path::new("/runs"), "http://a/p", into);
        let (shared, a, b) = (folder(""), folder("a"), folder("b"));
        assert!(shared != a && a != b);
        // The ledger of an earlier version tells no `into`.
        let mut ledger = Ledger::open(&shared).unwrap();
        assert_eq!([folder(""), folder("a"), folder("b")], [shared.clone(), shared.clone(), shared.clone()]);
        let destination =
            Destination { url: "http://a".to_owned(), project: "p".to_owned(), into: "a".to_owned() };
        let binding = Binding { folder: "/runs".to_owned(), destination, keeps_files: true };
        ledger.bind(&[binding]).unwrap();
        assert_eq!([folder("a"), folder("b")], [shared.clone(), b]);
        assert_ne!(folder(""), shared);
        // A folder that an `into` has of its own comes first.
        drop(Ledger::open(&a).unwrap());
        assert_eq!(folder("a"), a);
    }
}
