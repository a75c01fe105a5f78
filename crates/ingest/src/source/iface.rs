//! Source of live packets: a network interface, read through the kernel's rings, and the kernel's drops.

use super::error::{Fault, SourceError};
use super::stop::{Woken, wait};
use super::{Opened, Source, SourceEnd, SourceOptions, StopFlag, packets};
use crate::framing::Framing;
use crate::packet::Preamble;
use crate::packet::af_packet::{
    Capture, CaptureError, CounterFiles, InterfaceCounters, KernelCounters, Options, Presence,
};
use crate::producer::{Overload, Producer};
use holdfast_base::Timestamp;
use holdfast_format::StreamKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a packet may wait for others in the kernel's block.
const RETIRE: Duration = Duration::from_millis(20);

/// How often the kernel's counters are read, and a stop is looked for.
const POLL: Duration = Duration::from_millis(100);

/// How often room is waited for at a stop, for each block that is left: a second.
const LAST_WAITS: u32 = 200;

/// How often the interface's own counters are read.
const LOOK: Duration = Duration::from_secs(1);

/// How long room for a block is waited for before the ring is looked at again.
const ROOM: Duration = Duration::from_millis(5);

/// How often room is waited for within a block, where batches are too few for all of it: a quarter of the ring is free,
/// and 16 MiB take longer than that to come.
const BLOCK_WAITS: u32 = 10;

struct InterfaceSource {
    name: String,
    /// Name of the network interface.
    interface_name: String,
    captures: Vec<Capture>,
    /// What is told already of what each ring lost.
    told: Vec<ReportedDrops>,
    asked: Timestamp,
    /// The interface's own counters, where there are any.
    interface: Option<CounterFiles>,
    /// What the interface had counted when the source began, and when that was last looked at.
    at_start: Option<InterfaceCounters>,
    /// The frames that interfaces of this name had lost, and perhaps lost, when they were removed.
    before: (u64, u64),
    looked: Timestamp,
    blocks: usize,
    block_bytes: usize,
}

pub(super) fn open(
    name: &str,
    interface: &str,
    options: &SourceOptions,
    overload: Overload,
) -> Result<Opened, SourceError> {
    let wanted = Options {
        promiscuous: options.promiscuous,
        snaplen: options.snaplen.unwrap_or(0),
        filter: options.filter.clone(),
        rings: options.rings.unwrap_or(1),
        retire: RETIRE,
        ..Options::new(interface)
    };
    let captures =
        Capture::open(&wanted).map_err(|error| SourceError::Capture { name: name.to_owned(), error })?;
    let described: Vec<_> = captures.iter().take(1).map(Capture::describe).collect();
    let preamble = Preamble::live(&described);
    let preamble = preamble.map_err(|error| SourceError::Preamble { name: name.to_owned(), error })?;
    let source = InterfaceSource {
        name: name.to_owned(),
        interface_name: interface.to_owned(),
        told: vec![ReportedDrops::default(); captures.len()],
        captures,
        asked: Timestamp::MIN,
        interface: CounterFiles::open(interface),
        at_start: None,
        before: (0, 0),
        looked: Timestamp::MIN,
        blocks: wanted.blocks,
        block_bytes: wanted.block_bytes,
    };
    Ok(Opened {
        source: Box::new(source),
        kind: StreamKind::Packets,
        preamble: Some(preamble.as_bytes().to_vec()),
        leads: false,
        framing: Framing::Whole,
        overload,
        notes: Vec::new(),
        memory: 0,
    })
}

/// How much of what a ring lost is in gaps already.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedDrops(u64);

impl ReportedDrops {
    /// Makes a gap of what is new: frames that the kernel had no room for, and such as it handed over without sense.
    fn tell(&mut self, counted: &KernelCounters, since: Timestamp, out: &mut Producer) {
        let lost = counted.lost();
        out.lost_before(lost - self.0, since);
        self.0 = lost;
    }
}

impl InterfaceSource {
    fn failed(&self, error: CaptureError) -> Fault {
        SourceError::Capture { name: self.name.clone(), error }.into()
    }

