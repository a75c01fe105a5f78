//! Somebody between a client and a recorder, who passes on all that they say to each other but for some orders.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use holdfast_protocol::wire::{FrameHead, MAX_REQUEST, Reply, Request};
use holdfast_ring::{Order, Outcome};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use std::fs::{self, DirBuilder};
use std::io::{IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes before a frame's body.
const HEAD: usize = 16;

/// What becomes of an order.
pub enum Deal {
    Pass,
    /// It waits until all may go.
    Keep,
    /// The recorder does not get it, and this is said to come of it.
    Pretend(Outcome),
}

#[derive(Default)]
struct State {
    /// What was kept back, and where it is to go.
    kept: Vec<(UnixStream, Vec<u8>)>,
    /// Orders that it did not pass on.
    dealt_with: u32,
    /// All are passed on.
    may_go: bool,
    open: Vec<UnixStream>,
}

type Shared = Arc<(Mutex<State>, Condvar)>;

/// Keeps orders from a recorder.
pub struct Between {
    /// Where clients find it, in the place of the recorder.
    pub run: PathBuf,
    state: Shared,
}

impl Between {
    /// Beside the only recorder of a folder.
    pub fn of(dir: &Path, deal: fn(&Order) -> Deal) -> Self {
        let mut sockets = fs::read_dir(dir.join("run")).unwrap().map(|file| file.unwrap().path());
        let real = sockets.find(|path| path.extension().is_some_and(|of| of == "sock")).unwrap();
        let run = dir.join("between");
        DirBuilder::new().mode(0o700).create(&run).unwrap();
        let listener = UnixListener::bind(run.join(real.file_name().unwrap())).unwrap();
        let state = Shared::default();
        let its = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, Ok(recorder)) = (client.unwrap(), UnixStream::connect(&real)) else { return };
                let (up, down) = (client.try_clone().unwrap(), recorder.try_clone().unwrap());
                its.0.lock().unwrap().open.push(client.try_clone().unwrap());
                let requests = Requests { left: Vec::new(), state: Arc::clone(&its), deal };
                std::thread::spawn(move || requests.pass_on(&up, &recorder));
                std::thread::spawn(move || {
                    pass_on(&down, &client, &mut |bytes, descriptors| send(&client, bytes, descriptors));
                });
            }
        });
        Self { run, state }
    }

    /// Waits until an order has not been passed on.
    pub fn await_order(&self, at_most: Duration) {
        let (state, told) = &*self.state;
        let waits = |state: &mut State| state.dealt_with == 0;
        let waited = told.wait_timeout_while(state.lock().unwrap(), at_most, waits).unwrap();
        assert!(waited.0.dealt_with > 0, "there is no such order");
    }

    /// Lets go what was kept back, and all that comes.
    pub fn let_go(&self) {
        let mut state = self.state.0.lock().unwrap();
        state.may_go = true;
        for (mut recorder, frame) in std::mem::take(&mut state.kept) {
            recorder.write_all(&frame).unwrap();
        }
    }

    /// Ends all connections, as if the recorder had; from here on everything is passed on.
    pub fn cut(&self) {
        let mut state = self.state.0.lock().unwrap();
        state.may_go = true;
        state.kept.clear();
        for client in std::mem::take(&mut state.open) {
            let _ = shutdown(&client, Shutdown::Both);
        }
    }
}

struct Requests {
    left: Vec<u8>,
    state: Shared,
    deal: fn(&Order) -> Deal,
}

impl Requests {
    fn pass_on(mut self, client: &UnixStream, recorder: &UnixStream) {
        pass_on(client, recorder, &mut |bytes, descriptors| {
            self.left.extend_from_slice(bytes);
            let shared = Arc::clone(&self.state);
            // Nobody else writes to this recorder meanwhile.
            let mut state = shared.0.lock().unwrap();
            let whole = self.frames(&mut state, client, recorder);
            shared.1.notify_all();
            send(recorder, &whole, descriptors)
        });
    }

    /// What is passed on of what has come whole.
    fn frames(&mut self, state: &mut State, mut client: &UnixStream, recorder: &UnixStream) -> Vec<u8> {
        let mut whole = Vec::new();
        while self.left.len() >= HEAD {
            let head = FrameHead::decode(&self.left, MAX_REQUEST).unwrap();
            let end = HEAD + head.body as usize;
            if self.left.len() < end {
                break;
            }
            let frame: Vec<u8> = self.left.drain(..end).collect();
            let deal = match Request::decode(head, &frame[HEAD..]) {
                Ok(Request::Order(order)) if !state.may_go => (self.deal)(&order),
                _ => Deal::Pass,
            };
            state.dealt_with += u32::from(!matches!(deal, Deal::Pass));
            match deal {
                Deal::Pass => whole.extend(frame),
                Deal::Keep => state.kept.push((recorder.try_clone().unwrap(), frame)),
                Deal::Pretend(outcome) => {
                    client.write_all(&Reply::Outcome(outcome).encode(head.id)).unwrap();
                }
            }
        }
        whole
    }
}

/// From one to the other, until one of them ends.
fn pass_on(from: &UnixStream, to: &UnixStream, passed: &mut dyn FnMut(&[u8], &[OwnedFd]) -> bool) {
    let mut bytes = vec![0; 64 << 10];
    while let Some((count, descriptors)) = receive(from, &mut bytes) {
        if !passed(&bytes[..count], &descriptors) {
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
