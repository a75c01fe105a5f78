//! Drain of a driver at the end of a run: what is left is written, and nobody else uses the lane.

use super::{Driver, KIND, READ, ReadDone};
use holdfast_media::{Disk, Op, Request};

/// Tells whether a request with this tag is a read for a client.
pub(super) fn is_client_read(tag: u64) -> bool {
    tag & KIND == READ
}

impl<D: Disk> Driver<D> {
    /// Ends the service of clients: full slots are written at once, and reads that wait come back like reads of expired slots.
    /// The check behind capture ends. No more reads may be asked for.
    pub fn drain(&mut self) {
        self.requests.draining = true;
        while let Some(Request { tag, op }) = self.requests.drop_read() {
            let id = tag & !KIND;
            self.reads.retain(|read| read.id != id);
            if let Op::Read { buffer, .. } = op {
                self.reads_done.push_back(ReadDone { id, buffer, result: None });
            }
        }
    }

    /// Tells whether the check behind capture has ended with the run: no rebuilt slot waits for it.
    pub(crate) fn needs_no_check(&self) -> bool {
        self.requests.draining && self.ring.doubted.is_empty()
    }
}
