//! SCT error recovery control of an ATA drive: how long it tries to read a bad place, queried through the
//! SCSI generic ioctl. Nothing is set.
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

/// Bits of the status.
const ERROR: u8 = 0x01;
const FAULT: u8 = 0x20;

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

/// What a drive says of its limit on read errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// It gives up after this.
    After(Duration),
    /// It could have one, and has none: it tries for as long as it likes.
    Off,
    /// It does not say, or may not be asked.
    Unknown,
}

/// How long the drive tries.
pub(super) fn read_limit(drive: &impl AsFd) -> Limit {
    ask(|header| {
        // SAFETY: the header is laid out as the kernel's, and its pointers and lengths are those of arrays that outlive
        // the call.
        unsafe { libc::ioctl(drive.as_fd().as_raw_fd(), SG_IO, &raw mut *header) == 0 }
    })
}

/// The same of whoever takes the command; whether that was possible at all is what it answers.
fn ask(send: impl FnOnce(&mut Header) -> bool) -> Limit {
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
    if send(&mut header) && header.host_status == 0 { answer(&sense) } else { Limit::Unknown }
}

/// Error recovery control (action 3): tell (function 2) the timer of reads (selection 1).
fn question() -> [u8; 512] {
    let mut sector = [0; 512];
    (sector[0], sector[2], sector[4]) = (3, 2, 1);
    sector
}

/// Status, count and the lowest byte of the address: what the drive left in its registers, in sense data of either
/// format. Descriptors (SAT-3, 12.2.2.6) may come in any order; fixed data (12.2.2.7) has them in its information fields.
fn registers(sense: &[u8; 32]) -> Option<(u8, u8, u8)> {
    match sense[0] & 0x7f {
        0x72 => {
            let mut rest = sense.get(8..(8 + usize::from(sense[7])).min(sense.len()))?;
            while let [kind, len, fields @ ..] = rest {
                if *kind == 0x09 {
                    return Some((*fields.get(11)?, *fields.get(3)?, *fields.get(5)?));
                }
                rest = fields.get(usize::from(*len)..)?;
            }
            None
        }
        // Only where the additional code says that this is what they are.
        0x70 if (sense[12], sense[13]) == (0x00, 0x1d) => Some((sense[4], sense[6], sense[9])),
        _ => None,
    }
}

