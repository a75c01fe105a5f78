//! The disk that capture runs on: `io_uring`, direct I/O, registered buffers, one fixed file. `device` opens
//! and claims the file; where `io_uring` is forbidden `plain` serves.
#![allow(unsafe_code)]

use crate::device::{self, Device, DeviceLock, Parts};
use crate::disk::{Completion, Disk, DiskInfo, Fault, Op, Request};
use crate::{Buffer, InflightLimiter, Region, fault};
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Requests in flight at most: more only fill the device's own queue.
pub const MAX_DEPTH: usize = 1024;

/// Times a request is continued without having moved on, before it counts as failed.
const STUCK: u32 = 16;

/// How long a disk that is given up waits for what is under way.
const FAREWELL: Duration = Duration::from_secs(2);

/// A device or file under `io_uring`.
pub struct UringDisk {
    ring: IoUring,
    file: File,
    claim: Option<DeviceLock>,
    info: DiskInfo,
    /// By slot number, which travels through the kernel as user data.
    flights: Box<[Option<KernelRequest>]>,
    vacant: Vec<u32>,
    limiter: InflightLimiter,
    /// Slots whose requests have no turn yet.
    waiting: VecDeque<u32>,
    /// Requests that ended before they reached the kernel.
    at_once: VecDeque<Completion>,
    /// Registered memory, with the index of its first buffer.
    regions: Vec<(Region, usize)>,
    file_is_fixed: bool,
    waits_by_args: bool,
    syncs_apart: bool,
    warnings: Vec<String>,
}

/// A request in the kernel's hands.
struct KernelRequest {
    request: Request,
    done: usize,
    stuck: u32,
    /// Whether its bytes are written and only the sync is missing.
    syncing: bool,
}

/// What a completion of the kernel means for its request.
enum Next {
    Done(Result<(), Fault>),
    Again,
}

impl UringDisk {
    /// Runs `device` with at most `depth` requests in flight; buffers of `regions` are registered with the kernel.
    /// Gives the device back when `io_uring` cannot be had.
    pub fn new(device: Device, regions: &[Region], depth: usize) -> Result<Self, (Device, std::io::Error)> {
        let depth = depth.clamp(1, MAX_DEPTH);
        let ring = match IoUring::builder().dontfork().build(depth as u32) {
            Ok(ring) => ring,
            Err(cause) => return Err((device, cause)),
        };
        let Parts { file, claim, mut info, warnings } = device.parts();
        info.depth = depth;
        let file_is_fixed = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        let mut disk = Self {
            waits_by_args: ring.params().is_feature_ext_arg(),
            ring,
            file,
            claim,
            info,
            flights: (0..depth).map(|_| None).collect(),
            vacant: (0..depth as u32).rev().collect(),
            limiter: InflightLimiter::default(),
            waiting: VecDeque::with_capacity(depth),
            at_once: VecDeque::with_capacity(depth),
            regions: Vec::new(),
            file_is_fixed,
            syncs_apart: false,
            warnings,
        };
        disk.register(regions);
        Ok(disk)
    }

