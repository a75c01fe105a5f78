//! Bad networks: damaged bytes, cut connections, silence and latency delay a file and change none of it.

use crate::proxy::Proxy;
use crate::shipping::{Archive, Running, noise, until};
use holdfast_ship::settings::{Compress, Settings};
use holdfast_ship::shipper::{Notice, Status, Until, ship};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn settings(archive: &Archive, proxy: &Proxy, folder: &Path) -> Settings {
    let mut settings = archive.settings(&proxy.url(), folder);
    settings.folders[0].quiet = Duration::from_millis(100);
    settings.network.compress = Compress::Never;
    settings
}

fn run(settings: Settings) -> Status {
    ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap()
}

#[test]
fn one_flipped_bit_costs_one_block() {
    for (size, position) in [(5_000_001_u64, 2_345_678), (5_000_001, 1), (5_000_001, 5_000_001), (1000, 500)]
    {
        let archive = Archive::start();
        let proxy = Proxy::start(archive.address);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run"), noise(size as usize, position)).unwrap();
        proxy.flip_in(position);
        let status = run(settings(&archive, &proxy, folder.path()));
        assert!(archive.contents("run").unwrap() == noise(size as usize, position));
        assert_eq!(status.totals.damaged_blocks, 1, "{position} of {size}");
        let block = size.min(1 << 20);
        assert!(status.totals.sent_bytes - size <= block, "{:?}", status.totals);
        assert!(proxy.body_bytes() - size <= block, "{} of {size}", proxy.body_bytes());
    }
}

#[test]
fn cut_connections_cost_less_than_their_windows() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    let folder = tempfile::tempdir().unwrap();
    let bytes = noise(24 << 20, 2);
    fs::write(folder.path().join("run"), &bytes).unwrap();
    proxy.cut_in(100_000);
    let running = Running::start(settings(&archive, &proxy, folder.path()));
    for cut in 0..12 {
        until("cut", || !proxy.is_cut_due());
        // Every cut is at another place of a block, behind one that arrives.
        proxy.cut_in(1_200_000 + 77_777 * (cut * cut % 11));
    }
    until("cut", || !proxy.is_cut_due());
    running.delivered("run", 24 << 20);
    assert!(archive.contents("run").unwrap() == bytes);
    running.stop();
}

#[test]
fn silence_ends_a_request_that_is_sent_again() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&archive, &proxy, folder.path());
    settings.archive.idle = Duration::from_millis(200);
    proxy.swallow(3);
    for file in 0..4 {
        fs::write(folder.path().join(format!("{file}")), noise(3000, file)).unwrap();
    }
    let running = Running::start(settings);
    running.wait("outage", |notice| matches!(notice, Notice::OutageBegan { .. }));
    for file in 0..4 {
        running.delivered(&format!("{file}"), 3000);
        assert_eq!(archive.contents(&format!("{file}")).unwrap(), noise(3000, file));
    }
    assert_eq!(proxy.to_swallow(), 0);
    running.stop();
}

#[test]
fn a_stall_ends_without_loss() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    let folder = tempfile::tempdir().unwrap();
    let bytes = noise(8 << 20, 3);
    fs::write(folder.path().join("run"), &bytes).unwrap();
    let running = Running::start(settings(&archive, &proxy, folder.path()));
    until("bytes", || proxy.body_bytes() > 1 << 20);
    proxy.hold(true);
    let held = proxy.body_bytes();
    // One more file appears during the stall.
    fs::write(folder.path().join("late"), b"late").unwrap();
    until("the shipper notices the late file", || {
        Status::read(&archive.folder.path().join("state")).is_ok_and(|status| status.counts.open == 2)
    });
    assert!(proxy.body_bytes() <= held + (16 << 10) * 8);
    proxy.hold(false);
    running.delivered("run", 8 << 20);
    running.delivered("late", 4);
    assert!(archive.contents("run").unwrap() == bytes);
    assert_eq!(running.stop().totals.resent_bytes, 0);
}

#[test]
fn latency_is_covered_by_a_greater_window() {
    let archive = Archive::start();
    let proxy = Proxy::start(archive.address);
    proxy.delay(Duration::from_millis(25));
    let folder = tempfile::tempdir().unwrap();
    let bytes = noise(24 << 20, 4);
    fs::write(folder.path().join("run"), &bytes).unwrap();
    let status = run(settings(&archive, &proxy, folder.path()));
    assert!(status.window > 2, "{}", status.window);
    assert_eq!((status.totals.sent_bytes, status.totals.resent_bytes), (24 << 20, 0));
    assert!(archive.contents("run").unwrap() == bytes);
}
