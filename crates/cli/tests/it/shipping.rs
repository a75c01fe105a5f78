//! Shipping: folders and rings are sent to a server, with status, report and plan.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::site::Site;
use crate::vaults::held;

use common::{Said, documented, ends, folder, holdfast};
use holdfast_ship::ledger::Ledger;
use holdfast_ship::planning::BitRate;
use holdfast_ship::statistics::{HistogramRow, MinuteRow, rate_bin};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

fn objects(said: &Said) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_folder_is_shipped_once_and_its_status_and_report_are_told() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::create_dir_all(dir.join("runs/2026")).unwrap();
    fs::write(dir.join("runs/2026/run1.dat"), &bytes).unwrap();
    fs::write(dir.join("runs/notes.txt"), "calibrated").unwrap();
    let line =
        format!("ship runs --to {}/array --into night --state st --once --quiet 100ms --json", site.url());
    let said = objects(&ends(dir, &line, 0));
    documented("ship", &said);
    let delivered: Vec<&Value> = said.iter().filter(|event| event["event"] == "delivered").collect();
    assert_eq!(delivered.len(), 2);
    for event in &delivered {
        assert_eq!((&event["verified"], &event["cut"]), (&json!(true), &json!(false)));
        let file = event["path"].as_str().unwrap().strip_prefix("night/").unwrap();
        let hash = blake3::hash(&fs::read(dir.join("runs").join(file)).unwrap()).to_hex().to_string();
        assert_eq!(event["blake3"], json!(hash));
    }
    let end = said.last().unwrap();
    assert_eq!((&end["delivered"], &end["backlog_bytes"]), (&json!(2), &json!(0)));
    assert_eq!(end["totals"]["sent_bytes"], json!(12_000_010));
    site.ends("get /array/night/2026/run1.dat back", 0);
    assert_eq!(fs::read(dir.join("back")).unwrap(), bytes);
    // Nothing is sent again.
    let again = objects(&ends(dir, &line, 0));
    assert_eq!(again.last().unwrap()["totals"]["sent_bytes"], 0);
    let status = objects(&ends(dir, "ship status st --json", 0));
    documented("ship", &status);
    assert_eq!(status[0]["project"], "array");
    let text = ends(dir, "ship status st", 0).out;
    for wanted in ["project array", "2 delivered, 0 open, 0 refused", "backlog     0 B"] {
        assert!(text.contains(wanted), "{text}");
    }
    let metrics = ends(dir, "ship status st --prometheus", 0).out;
    assert!(metrics.contains("holdfast_ship_files_delivered 2\n"), "{metrics}");
    assert_eq!(fs::read_to_string(dir.join("st/metrics.prom")).unwrap(), metrics);
    documented("ship", &objects(&ends(dir, "ship report st -o report.html --json", 0)));
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("2026/run1.dat") && page.contains("<svg"), "{page}");
}

#[test]
fn closed_holds_of_a_ring_are_shipped_as_datasets() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    held(dir);
    ends(dir, "hold r.hf --stream log --ordinals 100..400 --reason x --owner ship", 0);
    let ring = |path: &str, into: &str| format!("[[ring]]\nring = \"{path}\"\ninto = \"{into}\"\n");
    let configure = |rings: &str| {
        let archive = format!("[archive]\nurl = \"{}\"\nproject = \"array\"\n", site.url());
        let text = format!("{archive}{rings}[state]\nfolder = \"st\"\n");
        fs::write(dir.join("ship.toml"), text).unwrap();
    };
    configure(&ring("r.hf", "holds"));
    let said = objects(&ends(dir, "ship ship.toml --once --json", 0));
    let delivered = said.iter().find(|event| event["event"] == "delivered").unwrap();
    let path = delivered["path"].as_str().unwrap();
    site.ends(&format!("get /array/{path} back.mcap"), 0);
    let mut query = holdfast(dir);
    query.args([
        "query",
        "back.mcap",
        "select count(*) c from log where ordinal >= 100 and ordinal < 400",
        "--json",
    ]);
    let said: Said = query.output().unwrap().into();
    assert_eq!(said.out, "{\"c\":300}\n", "{}", said.err);
    // The hold of another owner stays, the shipped one is released, and its dataset removed.
    let holds = objects(&ends(dir, "holds r.hf --json", 0));
    assert!(holds.len() == 1 && holds[0]["owner"] != "ship", "{holds:?}");
    let within = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let staging = within(&dir.join("st/rings")).remove(0);
    assert_eq!(within(&staging), [staging.join("staged")]);
    // Staged datasets, also of an earlier version, go where the ring's table says now.
    fs::write(staging.join("hold-98.mcap"), "staged").unwrap();
    fs::create_dir(dir.join("st/rings/0")).unwrap();
    fs::write(dir.join("st/rings/0/hold-99.mcap"), "staged earlier").unwrap();
    configure(&ring("r.hf", "later"));
    ends(dir, "ship ship.toml --once", 0);
    site.ends("get /array/later/hold-98.mcap staged", 0);
    site.ends("get /array/later/hold-99.mcap earlier", 0);
    assert!(within(&dir.join("st/rings/0")).is_empty());
    // A table before that of the ring changes nothing for it.
    fs::copy(dir.join("r.hf"), dir.join("other.hf")).unwrap();
    fs::write(staging.join("hold-97.mcap"), "staged last").unwrap();
    configure(&format!("{}{}", ring("other.hf", "other"), ring("r.hf", "later")));
    ends(dir, "ship ship.toml --once", 0);
    site.ends("get /array/later/hold-97.mcap last", 0);
}

