//! Clients that nobody wants: they stop, dawdle, crowd, scribble. Each is busy until the time is over, and returns what it
//! came to; an error is something that it should not have been able to do.

use crate::BenchError;
use crate::comparison::tally::Tally;
use crate::program::Program;
use crate::standing_hold::{HoldLatencies, held_after};
use holdfast_base::Sequence;
use holdfast_media::Seed;
use holdfast_protocol::wire::{FrameHead, HEAD_BYTES, MAX_FRAME, Purpose, Reply, Request, VERSION};
use rustix::fs::{FallocateFlags, SealFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{ErrorKind, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Clients that try at once to crowd the others out.
const CROWD: usize = 1000;

/// A connection that has said hello, without having looked at the answer.
fn greeting(socket: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(&Request::Hello { version: VERSION }.encode(1))?;
    Ok(stream)
}

/// Has the recorder's answer taken in whole, with the descriptor that comes along.
fn greeted(socket: &Path) -> std::io::Result<(UnixStream, Option<OwnedFd>)> {
    let mut stream = greeting(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut head = [0; HEAD_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let taken = recvmsg(&stream, &mut [IoSliceMut::new(&mut head)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if taken.bytes == 0 {
        return Err(ErrorKind::ConnectionReset.into());
    }
    let area = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut all) => all.next(),
        _ => None,
    });
    stream.read_exact(&mut head[taken.bytes..])?;
    let head =
        FrameHead::decode(&head, MAX_FRAME).map_err(|_| std::io::Error::from(ErrorKind::InvalidData))?;
    let mut body = vec![0; head.body as usize];
    stream.read_exact(&mut body)?;
    match Reply::decode(head, &body) {
        Ok(Reply::Hello(_)) => Ok((stream, area)),
        _ => Err(ErrorKind::ConnectionRefused.into()),
    }
}

/// `holdfast read`, so many times, each stopped when it has begun.
pub fn stopped(program: &Path, ring: &Path, folder: &Path, tally: &Tally) -> Result<String, BenchError> {
    let mut all = Vec::new();
    let words = ["read", &ring.display().to_string(), "--format", "raw", "-o", "-"].map(str::to_owned);
    for number in 0..4 {
        let said = folder.join(format!("reader{number}.said"));
        let reader = Program::start_apart(program, &words, Stdio::null(), Path::new("/dev/null"), &said)?;
        // Long enough to have pieces lent, and requests under way.
        let until = tally.seconds() + 0.3 + 0.1 * f64::from(number);
        tally.wait(|| tally.seconds() >= until);
        signal(reader.pid(), Signal::STOP);
        all.push(reader);
    }
    tally.wait(|| false);
    let stopped = all.iter().filter(|reader| is_stopped(reader.pid())).count();
    for reader in &all {
        signal(reader.pid(), Signal::CONT);
    }
    Ok(format!("{stopped} of {} stopped in the middle", all.len()))
}

/// `holdfast query`, as many at once as there are cores, one after the other: of the columns of the last second, or where
/// there are none of the payload of the last half. Whether one `must_end` at least is said by who has the time for it.
pub fn searches(
    program: &Path,
    ring: &Path,
    folder: &Path,
    columns: bool,
    must_end: bool,
    tally: &Tally,
) -> Result<String, BenchError> {
    let question = if columns {
        "select count(*), sum(a), max(b) from s \
         where time > now() - interval '1 second' and d < 4294967295 and b <> 7"
    } else {
        "select count(*) from s where time > now() - interval '0.5 seconds' and matches(payload, 'nothing like this')"
    };
    let words = ["query", &ring.display().to_string(), question].map(str::to_owned);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let one = |core: usize| -> Result<Vec<f64>, BenchError> {
        let said = folder.join(format!("search{core}.said"));
        let mut took = Vec::new();
        while tally.runs() {
            let begun = tally.seconds();
            let mut search = Program::start(program, &words, Stdio::null(), &said)?;
            if tally.wait(|| search.has_ended()) {
                took.push(tally.seconds() - begun);
                // Slots that expire meanwhile are told of by exit code 1.
                search.end(&[0, 1])?;
            }
        }
        Ok(took)
    };
    let all = std::thread::scope(|scope| {
        let one = &one;
        let all: Vec<_> = (0..cores).map(|core| scope.spawn(move || one(core))).collect();
        let joined = all.into_iter().map(|one| {
            one.join().unwrap_or_else(|_| Err(BenchError::Accounting("a thread panicked".into())))
        });
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let mut took: Vec<f64> = all.concat();
    if must_end && took.is_empty() {
        return Err(BenchError::Accounting("no search has ended: capture was not disturbed by any".into()));
    }
    took.sort_unstable_by(f64::total_cmp);
    let middle = took.get(took.len() / 2).copied().unwrap_or(0.0);
    let longest = took.last().copied().unwrap_or(0.0);
    Ok(format!(
        "{} searches of {middle:.1} s each, {longest:.1} s at most, {cores} at work at the end",
        took.len()
    ))
}

/// A hold that stands, and finds every so manyth element: how long after it came it is kept, and this told.
pub fn standing(
    program: &Path,
    ring: &Path,
    every: u64,
    must_find: bool,
    tally: &Tally,
) -> Result<String, BenchError> {
    let HoldLatencies { kept, told } = held_after(program, ring, "s", every, tally)?;
    let found = told.len();
    if must_find && kept.is_empty() {
        return Err(BenchError::Accounting(format!("a standing hold finds {found}, and none is kept")));
    }
    let middle_and_longest = |mut took: Vec<f64>| {
        took.sort_unstable_by(f64::total_cmp);
        let middle = took.get(took.len() / 2).copied().unwrap_or(0.0);
        format!("{middle:.2} s ({:.2})", took.last().copied().unwrap_or(0.0))
    };
    let (kept, told) = (middle_and_longest(kept), middle_and_longest(told));
    Ok(format!("{found} found, kept after {kept}, told after {told}"))
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Ask for all that they may, give no piece back, and take a byte a second of what they are answered.
pub fn dawdlers(socket: &Path, tally: &Tally) -> Result<String, BenchError> {
    let one = || -> std::io::Result<UnixStream> {
        let mut stream = greeting(socket)?;
        for id in 2..24 {
            stream.write_all(&Request::Slots { from: 0, count: u32::MAX }.encode(id))?;
            stream.write_all(
                &Request::Read { sequence: Sequence(id), offset: 0, len: 1 << 16, purpose: Purpose::Export }
                    .encode(id),
            )?;
        }
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let mut all: Vec<Option<UnixStream>> = (0..8).map(|_| one().ok()).collect();
    let (mut second, mut dropped, mut taken) = (0.0, 0, 0);
    while tally.wait(|| tally.seconds() >= second) {
        second = tally.seconds() + 1.0;
        for place in &mut all {
            let gone = match place {
                None => true,
                Some(stream) => match stream.read(&mut [0]) {
                    Ok(0) => true,
                    Ok(_) => {
                        taken += 1;
                        false
                    }
                    Err(error) => error.kind() != ErrorKind::WouldBlock,
                },
            };
            if gone {
                dropped += 1;
                *place = one().ok();
            }
        }
    }
    Ok(format!("{taken} bytes taken, {dropped} dropped"))
}

/// Come a thousand at a time, ask, and stay; who is turned away comes again.
pub fn crowd(socket: &Path, tally: &Tally) -> Result<String, BenchError> {
    let (mut came, mut refused) = (0u64, 0u64);
    let mut all: Vec<UnixStream> = Vec::new();
    while tally.wait(|| true) {
        while all.len() < CROWD && tally.runs() {
            came += 1;
            let Ok(mut stream) = greeting(socket) else { break };
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(&Request::Status.encode(2));
            all.push(stream);
        }
        let before = all.len();
        all.retain_mut(|stream| {
            loop {
                match stream.read(&mut [0; 4096]) {
                    Ok(0) => break false,
                    Ok(_) => {}
                    Err(error) => break error.kind() == ErrorKind::WouldBlock,
                }
            }
        });
        refused += (before - all.len()) as u64;
        for stream in &mut all {
            let _ = stream.write_all(&Request::Slots { from: 0, count: u32::MAX }.encode(3));
        }
    }
    if refused == 0 && came > 100 {
        return Err(BenchError::Accounting(format!("{came} clients came, and none was turned away")));
    }
    Ok(format!("{came} came, {refused} turned away or dropped"))
}

/// Try to change what they were given, and send what makes no sense.
pub fn scribblers(socket: &Path, tally: &Tally) -> Result<String, BenchError> {
    let mut seed = Seed::new(7);
    let mut rounds = 0u64;
    while tally.wait(|| true) {
        let Ok((mut stream, area)) = greeted(socket) else { continue };
        let area = area.ok_or_else(|| BenchError::Accounting("no ticket area was handed over".into()))?;
        spoil(area)?;
        // Pieces that are not ours are given back, and more is asked for than there is.
        let _ = stream.write_all(&Request::Done { offset: seed.below(1 << 23) }.encode(2));
        let request = Request::Read {
            sequence: Sequence(seed.below(100)),
            offset: 1,
            len: u32::MAX,
            purpose: Purpose::Search,
        };
        let _ = stream.write_all(&request.encode(3));
        let mut nonsense = vec![0; seed.below(9000) as usize];
        seed.fill(&mut nonsense);
        let _ = stream.write_all(&nonsense);
        rounds += 1;
    }
    Ok(format!("{rounds} rounds, nothing could be changed"))
}

/// What a client can do to a descriptor; an error if any of it works.
fn spoil(area: OwnedFd) -> Result<(), BenchError> {
    let file = File::from(area);
    let mut done = Vec::new();
    let mut note = |what: &'static str, worked: bool| done.extend(worked.then_some(what));
    let length = file.metadata().map_or(0, |about| about.len());
    let mut spoil = |file: &File| {
        note("cut off", file.set_len(0).is_ok());
        note("made longer", file.set_len(length + 4096).is_ok());
        note("written to", file.write_at(&[0xEE; 4096], 0).is_ok());
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        note("emptied", rustix::fs::fallocate(file, hole, 0, length).is_ok());
        note("sealed", rustix::fs::fcntl_add_seals(file, SealFlags::WRITE).is_ok());
    };
    spoil(&file);
    // Its owner may open it anew, for writing.
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    if let Ok(again) = File::options().read(true).write(true).open(again) {
        spoil(&again);
    }
    if done.is_empty() {
        return Ok(());
    }
    Err(BenchError::Accounting(format!("the ticket area could be {}", done.join(", "))))
}
