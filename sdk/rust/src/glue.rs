//! Calls between host and module: the module's state, the buffer for blocks, and the imports.
//!
//! The unsafe code rests on two facts. A WebAssembly module without the threads feature has one thread, and the
//! host calls no export while another one runs. The macro `export!` makes the only callers of [`Slot`].
#![allow(unsafe_code)]

use crate::{Arguments, Flow, Module};
use alloc::vec::Vec;
use core::cell::UnsafeCell;

#[cfg(target_arch = "wasm32")]
mod host {
    #[link(wasm_import_module = "hf")]
    unsafe extern "C" {
        pub(super) fn emit(offset: i64, pointer: *const u8, length: usize);
        pub(super) fn log(pointer: *const u8, length: usize);
    }
}

/// Imports for builds on other machines, where modules are only checked and tested.
#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) unsafe fn emit(_: i64, _: *const u8, _: usize) {}
    pub(super) unsafe fn log(_: *const u8, _: usize) {}
}

/// Emits a result of the current item; `None` is an offset for the whole item.
pub fn emit(offset: Option<u64>, bytes: &[u8]) {
    let offset = offset.and_then(|offset| i64::try_from(offset).ok()).unwrap_or(-1);
    // SAFETY: pointer and length are those of a slice; the host only reads it.
    unsafe { host::emit(offset, bytes.as_ptr(), bytes.len()) }
}

/// Writes a line to the log of the scan.
pub fn log(line: &str) {
    // SAFETY: pointer and length are those of a text; the host only reads it.
    unsafe { host::log(line.as_ptr(), line.len()) }
}

/// Code for a call in an order that the interface forbids.
const WRONG_ORDER: i32 = i32::MIN;

#[derive(Debug)]
struct State<M> {
    module: Option<M>,
    buffer: Vec<u8>,
}

/// Place of a module's value between calls; not for use outside of `export!`.
#[derive(Debug)]
pub struct Slot<M>(UnsafeCell<State<M>>);

// SAFETY: a module has one thread.
unsafe impl<M> Sync for Slot<M> {}

impl<M: Module> Default for Slot<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Module> Slot<M> {
    /// Makes an empty place.
    #[must_use]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(State { module: None, buffer: Vec::new() }))
    }

    /// Runs `call` on the state; `call` cannot reach this slot again, for only exports can.
    fn with<R>(&self, call: impl FnOnce(&mut State<M>) -> R) -> R {
        // SAFETY: one thread, and no export runs inside of another: this is the only reference.
        call(unsafe { &mut *self.0.get() })
    }

    /// Address of room for `len` bytes.
    pub fn buffer(&self, len: i32) -> i32 {
        self.with(|state| {
            let length = len.cast_unsigned() as usize;
            // All of the buffer stays initialised, so that no bytes are cleared for each block.
            if state.buffer.len() < length {
                state.buffer.resize(length, 0);
            }
            (state.buffer.as_mut_ptr() as usize as u32).cast_signed()
        })
    }

    /// Makes the module from its arguments.
    pub fn arguments(&self, _pointer: i32, len: i32) -> i32 {
        self.with(|state| match M::new(Arguments::new(filled(&state.buffer, len))) {
            Ok(module) => {
                state.module = Some(module);
                0
            }
            Err(code) => code.returned(),
        })
    }

    /// Overlap of the module; -1 for none.
    pub fn overlap(&self) -> i32 {
        let overlap = self.with(|state| state.module.as_ref().and_then(Module::overlap));
        overlap.and_then(|overlap| i32::try_from(overlap).ok()).unwrap_or(-1)
    }

    /// Begins an item whose name is in the buffer.
    pub fn start(&self, _name: i32, name_len: i32, size: i64) {
        self.with(|state| {
            let name = core::str::from_utf8(filled(&state.buffer, name_len)).unwrap_or_default();
            if let Some(module) = &mut state.module {
                module.start(name, u64::try_from(size).ok());
            }
        });
    }

    /// Takes the block that is in the buffer.
    pub fn block(&self, _pointer: i32, len: i32, offset: i64) -> i32 {
        self.with(|state| {
            let Some(module) = &mut state.module else { return WRONG_ORDER };
            match module.block(filled(&state.buffer, len), offset.cast_unsigned()) {
                Ok(Flow::Continue) => 0,
                Ok(Flow::Enough) => 1,
                Err(code) => code.returned(),
            }
        })
    }

    /// Ends the current item.
    pub fn end(&self) -> i32 {
        self.with(|state| match state.module.as_mut().map(Module::end) {
            Some(Ok(())) => 0,
            Some(Err(code)) => code.returned(),
            None => WRONG_ORDER,
        })
    }

    /// Lets the module emit its totals.
    pub fn finish(&self) {
        self.with(|state| state.module.iter_mut().for_each(Module::finish));
    }
}

/// Bytes of the buffer that the host wrote; it writes to the address of [`Slot::buffer`] alone.
fn filled(buffer: &[u8], len: i32) -> &[u8] {
    buffer.get(..len.cast_unsigned() as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    struct Sum(u64);

    impl Module for Sum {
        fn new(mut arguments: Arguments<'_>) -> Result<Self, ErrorCode> {
            arguments.next().is_none().then_some(Self(0)).ok_or(ErrorCode(4))
        }

        fn overlap(&self) -> Option<u32> {
            Some(0)
        }

        fn start(&mut self, _: &str, _: Option<u64>) {
            self.0 = 0;
        }

        fn block(&mut self, bytes: &[u8], _: u64) -> Result<Flow, ErrorCode> {
            self.0 += bytes.len() as u64;
            Ok(if self.0 > 5 { Flow::Enough } else { Flow::Continue })
        }

        fn end(&mut self) -> Result<(), ErrorCode> {
            if self.0 == 0 { Err(ErrorCode(0)) } else { Ok(()) }
        }

        fn finish(&mut self) {}
    }

    #[test]
    fn calls_reach_the_module() {
        let slot = Slot::<Sum>::new();
        assert_eq!((slot.block(0, 0, 0), slot.end(), slot.overlap()), (WRONG_ORDER, WRONG_ORDER, -1));
        slot.buffer(2);
        assert_eq!(slot.arguments(0, 2), -4);
        assert_eq!(slot.arguments(0, 0), 0);
        slot.buffer(4);
        slot.start(0, 0, -1);
        assert_eq!(slot.end(), -1);
        assert_eq!((slot.block(0, 4, 0), slot.block(0, 4, 4), slot.end(), slot.overlap()), (0, 1, 0, 0));
        slot.finish();
    }
}
