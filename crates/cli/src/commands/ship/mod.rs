//! `holdfast ship`: send growing files to an archive, and say how much data may be produced.

mod planned;
mod rings;
mod running;
mod state;

use crate::out::Out;
use holdfast_base::Rate;
use holdfast_base::failure::Result;
use holdfast_client::times;
use holdfast_ship::planning::{BitRate, ByteSize};
use std::path::PathBuf;
use std::time::Duration;

/// Send growing files to an archive, verified block by block
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The archive is a `holdfast serve`, or a tus server. Each file is sent while it grows; when its writer closes\n\
    it, the archive's BLAKE3 is compared with the file's. Outages and crashes of either side cost the blocks\n\
    that were on their way. A configuration file names the archive, folders, rings, rates by the hour and the\n\
    alarm (docs/ship.md). `holdfast ship status STATE` exits with 1 while the local disk fills before the\n\
    archive catches up.\n\n\
    Examples:\n  holdfast ship /data/runs --to https://archive:7370/array --token-file ship.token\n  \
    holdfast ship /data/runs --to http://localhost:7370/array --once\n  \
    holdfast ship ship.toml\n  \
    holdfast ship status ship.toml --json\n  \
    holdfast ship report ship.toml -o report.html\n  \
    holdfast ship plan --rate 350kb/s --general 256kb/s --hours 8"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    about: Option<About>,
    #[command(flatten)]
    what: Option<Shipping>,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.about, Some(About::Plan { .. }))
    }
}

/// Files to send, and where to.
#[derive(clap::Args, Clone, Debug)]
struct Shipping {
    /// Configuration file, or folder to send
    #[arg(value_name = "CONFIG|FOLDER")]
    source: PathBuf,
    /// Archive and project of a folder
    #[arg(long, value_name = "URL/PROJECT")]
    to: Option<String>,
    /// Path in the project, before the paths of the folder
    #[arg(long, value_name = "PATH", requires = "to")]
    into: Option<String>,
    /// End when the archive has every file that is there
    #[arg(long)]
    once: bool,
    /// End of a file's growth: close, quiet or marker
    #[arg(long, value_name = "HOW", requires = "to")]
    end: Option<String>,
    /// Time without change after which a file counts as complete [default: 30s]
    #[arg(long, value_name = "SPAN", requires = "to", value_parser = times::span)]
    quiet: Option<Duration>,
    /// Marker of complete files for --end marker: a suffix such as .done, or a file name
    #[arg(long, value_name = "NAME", requires = "to")]
    marker: Option<String>,
    /// Limit on the bytes sent per second
    #[arg(long, value_name = "RATE", requires = "to")]
    rate: Option<Rate>,
    /// Connections at the same time, at most [default: 32]
    #[arg(long, value_name = "N", requires = "to")]
    connections: Option<usize>,
    /// File with the token (default: that of the environment)
    #[arg(long, value_name = "FILE", requires = "to")]
    token_file: Option<PathBuf>,
    /// SHA-256 of the only certificate to trust, as the server prints it
    #[arg(long, value_name = "SHA256", requires = "to")]
    fingerprint: Option<String>,
    /// Folder of the shipper's state [default: a folder of the user for this source and archive]
    #[arg(long, value_name = "FOLDER", requires = "to")]
    state: Option<PathBuf>,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum About {
    /// Show backlog, rates, outage and alarm of a shipper
    #[command(after_help = "Exits with 1 while the local disk fills before the archive catches up.\n\n\
        Examples:\n  holdfast ship status ship.toml\n  holdfast ship status ship.toml --prometheus")]
    Status {
        #[command(flatten)]
        state: State,
        /// Print the status as Prometheus metrics
        #[arg(long)]
        prometheus: bool,
    },
    /// Write a page with the rates, backlog, outages and files of a shipper
    #[command(
        after_help = "The page needs no network. Its figures are those of R. Plante, A Performance Study of the BIMA\n\
        Archiving System (1996).\n\nExample:\n  holdfast ship report ship.toml -o report.html --days 14"
    )]
    Report {
        #[command(flatten)]
        state: State,
        /// File of the page
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Days that the report is about
        #[arg(long, value_name = "N", default_value_t = 14)]
        days: u16,
        /// Name of the instrument [default: the project]
        #[arg(long, value_name = "NAME")]
        instrument: Option<String>,
        /// General limit that is in force
        #[arg(long, value_name = "RATE")]
        general: Option<BitRate>,
    },
    /// Compute how much data may be produced: limits, disk space for an outage, a schedule
    #[command(
        after_help = "R is the archive's long-term rate, g the general limit. A project of t hours may produce at most\n\
        (24 R - 24 g) / t + g, so that it is archived within a day (Plante 1996, Limiting the Data Production\n\
        Rate). b is a bit, B a byte. A schedule is a TOML file with [[project]] name, from, hours, rate.\n\n\
        Examples:\n  holdfast ship plan --rate 350kb/s --general 256kb/s --hours 8\n  \
        holdfast ship plan --state ship.toml --schedule tomorrow.toml"
    )]
    Plan {
        /// Rate of the archive [default: measured by the shipper of --state]
        #[arg(long, value_name = "RATE", required_unless_present = "state")]
        rate: Option<BitRate>,
        /// Configuration or state folder of a shipper, whose measured rate is taken
        #[arg(long, value_name = "CONFIG|FOLDER", conflicts_with = "rate")]
        state: Option<PathBuf>,
        /// General limit [default: 256/350 of the rate]
        #[arg(long, value_name = "RATE")]
        general: Option<BitRate>,
        /// Hours of a project for the maximum limit
        #[arg(long, value_name = "T", default_value_t = 8.0)]
        hours: f64,
        /// Hours of an outage that the disk must outlast
        #[arg(long, value_name = "H", default_value_t = 48.0)]
        outage: f64,
        /// Space of the disk for data that is not archived
        #[arg(long, value_name = "SIZE")]
        disk: Option<ByteSize>,
        /// Schedule of a day
        #[arg(long, value_name = "FILE")]
        schedule: Option<PathBuf>,
    },
}

/// State of a shipper.
#[derive(clap::Args, Clone, Debug)]
struct State {
    /// Configuration file or state folder of the shipper
    #[arg(value_name = "CONFIG|FOLDER")]
    source: PathBuf,
}

/// Runs the command `holdfast ship`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match (&args.about, &args.what) {
        (Some(About::Status { state, prometheus }), _) => state::status(&state.source, *prometheus, out),
        (Some(About::Report { state, output, days, instrument, general }), _) => {
            state::report(&state.source, output, *days, instrument.as_deref(), *general, out)
        }
        (Some(About::Plan { rate, state, general, hours, outage, disk, schedule }), _) => {
            let question = planned::Question {
                rate: *rate,
                state: state.as_deref(),
                general: *general,
                hours: *hours,
                outage: *outage,
                disk: *disk,
                schedule: schedule.as_deref(),
            };
            planned::plan(&question, out)
        }
        (None, Some(shipping)) => running::run(shipping, out),
        // clap asks for one of them.
        (None, None) => Err(holdfast_base::failure::Failure::usage("nothing to send was named")),
    }
}