    fn take_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        self.asked = out.stamp();
        self.look_at_interface(out);
        while !stop.is_stopped() {
            let mut any = false;
            for at in 0..self.captures.len() {
                // While capture is behind, packets wait in the kernel's ring; what no longer fits there is dropped here,
                // where it can be counted exactly.
                if self.captures[at].is_crowded() || out.await_room(self.block_bytes, ROOM)? {
                    any |= self.take_block(at, out)?;
                }
            }
            if out.stamp().since(self.asked) >= POLL {
                self.count_drops(out)?;
            }
            if !any && let Presence::Gone = self.wait(out)? {
                self.await_return(out, stop)?;
            }
        }
        self.take_rest(out)?;
        // The last look may be a moment ago, and what the end tells is final.
        self.looked = Timestamp::MIN;
        self.count_drops(out)?;
        Ok(SourceEnd::Stopped)
    }

    /// Takes the packets that have come: they may be in a block that is not full, which is handed over in time.
    fn take_rest(&mut self, out: &mut Producer) -> Result<(), Fault> {
        for at in 0..self.captures.len() {
            let mut wait = RETIRE * 3;
            for _ in 0..=self.blocks {
                match self.captures[at].poll(wait) {
                    Ok(true) => {
                        for _ in 0..LAST_WAITS {
                            if out.await_room(self.block_bytes, ROOM)? {
                                break;
                            }
                        }
                        self.take_block(at, out)?
                    }
                    Ok(false) | Err(_) => break,
                };
                wait = Duration::ZERO;
            }
        }
        Ok(())
    }

    /// Waits until an interface of the name is there again, or for the stop; between is a gap of which nobody knows how much
    /// it is. The rings stay.
    fn await_return(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<(), Fault> {
        self.take_rest(out)?;
        self.count_drops(out)?;
        let from = out.stamp();
        out.counters().down.store(true, Ordering::Relaxed);
        loop {
            let back = self.captures.iter_mut().try_for_each(Capture::rebind);
            match back {
                Ok(()) => break,
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(self.failed(error)),
            }
            let soon = out.idle()?.unwrap_or(POLL).min(POLL);
            if wait(stop, stop, Some(soon)).map_err(|error| self.cannot_wait(error))? == Woken::Stopped {
                break;
            }
        }
        let to = out.stamp();
        out.was_interrupted(from, to);
        self.asked = to;
        // They begin with zero.
        let counters = out.counters();
        let shown = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.before = (shown(&counters.interface_drops), shown(&counters.perhaps_lost));
        self.interface = CounterFiles::open(&self.interface_name);
        self.at_start = None;
        self.look_if_down(out);
        Ok(())
    }

    fn cannot_wait(&self, error: std::io::Error) -> Fault {
        SourceError::Read { name: self.name.clone(), at: 0, error }.into()
    }

    /// Takes one block of a ring; false when none is there.
    fn take_block(&mut self, at: usize, out: &mut Producer) -> Result<bool, Fault> {
        let mut gone = Ok(());
        let mut waits = if self.captures[at].is_crowded() { 0 } else { BLOCK_WAITS };
        out.stamp();
        let taken = self.captures[at].take_block(|packet| {
            while waits > 0 && gone.is_ok() {
                match out.await_place(packet.data.len(), ROOM) {
                    Ok(true) => break,
                    Ok(false) => waits -= 1,
                    Err(closed) => gone = Err(closed),
                }
                out.stamp();
            }
            if gone.is_ok() {
                let time = packet.hardware_time.unwrap_or(packet.time);
                let marks =
                    packets::marks(0, Some(time), packet.flags, packet.original_len, packet.data.len());
                gone = out.element(&[], packet.data, marks);
            }
        });
        gone?;
        Ok(taken > 0)
    }

    fn count_drops(&mut self, out: &mut Producer) -> Result<(), Fault> {
        for at in 0..self.captures.len() {
            let counted = self.captures[at].counters().map_err(|error| self.failed(error))?;
            self.told[at].tell(&counted, self.asked, out);
        }
        self.asked = out.stamp();
        self.look_at_interface(out);
        // That it is switched off is told by an error, once; that it is on again by nothing.
        if out.counters().down.load(Ordering::Relaxed) {
            self.look_if_down(out);
        }
        Ok(())
    }

    fn look_if_down(&self, out: &Producer) -> Presence {
        let all = || self.captures.iter().map(Capture::presence);
        let presence = all().find(|presence| *presence != Presence::Up).unwrap_or(Presence::Up);
        out.counters().down.store(presence != Presence::Up, Ordering::Relaxed);
        presence
    }

    /// What was lost before any ring saw it is no gap of ours: it is shown beside them, and apart from it what may be lost.
    fn look_at_interface(&mut self, out: &Producer) {
        if self.asked.since(self.looked) < LOOK {
            return;
        }
        self.looked = self.asked;
        let Some(now) = self.interface.as_ref().and_then(CounterFiles::read) else { return };
        let start = *self.at_start.get_or_insert(now);
        let since = |count: fn(&InterfaceCounters) -> u64| count(&now).saturating_sub(count(&start));
        let counters = out.counters();
        let (lost, perhaps) = self.before;
        counters.interface_drops.store(lost + since(InterfaceCounters::lost_before), Ordering::Relaxed);
        counters.perhaps_lost.store(perhaps + since(InterfaceCounters::perhaps_lost), Ordering::Relaxed);
    }

    fn wait(&mut self, out: &mut Producer) -> Result<Presence, Fault> {
        let soon = out.idle()?.unwrap_or(POLL).min(POLL);
        match Capture::poll_any(&mut self.captures, soon) {
            // That it has been removed may have been told as its being switched off.
            Ok(false) if out.counters().down.load(Ordering::Relaxed) => Ok(self.look_if_down(out)),
            Ok(_) => Ok(Presence::Up),
            // A switched-off interface goes on by itself when it is up again; meanwhile nothing arrives.
            Err(CaptureError::Down { .. }) => Ok(self.look_if_down(out)),
            Err(CaptureError::Gone { .. }) => Ok(Presence::Gone),
            Err(error) => Err(self.failed(error)),
        }
    }
}

