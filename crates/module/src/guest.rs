//! Instance of a module: each request becomes calls of its exports, within a budget of time and instructions.

use crate::budget::Clock;
use crate::exports::Exports;
use crate::imports::{self, State, outside};
use holdfast_module_wire::{ABI_VERSION, Channel, Failure, HostArguments, Limits, Results, Step};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use wasmtime::{Engine, Error, Module, Store, Trap};

/// Block of an item in the shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) at: u64,
    pub(crate) length: u32,
    pub(crate) offset: u64,
}

/// Instance of a module with everything that its calls need.
pub(crate) struct Guest {
    store: Store<State>,
    exports: Exports,
    limits: Limits,
    clock: Clock,
    /// Time and instructions of the current request, for its failures.
    time: Duration,
    fuel: u64,
}

/// Failure and the call in which it happened.
pub(crate) type Failed = (Step, Failure);

impl Guest {
    /// Instantiates a module and runs its start function.
    pub(crate) fn new(
        engine: &Engine,
        module: &Module,
        limits: &Limits,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(engine, State::new(limits));
        store.limiter(|state| state);
        store.epoch_deadline_trap();
        store.set_epoch_deadline(clock.ticks(limits.load_time));
        let fuel = limits.fuel.map_or(0, |fuel| fuel.of_block(0));
        if limits.fuel.is_some() {
            store.set_fuel(fuel).map_err(|error| Failure::System(format!("{error:#}")))?;
        }
        let linker = imports::linker(engine, module)?;
        let instance = linker
            .instantiate(&mut store, module)
            .map_err(|error| failure(&error, limits.load_time, fuel))?;
        let exports = Exports::of(&instance, &mut store)?;
        store.data_mut().memory = Some(exports.memory);
        Ok(Self { store, exports, limits: limits.clone(), clock, time: limits.load_time, fuel })
    }

    /// Checks the version, passes the arguments and asks for the overlap.
    pub(crate) fn configure(&mut self, arguments: &HostArguments) -> Result<Option<u32>, Failure> {
        self.begin(self.limits.load_time, 0)?;
        let version = self.exports.abi.call(&mut self.store, ()).map_err(|error| self.failure(&error))?;
        if version != ABI_VERSION.cast_signed() {
            return Err(Failure::Abi(version));
        }
        let mut text = Vec::new();
        for argument in &arguments.arguments {
            text.extend_from_slice(argument.as_bytes());
            text.push(0);
        }
        match self.exports.arguments.clone() {
            Some(function) => {
                let (pointer, length) = self.place(&text)?;
                let code = function
                    .call(&mut self.store, (pointer, length))
                    .map_err(|error| self.failure(&error))?;
                if code != 0 {
                    return Err(Failure::Arguments(code));
                }
            }
            None if text.is_empty() => {}
            None => return Err(Failure::MissingExport("hf_args, but arguments are given".to_owned())),
        }
        let Some(function) = self.exports.overlap.clone() else { return Ok(None) };
        let overlap = function.call(&mut self.store, ()).map_err(|error| self.failure(&error))?;
        match u32::try_from(overlap) {
            Ok(overlap) if u64::from(overlap) < self.limits.block_bytes => Ok(Some(overlap)),
            Ok(overlap) => {
                let most = self.limits.block_bytes;
                Err(Failure::Garbage(format!("hf_overlap returned {overlap}, but blocks have {most} bytes")))
            }
            Err(_) => Ok(None),
        }
    }

    /// Begins an item: `hf_start`.
    pub(crate) fn start(&mut self, name: &str, size: Option<u64>) -> Result<(), Failed> {
        self.store.data_mut().collector.accept();
        let size = size.and_then(|size| i64::try_from(size).ok()).unwrap_or(-1);
        let started = self.begin(self.limits.call_time, 0).and_then(|()| {
            let (pointer, length) = self.place(name.as_bytes())?;
            let function = self.exports.start.clone();
            function.call(&mut self.store, (pointer, length, size)).map_err(|error| self.failure(&error))
        });
        started.map_err(|failure| (Step::Start, failure))
    }

