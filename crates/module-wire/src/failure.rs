//! Failures of a module, as its process reports them.

use crate::frame::{MAX_TEXT_BYTES, Reader, WireError, Writer, cut};
use crate::limits::{size_text, time_text};
use std::fmt;

/// Call into a module, named in its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reading, compiling and instantiating, with its start function.
    Load,
    /// Arguments and properties: `hf_abi`, `hf_args`, `hf_overlap`.
    Arguments,
    /// Start of an item: `hf_start`.
    Start,
    /// Block of an item: `hf_block`.
    Block,
    /// End of an item: `hf_end`.
    End,
    /// Totals of the scan: `hf_finish`.
    Finish,
}

impl Step {
    /// All steps in the order of a scan; the code of a step is its position here.
    pub(crate) const ALL: [Self; 6] =
        [Self::Load, Self::Arguments, Self::Start, Self::Block, Self::End, Self::Finish];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_code(code: u8) -> Result<Self, WireError> {
        let unknown = WireError::Unknown { field: "step", value: code.into() };
        Self::ALL.get(usize::from(code)).copied().ok_or(unknown)
    }
}

/// Cause for which a module failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its file cannot be read, or is too long.
    Unreadable(String),
    /// Its file is no valid WebAssembly.
    NotWasm(String),
    /// It lacks an export that the interface requires.
    MissingExport(String),
    /// It exports a name of the interface with another type.
    WrongExport(String),
    /// It imports something that the host does not offer.
    WrongImport(String),
    /// It was built for another version of the interface.
    Abi(i32),
    /// It returned this code for its arguments, which it does not accept.
    Arguments(i32),
    /// It ran for longer than this number of milliseconds.
    Time(u64),
    /// It executed more than this number of instructions.
    Fuel(u64),
    /// It wants more than this number of bytes of memory.
    Memory(u64),
    /// It executed an instruction that traps.
    Trap(String),
    /// It returned or passed a value that the interface forbids.
    Garbage(String),
    /// It emitted more than this number of results in one request.
    Outputs(u32),
    /// It emitted more than this number of bytes in one request.
    OutputBytes(u32),
    /// It returned a code of its own for an item; the process continues with the next item.
    Code(i32),
    /// The scan sent a request that has no meaning, or not at this point.
    Request(String),
    /// The operating system refused an operation to the process.
    System(String),
}

impl Failure {
    /// The process ends after this failure; after the others it can continue with the next item.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Code(_))
    }

    pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
        let (code, value, text): (u8, u64, &str) = match self {
            Self::Unreadable(text) => (1, 0, text),
            Self::NotWasm(text) => (2, 0, text),
            Self::MissingExport(text) => (3, 0, text),
            Self::WrongExport(text) => (4, 0, text),
            Self::WrongImport(text) => (5, 0, text),
            Self::Abi(value) => (6, u64::from(value.cast_unsigned()), ""),
            Self::Arguments(value) => (7, u64::from(value.cast_unsigned()), ""),
            Self::Time(value) => (8, *value, ""),
            Self::Fuel(value) => (9, *value, ""),
            Self::Memory(value) => (10, *value, ""),
            Self::Trap(text) => (11, 0, text),
            Self::Garbage(text) => (12, 0, text),
            Self::Outputs(value) => (13, u64::from(*value), ""),
            Self::OutputBytes(value) => (14, u64::from(*value), ""),
            Self::Code(value) => (15, u64::from(value.cast_unsigned()), ""),
            Self::Request(text) => (16, 0, text),
            Self::System(text) => (17, 0, text),
        };
        writer.u8(code).u64(value).bytes(cut(text, MAX_TEXT_BYTES).as_bytes());
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let code = reader.u8("failure")?;
        let value = reader.u64("value of a failure")?;
        let text = reader.text("text of a failure", MAX_TEXT_BYTES)?;
        let unknown = WireError::Unknown { field: "value of a failure", value };
        let has_text = matches!(code, 1..=5 | 11 | 12 | 16 | 17);
        if (has_text && value != 0) || (!has_text && !text.is_empty()) {
            return Err(unknown);
        }
        let small = u32::try_from(value).map_err(|_| unknown);
        Ok(match code {
            1 => Self::Unreadable(text),
            2 => Self::NotWasm(text),
            3 => Self::MissingExport(text),
            4 => Self::WrongExport(text),
            5 => Self::WrongImport(text),
            6 => Self::Abi(small?.cast_signed()),
            7 => Self::Arguments(small?.cast_signed()),
            8 => Self::Time(value),
            9 => Self::Fuel(value),
            10 => Self::Memory(value),
            11 => Self::Trap(text),
            12 => Self::Garbage(text),
            13 => Self::Outputs(small?),
            14 => Self::OutputBytes(small?),
            15 => Self::Code(small?.cast_signed()),
            16 => Self::Request(text),
            17 => Self::System(text),
            _ => return Err(WireError::Unknown { field: "failure", value: code.into() }),
        })
    }
}

