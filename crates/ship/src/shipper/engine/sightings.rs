//! Sightings of an engine: files are found, grow, end, get other names and vanish.

use super::{Engine, Message, now_ms};
use crate::fleet::{FileKey, Rank};
use crate::folder_scan::{FileSeen, Found, scan, shippable_name};
use crate::ledger::{self, FileRow, FileStage};
use crate::path_filter::{Marker, PathRole};
use crate::run_end::{RunFacts, RunState};
use crate::shipper::Notice;
use crate::shipper::courier::SharedDesk;
use crate::shipper::files::Tracked;
use crate::sighting::{Sighting, SightingKind};
use crate::transfer::{Delivery, Event, FileIdentity, Observation, Transfer};
use holdfast_remote::UploadAddress;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Found files that are taken in between other work.
const SCAN_STEP: usize = 512;

fn observation(seen: &FileSeen) -> Observation {
    Observation {
        identity: FileIdentity { device: seen.device, inode: seen.inode },
        size: seen.size,
        modified: seen.modified_ns,
        changed: seen.changed_ns,
    }
}

impl Engine {
    pub(super) fn message(
        &mut self,
        message: Message,
        messages: &mpsc::Sender<Message>,
    ) -> ledger::Result<()> {
        match message {
            Message::Sighting(folder, sighting) => self.sighting(folder, sighting, messages),
            Message::Scanned { folder, below, found, is_last } => {
                self.scanned(folder, &below, found, is_last)
            }
        }
    }

    pub(super) fn relative(&self, folder: usize, path: &Path) -> Option<String> {
        let relative = path.strip_prefix(&self.folders[folder].root).ok()?;
        shippable_name(relative).ok().map(str::to_owned)
    }

    pub(super) fn sighting(
        &mut self,
        folder: usize,
        sighting: Sighting,
        messages: &mpsc::Sender<Message>,
    ) -> ledger::Result<()> {
        let Sighting { path, kind } = sighting;
        match kind {
            SightingKind::Rescan => {
                self.rescan(folder, path, messages.clone());
                return Ok(());
            }
            SightingKind::Warning(text) => {
                self.warn("warning", &path.to_string_lossy(), &text);
                return Ok(());
            }
            SightingKind::Unshippable(text) => {
                self.unshippable(folder, &path, &text);
                return Ok(());
            }
            SightingKind::Changed
            | SightingKind::Closed
            | SightingKind::Removed
            | SightingKind::Renamed { .. } => {}
        }
        let Some(relative) = self.relative(folder, &path) else { return Ok(()) };
        match kind {
            SightingKind::Removed => self.vanished(folder, &relative),
            SightingKind::Renamed { from } => {
                let from = self.relative(folder, &from);
                match from.and_then(|from| self.files.key(folder, &from)) {
                    Some(key) => self.renamed(folder, key, &relative)?,
                    None => self.sight(folder, &relative, true)?,
                }
            }
            kind => self.sight(folder, &relative, kind == SightingKind::Closed)?,
        }
        Ok(())
    }

    pub(super) fn rescan(&mut self, folder: usize, path: PathBuf, messages: mpsc::Sender<Message>) {
        let (root, filter) = (self.folders[folder].root.clone(), self.folders[folder].filter.clone());
        let below = self.relative(folder, &path).unwrap_or_default();
        tokio::task::spawn_blocking(move || {
            let mut found = Vec::new();
            let send = |found: Vec<Found>, is_last| {
                let below = below.clone();
                let _ = messages.blocking_send(Message::Scanned { folder, below, found, is_last });
            };
            let scanned = scan(&root, &path, &filter, &mut |item| {
                found.push(item);
                if found.len() >= SCAN_STEP {
                    send(std::mem::take(&mut found), false);
                }
            });
            if let Err(error) = scanned {
                let reason = format!("{error}; check the folder");
                found.push(Found::Unshippable { path, reason });
            }
            send(found, true);
        });
    }

    pub(super) fn scanned(
        &mut self,
        folder: usize,
        below: &str,
        found: Vec<Found>,
        is_last: bool,
    ) -> ledger::Result<()> {
        for item in found {
            match item {
                Found::File(seen) => self.seen(folder, &seen, false)?,
                Found::Marker(seen) => self.marked(folder, &seen.relative),
                Found::Unshippable { path, reason } => {
                    self.unshippable(folder, &path, &reason);
                }
            }
        }
        if !is_last {
            return Ok(());
        }
        // Deletions are found by looking for the known files, because the tree may have changed during the scan.
        for key in self.files.below(folder, below) {
            if let Some(relative) = self.files.get(key).map(|file| file.relative.clone()) {
                self.vanished(folder, &relative);
            }
        }
        if below.is_empty() && !std::mem::replace(&mut self.folders[folder].is_scanned, true) {
            self.adopt_lost_uploads(folder)?;
        }
        Ok(())
    }

    /// Takes up uploads of an earlier process whose files are gone.
    pub(super) fn adopt_lost_uploads(&mut self, folder: usize) -> ledger::Result<()> {
        for row in self.ledger.files(&self.folders[folder].name.clone())? {
            if row.upload.is_some() && self.files.key(folder, &row.key.relative).is_none() {
                let key = self.meet(folder, &row.key.relative, None)?;
                self.fleet.observe(self.now(), key, Event::Gone);
            }
        }
        Ok(())
    }