impl Source for InterfaceSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.take_all(out, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::producer::{Marks, ProducerSettings, channel};
    use crate::{Cause, Content, Parker, Pressure};
    use holdfast_base::{Ordinal, SystemClock};
    use holdfast_format::Gap;
    use std::sync::Arc;

    // Promise 2: what the kernel hands over in a shape that nobody can read is as lost as what it drops.
    #[test]
    fn frames_without_sense_are_a_gap_with_their_number() {
        let settings = ProducerSettings::new(Overload::DropNewest, Ordinal(0));
        let (clock, parker) = (Arc::new(SystemClock::new()), Parker::new());
        let (mut out, mut inlet) = channel(&settings, clock, Arc::new(Pressure::default()), parker.waker());
        let mut told = ReportedDrops::default();
        let counts = [(0, 0), (0, 3), (0, 3), (5, 3), (6, 4)];
        for (dropped, malformed) in counts {
            let since = out.stamp();
            told.tell(&KernelCounters { dropped, malformed, ..KernelCounters::default() }, since, &mut out);
            out.element(&[], b"a packet", Marks::default()).unwrap();
        }
        out.finish().unwrap();
        let batch = inlet.take().unwrap();
        let gaps = batch.rows().iter().filter(|row| row.content == Content::Gap);
        let gaps: Vec<Gap> = gaps.map(|row| Gap::decode(batch.bytes_of(row)).unwrap()).collect();
        assert_eq!(gaps.iter().map(|gap| gap.elements).collect::<Vec<_>>(), [Some(3), Some(5), Some(2)]);
        assert!(gaps.iter().all(|gap| gap.cause == Cause::Kernel && gap.bytes.is_none()));
        assert_eq!(inlet.counters().dropped(Cause::Kernel), 10);
    }
}
