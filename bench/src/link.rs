//! A virtual link for the packet sweep: its near end here, its far end in a network name space of its own, and a
//! generator there that sends frames through libpcap, one system call each, at a rate or as fast as it can.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::cores::Cores;
use crate::{BenchError, tools};
use pcap::{Active, Capture};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// An Ethernet type that is free for experiments.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// Frames between two looks at the clock when the rate is limited.
const BURST: u64 = 8;

/// The link. Removed when dropped.
#[derive(Debug)]
pub struct VirtualLink {
    near: String,
    far: String,
    space: String,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Bytes of a frame.
    pub frame: usize,
    /// Frames a second; none: as many as can be.
    pub rate: Option<u64>,
    /// For how long.
    pub time: Duration,
    /// Frames at most.
    pub most: u64,
}

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentFrames {
    /// Frames that the kernel took.
    pub frames: u64,
    /// In how long.
    pub took: Duration,
}

impl VirtualLink {
    /// Skipped where that is not possible.
    pub fn make() -> Result<Self, BenchError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !tools::is_root() {
            return Err(BenchError::skipped("only root can make a virtual link"));
        }
        let id = format!("{:x}b{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let space = format!("hf{id}");
        let noted = register(Cleanup::Space(space.clone()));
        let link = Self { near: format!("hfn{id}"), far: format!("hff{id}"), space, noted };
        let ip = |line: &str| {
            let done = tools::output("ip", &line.split(' ').collect::<Vec<_>>());
            done.map_err(|error| BenchError::skipped(format!("no virtual link: {error}")))
        };
        let Self { near, far, space, .. } = &link;
        ip(&format!("netns add {space}"))?;
        ip(&format!("link add {near} type veth peer name {far} netns {space}"))?;
        // So that the machine says nothing there by itself.
        let quiet = |name: &str| {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        };
        quiet(near);
        link.inside(|| quiet(far))?;
        ip(&format!("link set {near} up"))?;
        ip(&format!("-n {space} link set {far} up"))?;
        Ok(link)
    }

    /// The end that is recorded.
    pub fn near(&self) -> &str {
        &self.near
    }

    /// The other end.
    pub fn far(&self) -> &str {
        &self.far
    }

    /// The name space of the other end.
    pub fn space(&self) -> &str {
        &self.space
    }

    /// Runs something on a thread in the name space of the far end.
    fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, BenchError> {
        let path = std::path::PathBuf::from(format!("/run/netns/{}", self.space));
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let space = File::open(&path).map_err(BenchError::file(&path, "open it"))?;
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(BenchError::file(&path, "enter it"))?;
                Ok(act())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sends from the far end, from a thread that stays on the last core; all is out when this returns.
    pub fn send(&self, traffic: Traffic) -> Result<SentFrames, BenchError> {
        self.inside(|| {
            Cores::Last.stay();
            send(&self.far, traffic).map_err(BenchError::during("sending"))
        })?
    }
}

impl Drop for VirtualLink {
    fn drop(&mut self) {
        let _ = tools::output("ip", &["link", "del", &self.near]);
        let _ = tools::output("ip", &["netns", "del", &self.space]);
    }
}

fn send(interface: &str, traffic: Traffic) -> Result<SentFrames, pcap::Error> {
    let mut sender: Capture<Active> = Capture::from_device(interface)?.buffer_size(1 << 16).open()?;
    // It would receive what it sends: nothing may pass.
    sender.filter("ether proto 0xffff", true)?;
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(EXPERIMENTAL);
    frame.extend((frame.len()..traffic.frame).map(|at| (at * 7) as u8));
    let start = Instant::now();
    let mut frames = 0u64;
    while frames < traffic.most {
        if frames.is_multiple_of(BURST) {
            let now = start.elapsed();
            if now >= traffic.time {
                break;
            }
            let due = traffic.rate.map_or(0.0, |rate| frames as f64 / rate as f64);
            if now.as_secs_f64() < due {
                std::hint::spin_loop();
                continue;
            }
        }
        if let Some(place) = frame.get_mut(14..22) {
            place.copy_from_slice(&frames.to_be_bytes());
        }
        sender.sendpacket(&frame[..])?;
        frames += 1;
    }
    Ok(SentFrames { frames, took: start.elapsed() })
}
