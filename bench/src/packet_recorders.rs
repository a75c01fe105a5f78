//! Holdfast and the recorders of packets that people would use instead, all driven alike: started on an interface,
//! ended, and what they recorded counted in what they wrote.

use crate::program::{Program, holdfast};
use crate::{BenchError, Scale, tools};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// MiB of kernel buffer that the peers get.
const BUFFER_MIB: u64 = 64;

/// A recorder of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRecorder {
    /// Ours.
    Holdfast,
    /// Wireshark's.
    Dumpcap,
    /// Google's Stenographer.
    Stenotype,
}

/// What one wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// Packets that it says were lost.
    pub lost: Option<u64>,
}

impl PacketRecorder {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holdfast => "Holdfast",
            Self::Dumpcap => "dumpcap",
            Self::Stenotype => "stenotype",
        }
    }

    /// Where it is, or why it is left out.
    pub fn path(self, scale: Scale) -> Result<PathBuf, BenchError> {
        match self {
            Self::Holdfast => holdfast("holdfast-recorder", scale),
            Self::Dumpcap => tools::need("dumpcap"),
            Self::Stenotype => tools::need("stenotype"),
        }
    }

    /// Starts it on `interface`, writing in `folder`; returns when it listens.
    pub fn start(
        self,
        scale: Scale,
        interface: &str,
        folder: &Path,
    ) -> Result<RunningPacketRecorder, BenchError> {
        let path = self.path(scale)?;
        let text = |path: PathBuf| path.display().to_string();
        let arguments: Vec<String> = match self {
            Self::Holdfast => {
                let (size, slot) = scale.pick(("24MiB", "1MiB"), ("4GiB", "32MiB"));
                let ring = text(folder.join("ring"));
                let source = format!("iface:{interface}");
                ["--size", size, "--slot", slot, "--source", &source, "--name", "link", "--json"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain([ring])
                    .collect()
            }
            Self::Dumpcap => {
                let file = text(folder.join("dumpcap.pcapng"));
                ["-q", "-i", interface, "-B", &BUFFER_MIB.to_string(), "-w", &file]
                    .map(str::to_owned)
                    .to_vec()
            }
            Self::Stenotype => {
                for part in ["PKT0", "IDX0"] {
                    let part = folder.join(part);
                    let _ = fs::remove_dir_all(&part);
                    fs::create_dir_all(&part).map_err(BenchError::file(&part, "make it"))?;
                }
                let (interface, folder) =
                    (format!("--iface={interface}"), format!("--dir={}", folder.display()));
                let blocks = format!("--blocks={BUFFER_MIB}");
                // It would become `nobody`, who may not write here.
                let user = ["--uid=root", "--gid=root"];
                let rest = [
                    "--aiops=64",
                    "--fileage_sec=10",
                    "--seccomp=none",
                    "--no_watchdogs",
                    "--blockage_sec=1",
                ];
                [interface, folder, blocks]
                    .into_iter()
                    .chain(user.iter().chain(&rest).map(|option| (*option).to_owned()))
                    .collect()
            }
        };
        let output = folder.join(format!("{}.txt", self.name()));
        let mut program = Program::start(&path, &arguments, Stdio::null(), &output)?;
        let index = fs::read_to_string(format!("/sys/class/net/{interface}/ifindex")).unwrap_or_default();
        program.until("listening", |program| {
            // The socket is made before the program is ready to take what comes: it says when it is.
            listens(index.trim()) && (self != Self::Holdfast || program.said().contains("recording "))
        })?;
        std::thread::sleep(Duration::from_millis(scale.pick(50, 300)));
        Ok(RunningPacketRecorder { recorder: self, program, folder: folder.to_owned() })
    }
}

/// Whether anybody listens to the interface of that index.
fn listens(index: &str) -> bool {
    let sockets = fs::read_to_string("/proc/net/packet").unwrap_or_default();
    sockets.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(4) == Some(&index) && fields.get(5) == Some(&"1")
    })
}

/// A recorder at work.
#[derive(Debug)]
pub struct RunningPacketRecorder {
    recorder: PacketRecorder,
    program: Program,
    folder: PathBuf,
}

