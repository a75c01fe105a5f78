//! Every kind of real input goes through the recorder onto a ring, and comes back byte for byte (promise 5); a piece from
//! the middle of a stream begins with its preamble, and opens. Real files are taken from `$HOLDFAST_TEST_DATA`; where
//! that is unset, files of the same kinds are made.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::made;

use common::recording::{PATIENCE, Recording};
use common::{documented, ends, folder, record, run, tool};
use holdfast_ingest::packet::{Interface, Reader};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A real file, at most so many bytes of it, or what was made instead.
fn input(dir: &Path, name: &str, most: usize, made: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let real = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| Path::new(&data).join(name));
    let mut bytes = match real.filter(|path| path.is_file()) {
        Some(path) => fs::read(path).unwrap(),
        None => made(),
    };
    bytes.truncate(most);
    fs::write(dir.join("input"), &bytes).unwrap();
    bytes
}

/// Records the file `input` into a new ring; nothing may be lost.
fn onto_ring(dir: &Path, source: &str, options: &str) {
    let _ = fs::remove_file(dir.join("r.hf"));
    let stdin = if source == "stdin" { File::open(dir.join("input")).unwrap().into() } else { Stdio::null() };
    let line = format!("r.hf --size 24MiB --slot 256KiB --source {source} --name s {options}");
    let said = record(dir, &line, stdin);
    assert_eq!(said.code, Some(0), "{line}: {}", said.err);
    ends(dir, "gaps r.hf", 3);
    ends(dir, "check r.hf", 0);
}

fn back(dir: &Path, options: &str) -> Vec<u8> {
    ends(dir, &format!("read r.hf --stream s -o out --force {options}"), 0);
    fs::read(dir.join("out")).unwrap()
}

/// All that a capture file tells: interfaces (link type, snap length, options), and of each packet its interface, time,
/// length, direction, options (comments among them) and bytes.
fn told(file: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut reader = Reader::new(file);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(format!("{packet:?}"));
    }
    // The unit of times may be finer in an export; the times themselves are compared above.
    let known = |interface: &Interface| {
        let Interface { link_type, snaplen, options, .. } = interface;
        format!("{link_type:?} {snaplen} {options:?}")
    };
    (reader.interfaces().iter().map(known).collect(), packets)
}

fn packets_come_back(dir: &Path, name: &str, made: impl FnOnce() -> Vec<u8>) {
    let file = input(dir, name, usize::MAX, made);
    onto_ring(dir, "replay:input", "--speed max");
    let (interfaces, packets) = told(&file);
    let export = back(dir, "--format pcapng");
    let (export_interfaces, export_packets) = told(&export);
    assert_eq!(export_packets.len(), packets.len(), "{name}");
    for (number, (read, wanted)) in export_packets.iter().zip(&packets).enumerate() {
        assert_eq!(read, wanted, "{name}: packet {number}");
    }
    assert_eq!(export_interfaces, interfaces, "{name}");
    let some = told(&back(dir, "--format pcapng --ordinals 10..15"));
    assert_eq!(some, (interfaces, packets[10..15].to_vec()), "{name}: a piece from the middle");
}

#[test]
fn captures_come_back_with_times_lengths_interfaces_link_types_and_comments() {
    let folder = folder();
    for name in ["pcap/bitcoin.pcap", "pcap/vnc.pcap"] {
        packets_come_back(folder.path(), name, made::pcap);
    }
    for name in ["pcap/telegram_videocall.pcapng", "pcap/alexa-app.pcapng"] {
        packets_come_back(folder.path(), name, made::pcapng);
    }
    // Comments, several interfaces and cut packets, whatever the real files have.
    packets_come_back(folder.path(), "no such file", made::pcapng);
    let (interfaces, packets) = told(&made::pcapng());
    assert!(interfaces.len() == 2 && interfaces[0] != interfaces[1] && packets[3] != packets[4]);
}

