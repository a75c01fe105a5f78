//! Replay of a capture file: packets with their capture times as event times, at their own pace, a multiple of it, or
//! as fast as the ring accepts them.
//!
//! What is no packet but a message, in an MCAP file, is `messages`'.
//!
//! A looped file begins again with the same event times; arrival times go on.

use super::error::{Fault, SourceError};
use super::open::{open_at_once, problem};
use super::stop::{StopFlag, timespec};
use super::{MAX_PREAMBLE, Opened, Source, SourceEnd, SourceOptions, Speed, messages, packets};
use crate::framing::Framing;
use crate::mcap;
use crate::packet::filter::FileFilter;
use crate::packet::{RaisedSnaplen, ReadError, Reader, scan_within};
use crate::producer::{Overload, Producer};
use holdfast_attributes::Counter;
use holdfast_base::{MAX_META, Timestamp};
use holdfast_format::{Flags, StreamKind};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a packet's time may be off by before it is waited for: below, a batch would be sent for each.
const SLACK: Duration = Duration::from_millis(1);

struct ReplaySource {
    name: String,
    file: File,
    filter: Option<FileFilter>,
    snaplen: usize,
    speed: Speed,
    repeat: bool,
    scratch: Vec<u8>,
    /// Bytes of the file when it was looked through.
    length: u64,
    /// Memory in which its largest packet has room.
    room: Vec<u8>,
}

/// Looks through the file once, for its interfaces; the packets are read when the source runs.
pub(super) fn open(
    name: &str,
    path: &Path,
    options: &SourceOptions,
    overload: Overload,
) -> Result<Opened, SourceError> {
    let failed = |what, error| problem(name, what, error);
    let mut file = open_at_once(path).map_err(|error| failed("open the file", error))?;
    let about = file.metadata().map_err(|error| failed("look at the file", error))?;
    if !about.is_file() {
        let what = "only a regular file can be replayed: it is scanned first".to_owned();
        return Err(SourceError::Unfit { name: name.to_owned(), what });
    }
    let mut start = Vec::new();
    let read = (&file).take(mcap::MAGIC_OF_ALL.len() as u64).read_to_end(&mut start);
    read.and_then(|_| file.rewind()).map_err(|error| failed("read the file", error))?;
    if start == mcap::MAGIC_OF_ALL {
        return messages::open(name, file, options, overload);
    }
    if matches!(options.counter, Some(Counter::Mcap)) {
        let why = "it counts messages of MCAP files, and this is not an MCAP file";
        return Err(SourceError::Option { name: name.to_owned(), option: "--counter mcap", why });
    }
    let (preamble, report) = scan_within(&file, about.len(), MAX_PREAMBLE.0 as usize)
        .map_err(|error| SourceError::Scan { name: name.to_owned(), error })?;
    file.rewind().map_err(|error| failed("read the file again", error))?;
    let filter = options.filter.as_deref().map(|text| FileFilter::compile(text, preamble.interfaces()));
    let filter = filter.transpose().map_err(|error| SourceError::Filter { name: name.to_owned(), error })?;
    let mut notes = Vec::new();
    if report.left_out > 0 {
        notes.push(format!(
            "{name}: left out, of the blocks and options of its sections: {}",
            report.left_out
        ));
    }
    if report.notes.options_left_out > 0 {
        notes.push(format!(
            "{name}: left out, of options, for one packet, interface or section takes at most 64 KiB of them: {}",
            report.notes.options_left_out
        ));
    }
    if report.notes.times_left_out > 0 {
        notes.push(format!(
            "{name}: packets without a time, for the one they have is before 1970 or behind the year 2262: {}",
            report.notes.times_left_out
        ));
    }
    if let Some(RaisedSnaplen { declared, raised }) = report.raised.first() {
        let others = match report.raised.len() - 1 {
            0 => String::new(),
            more => format!("; other snapshot lengths raised likewise: {more}"),
        };
        notes.push(format!(
            "{name}: packets are longer than the snapshot length of their interface, {declared} bytes; recorded as {raised} bytes{others}"
        ));
    }
    if report.originals_too_short > 0 {
        notes.push(format!(
            "{name}: packets whose original length is less than their captured length, which is recorded as both: {}",
            report.originals_too_short
        ));
    }
    if let Some(broke) = &report.broke {
        notes.push(format!("{name}: {broke}; whole packets before it: {}", report.packets));
    }
    // Touched, so that it is there before the first packet is.
    let mut room = vec![1; report.room];
    room.fill(0);
    let source = ReplaySource {
        name: name.to_owned(),
        file,
        filter,
        snaplen: options.snaplen.map_or(usize::MAX, |snaplen| snaplen as usize),
        speed: options.speed.unwrap_or(Speed::Times(1.0)),
        repeat: options.repeat && report.packets > 0,
        scratch: Vec::with_capacity(MAX_META),
        length: about.len(),
        room,
    };
    Ok(Opened {
        source: Box::new(source),
        kind: StreamKind::Packets,
        preamble: Some(preamble.as_bytes().to_vec()),
        leads: false,
        framing: Framing::Whole,
        overload,
        notes,
        memory: report.room as u64,
    })
}

