//! Commands on rings that nobody records to: made, refused, grown, rebuilt; nothing harmed on the way (promise 8).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{documented, ends, folder, holdfast, record, recorder_program, run, tool};
use serde_json::Value;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[test]
fn a_new_ring_is_empty_and_every_command_says_so() {
    let folder = folder();
    let dir = folder.path();
    let made = ends(dir, "format lab.hf --size 16MiB --name my_ring --json", 0).json();
    documented("format", [&made]);
    assert_eq!((&made["name"], &made["slots"]), (&Value::from("my ring"), &Value::from(11)));
    let status = ends(dir, "status lab.hf --json", 0).json();
    documented("status", [&status]);
    assert_eq!((&status["oldest"], &status["recorder"]), (&Value::Null, &Value::Null));
    assert_eq!(status["slots"]["free"], 11);
    let slots = ends(dir, "slots lab.hf --json", 0).lines();
    documented("slots", &slots);
    assert_eq!(slots.len(), 11);
    assert!(slots.iter().all(|slot| slot["state"] == "free"));
    for line in [
        "streams lab.hf",
        "gaps lab.hf",
        "holds lab.hf",
        "read lab.hf --format jsonl",
        "read lab.hf --stream a",
        "hold lab.hf --stream a --reason x",
        "hold lab.hf --last 5s --reason x",
        "purge lab.hf --last 5s --reason x",
        "release lab.hf 1",
    ] {
        ends(dir, line, 3);
    }
    let check = ends(dir, "check lab.hf --json", 0).json();
    documented("check", [&check]);
    assert_eq!(check["damaged"], 0);
    assert!(ends(dir, "metrics lab.hf", 0).out.contains("holdfast_recorder_up{ring=\"my ring\"} 0"));
    let told = ends(dir, "metrics lab.hf --json", 0).json();
    assert_eq!((&told["ring"], &told["metrics"][0]["samples"][0]["value"]), (&"my ring".into(), &0.into()));
}

#[test]
fn what_is_there_already_is_not_destroyed_unasked() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("notes"), "important").unwrap();
    let said = ends(dir, "format notes --size 16MiB", 1);
    assert!(said.err.contains("notes") && said.err.contains("--force"), "{}", said.err);
    assert_eq!(fs::read(dir.join("notes")).unwrap(), b"important");
    // A size that cannot be is refused before anything is touched, force or not.
    ends(dir, "format notes --size 1MiB --force", 2);
    ends(dir, "format notes --size 16MiB --slot 3MiB --force", 2);
    assert_eq!(fs::read(dir.join("notes")).unwrap(), b"important");
    ends(dir, "format notes --size 16MiB --force", 0);
    let said = ends(dir, "format notes --size 16MiB", 1);
    assert!(said.err.contains("a Holdfast ring"), "{}", said.err);
    recorder_program();
    fs::write(dir.join("short"), "").unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, dir.join("pipe"), pipe, rustix::fs::Mode::RUSR, 0).unwrap();
    // It would wait for the pipe's other end for ever.
    assert!(ends(dir, "status pipe", 1).err.contains("a named pipe"));
    for (line, code, wanted) in [
        ("format new", 2, "--size"),
        ("format none/new --size 16MiB", 1, "none/new: there is no such folder to put it in; make it first"),
        ("format /dev/null --size 16MiB", 1, "character device"),
        ("format . --size 16MiB", 1, "directory"),
        ("format new --size 200TiB", 1, "new"),
        ("format new --size 1MiB", 2, "too small"),
        ("format new --size 1KiB", 2, "a lane of 1 KiB is too small"),
        ("record new --size 1KiB --source stdin --name a", 2, "a lane of 1 KiB is too small"),
        ("status /dev/null", 1, "a character device"),
        ("check --geometry find /dev/zero", 1, "a character device"),
        ("check --geometry find none", 1, "superblock: none: not found; check the path\n"),
        (
            "record none --source stdin --name a",
            1,
            "none: not found; check the path, or create a ring file there with --size",
        ),
        ("status short", 1, "too short"),
        ("record short --source stdin --name a", 1, "too short"),
        ("status notes2", 1, "no such ring"),
        ("status .", 1, "directory"),
        ("status /etc/hostname", 1, "not a ring"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
    }
    assert!(!dir.join("new").exists() && !dir.join("none").exists());
    assert!(!ends(dir, "status short", 1).err.contains("reaches outside"));
}

