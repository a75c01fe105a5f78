//! Promise 1 at the socket: no client can make the recorder wait, grow or fail; and promise 8: each is told why.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_base::{RingId, Sequence};
use holdfast_media::{BufferPool, Lock};
use holdfast_protocol::ProtocolError;
use holdfast_protocol::client::Connection;
use holdfast_protocol::server::{Arrival, Client, Hangup, Listener};
use holdfast_protocol::wire::{
    FrameHead, HEAD_BYTES, LaneFile, MAX_FRAME, MAX_PENDING, PIECE, Purpose, Reply, Request, VERSION, Welcome,
};
use holdfast_sim::fixture::healthy_status;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

fn pair() -> (Client, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Client::new(ours.into(), 1), theirs)
}

fn welcome(version: u16) -> Welcome {
    Welcome {
        version,
        pid: 4711,
        ring: RingId(*b"0123456789abcdef"),
        quantum: 65536,
        place: 0,
        area: 65536,
        superblock: vec![1; 4096],
        file: LaneFile { device: 1, inode: 2 },
        lane: "/dev/lane".to_owned(),
    }
}

/// A client that has been greeted.
fn greeted() -> (Client, UnixStream) {
    let (mut client, mut theirs) = pair();
    theirs.write_all(&Request::Hello { version: VERSION }.encode(1)).unwrap();
    assert!(matches!(client.receive(), Ok(Some((1, Request::Hello { .. })))));
    let pool = BufferPool::shared(1, 65536, Lock::No).unwrap();
    client.welcome(1, welcome(VERSION), pool.fd().unwrap(), None).unwrap();
    assert!(matches!(next(&mut theirs), (1, Reply::Hello(_))));
    (client, theirs)
}

fn next(stream: &mut UnixStream) -> (u64, Reply) {
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).unwrap();
    let head = FrameHead::decode(&head, MAX_FRAME).unwrap();
    let mut body = vec![0; head.body as usize];
    stream.read_exact(&mut body).unwrap();
    (head.id, Reply::decode(head, &body).unwrap())
}

#[test]
fn requests_come_whole_however_they_are_cut() {
    let (mut client, mut theirs) = greeted();
    let frames = [Request::Status.encode(2), Request::Slots { from: 3, count: 4 }.encode(5)].concat();
    let mut seen = Vec::new();
    for byte in frames {
        theirs.write_all(&[byte]).unwrap();
        while let Some(request) = client.receive().unwrap() {
            seen.push(request);
        }
    }
    assert_eq!(seen, [(2, Request::Status), (5, Request::Slots { from: 3, count: 4 })]);
    drop(theirs);
    assert!(matches!(client.receive(), Err(Hangup::Closed)));
}

#[test]
fn nonsense_is_answered_and_ends_the_connection() {
    let hello = Request::Hello { version: VERSION }.encode(1);
    let large = [&u32::MAX.to_le_bytes()[..], &[0; 12]].concat();
    let unknown = [&[0, 0, 0, 0, 99, 0, 0, 0][..], &[0; 8]].concat();
    let cases = [
        (large, "exceeds the limit"),
        (unknown, "unknown frame type"),
        (hello, "only once"),
        (vec![0xff; 64], "exceeds the limit"),
    ];
    for (bytes, said) in cases {
        let (mut client, mut theirs) = greeted();
        theirs.write_all(&bytes).unwrap();
        assert!(matches!(client.receive(), Err(Hangup::Refused(_))), "{said}");
        assert!(matches!(next(&mut theirs), (_, Reply::Error { text }) if text.contains(said)), "{said}");
    }
    let (mut client, mut theirs) = pair();
    theirs.write_all(&Request::Status.encode(8)).unwrap();
    assert!(matches!(client.receive(), Err(Hangup::Refused(_))));
    assert!(matches!(next(&mut theirs), (8, Reply::Error { text }) if text.contains("hello")));
}

