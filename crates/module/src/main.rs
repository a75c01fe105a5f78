//! Process that runs one WebAssembly module of a scan, without access to anything but its memory.
//!
//! A scan starts it with a socket as standard input and a memory file as standard output; `--describe` prints
//! the properties of a module for people and scripts. The interface of modules is in `sdk/ABI.md`.
#![forbid(unsafe_code)]

mod budget;
mod collector;
mod confinement;
mod describe;
mod engine;
mod exports;
mod guest;
mod imports;
mod serve;

use holdfast_module_wire::HostArguments;
use std::process::ExitCode;

const USAGE: &str = "usage: holdfast-module --describe FILE.wasm [-- ARGUMENT…]
       holdfast-module [LIMIT…] FILE.wasm [-- ARGUMENT…]   (started by holdfast scan)
limits: --call-time-ms N  --load-time-ms N  --fuel N  --fuel-per-byte N  --memory BYTES
        --block-bytes N   --outputs N       --output-bytes N";

fn main() -> ExitCode {
    let arguments = match HostArguments::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("holdfast-module: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if arguments.describe {
        return describe::print(&arguments);
    }
    match serve::serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-module: {error}");
            ExitCode::FAILURE
        }
    }
}
