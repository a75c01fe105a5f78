//! Streams: standard input, named pipes, process substitutions and character devices, read one after the other.

use crate::engine::Shared;
use crate::feeder::{Feeder, Order, Stopped};
use crate::item::Container;
use crate::source::router::{Queue, next};
use holdfast_base::failure::reason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Time after which a reader that waits for bytes looks whether the scan has stopped.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Source whose bytes are read once, in order.
#[derive(Clone, Debug)]
pub(crate) enum Stream {
    StandardInput,
    /// Named pipe, file descriptor or device.
    Path(PathBuf),
}

impl Stream {
    fn container(&self) -> Container {
        match self {
            Self::StandardInput => Container::named("-"),
            Self::Path(path) => Container::file(path),
        }
    }
}

/// Reads streams until their queue ends. Results of one leave before the next is opened.
pub(crate) fn read(queue: &Queue<Stream>, shared: &Shared<'_>, silo: usize) -> Result<(), Stopped> {
    let mut feeder = Feeder::new(shared, silo, Order::Any);
    while let Some(stream) = next(queue) {
        feed(&stream, &mut feeder, shared)?;
        feeder.flush();
    }
    Ok(())
}

/// Feeds a stream to its end.
pub(crate) fn feed(stream: &Stream, feeder: &mut Feeder<'_, '_>, shared: &Shared<'_>) -> Result<(), Stopped> {
    feeder.begin(&Arc::new(stream.container()), None);
    match stream {
        Stream::StandardInput => feed_input(feeder, io::stdin().as_fd(), shared),
        Stream::Path(path) => match open(path) {
            Ok(input) => feed_input(feeder, input.as_fd(), shared),
            Err(error) => feeder.fail(reason(&error)),
        },
    }
}

/// Opens a stream. A named pipe without a writer is not waited for here: nobody could end the wait.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn feed_input(
    feeder: &mut Feeder<'_, '_>,
    input: BorrowedFd<'_>,
    shared: &Shared<'_>,
) -> Result<(), Stopped> {
    loop {
        let room = feeder.room()?;
        await_bytes(input, shared)?;
        match rustix::io::read(input, room) {
            Ok(0) => return feeder.end(),
            Ok(count) => feeder.fed(count),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return feeder.fail(reason(&error.into())),
        }
        if feeder.is_skipped() {
            return feeder.end();
        }
    }
}

/// Waits for bytes, the end of the stream, or the end of the scan.
fn await_bytes(input: BorrowedFd<'_>, shared: &Shared<'_>) -> Result<(), Stopped> {
    let mut events = [PollFd::new(&input, PollFlags::IN)];
    // A stream that cannot be polled is read at once.
    while let Ok(0) | Err(rustix::io::Errno::INTR) = poll(&mut events, Some(&LOOK)) {
        if shared.silos.is_stopped() {
            return Err(Stopped);
        }
    }
    Ok(())
}
