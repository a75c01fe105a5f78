//! Shipper of one folder without a file of settings, for trying out and for tests that kill a process.
//!
//! `ship URL PROJECT STATE FOLDER [--token FILE] [--once]` prints one line for every happening. With `--once` it ends when the
//! archive has every file; else it ships until it is killed.

use holdfast_ship::settings::{FolderSettings, Settings};
use holdfast_ship::shipper::{Notice, ShipError, Until, ship};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Quiet time after which a file that nobody closes counts as finished.
const QUIET: Duration = Duration::from_secs(1);

fn parse() -> Option<(Settings, Until)> {
    let mut arguments = std::env::args().skip(1);
    let (url, project) = (arguments.next()?, arguments.next()?);
    let mut settings = Settings::new(&url, &project, arguments.next()?);
    let mut folder = FolderSettings::new(arguments.next()?);
    folder.quiet = QUIET;
    settings.folders.push(folder);
    let mut until = Until::Stopped;
    while let Some(flag) = arguments.next() {
        match flag.as_str() {
            "--token" => settings.archive.token_file = Some(arguments.next()?.into()),
            "--once" => until = Until::Shipped,
            _ => return None,
        }
    }
    Some((settings, until))
}

fn run(settings: Settings, until: Until) -> Result<(), ShipError> {
    let mut tell = |notice: &Notice| {
        // A reader that is gone is no reason to stop.
        let _ = writeln!(std::io::stdout(), "{notice:?}");
    };
    let status = ship(settings, until, &|| false, &mut tell)?;
    let _ = writeln!(std::io::stdout(), "{:?}", status.totals);
    Ok(())
}

fn main() -> ExitCode {
    let Some((settings, until)) = parse() else {
        eprintln!(
            "cannot ship: the arguments are wrong; call ship URL PROJECT STATE FOLDER [--token FILE] [--once]"
        );
        return ExitCode::FAILURE;
    };
    match run(settings, until) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