impl RunningPacketRecorder {
    /// Ends it and counts.
    pub fn end(self) -> Result<PacketCount, BenchError> {
        let Self { recorder, mut program, folder } = self;
        if recorder == PacketRecorder::Stenotype {
            // What is in a block that it has not written by then is forgotten.
            std::thread::sleep(Duration::from_millis(1500));
        }
        program.interrupt();
        if recorder == PacketRecorder::Stenotype {
            // It never ends by itself: its thread for the index waits on. By the time the index is there all is written.
            let index = folder.join("IDX0");
            program.until("index", |_| finished(&index))?;
            std::thread::sleep(Duration::from_millis(300));
            drop(program);
            let folder = folder.join("PKT0");
            let packets = count_blocks(&folder).map_err(BenchError::file(&folder, "read it"))?;
            return Ok(PacketCount { packets, lost: None });
        }
        let said = program.end(&[0])?;
        match recorder {
            PacketRecorder::Holdfast | PacketRecorder::Stenotype => {
                summary(&said).ok_or_else(|| BenchError::program("holdfast-recorder", said.clone()))
            }
            PacketRecorder::Dumpcap => {
                let file = folder.join("dumpcap.pcapng");
                let packets = count_pcapng(&file).map_err(BenchError::file(&file, "read it"))?;
                let _ = fs::remove_file(&file);
                Ok(PacketCount { packets, lost: dumpcap_drops(&said) })
            }
        }
    }
}

/// From the summary that the recorder prints as JSON.
fn summary(said: &str) -> Option<PacketCount> {
    let line = said.lines().find(|line| line.starts_with('{'))?;
    let json: serde_json::Value = serde_json::from_str(line).ok()?;
    let stream = &json["streams"][0];
    Some(PacketCount { packets: stream["elements"].as_u64()?, lost: Some(stream["lost_elements"].as_u64()?) })
}

/// From "Packets received/dropped on interface 'x': 12/3 (…)".
fn dumpcap_drops(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.starts_with("Packets received/dropped"))?;
    let (_, dropped) = line.rsplit_once("': ")?.1.split_whitespace().next()?.split_once('/')?;
    dropped.parse().ok()
}

/// Packets in a pcapng file of this machine's byte order.
fn count_pcapng(path: &Path) -> std::io::Result<u64> {
    const ENHANCED_PACKET: u32 = 6;
    let mut file = std::io::BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut head = [0; 8];
    let mut packets = 0;
    while file.read_exact(&mut head).is_ok() {
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        packets += u64::from(word(0) == ENHANCED_PACKET);
        file.seek_relative(i64::from(word(4).max(12)) - 8)?;
    }
    Ok(packets)
}

/// Whether an index is complete: until then its name begins with a dot.
fn finished(folder: &Path) -> bool {
    let mut names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut any = false;
    let all = names.all(|name| {
        any = true;
        !name.as_encoded_bytes().starts_with(b".")
    });
    any && all
}

/// Packets in what stenotype writes: the kernel's blocks of 1 MiB as they are.
fn count_blocks(folder: &Path) -> std::io::Result<u64> {
    fs::read_dir(folder)?.map(|entry| count_in_blocks(&entry?.path())).sum()
}

/// Packets in one file of those.
pub(crate) fn count_in_blocks(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut packets, mut at, mut head) = (0, 0, [0; 16]);
    while file.seek(SeekFrom::Start(at)).is_ok() && file.read_exact(&mut head).is_ok() {
        packets += u64::from(u32::from_ne_bytes([head[12], head[13], head[14], head[15]]));
        at += 1 << 20;
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_recorders_say_is_understood() {
        let said = "x\n{\"ring\":\"r\",\"streams\":[{\"elements\":7,\"lost_elements\":2}]}\n";
        assert_eq!(summary(said), Some(PacketCount { packets: 7, lost: Some(2) }));
        let said = "Packets received/dropped on interface 'hfn1': 1200/34 (pcap:30/dumpcap:0/flushed:4)";
        assert_eq!(dumpcap_drops(said), Some(34));
    }

    #[test]
    fn packets_are_counted_in_files_and_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let block = |kind: u32, len: u32| {
            let mut block = [kind.to_ne_bytes(), len.to_ne_bytes()].concat();
            block.resize(len as usize, 0);
            block
        };
        let path = folder.path().join("file");
        fs::write(
            &path,
            [block(0x0a0d_0d0a, 28), block(1, 20), block(6, 100), block(6, 32), block(5, 24)].concat(),
        )
        .unwrap();
        assert_eq!(count_pcapng(&path).unwrap(), 2);
        let mut blocks = vec![0u8; (1 << 20) + 48];
        blocks[12] = 3;
        blocks[(1 << 20) + 12] = 4;
        fs::write(&path, blocks).unwrap();
        assert_eq!(count_blocks(folder.path()).unwrap(), 7);
    }
}
