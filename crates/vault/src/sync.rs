//! Synchronisation: copies the objects that a second vault lacks, each verified.

use crate::vault::Vault;
use holdfast_base::failure::Result;
use holdfast_dataset::RangeRead as _;
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

/// Bytes that are copied at once.
const STEP: u64 = 32 << 20;

/// Result of a synchronisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Objects that were copied.
    pub copied: u64,
    /// Bytes of those objects.
    pub copied_bytes: u64,
    /// Objects that were in both vaults.
    pub present: u64,
    /// Paths that have objects of different sizes; neither was changed.
    pub different: Vec<String>,
}

/// Copies what `to` lacks of the objects below a prefix of `from`. `progress` is told the bytes copied, and of how many.
pub fn sync(
    from: &Arc<Vault>,
    to: &Arc<Vault>,
    prefix: &str,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SyncReport> {
    let there: HashMap<String, u64> =
        to.list(prefix)?.into_iter().map(|entry| (entry.path, entry.bytes)).collect();
    let mut report = SyncReport::default();
    let mut missing = Vec::new();
    for entry in from.list(prefix)? {
        match there.get(&entry.path) {
            Some(bytes) if *bytes == entry.bytes => report.present += 1,
            Some(_) => report.different.push(entry.path),
            None => missing.push(entry),
        }
    }
    let all = missing.iter().map(|entry| entry.bytes).sum();
    progress(0, all);
    for entry in missing {
        let (before, mut done) = (report.copied_bytes, 0);
        copy(from, to, &entry.path, false, &mut |bytes| {
            done += bytes;
            progress(before + done, all);
        })?;
        report.copied += 1;
        report.copied_bytes += entry.bytes;
    }
    Ok(report)
}

/// Copies one object, and verifies the copy. `passed` is told the bytes of each step.
pub(crate) fn copy(
    from: &Arc<Vault>,
    to: &Arc<Vault>,
    path: &str,
    replace: bool,
    passed: &mut dyn FnMut(u64),
) -> Result<()> {
    copy_as(from, path, to, path, replace, passed)
}

pub(crate) fn copy_as(
    from: &Arc<Vault>,
    source: &str,
    to: &Arc<Vault>,
    path: &str,
    replace: bool,
    passed: &mut dyn FnMut(u64),
) -> Result<()> {
    let object = from.object(source)?;
    let mut upload = if replace { to.replace(path)? } else { to.upload(path)? };
    upload.narrow(from.access(source));
    let mut at = 0;
    while at < object.size() {
        let length = STEP.min(object.size() - at);
        let bytes = object.read(at, length as usize);
        let bytes = bytes.map_err(|error| from.failure("cannot read the object", source, &error))?;
        let written = upload.write_all(&bytes);
        written.map_err(|error| to.failure("cannot store the object", path, &error))?;
        at += length;
        passed(length);
    }
    upload.verify()?;
    upload.publish()
}
