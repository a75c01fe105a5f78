//! Questions for passwords at the terminal, which does not show what is typed.

use holdfast_base::failure::{Failure, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};

/// Terminal of the process, whatever its standard input and output are.
const TERMINAL: &str = "/dev/tty";

/// Terminal without echo. Dropping it brings the echo back.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        // A signal of the keyboard would end the program and leave the terminal without echo.
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Asks for a password.
pub(crate) fn ask_password(question: &str) -> Result<String> {
    let failed = |error: io::Error| {
        Failure::usage(format_args!(
            "cannot ask for the password: {}",
            holdfast_base::failure::reason(&error)
        ))
        .advice("call this at a terminal, or give --password-file FILE")
    };
    let terminal = File::options().read(true).write(true).open(TERMINAL).map_err(failed)?;
    let text = read(&terminal, question).map_err(failed)?;
    // Without signals Ctrl-C is a character.
    if text.is_empty() || text.contains('\u{3}') {
        return Err(Failure::usage("no password was given"));
    }
    Ok(text)
}

fn read(mut terminal: &File, question: &str) -> io::Result<String> {
    let mut text = String::new();
    let read = {
        // Before the question: what is typed behind it must not be dropped with what was typed earlier.
        let _silent = Silent::new(terminal)?;
        write!(terminal, "{question}: ")?;
        BufReader::new(terminal).read_line(&mut text)
    };
    writeln!(terminal)?;
    read?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Asks twice for a new password.
pub(crate) fn ask_new_password() -> Result<String> {
    let new = ask_password("new password")?;
    if ask_password("new password again")? == new {
        return Ok(new);
    }
    Err(Failure::usage("the two passwords differ").advice("type them again"))
}
