//! The drive by itself: how fast it writes and reads at places all over it. The whole drive squeezed into a small file, so
//! that all its rates are there.

use super::MIB;
use super::outcome::ResultStore;
use super::stand::StandSetup;
use crate::emulated::Emulated;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale};
use holdfast_media::Buffer;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::time::Instant;

/// Under this name it is kept.
pub const NAME: &str = "zones";

/// Bytes at a place: the first take the arm there, the rest count. They are one request, in whose pieces no revolution
/// is lost.
const FIRST: usize = 4 << 20;
const REST: usize = 36 << 20;

/// Places.
const PLACES: u64 = 20;

/// A place: its share of the drive, and MiB/s of writing and reading.
pub type Zone = (f64, f64, f64);

/// Measures the drive, unless that was done.
pub fn measure(store: &ResultStore, setup: &StandSetup) -> Result<(), BenchError> {
    if of(store).is_some() {
        return Ok(());
    }
    for _ in 0..4 {
        let (zones, too_slow) = once(setup)?;
        if !too_slow {
            let rows: Vec<Value> = zones.iter().map(|(at, write, read)| json!([at, write, read])).collect();
            return store
                .put(NAME, &json!({ "columns": ["place", "write_mib_s", "read_mib_s"], "zones": rows }));
        }
        println!("{NAME}: the machine was too slow, discarded");
    }
    Ok(())
}

/// What was measured.
pub fn of(store: &ResultStore) -> Option<Vec<Zone>> {
    let value = store.get(NAME)?;
    let row = |row: &Value| Some((row.get(0)?.as_f64()?, row.get(1)?.as_f64()?, row.get(2)?.as_f64()?));
    value.get("zones")?.as_array()?.iter().map(row).collect()
}

fn once(setup: &StandSetup) -> Result<(Vec<Zone>, bool), BenchError> {
    let place = WorkFolder::with_room(16 << 20)?;
    let bytes = setup.scale.pick(64 << 20, 1 << 30);
    let bytes_text = bytes.to_string();
    let drive =
        Emulated::mount(&place, &["--model", "paper", "--squeezed", "--bytes", &bytes_text], setup.scale)?;
    drive.order(setup.scale.pick("fast", "ok"))?;
    drive.order("reset")?;
    let path = drive.path();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlags::DIRECT.bits() as i32);
    let file = options.open(&path).map_err(BenchError::file(&path, "open it"))?;
    let (first, rest) = setup.scale.pick((1 << 20, 2 << 20), (FIRST, REST));
    let mut buffer = Buffer::aligned(rest).map_err(BenchError::during("getting a buffer"))?;
    let stretch = (first + rest) as u64;
    let mut zones = Vec::new();
    for n in 0..setup.scale.pick(2, PLACES + 1) {
        let begin = (bytes - stretch) * n / PLACES / 4096 * 4096;
        let mut rates = [0.0; 2];
        for (rate, write) in rates.iter_mut().zip([true, false]) {
            let mut transfer = |at: u64, len: usize| {
                let part = &mut buffer[..len];
                let done = if write { file.write_all_at(part, at) } else { file.read_exact_at(part, at) };
                done.map_err(BenchError::file(&path, "use it"))
            };
            transfer(begin, first)?;
            let start = Instant::now();
            transfer(begin + first as u64, rest)?;
            *rate = rest as f64 / MIB / start.elapsed().as_secs_f64();
        }
        let middle = begin + stretch / 2;
        zones.push((middle as f64 / bytes as f64, rates[0], rates[1]));
    }
    Ok((zones, setup.scale == Scale::Real && drive.too_slow()?))
}