    pub(super) fn sight(&mut self, folder: usize, relative: &str, is_closed: bool) -> ledger::Result<()> {
        match self.folders[folder].filter.role(relative) {
            PathRole::Ignored => return Ok(()),
            PathRole::Marker => {
                self.marked(folder, relative);
                return Ok(());
            }
            PathRole::File => {}
        }
        let path = self.folders[folder].root.join(relative);
        match FileSeen::of(&self.folders[folder].root, &path) {
            Ok(Some(seen)) => self.seen(folder, &seen, is_closed),
            Ok(None) => {
                self.vanished(folder, relative);
                Ok(())
            }
            Err(error) => {
                self.unshippable(folder, Path::new(relative), &format!("{error}; check the file"));
                Ok(())
            }
        }
    }

    /// Tells of a file or folder that cannot be sent.
    fn unshippable(&mut self, folder: usize, path: &Path, reason: &str) {
        let shown = path.to_string_lossy();
        self.unsent.add(self.folders[folder].root.join(path), &shown, reason);
        self.warn("warning", &shown, reason);
    }

    pub(super) fn seen(&mut self, folder: usize, seen: &FileSeen, is_closed: bool) -> ledger::Result<()> {
        let now = self.now();
        let observed = observation(seen);
        self.unsent.sighted(&self.folders[folder].root.join(&seen.relative));
        let (key, is_new) = match self.files.key(folder, &seen.relative) {
            Some(key) => (key, false),
            None => (self.meet(folder, &seen.relative, Some(&observed))?, true),
        };
        let is_changed =
            self.fleet.get(key).and_then(|transfer| transfer.observed().copied()) != Some(observed);
        let Some(file) = self.files.get_mut(key) else { return Ok(()) };
        // Files that were there before the shipper are no production of its time.
        if !is_new || self.folders[folder].is_scanned {
            self.meter.produced(seen.size.saturating_sub(file.size));
        }
        file.size = seen.size;
        if is_changed || is_new {
            // A file that was written long ago is quiet already.
            let age = now_ms().saturating_sub(seen.modified_ns / 1_000_000).max(0) as u64;
            let age = if is_new { Duration::from_millis(age) } else { Duration::ZERO };
            file.facts = RunFacts { changed_at: now.saturating_sub(age), ..RunFacts::default() };
            if age > now {
                file.facts.is_closed = age >= self.folders[folder].quiet;
            }
        }
        file.facts.is_closed |= is_closed;
        self.fleet.observe(now, key, Event::Observed(observed));
        let settings = &self.folders[folder];
        self.fleet.set_rank(key, Rank::new(settings.priority, seen.modified_ns, settings.newest_first));
        if let Some(marker) = settings.filter.marker_of(&seen.relative) {
            file.facts.is_marked = settings.root.join(marker).exists();
        }
        self.judge_run(key);
        Ok(())
    }

    /// Ends the run of a file, or sets the time at which it ends.
    pub(super) fn judge_run(&mut self, key: FileKey) {
        let now = self.now();
        let Some(file) = self.files.get(key) else { return };
        let folder = &self.folders[file.folder];
        match folder.end.state(&file.facts, folder.quiet, now) {
            RunState::Ended => {
                self.files.set_quiet(key, None);
                self.fleet.observe(now, key, Event::Ended);
            }
            RunState::Open(at) => self.files.set_quiet(key, at),
        }
    }

    pub(super) fn end_quiet_runs(&mut self) {
        while let Some((at, key)) = self.files.first_quiet() {
            if at > self.now() {
                break;
            }
            self.files.set_quiet(key, None);
            self.judge_run(key);
        }
    }

    pub(super) fn marked(&mut self, folder: usize, marker: &str) {
        let keys: Vec<FileKey> = match self.folders[folder].filter.marker() {
            Some(Marker::Suffix(suffix)) => {
                let name = marker.strip_suffix(suffix.as_str());
                name.and_then(|name| self.files.key(folder, name)).into_iter().collect()
            }
            Some(Marker::Name(_)) => {
                let filter = &self.folders[folder].filter;
                let is_of = |relative: &str| filter.marker_of(relative).as_deref() == Some(marker);
                let below = marker.rsplit_once('/').map_or("", |(below, _)| below);
                let mut keys = self.files.below(folder, below);
                keys.retain(|key| self.files.get(*key).is_some_and(|file| is_of(&file.relative)));
                keys
            }
            None => Vec::new(),
        };
        for key in keys {
            if let Some(file) = self.files.get_mut(key) {
                file.facts.is_marked = true;
            }
            self.judge_run(key);
        }
    }

