//! The program behind `cargo xtask CHORE`: arguments and exit codes. The chores themselves are in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use xtask::{lower, root, tidy};

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(&root()).map(|verdict| {
            verdict.notes.iter().for_each(|note| println!("{note}"));
            verdict.findings.iter().for_each(|finding| eprintln!("{finding}"));
            verdict.findings.is_empty()
        }),
        Some("ratchet") => lower(&root()).map(|()| true),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy     check the house rules\n       cargo xtask ratchet  lower the numbers in xtask/ratchet.toml"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
