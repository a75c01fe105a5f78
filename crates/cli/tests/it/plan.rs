//! `holdfast plan` on the drive of Bigelow, Brandt, Bent and Chen, “Mahanaxar” (MSST 2010): what it says word for word, and
//! every refusal with its exit code (promises 1 and 8). To take over a change on purpose:
//! `HOLDFAST_BLESS=1 cargo test -p holdfast-cli --test it plan`.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{Said, documented, ends, folder, holdfast};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A folder with the paper's drive in it.
fn measured() -> TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../planning/tests/golden/paper.profile.json");
    let folder = folder();
    fs::copy(golden, folder.path().join("paper.profile.json")).unwrap();
    folder
}

const PLAN: &str = "plan --profile paper.profile.json";

#[test]
fn the_paper_s_drive_is_planned_as_it_was() {
    let folder = measured();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/plan-paper.txt");
    let said = ends(
        folder.path(),
        &format!("{PLAN} --rate 60MiB/s --region 0..80% --slot 128MiB --endurance 600TB"),
        0,
    )
    .out;
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        fs::write(&golden, &said).unwrap();
    }
    assert_eq!(said, fs::read_to_string(&golden).unwrap_or_default());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guarantee.md");
    assert!(
        fs::read_to_string(docs).unwrap().contains(&said),
        "docs/guarantee.md shows what plan says no more"
    );
}

#[test]
fn programs_get_the_same_figures() {
    let folder = measured();
    let plan = ends(folder.path(), &format!("{PLAN} --rate 60MiB/s --region 0..80% --json"), 0).json();
    documented("plan", [&plan]);
    assert_eq!((&plan["slot_bytes"], &plan["gather"]), (&(64 << 20).into(), &4.into()));
    assert_eq!(plan["by_gather"].as_array().unwrap().len(), 4);
    assert_eq!(plan["by_region"].as_array().unwrap().len(), 10);
    // The table of section IV.A: 50 of the whole drive, 65 of 80 %; by the inequality some less.
    let most = |at: usize| plan["by_region"][at]["medium_bytes_per_second"].as_f64().unwrap() / 1_048_576.0;
    assert!((46.0..50.0).contains(&most(0)) && (60.0..65.0).contains(&most(2)), "{} {}", most(0), most(2));
    let streams =
        ends(folder.path(), &format!("{PLAN} --rate 40MiB/s --streams 9 --elements 2000 --json"), 0).json();
    assert_eq!(streams["elements_per_second"], 2000);
}

#[test]
fn elements_of_one_size_take_what_they_have() {
    let folder = measured();
    let four =
        "--attr a:uint=at:0:u64le --attr b:uint=at:8:u64le --attr c:ip=at:0:ipv4 --attr d:uint=at:16:u32le";
    let most = |more: &str| {
        let line = format!("{PLAN} --rate 1MiB/s {four} --region 0..80% --json {more}");
        let said: Said = holdfast(folder.path()).args(line.split_whitespace()).output().unwrap().into();
        let plan = said.json();
        documented("plan", [&plan]);
        assert_eq!(plan["elements_per_second"], 52429, "{more}");
        plan["capture_only_payload_bytes_per_second"].as_f64().unwrap() / 1_048_576.0
    };
    let (alike, any) = (most("--frame fixed:20"), most("--elements 52429"));
    assert!((19.0..20.5).contains(&alike) && (7.8..8.8).contains(&any), "{alike}, {any}");
    // Beside others their rows are as wide as those are, and where they have a time, it is in the row.
    assert!(most("--frame fixed:20 --streams 2") < 0.6 * alike);
    assert!(most("--frame fixed:20 --attr event_time:time=at:8:u64le") < 0.6 * alike);
    let text = ends(folder.path(), &format!("{PLAN} --rate 1MiB/s --frame fixed:20"), 0).out;
    assert!(text.contains("52 429 elements/s of 20 B each"), "{text}");
}

#[test]
fn what_cannot_be_promised_is_refused_with_what_would_do() {
    let folder = measured();
    let dir = folder.path();
    fs::write(dir.join("other.json"), "{\"fio version\": \"fio-3.33\"}").unwrap();
    fs::write(dir.join("cut.json"), "{\"format\": \"holdfast profile\", \"version\": 1, ").unwrap();
    for (line, code, wanted) in [
        ("--rate 60MiB/s", 1, "paper.profile.json: admissible instead: --rate 48.5MiB/s, or --region 0..80%"),
        ("--rate 1MiB/s --slot 4MiB --region 0..80%", 1, "slots of 4 MiB are too small for a guarantee"),
        ("--rate 60MiB/s --slot 16MiB --region 0..80%", 1, "counted on in slots so small"),
        ("--rate 60MiB/s --memory 512MiB --region 0..80%", 1, "--memory 640MiB (10 buffers)"),
        ("--rate 1MiB/s --elements 5000000", 1, "the packer was measured to manage 5000000"),
        ("--rate 60MiB/s --size 2TiB --region 0..70%", 1, "the first 1.4 TiB only"),
        ("--rate 1MiB/s --size 300MiB", 1, "too little for a guarantee"),
        ("--rate 0", 2, "a rate of 0 needs no guarantee"),
        ("--rate 60MiB/s --frame words", 2, "fixed:N, blocks:N, lines"),
        ("--rate 60MiB/s --elements 0", 2, "`0` is not a number a second"),
        ("--rate 60MiB/s --endurance 0", 2, "such as 600TB"),
        ("--rate 60MiB/s --flush 2h", 2, "give 10 ms to 1 h"),
        ("--rate 60MiB/s --size 4095", 2, "too few for a ring"),
        ("--rate 60MiB/s --region 20..80%", 2, "a region begins at 0"),
        ("--rate 60MiB/s --region all", 2, "such as 0..80%"),
        ("--rate 60MiB/s --slot 100MiB", 2, "--slot"),
        ("--rate 60MiB/s --gather 0", 2, "--gather"),
        ("--rate 60MiB/s --quantum 1", 2, "--quantum"),
        ("--rate 60MiB/s --streams 257", 2, "--streams"),
        ("--rate fast", 2, "such as 60MiB/s"),
    ] {
        let said = ends(dir, &format!("{PLAN} {line}"), code);
        assert!(said.err.contains(wanted) && said.out.is_empty(), "{line}: {}{}", said.out, said.err);
    }
    for (file, wanted) in [
        ("none.json", "none.json: check the path"),
        ("other.json", "this is not a profile"),
        ("cut.json", "damaged or cut off"),
        (".", "this is no file"),
    ] {
        let said = ends(dir, &format!("plan --profile {file} --rate 1MiB/s"), 1);
        assert!(said.err.contains(wanted), "{file}: {}", said.err);
    }
    let said = ends(dir, &format!("{PLAN} --rate 60MiB/s --json"), 1).json();
    assert!(said["exit"] == 1 && said["error"].as_str().unwrap().contains("--rate 48.5MiB/s"), "{said}");
}
