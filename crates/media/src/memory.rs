//! Memory disk: no faults, every request done at once and in order.

use crate::disk::{Completion, Disk, DiskInfo, Medium, Op, Request};
use crate::image::Image;
use holdfast_base::BLOCK;
use std::collections::VecDeque;
use std::time::Duration;

/// Requests that may wait for being fetched: enough for any scheduler, small enough to find one that forgets.
const DEPTH: usize = 64;

/// A disk in memory, for tests and benches.
#[derive(Debug)]
pub struct MemoryDisk {
    info: DiskInfo,
    image: Image,
    done: VecDeque<Completion>,
}

impl MemoryDisk {
    /// An empty disk; what is never written costs nothing.
    pub fn new(bytes: u64) -> Self {
        Self::from_image(Image::new(bytes))
    }

    /// A disk that holds `image`.
    pub fn from_image(image: Image) -> Self {
        let info = DiskInfo {
            name: "memory".to_owned(),
            medium: Medium::Memory,
            bytes: image.bytes(),
            block: BLOCK,
            depth: DEPTH,
            direct: true,
        };
        Self { info, image, done: VecDeque::with_capacity(DEPTH) }
    }

    /// Makes it longer, as somebody else does with a real one: it is noticed by an [`Op::Measure`].
    pub fn lengthen(&mut self, bytes: u64) {
        self.image.grow(bytes);
    }

    /// What it holds now; later writes do not change the copy.
    pub fn snapshot(&self) -> Image {
        self.image.clone()
    }
}

impl Disk for MemoryDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.done.len() >= self.info.depth {
            return Err(request);
        }
        let result = self.info.check(&request.op);
        let buffer = match request.op {
            Op::Write { offset, buffer, len, .. } => {
                if result.is_ok() {
                    self.image.write(offset, &buffer[..len]);
                }
                Some(buffer)
            }
            Op::Read { offset, mut buffer, len } => {
                if result.is_ok() {
                    self.image.read(offset, &mut buffer[..len]);
                }
                Some(buffer)
            }
            Op::Flush => None,
            Op::Measure => {
                self.info.bytes = self.image.bytes();
                None
            }
        };
        self.done.push_back(Completion { tag: request.tag, buffer, result });
        Ok(())
    }

    fn complete(&mut self, _wait: Duration) -> Option<Completion> {
        self.done.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Fault};

    fn write(tag: u64, offset: u64, byte: u8) -> Request {
        let mut buffer = Buffer::aligned(BLOCK).unwrap();
        buffer.fill(byte);
        Request { tag, op: Op::Write { offset, buffer, len: BLOCK, durable: true } }
    }

    #[test]
    fn requests_complete_in_order_and_snapshots_stand_still() {
        let mut disk = MemoryDisk::new(1 << 20);
        disk.submit(write(1, 4096, 7)).unwrap();
        let before = disk.snapshot();
        disk.submit(write(2, 4096, 8)).unwrap();
        let buffer = Buffer::aligned(BLOCK).unwrap();
        disk.submit(Request { tag: 3, op: Op::Read { offset: 4096, buffer, len: BLOCK } }).unwrap();
        disk.submit(Request { tag: 4, op: Op::Flush }).unwrap();
        let done: Vec<Completion> = std::iter::from_fn(|| disk.complete(Duration::ZERO)).collect();
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(done.iter().all(|c| c.result.is_ok()));
        assert!(done[2].buffer.as_ref().unwrap().iter().all(|b| *b == 8));
        assert_eq!(MemoryDisk::from_image(before).snapshot().range(4096, 1), [7]);
    }

    #[test]
    fn misplaced_requests_are_refused_by_their_completion() {
        let mut disk = MemoryDisk::new(8192);
        for offset in [1, 8192, u64::MAX - 4095] {
            disk.submit(write(0, offset, 1)).unwrap();
            let error = disk.complete(Duration::ZERO).unwrap().result.unwrap_err();
            assert_eq!((error.fault, error.offset, error.what), (Fault::Misplaced, offset, "write"));
        }
        assert_eq!(disk.snapshot(), Image::new(8192));
        disk.lengthen(12288);
        assert_eq!(disk.info().bytes, 8192, "nobody has looked");
        disk.submit(Request { tag: 0, op: Op::Measure }).unwrap();
        assert_eq!(disk.complete(Duration::ZERO).unwrap().result, Ok(()));
        disk.submit(write(0, 8192, 1)).unwrap();
        assert_eq!(disk.complete(Duration::ZERO).unwrap().result, Ok(()));
    }

    #[test]
    fn a_full_queue_gives_the_request_back() {
        let mut disk = MemoryDisk::new(8192);
        for tag in 0..DEPTH as u64 {
            disk.submit(Request { tag, op: Op::Flush }).unwrap();
        }
        assert_eq!(disk.submit(write(99, 0, 1)).unwrap_err().tag, 99);
    }
}
