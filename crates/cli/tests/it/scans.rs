//! Scans: what grep, hash and stats find in rings, datasets, vaults and folders is what other tools find in the exported bytes.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../../../module/tests/it/sdk_modules.rs"]
mod sdk_modules;

use crate::common;
use crate::vaults::servers::server;
use crate::vaults::{configure, held, in_s3};

use common::{documented, ends, folder, holdfast, module_program, record, run, tool};
use sdk_modules::{c_needle, rust_lines};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command of this shell line in a folder, and gives its standard output.
fn shell(dir: &Path, line: &str) -> String {
    let said = Command::new("sh").current_dir(dir).args(["-c", line]).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Hits of one source, as place in the source and text.
fn hits(lines: &[Value], source: &str, place: &str) -> BTreeSet<(u64, String)> {
    let of_source = lines.iter().filter(|line| line["source"].as_str().unwrap().starts_with(source));
    of_source.map(|line| (line[place].as_u64().unwrap(), line["text"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn one_grep_spans_ring_vault_and_folder() {
    let folder = folder();
    let dir = folder.path();
    let Some(server) = server("s3", "bin/versitygw", &dir.join("s3")) else { return };
    configure(dir, &[("s3", in_s3(dir, &server, "s3://lab/holdfast"))]);
    held(dir);
    ends(dir, "evacuate r.hf 1 --to s3:runs/run1.mcap", 0);
    fs::create_dir_all(dir.join("logs/deep")).unwrap();
    fs::copy(dir.join("in.jsonl"), dir.join("logs/deep/large.jsonl")).unwrap();
    fs::write(dir.join("logs/small"), "request 1 of web-7\nnothing\nthe end of web-7").unwrap();

    let said = ends(dir, "grep web-7\" r.hf s3:runs/ logs --json", 0);
    let found = said.lines();
    documented("grep", &found);
    let text = fs::read_to_string(dir.join("in.jsonl")).unwrap();
    let wanted: BTreeSet<(u64, String)> = (0..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains("web-7\""))
        .map(|(ordinal, line)| (ordinal, line.to_owned()))
        .collect();
    assert_eq!(wanted.len(), 1000);
    assert_eq!(hits(&found, "r.hf", "ordinal"), wanted);
    let evacuated = wanted.iter().filter(|(ordinal, _)| (5000..12_000).contains(ordinal)).cloned().collect();
    assert_eq!(hits(&found, "s3:runs/run1.mcap", "ordinal"), evacuated);
    // As grep finds them in the file, with the same offsets.
    let by_grep = shell(dir, "grep -b 'web-7\"' logs/deep/large.jsonl");
    let by_grep: BTreeSet<(u64, String)> = by_grep
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(offset, line)| (offset.parse().unwrap(), line.to_owned()))
        .collect();
    assert_eq!(hits(&found, "logs/deep/large.jsonl", "offset"), by_grep);

    // Objects that are no datasets are searched as they are, and so is what was exported.
    ends(dir, "read r.hf --ordinals 0..20000 --format raw -o exported", 0);
    fs::copy(dir.join("exported"), dir.join("s3/data/lab/holdfast/exported")).unwrap();
    let count = |place: &str| ends(dir, &format!("grep web-7\" {place} --count"), 0).out;
    assert_eq!(count("s3:exported"), "s3:exported: 1000\n");
    assert_eq!(count("exported"), "exported: 1000\n");
    let names = ends(dir, "grep -l -F web-7 logs", 0).out;
    let names: BTreeSet<&str> = names.lines().collect();
    assert_eq!(names, BTreeSet::from(["logs/small", "logs/deep/large.jsonl"]));
    let said = ends(dir, "grep -n the_end logs/small", 0);
    assert_eq!(said.out, "logs/small:3: the end of web-7\n");
    ends(dir, "grep nowhere logs r.hf", 3);
    let said = ends(dir, "grep web( logs", 2);
    assert!(said.err.contains("cannot understand the pattern"), "{}", said.err);
    let said = ends(dir, "grep web missing", 1);
    assert!(said.err.contains("missing"), "{}", said.err);
}

/// A text corpus: that of the real inputs, or one that is made.
fn corpus(dir: &Path) -> PathBuf {
    let real = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| Path::new(&data).join("text"));
    if let Some(real) = real.filter(|real| real.is_dir()) {
        return real;
    }
    let made = dir.join("text");
    fs::create_dir(&made).unwrap();
    let endings = [
        "\u{e9}t\u{e9}",
        "the sherlock holmes of Mr. Adler",
        "her understandings.",
        "Mrs Adler",
        "Mr, Holmes",
    ];
    let lines = (0..30_000).map(|at| {
        let ending = endings[at % endings.len()];
        format!("Sherlock Holmes {at} and the Adventure of {ending}\n")
    });
    fs::write(made.join("book.txt"), lines.collect::<String>()).unwrap();
    made
}

#[test]
fn lines_of_a_text_corpus_are_those_that_grep_finds() {
    let folder = folder();
    let dir = folder.path();
    let corpus = corpus(dir);
    for (ours, theirs) in [
        ("Sherlock", "-E Sherlock"),
        ("-i sherlock_holmes", "-E -i 'sherlock holmes'"),
        ("-w the", "-w the"),
        ("-F Mr.", "-F Mr."),
        ("^[A-Z].*[.]$", "-E '^[A-Z].*[.]$'"),
        ("-e Holmes -e Adventure", "-E -e Holmes -e Adventure"),
        ("[a-z]{14,}", "-E '[a-z]{14,}'"),
    ] {
        let said = run(dir, &format!("grep {ours} {} --json", corpus.display()));
        let found: BTreeSet<(String, u64, String)> = said
            .lines()
            .iter()
            .map(|line| {
                let text = |field: &str| line[field].as_str().unwrap().to_owned();
                (text("source"), line["offset"].as_u64().unwrap(), text("text"))
            })
            .collect();
        let by_grep = shell(dir, &format!("LC_ALL=C.UTF-8 grep -a -r -b {theirs} {}", corpus.display()));
        let by_grep: BTreeSet<(String, u64, String)> = by_grep
            .split_terminator('\n')
            .map(|line| {
                let mut parts = line.splitn(3, ':');
                let mut next = || parts.next().unwrap().to_owned();
                (next(), next().parse().unwrap(), next())
            })
            .collect();
        assert!(!by_grep.is_empty(), "{theirs}");
        assert!(found == by_grep, "{ours}: {} lines, grep finds {}", found.len(), by_grep.len());
    }
}

#[test]
fn packets_with_a_text_are_those_that_tshark_finds() {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: there are no real captures ($HOLDFAST_TEST_DATA names the folder of real inputs)");
        return;
    };
    let Some(tshark) = tool("tshark") else { return };
    let folder = folder();
    let dir = folder.path();
    let capture = Path::new(&data).join("pcap/1kxun.pcap");
    let line =
        format!("r.hf --size 32MiB --slot 1MiB --source replay:{} --name net --speed max", capture.display());
    let said = record(dir, &line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found = ends(dir, "grep -F -l HTTP/1.1 r.hf --json", 0);
    let found: Vec<u64> = found.lines().iter().map(|line| line["ordinal"].as_u64().unwrap() + 1).collect();
    let said = Command::new(tshark)
        .arg("-r")
        .arg(&capture)
        .args(["-Y", "frame contains \"HTTP/1.1\"", "-T", "fields", "-e", "frame.number"])
        .output()
        .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let wanted: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    assert!(!wanted.is_empty());
    // In the order of the ring.
    assert_eq!(found, wanted);
    // Elements that a scan finds are held.
    let held = ends(dir, "hold r.hf --scan HTTP/1[.]1 --reason web --json", 0).json();
    assert_eq!(held["elements"], wanted.len());
}

#[test]
fn digests_are_read_by_the_tools_of_others() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("tree")).unwrap();
    for (number, name) in ["a", "odd\nname", "back\\slash", "sp ace", "empty"].iter().enumerate() {
        fs::write(dir.join("tree").join(name), vec![7; number * 300_000]).unwrap();
    }
    fs::write(dir.join("tree/empty"), "").unwrap();
    for algorithm in ["md5", "sha1", "sha256"] {
        let said = ends(dir, &format!("hash tree --algorithm {algorithm}"), 0);
        fs::write(dir.join("sums"), &said.out).unwrap();
        let checked = shell(dir, &format!("{algorithm}sum -c sums"));
        assert_eq!(checked.matches(": OK").count(), 5, "{checked}{}", said.out);
    }
    let said = ends(dir, "hash tree --algorithm blake3,md5 --json", 0).lines();
    documented("hash", &said);
    assert_eq!(said.len(), 5);
    let said = ends(dir, "hash tree --duplicates", 0);
    assert_eq!(said.out.lines().count(), 2, "{}", said.out);
    let said =
        holdfast(dir).args(["hash", "-"]).stdin(fs::File::open(dir.join("tree/sp ace")).unwrap()).output();
    let digest = blake3::hash(&vec![7; 900_000]).to_hex();
    assert_eq!(String::from_utf8_lossy(&said.unwrap().stdout), format!("{digest}  -\n"));
}

#[test]
fn statistics_of_elements_and_files_agree() {
    let folder = folder();
    let dir = folder.path();
    held(dir);
    ends(dir, "evacuate r.hf 1 --to run.mcap", 0);
    ends(dir, "read r.hf --ordinals 5000..12000 --format raw -o run.raw", 0);
    let said = ends(dir, "scan run.mcap run.raw --module stats --json --explain", 0);
    let found = said.lines();
    documented("scan", &found);
    let (dataset, file) = found.iter().partition::<Vec<&Value>, _>(|line| line["source"] == "run.mcap");
    assert_eq!(dataset[0]["items"], 7000);
    let histogram = |line: &Value| -> Vec<u64> {
        line["histogram"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    // The export ends each element with a line end, which the framing took.
    let mut wanted = histogram(file[0]);
    assert_eq!(std::mem::take(&mut wanted[usize::from(b'\n')]), 7000);
    assert_eq!(histogram(dataset[0]), wanted);
    assert!((1.0..8.0).contains(&dataset[0]["entropy"].as_f64().unwrap()));
    let explained: Value = serde_json::from_str(said.err.trim()).unwrap();
    documented("scan", [&explained]);
    assert_eq!(explained["explain"]["troubles"], 0);
}

/// Occurrences of a needle in the elements of the test ring.
fn occurrences(text: &str, needle: &str) -> usize {
    text.lines().map(|line| line.matches(needle).count()).sum()
}

#[test]
fn modules_in_c_and_rust_run_over_ring_and_vault() {
    module_program();
    let folder = folder();
    let dir = folder.path();
    let Some(needle) = c_needle(dir) else { return };
    let Some(lines) = rust_lines() else { return };
    fs::copy(lines, dir.join("lines.wasm")).unwrap();
    fs::create_dir(dir.join("vault")).unwrap();
    configure(dir, &[("lab", format!("url = \"{}\"", dir.join("vault").display()))]);
    held(dir);
    ends(dir, "evacuate r.hf 1 --to lab:run1.mcap", 0);
    let text = fs::read_to_string(dir.join("in.jsonl")).unwrap();
    let said = ends(dir, &format!("scan r.hf lab: --module wasm:{} --arg web-7 --json", needle.display()), 0);
    let found = said.lines();
    documented("scan", &found);
    let of = |source: &str| found.iter().filter(|line| line["source"] == source).count();
    let held: String = text.lines().skip(5000).take(7000).collect::<Vec<_>>().join("\n");
    assert_eq!(of("r.hf"), occurrences(&text, "web-7"));
    assert_eq!(of("lab:run1.mcap"), occurrences(&held, "web-7"));

    // A file in one piece: the module gets it in order, and its processes give totals.
    let said = ends(dir, "scan in.jsonl --module wasm:lines.wasm --arg 62 --json", 0).lines();
    documented("scan", &said);
    let long = text.lines().filter(|line| line.len() > 62).count();
    assert_eq!(said.iter().filter(|line| line["offset"].is_u64()).count(), long);
    assert!(said.iter().any(|line| line["text"] == "20000 lines"), "{said:?}");
    assert!(said.iter().any(|line| line["total"] == "20000 lines in all"), "{said:?}");
    let said = ends(dir, "scan in.jsonl --module wasm:lines.wasm --arg many", 1);
    assert!(said.err.contains("does not accept its arguments"), "{}", said.err);
    let said = ends(dir, "scan in.jsonl --module wasm:in.jsonl", 1);
    assert!(said.err.contains("is not a WebAssembly module"), "{}", said.err);
}

/// Module that is slow: it counts down from 300 million for each block.
const SLOW: &str = r#"(module
  (memory (export "memory") 80)
  (func (export "hf_abi") (result i32) i32.const 1)
  (func (export "hf_overlap") (result i32) i32.const 0)
  (func (export "hf_buffer") (param i32) (result i32) i32.const 1024)
  (func (export "hf_start") (param i32 i32 i64))
  (func (export "hf_end") (result i32) i32.const 0)
  (func (export "hf_block") (param i32 i32 i64) (result i32) (local i64)
    i64.const 300000000
    local.set 3
    loop
      local.get 3
      i64.const 1
      i64.sub
      local.tee 3
      i64.const 0
      i64.ne
      br_if 0
    end
    i32.const 0))"#;

#[test]
fn explain_names_the_bottleneck() {
    module_program();
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("slow.wasm"), wat::parse_str(SLOW).unwrap()).unwrap();
    fs::write(dir.join("file"), vec![7; 16 << 20]).unwrap();
    let bottleneck = |said: &common::Said| {
        let explained: Value =
            serde_json::from_str(said.err.trim()).unwrap_or_else(|_| panic!("{}", said.err));
        explained["bottleneck"].as_str().unwrap().to_owned()
    };
    let said = ends(dir, "scan file --module wasm:slow.wasm --json --explain", 3);
    assert_eq!(bottleneck(&said), "cores", "{}", said.err);
    // A source that gives a line when the last was taken by the pipe is slower than any module.
    let source = "for i in $(seq 300); do /bin/echo line $i; done";
    let mut child = Command::new("sh").args(["-c", source]).stdout(Stdio::piped()).spawn().unwrap();
    let said = holdfast(dir)
        .args(["grep", "nothing", "-", "--json", "--explain"])
        .stdin(child.stdout.take().unwrap())
        .output()
        .unwrap();
    child.wait().unwrap();
    let said = common::Said::from(said);
    assert_eq!((said.code, bottleneck(&said).as_str()), (Some(3), "disk"), "{}", said.err);
}

/// Key of tests in a file that nobody else may read.
fn key_file(dir: &Path, name: &str, bytes: usize) -> String {
    let key: Vec<u8> = (0..bytes).map(|at| (at * 37 + 11) as u8).collect();
    fs::write(dir.join(name), &key).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    key.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Files of several sizes: empty, small, and of several blocks.
fn tree(dir: &Path) {
    fs::create_dir_all(dir.join("tree/deep")).unwrap();
    for (name, length) in [("empty", 0), ("one", 1), ("deep/eight", 8), ("deep/large", 9_000_001)] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at * 31 % 253) as u8).collect();
        fs::write(dir.join("tree").join(name), bytes).unwrap();
    }
}

