//! Memory and descriptors of a process in a shell.

use super::sys::Call;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid as NixPid;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io::{IoSlice, IoSliceMut};

const PAGE: u64 = 4096;

/// Longest path or name with its end.
const MOST_TEXT: usize = 4096;

/// Most pieces of a vector read.
const MOST_PIECES: u64 = 1024;

/// Piece of the memory of a process.
pub(super) type Piece = RemoteIoVec;

impl From<&Call> for NixPid {
    fn from(call: &Call) -> Self {
        NixPid::from_raw(call.thread)
    }
}

fn errno(error: nix::Error) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

/// Piece of memory at an address.
pub(super) fn piece(address: u64, length: u64) -> Piece {
    Piece { base: address as usize, len: length as usize }
}

impl Call {
    /// Bytes at an address.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        let mut at = 0;
        while at < length {
            let from = [piece(address + at as u64, (length - at) as u64)];
            let read = process_vm_readv(self.into(), &mut [IoSliceMut::new(&mut bytes[at..])], &from);
            match read.map_err(errno)? {
                0 => return Err(Errno::FAULT),
                read => at += read,
            }
        }
        Ok(bytes)
    }

    /// Text at an address that ends with a zero. It is read page by page, as the next page may not be there.
    pub(super) fn text(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut text = Vec::new();
        let mut address = address;
        while text.len() < MOST_TEXT {
            let rest = PAGE - address % PAGE;
            let page = self.bytes(address, rest as usize)?;
            if let Some(end) = page.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&page[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&page);
            address += rest;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Pieces of a vector of buffers.
    pub(super) fn pieces(&self, address: u64, count: u64) -> Result<Vec<Piece>, Errno> {
        if count > MOST_PIECES {
            return Err(Errno::INVAL);
        }
        let bytes = self.bytes(address, count as usize * 16)?;
        let word = |at: &[u8]| u64::from_ne_bytes([at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]]);
        Ok(bytes.chunks_exact(16).map(|pair| piece(word(pair), word(&pair[8..]))).collect())
    }

    /// Writes bytes into pieces of memory, one after the other, from an offset of the pieces on.
    pub(super) fn scatter(&self, pieces: &[Piece], offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut skipped = offset as usize;
        let mut rest = bytes;
        for found in pieces {
            let skip = skipped.min(found.len);
            skipped -= skip;
            let (mut address, mut space) = (found.base + skip, found.len - skip);
            while space > 0 && !rest.is_empty() {
                let length = space.min(rest.len());
                let to = [Piece { base: address, len: length }];
                match process_vm_writev(self.into(), &[IoSlice::new(&rest[..length])], &to).map_err(errno)? {
                    0 => return Err(Errno::FAULT),
                    written => {
                        rest = &rest[written..];
                        address += written;
                        space -= written;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes bytes at an address.
    pub(super) fn put(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.scatter(&[piece(address, bytes.len() as u64)], 0, bytes)
    }

    /// Same open file as a descriptor of the process.
    pub(super) fn file(&self, descriptor: i32) -> Result<OwnedFd, Errno> {
        pidfd_getfd(self.process()?, descriptor, PidfdGetfdFlags::empty())
    }

    fn process(&self) -> Result<OwnedFd, Errno> {
        let thread = Pid::from_raw(self.thread).ok_or(Errno::SRCH)?;
        let opened = pidfd_open(thread, PidfdFlags::empty());
        if opened.is_ok() {
            return opened;
        }
        // Only the first thread of a process has its number.
        let process = Pid::from_raw(self.number()?).ok_or(Errno::SRCH)?;
        pidfd_open(process, PidfdFlags::empty())
    }

    /// Number of the process.
    fn number(&self) -> Result<i32, Errno> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.thread)).map_err(|_| Errno::SRCH)?;
        let number = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        number.ok_or(Errno::SRCH)
    }

    /// Number of the process and its time of start, which no later process has.
    pub(super) fn identity(&self) -> Result<(i32, u64), Errno> {
        /// Place of the start among the fields after the name.
        const START: usize = 19;
        let number = self.number()?;
        let fields = std::fs::read_to_string(format!("/proc/{number}/stat")).map_err(|_| Errno::SRCH)?;
        let start =
            fields.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(START)?.parse().ok());
        Ok((number, start.ok_or(Errno::SRCH)?))
    }
}
