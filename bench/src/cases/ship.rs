//! Shipping beside its peers: the share of a link's rate by rate and latency, the rate by block size and connections,
//! the software overhead of a block, the latency of the last byte, many small files, and the cost of a damaged block.

use crate::program::holdfast;
use crate::report::{Goal, Report};
use crate::rounds::{Rounds, Spread};
use crate::shipping::archive_site::{ArchiveSite, Shipper, ShipperSetup};
use crate::shipping::peers::{self, Sent, WebDav};
use crate::shipping::shaped_proxy::{LinkShape, ShapedProxy};
use crate::shipping::stand::{SECONDS, Source, Stand};
use crate::{BenchError, Scale, row, tools};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes per second of the growing file.
const GROWTH: u64 = 5_000_000;

/// Time between two writes of the growing file.
const STEP: Duration = Duration::from_millis(10);

/// Bytes of a small file.
const SMALL: u64 = 1024;

/// Bytes of a block in the measurement of the overhead.
const SMALL_BLOCK: u64 = 64 << 10;

fn link(megabits: u32, round_trip_ms: u64) -> LinkShape {
    let round_trip = Duration::from_millis(round_trip_ms);
    LinkShape { megabits: Some(megabits), round_trip, flip_after: None }
}

/// Share of a link's rate in per cent.
fn percent(share: &Spread) -> String {
    share.by(100.0).show(1)
}

/// Measures the share of the link's rate that contents reach, beside other programs.
fn links(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    report.say(
        "Share of the link's rate that the contents of one file reach. *Sustained* is without the first and last \
         twentieth of the bytes; the *whole run* also has the start of the program, the handshakes and the final \
         check. `curl` sends one request to the same site and checks nothing.",
    );
    let mut rows = vec![row!["Mbit/s", "round trip", "program", "sustained %", "whole run %", "verdict"]];
    let (rates, latencies): (&[u32], &[u64]) =
        stand.scale.pick((&[100], &[20]), (&[10, 100, 1000], &[0, 50, 200]));
    for &megabits in rates {
        let source = Source::make(1, stand.fill(megabits))?;
        let full = f64::from(megabits) * 1e6 / 8.0;
        for &round_trip in latencies {
            let link = link(megabits, round_trip);
            let mut names = vec!["holdfast ship", "bare TCP stream"];
            names.extend(stand.curl.iter().map(|_| "curl"));
            names.extend(stand.rclone.iter().map(|_| "rclone copy, WebDAV"));
            let mut whole = vec![Vec::new(); names.len()];
            let rounds = Rounds::run(stand.rounds(), names.len(), |at| {
                let sent = send(stand, names[at], &source, link)?;
                whole[at].push(source.bytes as f64 / sent.took.as_secs_f64() / full);
                Ok(sent.sustained / full)
            })?;
            for (at, name) in names.iter().enumerate() {
                let sustained = rounds.of(at);
                let verdict = if at == 0 { Goal::AtLeast(0.95).verdict(&sustained) } else { String::new() };
                let whole = percent(&Spread::of(whole[at].iter().copied()));
                rows.push(row![
                    megabits,
                    format!("{round_trip} ms"),
                    name,
                    percent(&sustained),
                    whole,
                    verdict
                ]);
            }
        }
    }
    report.table(&rows);
    Ok(())
}

fn send(stand: &Stand, name: &str, source: &Source, link: LinkShape) -> Result<Sent, BenchError> {
    let file = source.file(0);
    match (name, &stand.curl, &stand.rclone) {
        ("curl", Some(curl), _) => {
            let site = ArchiveSite::start(&stand.holdfast, source.bytes)?;
            peers::curl(curl, &site, &file, link, stand.deadline)
        }
        ("rclone copy, WebDAV", _, Some(rclone)) => {
            WebDav::start(rclone, source.bytes)?.copy(&file, link, stand.deadline)
        }
        ("bare TCP stream", ..) => peers::bare_stream(&file, link),
        _ => stand.ship(source, link, ShipperSetup::default()).map(|(_, sent)| sent),
    }
}

