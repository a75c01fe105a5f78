//! Examples of the SDK, built by the tests of several crates.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "tests of several crates have it as a module")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the SDK.
pub fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk")
}

/// Copies the SDK into a folder, as `make install` does: it builds without the workspace.
pub fn copied_sdk(folder: &Path) -> PathBuf {
    let copied = Command::new("cp").arg("-R").arg(sdk()).arg(folder).status().unwrap();
    assert!(copied.success());
    folder.join("sdk")
}

/// Builds the Rust example; `None` where its target is not installed.
pub fn rust_lines() -> Option<PathBuf> {
    let folder = tempfile::tempdir().unwrap();
    let sdk = copied_sdk(folder.path());
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-lines");
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--offline",
            "--target",
            "wasm32-unknown-unknown",
        ])
        .arg("--manifest-path")
        .arg(sdk.join("examples/rust-lines/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    if messages.contains("target may not be installed") {
        eprintln!("skipped: needs `rustup target add wasm32-unknown-unknown`");
        return None;
    }
    assert!(output.status.success(), "{messages}");
    Some(target.join("wasm32-unknown-unknown/release/rust_lines.wasm"))
}

/// Builds the C example into `folder`; `None` where clang or its linker is not installed.
pub fn c_needle(folder: &Path) -> Option<PathBuf> {
    let wasm = folder.join("needle.wasm");
    let output = Command::new("clang")
        .args(["--target=wasm32", "-nostdlib", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wl,--no-entry", "-Wl,--export-dynamic", "-I"])
        .arg(sdk().join("c"))
        .arg("-o")
        .arg(&wasm)
        .arg(sdk().join("examples/c-needle/needle.c"))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: needs clang");
        return None;
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    if messages.contains("wasm-ld") && messages.contains("No such file") {
        eprintln!("skipped: needs wasm-ld, of the package lld");
        return None;
    }
    assert!(output.status.success(), "{messages}");
    Some(wasm)
}
