//! Odd names and kinds of files, trees that vanish, many files, and files that are lost.

use crate::proxy::Proxy;
use crate::shipping::{Archive, Running, noise, until};
use holdfast_ship::settings::Settings;
use holdfast_ship::shipper::{Notice, Status, Until, ship};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Settings with a short quiet time: the end of a file in a new folder may be missed by the watch.
fn quick(archive: &Archive, folder: &Path) -> Settings {
    let mut settings = archive.settings(&archive.url(), folder);
    settings.folders[0].quiet = Duration::from_millis(300);
    settings
}

#[test]
fn odd_names_arrive_and_impossible_ones_are_named() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let long = "l".repeat(255);
    let wide = "\u{2620}".repeat(85);
    let good = [
        " leading and trailing ",
        "-rf",
        "--help",
        "'single' \"double\" `back`",
        "back\\slash",
        "per%20cent%",
        "q?a#b&c=d;e",
        "ünïcödé ☠ \u{1F4E1}",
        "e\u{301}",
        "*glob[1]{2}~$HOME",
        "...",
        ".hidden",
        "%2e%2e",
        &long,
        &wide,
        "dir.fits/run.fits/-x y",
    ];
    let bad = ["new\nline", "tab\there", ".holdfast", ".holdfast-x", "sub/.holdfast/inner"];
    fs::create_dir_all(folder.path().join("dir.fits/run.fits")).unwrap();
    fs::create_dir_all(folder.path().join("sub/.holdfast")).unwrap();
    for name in good.iter().chain(&bad) {
        fs::write(folder.path().join(name), name).unwrap();
    }
    // Neither links nor devices are files of this tree.
    std::os::unix::fs::symlink(folder.path().join("-rf"), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("fifo"), fifo, 0o600.into(), 0).unwrap();
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(100);
    let mut warned = Vec::new();
    let status = ship(settings, Until::Shipped, &|| false, &mut |notice| {
        if let Notice::Warning { path, reason } = notice {
            assert!(reason.contains("; "), "{reason}");
            warned.push(path.clone());
        }
    })
    .unwrap();
    let mut expected = good.to_vec();
    expected.sort_unstable();
    let mut paths = archive.paths();
    paths.sort();
    assert_eq!(paths, expected);
    for name in good {
        assert_eq!(archive.contents(name).unwrap(), name.as_bytes(), "{name}");
    }
    for name in ["new\nline", "tab\there", ".holdfast", ".holdfast-x", "sub/.holdfast"] {
        let path = folder.path().join(name).to_string_lossy().into_owned();
        assert!(warned.contains(&path), "{name:?}: {warned:?}");
        let unsent = status.unsent.iter().find(|file| file.path == path);
        assert!(unsent.is_some_and(|file| file.reason.contains("; ")), "{name:?}: {:?}", status.unsent);
    }
    assert_eq!(status.unsent.len(), 5);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let running = Running::start(quick(&archive, folder.path()));
    fs::write(path("a"), b"file").unwrap();
    running.delivered("a", 4);
    // The archive keeps the old versions of the file, so that nothing can be stored below its name.
    fs::remove_file(path("a")).unwrap();
    fs::create_dir(path("a")).unwrap();
    fs::write(path("a/b"), b"below").unwrap();
    running.wait("refusal", |notice| {
        matches!(notice, Notice::Refused { path, reason } if path == "a/b" && reason.contains("is in its way; "))
    });
    fs::write(path("other"), b"other").unwrap();
    running.delivered("other", 5);
    fs::remove_dir_all(path("a")).unwrap();
    fs::write(path("a"), b"file again").unwrap();
    running.delivered("a", 10);
    assert_eq!(archive.paths(), ["a", "other"]);
    let status = running.stop();
    assert_eq!(status.totals.sent_bytes, 4 + 3 * 5 + 5 + 10);
}

#[test]
fn a_tree_that_is_removed_and_made_anew_arrives_anew() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(quick(&archive, folder.path()));
    for round in 0..3_usize {
        for name in ["x/1", "x/y/2", "x/y/z/3"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, noise(1000 + round, round as u64)).unwrap();
        }
        for name in ["x/1", "x/y/2", "x/y/z/3"] {
            running.delivered(name, 1000 + round as u64);
            assert_eq!(archive.contents(name).unwrap(), noise(1000 + round, round as u64));
        }
        fs::remove_dir_all(folder.path().join("x")).unwrap();
    }
    assert!(!running.notices().iter().any(|notice| matches!(notice, Notice::Lost { .. })));
    running.stop();
}

#[test]
fn many_small_files_are_sent_once() {
    const COUNT: usize = 2_000;
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..COUNT {
        let below = folder.path().join(format!("{}", number % 20));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{number}")), noise(100, number as u64)).unwrap();
    }
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(100);
    let run = |settings| ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap();
    let status = run(settings.clone());
    assert_eq!((status.counts.delivered, status.totals.sent_bytes), (COUNT as u64, 100 * COUNT as u64));
    assert_eq!(archive.paths().len(), COUNT);
    let status = run(settings);
    assert_eq!((status.counts.delivered, status.totals.sent_bytes), (COUNT as u64, 0));
}

#[test]
fn a_file_that_is_deleted_before_it_was_sent_is_reported() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = archive.settings(&proxy.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(300);
    settings.network.connections = 1;
    proxy.hold(true);
    let running = Running::start(settings);
    fs::write(folder.path().join("first"), b"first").unwrap();
    let open = |count| {
        until("open files", || {
            let status = Status::read(&archive.folder.path().join("state"));
            status.is_ok_and(|status| status.counts.open == count)
        });
    };
    open(1);
    fs::write(folder.path().join("second"), b"second").unwrap();
    open(2);
    fs::remove_file(folder.path().join("second")).unwrap();
    running.wait("lost", |notice| matches!(notice, Notice::Lost { path } if path == "second"));
    proxy.hold(false);
    running.delivered("first", 5);
    assert_eq!(archive.paths(), ["first"]);
    running.stop();
}

#[test]
fn times_of_files_may_be_wrong() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let decade = Duration::from_hours(24 * 3650);
    let times = [
        ("future", SystemTime::now() + decade),
        ("past", SystemTime::UNIX_EPOCH - decade),
        ("epoch", SystemTime::UNIX_EPOCH),
    ];
    for (name, time) in times {
        fs::write(folder.path().join(name), name).unwrap();
        fs::File::options().append(true).open(folder.path().join(name)).unwrap().set_modified(time).unwrap();
    }
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(200);
    let running = Running::start(settings);
    for (name, time) in times {
        running.delivered(name, name.len() as u64);
        // The contents change, the time does not.
        let path = folder.path().join(name);
        fs::write(&path, name.to_uppercase()).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        until("the new contents", || {
            archive.contents(name).is_some_and(|found| found == name.to_uppercase().as_bytes())
        });
    }
    running.stop();
}
