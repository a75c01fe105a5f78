//! How the program complains: as all of Holdfast does, `NAME: what, where: what to do` on standard error, under the name
//! that it was called by. The texts are whoever's they are.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

const OWN: &str = "holdfast-recorder";

/// Says what went wrong.
pub(crate) fn complain(text: &str) {
    let called = std::env::args_os().next();
    let _ = writeln!(std::io::stderr(), "{}: {text}", name(called.as_deref()));
}

/// `holdfast record` runs this program under that name: its user knows no other.
fn name(called: Option<&OsStr>) -> &str {
    let file = called.and_then(|called| Path::new(called).file_name()?.to_str());
    file.and_then(|file| file.split(' ').next()).filter(|name| !name.is_empty()).unwrap_or(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_name_it_was_called_by() {
        for (called, shown) in [
            (Some("/usr/bin/holdfast-recorder"), "holdfast-recorder"),
            (Some("holdfast record"), "holdfast"),
            (Some(""), OWN),
            (None, OWN),
        ] {
            assert_eq!(name(called.map(OsStr::new)), shown);
        }
    }
}
