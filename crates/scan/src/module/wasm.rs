//! Module `wasm`: a user's WebAssembly module in processes of the program `holdfast-module`, as many as there are workers.

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use holdfast_base::failure::{Failure, Result};
use holdfast_module_wire::{Limits, ModuleProcess, Results};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a block beside those that the module repeats.
const BLOCK: u64 = 4 << 20;

/// Module of a user, and its processes.
#[derive(Debug)]
pub struct Wasm {
    program: PathBuf,
    file: PathBuf,
    arguments: Vec<String>,
    limits: Limits,
    /// Bytes that a block repeats; `None`: items are taken whole, in order.
    overlap: Option<u32>,
    idle: Mutex<Vec<ModuleProcess>>,
}

/// Result of a user's module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WasmOutput {
    /// Result of an item, with its offset where it has one.
    Result(ItemId, Option<u64>, Vec<u8>),
    /// Line for the log.
    Log(ItemId, String),
}

impl Wasm {
    /// Starts a first process of `program` with the module in the file `wasm`.
    pub fn new(program: &Path, wasm: &Path, arguments: Vec<String>, limits: Limits) -> Result<Self> {
        let mut module = Self {
            program: program.to_owned(),
            file: wasm.to_owned(),
            arguments,
            limits,
            overlap: None,
            idle: Mutex::default(),
        };
        let failed = |error: ModuleError| Failure::failed(error).at_path(wasm);
        let process = module.started().map_err(failed)?;
        module.overlap = process.overlap();
        if let Some(overlap) = module.overlap {
            // Only now it is known how long a block may be.
            module.limits.block_bytes = BLOCK + u64::from(overlap).next_multiple_of(4096);
        } else {
            module.idle().push(process);
        }
        Ok(module)
    }

    fn started(&self) -> Result<ModuleProcess, ModuleError> {
        let limits = self.limits.clone();
        ModuleProcess::start(&self.program, &self.file, &self.arguments, limits)
            .map_err(|error| ModuleError(error.to_string()))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ModuleProcess>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> Result<ModuleProcess, ModuleError> {
        let idle = self.idle().pop();
        idle.map_or_else(|| self.started(), Ok)
    }

    /// Takes a process back, unless it was ended.
    fn give(&self, process: ModuleProcess) {
        if !process.is_ended() {
            self.idle().push(process);
        }
    }

    /// Totals of all processes that are left at the end of a scan.
    pub fn finish(self) -> Result<Vec<Vec<u8>>> {
        let mut totals = Vec::new();
        for mut process in self.idle.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let results = process.finish().map_err(|error| Failure::failed(error).at_path(&self.file))?;
            totals.extend(results.outputs.into_iter().map(|output| output.bytes));
        }
        Ok(totals)
    }
}

fn told(item: &Item<'_>, results: Results, out: &mut Outputs<'_, WasmOutput>) {
    for line in results.log {
        out.push(WasmOutput::Log(item.id(), line));
    }
    for output in results.outputs {
        out.push(WasmOutput::Result(item.id(), output.offset, output.bytes));
    }
}

impl Module for Wasm {
    type Worker = ();
    type Partial = Option<Results>;
    type State = Option<ModuleProcess>;
    type Output = WasmOutput;

    fn division(&self) -> Division {
        match self.overlap {
            None => Division::Serial,
            Some(overlap) => Division::Blocks { before: overlap as usize, behind: 0 },
        }
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), block: &Block<'_>) -> Result<Option<Results>, ModuleError> {
        if self.overlap.is_none() {
            return Ok(None);
        }
        let mut process = self.process()?;
        let begun = process.item(&block.item.id().to_string(), None);
        let results = begun.and_then(|()| process.block(block.offset, block.bytes, true));
        self.give(process);
        results.map(Some).map_err(|error| ModuleError(error.to_string()))
    }

    fn start(&self, item: &Item<'_>) -> Result<Option<ModuleProcess>, ModuleError> {
        if self.overlap.is_some() {
            return Ok(None);
        }
        let mut process = self.process()?;
        process.item(&item.id().to_string(), None).map_err(|error| ModuleError(error.to_string()))?;
        Ok(Some(process))
    }

    fn fold(
        &self,
        state: &mut Option<ModuleProcess>,
        block: &Block<'_>,
        partial: Option<Results>,
        out: &mut Outputs<'_, WasmOutput>,
    ) -> Result<Flow, ModuleError> {
        let Some(process) = state else {
            let results = partial.unwrap_or_default();
            let enough = results.enough;
            told(&block.item, results, out);
            return Ok(if enough { Flow::Enough } else { Flow::Continue });
        };
        match process.block(block.offset, block.bytes, false) {
            Ok(results) => {
                let enough = results.enough;
                told(&block.item, results, out);
                Ok(if enough { Flow::Enough } else { Flow::Continue })
            }
            Err(error) => {
                state.take().into_iter().for_each(|process| self.give(process));
                Err(ModuleError(error.to_string()))
            }
        }
    }

    fn end(
        &self,
        item: &Item<'_>,
        state: Option<ModuleProcess>,
        out: &mut Outputs<'_, WasmOutput>,
    ) -> Result<(), ModuleError> {
        let Some(mut process) = state else { return Ok(()) };
        let ended = process.end();
        self.give(process);
        told(item, ended.map_err(|error| ModuleError(error.to_string()))?, out);
        Ok(())
    }
}