#[test]
fn a_capture_with_packets_above_its_snapshot_length_is_exported_for_tcpdump() {
    let folder = folder();
    let dir = folder.path();
    let udp = [69, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 1, 2, 3, 232, 7, 209, 0, 8, 0, 0];
    let frame = [&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0][..], &udp].concat();
    let mut file = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 20, 1].map(u32::to_le_bytes).concat();
    for second in [1, 2] {
        file.extend([second, 0, 42, 42].map(u32::to_le_bytes).concat());
        file.extend(&frame);
    }
    fs::write(dir.join("input"), &file).unwrap();
    let line = "r.hf --size 24MiB --slot 256KiB --source replay:input --name s --speed max";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("snapshot length of their interface, 20 bytes; recorded as 42 bytes"),
        "{}",
        said.err
    );
    let (_, packets) = told(&file);
    let (interfaces, export_packets) = told(&back(dir, "--format pcapng"));
    assert_eq!(export_packets, packets);
    assert_eq!(interfaces, ["LinkType(1) 42 []"]);
    let Some(tcpdump) = tool("tcpdump") else { return };
    let output = Command::new(tcpdump).args(["-nr", "out"]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("10.1.1.1.1000 > 10.1.1.2.2001: UDP").count(), 2, "{text}");
}

#[test]
fn vdif_frames_come_back() {
    let folder = folder();
    let dir = folder.path();
    for (name, source) in [("vlbi/sample.vdif", "stdin"), ("vlbi/sample_drao_corrupted.vdif", "file:input")] {
        let file = input(dir, name, usize::MAX, made::vdif);
        onto_ring(dir, source, "--frame fixed:5032");
        assert!(back(dir, "") == file, "{name} through {source}");
        assert!(back(dir, "--ordinals 3..5") == file[3 * 5032..5 * 5032], "{name}");
    }
}

#[test]
fn a_flight_log_comes_back() {
    let folder = folder();
    let dir = folder.path();
    let file = input(dir, "robot/sample.ulg", 1_000_001, made::ulog);
    assert!(file.starts_with(b"ULog\x01\x12\x35"));
    onto_ring(dir, "stdin", "--frame blocks:65536");
    assert!(back(dir, "") == file);
    onto_ring(dir, "file:input", "--frame blocks:1000 --preamble 16");
    assert!(back(dir, "") == file);
}

