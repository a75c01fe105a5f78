//! Staging: closed holds of a ring become datasets in a folder, from which a shipper sends them.
//!
//! A hold is released when its dataset is verified, as by `evacuate`. The file `staged` lists the holds that were staged, so
//! that one that could not be released is not written again.

use crate::place::Place;
use holdfast_base::HoldId;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::Notices;
use holdfast_client::attribution::Attribution;
use holdfast_client::session::{self, ring_failure};
use holdfast_dataset::{Evacuated, Evacuation, Options, SourceAccess, evacuate};
use holdfast_ring::HoldStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Owner whose holds are marked for shipping.
pub const SHIPPING_OWNER: &str = "ship";

/// Time between two looks at the holds. A hold that got no slot meanwhile is closed.
const TURN: Duration = Duration::from_secs(2);

/// Time between two looks at the stop flag.
const PAUSE: Duration = Duration::from_millis(100);

/// File of the numbers of staged holds.
const STAGED: &str = "staged";

/// Staging of the holds of a ring.
pub struct Staging<'a> {
    /// Ring of the holds.
    pub ring: &'a Path,
    /// Folder of the datasets.
    pub folder: &'a Path,
    /// True for all closed holds, false for those whose owner is `ship`.
    pub takes_all: bool,
    /// Options of the datasets.
    pub options: Options,
    /// Owner and reason, for the audit log.
    pub by: &'a Attribution,
    /// True if it ends when every closed hold is staged.
    pub once: bool,
    /// Set when it is to end.
    pub stop: &'a AtomicBool,
}

/// Stages holds until it is stopped, or, with `once`, until none is left. `staged` is told of each dataset.
pub fn stage(
    staging: &Staging<'_>,
    notices: &Notices,
    staged: &mut dyn FnMut(HoldId, &Evacuated) -> Result<()>,
) -> Result<()> {
    fs::create_dir_all(staging.folder)
        .map_err(|error| Failure::io("cannot make the folder", staging.folder, &error))?;
    let mut done = read_staged(staging.folder)?;
    let mut seen = BTreeMap::new();
    while !staging.stop.load(Ordering::Relaxed) {
        let candidates = candidates(staging, &done)?;
        for hold in &candidates {
            let is_closed = seen.get(&hold.id) == Some(&hold.sequences);
            if !is_closed || staging.stop.load(Ordering::Relaxed) {
                continue;
            }
            let evacuated = stage_hold(staging, hold.id, notices)?;
            note_staged(staging.folder, hold.id)?;
            done.insert(hold.id.0);
            staged(hold.id, &evacuated)?;
        }
        if staging.once && candidates.iter().all(|hold| done.contains(&hold.id.0)) {
            break;
        }
        seen = candidates.into_iter().map(|hold| (hold.id, hold.sequences)).collect();
        let end = Instant::now() + TURN;
        while Instant::now() < end && !staging.stop.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Holds that may be closed and are not staged.
fn candidates(staging: &Staging<'_>, done: &BTreeSet<u64>) -> Result<Vec<HoldStatus>> {
    let holds = session::open(staging.ring)?.holds().map_err(|error| ring_failure(&error))?;
    let is_standing = |hold: &HoldStatus| hold.condition_hold.as_ref().is_some_and(|found| found.standing);
    let is_wanted = |hold: &HoldStatus| {
        (staging.takes_all || hold.owner == SHIPPING_OWNER)
            && hold.slots > 0
            && !is_standing(hold)
            && !done.contains(&hold.id.0)
    };
    Ok(holds.into_iter().filter(is_wanted).collect())
}

fn stage_hold(staging: &Staging<'_>, hold: HoldId, notices: &Notices) -> Result<Evacuated> {
    let path = staging.folder.join(format!("hold-{hold}.mcap"));
    if path.exists() {
        // A crash came between the dataset and its note; the hold still has everything.
        fs::remove_file(&path).map_err(|error| Failure::io("cannot remove", &path, &error))?;
    }
    let evacuation =
        Evacuation { ring: staging.ring, hold, options: staging.options, release: true, by: staging.by };
    evacuate(&evacuation, Place::Local(path).target(SourceAccess::of(staging.ring))?, notices, &mut |_, _| {})
}

fn staged_file(folder: &Path) -> PathBuf {
    folder.join(STAGED)
}

fn read_staged(folder: &Path) -> Result<BTreeSet<u64>> {
    let file = staged_file(folder);
    match fs::read_to_string(&file) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Failure::io("cannot read", &file, &error)),
    }
}

fn note_staged(folder: &Path, hold: HoldId) -> Result<()> {
    let file = staged_file(folder);
    let note = || {
        let mut file = File::options().create(true).append(true).open(&file)?;
        file.write_all(format!("{hold}\n").as_bytes())?;
        file.sync_data()
    };
    note().map_err(|error| Failure::io("cannot write", &file, &error))
}
