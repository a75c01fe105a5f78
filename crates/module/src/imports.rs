//! Functions that the host offers to modules, `hf.emit` and `hf.log`, and the bounds of their memory.

use crate::collector::Collector;
use holdfast_module_wire::{Failure, Limits};
use wasmtime::{Caller, Engine, Error, Extern, Linker, Memory, Module, ResourceLimiter, ValType};

/// Name of the module that offers all imports.
const HOST: &str = "hf";
/// Bytes of memory that one element of a table costs.
const ELEMENT_BYTES: usize = 16;
/// Number of tables of a module: compilers make one.
const MAX_TABLES: usize = 16;

/// State of a module in the host.
#[derive(Debug)]
pub(crate) struct State {
    /// Results of the current request.
    pub(crate) collector: Collector,
    /// Memory of the module, once it is instantiated.
    pub(crate) memory: Option<Memory>,
    most: u64,
    memory_bytes: usize,
    table_bytes: usize,
}

impl State {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            collector: Collector::new(limits),
            memory: None,
            most: limits.memory,
            memory_bytes: 0,
            table_bytes: 0,
        }
    }

    /// Accounts memory and tables together against one limit; growth above it ends the call.
    fn account(&mut self, memory_bytes: usize, table_bytes: usize) -> wasmtime::Result<bool> {
        if memory_bytes.saturating_add(table_bytes) as u64 > self.most {
            return Err(Error::new(Failure::Memory(self.most)));
        }
        (self.memory_bytes, self.table_bytes) = (memory_bytes, table_bytes);
        Ok(true)
    }
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.account(desired, self.table_bytes)
    }

    fn table_growing(&mut self, now: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(now).saturating_mul(ELEMENT_BYTES);
        self.account(self.memory_bytes, self.table_bytes.saturating_add(more))
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        1
    }
}

/// Linker that knows the imports of the interface and nothing else.
pub(crate) fn linker(engine: &Engine, module: &Module) -> Result<Linker<State>, Failure> {
    let mut linker = Linker::new(engine);
    let made = linker.func_wrap(HOST, "emit", emit).and_then(|linker| linker.func_wrap(HOST, "log", log));
    made.map(|_| ()).map_err(|error| Failure::System(format!("{error:#}")))?;
    for import in module.imports() {
        let (from, name) = (import.module(), import.name());
        let shape: &[ValType] = match name {
            "emit" if from == HOST => &[ValType::I64, ValType::I32, ValType::I32],
            "log" if from == HOST => &[ValType::I32, ValType::I32],
            _ => return Err(Failure::WrongImport(format!("{from}.{name}, which is not offered"))),
        };
        let right = import.ty().func().is_some_and(|function| {
            let parameters = function.params().zip(shape).all(|(one, other)| ValType::eq(&one, other));
            parameters && function.params().len() == shape.len() && function.results().len() == 0
        });
        if !right {
            let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
            let shape = shape.join(", ");
            return Err(Failure::WrongImport(format!("{from}.{name}, which is a function ({shape})")));
        }
    }
    Ok(linker)
}

fn emit(mut caller: Caller<'_, State>, offset: i64, pointer: i32, length: i32) -> wasmtime::Result<()> {
    with_range(&mut caller, "emit", pointer, length.cast_unsigned(), |collector, bytes| {
        collector.emit(offset, bytes)
    })
}

fn log(mut caller: Caller<'_, State>, pointer: i32, length: i32) -> wasmtime::Result<()> {
    with_range(&mut caller, "log", pointer, length.cast_unsigned(), |collector, bytes| {
        collector.log(bytes);
        Ok(())
    })
}

/// Passes a range of the module's memory to `take`, once it is checked.
fn with_range(
    caller: &mut Caller<'_, State>,
    name: &str,
    pointer: i32,
    length: u32,
    take: impl FnOnce(&mut Collector, &[u8]) -> Result<(), Failure>,
) -> wasmtime::Result<()> {
    // Before the end of the start function, the memory is known by its export alone.
    let memory = caller.data().memory.or_else(|| caller.get_export("memory").and_then(Extern::into_memory));
    let Some(memory) = memory else {
        return Err(Error::new(Failure::MissingExport("memory".to_owned())));
    };
    let (bytes, state) = memory.data_and_store_mut(caller);
    let start = pointer.cast_unsigned() as usize;
    let range = start.checked_add(length as usize).and_then(|end| bytes.get(start..end));
    let taken = match range {
        Some(range) => take(&mut state.collector, range),
        None => Err(outside(&format!("it called {name} with"), start, length, bytes.len())),
    };
    taken.map_err(Error::new)
}

/// Failure of a range that is not inside of the module's memory.
pub(crate) fn outside(subject: &str, start: usize, length: u32, memory: usize) -> Failure {
    Failure::Garbage(format!("{subject} {length} bytes at {start}, outside of its memory of {memory} bytes"))
}