/// The value of a key in a DADA header.
fn dada(file: &[u8], key: &str) -> Option<String> {
    let header = std::str::from_utf8(file.get(..4096)?).ok()?.trim_end_matches('\0');
    let line = header.lines().find(|line| line.split_whitespace().next() == Some(key))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

#[test]
fn a_piece_from_the_middle_of_a_dada_stream_has_its_header_and_opens() {
    let folder = folder();
    let dir = folder.path();
    let file = input(dir, "vlbi/sample_mkbf.dada", usize::MAX, made::dada);
    onto_ring(dir, "stdin", "--preamble 4096 --frame blocks:16384");
    assert!(back(dir, "") == file);
    let piece = back(dir, "--ordinals 20..30");
    assert_eq!(dada(&piece, "HDR_SIZE").as_deref(), Some("4096"));
    for key in ["NCHAN", "NPOL", "NBIT", "NDIM", "TSAMP"] {
        assert!(dada(&piece, key).is_some() && dada(&piece, key) == dada(&file, key), "{key}");
    }
    assert!(piece[..4096] == file[..4096]);
    assert!(piece[4096..] == file[4096 + 20 * 16384..4096 + 30 * 16384]);
}

/// Reads the header of a SIGPROC filterbank file: its length, and its 32-bit fields of these names.
fn sigproc(file: &[u8], names: &[&str]) -> Option<(usize, Vec<u32>)> {
    const DOUBLES: [&str; 9] =
        ["src_raj", "src_dej", "az_start", "za_start", "fch1", "foff", "tstart", "tsamp", "refdm"];
    let mut at = 0;
    let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let text = |at: &mut usize| {
        let len = word(*at)? as usize;
        let text = std::str::from_utf8(file.get(*at + 4..*at + 4 + len)?).ok()?;
        *at += 4 + len;
        Some(text)
    };
    let mut found = vec![0; names.len()];
    if text(&mut at)? != "HEADER_START" {
        return None;
    }
    loop {
        match text(&mut at)? {
            "HEADER_END" => return Some((at, found)),
            "rawdatafile" | "source_name" => drop(text(&mut at)?),
            name if DOUBLES.contains(&name) => at += 8,
            name => {
                if let Some(place) = names.iter().position(|wanted| *wanted == name) {
                    found[place] = word(at)?;
                }
                at += 4;
            }
        }
    }
}

#[test]
fn a_piece_from_the_middle_of_a_filterbank_has_its_header_and_opens() {
    let folder = folder();
    let dir = folder.path();
    let file = input(dir, "filterbank/parkes_8bit_1.fil", 1_500_000, made::filterbank);
    let names = ["nchans", "nbits", "nifs"];
    let (header, fields) = sigproc(&file, &names).unwrap();
    let spectrum = (fields[0] * fields[1] / 8 * fields[2]) as usize;
    assert!(spectrum > 0);
    onto_ring(dir, "file:input", &format!("--preamble {header} --frame blocks:{spectrum}"));
    assert!(back(dir, "") == file);
    let piece = back(dir, "--ordinals 700..800");
    assert_eq!(sigproc(&piece, &names), Some((header, fields)));
    assert!(piece[..header] == file[..header]);
    assert!(piece[header..] == file[header + 700 * spectrum..header + 800 * spectrum]);
}

/// RTP packets, 16 bytes each, of which ten in the middle are missing.
fn rtp_packets() -> Vec<u8> {
    let packet = |number: u16| {
        let [high, low] = number.to_be_bytes();
        [0x80, 96, high, low, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4]
    };
    let numbers = (65_000..66_000u32).filter(|number| !(65_530..65_540).contains(number));
    numbers.flat_map(|number| packet(number as u16)).collect()
}

// Promise 2: a recorder that itself lost nothing still has the gaps of what was lost before it.
#[test]
fn packets_that_never_came_are_listed_while_a_recorder_runs() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::framed(dir, "fixed:16 --counter rtp", "--size 24MiB --slot 256KiB");
    let none = ends(dir, "query r.hf select_count(*)_n_from_gaps --json", 0).json();
    assert_eq!((none["n"].as_u64(), ends(dir, "gaps r.hf --json", 3).lines().len()), (Some(0), 0));
    recording.input.as_mut().unwrap().write_all(&rtp_packets()).unwrap();
    let status = recording.await_lines(dir, 990);
    assert_eq!(status["lost_elements"], 0);
    // A counter's hole is certain after a while only.
    let started = Instant::now();
    let gaps = loop {
        let said = run(dir, "gaps r.hf --json");
        if said.code == Some(0) {
            break said.lines();
        }
        assert!(started.elapsed() < PATIENCE, "{}{}", said.out, said.err);
    };
    documented("gaps", &gaps);
    assert_eq!((&gaps[0]["cause"], &gaps[0]["elements"]), (&"upstream".into(), &10.into()));
    assert!(ends(dir, "gaps r.hf", 0).out.contains("lost upstream"));
    let found = ends(dir, "query r.hf select_elements_from_gaps --json", 0).json();
    assert_eq!(found["elements"], 10);
    assert_eq!(ends(dir, "status r.hf --json", 0).json()["losing"], true);
    assert_eq!(ends(dir, "gaps r.hf --stream log --last 2us", 3).out, "no gaps in the selection\n");
    let (code, out, err) = recording.end();
    assert!(code == Some(0) && !out.contains("nothing lost"), "{out}{err}");
}

#[test]
fn packets_that_never_came_are_listed_and_in_no_sum_of_what_did() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("input"), rtp_packets()).unwrap();
    let line = "r.hf --size 24MiB --slot 256KiB --source stdin --name s --frame fixed:16 --counter rtp --json --quiet";
    let said = record(dir, line, File::open(dir.join("input")).unwrap().into());
    assert_eq!(said.code, Some(0), "{}", said.err);
    documented("record", &said.lines());
    let gaps = ends(dir, "gaps r.hf --json", 0).lines();
    documented("gaps", &gaps);
    let gap = |field: &str| gaps[0][field].clone();
    assert_eq!(
        (gaps.len(), gap("cause"), gap("elements"), gap("ordinals")),
        (1, "upstream".into(), 10.into(), 0.into())
    );
    assert!(ends(dir, "gaps r.hf", 0).out.contains("lost upstream"));
    let streams = ends(dir, "streams r.hf --json", 0).lines();
    let sum = |field: &str| streams[0][field].clone();
    assert_eq!((sum("received"), sum("lost"), sum("gaps")), (990.into(), 0.into(), 0.into()));
    ends(dir, "check r.hf", 0);
}
