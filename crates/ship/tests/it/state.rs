//! State of a shipper: it belongs to a destination, and a full disk under it ends nothing.

use crate::refusals::TinyDisk;
use crate::shipping::{Archive, Running, noise, until};
use holdfast_ship::ledger::Ledger;
use holdfast_ship::settings::{FolderSettings, Settings};
use holdfast_ship::shipper::{Notice, STATUS_FILE, Status, Until, ship};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Settings with a short quiet time: a file that appears during the start may have been closed unseen.
fn quick(archive: &Archive, folder: &Path) -> Settings {
    let mut settings = archive.settings(&archive.url(), folder);
    settings.folders[0].quiet = Duration::from_millis(300);
    settings
}

fn once(settings: &Settings) -> Result<Status, String> {
    ship(settings.clone(), Until::Shipped, &|| false, &mut |_| {}).map_err(|error| error.to_string())
}

#[test]
fn state_of_one_destination_counts_for_no_other() {
    let (archive, other) = (Archive::start(), Archive::start());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let settings = quick(&archive, folder.path());
    assert_eq!(once(&settings).unwrap().totals.files, 1);

    let mut elsewhere = settings.clone();
    elsewhere.archive.url = other.url();
    elsewhere.archive.token_file = Some(other.token.clone());
    let mut renamed = settings.clone();
    renamed.archive.project = "another".to_owned();
    let mut moved = settings.clone();
    moved.folders[0].into = "below".to_owned();
    for (changed, wanted) in
        [(&elsewhere, other.url()), (&renamed, "/another".to_owned()), (&moved, "/below".to_owned())]
    {
        let error = once(changed).unwrap_err();
        assert!(error.starts_with("cannot ship ") && error.contains(&wanted), "{error}");
        assert!(error.contains(&format!("delivery to {}/array;", archive.url())), "{error}");
        assert!(error.contains("another state folder"), "{error}");
    }
    // The remedy that is named, and the former destination.
    moved.state.folder = archive.folder.path().join("other state");
    assert_eq!(once(&moved).unwrap().totals.files, 1);
    assert!(archive.contents("below/run").unwrap() == noise(1000, 1));
    assert_eq!(once(&settings).unwrap().totals.sent_bytes, 0);
}

#[test]
fn state_of_an_earlier_program_keeps_its_destination() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let settings = quick(&archive, folder.path());
    once(&settings).unwrap();
    let state = settings.state.folder.clone();
    let connection = rusqlite::Connection::open(state.join("ledger.db")).unwrap();
    connection.execute_batch("DROP TABLE destinations; PRAGMA user_version = 1").unwrap();
    drop(connection);
    Ledger::read(&state).unwrap();
    let mut renamed = settings.clone();
    renamed.archive.project = "another".to_owned();
    assert!(once(&renamed).unwrap_err().contains("delivery to "));
    assert_eq!(once(&settings).unwrap().totals.sent_bytes, 0);
}

#[test]
fn a_full_disk_of_the_state_ends_no_shipping() {
    let mount = tempfile::tempdir().unwrap();
    let disk = mount.path().join("disk");
    let Some(_disk) = TinyDisk::mount(&disk) else { return };
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = quick(&archive, folder.path());
    settings.state.folder = disk.join("state");
    let running = Running::start(settings.clone());
    fs::write(folder.path().join("first"), noise(1000, 1)).unwrap();
    running.delivered("first", 1000);
    // Nothing more fits there, not even into space that the database has already.
    let ballast = disk.join("ballast");
    let mut byte = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut byte, &[1; 4096]).is_ok() {}
    running.wait("the state is unwritten", |notice| matches!(notice, Notice::StateUnwritten { .. }));
    let files: Vec<String> = (0..200).map(|number| format!("file-{number}")).collect();
    for (number, name) in files.iter().enumerate() {
        fs::write(folder.path().join(name), noise(2000, number as u64)).unwrap();
    }
    for name in &files {
        running.delivered(name, 2000);
    }
    drop(byte);
    fs::remove_file(&ballast).unwrap();
    running.wait("the state is written", |notice| matches!(notice, Notice::StateWritten));
    until("the status is new", || {
        Status::read(&settings.state.folder).is_ok_and(|status| status.counts.delivered == 201)
    });
    running.stop();
    // Nothing is sent again.
    let again = once(&settings).unwrap();
    assert_eq!((again.totals.sent_bytes, again.counts.delivered), (0, 201));
    assert!(settings.state.folder.join(STATUS_FILE).is_file());
}

