//! Benches of Holdfast beside the tools that people would use instead, each a module of [`cases`], and the parts that
//! they share: taking turns, tables and verdicts, folders, other programs, a recorder in miniature, virtual links.
//! The programs in `benches/` only run a case. Measured figures are in `docs/performance.md`.
#![forbid(unsafe_code)]

pub mod access;
pub mod cases;
pub mod cleanup;
pub mod comparison;
pub mod control_group;
pub mod cores;
pub mod counting_disk;
pub mod disturbers;
pub mod emulated;
mod error;
pub mod fio;
pub mod link;
pub mod metadata;
pub mod miniature;
pub mod packet_recorders;
pub mod plot;
pub mod program;
pub mod reader_load;
pub mod reductstore;
pub mod report;
pub mod rounds;
pub mod shipping;
pub mod sites;
pub mod sql_session;
pub mod standing_hold;
pub mod stenographer;
pub mod tools;
pub mod work_folder;

pub use error::BenchError;

/// How much a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A tiny amount, to see that all still works: with every test run.
    Tiny,
    /// What is measured: `cargo bench`.
    Real,
}

impl Scale {
    /// As cargo says on the command line.
    pub fn from_arguments() -> Self {
        if std::env::args().any(|argument| argument == "--bench") { Self::Real } else { Self::Tiny }
    }

    /// One or the other.
    pub fn pick<T>(self, tiny: T, real: T) -> T {
        match self {
            Self::Tiny => tiny,
            Self::Real => real,
        }
    }
}

/// Runs a bench: says what went wrong, or why it was left out.
pub fn run(bench: impl FnOnce(Scale) -> Result<(), BenchError>) -> std::process::ExitCode {
    cleanup::prepare();
    match bench(Scale::from_arguments()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(BenchError::Skipped { reason }) => {
            println!("skipped: {reason}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