    fn register(&mut self, regions: &[Region]) {
        let vectors: Vec<libc::iovec> = regions
            .iter()
            .flat_map(Region::pieces)
            .map(|(start, len)| libc::iovec { iov_base: start.cast(), iov_len: len })
            .collect();
        if vectors.is_empty() {
            return;
        }
        // SAFETY: the memory stays mapped while `self.regions` holds it, which is as long as the ring.
        match unsafe { self.ring.submitter().register_buffers(&vectors) } {
            Ok(()) => {
                let mut first = 0;
                for region in regions {
                    self.regions.push((region.clone(), first));
                    first += region.count();
                }
            }
            Err(cause) => self.warnings.push(format!(
                "{}: buffers are not registered with the kernel ({cause}), so each request costs more time: raise the memory-lock limit (ulimit -l, or LimitMEMLOCK= of systemd)",
                self.info.name
            )),
        }
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Readable when a completion is there: for waiting on several things at once.
    pub fn ready(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring's descriptor is open as long as `self.ring`, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Says which requests take turns, while none is in flight.
    pub(crate) fn limit_inflight(&mut self, limiter: InflightLimiter) {
        self.limiter = limiter;
    }

    /// Its file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Rings an event counter, too, whenever a completion is there.
    pub(crate) fn tell(&self, counter: BorrowedFd<'_>) -> std::io::Result<()> {
        self.ring.submitter().register_eventfd(counter.as_raw_fd())
    }

    /// Keeps the claim for as long as the process lives.
    pub(crate) fn keep_claim(&mut self) {
        std::mem::forget(self.claim.take());
    }

    fn flying(&self) -> usize {
        self.flights.len() - self.vacant.len()
    }

    /// The buffer's number among the registered ones.
    fn registered(&self, buffer: &Buffer) -> Option<u16> {
        let (_, first) = self.regions.iter().find(|(region, _)| region.holds(buffer))?;
        u16::try_from(first + buffer.index()).ok()
    }

    /// Queues what is left of the request in `slot`.
    fn push(&mut self, slot: u32) {
        let Some(flight) = &self.flights[slot as usize] else { return };
        let done = flight.done;
        let fd = Fd(if self.file_is_fixed { 0 } else { self.file.as_raw_fd() });
        let entry = match &flight.request.op {
            Op::Write { offset, buffer, len, durable } if !flight.syncing => {
                let (start, len) = (buffer.address().wrapping_add(done), (len - done) as u32);
                let offset = offset + done as u64;
                let flags = if *durable && !self.syncs_apart { libc::RWF_DSYNC } else { 0 };
                match self.registered(buffer) {
                    Some(index) => {
                        opcode::WriteFixed::new(fd, start, len, index).offset(offset).rw_flags(flags).build()
                    }
                    None => opcode::Write::new(fd, start, len).offset(offset).rw_flags(flags).build(),
                }
            }
            Op::Read { offset, buffer, len } => {
                let (start, len) = (buffer.address().wrapping_add(done), (len - done) as u32);
                let offset = offset + done as u64;
                match self.registered(buffer) {
                    Some(index) => opcode::ReadFixed::new(fd, start, len, index).offset(offset).build(),
                    None => opcode::Read::new(fd, start, len).offset(offset).build(),
                }
            }
            Op::Write { .. } | Op::Flush | Op::Measure => {
                opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
            }
        };
        let entry = entry.user_data(u64::from(slot));
        let entry = if self.file_is_fixed { entry.flags(squeue::Flags::FIXED_FILE) } else { entry };
        // SAFETY: the buffer stays in `self.flights` until the kernel has completed the entry, and is forgotten,
        // not freed, if this disk is dropped before that.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There are as many entries as slots, and each slot has one at most.
        debug_assert!(pushed.is_ok());
        // What the kernel does not take now stays queued, and is offered again whenever we wait.
        let _ = self.ring.submit();
    }

    /// Fetches one completion that ends a request; continues those that were cut short.
    fn reap(&mut self) -> Option<Completion> {
        loop {
            let entry: cqueue::Entry = self.ring.completion().next()?;
            let slot = entry.user_data() as u32;
            let Some(flight) = self.flights.get_mut(slot as usize).and_then(Option::as_mut) else { continue };
            match flight.advance(entry.result(), self.info.block, &mut self.syncs_apart) {
                Next::Again => self.push(slot),
                Next::Done(result) => {
                    let Some(flight) = self.flights[slot as usize].take() else { continue };
                    self.vacant.push(slot);
                    let Request { tag, op } = flight.request;
                    self.limiter.end(tag);
                    self.next_turn();
                    let (what, offset, len) = op.place();
                    let result = result.map_err(|fault| self.info.error(what, offset, len, fault));
                    return Some(Completion { tag, buffer: op.into_buffer(), result });
                }
            }
        }
    }

    /// Begins what has waited longest, if it has its turn now.
    fn next_turn(&mut self) {
        let Some(&slot) = self.waiting.front() else { return };
        let tag = self.flights[slot as usize].as_ref().map(|flight| flight.request.tag);
        if tag.is_some_and(|tag| self.limiter.begin(tag)) {
            self.waiting.pop_front();
            self.push(slot);
        }
    }

    /// Sleeps until a completion is there, at most for `wait`.
    fn wait(&mut self, wait: Duration) {
        if self.waits_by_args {
            let time = Timespec::from(wait);
            // An elapsed time, a signal or a busy kernel: the caller looks at its clock and comes again.
            let _ = self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time));
            return;
        }
        let _ = self.ring.submit();
        let ready = self.ready();
        let time = rustix::event::Timespec::try_from(wait).ok();
        let _ = rustix::event::poll(&mut [PollFd::new(&ready, PollFlags::IN)], time.as_ref());
    }
}

