//! Kernel interface of a shell: installs the filter of system calls, receives calls and answers them (seccomp(2),
//! `seccomp_unotify`(2)). All unsafe code of the crate lies here.

#![allow(unsafe_code)]

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use seccompiler::sock_filter;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, zeroed};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Most descriptors that a process in a shell may have open.
const DESCRIPTORS: u64 = 65_536;

/// System call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Number of the call, for its answer.
    pub(super) id: u64,
    /// Number of the thread that calls.
    pub(super) thread: i32,
    /// Number of the system call.
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel carries the call out.
    Continue,
    /// The call returns a value.
    Value(i64),
    /// The call fails with an error.
    Error(Errno),
}

/// Source of the calls of all processes in a shell.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a command do some work in its new process before its program begins, and send the descriptor that it gives over
/// `socket`. The work may make system calls only: it must neither allocate nor take locks.
pub(super) fn prepare(
    command: &mut Command,
    socket: OwnedFd,
    mut work: impl FnMut() -> io::Result<OwnedFd> + Send + Sync + 'static,
) {
    // SAFETY: the closure runs in the new process between fork and exec, and only makes system calls.
    unsafe {
        command.pre_exec(move || {
            let descriptor = work()?;
            send(socket.as_fd(), descriptor.as_fd())
        });
    }
}

/// Waits for the descriptor that a prepared command sends.
pub(super) fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::other("the program did not begin"))
}

/// Name spaces that a process leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unshare {
    Mounts,
    UsersAndMounts,
}

/// Gives the process name spaces of its own.
pub(super) fn unshare(what: Unshare) -> io::Result<()> {
    let flags = match what {
        Unshare::Mounts => UnshareFlags::NEWNS,
        Unshare::UsersAndMounts => UnshareFlags::NEWNS | UnshareFlags::NEWUSER,
    };
    // SAFETY: the table of descriptors stays shared as it is.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Lets the process open many files, and installs a filter of its system calls. Returns the listener.
pub(super) fn filter(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: now.maximum })?;
    rustix::thread::set_no_new_privs(true)?;
    install(program)
}

fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut().cast() };
    // A signal must not repeat a call that is being carried out.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the program lives during the call, and its length is that of the slice.
    let made =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(made as i32) })
}

fn send(socket: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

impl Listener {
    pub(super) fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Takes the next call. Fails with `NOENT` if its process died meanwhile.
    pub(super) fn receive(&self) -> io::Result<Call> {
        // SAFETY: all fields are integers, and the kernel wants zeros.
        let mut found: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the kernel writes a structure of this type.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut found) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let libc::seccomp_notif { id, pid, data, .. } = found;
        Ok(Call { id, thread: pid as i32, number: i64::from(data.nr), arguments: data.args })
    }

    /// Answers a call. A process that died needs none.
    pub(super) fn answer(&self, call: &Call, answer: Answer) {
        let (val, error, flags) = match answer {
            Answer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Value(value) => (value, 0, 0),
            Answer::Error(errno) => (0, -errno.raw_os_error(), 0),
        };
        let response = libc::seccomp_notif_resp { id: call.id, val, error, flags };
        // SAFETY: the kernel reads a structure of this type.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
    }

    /// Gives the calling process a descriptor with a number, or with the lowest free one, and answers its call with the number
    /// or with 0.
    pub(super) fn give(
        &self,
        call: &Call,
        file: BorrowedFd<'_>,
        number: Option<i32>,
        gift: Gift,
    ) -> io::Result<()> {
        let set = if number.is_some() { libc::SECCOMP_ADDFD_FLAG_SETFD } else { 0 };
        let send = if gift == Gift::Quiet { 0 } else { libc::SECCOMP_ADDFD_FLAG_SEND };
        let cloexec = if gift == Gift::CloseOnExec { libc::O_CLOEXEC as u32 } else { 0 };
        let given = libc::seccomp_notif_addfd {
            id: call.id,
            flags: (set | send) as u32,
            srcfd: file.as_raw_fd() as u32,
            newfd: number.unwrap_or(0) as u32,
            newfd_flags: cloexec,
        };
        // SAFETY: the kernel reads a structure of this type, whose descriptor is open.
        let done =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const given) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Way in which a process gets a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gift {
    /// The call returns the descriptor, which lives on in other programs.
    Kept,
    /// The call returns the descriptor, which ends with the program.
    CloseOnExec,
    /// The call is answered otherwise.
    Quiet,
}

/// True if no other description of the file may write. A file system without leases tells false.
pub(super) fn is_only_writer(file: &impl AsFd) -> bool {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: a lease changes no memory; it is given back at once.
    unsafe {
        let is_only = libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if is_only {
            libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK);
        }
        is_only
    }
}
