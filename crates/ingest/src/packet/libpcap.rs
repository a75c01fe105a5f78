//! Compiler of libpcap, loaded when the first filter asks for it: programs start, and work without filters, where it is missing.
//!
//! Here are the calls and nothing else; the meaning of expressions and programs is `filter`'s and `bpf`'s.
#![allow(unsafe_code, reason = "calls of a C library")]

use super::bpf::Instruction;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Names of the library: that of most systems, and that of Debian.
const NAMES: [&str; 2] = ["libpcap.so.1", "libpcap.so.0.8"];

/// Bytes of an error text (`PCAP_ERRBUF_SIZE`).
const ERROR_BYTES: usize = 256;

/// Bytes of a packet that a handle keeps; programs are compiled to keep all.
const SNAPLEN: c_int = 65_535;

/// Netmask for `ip broadcast`: none is known.
const NETMASK: c_uint = 0;

/// Buffer of a live handle in bytes: nothing is captured with it.
const LIVE_BUFFER: c_int = 1 << 20;

/// Reason why libpcap gives no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LibpcapError {
    /// The library cannot be loaded.
    Missing(String),
    /// The library refuses the expression, the link type or the interface, in these words.
    Refused(String),
}

/// Program in the library's form (`struct bpf_program`).
#[repr(C)]
struct CProgram {
    length: c_uint,
    instructions: *mut CInstruction,
}

/// Instruction in the library's form (`struct bpf_insn`).
#[repr(C)]
#[derive(Clone, Copy)]
struct CInstruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    k: u32,
}

/// Handle of the library (`pcap_t`), which is opaque.
type Handle = *mut c_void;

/// Functions of the library. They stay valid as the library is never unloaded.
struct Functions {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> Handle,
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> Handle,
    set_snaplen: unsafe extern "C" fn(Handle, c_int) -> c_int,
    set_buffer_size: unsafe extern "C" fn(Handle, c_int) -> c_int,
    activate: unsafe extern "C" fn(Handle) -> c_int,
    status_text: unsafe extern "C" fn(c_int) -> *const c_char,
    link_type: unsafe extern "C" fn(Handle) -> c_int,
    compile: unsafe extern "C" fn(Handle, *mut CProgram, *const c_char, c_int, c_uint) -> c_int,
    error_text: unsafe extern "C" fn(Handle) -> *const c_char,
    free_program: unsafe extern "C" fn(*mut CProgram),
    close: unsafe extern "C" fn(Handle),
}

impl Functions {
    /// Loads the library by the first of some names that is found.
    fn load(names: &[&str]) -> Result<Self, String> {
        let mut reason = String::new();
        for name in names {
            // SAFETY: libpcap has no initialisers with conditions.
            match unsafe { Library::new(name) } {
                // SAFETY: the signatures are those of pcap/pcap.h, unchanged since libpcap 1.0.
                Ok(library) => return unsafe { Self::of(library) }.map_err(|error| error.to_string()),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(reason)
    }

    unsafe fn of(library: Library) -> Result<Self, libloading::Error> {
        // SAFETY: as the caller says.
        let functions = unsafe {
            Self {
                open_dead: *library.get(b"pcap_open_dead\0")?,
                create: *library.get(b"pcap_create\0")?,
                set_snaplen: *library.get(b"pcap_set_snaplen\0")?,
                set_buffer_size: *library.get(b"pcap_set_buffer_size\0")?,
                activate: *library.get(b"pcap_activate\0")?,
                status_text: *library.get(b"pcap_statustostr\0")?,
                link_type: *library.get(b"pcap_datalink\0")?,
                compile: *library.get(b"pcap_compile\0")?,
                error_text: *library.get(b"pcap_geterr\0")?,
                free_program: *library.get(b"pcap_freecode\0")?,
                close: *library.get(b"pcap_close\0")?,
            }
        };
        std::mem::forget(library);
        Ok(functions)
    }
}

/// Functions of the library, loaded once.
fn functions() -> Result<&'static Functions, LibpcapError> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    let loaded = FUNCTIONS.get_or_init(|| Functions::load(&NAMES));
    loaded.as_ref().map_err(|reason| LibpcapError::Missing(reason.clone()))
}

/// Text of the library, copied.
///
/// # Safety
/// `text` is null or points to a text that ends with a zero.
unsafe fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Compiler for the packets of one link type, or of an interface.
pub(super) struct Compiler {
    functions: &'static Functions,
    handle: Handle,
}

impl Compiler {
    /// Opens a compiler for packets of a link type, given by its number (`DLT_…`).
    pub(super) fn dead(link_type: i32) -> Result<Self, LibpcapError> {
        let functions = functions()?;
        // SAFETY: the call has no conditions.
        let handle = unsafe { (functions.open_dead)(link_type, SNAPLEN) };
        if handle.is_null() {
            return Err(LibpcapError::Refused(format!("link type {link_type} is unknown")));
        }
        Ok(Self { functions, handle })
    }

