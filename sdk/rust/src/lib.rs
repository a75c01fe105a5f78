//! Software development kit for modules of `holdfast scan` in Rust: a trait, and a macro that makes the exports.
//!
//! ```text
//! exports of a module, required:
//!   memory                                         linear memory, 32-bit
//!   hf_abi() -> i32                                version of the interface: 1
//!   hf_buffer(len: i32) -> i32                     address of room for len bytes; 0 = no room
//!   hf_start(name: i32, name_len: i32, size: i64)  an item begins; size -1 = unknown
//!   hf_block(ptr: i32, len: i32, offset: i64) -> i32   a block: 0 = continue, 1 = seen enough, < 0 = error
//!   hf_end() -> i32                                the item ends: 0 = fine, < 0 = error
//! exports of a module, optional:
//!   hf_args(ptr: i32, len: i32) -> i32             arguments, each ended by a NUL: 0 = accepted
//!   hf_overlap() -> i32                            >= 0: blocks are independent, and repeat so many bytes
//!   hf_finish()                                    the scan ends: emit totals
//! imports from "hf":
//!   emit(offset: i64, ptr: i32, len: i32)          a result; offset -1 = of the whole item
//!   log(ptr: i32, len: i32)                        a line for the log
//! ```
//!
//! `sdk/ABI.md` explains the interface. The unsafe code of a module is in `glue`, behind [`export!`].
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod arguments;
#[doc(hidden)]
pub mod glue;

pub use arguments::Arguments;
pub use glue::{emit, log};

/// Version of the interface that this crate implements.
pub const ABI_VERSION: i32 = 1;

/// Request of a module after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next block.
    Continue,
    /// Skip the rest of the item; its end follows.
    Enough,
}

/// Error code of a module, from 1; the scan reports it as a negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u16);

impl ErrorCode {
    /// Negative number that stands for this error in the interface; 0 is no code and becomes -1.
    #[doc(hidden)]
    #[must_use]
    pub fn returned(self) -> i32 {
        -i32::from(self.0.max(1))
    }
}

/// Module of a scan. One value lives for all items of a process.
pub trait Module: Sized {
    /// Makes the module from its arguments; an error refuses them, after a line for the log.
    fn new(arguments: Arguments<'_>) -> Result<Self, ErrorCode>;

    /// Bytes that a block repeats of the block before, where blocks are independent; `None` for whole items.
    fn overlap(&self) -> Option<u32>;

    /// An item begins, with its length in bytes where that is known.
    fn start(&mut self, name: &str, size: Option<u64>);

    /// Takes a block of the item, which begins at `offset`.
    fn block(&mut self, bytes: &[u8], offset: u64) -> Result<Flow, ErrorCode>;

    /// The item ends, after its last block or after [`Flow::Enough`].
    fn end(&mut self) -> Result<(), ErrorCode>;

    /// The scan ends: emits the totals of this process, if there are any.
    fn finish(&mut self);
}

/// Makes the exports of the interface from a type that implements [`Module`].
///
/// Call it once, in a crate of the type `cdylib`: `holdfast_module_sdk::export!(MyModule);`
#[macro_export]
macro_rules! export {
    ($module:ty) => {
        static HOLDFAST_MODULE: $crate::glue::Slot<$module> = $crate::glue::Slot::new();

        #[unsafe(no_mangle)]
        extern "C" fn hf_abi() -> i32 {
            $crate::ABI_VERSION
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_buffer(len: i32) -> i32 {
            HOLDFAST_MODULE.buffer(len)
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_args(ptr: i32, len: i32) -> i32 {
            HOLDFAST_MODULE.arguments(ptr, len)
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_overlap() -> i32 {
            HOLDFAST_MODULE.overlap()
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_start(name: i32, name_len: i32, size: i64) {
            HOLDFAST_MODULE.start(name, name_len, size);
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_block(ptr: i32, len: i32, offset: i64) -> i32 {
            HOLDFAST_MODULE.block(ptr, len, offset)
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_end() -> i32 {
            HOLDFAST_MODULE.end()
        }

        #[unsafe(no_mangle)]
        extern "C" fn hf_finish() {
            HOLDFAST_MODULE.finish();
        }
    };
}