/// Writes the ledger of a shipper whose archive was away for two hours, by a simulated clock: production of 256 kb/s,
/// archive rate of 350 kb/s. Returns the minute at which the backlog is gone.
fn outage_of_two_hours(state: &Path) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 / 60;
    let (begin, outage) = (now - 10 * 60, 60..180);
    let (produced, archived) = (256_000 / 8 * 60_u64, 350_000 / 8 * 60_u64);
    let mut ledger = Ledger::open(state).unwrap();
    let mut backlog = 0_u64;
    let mut caught_up = None;
    for minute in 0..600_i64 {
        let waiting = backlog + produced;
        let sent = if outage.contains(&minute) { 0 } else { waiting.min(archived) };
        backlog = waiting - sent;
        if backlog == 0 && minute > outage.end {
            caught_up.get_or_insert(minute);
        }
        let rate = 350e3;
        let row = MinuteRow {
            minute: begin + minute,
            blocks: sent.div_ceil(1 << 16),
            bytes: sent,
            rate_sum: rate * sent.div_ceil(1 << 16) as f64,
            rate_square_sum: rate * rate * sent.div_ceil(1 << 16) as f64,
            network_us: sent * 8 * 1_000_000 / 350_000,
            produced_bytes: produced,
            ..MinuteRow::default()
        };
        let count = row.blocks;
        let bin = rate_bin(BitRate::from_bits(rate));
        let rates = [HistogramRow { hour: (begin + minute).div_euclid(60), bin, count }];
        ledger.add_throughput(&row, &rates).unwrap();
        ledger.set_backlog(begin + minute, backlog).unwrap();
        if minute == outage.start {
            ledger.begin_outage((begin + minute) * 60_000, "unreachable").unwrap();
        } else if minute == outage.end {
            ledger.end_outage((begin + minute) * 60_000).unwrap();
        }
    }
    caught_up.unwrap()
}

