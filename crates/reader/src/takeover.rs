//! Takeover: a change-over to a recorder that opens the ring while it is read directly.

use super::RingReader;
use super::access::Access;
use super::item::PlannedSlot;
use super::live::Live;
use super::slot_head::SlotDefect;
use super::slot_lookup::{self, LookupError};
use crate::ReaderError;
use holdfast_protocol::{awaited_sockets, find_recorder_now};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How often and how far apart a recorder that must be there is looked for: a restart takes at most 5 s.
const PATIENCE: (u32, Duration) = (100, Duration::from_millis(100));

impl RingReader {
    /// Says whether somebody listens where the ring's recorder would.
    pub(crate) fn watch(&self) -> Box<dyn Fn() -> bool> {
        let sockets: Vec<PathBuf> = match &self.place {
            Some(place) if !self.is_live() => awaited_sockets(place),
            _ => Vec::new(),
        };
        Box::new(move || sockets.iter().any(|socket| socket.exists() && UnixStream::connect(socket).is_ok()))
    }

    /// Whether what looks like damage in a slot is that. If not, a recorder has taken the ring, and from now on it is read
    /// through that.
    pub(crate) fn is_damage(&mut self, planned: &PlannedSlot) -> Result<bool, ReaderError> {
        if self.go_live()? {
            return Ok(false);
        }
        let Access::Direct(direct) = &self.queue.access else { return Ok(true) };
        if direct.is_rebuilt(planned.sequence) {
            return Ok(true);
        }
        let newest = direct.recovered().status("").sequence;
        match slot_lookup::head(&mut self.queue, &self.superblock, planned) {
            // Somebody has written there since we opened the ring: a recorder, which should answer soon.
            Err(LookupError::Defect(SlotDefect::OtherSequence(sequence))) if sequence >= newest => {
                for _ in 0..PATIENCE.0 {
                    if self.go_live()? {
                        return Ok(false);
                    }
                    std::thread::sleep(PATIENCE.1);
                }
                let path = self.place.as_ref().map(|place| place.path.clone()).unwrap_or_default();
                Err(ReaderError::TakenOver { path })
            }
            Err(LookupError::Failed(error)) => Err(error),
            _ => Ok(true),
        }
    }

    /// Changes over to the ring's recorder, if one answers.
    fn go_live(&mut self) -> Result<bool, ReaderError> {
        let Some(place) = &self.place else { return Ok(false) };
        let Some(connection) = find_recorder_now(place)? else { return Ok(false) };
        self.queue = super::read_queue::ReadQueue::new(Access::Live(Box::new(Live::new(connection)?)));
        self.briefs.clear();
        Ok(true)
    }
}