impl KernelRequest {
    /// Takes in what the kernel returned.
    fn advance(&mut self, result: i32, block: usize, syncs_apart: &mut bool) -> Next {
        let (wanted, durable) = match &self.request.op {
            Op::Write { len, durable, .. } => (*len, *durable),
            Op::Read { len, .. } => (*len, false),
            Op::Flush | Op::Measure => (0, false),
        };
        if let Ok(more) = usize::try_from(result) {
            if self.syncing || self.done + more >= wanted {
                let unsynced = durable && *syncs_apart && !self.syncing;
                self.syncing |= unsynced;
                return if unsynced { Next::Again } else { Next::Done(Ok(())) };
            }
            // Direct I/O goes on at a block's border only.
            let more = more - more % block;
            self.done += more;
            self.stuck = if more > 0 { 0 } else { self.stuck + 1 };
            // Nothing left to read or room to write within what should be there: the file was cut by somebody.
            return if result == 0 || self.stuck > STUCK { Next::Done(Err(Fault::Io)) } else { Next::Again };
        }
        let cause = Errno::from_raw_os_error(-result);
        match cause {
            Errno::INTR | Errno::AGAIN if self.stuck < STUCK => {
                self.stuck += 1;
                Next::Again
            }
            // A file system that knows no durable writes: write, then sync.
            Errno::OPNOTSUPP | Errno::INVAL if durable && !self.syncing && !*syncs_apart => {
                *syncs_apart = true;
                Next::Again
            }
            cause => Next::Done(Err(fault::of(cause))),
        }
    }
}

impl Disk for UringDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.flying() + self.at_once.len() >= self.info.depth {
            return Err(request);
        }
        let at_once = match &request.op {
            // The ring has no such operation, and it takes no time.
            Op::Measure => Some(device::measure(&self.file, &mut self.info)),
            op => self.info.check(op).err().map(Err),
        };
        if let Some(result) = at_once {
            let Request { tag, op } = request;
            self.at_once.push_back(Completion { tag, buffer: op.into_buffer(), result });
            return Ok(());
        }
        let Some(slot) = self.vacant.pop() else { return Err(request) };
        let begins = self.limiter.begin(request.tag);
        self.flights[slot as usize] = Some(KernelRequest { request, done: 0, stuck: 0, syncing: false });
        if begins {
            self.push(slot);
        } else {
            self.waiting.push_back(slot);
        }
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let mut deadline = None;
        loop {
            if let Some(done) = self.at_once.pop_front() {
                return Some(done);
            }
            if let Some(done) = self.reap() {
                return Some(done);
            }
            if self.flying() == 0 {
                return None;
            }
            if wait.is_zero() {
                if !self.ring.submission().is_empty() {
                    let _ = self.ring.submit();
                }
                return None;
            }
            let now = Instant::now();
            let left = deadline.get_or_insert(now + wait).saturating_duration_since(now);
            if left.is_zero() {
                return None;
            }
            self.wait(left);
        }
    }
}

impl Drop for UringDisk {
    fn drop(&mut self) {
        let end = Instant::now() + FAREWELL;
        while self.flying() > 0 && Instant::now() < end {
            self.complete(end.saturating_duration_since(Instant::now()));
        }
        if self.flying() == 0 {
            // At once, because closing the ring gives them up only some time later.
            let _ = self.ring.submitter().unregister_buffers();
            let _ = self.ring.submitter().unregister_files();
            return;
        }
        // The kernel may still write into these: better lost than used for something else. And while it may still
        // write to the medium, nobody else should own that.
        for flight in &mut self.flights {
            std::mem::forget(flight.take());
        }
        self.keep_claim();
    }
}