#[test]
fn a_ring_gives_way_to_a_new_one_only_when_that_is_whole() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB --name old", 0);
    std::os::unix::fs::symlink("r.hf", dir.join("link")).unwrap();
    let before = fs::read(dir.join("r.hf")).unwrap();
    let said = ends(dir, "format r.hf --size 200TiB --force", 1);
    assert!(said.err.contains("do not fit") && said.err.contains("/r.hf: "), "{}", said.err);
    assert!(fs::read(dir.join("r.hf")).unwrap() == before, "the old ring is as it was");
    // What a link leads to gives way, and the link stays.
    ends(dir, "format link --size 16MiB --name new --force", 0);
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
    assert_eq!(ends(dir, "status r.hf --json", 0).json()["name"], "new");
    assert!(fs::metadata(dir.join("r.hf")).unwrap().is_file());
    assert_eq!(fs::metadata(dir.join("r.hf")).unwrap().mode() & 0o777, 0o600);
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "run");
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_ring_that_is_interrupted_in_the_making_leaves_nothing() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format old.hf --size 16MiB", 0);
    let before = fs::read(dir.join("old.hf")).unwrap();
    for line in ["format r.hf --size 4GiB --prefill", "format old.hf --size 4GiB --prefill --force"] {
        let mut format = holdfast(dir).args(line.split(' ')).stderr(Stdio::piped()).spawn().unwrap();
        let begun = || {
            let mut files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
            files.any(|file| file.file_name().to_string_lossy().contains(".part"))
        };
        while !begun() && format.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let pid = rustix::process::Pid::from_child(&format);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ended = format.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), said.contains("interrupted")), (Some(130), true), "{said}");
        assert!(!begun() && !dir.join("r.hf").exists());
    }
    assert!(fs::read(dir.join("old.hf")).unwrap() == before);
}

#[test]
fn a_file_with_a_file_system_or_a_partition_table_is_named() {
    let folder = folder();
    let dir = folder.path();
    if let Some(mkfs) = tool("mkfs.ext4") {
        let image = dir.join("image");
        File::create(&image).unwrap().set_len(16 << 20).unwrap();
        assert!(Command::new(mkfs).args(["-q", "-F"]).arg(&image).status().unwrap().success());
        let said = ends(dir, "format image", 1);
        assert!(said.err.contains("ext"), "{}", said.err);
    }
    // One partition of Linux; in the other image it protects a table of the newer kind.
    let mut mbr = vec![0; 16 << 20];
    mbr[446..462].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x10, 0, 0]);
    mbr[510..512].copy_from_slice(b"\x55\xaa");
    let mut gpt = mbr.clone();
    gpt[450] = 0xee;
    gpt[512..520].copy_from_slice(b"EFI PART");
    for (name, image, table) in
        [("mbr", mbr, "an MBR partition table"), ("gpt", gpt, "a GPT partition table")]
    {
        fs::write(dir.join(name), &image).unwrap();
        let said = ends(dir, &format!("format {name} --size 16MiB"), 1);
        assert!(said.err.contains(table) && said.err.contains("--force"), "{}", said.err);
        assert!(fs::read(dir.join(name)).unwrap() == image, "{name} was changed");
    }
}

/// Opens a folder to everybody. The one that the program is in may be closed: a copy of it is not.
fn for_all(dir: &Path) -> PathBuf {
    fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
    let program = dir.join("holdfast");
    // By a process of its own: what another test starts meanwhile would have our copy open for writing, and it could
    // not be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_holdfast")).arg(&program).status().unwrap();
    assert!(copied.success());
    program
}

/// A user with nothing but himself.
const SOMEBODY: u32 = 65_534;

fn may_be_somebody() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root can run a program as somebody else");
    }
    is_root
}