    /// Passes a block on; returns whether the module has seen enough of the item.
    pub(crate) fn block(&mut self, memory: &File, block: Block) -> Result<bool, Failed> {
        let passed = self.begin(self.limits.call_time, block.length.into()).and_then(|()| {
            let pointer = self.room(block.length)?;
            let bytes = self.exports.memory.data_mut(&mut self.store);
            let start = pointer.cast_unsigned() as usize;
            let into = bytes.get_mut(start..start.saturating_add(block.length as usize)).unwrap_or_default();
            let read = memory.read_exact_at(into, block.at);
            read.map_err(|error| Failure::Request(format!("its block cannot be read: {error}")))?;
            let function = self.exports.block.clone();
            let call = (pointer, block.length.cast_signed(), block.offset.cast_signed());
            let code = function.call(&mut self.store, call).map_err(|error| self.failure(&error))?;
            match code {
                0 => Ok(false),
                1 => Ok(true),
                ..0 => Err(Failure::Code(code)),
                2.. => Err(Failure::Garbage(format!("hf_block returned {code}"))),
            }
        });
        passed.map_err(|failure| (Step::Block, failure))
    }

    /// Ends an item: `hf_end`.
    pub(crate) fn end(&mut self) -> Result<(), Failed> {
        let ended = self.begin(self.limits.call_time, 0).and_then(|()| {
            let function = self.exports.end.clone();
            let code = function.call(&mut self.store, ()).map_err(|error| self.failure(&error))?;
            match code {
                0 => Ok(()),
                ..0 => Err(Failure::Code(code)),
                1.. => Err(Failure::Garbage(format!("hf_end returned {code}"))),
            }
        });
        ended.map_err(|failure| (Step::End, failure))
    }

    /// Asks for the totals of the scan.
    pub(crate) fn finish(&mut self) -> Result<(), Failed> {
        let Some(function) = self.exports.finish.clone() else { return Ok(()) };
        self.store.data_mut().collector.accept();
        let finished = self
            .begin(self.limits.call_time, 0)
            .and_then(|()| function.call(&mut self.store, ()).map_err(|error| self.failure(&error)));
        finished.map_err(|failure| (Step::Finish, failure))
    }

    /// Sends results from here on as soon as they fill a frame.
    pub(crate) fn send_parts(&mut self, channel: Channel) {
        self.store.data_mut().collector.send_parts(channel);
    }

    /// Takes everything that the module emitted and logged, and that was not sent.
    pub(crate) fn take(&mut self) -> Results {
        self.store.data_mut().collector.take()
    }

    /// Sets the budget of a request with a block of `bytes`.
    fn begin(&mut self, time: Duration, bytes: u64) -> Result<(), Failure> {
        self.time = time;
        self.store.set_epoch_deadline(self.clock.ticks(time));
        if let Some(fuel) = self.limits.fuel {
            self.fuel = fuel.of_block(bytes);
            self.store.set_fuel(self.fuel).map_err(|error| Failure::System(format!("{error:#}")))?;
        }
        Ok(())
    }

    /// Asks the module for room for `length` bytes in its memory.
    fn room(&mut self, length: u32) -> Result<i32, Failure> {
        let function = self.exports.buffer.clone();
        let pointer =
            function.call(&mut self.store, length.cast_signed()).map_err(|error| self.failure(&error))?;
        let start = pointer.cast_unsigned() as usize;
        let memory = self.exports.memory.data_size(&self.store);
        if start.checked_add(length as usize).is_none_or(|end| end > memory) {
            return Err(outside("hf_buffer returned room for", start, length, memory));
        }
        if pointer == 0 && length > 0 {
            return Err(Failure::Garbage(format!("hf_buffer has no room for {length} bytes")));
        }
        Ok(pointer)
    }

    /// Copies `bytes` into the memory of the module.
    fn place(&mut self, bytes: &[u8]) -> Result<(i32, i32), Failure> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let pointer = self.room(length)?;
        let start = pointer.cast_unsigned() as usize;
        let written = self.exports.memory.write(&mut self.store, start, bytes);
        written.map_err(|error| Failure::System(error.to_string()))?;
        Ok((pointer, length.cast_signed()))
    }

    fn failure(&self, error: &Error) -> Failure {
        failure(error, self.time, self.fuel)
    }
}

/// Failure for an error of a call into a module.
fn failure(error: &Error, time: Duration, fuel: u64) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Failure::Time(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        Some(Trap::OutOfFuel) => Failure::Fuel(fuel),
        Some(Trap::UnreachableCodeReached) => Failure::Trap("unreachable".to_owned()),
        Some(trap) => Failure::Trap(trap.to_string().trim_start_matches("wasm trap: ").to_owned()),
        None => Failure::NotWasm(format!("{error:#}")),
    }
}