impl std::fmt::Debug for UringDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringDisk")
            .field("info", &self.info)
            .field("flying", &self.flying())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(op: Op) -> KernelRequest {
        KernelRequest { request: Request { tag: 0, op }, done: 0, stuck: 0, syncing: false }
    }

    fn write(durable: bool) -> KernelRequest {
        flight(Op::Write { offset: 0, buffer: Buffer::aligned(8192).unwrap(), len: 8192, durable })
    }

    #[test]
    fn a_short_transfer_goes_on_at_a_block_border_and_one_that_stands_still_fails() {
        let mut apart = false;
        let mut short = write(true);
        assert!(matches!(short.advance(5000, 4096, &mut apart), Next::Again));
        assert_eq!(short.done, 4096);
        assert!(matches!(short.advance(4096, 4096, &mut apart), Next::Done(Ok(()))));
        assert!(matches!(write(true).advance(0, 4096, &mut apart), Next::Done(Err(Fault::Io))));
        let mut stuck = write(false);
        let rounds =
            (0..100).take_while(|_| matches!(stuck.advance(100, 4096, &mut apart), Next::Again)).count();
        assert_eq!(rounds, STUCK as usize);
        let mut busy = write(false);
        let again = -Errno::AGAIN.raw_os_error();
        let rounds =
            (0..100).take_while(|_| matches!(busy.advance(again, 4096, &mut apart), Next::Again)).count();
        assert_eq!(rounds, STUCK as usize);
    }

    #[test]
    fn where_durable_writes_are_unknown_a_sync_follows_the_write() {
        let mut apart = false;
        let mut flight = write(true);
        let unknown = -Errno::OPNOTSUPP.raw_os_error();
        assert!(matches!(flight.advance(unknown, 4096, &mut apart), Next::Again));
        assert!(apart);
        assert!(matches!(flight.advance(8192, 4096, &mut apart), Next::Again), "written, not synced");
        assert!(flight.syncing);
        assert!(matches!(flight.advance(0, 4096, &mut apart), Next::Done(Ok(()))));
        let mut failing = write(true);
        assert!(matches!(failing.advance(8192, 4096, &mut apart), Next::Again));
        let error = -Errno::IO.raw_os_error();
        assert!(matches!(failing.advance(error, 4096, &mut apart), Next::Done(Err(Fault::Io))));
        assert!(matches!(write(false).advance(8192, 4096, &mut apart), Next::Done(Ok(()))));
    }

    fn new(folder: &tempfile::TempDir) -> Device {
        crate::create_file(&folder.path().join("ring"), 1 << 20, crate::Prefill::No).unwrap()
    }

    /// With five writes; those whose tags are below 10 take turns, two at once.
    fn in_turn(device: Device) -> UringDisk {
        let mut disk = UringDisk::new(device, &[], 8).map_err(|(_, cause)| cause).unwrap();
        disk.limit_inflight(InflightLimiter::new(|tag| tag < 10, 2));
        for tag in 0..5 {
            let mut buffer = Buffer::aligned(4096).unwrap();
            buffer.fill(tag as u8 + 1);
            let op = Op::Write { offset: tag * 4096, buffer, len: 4096, durable: true };
            disk.submit(Request { tag, op }).unwrap();
        }
        assert_eq!(disk.waiting.len(), 3);
        disk
    }

    fn completed(disk: &mut UringDisk) -> Vec<u64> {
        let mut tags = Vec::new();
        while let Some(done) = disk.complete(Duration::from_mins(1)) {
            assert_eq!(done.result, Ok(()));
            tags.push(done.tag);
            let left = (0..5).filter(|tag| !tags.contains(tag)).count();
            assert_eq!(
                disk.waiting.len(),
                left.saturating_sub(2),
                "two are with the kernel while there are any"
            );
        }
        tags
    }

    // Promise 1: a commit or a read waits for no slot that has no turn yet.
    #[test]
    fn of_those_that_take_turns_so_many_are_with_the_kernel_and_others_pass() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = in_turn(new(&folder));
        disk.submit(Request { tag: 10, op: Op::Flush }).unwrap();
        disk.submit(Request { tag: 11, op: Op::Flush }).unwrap();
        assert_eq!((disk.waiting.len(), disk.flying()), (3, 7), "the flushes are on their way");
        let mut tags = completed(&mut disk);
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3, 4, 10, 11]);
    }

    // Promise 6: one that fails gives its turn to the next.
    #[test]
    fn writes_that_fail_end_their_turns() {
        let folder = tempfile::tempdir().unwrap();
        drop(new(&folder));
        let device = Device::open(&folder.path().join("ring"), crate::Access::Look).unwrap();
        let mut disk = in_turn(device);
        let failed = std::iter::from_fn(|| disk.complete(Duration::from_mins(1)));
        assert_eq!(failed.filter(|done| done.result.is_err()).count(), 5);
    }

    // Promise 6: what waits at the end is written.
    #[test]
    fn a_disk_that_is_dropped_writes_what_waits() {
        let folder = tempfile::tempdir().unwrap();
        drop(in_turn(new(&folder)));
        let bytes = std::fs::read(folder.path().join("ring")).unwrap();
        assert!((0..5).all(|at| bytes[at * 4096] == at as u8 + 1));
    }
}
