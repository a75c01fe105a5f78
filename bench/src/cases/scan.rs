//! Scans beside the tools that people use: `holdfast grep` and `ripgrep` on many small files and on few large ones,
//! cold and warm; `holdfast hash` and `b3sum`; the small files as plain reading, as a silo of their own, and
//! concatenated; and how the number of drives, the concatenation of small files and a least size of files change the
//! rate, on emulated drives, as in table 1 and figures 6 and 7 of Chamberlain and Shands (2005).

use crate::emulated::Emulated;
use crate::program::holdfast;
use crate::report::{Goal, Report};
use crate::rounds::Rounds;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Text that stands once in the large files, and in one of the small ones.
const NEEDLE: &str = "xyzzy-4711";

/// Words of the text.
const WORDS: [&str; 16] = [
    "the", "of", "slot", "ring", "disk", "silo", "module", "element", "archive", "night", "storm", "light",
    "measure", "signal", "noise", "water",
];

/// Pseudo-random numbers by `SplitMix64`, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Text of so many bytes, in lines.
    fn text(&mut self, bytes: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes + 16);
        while text.len() < bytes {
            let number = self.next();
            text.extend_from_slice(WORDS[number as usize % WORDS.len()].as_bytes());
            text.push(if number.is_multiple_of(11) { b'\n' } else { b' ' });
        }
        text.truncate(bytes);
        text
    }
}

/// Makes small files of 0 to 8 KiB, mostly, in folders of a hundred; the number of bytes.
fn small_files(folder: &Path, count: usize) -> Result<u64, BenchError> {
    let mut random = Random(1);
    let mut bytes = 0;
    for number in 0..count {
        let below = folder.join(format!("{:04}", number / 100));
        if number.is_multiple_of(100) {
            fs::create_dir_all(&below).map_err(BenchError::file(&below, "make it"))?;
        }
        let size = match random.next() % 100 {
            0..13 => 0,
            13..90 => random.next() as usize % 8192,
            _ => random.next() as usize % 65_536,
        };
        let mut text = random.text(size);
        if number == count / 2 {
            text.extend_from_slice(NEEDLE.as_bytes());
        }
        let path = below.join(number.to_string());
        fs::write(&path, &text).map_err(BenchError::file(&path, "write it"))?;
        bytes += text.len() as u64;
    }
    Ok(bytes)
}

/// Makes large files, with the needle near the end of the last.
fn large_files(folder: &Path, count: usize, bytes: usize) -> Result<u64, BenchError> {
    fs::create_dir_all(folder).map_err(BenchError::file(folder, "make it"))?;
    let part = Random(2).text(bytes.min(16 << 20));
    for number in 0..count {
        let path = folder.join(format!("large{number}"));
        let failed = BenchError::file(&path, "write it");
        let write = || -> std::io::Result<()> {
            let mut file = BufWriter::new(File::create(&path)?);
            for _ in 0..bytes / part.len() {
                file.write_all(&part)?;
            }
            if number + 1 == count {
                file.write_all(format!("\n{NEEDLE}\n").as_bytes())?;
            }
            file.flush()
        };
        write().map_err(failed)?;
    }
    Ok((count * bytes) as u64)
}

/// Forgets all files in memory; what is written is on the disk first.
fn forget() -> Result<(), BenchError> {
    tools::output("sync", &[])?;
    let path = Path::new("/proc/sys/vm/drop_caches");
    fs::write(path, "3").map_err(BenchError::file(path, "write to it"))
}

/// Program that is measured.
struct Contestant {
    name: &'static str,
    command: Vec<String>,
    /// Text that its output must contain.
    expected: &'static str,
}

impl Contestant {
    fn new(name: &'static str, program: &Path, arguments: &str, expected: &'static str) -> Self {
        let words = arguments.split_whitespace().map(str::to_owned);
        let command = std::iter::once(program.display().to_string()).chain(words).collect();
        Self { name, command, expected }
    }

    /// Runs it; the seconds that it takes.
    fn run(&self) -> Result<f64, BenchError> {
        let (said, took) = tools::run(tools::command(&self.command[0]).args(&self.command[1..]))?;
        if said.contains(self.expected) {
            return Ok(took);
        }
        Err(BenchError::program(self.command.join(" "), format!("not the expected answer: {said}")))
    }
}

