//! Exports of a module: the functions of the interface, typed, and its memory.

use crate::imports::State;
use holdfast_module_wire::Failure;
use wasmtime::{Extern, Instance, Memory, Store, TypedFunc, WasmParams, WasmResults};

/// Exports of one instance.
pub(crate) struct Exports {
    pub(crate) memory: Memory,
    pub(crate) abi: TypedFunc<(), i32>,
    pub(crate) buffer: TypedFunc<i32, i32>,
    pub(crate) arguments: Option<TypedFunc<(i32, i32), i32>>,
    pub(crate) overlap: Option<TypedFunc<(), i32>>,
    pub(crate) start: TypedFunc<(i32, i32, i64), ()>,
    pub(crate) block: TypedFunc<(i32, i32, i64), i32>,
    pub(crate) end: TypedFunc<(), i32>,
    pub(crate) finish: Option<TypedFunc<(), ()>>,
}

impl Exports {
    /// Looks up all exports and checks their types.
    pub(crate) fn of(instance: &Instance, store: &mut Store<State>) -> Result<Self, Failure> {
        let memory = match instance.get_export(&mut *store, "memory") {
            Some(Extern::Memory(memory)) => memory,
            Some(_) => return Err(Failure::WrongExport("memory, which is not a memory".to_owned())),
            None => return Err(Failure::MissingExport("memory".to_owned())),
        };
        Ok(Self {
            memory,
            abi: required(instance, store, "hf_abi", "() -> i32")?,
            buffer: required(instance, store, "hf_buffer", "(i32) -> i32")?,
            arguments: optional(instance, store, "hf_args", "(i32, i32) -> i32")?,
            overlap: optional(instance, store, "hf_overlap", "() -> i32")?,
            start: required(instance, store, "hf_start", "(i32, i32, i64)")?,
            block: required(instance, store, "hf_block", "(i32, i32, i64) -> i32")?,
            end: required(instance, store, "hf_end", "() -> i32")?,
            finish: optional(instance, store, "hf_finish", "()")?,
        })
    }
}

fn required<P: WasmParams, R: WasmResults>(
    instance: &Instance,
    store: &mut Store<State>,
    name: &str,
    shape: &str,
) -> Result<TypedFunc<P, R>, Failure> {
    optional(instance, store, name, shape)?.ok_or_else(|| Failure::MissingExport(name.to_owned()))
}

fn optional<P: WasmParams, R: WasmResults>(
    instance: &Instance,
    store: &mut Store<State>,
    name: &str,
    shape: &str,
) -> Result<Option<TypedFunc<P, R>>, Failure> {
    let wrong = || Failure::WrongExport(format!("{name}, which is not a function {shape}"));
    let Some(export) = instance.get_export(&mut *store, name) else { return Ok(None) };
    let function = export.into_func().ok_or_else(wrong)?;
    function.typed(&*store).map(Some).map_err(|_| wrong())
}
