//! Commands of the control file. The request schedule carries them out.

use std::str::FromStr;
use std::time::Duration;

/// An order to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Work as the model says.
    Ok,
    /// Answer at once, without the model: to fill or to age a drive.
    Fast,
    /// Answer everything with an I/O error.
    Eio,
    /// Answer nothing until told otherwise.
    Hang,
    /// Be gone: all that is under way and all that comes fails.
    Vanish,
    /// Do nothing for so long.
    Stall(Duration),
    /// Begin the counts anew.
    Reset,
}

/// A text that is none of them.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a command: write ok, fast, eio, hang, vanish, reset, or stall and a time such as 3s or 500ms"
)]
pub(crate) struct NoCommand(String);

impl FromStr for Command {
    type Err = NoCommand;

    fn from_str(text: &str) -> Result<Self, NoCommand> {
        let wrong = || NoCommand(text.trim().chars().take(80).collect());
        let mut words = text.split_whitespace();
        let command = match words.next() {
            Some("ok") => Self::Ok,
            Some("fast") => Self::Fast,
            Some("eio") => Self::Eio,
            Some("hang") => Self::Hang,
            Some("vanish") => Self::Vanish,
            Some("reset") => Self::Reset,
            Some("stall") => Self::Stall(words.next().and_then(span).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        if words.next().is_some() { Err(wrong()) } else { Ok(command) }
    }
}

/// `3s`, `500ms` or `250us`, up to a day.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let span = match &text[digits..] {
        "s" => Duration::from_secs(number),
        "ms" => Duration::from_millis(number),
        "us" => Duration::from_micros(number),
        _ => return None,
    };
    (span <= Duration::from_hours(24)).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_words() {
        assert_eq!("hang\n".parse(), Ok(Command::Hang));
        assert_eq!(" stall  1500ms ".parse(), Ok(Command::Stall(Duration::from_millis(1500))));
        for text in ["", "stall", "stall 3", "stall 3h", "stall 99999999s", "ok ok", "stop", "stall ms"] {
            let said = text.parse::<Command>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{text}` is not a command: write ok")), "{said}");
        }
    }
}
