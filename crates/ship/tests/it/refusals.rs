//! Archives that take nothing for a while: refused tokens and full disks. The shipper waits, and goes on by itself.

use crate::shipping::{Archive, Running, noise, until};
use holdfast_server::{Clock, Scope, Timestamp};
use holdfast_ship::link::Outage;
use holdfast_ship::settings::Settings;
use holdfast_ship::shipper::{Notice, Status};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time of the server's clock in milliseconds since 1970: that of no shipper.
const SERVER_TIME: i64 = 4_000_000_000_000;

const BOTH: &[Scope] = &[Scope::Read, Scope::Write];

/// Settings with a short quiet time: a file that appears during the start may have been closed unseen.
fn quick(archive: &Archive, folder: &Path) -> Settings {
    let mut settings = archive.settings(&archive.url(), folder);
    settings.folders[0].quiet = Duration::from_millis(500);
    settings
}

/// Spoils a token, by the name of the way; the shipper must name a reason with `word` and go on with a new token.
fn refused_token(word: &str, spoil: impl FnOnce(&Archive, &Clock)) {
    let clock = Clock::manual(Timestamp::from_milliseconds(SERVER_TIME));
    let archive = Archive::with(|options| options.clock = clock.clone());
    spoil(&archive, &clock);
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(quick(&archive, folder.path()));
    fs::write(folder.path().join("small"), b"small").unwrap();
    fs::write(folder.path().join("large"), noise(3 << 20, 1)).unwrap();
    running.wait(word, |notice| {
        matches!(notice, Notice::OutageBegan { outage: Outage::Denied, reason }
            if reason.starts_with("cannot ") && reason.contains(word) && reason.contains("; "))
    });
    archive.give_token(BOTH, None, None);
    running.delivered("small", 5);
    running.delivered("large", 3 << 20);
    running.wait("end", |notice| matches!(notice, Notice::OutageEnded { outage: Outage::Denied, .. }));
    assert!(archive.contents("large").unwrap() == noise(3 << 20, 1));
    running.stop();
}

#[test]
fn a_revoked_token_is_replaced() {
    refused_token("revoked", |archive, _| {
        let tokens = archive.server().tokens();
        for token in tokens.list().unwrap() {
            assert!(tokens.revoke(token.id).unwrap());
        }
    });
}

#[test]
fn an_expired_token_is_replaced() {
    refused_token("expired", |archive, clock| {
        archive.give_token(BOTH, None, Some(Timestamp::from_milliseconds(SERVER_TIME + 1000)));
        clock.advance(Duration::from_secs(2));
    });
}

#[test]
fn a_token_without_the_right_to_write_is_replaced() {
    refused_token("write", |archive, _| archive.give_token(&[Scope::Read], None, None));
}

#[test]
fn a_token_of_another_project_is_replaced() {
    refused_token("project", |archive, _| archive.give_token(BOTH, Some("other"), None));
}

#[test]
fn a_token_that_is_revoked_in_the_middle_of_a_file_is_replaced() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(quick(&archive, folder.path()));
    let path = folder.path().join("run");
    let mut file = fs::File::create(&path).unwrap();
    let bytes = noise(6 << 20, 2);
    std::io::Write::write_all(&mut file, &bytes[..3 << 20]).unwrap();
    until("the first bytes", || archive.contents("run").is_some());
    let tokens = archive.server().tokens();
    tokens.list().unwrap().iter().for_each(|token| assert!(tokens.revoke(token.id).unwrap()));
    std::io::Write::write_all(&mut file, &bytes[3 << 20..]).unwrap();
    drop(file);
    let is_denied = |notice: &Notice| matches!(notice, Notice::OutageBegan { outage: Outage::Denied, .. });
    running.wait("outage", is_denied);
    archive.give_token(BOTH, None, None);
    running.delivered("run", 6 << 20);
    assert!(archive.contents("run").unwrap() == bytes);
    running.stop();
}

/// File system in memory of 24 MiB, unmounted at the end.
pub(crate) struct TinyDisk(PathBuf);

impl TinyDisk {
    /// Mounts it, unless that is not permitted here.
    pub(crate) fn mount(folder: &Path) -> Option<Self> {
        fs::create_dir(folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(folder);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(folder.to_owned())),
            other => {
                println!("skipped: cannot mount a tmpfs: {other:?}");
                None
            }
        }
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_archive_is_waited_for() {
    let mount = tempfile::tempdir().unwrap();
    let disk = mount.path().join("disk");
    let Some(_disk) = TinyDisk::mount(&disk) else { return };
    let archive = Archive::with(|options| {
        options.data = disk.join("data");
        options.limits.reserved_space = 4 << 20;
        options.limits.sync_bytes = 1 << 20;
    });
    fs::write(disk.join("ballast"), vec![1; 14 << 20]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(quick(&archive, folder.path()));
    fs::write(folder.path().join("run"), noise(8 << 20, 3)).unwrap();
    running.wait("full", |notice| matches!(notice, Notice::OutageBegan { outage: Outage::Full, .. }));
    // A file that appears during the outage waits too.
    fs::write(folder.path().join("late"), noise(2 << 20, 4)).unwrap();
    until("the status names the outage", || {
        let status = Status::read(&archive.folder.path().join("state"));
        status.is_ok_and(|status| status.counts.open == 2 && status.outage.is_some())
    });
    fs::remove_file(disk.join("ballast")).unwrap();
    running.delivered("run", 8 << 20);
    running.delivered("late", 2 << 20);
    running.wait("end", |notice| matches!(notice, Notice::OutageEnded { outage: Outage::Full, .. }));
    assert!(archive.contents("run").unwrap() == noise(8 << 20, 3));
    running.stop();
    drop(archive);
}