/// What came back.
fn answer(sense: &[u8; 32]) -> Limit {
    let Some((status, count, low)) = registers(sense) else { return Limit::Unknown };
    // It failed, or it is just what was sent: whoever is in between did not bring the answer.
    if status & (FAULT | ERROR) != 0 || (count, low) == (1, LOG) {
        return Limit::Unknown;
    }
    match u64::from(low) << 8 | u64::from(count) {
        0 => Limit::Off,
        tenths => Limit::After(Duration::from_millis(tenths * 100)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Limit {
        Limit::After(Duration::from_secs(seconds))
    }

    /// Sense data with the registers as a descriptor: recovered error, ATA pass-through information available.
    fn described(count: u8, low: u8, status: u8) -> [u8; 32] {
        let mut sense = [0; 32];
        let head = [0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 0x0e, 0x09, 0x0c, 0, 0];
        sense[..12].copy_from_slice(&head);
        // Count 15:8, 7:0; address 31:24, 7:0, 39:32, 15:8, 47:40, 23:16; device, status.
        sense[12..22].copy_from_slice(&[0, count, 0, low, 0, 0x4f, 0, 0xc2, 0, status]);
        sense
    }

    #[test]
    fn the_question_is_as_the_standard_draws_it() {
        assert_eq!(COMMAND, [0x85, 0x0a, 0x26, 0, 0xd6, 0, 1, 0, 0xe0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        assert_eq!(question()[..6], [3, 0, 2, 0, 1, 0]);
        assert!(question()[6..].iter().all(|byte| *byte == 0));
        assert_eq!(size_of::<Header>(), if cfg!(target_pointer_width = "64") { 88 } else { 64 });
    }

    #[test]
    fn seven_seconds_no_limit_and_no_answer_are_told_apart() {
        assert_eq!(answer(&described(70, 0, 0x50)), seconds(7));
        assert_eq!(answer(&described(0x2c, 0x01, 0x50)), seconds(30));
        assert_eq!(answer(&described(0, 0, 0x50)), Limit::Off, "it tries for ever");
        assert_eq!(answer(&described(1, LOG, 0x50)), Limit::Unknown, "the answer got lost");
        assert_eq!(answer(&described(70, 0, 0x51)), Limit::Unknown, "it failed");
        assert_eq!(answer(&described(70, 0, 0x70)), Limit::Unknown, "the drive is broken");
        assert_eq!(answer(&[0; 32]), Limit::Unknown);
        assert_eq!(read_limit(&std::fs::File::open("/dev/null").unwrap()), Limit::Unknown);
    }

    /// A kernel as `sg_io_hdr` is documented, and a drive behind it that is asked as ACS-3 says.
    #[test]
    fn what_the_kernel_is_given_is_a_whole_command_and_its_answer_is_taken() {
        let asked = |count: u8, low: u8, host: u16| {
            ask(|header| {
                // SAFETY: pointers and lengths are those of arrays that are alive; that they are is what is tested.
                let (command, data, sense) = unsafe {
                    (
                        std::slice::from_raw_parts(header.command, header.command_len.into()),
                        std::slice::from_raw_parts(header.data, header.data_len as usize),
                        std::slice::from_raw_parts_mut(header.sense, header.sense_room.into()),
                    )
                };
                assert_eq!((header.interface, header.direction), (0x53, -2), "bytes go to the device");
                assert_eq!((header.pieces, header.flags), (0, 0));
                assert!((5_000..60_000).contains(&header.timeout), "{} ms", header.timeout);
                assert_eq!((command, data), (&COMMAND[..], &question()[..]));
                sense.copy_from_slice(&described(count, low, 0x50));
                (header.status, header.driver_status, header.sense_len) = (0x02, 0x08, 22);
                header.host_status = host;
                true
            })
        };
        assert_eq!(asked(70, 0, 0), seconds(7), "a check condition with the registers is the answer");
        assert_eq!(asked(0x2c, 0x01, 0), seconds(30));
        assert_eq!(asked(0, 0, 0), Limit::Off);
        assert_eq!(asked(70, 0, 3), Limit::Unknown, "it did not get there in time");
        assert_eq!(ask(|_| false), Limit::Unknown, "not permitted, or no such thing");
    }

    /// As bridges and host adapters answer that know no descriptors, and such that put another one in front.
    #[test]
    fn other_forms_of_the_answer_are_read_too() {
        let mut fixed = [0; 32];
        fixed[..14].copy_from_slice(&[0xf0, 0, 1, 0, 0x50, 0, 70, 10, 0, 0, 0x4f, 0xc2, 0, 0x1d]);
        assert_eq!(answer(&fixed), seconds(7));
        fixed[9] = 1;
        assert_eq!(answer(&fixed), Limit::After(Duration::from_millis(32_600)));
        // An illegal request: the fields are something else's.
        (fixed[2], fixed[12], fixed[13]) = (5, 0x20, 0);
        assert_eq!(answer(&fixed), Limit::Unknown);
        let mut second = described(70, 0, 0x50);
        second.copy_within(8..22, 16);
        second[8..16].copy_from_slice(&[0x02, 0x06, 0, 0, 0, 0, 0, 0]);
        second[7] += 8;
        assert_eq!(answer(&second), seconds(7));
    }

    /// Promise 8: whatever a device answers.
    #[test]
    fn no_answer_is_too_strange() {
        let mut seed = crate::Seed::new(5);
        for round in 0..20_000 {
            let mut sense = [0; 32];
            seed.fill(&mut sense);
            sense[0] = if round % 2 == 0 { 0x72 } else { 0x70 };
            let _ = answer(&sense);
        }
    }
}
