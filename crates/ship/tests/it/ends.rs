//! Ends of files, their order, rates, and several shippers at the same time.

use crate::proxy::Proxy;
use crate::shipping::{Archive, Running, noise, until};
use holdfast_ship::RateLimit;
use holdfast_ship::settings::{FolderEnd, FolderOrder, FolderSettings};
use holdfast_ship::shipper::{Notice, Status, Until, ship};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn delivered(notices: &[Notice]) -> Vec<String> {
    let path = |notice: &Notice| match notice {
        Notice::Delivered { path, .. } => Some(path.clone()),
        _ => None,
    };
    notices.iter().filter_map(path).collect()
}

#[test]
fn markers_end_files() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["suffix/a", "suffix/b", "suffix/large", "name/x/1", "name/x/2", "name/y/1"] {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        let length = if name.ends_with("large") { 3_000_000 } else { 100 };
        fs::write(path(name), noise(length, 1)).unwrap();
    }
    let mut settings = archive.settings(&archive.url(), &path("suffix"));
    let marked = |at: &str, marker: &str| FolderSettings {
        end: FolderEnd::Marker,
        marker: Some(marker.to_owned()),
        into: at.to_owned(),
        quiet: Duration::from_millis(1),
        ..FolderSettings::new(path(at))
    };
    settings.folders = vec![marked("suffix", ".done"), marked("name", "DONE")];
    let running = Running::start(settings);
    fs::write(path("suffix/b.done"), b"").unwrap();
    running.delivered("suffix/b", 100);
    fs::write(path("name/x/DONE"), b"").unwrap();
    running.delivered("name/x/1", 100);
    running.delivered("name/x/2", 100);
    fs::write(path("suffix/large.done"), b"").unwrap();
    running.delivered("suffix/large", 3_000_000);
    assert_eq!(archive.paths(), ["name/x/1", "name/x/2", "suffix/b", "suffix/large"]);
    // A marker that is moved into its place counts too, and so does one before its file.
    fs::write(path("marker"), b"").unwrap();
    fs::rename(path("marker"), path("suffix/a.done")).unwrap();
    running.delivered("suffix/a", 100);
    fs::write(path("suffix/c.done"), b"").unwrap();
    fs::write(path("suffix/c"), noise(50, 2)).unwrap();
    running.delivered("suffix/c", 50);
    running.stop();
}

#[test]
fn quiet_ends_a_file_that_stays_open() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].end = FolderEnd::Quiet;
    settings.folders[0].quiet = Duration::from_millis(300);
    let running = Running::start(settings);
    let mut file = File::create(folder.path().join("run")).unwrap();
    file.write_all(&noise(1_500_000, 1)).unwrap();
    running.delivered("run", 1_500_000);
    // The file grows once more and becomes another version.
    file.write_all(&noise(500_000, 2)).unwrap();
    running.delivered("run", 2_000_000);
    assert!(archive.contents("run").unwrap() == [noise(1_500_000, 1), noise(500_000, 2)].concat());
    running.stop();
}

#[test]
fn files_arrive_in_the_order_of_priority_and_age() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    proxy.hold(true);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut settings = archive.settings(&proxy.url(), folder.path());
    let tree = |name: &str, priority, order| {
        fs::create_dir(path(name)).unwrap();
        FolderSettings { into: name.to_owned(), priority, order, ..FolderSettings::new(path(name)) }
    };
    settings.folders = vec![
        tree("old", 0, FolderOrder::Oldest),
        tree("new", 0, FolderOrder::Newest),
        tree("first", 7, FolderOrder::Oldest),
    ];
    // One folder alone has no order against the other of its priority.
    settings.folders.remove(1);
    settings.folders.push(FolderSettings { priority: 3, ..tree("newest", 0, FolderOrder::Newest) });
    settings.network.connections = 1;
    let add = |name: &str, age: u64| {
        fs::write(path("made"), name).unwrap();
        let time = SystemTime::now() - Duration::from_secs(1000 + age);
        File::options().append(true).open(path("made")).unwrap().set_modified(time).unwrap();
        fs::rename(path("made"), path(name)).unwrap();
    };
    let ages = [("a", 20), ("b", 10), ("c", 30)];
    add("first/zero", 99);
    let running = Running::start(settings);
    for tree in ["old", "newest", "first"] {
        for (name, age) in ages {
            add(&format!("{tree}/{name}"), age);
        }
    }
    until("all files are known", || {
        let status = Status::read(&archive.folder.path().join("state"));
        status.is_ok_and(|status| status.counts.open == 10)
    });
    proxy.hold(false);
    until("all files", || delivered(&running.notices()).len() == 10);
    let expected = [
        "first/zero",
        "first/c",
        "first/a",
        "first/b",
        "newest/b",
        "newest/a",
        "newest/c",
        "old/c",
        "old/a",
        "old/b",
    ];
    // The file whose request was held goes first, whichever it was.
    let mut found = delivered(&running.notices());
    let mut expected: Vec<_> = expected.iter().map(|name| (*name).to_owned()).collect();
    let held = found.remove(0);
    expected.retain(|name| *name != held);
    assert_eq!(found, expected);
    running.stop();
}

#[test]
fn a_rate_of_zero_sends_nothing() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small"), b"small").unwrap();
    fs::write(folder.path().join("large"), noise(2_000_000, 1)).unwrap();
    let mut settings = archive.settings(&proxy.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(1);
    settings.network.rate = RateLimit::BytesPerSecond(0);
    let running = Running::start(settings.clone());
    // Several states of the shipper pass.
    let mut times = std::collections::BTreeSet::new();
    until("four reports", || {
        if let Ok(status) = Status::read(&archive.folder.path().join("state")) {
            times.extend((status.counts.open == 2).then_some(status.time_ms));
        }
        times.len() == 4
    });
    assert_eq!(proxy.body_bytes(), 0);
    assert_eq!(running.stop().totals.sent_bytes, 0);
    settings.network.rate = RateLimit::Unlimited;
    let status = ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap();
    assert_eq!(status.counts.delivered, 2);
}

#[test]
fn two_shippers_may_send_one_folder() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..20_u64).map(|at| (format!("{at}"), noise(200_000 * at as usize, at))).collect();
    for (name, bytes) in &files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(1);
    std::thread::scope(|scope| {
        for state in ["one", "two"] {
            let mut settings = settings.clone();
            settings.state.folder = archive.folder.path().join(state);
            scope.spawn(move || {
                let status = ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap();
                assert_eq!((status.counts.delivered, status.counts.refused), (20, 0), "{state}");
            });
        }
    });
    for (name, bytes) in &files {
        assert!(archive.contents(name).unwrap() == *bytes, "{name}");
    }
}

#[test]
fn two_shippers_never_use_one_state() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let settings = archive.settings(&archive.url(), folder.path());
    let running = Running::start(settings.clone());
    let state: &Path = &archive.folder.path().join("state");
    until("the first has its state", || Status::read(state).is_ok());
    let error = ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap_err().to_string();
    let expected = format!(
        "cannot use the state folder {}: another shipper uses it; stop that shipper, or choose another folder",
        state.display()
    );
    assert_eq!(error, expected);
    running.stop();
}
