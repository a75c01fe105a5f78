//! The built-in source: writes the pattern into the recorder's standard input, never faster than it is told. What it could
//! not send in time, because the machine was busy, it does not send later: that would be a burst that nobody declared.

use super::pattern::{Pattern, WORD};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes that are made and written at once at most; a whole number of words.
const PIECE: usize = 256 << 10;

/// Less is waited for, unless it is a whole element.
const GRAIN: f64 = (32 << 10) as f64;

/// How long it sleeps when nothing is due.
const NAP: Duration = Duration::from_millis(1);

/// What was not sent for longer is not made up for.
const CATCH_UP: Duration = Duration::from_millis(50);

/// What the kernel is to keep of it: as much as it gives to everybody.
const PIPE: usize = 1 << 20;

/// The source goes before the readers of this proof, as an instrument would: it is no program on this machine.
const NICE: i32 = -10;

/// How it is told what to do, and tells what it did.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes a second.
    rate: AtomicU64,
    stop: AtomicBool,
    bytes: AtomicU64,
}

/// A source at work; ends when told, with a whole element.
pub(crate) struct Source {
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<u64>>,
    first: u64,
}

/// What a source has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentAll {
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

impl Source {
    /// Begins with the element `first`, at that rate.
    pub(crate) fn start(
        pipe: ChildStdin,
        pattern: Pattern,
        element: u64,
        first: u64,
        rate: u64,
    ) -> io::Result<Self> {
        // A smaller one does as well.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe.as_fd(), PIPE);
        let shared = Arc::new(Shared { rate: AtomicU64::new(rate), ..Shared::default() });
        let theirs = Arc::clone(&shared);
        let work = move || {
            let own = rustix::thread::gettid();
            // Whoever may not is a little later at times, and the report says how much came.
            let _ = rustix::process::setpriority_process(Some(own), NICE);
            run(pipe, pattern, element, first, &theirs)
        };
        let thread = Builder::new().name("prove source".to_owned()).spawn(work)?;
        Ok(Self { shared, thread, first })
    }

    /// From now on so many bytes a second.
    pub(crate) fn set_rate(&self, rate: u64) {
        self.shared.rate.store(rate, Ordering::Relaxed);
    }

    /// Bytes sent so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Ends it; `rate` is for what is left of the last element.
    pub(crate) fn end(self, rate: u64) -> io::Result<SentAll> {
        self.set_rate(rate);
        self.shared.stop.store(true, Ordering::Relaxed);
        let bytes = || self.shared.bytes.load(Ordering::Relaxed);
        let next = self.thread.join().map_err(|_| io::Error::other("the source failed inside"))?;
        let next = next?;
        Ok(SentAll { elements: next - self.first, bytes: bytes() })
    }
}

fn run(mut pipe: ChildStdin, pattern: Pattern, element: u64, first: u64, shared: &Shared) -> io::Result<u64> {
    let mut piece = vec![0; PIECE];
    let element = element as usize;
    let (mut ordinal, mut at) = (first, 0);
    let (mut due, mut last) = (0.0, Instant::now());
    loop {
        if at == 0 && shared.stop.load(Ordering::Relaxed) {
            return Ok(ordinal);
        }
        let rate = shared.rate.load(Ordering::Relaxed) as f64;
        let now = Instant::now();
        due = (due + now.duration_since(last).as_secs_f64() * rate)
            .min((rate * CATCH_UP.as_secs_f64()).max(GRAIN * 2.0));
        last = now;
        let grain = GRAIN.min(rate * NAP.as_secs_f64()).max(element.min(WORD) as f64);
        if due < grain {
            std::thread::sleep(NAP);
            continue;
        }
        let most = (due as usize).min(PIECE);
        let mut len = 0;
        // Whole words, so that the next piece begins with one; or the element's end.
        while len < most {
            let left = element - at;
            let room = most - len;
            let part = if left <= room { left } else { room / WORD * WORD };
            if part == 0 {
                break;
            }
            pattern.fill(ordinal, at, &mut piece[len..len + part]);
            len += part;
            at += part;
            if at == element {
                (ordinal, at) = (ordinal + 1, 0);
                if shared.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        if len == 0 {
            std::thread::sleep(NAP);
            continue;
        }
        pipe.write_all(&piece[..len])?;
        due -= len as f64;
        shared.bytes.fetch_add(len as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_sent_is_the_pattern_in_whole_elements() {
        for element in [1, 20, 1000, 300_001] {
            let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let pattern = Pattern::new(3);
            let pipe = child.stdin.take().unwrap();
            let source = Source::start(pipe, pattern, element, 5, 50 << 20).unwrap();
            let mut output = child.stdout.take().unwrap();
            let reader = std::thread::spawn(move || {
                let mut all = Vec::new();
                output.read_to_end(&mut all).map(|_| all)
            });
            while source.bytes() < 2 << 20 {
                std::thread::sleep(NAP);
            }
            let sent = source.end(50 << 20).unwrap();
            let all = reader.join().unwrap().unwrap();
            assert_eq!((all.len() as u64, sent.bytes), (sent.elements * element, sent.elements * element));
            for (number, data) in all.chunks(element as usize).enumerate() {
                assert_eq!(pattern.first_wrong(5 + number as u64, data), None, "element {number}");
            }
            child.wait().unwrap();
        }
    }
}