/// Lets contestants take turns over the same bytes; ratios are of the first one's rate to that of each.
fn compare(
    report: &mut Report,
    title: &str,
    bytes: u64,
    is_cold: bool,
    contestants: &[Contestant],
    rounds: usize,
) -> Result<(), BenchError> {
    let rounds = Rounds::run(rounds, contestants.len(), |at| {
        if is_cold {
            forget()?;
        }
        contestants[at].run()
    })?;
    let mut rows = vec![row![title, "s", "MiB/s", "ours to it", "verdict"]];
    for (at, contestant) in contestants.iter().enumerate() {
        let took = rounds.of(at);
        let rate = bytes as f64 / took.median / f64::from(1 << 20);
        // Time of the other to ours is rate of ours to the other's.
        let ratio = rounds.ratio(at, 0);
        let (shown, verdict) = if at == 0 {
            (String::new(), String::new())
        } else {
            (ratio.show(2), Goal::AtLeast(if is_cold { 1.0 } else { 0.95 }).verdict(&ratio))
        };
        rows.push(row![contestant.name, took.show(3), format!("{rate:.0}"), shown, verdict]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures scans beside their peers.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let place = WorkFolder::with_room(scale.pick(64 << 20, 12 << 30))?;
    let program = holdfast("holdfast", scale)?;
    let mut report = Report::new("scan", scale);
    let rounds = scale.pick(1, 5);
    let cold = tools::is_root() && scale == Scale::Real;
    let peer = |name: &str| if scale == Scale::Real { tools::find(name) } else { None };

    let tree = place.file("tree");
    let bytes = small_files(&tree, scale.pick(300, 100_000))?;
    let (tree, packed) = (tree.display().to_string(), place.file("tree.mcap").display().to_string());
    tools::output(&program.display().to_string(), &["concat", &tree, "-o", &packed])?;
    let grep = |more: &str| format!("grep -F {NEEDLE} {more}");
    let mut contestants = vec![
        Contestant::new("holdfast grep", &program, &grep(&tree), NEEDLE),
        Contestant::new("holdfast grep --small 0", &program, &grep(&format!("{tree} --small 0")), NEEDLE),
        Contestant::new("holdfast grep, concatenated", &program, &grep(&packed), NEEDLE),
    ];
    if let Some(rg) = peer("rg") {
        contestants.push(Contestant::new("rg -uuu", &rg, &format!("-uuu -F {NEEDLE} {tree}"), NEEDLE));
    }
    if let Some(theirs) = peer("grep") {
        contestants.push(Contestant::new("grep -r", &theirs, &format!("-r -F {NEEDLE} {tree}"), NEEDLE));
    }
    if cold {
        compare(&mut report, "small files, cold", bytes, true, &contestants, rounds)?;
    }
    compare(&mut report, "small files, warm", bytes, false, &contestants, rounds)?;

    let large = place.file("large");
    let bytes = large_files(&large, 3, scale.pick(8 << 20, 1 << 30))?;
    let large = large.display().to_string();
    let words = place.file("words");
    let mut random = Random(3);
    let list: Vec<String> = (0..1000).map(|_| format!("q{:016x}", random.next())).collect();
    fs::write(&words, format!("{}\n{NEEDLE}\n", list.join("\n")))
        .map_err(BenchError::file(&words, "write it"))?;
    let words = words.display();
    for (title, ours, theirs) in [
        ("one literal", format!("grep -F {NEEDLE} {large}"), format!("-uuu -a -F {NEEDLE} {large}")),
        (
            "regular expression",
            format!("grep [xz]yzzy-[0-9]+ {large}"),
            format!("-uuu -a [xz]yzzy-[0-9]+ {large}"),
        ),
        ("1001 words", format!("grep -F -f {words} {large}"), format!("-uuu -a -F -f {words} {large}")),
    ] {
        let mut contestants = vec![Contestant::new("holdfast grep", &program, &ours, NEEDLE)];
        if let Some(rg) = peer("rg") {
            contestants.push(Contestant::new("rg -uuu -a", &rg, &theirs, NEEDLE));
        }
        if cold {
            compare(
                &mut report,
                &format!("3 large files, {title}, cold"),
                bytes,
                true,
                &contestants,
                rounds,
            )?;
        }
        compare(&mut report, &format!("3 large files, {title}, warm"), bytes, false, &contestants, rounds)?;
    }
    let mut contestants =
        vec![Contestant::new("holdfast hash", &program, &format!("hash {large}"), "large2")];
    if let Some(b3sum) = peer("b3sum") {
        let all = (0..3).map(|number| format!("{large}/large{number}")).collect::<Vec<_>>().join(" ");
        contestants.push(Contestant::new("b3sum", &b3sum, &all, "large2"));
    }
    if cold {
        compare(&mut report, "BLAKE3, cold", bytes, true, &contestants, rounds)?;
    }
    compare(&mut report, "BLAKE3, warm", bytes, false, &contestants, rounds)?;
    match drives(&program, &mut report, scale) {
        Err(BenchError::Skipped { reason }) => println!("emulated drives: skipped: {reason}"),
        other => other?,
    }
    report.finish()
}

/// File systems on emulated drives, unmounted when dropped.
struct Drives {
    mounts: Vec<PathBuf>,
    emulated: Vec<Emulated>,
    places: Vec<WorkFolder>,
}

impl Drop for Drives {
    fn drop(&mut self) {
        for mount in &self.mounts {
            let _ = tools::output("umount", &["--lazy", &mount.display().to_string()]);
        }
        self.emulated.clear();
        self.places.clear();
    }
}

/// One set of files spread over one, three and six drives, as they are and with small ones concatenated.
fn drives(program: &Path, report: &mut Report, scale: Scale) -> Result<(), BenchError> {
    if !tools::is_root() || scale == Scale::Tiny {
        return Err(BenchError::skipped("they are mounted by root, in a real run"));
    }
    let mut rows = vec![row!["drives", "files", "MiB", "s", "MiB/s", "to one drive's large files"]];
    // Rate of one drive with large files alone.
    let mut base = f64::NAN;
    for count in [1, 3, 6] {
        let (files, large) = (12_000 / count, 600 / count);
        let mut set = Drives { mounts: Vec::new(), emulated: Vec::new(), places: Vec::new() };
        let mut bytes = 0;
        for _ in 0..count {
            let place = WorkFolder::in_memory(2 << 30)?;
            let drive = Emulated::mount(&place, &["--model", "paper", "--bytes", "1GiB"], scale)?;
            drive.order("fast")?;
            let mount = place.file("mount");
            fs::create_dir_all(&mount).map_err(BenchError::file(&mount, "make it"))?;
            let path = drive.path().display().to_string();
            tools::output("mkfs.ext4", &["-q", "-F", "-m", "0", &path])?;
            tools::output("mount", &["-o", "loop,noatime", &path, &mount.display().to_string()])?;
            bytes += small_files(&mount.join("small"), files)?;
            bytes += large_files(&mount.join("large"), 1, large << 20)?;
            tools::output("sync", &[])?;
            drive.order("ok")?;
            set.mounts.push(mount);
            set.emulated.push(drive);
            set.places.push(place);
        }
        let roots = |below: &str| -> String {
            let all: Vec<_> = set.mounts.iter().map(|mount| format!("{}{below}", mount.display())).collect();
            all.join(" ")
        };
        let mut measure = |name: &str, arguments: String, scanned: u64| -> Result<(), BenchError> {
            forget()?;
            let command = format!("grep -F {NEEDLE} -c {arguments}");
            let took = Contestant::new("holdfast grep", program, &command, "").run()?;
            let mib = scanned as f64 / f64::from(1 << 20);
            if base.is_nan() {
                base = mib / took;
            }
            let (all, seconds, rate) =
                (format!("{mib:.0}"), format!("{took:.1}"), format!("{:.0}", mib / took));
            rows.push(row![count, name, all, seconds, rate, format!("{:.2}", mib / took / base)]);
            Ok(())
        };
        measure("large ones alone", roots("/large"), ((large as u64) << 20) * count as u64)?;
        measure("as they are", roots(""), bytes)?;
        measure("as they are, --small 0", format!("{} --small 0", roots("")), bytes)?;
        for (mount, drive) in set.mounts.iter().zip(&set.emulated) {
            let (from, to) = (mount.join("small").display().to_string(), mount.join("small.mcap"));
            drive.order("fast")?;
            tools::output(
                &program.display().to_string(),
                &["concat", &from, "-o", &to.display().to_string()],
            )?;
            drive.order("ok")?;
        }
        let concatenated = format!("{} {}", roots("/large"), roots("/small.mcap"));
        measure("small ones concatenated", concatenated, bytes)?;
    }
    report.table(&rows);
    Ok(())
}
