//! The tour that `make demo` takes, whole, with the programs of this build: of packets, and of a file where packets may not be
//! captured. It checks itself that what was held outlives the rest (promise 4), and that of what was found just that is left.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{Said, folder, recorder_program, tool};
use std::path::Path;
use std::process::{Command, Stdio};

/// The tour, with all privileges that there are or without that to capture packets; `None` where a tool is missing.
fn demo(privileged: bool) -> Option<Said> {
    let program = recorder_program();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/demo");
    let (bash, setpriv) = (tool("bash")?, tool("setpriv")?);
    tool("python3")?;
    tool("curl")?;
    let folder = folder();
    let mut command = Command::new(if privileged { &bash } else { &setpriv });
    if !privileged {
        command.args(["--inh-caps=-net_raw", "--bounding-set=-net_raw"]).arg(bash);
    }
    command.arg(script).arg(program.parent().unwrap());
    command.env("HOLDFAST_DEMO_DIR", folder.path()).env("HOME", folder.path());
    command.env("HOLDFAST_RUN", folder.path().join("run")).env_remove("HOLDFAST_CONFIG");
    let said = Said::from(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(folder.path().read_dir().unwrap().all(|left| left.unwrap().file_name() == "run"), "it cleans up");
    Some(said)
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!(
            "this is not root: whether packets may be captured is not known, and of them it is not checked"
        );
    }
    is_root
}

#[test]
fn the_demo_shows_what_it_says_with_packets() {
    let Some(said) = is_root().then(|| demo(true)).flatten() else { return };
    assert!(said.out.contains("of packets") || said.out.contains("a web transfer at"), "{}", said.out);
}

#[test]
fn the_demo_shows_what_it_says_with_a_file() {
    let Some(said) = demo(!rustix::process::geteuid().is_root()) else { return };
    assert!(said.out.contains("element found") && said.out.contains("distilled into"), "{}", said.out);
}
