//! Command line of the program `holdfast-module`: made by the scan's end, parsed by the program.

use crate::frame::MAX_ARGUMENT_BYTES;
use crate::limits::{Fuel, Limits};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of one run of `holdfast-module`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArguments {
    /// Print the properties of the module instead of serving a scan.
    pub describe: bool,
    /// File of the module.
    pub wasm: PathBuf,
    /// Limits of the module; the grace time stays with the scan.
    pub limits: Limits,
    /// Arguments for the module, none with a NUL.
    pub arguments: Vec<String>,
}

/// Reason why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentsError(String);

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgumentsError {}

const DESCRIBE: &str = "--describe";
const CALL_TIME: &str = "--call-time-ms";
const LOAD_TIME: &str = "--load-time-ms";
const FUEL: &str = "--fuel";
const FUEL_PER_BYTE: &str = "--fuel-per-byte";
const MEMORY: &str = "--memory";
const BLOCK_BYTES: &str = "--block-bytes";
const OUTPUTS: &str = "--outputs";
const OUTPUT_BYTES: &str = "--output-bytes";

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl HostArguments {
    /// Checks the limits, and the length and characters of the module's arguments.
    pub fn check(&self) -> Result<(), ArgumentsError> {
        self.limits.check().map_err(ArgumentsError)?;
        let bytes: usize = self.arguments.iter().map(|argument| argument.len() + 1).sum();
        if bytes > MAX_ARGUMENT_BYTES {
            return Err(ArgumentsError(format!(
                "the module's arguments are {bytes} bytes long, above {MAX_ARGUMENT_BYTES}"
            )));
        }
        match self.arguments.iter().find(|argument| argument.contains('\0')) {
            Some(argument) => {
                Err(ArgumentsError(format!("the module's argument {argument:?} contains a NUL")))
            }
            None => Ok(()),
        }
    }

    /// Command line that [`Self::parse`] reads, without the program's name.
    pub fn command_line(&self) -> Vec<OsString> {
        let limits = &self.limits;
        let mut numbers = vec![
            (CALL_TIME, millis(limits.call_time)),
            (LOAD_TIME, millis(limits.load_time)),
            (MEMORY, limits.memory),
            (BLOCK_BYTES, limits.block_bytes),
            (OUTPUTS, limits.outputs.into()),
            (OUTPUT_BYTES, limits.output_bytes.into()),
        ];
        if let Some(fuel) = limits.fuel {
            numbers.extend([(FUEL, fuel.per_call), (FUEL_PER_BYTE, fuel.per_byte)]);
        }
        let mut line: Vec<OsString> =
            numbers.iter().flat_map(|(flag, value)| [(*flag).into(), value.to_string().into()]).collect();
        if self.describe {
            line.push(DESCRIBE.into());
        }
        // A file whose name begins with `-` is no flag.
        let relative = self.wasm.as_os_str().as_encoded_bytes().starts_with(b"-");
        let wasm = if relative { PathBuf::from(".").join(&self.wasm) } else { self.wasm.clone() };
        line.push(wasm.into());
        line.push("--".into());
        line.extend(self.arguments.iter().map(OsString::from));
        line
    }

    /// Parses a command line without the program's name.
    pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Self, ArgumentsError> {
        let mut line = line.into_iter();
        let mut limits = Limits::default();
        let (mut describe, mut wasm) = (false, None);
        let (mut per_call, mut per_byte) = (None, None);
        while let Some(word) = line.next() {
            let flag = word.to_str().filter(|word| word.starts_with('-'));
            match flag {
                None if wasm.is_none() => wasm = Some(PathBuf::from(word)),
                None => {
                    let name = word.display();
                    return Err(ArgumentsError(format!(
                        "there is a second file, \"{name}\"; put -- before the module's arguments"
                    )));
                }
                Some("--") => break,
                Some(DESCRIBE) => describe = true,
                Some(CALL_TIME) => limits.call_time = Duration::from_millis(number(CALL_TIME, line.next())?),
                Some(LOAD_TIME) => limits.load_time = Duration::from_millis(number(LOAD_TIME, line.next())?),
                Some(FUEL) => per_call = Some(number(FUEL, line.next())?),
                Some(FUEL_PER_BYTE) => per_byte = Some(number(FUEL_PER_BYTE, line.next())?),
                Some(MEMORY) => limits.memory = number(MEMORY, line.next())?,
                Some(BLOCK_BYTES) => limits.block_bytes = number(BLOCK_BYTES, line.next())?,
                Some(OUTPUTS) => limits.outputs = number(OUTPUTS, line.next())?,
                Some(OUTPUT_BYTES) => limits.output_bytes = number(OUTPUT_BYTES, line.next())?,
                Some(other) => return Err(ArgumentsError(format!("there is no flag \"{other}\""))),
            }
        }
        limits.fuel = match (per_call, per_byte) {
            (None, None) => None,
            (per_call, per_byte) => {
                Some(Fuel { per_call: per_call.unwrap_or(0), per_byte: per_byte.unwrap_or(0) })
            }
        };
        let arguments = line.map(OsString::into_string).collect::<Result<_, _>>();
        let arguments = arguments.map_err(|argument| {
            ArgumentsError(format!("the module's argument \"{}\" is not UTF-8", argument.display()))
        })?;
        let wasm = wasm.ok_or_else(|| ArgumentsError("the module's file is missing".to_owned()))?;
        let parsed = Self { describe, wasm, limits, arguments };
        parsed.check().map(|()| parsed)
    }
}

fn number<T: TryFrom<u64>>(flag: &str, word: Option<OsString>) -> Result<T, ArgumentsError> {
    let word = word.ok_or_else(|| ArgumentsError(format!("{flag} needs a number")))?;
    let value = OsStr::to_str(&word).and_then(|word| word.parse::<u64>().ok());
    value
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| ArgumentsError(format!("{flag} needs a number, not \"{}\"", word.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_command_line_survives_parsing() {
        let limits =
            Limits { fuel: Some(Fuel { per_call: 7, per_byte: 9 }), memory: 1 << 20, ..Limits::default() };
        for (wasm, describe) in [("a b.wasm", false), ("/x/y.wasm", true)] {
            let arguments = vec![String::new(), "--fuel".to_owned(), "ü".to_owned()];
            let made = HostArguments { describe, wasm: wasm.into(), limits: limits.clone(), arguments };
            assert_eq!(HostArguments::parse(made.command_line()), Ok(made));
        }
        let dashed = HostArguments { describe: false, wasm: "-x".into(), limits, arguments: vec![] };
        assert_eq!(HostArguments::parse(dashed.command_line()).unwrap().wasm, PathBuf::from("./-x"));
    }

    #[test]
    fn a_wrong_command_line_is_refused_by_name() {
        for (line, part) in [
            (words(&[]), "file is missing"),
            (words(&["a", "b"]), "a second file, \"b\""),
            (words(&["a", "--memory"]), "--memory needs a number"),
            (words(&["a", "--outputs", "5000000000"]), "--outputs needs a number"),
            (words(&["a", "--nope"]), "no flag \"--nope\""),
            (words(&["a", "--memory", "0"]), "the memory in bytes is 0"),
            (words(&["a", "--", "x\0y"]), "contains a NUL"),
            (words(&["a", "--", &"x".repeat(MAX_ARGUMENT_BYTES)]), "bytes long"),
        ] {
            let error = HostArguments::parse(line).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
