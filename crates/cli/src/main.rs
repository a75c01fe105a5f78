//! The program `holdfast`: reads the command line, runs one command, says how it went. What the commands do is in
//! `commands`, one file each.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod distant;
mod folders;
mod interruption;
mod item_name;
mod out;
mod progress;
mod prometheus;
mod scanning;
mod serving;
mod site;
mod watch;

use clap::Parser;
use clap::error::ErrorKind;
use commands::Effect;
use holdfast_base::failure::Failure;
use holdfast_client::json::ErrorMessage;
use holdfast_remote::LOSSY;
use out::{Out, say};
use std::panic;
use std::process::ExitCode;

fn main() -> ExitCode {
    panic::set_hook(Box::new(|bug| {
        let place =
            bug.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
        let what = bug.payload_as_str().unwrap_or("no more is known");
        say(&format!("this is a bug: {what}{place}: please report it with the command that led to it"));
    }));
    panic::catch_unwind(command).unwrap_or(ExitCode::FAILURE)
}

fn command() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    holdfast_export::handle_signals(say);
    let mut out = Out::stdout(cli.effect(), cli.json);
    let done = cli.run(&mut out);
    // Output before a failure counts, but the failure itself goes before that of the output.
    let ended = out.end();
    match done.and(ended) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_quiet() {
                tell(&failure, cli.wants_json() && !cli.stdout_is_taken());
            }
            // A server tells its client whether the result is complete.
            let is_search = std::env::var_os(serving::SEARCH).is_some();
            ExitCode::from(if is_search && failure.is_lossy() { LOSSY } else { failure.number() })
        }
    }
}

/// Help and version are asked for; all else is a wrong use.
fn not_understood(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Whoever closes the pipe early has seen enough.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let json = std::env::args_os().any(|arg| arg == "--json");
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        tell(&Failure::usage("no command was given").advice("`holdfast --help` lists them"), json);
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    tell(&Failure::usage(text), json);
    ExitCode::from(2)
}

fn tell(failure: &Failure, json: bool) {
    say(&failure.to_string());
    if json {
        let shown = ErrorMessage { error: failure.to_string(), exit: failure.number() };
        let _ = Out::stdout(Effect::Prints, true).last(&shown);
    }
}