fn by_somebody(program: &Path, dir: &Path, line: &str) -> Output {
    let mut command = Command::new(program);
    command.args(line.split(' ')).current_dir(dir).env("HOME", dir).env("HOLDFAST_RUN", dir.join("run"));
    command.stdin(Stdio::null()).uid(SOMEBODY).gid(SOMEBODY).output().unwrap()
}

#[test]
fn whoever_replaces_a_file_opens_it_to_nobody_else() {
    if !may_be_somebody() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB", 0);
    fs::set_permissions(dir.join("r.hf"), Permissions::from_mode(0o644)).unwrap();
    let program = for_all(dir);
    let file = dir.join("one.csv");
    let line = "query r.hf select(1) --format csv -o one.csv --force";
    // Of others, whose group may read it.
    let (owner, group) = (SOMEBODY - 1, SOMEBODY - 2);
    fs::write(&file, "").unwrap();
    chown(&file, Some(owner), Some(group)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let is_of = || {
        let found = fs::metadata(&file).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o777)
    };
    ends(dir, line, 0);
    assert_eq!(is_of(), (owner, group, 0o640));
    let said = by_somebody(&program, dir, line);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(is_of(), (SOMEBODY, SOMEBODY, 0o600));
}

#[test]
fn without_the_rights_every_command_says_what_would_do_and_harms_nothing() {
    if !may_be_somebody() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB", 0);
    let ring = fs::read(dir.join("r.hf")).unwrap();
    // Only the ring is closed to them.
    let program = for_all(dir);
    for line in [
        "format r.hf --size 16MiB",
        "format r.hf --size 16MiB --force",
        "status r.hf",
        "streams r.hf",
        "read r.hf --stream s",
        "hold r.hf --last 5s --reason x",
        "purge r.hf --last 5s --reason x",
        "grow r.hf --size 32MiB",
        "check r.hf",
    ] {
        let said = by_somebody(&program, dir, line);
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1), "{line}: {err}");
        let told = ["r.hf", "permission denied", "run as"].iter().all(|said| err.contains(said));
        assert!(told && err.contains("a user who may"), "{line}: {err}");
        assert!(said.stdout.is_empty() && fs::read(dir.join("r.hf")).unwrap() == ring, "{line}");
    }
}

#[test]
fn a_ring_grows_and_never_shrinks() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB", 0);
    for (line, wanted) in [
        ("grow r.hf --size 8MiB", "r.hf"),
        ("grow r.hf --size 16MiB", "as many as the ring has"),
        ("grow r.hf", "--size"),
    ] {
        let said = ends(dir, line, 2);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
    }
    assert_eq!(fs::metadata(dir.join("r.hf")).unwrap().len(), 16 << 20);
    let grown = ends(dir, "grow r.hf --size 32MiB --json", 0).json();
    documented("grow", [&grown]);
    assert_eq!((&grown["slots"], &grown["slots_before"]), (&Value::from(27), &Value::from(11)));
    assert_eq!(ends(dir, "status r.hf --json", 0).json()["slots"]["total"], 27);
    assert_eq!(fs::metadata(dir.join("r.hf")).unwrap().len(), 32 << 20);
}

