//! Writes the seeds of every target to FOLDER/TARGET/, where libFuzzer looks for them.

use std::fs;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder: PathBuf = std::env::args_os().nth(1).map_or_else(|| "fuzz/corpus".into(), Into::into);
    for target in holdfast_fuzz::TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
    }
    Ok(())
}