    /// Opens a compiler for packets as the kernel sees them on an interface.
    pub(super) fn live(interface: &str) -> Result<Self, LibpcapError> {
        let functions = functions()?;
        let name = CString::new(interface).map_err(|error| LibpcapError::Refused(error.to_string()))?;
        let mut error: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
        // SAFETY: the name ends with a zero, and the buffer has the size that the library demands.
        let handle = unsafe { (functions.create)(name.as_ptr(), error.as_mut_ptr()) };
        if handle.is_null() {
            // SAFETY: the library ends the text with a zero, and the buffer was full of them.
            return Err(LibpcapError::Refused(unsafe { copied(error.as_ptr()) }));
        }
        let compiler = Self { functions, handle };
        // SAFETY: the handle is open and not active yet.
        let status = unsafe {
            (functions.set_snaplen)(handle, 256);
            (functions.set_buffer_size)(handle, LIVE_BUFFER);
            (functions.activate)(handle)
        };
        // Warnings are positive.
        if status < 0 {
            // SAFETY: the handle is open, and both texts end with a zero.
            let (told, status) =
                unsafe { (copied((functions.error_text)(handle)), copied((functions.status_text)(status))) };
            return Err(LibpcapError::Refused(if told.is_empty() { status } else { told }));
        }
        Ok(compiler)
    }

    /// Number of the link type (`DLT_…`).
    pub(super) fn link_type(&self) -> i32 {
        // SAFETY: the handle is open.
        unsafe { (self.functions.link_type)(self.handle) }
    }

    /// Compiles an expression to instructions.
    pub(super) fn compile(&self, expression: &str) -> Result<Vec<Instruction>, LibpcapError> {
        /// Versions before 1.8 compile in static memory.
        static TURN: Mutex<()> = Mutex::new(());
        let text = CString::new(expression).map_err(|error| LibpcapError::Refused(error.to_string()))?;
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut program = CProgram { length: 0, instructions: std::ptr::null_mut() };
        // SAFETY: the handle is open, the text ends with a zero, and the program is written by the library.
        let status =
            unsafe { (self.functions.compile)(self.handle, &raw mut program, text.as_ptr(), 1, NETMASK) };
        if status != 0 {
            // SAFETY: the handle is open, and its error text ends with a zero.
            return Err(LibpcapError::Refused(unsafe { copied((self.functions.error_text)(self.handle)) }));
        }
        let instructions = if program.instructions.is_null() {
            Vec::new()
        } else {
            // SAFETY: the library says how many instructions it made there.
            let made = unsafe { std::slice::from_raw_parts(program.instructions, program.length as usize) };
            made.iter()
                .map(|&CInstruction { code, if_true, if_false, k }| Instruction {
                    code,
                    if_true,
                    if_false,
                    k,
                })
                .collect()
        };
        // SAFETY: the library made the program, and nobody uses it any more.
        unsafe { (self.functions.free_program)(&raw mut program) };
        Ok(instructions)
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody uses it any more.
        unsafe { (self.functions.close)(self.handle) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_with_its_name() {
        let reason = Functions::load(&["libpcap-of-nobody.so.7"]).err().unwrap();
        assert!(reason.contains("libpcap-of-nobody.so.7"), "{reason}");
    }
}