/// When packets are due.
pub(super) struct Pace {
    times: f64,
    /// The first packet's time, and when it was delivered.
    start: Option<(Timestamp, Instant)>,
}

impl Pace {
    /// `None`: at once.
    pub(super) fn of(speed: Speed) -> Option<Self> {
        match speed {
            Speed::Times(times) => Some(Self { times, start: None }),
            Speed::Max => None,
        }
    }

    /// How long to wait for a packet of this time. One that is older than the first is due at once.
    fn due_in(&mut self, time: Timestamp, now: Instant) -> Duration {
        let (first, start) = *self.start.get_or_insert((time, now));
        let after = time.since(first).as_secs_f64() / self.times;
        let after = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        start.checked_add(after).map_or(Duration::MAX, |due| due.saturating_duration_since(now))
    }
}

/// Waits; false if the flag was raised meanwhile.
fn sleep(stop: &StopFlag, at_most: Duration) -> io::Result<bool> {
    match poll(&mut [PollFd::new(stop, PollFlags::IN)], Some(&timespec(at_most))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!stop.is_stopped()),
        Err(error) => Err(error.into()),
    }
}

impl ReplaySource {
    fn replay_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut reader = Reader::within(&self.file, self.length, std::mem::take(&mut self.room));
        loop {
            let end = self.replay_once(&mut reader, &mut scratch, out, stop)?;
            if end != SourceEnd::Ended || !self.repeat {
                return Ok(end);
            }
            let broken = |error| ReadError::Io { after_byte: 0, error };
            (&self.file).rewind().map_err(|error| self.failed(broken(error)))?;
            reader.begin_again();
        }
    }

    fn failed(&self, error: ReadError) -> Fault {
        SourceError::Packets { name: self.name.clone(), error }.into()
    }

    fn replay_once(
        &self,
        reader: &mut Reader<&File>,
        scratch: &mut Vec<u8>,
        out: &mut Producer,
        stop: &StopFlag,
    ) -> Result<SourceEnd, Fault> {
        let mut pace = Pace::of(self.speed);
        loop {
            if stop.is_stopped() {
                return Ok(SourceEnd::Stopped);
            }
            let packet = match reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(SourceEnd::Ended),
                Err(error) => return Err(self.failed(error)),
            };
            if self.filter.as_ref().is_some_and(|filter| !filter.accepts(&packet)) {
                continue;
            }
            if let (Some(pace), Some(time)) = (&mut pace, packet.time)
                && !wait_until_due(pace, time, out, stop, &self.name)?
            {
                return Ok(SourceEnd::Stopped);
            }
            out.stamp();
            let data = &packet.data[..packet.data.len().min(self.snaplen)];
            let mut marks = packets::marks(
                packet.interface,
                packet.time,
                packet.flags,
                packet.original_len.max(packet.data.len() as u32),
                data.len(),
            );
            let meta = packets::metadata(&packet, scratch);
            if !meta.is_empty() {
                marks.flags = marks.flags.with(Flags::PCAPNG_OPTIONS);
            }
            out.element(meta, data, marks)?;
        }
    }
}

/// False: stop.
pub(super) fn wait_until_due(
    pace: &mut Pace,
    time: Timestamp,
    out: &mut Producer,
    stop: &StopFlag,
    name: &str,
) -> Result<bool, Fault> {
    loop {
        let due = pace.due_in(time, Instant::now());
        if due < SLACK {
            return Ok(true);
        }
        let soon = out.idle()?.unwrap_or(Duration::MAX);
        let slept = sleep(stop, due.min(soon).min(Duration::from_hours(1)));
        let failed = |error| SourceError::Read { name: name.to_owned(), at: 0, error };
        if !slept.map_err(failed)? {
            return Ok(false);
        }
    }
}

impl Source for ReplaySource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.replay_all(out, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_due_at_their_own_distances_divided_by_the_speed() {
        let start = Instant::now();
        let second = |n: i64| Timestamp(n * 1_000_000_000);
        let mut pace = Pace { times: 2.0, start: None };
        assert_eq!(pace.due_in(second(100), start), Duration::ZERO);
        assert_eq!(pace.due_in(second(104), start), Duration::from_secs(2));
        assert_eq!(pace.due_in(second(104), start + Duration::from_secs(1)), Duration::from_secs(1));
        assert_eq!(pace.due_in(second(104), start + Duration::from_secs(9)), Duration::ZERO);
        assert_eq!(pace.due_in(second(7), start), Duration::ZERO, "back in time is now");
        let mut slow = Pace { times: 1e-300, start: Some((second(0), start)) };
        assert_eq!(slow.due_in(second(1), start), Duration::MAX, "never is no panic");
    }
}