#[test]
fn a_client_that_asks_without_end_is_read_no_further() {
    let (mut client, mut theirs) = greeted();
    for id in 0..MAX_PENDING as u64 + 5 {
        theirs.write_all(&Request::Status.encode(id)).unwrap();
    }
    let mut taken = 0;
    while client.receive().unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(taken, MAX_PENDING);
    assert!(!client.wants_read());
    client.reply(0, &Reply::Expired).unwrap();
    assert!(matches!(client.receive(), Ok(Some(_))) && matches!(client.receive(), Ok(None)));
}

#[test]
fn a_client_that_does_not_read_is_dropped_and_never_waited_for() {
    let (mut client, theirs) = greeted();
    let piece = Reply::Preamble { total: 0, bytes: vec![0; PIECE] };
    let mut queued = 0;
    let dropped = loop {
        match client.reply(1, &piece) {
            Ok(()) => queued += 1,
            Err(hangup) => break hangup,
        }
        assert!(queued < 20, "the queue has no bound");
    };
    assert!(matches!(dropped, Hangup::Slow), "{dropped}");
    assert!(client.wants_write() && !client.wants_read());
    drop(theirs);
}

#[test]
fn a_reply_larger_than_the_socket_takes_arrives_when_it_is_read() {
    let (mut client, mut theirs) = greeted();
    let reply = Reply::Preamble { total: 9, bytes: (0..MAX_FRAME - 100).map(|at| at as u8).collect() };
    client.reply(3, &reply).unwrap();
    assert!(client.wants_write());
    let reader = std::thread::spawn(move || next(&mut theirs));
    while client.wants_write() {
        client.flush().unwrap();
    }
    assert_eq!(reader.join().unwrap(), (3, reply));
}

fn socket() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    (directory, path)
}

