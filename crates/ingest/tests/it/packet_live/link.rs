//! Virtual link: its near end here, its far end in a network name space of its own. Removed when dropped.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// An Ethernet type that is free for experiments: nothing else is sent with it.
pub(crate) const EXPERIMENTAL: u16 = 0x88b5;

pub(crate) struct Link {
    pub(crate) near: String,
    pub(crate) far: String,
    space: String,
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Link {
    /// `None`, with the reason printed, where that is not possible.
    pub(crate) fn make() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !is_root() {
            println!("skipped: only root can make a virtual link");
            return None;
        }
        let id = format!("{:x}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let link = Self { near: format!("hfn{id}"), far: format!("hff{id}"), space: format!("hf{id}") };
        if !(run("ip", &["netns", "add", &link.space]) && link.connect()) {
            println!("skipped: this machine has no virtual links (`ip link add type veth` fails)");
            return None;
        }
        Some(link)
    }

    /// Makes both ends and switches them on, for the first time or after [`Link::remove`]; false where that is not possible.
    pub(crate) fn connect(&self) -> bool {
        let ip = |line: &str| run("ip", &line.split(' ').collect::<Vec<_>>());
        let Self { near, far, space } = self;
        if !ip(&format!("link add {near} type veth peer name {far} netns {space}")) {
            return false;
        }
        // So that the machine says nothing by itself; where it cannot be switched off the tests still hold.
        let quiet = |name: &str| {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        };
        quiet(near);
        self.inside(|| quiet(far));
        assert!(ip(&format!("link set {near} up")));
        assert!(ip(&format!("-n {space} link set {far} up")));
        assert!(ip(&format!("-n {space} link set lo up")));
        true
    }

    /// Runs something in the name space of the far end.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let space = File::open(format!("/run/netns/{}", self.space)).unwrap();
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                act()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sends frames from the far end; all of them are out when this returns.
    pub(crate) fn send(&self, frames: &[Vec<u8>]) {
        self.inside(|| send(&self.far, frames));
    }

    /// Sends frames from the near end.
    pub(crate) fn reply(&self, frames: &[Vec<u8>]) {
        let here = File::open("/proc/self/ns/net").unwrap();
        std::thread::scope(|scope| {
            let outside = scope.spawn(|| {
                move_into_link_name_space(here.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                send(&self.near, frames);
            });
            outside.join().unwrap();
        });
    }

    /// Switches the near end on or off.
    pub(crate) fn set(&self, state: &str) {
        assert!(run("ip", &["link", "set", &self.near, state]));
    }

    /// Makes the near end the port of a bridge, until that is dropped; `None` where there are none.
    pub(crate) fn bridge(&self) -> Option<Bridge> {
        let bridge = Bridge(format!("hfb{}", &self.near[3..]));
        let made = run("ip", &["link", "add", &bridge.0, "type", "bridge"])
            && run("ip", &["link", "set", &self.near, "master", &bridge.0]);
        if !made {
            println!("skipped: this machine has no bridges (`ip link add type bridge` fails)");
        }
        made.then_some(bridge)
    }

    /// Removes the link.
    pub(crate) fn remove(&self) {
        assert!(run("ip", &["link", "del", &self.near]));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        run("ip", &["link", "del", &self.near]);
        run("ip", &["netns", "del", &self.space]);
    }
}

/// A bridge, removed when dropped.
pub(crate) struct Bridge(String);

impl Drop for Bridge {
    fn drop(&mut self) {
        run("ip", &["link", "del", &self.0]);
    }
}

fn send(interface: &str, frames: &[Vec<u8>]) {
    let device = pcap::Capture::from_device(interface).unwrap().buffer_size(1 << 20);
    let mut sender = device.open().unwrap();
    for frame in frames {
        sender.sendpacket(&frame[..]).unwrap();
    }
}

/// A broadcast frame of `size` bytes, at least 20, that carries a number.
pub(crate) fn frame(number: u32, size: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    frame.extend(EXPERIMENTAL.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..size).map(|at| (at * 7) as u8));
    frame
}

/// A frame with a tag of a VLAN that nobody has.
pub(crate) fn tagged(number: u32) -> Vec<u8> {
    let plain = frame(number, 60);
    [&plain[..12], &[0x81, 0, 0, 77], &plain[12..]].concat()
}

/// A frame for the next device alone (LLDP): a bridge leaves it to its port, and there nobody wants it.
pub(crate) fn for_the_port(number: u32) -> Vec<u8> {
    let mut frame = frame(number, 60);
    frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    frame[12..14].copy_from_slice(&[0x88, 0xcc]);
    frame
}

/// The number in a frame, if it is one of ours.
pub(crate) fn number(data: &[u8]) -> Option<u32> {
    let ours = data.get(12..14)? == EXPERIMENTAL.to_be_bytes();
    let number = data.get(14..18)?.try_into().ok()?;
    ours.then_some(u32::from_be_bytes(number))
}