#[test]
fn a_lost_superblock_is_rebuilt_on_its_own_ring_only() {
    let folder = folder();
    let dir = folder.path();
    let made = ends(dir, "format r.hf --size 16MiB --json", 0).json();
    ends(dir, "format other.hf --size 16MiB", 0);
    ends(dir, "format third.hf --size 16MiB", 0);
    let recovery = made["recovery"].as_str().unwrap();
    let wipe = |name: &str, bytes: usize| {
        OpenOptions::new()
            .write(true)
            .open(dir.join(name))
            .unwrap()
            .write_all_at(&vec![0; bytes], 0)
            .unwrap();
    };
    let whole = fs::read(dir.join("r.hf")).unwrap();
    wipe("r.hf", 4096);
    let said = ends(dir, "check r.hf", 1);
    assert!(said.out.contains("superblock copy 0 at byte 0"), "{}", said.out);
    wipe("r.hf", 1 << 20);
    assert!(ends(dir, "status r.hf", 1).err.contains("check --geometry"));
    let rebuilt = ends(dir, &format!("check --geometry {recovery} r.hf --json"), 0).json();
    documented("check", [&rebuilt]);
    assert_eq!(rebuilt["rebuilt"], true);
    let back = fs::read(dir.join("r.hf")).unwrap();
    assert!(back[1 << 20..] == whole[1 << 20..], "nothing else was touched");
    ends(dir, "check r.hf", 0);
    assert_eq!(ends(dir, &format!("check --geometry {recovery} r.hf --json"), 0).json()["rebuilt"], false);

    let before = fs::read(dir.join("other.hf")).unwrap();
    let said = ends(dir, &format!("check --geometry {recovery} other.hf"), 1);
    assert!(said.err.contains("another ring"), "{}", said.err);
    assert!(fs::read(dir.join("other.hf")).unwrap() == before);
    wipe("third.hf", 1 << 20);
    let before = fs::read(dir.join("third.hf")).unwrap();
    let said = ends(dir, &format!("check --geometry {recovery} third.hf"), 1);
    assert!(said.err.contains("nothing here is of the ring"), "{}", said.err);
    assert!(fs::read(dir.join("third.hf")).unwrap() == before);
    ends(dir, "check --geometry holdfast1:abc r.hf", 2);
    let flipped = recovery.replace(&recovery[20..21], if &recovery[20..21] == "a" { "b" } else { "a" });
    ends(dir, &format!("check --geometry {flipped} r.hf"), 2);
}

