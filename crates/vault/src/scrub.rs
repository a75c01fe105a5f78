//! Scrubbing: verifies all datasets of a vault, and repairs damaged ones from another vault.

use crate::place::is_named_mcap;
use crate::store::Entry;
use crate::sync::copy_as;
use crate::vault::Vault;
use holdfast_base::Rate;
use holdfast_base::failure::Result;
use holdfast_dataset::{DatasetError, Finding, RangeRead as _, verify_parts};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Scrubbing of a vault.
pub struct Scrubbing<'a> {
    /// Vault whose datasets are verified.
    pub vault: &'a Arc<Vault>,
    /// Vault that has copies of its datasets.
    pub repair_from: Option<&'a Arc<Vault>>,
    /// Bytes that are read per second at most.
    pub rate: Option<Rate>,
    /// Path behind which it goes on; empty: from the beginning.
    pub after: String,
}

/// Dataset that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Path of the dataset.
    pub path: String,
    /// Parts that are damaged.
    pub findings: Vec<Finding>,
    /// Path in the other vault of the copy that repaired it.
    pub repaired_from: Option<String>,
}

/// Result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Datasets that were verified.
    pub datasets: u64,
    /// Bytes of those datasets.
    pub bytes: u64,
    /// Objects that are no datasets of Holdfast, and have no hashes to be verified by.
    pub others: u64,
    /// Datasets that are damaged, or were.
    pub damaged: Vec<Damage>,
}

/// Verifies all datasets. `done` is told each path that was verified, and the bytes so far and of all.
pub fn scrub(
    scrubbing: &Scrubbing<'_>,
    done: &mut dyn FnMut(&str, u64, u64) -> Result<()>,
) -> Result<ScrubReport> {
    let Scrubbing { vault, repair_from, rate, after } = scrubbing;
    let entries = vault.list("")?;
    let all = entries.iter().map(|entry| entry.bytes).sum();
    let mut report = ScrubReport::default();
    let mut passed = 0;
    for entry in entries {
        if entry.path > *after {
            let pace = rate.map(|rate| Pace { rate: rate.0.max(1), started: Instant::now() });
            match verified(vault, &entry, pace.as_ref())? {
                Verified::Other => report.others += 1,
                Verified::Dataset(findings) => {
                    report.datasets += 1;
                    report.bytes += entry.bytes;
                    if !findings.is_empty() {
                        let repaired_from =
                            repair_from.map(|from| repaired(vault, from, &entry.path)).transpose()?.flatten();
                        report.damaged.push(Damage { path: entry.path.clone(), findings, repaired_from });
                    }
                }
            }
        }
        passed += entry.bytes;
        done(&entry.path, passed, all)?;
    }
    Ok(report)
}

enum Verified {
    Dataset(Vec<Finding>),
    Other,
}

/// Limit on the rate at which a dataset is read.
struct Pace {
    rate: u64,
    started: Instant,
}

impl Pace {
    fn keep(&self, bytes: u64) {
        let due = Duration::from_secs_f64(bytes as f64 / self.rate as f64);
        std::thread::sleep(due.saturating_sub(self.started.elapsed()));
    }
}

fn verified(vault: &Arc<Vault>, entry: &Entry, pace: Option<&Pace>) -> Result<Verified> {
    if !is_named_mcap(&entry.path) {
        return Ok(Verified::Other);
    }
    let object = Arc::new(vault.object(&entry.path)?);
    let dataset = match holdfast_dataset::Dataset::open(Arc::clone(&object) as _) {
        Err(DatasetError::NoManifest) => return Ok(Verified::Other),
        Err(DatasetError::Io(error)) => {
            return Err(vault.failure("cannot read the dataset", &entry.path, &error));
        }
        Err(error) => {
            let finding = Finding { place: "the dataset".to_owned(), cause: error.to_string() };
            return Ok(Verified::Dataset(vec![finding]));
        }
        Ok(dataset) => dataset,
    };
    let mut keep = |bytes| {
        if let Some(pace) = pace {
            pace.keep(bytes);
        }
    };
    let findings = verify_parts(&dataset, &mut keep);
    let mut findings = findings.map_err(|error| vault.dataset_failure(&error, &entry.path))?;
    if object.size() != entry.bytes {
        let cause = format!("it has {} bytes, and is listed with {}", object.size(), entry.bytes);
        findings.push(Finding { place: "the dataset".to_owned(), cause });
    }
    Ok(Verified::Dataset(findings))
}

/// Replaces a damaged dataset by an undamaged copy, and returns where it was.
fn repaired(vault: &Arc<Vault>, from: &Arc<Vault>, path: &str) -> Result<Option<String>> {
    let wanted = vault.dataset(path).ok().map(|dataset| dataset.id().to_owned());
    let same_name = from.list(path)?.into_iter().filter(|entry| entry.path == path);
    let others = if wanted.is_some() { from.list("")? } else { Vec::new() };
    for entry in same_name.chain(others).filter(|entry| is_named_mcap(&entry.path)) {
        let Ok(copy) = from.dataset(&entry.path) else { continue };
        // Without a readable manifest the name alone tells which copy is meant.
        if wanted.as_deref().is_some_and(|id| id != copy.id()) {
            continue;
        }
        if verify_parts(&copy, &mut |_| ()).is_ok_and(|findings| findings.is_empty()) {
            copy_as(from, &entry.path, vault, path, true, &mut |_| ())?;
            return Ok(Some(entry.path));
        }
    }
    Ok(None)
}
