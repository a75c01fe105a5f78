//! The recipes of docs/search.md, each given to the real program as it stands there, on a ring with the streams that they
//! speak of.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{folder, holdfast, record};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

/// A capture file with a SYN from 10.1.2.4 to 10.1.2.3.
fn capture() -> Vec<u8> {
    let ip = b"E\0\0\x28\0\0\0\0\x40\x06\0\0\x0a\x01\x02\x04\x0a\x01\x02\x03";
    let tcp = b"\x12\x34\0\x50\0\0\0\x01\0\0\0\0\x50\x02\x20\0\0\0\0\0";
    let packet = [&b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"[..], ip, tcp].concat();
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for word in [1_795_169_100, 0, packet.len() as u32, packet.len() as u32] {
        file.extend(word.to_le_bytes());
    }
    file.extend(packet);
    file
}

fn ring(dir: &Path) {
    fs::write(dir.join("eth0.pcap"), capture()).unwrap();
    fs::write(dir.join("none"), "").unwrap();
    fs::write(dir.join("trigger"), "{\"snr\": 13.5}\n{\"snr\": 2}\n").unwrap();
    fs::write(dir.join("imu"), "{\"a\": {\"x\": 31.0, \"y\": 0.5, \"z\": -9.8}}\n").unwrap();
    let line = "lab.hf --size 32MiB --slot 256KiB --source replay:eth0.pcap --name eth0 --speed max \
                --source file:none --name vdif --frame fixed:5032 --attr vdif \
                --source file:none --name spead --frame len32 --attr spead \
                --source file:trigger --name trigger --frame lines --attr snr:float=json:snr \
                --source file:imu --name imu --frame lines \
                --attr ax:float=json:a.x --attr ay:float=json:a.y --attr az:float=json:a.z";
    let said = record(dir, line, Stdio::null());
    assert_eq!(said.code, Some(0), "{}", said.err);
}

/// The commands of the recipes, as a shell takes them.
fn commands() -> Vec<Vec<String>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/search.md");
    let text = fs::read_to_string(docs).unwrap();
    let recipes = &text[text.find("\n## Recipes").unwrap()..];
    let code = recipes.lines().filter(|line| line.starts_with("       "));
    let code = code.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut commands: Vec<Vec<String>> = Vec::new();
    for command in code.split("holdfast ").skip(1) {
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in command.trim().chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' | '\n' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        commands.push(words);
    }
    commands
}

/// Runs a recipe as it stands there. One that goes on for ever says first what it holds, and is interrupted then.
fn ends(dir: &Path, words: &[String]) -> Option<i32> {
    if !words.iter().any(|word| word == "--standing") {
        let output = holdfast(dir).args(words).output().unwrap();
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        assert!(matches!(code, Some(0 | 3)), "{words:?}: {code:?} {said}");
        return code;
    }
    let mut child = holdfast(dir).args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut held = String::new();
    out.read_line(&mut held).unwrap();
    let mut said = String::new();
    if held.starts_with("hold ") {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        out.read_to_string(&mut said).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let told = format!("{words:?}: {held}{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(said.contains("goes on with it"), "{told}");
    Some(if held.contains(" found, ") || words.iter().any(|word| word == "--sample") { 0 } else { 3 })
}

#[test]
fn every_recipe_is_understood() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    let (mut found, mut standing) = (0, 0);
    for words in &commands {
        found += usize::from(ends(dir, words) == Some(0));
        standing += usize::from(words.iter().any(|word| word == "--standing"));
    }
    let empty = commands.len() - found;
    assert!(found >= 4 && empty >= 3, "{found} found something, {empty} nothing");
    // All of them stand beside each other.
    let output = holdfast(dir).args(["holds", "lab.hf", "--json"]).output().unwrap();
    assert_eq!((String::from_utf8_lossy(&output.stdout).lines().count(), standing), (4, 4));
}
