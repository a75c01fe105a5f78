//! `cargo xtask CHORE`. What a chore does is in the library; here are only the arguments and the exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("tidy") {
        eprintln!("usage: cargo xtask tidy");
        return ExitCode::from(2);
    }
    match xtask::tidy(&xtask::root()) {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: nothing found");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in findings {
                eprintln!("{finding}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}