/// Measures the rate against the block size, with eight connections and with one.
fn block_sizes(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let (megabits, round_trip) = (100, stand.scale.pick(10, 50));
    report.say(&format!(
        "Sustained share of a link of {megabits} Mbit/s and {round_trip} ms by block size. Sites accept blocks ahead \
         of their turn from 64 KiB on; the settings refuse smaller blocks."
    ));
    let source = Source::make(1, stand.fill(megabits))?;
    let full = f64::from(megabits) * 1e6 / 8.0;
    let mut rows = vec![row!["block", "8 connections, %", "1 connection, %", "8 to 1"]];
    for kib in stand.scale.pick(&[64][..], &[64, 128, 256, 512, 1024, 2048, 4096, 8192]) {
        let rounds = Rounds::run(stand.rounds(), 2, |at| {
            let setup = ShipperSetup { block: kib << 10, connections: [8, 1][at], once: true };
            Ok(stand.ship(&source, link(megabits, round_trip), setup)?.1.sustained / full)
        })?;
        let ratio = rounds.ratio(0, 1).show(2);
        rows.push(row![format!("{kib} KiB"), percent(&rounds.of(0)), percent(&rounds.of(1)), ratio]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures the time per block of 64 KiB beyond that of the bare bytes.
fn overhead(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let blocks = stand.scale.pick(20, 4096);
    report.say(&format!(
        "Software overhead of a block of 64 KiB on the loopback: the time of {blocks} blocks less that of one block \
         (the start of the program) and that of a bare TCP stream of the same bytes, for each block."
    ));
    // The file of one block has a byte more, as a file up to one block is sent in another way.
    let (one, many) = (Source::make(1, SMALL_BLOCK + 1)?, Source::make(1, (blocks + 1) * SMALL_BLOCK + 1)?);
    let mut rows = vec![row!["connections", "ms per block", "verdict"]];
    let connections = [8, 1];
    let rounds = Rounds::run(stand.scale.pick(1, 5), connections.len(), |at| {
        let setup = ShipperSetup { block: SMALL_BLOCK, connections: connections[at], once: true };
        let (start, all) = (stand.ship_directly(&one, setup)?, stand.ship_directly(&many, setup)?);
        let bare = peers::bare_loopback(&many.file(0))?;
        Ok((all.as_secs_f64() - (start + bare).as_secs_f64()) * 1000.0 / blocks as f64)
    })?;
    for (at, connections) in connections.iter().enumerate() {
        let spread = rounds.of(at);
        rows.push(row![connections, spread.show(3), Goal::AtMost(1.0).verdict(&spread)]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures the time from the end of a growing file to its version in the catalog.
fn last_byte(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let bytes = stand.scale.pick(GROWTH / 10, GROWTH * SECONDS);
    report.say(&format!(
        "Latency of the last byte: a file grows at {} MB/s to {} MB and is closed; the time until the catalog of the \
         site has its version.",
        GROWTH / 1_000_000,
        bytes as f64 / 1e6
    ));
    let links = stand
        .scale
        .pick(vec![LinkShape::default()], vec![LinkShape::default(), link(100, 50), link(100, 200)]);
    let rounds = Rounds::run(stand.scale.pick(1, 5), links.len(), |at| grow(stand, links[at], bytes))?;
    let mut rows = vec![row!["link", "s", "verdict"]];
    for (at, link) in links.iter().enumerate() {
        let spread = rounds.of(at);
        let name = link.megabits.map_or("loopback".to_owned(), |megabits| {
            format!("{megabits} Mbit/s, {} ms", link.round_trip.as_millis())
        });
        rows.push(row![name, spread.show(2), Goal::AtMost(2.0).verdict(&spread)]);
    }
    report.table(&rows);
    Ok(())
}

/// Ships a file while it grows. Returns the seconds from its end to its version.
fn grow(stand: &Stand, link: LinkShape, bytes: u64) -> Result<f64, BenchError> {
    let source = Source::make(0, 0)?;
    let site = ArchiveSite::start(&stand.holdfast, bytes)?;
    let proxy = ShapedProxy::start(site.address(), link)?;
    let setup = ShipperSetup { once: false, ..ShipperSetup::default() };
    let mut shipper = Shipper::start(&stand.holdfast, &source.folder(), proxy.address(), setup)?;
    shipper.until_it_watches()?;
    write_slowly(&source.file(0), bytes)?;
    let closed = Instant::now();
    while !site.has("file0", bytes)? {
        if closed.elapsed() > stand.deadline {
            return Err(BenchError::accounting(format!("no version after {:?}", stand.deadline)));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let took = closed.elapsed().as_secs_f64();
    shipper.stop()?;
    Ok(took)
}

/// Writes a file at the rate of growth, and closes it.
fn write_slowly(path: &Path, bytes: u64) -> Result<(), BenchError> {
    let write = || -> std::io::Result<()> {
        let mut random = File::open("/dev/urandom")?;
        let mut piece = vec![0; (GROWTH * STEP.as_millis() as u64 / 1000) as usize];
        let (mut file, began) = (File::create(path)?, Instant::now());
        for written in (0..bytes).step_by(piece.len()) {
            random.read_exact(&mut piece)?;
            file.write_all(&piece)?;
            let due = Duration::from_secs_f64((written + piece.len() as u64) as f64 / GROWTH as f64);
            thread::sleep(due.saturating_sub(began.elapsed()));
        }
        Ok(())
    };
    write().map_err(BenchError::file(path, "write it"))
}

/// Measures many small files beside other programs.
fn small_files(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let count = stand.scale.pick(200, 100_000);
    let sample = stand.scale.pick(10, 1000);
    report.say(&format!(
        "{count} files of {SMALL} bytes on the loopback. Slow programs get {sample} of them: `rsync --append-verify`, \
         called once for each file, to a folder, and `rclone` over WebDAV. The site's limit on requests is raised: its \
         default of 1000 a second admits fewer files."
    ));
    let (all, few) = (Source::make(count, SMALL)?, Source::make(sample, SMALL)?);
    let deadline = stand.deadline;
    let mut names = vec!["holdfast ship"];
    names.extend(stand.rsync.iter().map(|_| "rsync, one call a file"));
    names.extend(stand.rclone.iter().flat_map(|_| ["rclone copy to a folder", "rclone copy, WebDAV"]));
    let rounds = Rounds::run(stand.rounds(), names.len(), |at| {
        let (files, took) = match (names[at], &stand.rsync, &stand.rclone) {
            ("rsync, one call a file", Some(rsync), _) => (sample, peers::rsync_loop(rsync, &few, deadline)?),
            ("rclone copy to a folder", _, Some(rclone)) => {
                (count, peers::rclone_to_folder(rclone, &all, deadline)?)
            }
            ("rclone copy, WebDAV", _, Some(rclone)) => {
                (sample, WebDav::start(rclone, few.space())?.copy_directly(&few.folder(), deadline)?)
            }
            _ => (count, stand.ship_directly(&all, ShipperSetup::default())?),
        };
        Ok(files as f64 / took.as_secs_f64())
    })?;
    let mut rows = vec![row!["program", "files/s", "ours to it"]];
    for (at, name) in names.iter().enumerate() {
        let ratio = if at == 0 { String::new() } else { rounds.ratio(0, at).show(2) };
        rows.push(row![name, rounds.of(at).show(0), ratio]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures the bytes that are sent again after one byte was changed on the way.
fn damage(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    report.say("Bytes that are sent again after a proxy has changed one byte in the middle of the file.");
    let source = Source::make(1, stand.scale.pick(4 << 20, 64 << 20))?;
    let sizes = [64 << 10, 1 << 20];
    let rounds = Rounds::run(stand.rounds(), sizes.len(), |at| {
        let link = LinkShape { flip_after: Some(source.bytes / 2), ..LinkShape::default() };
        let setup = ShipperSetup { block: sizes[at], ..ShipperSetup::default() };
        let (shipped, _) = stand.ship(&source, link, setup)?;
        if shipped.damaged_blocks != 1 {
            let blocks = shipped.damaged_blocks;
            return Err(BenchError::accounting(format!(
                "one byte was changed, and {blocks} blocks are damaged"
            )));
        }
        Ok(shipped.resent_bytes as f64 / sizes[at] as f64)
    })?;
    let mut rows = vec![row!["block", "blocks sent again", "verdict"]];
    for (at, bytes) in sizes.iter().enumerate() {
        let spread = rounds.of(at);
        rows.push(row![format!("{} KiB", bytes >> 10), spread.show(2), Goal::AtMost(1.0).verdict(&spread)]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures shipping beside its peers.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let stand = Stand {
        holdfast: holdfast("holdfast", scale)?,
        curl: tools::find("curl"),
        rclone: tools::find("rclone"),
        rsync: tools::find("rsync"),
        scale,
        deadline: scale.pick(Duration::from_mins(1), Duration::from_mins(15)),
    };
    let mut report = Report::new("ship", scale);
    report.say(
        "Site, shipper and files are in memory, and bytes are random. The link is a proxy with rate and delay, without \
         loss and slow start.",
    );
    for (name, found) in [("curl", &stand.curl), ("rclone", &stand.rclone), ("rsync", &stand.rsync)] {
        if found.is_none() {
            report.say(&format!("Skipped: `{name}`, which is not installed."));
        }
    }
    links(&stand, &mut report)?;
    block_sizes(&stand, &mut report)?;
    overhead(&stand, &mut report)?;
    last_byte(&stand, &mut report)?;
    small_files(&stand, &mut report)?;
    damage(&stand, &mut report)?;
    report.finish()
}