/// Predicate of a sentence whose subject is the module.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(text) => write!(f, "cannot be read: {text}"),
            Self::NotWasm(text) => write!(f, "is not a WebAssembly module: {text}"),
            Self::MissingExport(name) => write!(f, "does not export {name}"),
            Self::WrongExport(text) => write!(f, "exports {text}"),
            Self::WrongImport(text) => write!(f, "imports {text}"),
            Self::Abi(version) => {
                write!(
                    f,
                    "has version {version} of the interface, not {}; build it again",
                    crate::ABI_VERSION
                )
            }
            Self::Arguments(code) => write!(f, "does not accept its arguments (code {code})"),
            Self::Time(millis) => write!(f, "ran longer than {}", time_text(*millis)),
            Self::Fuel(fuel) => write!(f, "executed more than {fuel} instructions"),
            Self::Memory(bytes) => write!(f, "wants more than {} of memory", size_text(*bytes)),
            Self::Trap(text) => write!(f, "trapped: {text}"),
            Self::Garbage(text) => write!(f, "returned garbage: {text}"),
            Self::Outputs(count) => write!(f, "emitted more than {count} results"),
            Self::OutputBytes(bytes) => {
                write!(f, "emitted more than {} of results", size_text((*bytes).into()))
            }
            Self::Code(code) => write!(f, "reported its error {code}"),
            Self::Request(text) => write!(f, "got a request that has no meaning: {text}"),
            Self::System(text) => write!(f, "cannot be run: {text}"),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn failures() -> impl Strategy<Value = Failure> {
        (0..17u8, any::<u32>(), any::<u64>(), ".{0,60}").prop_map(|(code, small, value, text)| match code {
            0 => Failure::Unreadable(text),
            1 => Failure::NotWasm(text),
            2 => Failure::MissingExport(text),
            3 => Failure::WrongExport(text),
            4 => Failure::WrongImport(text),
            5 => Failure::Abi(small.cast_signed()),
            6 => Failure::Arguments(small.cast_signed()),
            7 => Failure::Time(value),
            8 => Failure::Fuel(value),
            9 => Failure::Memory(value),
            10 => Failure::Trap(text),
            11 => Failure::Garbage(text),
            12 => Failure::Outputs(small),
            13 => Failure::OutputBytes(small),
            14 => Failure::Code(small.cast_signed()),
            15 => Failure::Request(text),
            _ => Failure::System(text),
        })
    }

    #[test]
    fn the_code_of_a_step_is_its_position() {
        for step in Step::ALL {
            assert_eq!(Step::of_code(step.code()), Ok(step));
        }
        assert!(Step::of_code(6).is_err());
    }

    #[test]
    fn a_failure_reads_as_a_predicate() {
        assert_eq!(Failure::Time(2000).to_string(), "ran longer than 2 s");
        assert_eq!(Failure::Memory(64 << 20).to_string(), "wants more than 64 MiB of memory");
        assert_eq!(Failure::MissingExport("hf_block".into()).to_string(), "does not export hf_block");
        assert_eq!(Failure::Abi(7).to_string(), "has version 7 of the interface, not 1; build it again");
    }
}
