//! `holdfast sql` on a terminal: words are completed, and what was asked is known the next time.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/filled.rs"]
mod filled;

use common::{ends, folder, holdfast};
use filled::Filler;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Child;

/// No wait takes longer than this, unless something is wrong.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A session on a terminal of its own.
struct Terminal {
    keys: File,
    shown: String,
    child: Child,
}

impl Terminal {
    fn start(dir: &Path) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let mut options = File::options();
        let there =
            options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(name).unwrap();
        tcsetwinsize(&there, Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = holdfast(dir);
        command.args(["sql", "r.hf"]).env("TERM", "xterm").env_remove("XDG_STATE_HOME");
        command.stdin(there.try_clone().unwrap()).stdout(there.try_clone().unwrap()).stderr(there);
        let child = command.spawn().unwrap();
        Self { keys: keys.into(), shown: String::new(), child }
    }

    fn press(&mut self, keys: &str) {
        self.shown.clear();
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What is shown next; nothing once the session has ended.
    fn read(&mut self) -> Option<()> {
        let mut some = [0; 4096];
        let ready = poll(&mut [PollFd::new(&self.keys, PollFlags::IN)], Some(&PATIENCE)).unwrap();
        assert!(ready > 0, "nothing more is shown than {:?}", self.shown);
        let read = self.keys.read(&mut some).ok().filter(|read| *read > 0)?;
        self.shown.push_str(&String::from_utf8_lossy(&some[..read]));
        Some(())
    }

    /// Waits until that is shown, of what was not looked at yet.
    fn shows(&mut self, wanted: &str) {
        loop {
            if let Some((_, rest)) = self.shown.split_once(wanted) {
                self.shown = rest.to_owned();
                return;
            }
            assert!(self.read().is_some(), "it has ended, and {wanted:?} is not shown: {:?}", self.shown);
        }
    }

    fn leave(mut self, keys: &str) {
        self.press(keys);
        while self.read().is_some() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_session_completes_words_and_keeps_what_was_asked() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(50);
    filler.close();
    let mut session = Terminal::start(dir);
    session.shows("r> ");
    // A stream, and a column of the table `streams`.
    session.press("select 40 + count(*) from et\t;\r");
    session.shows("90");
    session.shows("r> ");
    session.press("select received_by\t + 1 from streams where nam = 3;\r");
    session.shows("there is no column `nam`");
    session.shows("r> ");
    session.leave("\\q\r");
    let mut session = Terminal::start(dir);
    session.shows("r> ");
    // The last but two.
    session.press("\x1b[A\x1b[A\x1b[A\r");
    session.shows("90");
    session.shows("r> ");
    session.leave("\x04");
}