#[test]
fn a_dead_socket_is_replaced_a_living_one_is_not_and_only_ours_is_removed() {
    let (_directory, path) = socket();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead socket stays behind");
    let first = Listener::bind_at(path.clone()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    match Listener::bind_at(path.clone()) {
        Err(ProtocolError::InUse { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    std::fs::remove_file(&path).unwrap();
    let second = Listener::bind_at(path.clone()).unwrap();
    drop(first);
    assert!(path.exists(), "the second one's socket is not the first one's");
    drop(second);
    assert!(!path.exists());
}

#[test]
fn more_clients_than_there_is_room_for_are_told_so() {
    let (_directory, path) = socket();
    let listener = Listener::bind_at(path.clone()).unwrap();
    assert!(matches!(listener.accept(|| true).unwrap(), Arrival::Nobody));
    let waiting = std::thread::spawn(move || Connection::connect(&path));
    let why = loop {
        match listener.accept(|| false).unwrap() {
            Arrival::Refused(why) => break why,
            Arrival::Nobody | Arrival::Later => std::thread::yield_now(),
            Arrival::Client(_) => panic!("one too many"),
        }
    };
    assert!(why.contains("clients are connected"), "{why}");
    let told = waiting.join().unwrap().unwrap_err().to_string();
    assert!(told.contains("clients are connected"), "{told}");
}

#[test]
fn a_recorder_that_dies_is_told_from_one_that_is_not_there() {
    let (_directory, path) = socket();
    let listener = Listener::bind_at(path.clone()).unwrap();
    let other = path.clone();
    let waiting = std::thread::spawn(move || {
        let mut connection = Connection::connect(&other).unwrap();
        let area = connection.area().unwrap().bytes();
        (area, connection.welcome().clone(), connection.status())
    });
    let mut client = loop {
        match listener.accept(|| true).unwrap() {
            Arrival::Client(client) => break client,
            _ => std::thread::yield_now(),
        }
    };
    let pool = BufferPool::shared(1, 65536, Lock::No).unwrap();
    let mut requests = 0;
    while requests < 2 {
        match client.receive().unwrap() {
            Some((id, Request::Hello { .. })) => {
                client.welcome(id, welcome(VERSION), pool.fd().unwrap(), None).unwrap();
                requests += 1;
            }
            Some(_) => requests += 1,
            None => std::thread::yield_now(),
        }
    }
    drop(client);
    let (area, told, status) = waiting.join().unwrap();
    assert_eq!((area, told), (65536, welcome(VERSION)));
    assert!(matches!(status, Err(ProtocolError::Gone { during: "status", .. })), "{status:?}");
    drop(listener);
    assert!(matches!(Connection::connect(&path), Err(ProtocolError::NoRecorder { .. })));
}

// Where many read it is long until it is one's turn: a recorder that says how it does is waited for.
#[test]
fn a_read_is_waited_for_as_long_as_the_device_does_healthy_status() {
    let (_directory, path) = socket();
    let listener = Listener::bind_at(path.clone()).unwrap();
    let waiting = std::thread::spawn(move || {
        let mut connection = Connection::connect(&path).unwrap();
        let read = Request::Read { sequence: Sequence(1), offset: 0, len: 4096, purpose: Purpose::Search };
        let id = connection.send(&read).unwrap();
        (id, connection.next_reply())
    });
    let mut client = loop {
        match listener.accept(|| true).unwrap() {
            Arrival::Client(client) => break client,
            _ => std::thread::yield_now(),
        }
    };
    let pool = BufferPool::shared(1, 65536, Lock::No).unwrap();
    let mut wanted = None;
    loop {
        match client.receive().unwrap() {
            Some((id, Request::Hello { .. })) => {
                client.welcome(id, welcome(VERSION), pool.fd().unwrap(), None).unwrap();
            }
            Some((id, Request::Read { .. })) => wanted = Some(id),
            // Not before it has asked.
            Some((id, Request::Status)) => {
                client.reply(id, &Reply::Status(Box::new(healthy_status()))).unwrap();
                client.reply(wanted.unwrap(), &Reply::Ready { offset: 0, len: 4096 }).unwrap();
                break;
            }
            Some(other) => panic!("{other:?}"),
            None => std::thread::yield_now(),
        }
    }
    let (id, reply) = waiting.join().unwrap();
    let (answered, reply) = reply.unwrap();
    assert_eq!(answered, id);
    assert!(matches!(reply, Reply::Ready { offset: 0, len: 4096 }), "{reply:?}");
}

#[test]
fn who_is_turned_away_is_told_why_even_if_he_says_hello_too_late() {
    let (_directory, path) = socket();
    let listener = Listener::bind_at(path.clone()).unwrap();
    // Refused between its connect and its hello, as often as that happens, and after that.
    let refusing = std::thread::spawn(move || {
        let mut refused = 0;
        while refused < 200 {
            refused += u32::from(matches!(listener.accept(|| false), Ok(Arrival::Refused(_))));
        }
    });
    for _ in 0..200 {
        let told = Connection::connect(&path).unwrap_err().to_string();
        assert!(told.contains("clients are connected"), "{told}");
    }
    refusing.join().unwrap();
}

/// Promises 1 and 5: who was given the ticket area can look, and nothing else, whichever way it is opened anew.
#[test]
fn what_a_client_is_given_cannot_be_changed() {
    use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals};
    use std::fs::File;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::FileExt as _;
    let mut pool = BufferPool::shared(1, 65536, Lock::No).unwrap();
    let mut buffer = pool.take().unwrap();
    buffer[..8].copy_from_slice(b"recorded");
    let given = File::from(pool.fd().unwrap().try_clone_to_owned().unwrap());
    let path = format!("/proc/self/fd/{}", given.as_raw_fd());
    let again = File::options().read(true).write(true).open(path);
    for file in [Some(&given), again.as_ref().ok()].into_iter().flatten() {
        assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
        assert!(file.write_at(b"scribble", 0).is_err());
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert!(fallocate(file, hole, 0, 4096).is_err());
        assert!(fcntl_add_seals(file, SealFlags::WRITE).is_err());
    }
    let mut seen = [0; 8];
    given.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!((&seen, &buffer[..8]), (b"recorded", &b"recorded"[..]));
}
