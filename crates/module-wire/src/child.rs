//! Operating-system process of a module: started, killed and waited for here, and nowhere else.

use crate::arguments::HostArguments;
use crate::memory::SharedMemory;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Access;
use rustix::process::{Pid, PidfdFlags};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Bytes of standard error that an error quotes.
const MAX_MESSAGE_BYTES: usize = 2 << 10;

/// Process that is killed when its handle is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    messages: UnixStream,
}

impl Child {
    /// Starts `program`, and returns its handle and the scan's end of its socket.
    pub(crate) fn start(
        program: &Path,
        arguments: &HostArguments,
        memory: &SharedMemory,
    ) -> io::Result<(Self, UnixStream)> {
        let (socket, theirs) = UnixStream::pair()?;
        let (messages, their_messages) = UnixStream::pair()?;
        messages.set_nonblocking(true)?;
        let process = Command::new(found(program, std::env::var_os("PATH").as_deref()))
            .args(arguments.command_line())
            .env_clear()
            // An interrupt from the terminal is for the scan, which ends its processes itself.
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::from(memory.duplicate()?))
            .stderr(OwnedFd::from(their_messages))
            .spawn()?;
        Ok((Self { process, messages }, socket))
    }

    /// Identifier of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a process that is about to end by itself, and kills it after `grace`.
    pub(crate) fn exit_status(&mut self, grace: Duration) -> String {
        let id = Pid::from_child(&self.process);
        if let Ok(handle) = rustix::process::pidfd_open(id, PidfdFlags::empty()) {
            let mut events = [PollFd::new(&handle, PollFlags::IN)];
            let _ = rustix::event::poll(&mut events, Timespec::try_from(grace).ok().as_ref());
        }
        let _ = self.process.kill();
        self.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// First bytes that the process wrote to its standard error, without waiting for more.
    pub(crate) fn message(&mut self) -> String {
        let mut bytes = vec![0; MAX_MESSAGE_BYTES];
        let count = self.messages.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).trim().to_owned()
    }

    /// Kills the process and waits for its end; does nothing where it ended before.
    pub(crate) fn stop(&mut self) {
        if self.process.kill().is_ok() {
            let _ = self.process.wait();
        }
    }
}

/// Path of a program that is given by its name alone: the first of that name in the folders of `path`. The process has no
/// environment, so that the system would look in its default folders.
fn found(program: &Path, path: Option<&OsStr>) -> PathBuf {
    let is_name = program.components().count() == 1 && program.file_name() == Some(program.as_os_str());
    let folders = path.filter(|_| is_name).map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    let candidates = folders.into_iter().flatten().map(|folder| folder.join(program));
    let mut programs =
        candidates.filter(|path| rustix::fs::access(path, Access::EXEC_OK).is_ok() && path.is_file());
    programs.next().unwrap_or_else(|| program.to_owned())
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_found_in_the_path_of_the_scan() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["folder", "text", "program", "later"];
        let [folder, text, program, later] = names.map(|name| dir.path().join(name));
        fs::create_dir_all(folder.join("module")).unwrap();
        for (place, mode) in [(&text, 0o644), (&program, 0o755), (&later, 0o755)] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("module"), "").unwrap();
            fs::set_permissions(place.join("module"), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&folder, &text, &program, &later]).unwrap();
        assert_eq!(found(Path::new("module"), Some(&path)), program.join("module"));
        for given in ["other", "./module", "/x/module"] {
            assert_eq!(found(Path::new(given), Some(&path)), Path::new(given));
        }
        assert_eq!(found(Path::new("module"), None), Path::new("module"));
    }
}
