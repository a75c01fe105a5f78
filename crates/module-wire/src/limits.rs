//! Limits of one module: time, instructions, memory, block length and results; and the ceilings of those limits.

use std::time::Duration;

/// Ceiling of `Limits::block_bytes`: a block is copied into the module's memory, twice its size is needed there.
pub const MAX_BLOCK_BYTES: u64 = 256 << 20;
/// Ceiling of `Limits::memory`: all that 32-bit WebAssembly can address.
pub const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// Ceiling of `Limits::outputs`: the scan keeps the results of a block until all are there.
const MAX_CALL_OUTPUTS: u32 = 1 << 26;
/// Ceiling of `Limits::output_bytes`, for the same reason.
const MAX_CALL_OUTPUT_BYTES: u32 = 1 << 30;
/// Number of results in one frame: more of them follow in further frames.
pub const PART_OUTPUTS: u32 = 1 << 16;
/// Bytes of results in one frame, unless a single result is longer.
pub const PART_BYTES: u32 = 1 << 20;
/// Longest single result, in bytes: it fits a frame.
pub const MAX_OUTPUT_BYTES: u32 = 16 << 20;
/// Ceiling of each duration in `Limits`: longer means a wrong unit.
const MAX_TIME: Duration = Duration::from_hours(1);

/// Number of WebAssembly instructions that a module may execute: deterministic, other than time.
///
/// The engine counts at loops and calls, which slows tight loops by about a sixth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel {
    /// Instructions of each call, whatever the length of its block.
    pub per_call: u64,
    /// Additional instructions for every byte of a block.
    pub per_byte: u64,
}

impl Fuel {
    /// Instructions of a call with a block of `bytes`.
    #[must_use]
    pub fn of_block(self, bytes: u64) -> u64 {
        self.per_call.saturating_add(self.per_byte.saturating_mul(bytes))
    }
}

/// Limits of one module, applied to each of its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of one request: the start or a block of an item, its end, or the totals.
    pub call_time: Duration,
    /// Wall time to load a module: its compilation, start function and arguments.
    pub load_time: Duration,
    /// Time added to the above after which a process without an answer is killed.
    pub grace: Duration,
    /// Instructions of a call; `None` bounds the wall time alone.
    pub fuel: Option<Fuel>,
    /// Bytes of linear memory, and of tables, that a module may have.
    pub memory: u64,
    /// Bytes of the longest block, which is the size of the shared memory.
    pub block_bytes: u64,
    /// Number of results that a module may emit in one request.
    pub outputs: u32,
    /// Bytes of results that a module may emit in one request.
    pub output_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call_time: Duration::from_secs(10),
            load_time: Duration::from_mins(1),
            grace: Duration::from_secs(5),
            fuel: None,
            memory: 64 << 20,
            block_bytes: 4 << 20,
            // One for each byte of a block.
            outputs: 4 << 20,
            output_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// Checks every limit against its ceiling; the error names the limit.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} is {value}; it must be between {least} and {most}"))
            }
        };
        let longest = MAX_TIME.as_millis() as u64;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        within("the call time in ms", millis(self.call_time), 1, longest)?;
        within("the load time in ms", millis(self.load_time), 1, longest)?;
        within("the grace time in ms", millis(self.grace), 1, longest)?;
        within("the memory in bytes", self.memory, 1 << 16, MAX_MEMORY_BYTES)?;
        within("the block length in bytes", self.block_bytes, 1, MAX_BLOCK_BYTES)?;
        within("the number of results", self.outputs.into(), 1, MAX_CALL_OUTPUTS.into())?;
        within("the bytes of results", self.output_bytes.into(), 1, MAX_CALL_OUTPUT_BYTES.into())
    }
}

/// Formats `bytes` in the largest unit that divides it.
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// Formats `millis` in seconds where they are whole, in milliseconds otherwise.
pub(crate) fn time_text(millis: u64) -> String {
    if millis >= 1000 && millis.is_multiple_of(1000) {
        format!("{} s", millis / 1000)
    } else {
        format!("{millis} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_ceiling() {
        assert_eq!(Limits::default().check(), Ok(()));
        let wrong = [
            (Limits { call_time: Duration::ZERO, ..Limits::default() }, "the call time"),
            (Limits { load_time: Duration::MAX, ..Limits::default() }, "the load time"),
            (Limits { grace: Duration::MAX, ..Limits::default() }, "the grace time"),
            (Limits { memory: u64::MAX, ..Limits::default() }, "the memory"),
            (Limits { block_bytes: 0, ..Limits::default() }, "the block length"),
            (Limits { outputs: u32::MAX, ..Limits::default() }, "the number of results"),
            (Limits { output_bytes: 0, ..Limits::default() }, "the bytes of results"),
        ];
        for (limits, name) in wrong {
            assert!(limits.check().unwrap_err().starts_with(name), "{name}");
        }
    }

    #[test]
    fn fuel_saturates() {
        let fuel = Fuel { per_call: 10, per_byte: 3 };
        assert_eq!((fuel.of_block(0), fuel.of_block(5)), (10, 25));
        assert_eq!(fuel.of_block(u64::MAX), u64::MAX);
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(size_text(64 << 20), "64 MiB");
        assert_eq!(size_text(65_537), "65537 bytes");
        assert_eq!((time_text(2000), time_text(1500)), ("2 s".to_owned(), "1500 ms".to_owned()));
    }
}
