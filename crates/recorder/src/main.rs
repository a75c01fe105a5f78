//! Program `holdfast-recorder`; all of its code is in the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_recorder::run::main()
}
