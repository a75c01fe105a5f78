//! Benches of Holdfast beside the tools that people would use instead, each a module of [`cases`], and the parts that
//! they share: taking turns, tables and verdicts, folders, other programs, a recorder in miniature, virtual links.
//! The programs in `benches/` only run a case. Measured figures are in `docs/performance.md`.
#![forbid(unsafe_code)]

pub mod beside;
pub mod cases;
pub mod compare;
pub mod cores;
pub mod disturbers;
pub mod emulated;
pub mod fio;
pub mod greedy;
pub mod group;
pub mod link;
pub mod miniature;
pub mod place;
pub mod plot;
pub mod program;
pub mod recorders;
pub mod reduct;
pub mod report;
pub mod session;
pub mod standing;
pub mod stenographer;
pub mod tool;
mod trouble;
pub mod undo;
pub mod watched;

pub use trouble::Trouble;

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
pub fn run(bench: impl FnOnce(Scale) -> Result<(), Trouble>) -> std::process::ExitCode {
    undo::prepare();
    match bench(Scale::from_arguments()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(Trouble::Skipped { why }) => {
            println!("skipped: {why}");
            std::process::ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("{trouble}");
            std::process::ExitCode::FAILURE
        }
    }
}
