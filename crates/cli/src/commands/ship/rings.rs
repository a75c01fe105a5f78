//! Rings of a shipper: their closed holds are staged as datasets in the state folder, and shipped from there.

use crate::out::{notices, say};
use holdfast_base::failure::{Failure, Result};
use holdfast_client::attribution::Attribution;
use holdfast_client::session;
use holdfast_dataset::Options;
use holdfast_ship::settings::{FolderSettings, RingSelect, RingSettings, Settings};
use holdfast_vault::{Staging, stage};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Pause before a ring that could not be read is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Pieces of the pause, between which the stop flag is looked at.
const STEP: Duration = Duration::from_millis(100);

/// Threads that stage the holds of rings.
pub(super) struct RingFeeds {
    threads: Vec<JoinHandle<()>>,
}

impl RingFeeds {
    /// Adds the staging folders to the settings and starts the threads; with `once`, stages what is there and returns.
    pub(super) fn start(settings: &mut Settings, once: bool, stop: &Arc<AtomicBool>) -> Result<Self> {
        let mut threads = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let staged = settings.state.folder.join("rings");
        for (number, ring) in settings.rings.clone().into_iter().enumerate() {
            let path = session::ring_path(&ring.ring)?;
            let name = folder_name(&path, &names)?;
            let folder = staged.join(&name);
            names.push(name);
            std::fs::create_dir_all(&folder)
                .map_err(|error| Failure::io("cannot make the folder", &folder, &error))?;
            settings.folders.push(staging_folder(&ring, &folder));
            // Earlier versions named the folders by the order of the tables.
            let numbered = staged.join(format!("{number}"));
            if has_datasets(&numbered) {
                settings.folders.push(staging_folder(&ring, &numbered));
            }
            if once {
                feed(&ring, &path, &folder, true, stop)?;
                continue;
            }
            let stop = Arc::clone(stop);
            let started =
                Builder::new().name("ring".to_owned()).spawn(move || follow(&ring, &path, &folder, &stop));
            threads.push(started.map_err(|error| Failure::failed(format_args!("cannot start: {error}")))?);
        }
        Ok(Self { threads })
    }

    /// Waits for the threads, which end by the stop flag.
    pub(super) fn join(self) -> Result<()> {
        for thread in self.threads {
            thread.join().map_err(|_| Failure::failed("the staging of a ring has failed"))?;
        }
        Ok(())
    }
}

/// Name of the staging folder of a ring, wherever its table stands. Further tables of the same ring get numbers.
fn folder_name(ring: &Path, others: &[String]) -> Result<String> {
    let absolute = std::path::absolute(ring);
    let absolute = absolute.map_err(|error| Failure::io("cannot find the ring", ring, &error))?;
    let hash = blake3::hash(absolute.as_os_str().as_encoded_bytes());
    let name: String = hash.to_hex().chars().take(16).collect();
    let count = others.iter().filter(|other| other.starts_with(&name)).count();
    Ok(if count == 0 { name } else { format!("{name}-{count}") })
}

/// Settings that ship the staged datasets of a ring from a folder.
fn staging_folder(ring: &RingSettings, folder: &Path) -> FolderSettings {
    FolderSettings {
        into: ring.into.clone(),
        priority: ring.priority,
        include: vec!["hold-*.mcap".to_owned()],
        quiet: STEP,
        removes: true,
        ..FolderSettings::new(folder)
    }
}

/// True if a folder has staged datasets.
fn has_datasets(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("hold-"))
    })
}

/// Stages holds until the stop; a ring that cannot be read is tried again.
fn follow(ring: &RingSettings, path: &Path, folder: &Path, stop: &AtomicBool) {
    let mut told = None;
    while !stop.load(Ordering::Relaxed) {
        let Err(failure) = feed(ring, path, folder, false, stop) else { return };
        let text = failure.to_string();
        if told.as_ref() != Some(&text) {
            say(&format!("{}: {text}; trying again", path.display()));
            told = Some(text);
        }
        for _ in 0..RETRY.as_millis() / STEP.as_millis() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

fn feed(ring: &RingSettings, path: &Path, folder: &Path, once: bool, stop: &AtomicBool) -> Result<()> {
    let by = Attribution { reason: Some("shipping".to_owned()), owner: None };
    let staging = Staging {
        ring: path,
        folder,
        takes_all: ring.select == RingSelect::All,
        options: Options::default(),
        by: &by,
        once,
        stop,
    };
    stage(&staging, &notices(), &mut |hold, evacuated| {
        if evacuated.released.is_none() {
            say(&format!(
                "hold {hold} is staged, and not released: {} places are damaged",
                evacuated.damaged.len()
            ));
        }
        Ok(())
    })
}
