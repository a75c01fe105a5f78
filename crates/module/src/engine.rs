//! Engine, and modules compiled by it.

use holdfast_module_wire::{Failure, HostArguments};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wasmtime::{Config, Engine, Module, OptLevel};

/// Longest file of a module: the time to compile one grows with it.
const MAX_WASM_BYTES: u64 = 32 << 20;
/// First bytes of every WebAssembly file.
const MAGIC: &[u8] = b"\0asm";
/// Stack of a module: the default of the engine, far below the stack of the process.
const STACK_BYTES: usize = 512 << 10;

/// Makes an engine that meters as the arguments demand.
pub(crate) fn engine(arguments: &HostArguments) -> Result<Engine, Failure> {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(STACK_BYTES)
        .epoch_interruption(true)
        .consume_fuel(arguments.limits.fuel.is_some())
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        // Images of memories are files, which a confined process cannot open; one instance does not gain by them.
        .memory_init_cow(false)
        .wasm_backtrace_max_frames(None);
    Engine::new(&config).map_err(|error| Failure::System(format!("{error:#}")))
}

/// Reads and compiles the file of a module.
pub(crate) fn load(engine: &Engine, wasm: &Path) -> Result<Module, Failure> {
    let bytes = read(wasm)?;
    if !bytes.starts_with(MAGIC) {
        return Err(Failure::NotWasm("its first bytes are not \"\\0asm\"".to_owned()));
    }
    Module::new(engine, &bytes).map_err(|error| Failure::NotWasm(format!("{error:#}")))
}

fn read(wasm: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| Failure::Unreadable(error.to_string());
    let file = File::open(wasm).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Failure::Unreadable("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_WASM_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_WASM_BYTES {
        return Err(Failure::Unreadable(format!("it is longer than {} MiB", MAX_WASM_BYTES >> 20)));
    }
    Ok(bytes)
}