#[test]
fn a_superblock_that_is_rebuilt_has_the_size_that_the_ring_has_grown_to() {
    let folder = folder();
    let dir = folder.path();
    let made = ends(dir, "format r.hf --size 16MiB --json", 0).json();
    let recovery = made["recovery"].as_str().unwrap();
    let file = OpenOptions::new().write(true).read(true).open(dir.join("r.hf")).unwrap();
    let heads = |file: &File| {
        let mut bytes = vec![0; 1 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let small = heads(&file);
    ends(dir, "grow r.hf --size 32MiB", 0);
    for lost in [vec![0; 1 << 20], small] {
        file.write_all_at(&lost, 0).unwrap();
        let rebuilt = ends(dir, &format!("check --geometry {recovery} r.hf --json"), 0).json();
        assert_eq!((&rebuilt["rebuilt"], &rebuilt["slots"]), (&Value::from(true), &Value::from(27)));
        let back = holdfast_format::Superblock::decode(&heads(&file)[..4096]).unwrap();
        assert_eq!((back.geometry.lane_bytes, back.geometry.slots), (32 << 20, 27));
        assert_eq!(
            ends(dir, &format!("check --geometry {recovery} r.hf --json"), 0).json()["rebuilt"],
            false
        );
    }
    // Half a ring is not made to look like a whole one.
    file.write_all_at(&vec![0; 1 << 20], 0).unwrap();
    file.set_len(20 << 20).unwrap();
    let said = ends(dir, &format!("check --geometry {recovery} r.hf"), 1);
    assert!(said.err.contains("the ring on it has 33554432"), "{}", said.err);
    assert!(heads(&file).iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn rings_have_names_in_the_configuration_file() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 16MiB", 0);
    let config = |text: &str| fs::write(dir.join("config.toml"), text).unwrap();
    let status = |name: &str| {
        holdfast(dir).env("HOLDFAST_CONFIG", "config.toml").args(["status", name]).output().unwrap()
    };
    config(&format!("[rings.lab]\npath = \"{}\"\n", dir.join("r.hf").display()));
    assert_eq!(status("lab").status.code(), Some(0));
    assert_eq!(status("r.hf").status.code(), Some(0));
    assert_eq!(status("./lab").status.code(), Some(1));
    config("[rings.lab]\npath = \"/x\"\ncolour = 3\n");
    let said = status("lab");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(2));
    assert!(text.contains("`colour`") && text.contains("config.toml line 3"), "{text}");
}

#[test]
fn format_takes_names_and_what_is_typed_goes_before_the_configuration_file() {
    let folder = folder();
    let dir = folder.path();
    let text = "[rings.lab]\npath = \"PATH\"\nrecord = [\"--size\", \"16MiB\", \"--source\", \"stdin\", \"--name\", \"a\"]\n";
    fs::write(dir.join("config.toml"), text.replace("PATH", &dir.join("place.hf").display().to_string()))
        .unwrap();
    recorder_program();
    let said = |line: &str| {
        let mut command = holdfast(dir);
        command.env("HOLDFAST_CONFIG", "config.toml").args(line.split(' ')).output().unwrap()
    };
    let made = said("format lab --size 9MiB --slot 64KiB");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(!dir.join("lab").exists() && dir.join("place.hf").exists());
    fs::remove_file(dir.join("place.hf")).unwrap();
    let recorded = said("record lab --size 20MiB");
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    assert_eq!(fs::metadata(dir.join("place.hf")).unwrap().len(), 20 << 20);
    // What has a slash or no entry is a path.
    assert!(said("format ./lab --size 16MiB").status.success() && dir.join("lab").exists());
}

#[test]
fn a_ring_too_small_for_any_hold_is_told_with_what_would_do() {
    let folder = folder();
    let dir = folder.path();
    let told = |said: &str| said.contains("nothing can be held on this ring: it has 4 slots");
    let made = ends(dir, "format r.hf --size 9MiB", 0);
    assert!(told(&made.out), "{}", made.out);
    assert!(made.out.contains("a size of 12 MiB would do, or slots of 512 KiB"), "{}", made.out);
    assert!(told(&ends(dir, "format j.hf --size 9MiB --json", 0).json()["warnings"].to_string()));
    for ring in ["r.hf", "new.hf --size 9MiB"] {
        let said = record(dir, &format!("{ring} --source stdin --name a"), Stdio::null());
        assert!(said.code == Some(0) && told(&said.err), "{}", said.err);
    }
    for enough in ["--size 12MiB", "--size 9MiB --slot 512KiB"] {
        let made = ends(dir, &format!("format r.hf {enough} --force"), 0);
        let said = record(dir, "r.hf --source stdin --name a", Stdio::null());
        assert!(!made.out.contains("held on") && !said.err.contains("held on"), "{}{}", made.out, said.err);
    }
}

#[test]
fn a_preamble_that_is_too_large_is_not_the_holds_fault() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("head"), vec![b'x'; 300_000]).unwrap();
    let said = record(dir, "r.hf --size 16MiB --source stdin --name a --preamble head", Stdio::null());
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("--preamble") && said.err.contains("larger slots"), "{}", said.err);
    assert!(!said.err.contains("release a hold") && !dir.join("r.hf").exists(), "{}", said.err);
}

// Promise 8: what a capture brings beside its packets is named, and no option that a replay does not have.
#[test]
fn a_capture_with_too_much_beside_its_packets_is_told_as_such() {
    let folder = folder();
    let dir = folder.path();
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section =
        block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
    // Secrets of TLS, for example.
    let other = block(10, &[&b"KSLT"[..], &300_000u32.to_le_bytes(), &vec![b'x'; 300_000]].concat());
    fs::write(dir.join("c.pcapng"), [section, interface, other].concat()).unwrap();
    let said = record(dir, "r.hf --size 16MiB --source replay:c.pcapng --name a", Stdio::null());
    assert_eq!(said.code, Some(1));
    let told = "stream a: replay:c.pcapng: its interfaces and other non-packet blocks: 293";
    assert!(said.err.contains(told) && said.err.contains("larger slots"), "{}", said.err);
    assert!(!said.err.contains("--preamble") && !dir.join("r.hf").exists(), "{}", said.err);
    // An MCAP file has schemas.
    let record_of =
        |kind: u8, content: &[u8]| [&[kind][..], &(content.len() as u64).to_le_bytes(), content].concat();
    let schema = [&[1, 0][..], &[0; 8], &300_000u32.to_le_bytes(), &vec![b'x'; 300_000]].concat();
    let file =
        [&b"\x89MCAP0\r\n"[..], &record_of(1, &[0; 8]), &record_of(3, &schema), &record_of(15, &[0; 4])];
    fs::write(dir.join("c.mcap"), file.concat()).unwrap();
    let said = record(dir, "r.hf --size 16MiB --source replay:c.mcap --name a", Stdio::null());
    assert_eq!(said.code, Some(1));
    let told = "stream a: replay:c.mcap: its schemas and channels: 293";
    assert!(said.err.contains(told) && said.err.contains("replay a file with fewer of them"), "{}", said.err);
    assert!(!said.err.contains("packet") && !said.err.contains("tcpdump"), "{}", said.err);
}

