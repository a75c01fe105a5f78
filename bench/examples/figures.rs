//! `make figures`: draws the figures of the comparison from what `make beside` has measured; where it has not run, from what
//! was measured for the documentation.

use holdfast_bench::comparison::figures::{COMMAND, write};
use holdfast_bench::comparison::outcome::ResultStore;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures"), PathBuf::from);
    let own = ResultStore::usual();
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures/measured");
    let store = if own.folder().is_dir() { own } else { ResultStore::at(&published) };
    match write(&store, &folder) {
        Ok(missing) if missing.is_empty() => {
            println!("all figures are in {}, drawn from {}", folder.display(), store.folder().display());
        }
        Ok(missing) => {
            eprintln!(
                "no data in {} for {}: run {COMMAND} first",
                store.folder().display(),
                missing.join(", ")
            );
            return ExitCode::FAILURE;
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