#[test]
fn after_an_outage_of_two_hours_the_report_shows_backlog_and_catch_up() {
    let folder = folder();
    let dir = folder.path();
    let caught_up = outage_of_two_hours(&dir.join("st"));
    // 2 h of 256 kb/s at the spare rate of 94 kb/s take 5.4 h.
    assert!((180 + 320..180 + 330).contains(&caught_up), "{caught_up}");
    ends(dir, "ship report st -o report.html --days 1 --instrument BIMA", 0);
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    for wanted in ["BIMA", "unreachable", "2 h", "Backlog", "350 kb/s", "256 kb/s"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    // The measured rate is that of the plan.
    let plan = objects(&ends(dir, "ship plan --state st --general 256kb/s --json", 0));
    assert!((plan[0]["rate_bits"].as_f64().unwrap() - 350e3).abs() < 1.0, "{plan:?}");
}

#[test]
fn the_limits_are_those_of_the_paper() {
    let folder = folder();
    let dir = folder.path();
    let plan = |general: &str| {
        let said = ends(dir, &format!("ship plan --rate 350kb/s --general {general} --hours 8 --json"), 0);
        let plan = objects(&said);
        documented("ship", &plan);
        plan[0].clone()
    };
    let at_256 = plan("256kb/s");
    assert_eq!(at_256["maximum_bits"], 538_000.0);
    assert_eq!(at_256["outage_bytes"], 5_529_600_000_u64);
    assert_eq!(plan("128kb/s")["maximum_bits"], 794_000.0);
    let text = ends(dir, "ship plan --rate 350kb/s", 0).out;
    assert!(text.contains("538 kb/s for 8 h") && text.contains("5.53 GB"), "{text}");
    let schedule = "disk = '4GB'\n[[project]]\nname = 'a'\nfrom = '08:00'\nhours = 8\nrate = '538kb/s'\n";
    fs::write(dir.join("ok.toml"), schedule).unwrap();
    fs::write(dir.join("full.toml"), schedule.replace("4GB", "400MB").replace("538", "794")).unwrap();
    let said = ends(dir, "ship plan --rate 350kb/s --schedule ok.toml --json", 0);
    documented("ship", &objects(&said));
    assert_eq!(objects(&said)[0]["schedule"]["verdict"], "archivable");
    let said = ends(dir, "ship plan --rate 350kb/s --schedule full.toml", 1);
    assert!(
        said.out.contains("disk full       at day 1") && said.err.contains("fills the disk"),
        "{}",
        said.out
    );
}

#[test]
fn what_is_not_sent_is_listed_and_fails_the_command() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    fs::create_dir(dir.join("runs")).unwrap();
    fs::write(dir.join("runs/good"), "good").unwrap();
    fs::write(dir.join("runs/new\nline"), "bad").unwrap();
    let line = format!("ship runs --to {}/array --once --quiet 100ms", site.url());
    let said = ends(dir, &line, 1);
    assert!(said.err.contains("not sent: ") && said.err.contains("new\\nline: "), "{}", said.err);
    assert!(said.err.contains("1 file not sent"), "{}", said.err);
    site.ends("cat /array/good", 0);
    let said = objects(&ends(dir, &format!("{line} --json"), 1));
    let (error, said) = said.split_last().unwrap();
    assert_eq!(error["exit"], 1);
    documented("ship", said);
    let status = said.iter().find(|object| object["unsent"].is_array()).unwrap();
    assert!(status["unsent"][0]["path"].as_str().unwrap().ends_with("new\nline"), "{status}");
    // Another path of the same archive has its own state.
    fs::remove_file(dir.join("runs/new\nline")).unwrap();
    for into in ["a", "b"] {
        ends(dir, &format!("{line} --into {into}"), 0);
        site.ends(&format!("cat /array/{into}/good"), 0);
    }
}

#[test]
fn wrong_uses_are_told() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("runs")).unwrap();
    fs::write(
        dir.join("bad.toml"),
        "[archive]\nurl = \"http://x\"\nproject = \"p\"\n[state]\nfolder = \"s\"\nwrong = 1\n",
    )
    .unwrap();
    for (line, code, wanted) in [
        ("ship", 2, "CONFIG|FOLDER"),
        ("ship runs", 2, "--to URL/PROJECT"),
        ("ship gone --to http://localhost:1/p", 2, "no folder"),
        ("ship runs --to http://localhost:1", 2, "--to"),
        ("ship runs --to http://localhost:1/p --end never", 2, "close, quiet or marker"),
        ("ship runs --to http://localhost:1/p --token-file gone", 1, "gone"),
        ("ship bad.toml", 2, "wrong"),
        ("ship gone.toml", 2, "gone.toml"),
        ("ship status runs", 1, "status.json"),
        ("ship report runs -o r.html", 1, "ledger"),
        ("ship plan", 2, "--rate"),
        ("ship plan --rate 350", 2, "unit"),
        ("ship plan --rate 350kb/s --general 400kb/s", 2, "400 kb/s"),
        ("ship plan --rate 350kb/s --hours 25", 2, "25"),
        ("ship plan --rate 350kb/s --schedule gone.toml", 1, "gone.toml"),
    ] {
        let said = ends(dir, line, code).err;
        assert!(said.contains(wanted), "{line}: {said}");
    }
}