#[test]
fn a_prefilled_ring_file_is_written_and_any_other_reserved() {
    let folder = folder();
    let dir = folder.path();
    // Where a file system tells written space from reserved space, this is the first that is not written.
    let written = |name: &str| {
        let file = File::open(dir.join(name)).unwrap();
        let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(0)).unwrap();
        (hole, file.metadata().unwrap().blocks() * 512)
    };
    let reserved = ends(dir, "format plain.hf --size 16MiB --json", 0).json();
    assert_eq!(reserved["prefilled"], false);
    let filled = ends(dir, "format full.hf --size 16MiB --prefill --json", 0).json();
    assert_eq!(filled["prefilled"], true);
    assert_eq!(written("full.hf").0, 16 << 20, "every byte is written");
    assert!(
        written("full.hf").1 >= 16 << 20 && written("plain.hf").1 >= 16 << 20,
        "space for all of it is there"
    );
    let kind = rustix::fs::statfs(dir).unwrap().f_type as u32;
    if [0xef53, 0x5846_5342].contains(&kind) {
        assert!(written("plain.hf").0 < 16 << 20, "it was not prefilled");
    } else {
        eprintln!("neither ext4 nor XFS: whether reserved space counts as written is not known");
    }
    for (name, prefilled) in [("full.hf", true), ("plain.hf", false)] {
        let grown = ends(dir, &format!("grow {name} --size 32MiB --json"), 0).json();
        assert_eq!(grown["prefilled"], prefilled, "{name}");
        assert!(written(name).1 >= 32 << 20, "what grew is reserved");
        assert!(!prefilled || written(name).0 == 32 << 20, "every byte of what grew is written");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 64MiB --slot 64KiB", 0);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = holdfast(dir).args(["slots", "r.hf"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn errors_reach_programs_too() {
    let folder = folder();
    let said = run(folder.path(), "status none.hf --json");
    let error = said.json();
    assert_eq!((said.code, &error["exit"]), (Some(1), &Value::from(1)));
    assert_eq!(said.err, format!("holdfast: {}\n", error["error"].as_str().unwrap()));
    assert!(Path::new(env!("CARGO_BIN_EXE_holdfast")).is_file());
    // Also of what is found out before there is a recorder.
    for line in [
        "record r.hf --source stdin --name a --json --schema none.toml",
        "record r.hf --json --source stdin --name a --metrics nowhere",
    ] {
        let said = run(folder.path(), line);
        let error = said.json();
        assert_eq!(said.code, error["exit"].as_i64().map(|code| code as i32), "{line}");
        assert_eq!(said.err, format!("holdfast: {}\n", error["error"].as_str().unwrap()));
    }
    // A name that cannot be said is not changed into another.
    let wrong = std::ffi::OsStr::from_bytes(b"r\xff.hf");
    let words = ["--size", "16MiB", "--source", "stdin", "--name", "a", "--json"];
    recorder_program();
    let said: common::Said =
        holdfast(folder.path()).arg("record").arg(wrong).args(words).output().unwrap().into();
    assert_eq!((said.code, said.json()["exit"].as_i64()), (Some(2), Some(2)), "{}", said.err);
    assert!(said.err.contains("is not UTF-8"), "{}", said.err);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().filter(|e| e.as_ref().unwrap().file_name() != "run").count(),
        0
    );
}
