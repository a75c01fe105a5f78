//! Asking an ATA drive how long it tries to read a bad place (SCT error recovery control), through the SCSI generic
//! ioctl. Only asking: nothing is set.
//!
//! ACS-3, 8.3.4: the question is a sector that is written to the log at E0h; the answer is in the registers, in units of
//! 100 ms. SAT-3, 12.2: how registers travel in a SCSI command and in its sense data.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The ioctl.
const SG_IO: libc::Ioctl = 0x2285;
/// A drive that sleeps needs some seconds.
const TIMEOUT_MS: u32 = 15_000;
/// Where the question is written.
const LOG: u8 = 0xe0;

const COMMAND: [u8; 16] = command();

const fn command() -> [u8; 16] {
    let mut bytes = [0; 16];
    // ATA PASS-THROUGH (16).
    bytes[0] = 0x85;
    // Bytes go out by PIO …
    bytes[1] = 5 << 1;
    // … as many blocks as the count says, and the registers come back.
    bytes[2] = 0x26;
    // SMART WRITE LOG.
    (bytes[4], bytes[14]) = (0xd6, 0xb0);
    // One sector, to that log; the rest is SMART's signature.
    (bytes[6], bytes[8], bytes[10], bytes[12]) = (1, LOG, 0x4f, 0xc2);
    bytes
}

/// What a command says, as `sg_io_hdr` of the kernel's `scsi/sg.h`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_len: u8,
    sense_room: u8,
    pieces: u16,
    data_len: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout: u32,
    flags: u32,
    id: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_len: u8,
    host_status: u16,
    driver_status: u16,
    left: i32,
    took: u32,
    info: u32,
}

/// How long the drive tries; `None` where it does not say, has no limit, or may not be asked.
pub(super) fn read_limit(drive: &impl AsFd) -> Option<Duration> {
    let (mut question, mut sense) = (question(), [0u8; 32]);
    let mut header = Header {
        interface: i32::from(b'S'),
        // To the device.
        direction: -2,
        command_len: COMMAND.len() as u8,
        sense_room: sense.len() as u8,
        pieces: 0,
        data_len: question.len() as u32,
        data: question.as_mut_ptr(),
        command: COMMAND.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout: TIMEOUT_MS,
        flags: 0,
        id: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_len: 0,
        host_status: 0,
        driver_status: 0,
        left: 0,
        took: 0,
        info: 0,
    };
    // SAFETY: the header is laid out as the kernel's, and its pointers and lengths are those of arrays that outlive the call.
    let done = unsafe { libc::ioctl(drive.as_fd().as_raw_fd(), SG_IO, &raw mut header) };
    (done == 0 && header.host_status == 0).then(|| answer(&sense)).flatten()
}

/// Error recovery control (action 3): tell (function 2) the timer of reads (selection 1).
fn question() -> [u8; 512] {
    let mut sector = [0; 512];
    (sector[0], sector[2], sector[4]) = (3, 2, 1);
    sector
}

/// What came back, as sense data with descriptors: among them that of the registers.
fn answer(sense: &[u8; 32]) -> Option<Duration> {
    let registers = &sense[8..22];
    if sense[0] & 0x7f != 0x72 || registers[0] != 0x09 || registers[1] < 12 || registers[13] & 1 != 0 {
        return None;
    }
    let (count, low) = (registers[5], registers[7]);
    // Just what was sent: whoever is in between did not bring the answer.
    if (count, low) == (1, LOG) {
        return None;
    }
    let tenths = u64::from(low) << 8 | u64::from(count);
    (tenths > 0).then(|| Duration::from_millis(tenths * 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sense(count: u8, low: u8, status: u8) -> [u8; 32] {
        let mut sense = [0; 32];
        (sense[0], sense[7], sense[8], sense[9]) = (0x72, 14, 0x09, 12);
        (sense[13], sense[15], sense[21]) = (count, low, status);
        sense
    }

    #[test]
    fn the_question_is_as_the_standard_draws_it() {
        assert_eq!(COMMAND, [0x85, 0x0a, 0x26, 0, 0xd6, 0, 1, 0, 0xe0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        assert_eq!(question()[..6], [3, 0, 2, 0, 1, 0]);
        assert_eq!(size_of::<Header>(), if cfg!(target_pointer_width = "64") { 88 } else { 64 });
    }

    #[test]
    fn seven_seconds_no_limit_and_no_answer_are_told_apart() {
        assert_eq!(answer(&sense(70, 0, 0x50)), Some(Duration::from_secs(7)));
        assert_eq!(answer(&sense(0x2c, 0x01, 0x50)), Some(Duration::from_secs(30)));
        assert_eq!(answer(&sense(0, 0, 0x50)), None, "it tries for ever");
        assert_eq!(answer(&sense(1, LOG, 0x50)), None, "the answer got lost");
        assert_eq!(answer(&sense(70, 0, 0x51)), None, "it failed");
        assert_eq!(answer(&[0; 32]), None);
        assert_eq!(read_limit(&std::fs::File::open("/dev/null").unwrap()), None);
    }
}