#[test]
fn what_is_encrypted_is_decrypted_and_a_flipped_bit_is_refused() {
    let folder = folder();
    let dir = folder.path();
    tree(dir);
    for (cipher, bytes) in [("aes-256-gcm", 32), ("3des-cbc", 24), ("3des-ctr", 24), ("3des-ecb", 16)] {
        key_file(dir, "key", bytes);
        let options = format!("--cipher {cipher} --key-file key");
        let said = ends(dir, &format!("encrypt tree -o {cipher} {options} --json"), 0).lines();
        documented("encrypt", &said);
        assert_eq!(said.len(), 4);
        ends(dir, &format!("decrypt {cipher} -o {cipher}.again {options}"), 0);
        assert_eq!(shell(dir, &format!("diff -r tree {cipher}.again && echo same")), "same\n");
    }
    // Nothing is overwritten.
    key_file(dir, "key", 32);
    let said = ends(dir, "encrypt tree -o aes-256-gcm --key-file key", 1);
    assert!(said.err.contains("there is a file of that name"), "{}", said.err);
    let path = dir.join("aes-256-gcm/deep/large.enc");
    let mut bytes = fs::read(&path).unwrap();
    bytes[5_000_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let said = ends(dir, "decrypt aes-256-gcm -o flipped --key-file key", 1);
    assert!(said.err.contains("large.enc"), "{}", said.err);
    assert!(!dir.join("flipped/deep/large").exists() && dir.join("flipped/deep/eight").exists());
    fs::set_permissions(dir.join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = ends(dir, "encrypt tree -o other --key-file key", 1);
    assert!(said.err.contains("chmod 600"), "{}", said.err);
    key_file(dir, "key", 31);
    ends(dir, "encrypt tree -o other --key-file key", 2);
    key_file(dir, "key", 32);
    ends(dir, "encrypt tree -o other --key-file key --iv 0123456789abcdef", 2);
}

#[test]
fn triple_des_gives_what_openssl_gives() {
    if tool("openssl").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    tree(dir);
    let key = key_file(dir, "key", 24);
    let iv = "0123456789abcdef";
    for (cipher, theirs) in [("3des-cbc", "-des-ede3-cbc"), ("3des-ecb", "-des-ede3-ecb")] {
        let given = if cipher == "3des-cbc" { format!("--iv {iv}") } else { String::new() };
        let given = given.as_str();
        ends(dir, &format!("encrypt tree -o {cipher} --cipher {cipher} --key-file key {given}"), 0);
        let iv = if given.is_empty() { "" } else { "-iv 0123456789abcdef" };
        for name in ["empty", "one", "deep/eight", "deep/large"] {
            let line = format!(
                "openssl enc {theirs} -provider legacy -provider default -K {key} {iv} -in tree/{name} 2>/dev/null \
                 | cmp - {cipher}/{name}.enc && echo same"
            );
            assert_eq!(shell(dir, &line), "same\n", "{cipher} {name}");
        }
    }
}

/// Reads the format as docs/scan.md describes it, with OpenSSL's implementation of AES-GCM and HKDF.
const READER: &str = r#"
import sys
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
key, data = open("key", "rb").read(), open(sys.argv[1], "rb").read()
header, body = data[:44], data[44:]
assert header[:8] == b"HFENC\x01\x01\x00"
size, salt = int.from_bytes(header[8:12], "little"), header[12:28]
derive = lambda length, info: HKDF(SHA256(), length, salt, info + header[:28]).derive(key)
assert derive(16, b"hfenc commitment") == header[28:]
cipher = AESGCM(derive(32, b"hfenc chunk key"))
step = size + 16
count = max(1, -(-len(body) // step))
with open(sys.argv[2], "wb") as out:
    for number in range(count):
        nonce = bytes(3) + number.to_bytes(8, "big") + bytes([number + 1 == count])
        out.write(cipher.decrypt(nonce, body[number * step:(number + 1) * step], header))
"#;

#[test]
fn aes_gcm_files_are_read_by_openssl_as_the_documentation_says() {
    let Some(python) = std::env::var_os("HOLDFAST_PYTHON").filter(|python| Path::new(python).is_file())
    else {
        eprintln!("HOLDFAST_PYTHON is unset: the package cryptography does not look at encrypted files");
        return;
    };
    let folder = folder();
    let dir = folder.path();
    tree(dir);
    key_file(dir, "key", 32);
    ends(dir, "encrypt tree -o out --key-file key", 0);
    for name in ["empty", "one", "deep/large"] {
        let said = Command::new(&python)
            .current_dir(dir)
            .args(["-c", READER, &format!("out/{name}.enc"), "plain"])
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&said.stderr).into_owned();
        if err.contains("No module named") {
            eprintln!("the Python package cryptography is not installed: this is not checked");
            return;
        }
        assert!(said.status.success(), "{err}");
        assert!(fs::read(dir.join("plain")).unwrap() == fs::read(dir.join("tree").join(name)).unwrap());
    }
}

#[test]
fn an_encryption_that_is_killed_leaves_no_half_file() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("tree")).unwrap();
    let content = vec![0x5a; 3 << 20];
    for number in 0..12 {
        fs::write(dir.join(format!("tree/{number}")), &content).unwrap();
    }
    key_file(dir, "key", 32);
    let mut rounds = 0;
    // Killed when so many files have their names.
    for finished in [0, 1, 5] {
        let out = dir.join(format!("out{finished}"));
        let mut child = holdfast(dir)
            .args(["encrypt", "tree", "-o"])
            .arg(&out)
            .args(["--key-file", "key", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let names = || {
            fs::read_dir(&out).map_or(0, |entries| {
                entries
                    .filter(|entry| {
                        entry.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "enc")
                    })
                    .count()
            })
        };
        while names() < finished && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        rounds += usize::from(names() < 12);
        for entry in fs::read_dir(&out).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "enc") {
                let line = format!("decrypt {} -o {}.back --key-file key", path.display(), path.display());
                ends(dir, &line, 0);
            }
        }
    }
    assert!(rounds > 0, "nothing was killed in the middle");
}
