//! Source of byte streams: standard input, files, named pipes and character devices.

use super::error::{Fault, SourceError};
use super::stop::{StopFlag, Woken, has_input, timespec, wait};
use super::stream::{end_of_stream, read_leading};
use super::{Source, SourceEnd};
use crate::framing::Cutter;
use crate::producer::Producer;
use holdfast_base::ByteSize;
use rustix::event::epoll;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Bytes that are taken at a stop of a device that does not tell how much it has: it may have no end.
const UNTOLD: u64 = 64 << 10;

/// What is said of an input that has less than its preamble.
pub(super) fn ends_early(bytes: ByteSize) -> String {
    format!("it ends before its preamble of {bytes} is complete")
}

/// How an input is waited for.
#[derive(Debug)]
pub(super) enum Wait {
    /// Not at all: a file always has its next byte, or its end.
    Never,
    /// Until it is readable; its end is the end of the source.
    Poll,
    /// A named pipe, opened without blocking: it ends whenever its last writer goes, and goes on with the next.
    Fifo(Fifo),
}

/// Waits on a named pipe that may have no writer. Edge-triggered, so that the end that was seen already does not
/// wake again, but the next writer's first byte does; the pipe stays open all the time, so that no byte is missed.
#[derive(Debug)]
pub(super) struct Fifo {
    epoll: OwnedFd,
}

impl Fifo {
    pub(super) fn new(file: &File, stop: &StopFlag) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, file, epoll::EventData::new_u64(0), edge)?;
        epoll::add(&epoll, stop, epoll::EventData::new_u64(1), epoll::EventFlags::IN)?;
        Ok(Self { epoll })
    }

    fn wait(&self, at_most: Option<Duration>) -> io::Result<Woken> {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 2];
        match epoll::wait(&self.epoll, &mut events[..], at_most.map(timespec).as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(Woken::TimedOut),
            Ok(n) if events[..n].iter().any(|event| event.data.u64() == 1) => Ok(Woken::Stopped),
            Ok(_) => Ok(Woken::Ready),
            Err(error) => Err(error.into()),
        }
    }
}

/// A source that reads a file descriptor.
#[derive(Debug)]
pub(super) struct FileSource {
    pub(super) name: String,
    pub(super) file: File,
    pub(super) wait: Wait,
    pub(super) cutter: Cutter,
    /// Bytes at its head that are a preamble, and still to come.
    pub(super) leading: Option<ByteSize>,
    /// Bytes read before: the preamble.
    pub(super) before: u64,
    /// Whether a named pipe is left when its writer goes: another one would bring another preamble.
    pub(super) once: bool,
}

impl Source for FileSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.read_all(out, stop))
    }
}

impl FileSource {
    fn failed(&self, error: io::Error) -> Fault {
        let at = self.before + self.cutter.position();
        SourceError::Read { name: self.name.clone(), at, error }.into()
    }

    /// Waits for the preamble at the head of the input, and hands it over. False: stop.
    fn lead(&mut self, bytes: ByteSize, out: &mut Producer, stop: &StopFlag) -> Result<bool, Fault> {
        let unfit = |what| SourceError::Unfit { name: self.name.clone(), what };
        let preamble = match read_leading(&mut self.file, bytes.0 as usize, true, stop) {
            Ok(Some(preamble)) => preamble,
            Ok(None) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(unfit(ends_early(bytes)).into());
            }
            Err(error) => return Err(self.failed(error)),
        };
        self.before = bytes.0;
        out.lead(preamble)?.map_err(unfit)?;
        Ok(true)
    }

    fn read_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        if let Some(bytes) = self.leading.take()
            && !self.lead(bytes, out, stop)?
        {
            return Ok(SourceEnd::Stopped);
        }
        loop {
            if stop.is_stopped() {
                return self.stopped(out);
            }
            if matches!(self.wait, Wait::Poll) && !self.wait_for_input(out, stop)? {
                return self.stopped(out);
            }
            let space = out.space(&self.cutter)?;
            match self.file.read(space) {
                Ok(0) if matches!(self.wait, Wait::Fifo(_)) && !self.once => {
                    // The next writer begins anew. That this one cut its last element is in the gap.
                    end_of_stream(out, &self.cutter)?;
                    self.before += self.cutter.position();
                    self.cutter = Cutter::new(self.cutter.framing());
                    if !self.wait_for_input(out, stop)? {
                        return self.stopped(out);
                    }
                }
                Ok(0) => {
                    let cut = end_of_stream(out, &self.cutter)?;
                    return cut
                        .map_or(Ok(SourceEnd::Ended), |cut| Err(cut.error(&self.name, self.before).into()));
                }
                Ok(n) => {
                    out.feed(n, &mut self.cutter)?;
                    out.settle()?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.wait_for_input(out, stop)? {
                        return self.stopped(out);
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Waits until there is something to read; meanwhile what is in the batch is sent. False: stop.
    fn wait_for_input(&self, out: &mut Producer, stop: &StopFlag) -> Result<bool, Fault> {
        let mut at_most = Some(Duration::ZERO);
        loop {
            let woken = match &self.wait {
                Wait::Fifo(fifo) => fifo.wait(at_most),
                Wait::Never | Wait::Poll => wait(&self.file, stop, at_most),
            };
            match woken.map_err(|error| self.failed(error))? {
                Woken::Ready => return Ok(true),
                Woken::Stopped => return Ok(false),
                Woken::TimedOut => at_most = out.idle()?,
            }
        }
    }

    /// What was written before the stop is taken. What is there of the last element is kept where the framing allows,
    /// and else counted.
    fn stopped(&mut self, out: &mut Producer) -> Result<SourceEnd, Fault> {
        // Nobody waits until a file is read, and it stays.
        if !matches!(self.wait, Wait::Never) {
            self.take_rest(out)?;
        }
        end_of_stream(out, &self.cutter)?;
        Ok(SourceEnd::Stopped)
    }

    /// Takes what is there at this moment: a writer that goes on does not keep us from ending.
    fn take_rest(&mut self, out: &mut Producer) -> Result<(), Fault> {
        let mut left = rustix::io::ioctl_fionread(&self.file).unwrap_or(UNTOLD);
        while left > 0 && has_input(&self.file).map_err(|error| self.failed(error))? {
            let space = out.space(&self.cutter)?;
            let most = space.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match self.file.read(&mut space[..most]) {
                Ok(0) => break,
                Ok(n) => {
                    left -= n as u64;
                    out.feed(n, &mut self.cutter)?;
                    out.settle()?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }
}