    /// Adds a file with the state that the ledger has of it.
    pub(super) fn meet(
        &mut self,
        folder: usize,
        relative: &str,
        observed: Option<&Observation>,
    ) -> ledger::Result<FileKey> {
        let name =
            ledger::FileKey { folder: self.folders[folder].name.clone(), relative: relative.to_owned() };
        let mut row = self.ledger.file(&name)?;
        if let (None, Some(seen)) = (&row, observed) {
            row = self.renamed_meanwhile(folder, &name, seen)?;
        }
        let upload = row.as_ref().and_then(|row| Some((row.upload.clone()?, row.upload_path.clone()?)));
        let address = upload.as_ref().and_then(|(address, _)| address.parse::<UploadAddress>().ok());
        let transfer = match (&row, address) {
            (_, Some(address)) => {
                let made_for = upload.as_ref().map(|(_, path)| path.as_str());
                Transfer::resumed(address, made_for != Some(relative))
            }
            (Some(row), None) if row.stage == FileStage::Done => match self.ledger.newest_version(&name)? {
                Some(version) => {
                    let observed = Observation {
                        identity: FileIdentity { device: row.device, inode: row.inode },
                        size: version.size,
                        modified: version.modified_ns,
                        changed: version.changed_ns,
                    };
                    let root = Some(version.blake3);
                    let delivery =
                        Delivery { root, size: version.size, is_verified: version.verified, is_cut: false };
                    Transfer::delivered(observed, delivery)
                }
                None => Transfer::new(),
            },
            _ => Transfer::new(),
        };
        let key = self.files.insert(Tracked {
            folder,
            relative: relative.to_owned(),
            facts: RunFacts { changed_at: self.now(), ..RunFacts::default() },
            desk: SharedDesk::default(),
            recorded: upload,
            message: None,
            unread: 0,
            quiet_at: None,
            size: 0,
        });
        self.fleet.insert(key, transfer, self.rules(), Rank::new(self.folders[folder].priority, 0, false));
        Ok(key)
    }

    /// Row of a file that was renamed while no shipper watched.
    pub(super) fn renamed_meanwhile(
        &mut self,
        folder: usize,
        name: &ledger::FileKey,
        seen: &Observation,
    ) -> ledger::Result<Option<FileRow>> {
        let rows = self.ledger.files_by_inode(seen.identity.device, seen.identity.inode)?;
        let root = &self.folders[folder].root;
        let is_gone = |row: &FileRow| !root.join(&row.key.relative).exists();
        let found = rows
            .into_iter()
            .find(|row| row.upload.is_some() && row.key.folder == name.folder && is_gone(row));
        let Some(row) = found else { return Ok(None) };
        self.ledger.rename_file(&row.key, name)?;
        Ok(Some(FileRow { key: name.clone(), ..row }))
    }

    pub(super) fn renamed(&mut self, folder: usize, key: FileKey, to: &str) -> ledger::Result<()> {
        if self.folders[folder].filter.role(to) != PathRole::File {
            let from = self.files.get(key).map(|file| file.relative.clone());
            if let Some(from) = from {
                self.vanished(folder, &from);
            }
            return self.sight(folder, to, true);
        }
        if let Some(replaced) = self.files.key(folder, to).filter(|replaced| *replaced != key) {
            self.forget(replaced);
        }
        let name = |relative: &str| ledger::FileKey {
            folder: self.folders[folder].name.clone(),
            relative: relative.to_owned(),
        };
        if let Some(file) = self.files.get(key) {
            let (from, to) = (name(&file.relative), name(to));
            if self.fleet.get(key).is_some_and(|transfer| transfer.address().is_some()) {
                self.ledger.rename_file(&from, &to)?;
            } else {
                self.ledger.remove_file(from);
            }
        }
        self.files.rename(key, to);
        self.fleet.observe(self.now(), key, Event::Renamed);
        self.sight(folder, to, true)
    }

    /// Takes note that a file may be gone.
    pub(super) fn vanished(&mut self, folder: usize, relative: &str) {
        let path = self.folders[folder].root.join(relative);
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            return;
        }
        if let Some(key) = self.files.key(folder, relative) {
            self.fleet.observe(self.now(), key, Event::Gone);
            self.retire_if_settled(key);
            return;
        }
        for key in self.files.below(folder, relative) {
            self.fleet.observe(self.now(), key, Event::Gone);
            self.retire_if_settled(key);
        }
    }

    /// Forgets a file that is gone and needs nothing any more.
    pub(super) fn retire_if_settled(&mut self, key: FileKey) {
        let is_settled = self.fleet.get(key).is_some_and(Transfer::is_settled);
        let Some(file) = self.files.get(key).filter(|_| is_settled) else { return };
        let path = self.folders[file.folder].root.join(&file.relative);
        if path.symlink_metadata().is_err() {
            let relative = file.relative.clone();
            let was_sent = self.fleet.get(key).is_some_and(|transfer| transfer.delivery().is_some());
            if !was_sent {
                self.unsent.add_lost(path, &relative);
                self.notices.push(Notice::Lost { path: relative });
            }
            self.forget(key);
        }
    }

    /// Removes a file from memory and ledger.
    pub(super) fn forget(&mut self, key: FileKey) {
        self.fleet.remove(key);
        if let Some(file) = self.files.remove(key) {
            let folder = self.folders[file.folder].name.clone();
            self.ledger.remove_file(ledger::FileKey { folder, relative: file.relative });
        }
    }
}
