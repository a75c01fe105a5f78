//! `holdfast sql` on a terminal: words are completed, what was asked is known the next time, and a question can be cancelled.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use common::{ends, folder, holdfast, record};
use filled::Filler;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{self, File};
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

    /// What a terminal does for Ctrl-C that is no key at a prompt. This one is not the one that controls the session.
    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
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

/// With so many packets.
fn ring(dir: &Path, packets: u64) {
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.packets(packets);
    filler.close();
}

#[test]
fn a_session_completes_words_and_keeps_what_was_asked() {
    let folder = folder();
    let dir = folder.path();
    ring(dir, 50);
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

#[test]
fn functions_are_completed_and_streams_that_began_after_the_session() {
    let folder = folder();
    let dir = folder.path();
    ring(dir, 50);
    let mut session = Terminal::start(dir);
    session.shows("r> ");
    // Of 10:05, with the bracket.
    session.press("select date_tr\t'hour', time) + interval '7 hours' from eth0 limit 1;\r");
    session.shows("17:00:00");
    session.shows("r> ");
    fs::write(dir.join("input"), "a\nb\nc\n").unwrap();
    let line = "r.hf --source stdin --name zebra --frame lines";
    let said = record(dir, line, File::open(dir.join("input")).unwrap().into());
    assert_eq!(said.code, Some(0), "{}", said.err);
    // The question after the next one knows of it.
    session.press("select 40000 + 1;\r");
    session.shows("40001");
    session.shows("r> ");
    session.press("select 40000 + count(*) from ze\t;\r");
    session.shows("40003");
    session.shows("r> ");
    session.leave("\\q\r");
}

#[test]
fn a_question_that_is_at_work_is_cancelled_and_the_session_goes_on() {
    let folder = folder();
    let dir = folder.path();
    ring(dir, 10_000);
    let mut session = Terminal::start(dir);
    session.shows("r> ");
    // The first row comes at once, the second one never.
    let endless = "select count(*) from eth0 a cross join eth0 b cross join eth0 c;";
    // Where memory is short it is the first to go.
    let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", session.child.id())).unwrap();
    assert_eq!(score.trim(), "1000");
    session.press(&format!("select 40000 + 2 union all {endless}\r"));
    session.shows("40002");
    session.interrupt();
    session.shows("cancelled");
    session.shows("r> ");
    session.press("select 40000 + 3;\r");
    session.shows("40003");
    session.shows("r> ");
    // It is kept before the session ends, however that may be.
    let kept = fs::read_to_string(dir.join(".local/state/holdfast/history")).unwrap();
    assert!(kept.contains(endless) && kept.contains("40000 + 3;"), "{kept}");
    session.leave("\\q\r");
}
