//! Description of a module as JSON, for people and scripts.
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `file` | string | path of the module |
//! | `exports_ok` | bool | the module can be loaded and has all exports of the interface |
//! | `abi` | number or null | version of the interface that the host has, if the module can be loaded |
//! | `overlap` | number or null | bytes of overlap; null where items must come whole and in order |
//! | `error` | string or null | reason why the module cannot be loaded or does not accept its arguments |
//! | `log` | array of strings | log lines that the module wrote |

use crate::serve::load_alone;
use holdfast_module_wire::{ABI_VERSION, Failure, HostArguments};
use std::fmt::Write;
use std::process::ExitCode;

/// Prints the description of a module; the exit code tells whether it can be used with these arguments.
pub(crate) fn print(arguments: &HostArguments) -> ExitCode {
    let loaded = load_alone(arguments);
    let exports_ok = loaded.is_ok();
    let mut log = Vec::new();
    let configured = loaded.and_then(|mut guest| {
        let configured = guest.configure(arguments);
        log = guest.take().log;
        configured
    });
    println!("{}", json(&arguments.wasm.display().to_string(), exports_ok, &configured, &log));
    if configured.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn json(file: &str, exports_ok: bool, configured: &Result<Option<u32>, Failure>, log: &[String]) -> String {
    let null = || "null".to_owned();
    let usable = exports_ok && !matches!(configured, Err(Failure::Abi(_)));
    let abi = if usable { ABI_VERSION.to_string() } else { null() };
    let (overlap, error) = match configured {
        Ok(overlap) => (overlap.map_or_else(null, |overlap| overlap.to_string()), null()),
        Err(failure) => (null(), quoted(&failure.to_string())),
    };
    let (file, log) = (quoted(file), log.iter().map(|line| quoted(line)).collect::<Vec<_>>().join(","));
    format!(
        r#"{{"file":{file},"exports_ok":{exports_ok},"abi":{abi},"overlap":{overlap},"error":{error},"log":[{log}]}}"#
    )
}

/// Text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_json() {
        assert_eq!(
            json("a\"\n.wasm", true, &Ok(Some(3)), &["x".to_owned()]),
            "{\"file\":\"a\\\"\\u000a.wasm\",\"exports_ok\":true,\"abi\":1,\"overlap\":3,\"error\":null,\"log\":[\"x\"]}"
        );
        assert_eq!(
            json("b", false, &Err(Failure::MissingExport("hf_end".into())), &[]),
            r#"{"file":"b","exports_ok":false,"abi":null,"overlap":null,"error":"does not export hf_end","log":[]}"#
        );
    }
}
