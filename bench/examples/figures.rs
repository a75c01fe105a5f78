//! `make figures`: draws the figures of the comparison from what `make beside` has measured.

use holdfast_bench::beside::figures::{COMMAND, write};
use holdfast_bench::beside::outcome::Store;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures"), PathBuf::from);
    let store = Store::usual();
    match write(&store, &folder) {
        Ok(missing) if missing.is_empty() => println!("all figures are in {}", folder.display()),
        Ok(missing) => {
            println!(
                "no data in {} for {}: run {COMMAND} first",
                store.folder().display(),
                missing.join(", ")
            );
        }
        Err(trouble) => {
            eprintln!("{trouble}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
