//! Somebody between a client and a recorder, who passes on all that they say to each other, and keeps one order back.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use holdfast_link::wire::{Head, MAX_REQUEST, Request};
use holdfast_ring::Order;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use std::fs::{self, DirBuilder};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes before a frame's body.
const HEAD: usize = 16;
/// How long the order is kept back at most: a client that waits for it is to end, too.
const LONGEST: Duration = Duration::from_secs(25);

#[derive(Default)]
struct State {
    came: bool,
    may_go: bool,
}

/// Keeps orders to distil back.
pub struct Between {
    /// Where clients find it, in the place of the recorder.
    pub run: PathBuf,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Between {
    /// Beside the only recorder of a folder.
    pub fn of(dir: &Path) -> Self {
        let mut sockets = fs::read_dir(dir.join("run")).unwrap().map(|file| file.unwrap().path());
        let real = sockets.find(|path| path.extension().is_some_and(|of| of == "sock")).unwrap();
        let run = dir.join("between");
        DirBuilder::new().mode(0o700).create(&run).unwrap();
        let listener = UnixListener::bind(run.join(real.file_name().unwrap())).unwrap();
        let state = Arc::new((Mutex::default(), Condvar::new()));
        let its = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, Ok(recorder)) = (client.unwrap(), UnixStream::connect(&real)) else { return };
                let (up, down) = (client.try_clone().unwrap(), recorder.try_clone().unwrap());
                let state = Arc::clone(&its);
                std::thread::spawn(move || {
                    pass_on(&up, &recorder, &mut Requests { left: Vec::new(), state });
                });
                std::thread::spawn(move || pass_on(&down, &client, &mut Replies));
            }
        });
        Self { run, state }
    }

    /// Waits until an order to distil is kept back.
    pub fn await_order(&self, at_most: Duration) {
        let (state, told) = &*self.state;
        let waited = told.wait_timeout_while(state.lock().unwrap(), at_most, |state| !state.came).unwrap();
        assert!(waited.0.came, "nobody orders to distil");
    }

    /// Lets it go, and all others.
    pub fn let_go(&self) {
        let (state, told) = &*self.state;
        state.lock().unwrap().may_go = true;
        told.notify_all();
    }
}

/// What becomes of what is passed on.
trait Passing {
    /// Those bytes that are passed on now.
    fn passed(&mut self, bytes: &[u8]) -> Vec<u8>;
}

struct Replies;

impl Passing for Replies {
    fn passed(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.to_vec()
    }
}

struct Requests {
    left: Vec<u8>,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Passing for Requests {
    fn passed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.left.extend_from_slice(bytes);
        let mut whole = Vec::new();
        while self.left.len() >= HEAD {
            let head = Head::decode(&self.left, MAX_REQUEST).unwrap();
            let end = HEAD + head.body as usize;
            if self.left.len() < end {
                break;
            }
            let frame: Vec<u8> = self.left.drain(..end).collect();
            if let Ok(Request::Order(Order::Distil(_))) = Request::decode(head, &frame[HEAD..]) {
                let (state, told) = &*self.state;
                let mut state = state.lock().unwrap();
                state.came = true;
                told.notify_all();
                drop(told.wait_timeout_while(state, LONGEST, |state| !state.may_go).unwrap());
            }
            whole.extend(frame);
        }
        whole
    }
}

/// From one to the other, until one of them ends.
fn pass_on(from: &UnixStream, to: &UnixStream, passing: &mut impl Passing) {
    let mut bytes = vec![0; 64 << 10];
    while let Some((count, descriptors)) = receive(from, &mut bytes) {
        let passed = passing.passed(&bytes[..count]);
        if !send(to, &passed, &descriptors) {
            break;
        }
    }
    let _ = shutdown(to, Shutdown::Both);
    let _ = shutdown(from, Shutdown::Both);
}

fn receive(from: &UnixStream, bytes: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    (received.bytes > 0).then_some((received.bytes, descriptors))
}

fn send(to: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> bool {
    let (mut sent, mut descriptors): (usize, Vec<BorrowedFd<'_>>) =
        (0, descriptors.iter().map(AsFd::as_fd).collect());
    while sent < bytes.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        match sendmsg(to, &[IoSlice::new(&bytes[sent..])], &mut beside, SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(_) => return false,
        }
        descriptors.clear();
    }
    true
}