#[test]
fn one_tree_with_two_destinations_is_sent_to_both() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let mut settings = quick(&archive, folder.path());
    settings.folders.push(settings.folders[0].clone());
    settings.folders[0].into = "a".to_owned();
    settings.folders[1].into = "b".to_owned();
    assert_eq!(once(&settings).unwrap().totals.files, 2);
    assert_eq!(archive.paths(), ["a/run", "b/run"]);
    // Each table has state of its own, in any order.
    settings.folders.reverse();
    assert_eq!(once(&settings).unwrap().totals.sent_bytes, 0);
    settings.folders.pop();
    fs::write(folder.path().join("late"), noise(1000, 2)).unwrap();
    assert_eq!(once(&settings).unwrap().totals.files, 1);
    assert_eq!(archive.paths(), ["a/run", "b/late", "b/run"]);
    let mut both = settings.clone();
    both.folders.push(both.folders[0].clone());
    both.folders[1].into = "a".to_owned();
    assert_eq!(once(&both).unwrap().totals.files, 1);
    assert_eq!(archive.paths(), ["a/late", "a/run", "b/late", "b/run"]);
}

#[test]
fn state_without_sent_files_belongs_to_no_destination() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let settings = quick(&archive, folder.path());
    let mut mistaken = settings.clone();
    mistaken.archive.url = "http://127.0.0.1:1".to_owned();
    let running = Running::start(mistaken);
    running.wait("outage", |notice| matches!(notice, Notice::OutageBegan { .. }));
    running.stop();
    assert_eq!(once(&settings).unwrap().totals.files, 1);
}

#[test]
fn a_refused_start_binds_no_tree() {
    let archive = Archive::start();
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(old.path().join("run"), noise(1000, 1)).unwrap();
    let settings = quick(&archive, old.path());
    once(&settings).unwrap();
    let mut renamed = settings.clone();
    renamed.archive.project = "another".to_owned();
    renamed.folders.insert(0, FolderSettings::new(new.path()));
    assert!(once(&renamed).unwrap_err().contains("delivery to "));
    let ledger = Ledger::read(&settings.state.folder).unwrap();
    assert_eq!(ledger.destination(&new.path().to_string_lossy()).unwrap(), None);
}

#[test]
fn state_of_an_unknown_destination_counts_for_none() {
    let (archive, other) = (Archive::start(), Archive::start());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let mut settings = quick(&archive, folder.path());
    once(&settings).unwrap();
    let state = settings.state.folder.clone();
    let connection = rusqlite::Connection::open(state.join("ledger.db")).unwrap();
    connection.execute_batch("DROP TABLE destinations; PRAGMA user_version = 1").unwrap();
    drop(connection);
    fs::remove_file(state.join(STATUS_FILE)).unwrap();
    settings.archive.url = other.url();
    settings.archive.token_file = Some(other.token.clone());
    assert_eq!(once(&settings).unwrap().totals.files, 1);
    assert_eq!(other.paths(), ["run"]);
}

#[test]
fn files_that_are_removed_after_delivery_follow_a_new_destination() {
    let (archive, other) = (Archive::start(), Archive::start());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let mut settings = quick(&archive, folder.path());
    once(&settings).unwrap();
    settings.archive.url = other.url();
    settings.archive.token_file = Some(other.token.clone());
    settings.folders[0].into = "below".to_owned();
    settings.folders[0].removes = true;
    assert_eq!(once(&settings).unwrap().totals.files, 1);
    assert_eq!(other.paths(), ["below/run"]);
    assert!(!folder.path().join("run").exists());
}

#[test]
fn a_damaged_ledger_ends_the_shipper_with_its_error() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), noise(1000, 1)).unwrap();
    let settings = quick(&archive, folder.path());
    let database = settings.state.folder.join("ledger.db");
    let mut damage = |notice: &Notice| {
        if matches!(notice, Notice::Delivered { .. }) {
            // The shipper writes this table, and never reads it.
            let connection = rusqlite::Connection::open(&database).unwrap();
            connection.execute_batch("DROP TABLE backlog").unwrap();
        }
    };
    let ended = ship(settings, Until::Shipped, &|| false, &mut damage);
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with("cannot use the ledger: ") && error.contains("backlog"), "{error}");
}
