//! Actions of an engine and their answers: the courier is sent, and what it brings back is recorded.

use super::{Engine, now_ms};
use crate::fleet::FileKey;
use crate::ledger::{self, FileRow, FileStage, LedgerEvent, ShippedVersion};
use crate::link::Outage;
use crate::shipper::Notice;
use crate::shipper::courier::{Answer, Job, LinkReport, SharedDesk, carry};
use crate::transfer::{Event, Failure, FileIdentity, Transfer};
use holdfast_remote::{Extension, Site, SiteExtension};
use std::sync::Arc;

impl Engine {
    pub(super) fn start_actions(&mut self) {
        while let Some((key, action)) = self.fleet.next(self.now()) {
            if self.fleet.link().outage().is_some_and(|(outage, _)| outage == Outage::Denied) {
                self.renew_token();
            }
            let Some(file) = self.files.get(key) else {
                self.fleet.answer(self.now(), key, Some(Event::Failed(Failure::Transient)));
                continue;
            };
            let folder = &self.folders[file.folder];
            let job = Job {
                key,
                action,
                site: self.site.clone(),
                project: self.settings.archive.project.clone(),
                object: folder.object(&file.relative),
                path: folder.root.join(&file.relative),
                observed: self.fleet.get(key).and_then(|transfer| transfer.observed().copied()),
                desk: Arc::clone(&file.desk),
                throttle: Arc::clone(&self.throttle),
                compress: self.pace.compresses(),
            };
            let answers = self.answers.clone();
            tokio::spawn(async move { drop(answers.send(carry(job).await)) });
        }
    }

    /// Reads the token again: somebody may have replaced it because of the outage.
    pub(super) fn renew_token(&mut self) {
        // A file that is being replaced is read at the next probe.
        let Ok(endpoint) = self.settings.archive.endpoint() else { return };
        if endpoint.token != self.token
            && let Ok(site) = Site::connect(&endpoint)
        {
            self.site = site;
            self.token = endpoint.token;
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) -> ledger::Result<()> {
        let now = self.now();
        self.report_link(&answer);
        self.measure(&answer);
        let before = self.rules();
        if let Some(abilities) = &answer.abilities {
            self.can_defer = abilities.has(Extension::CreationDeferLength);
            if abilities.has_site(SiteExtension::Ahead) {
                self.pace.allow_ahead();
            }
        }
        self.window = self.pace.window();
        if self.rules() != before {
            self.fleet.set_rules(self.rules());
        }
        let Answer { key, event, message, version, object, needs_sight, .. } = answer;
        let Some(file) = self.files.get_mut(key) else {
            self.fleet.answer(now, key, event);
            return Ok(());
        };
        let is_news = message.is_some() && file.message != message;
        file.unread = if needs_sight { file.unread.saturating_add(1) } else { 0 };
        if is_news {
            file.message.clone_from(&message);
        }
        let unreadable = file.message.clone();
        let (folder, relative) = (file.folder, file.relative.clone());
        let is_current = self.folders[folder].object(&relative) == object;
        let is_stored = matches!(event, Some(Event::Stored { .. }));
        let is_compared = matches!(event, Some(Event::Compared(_)));
        let is_created = matches!(event, Some(Event::Created(_)));
        let was_refused = self.fleet.get(key).is_some_and(Transfer::is_refused);
        let made_for =
            object.strip_prefix(&format!("{}/", self.folders[folder].into)).unwrap_or(&object).to_owned();
        match event {
            // The file was renamed once more meanwhile.
            None if !is_current => self.fleet.answer(now, key, Some(Event::Failed(Failure::Transient))),
            Some(Event::Created(address)) => {
                self.fleet.answer(now, key, Some(Event::Created(address)));
                if !is_current {
                    self.fleet.observe(now, key, Event::Renamed);
                }
            }
            event => self.fleet.answer(now, key, event),
        }
        if is_stored || is_compared {
            self.delivered(key, version, is_stored)?;
        }
        if !was_refused && self.fleet.get(key).is_some_and(Transfer::is_refused) {
            let reason = message.unwrap_or_default();
            self.warn("refused", &relative, &reason);
            self.notices.push(Notice::Refused { path: relative.clone(), reason });
        }
        self.record_upload(key, is_created.then_some(made_for));
        if needs_sight {
            self.sight(folder, &relative, false)?;
            let is_there = self.folders[folder].root.join(&relative).symlink_metadata().is_ok();
            if !is_there && let Some(file) = self.files.get_mut(key) {
                file.unread = 0;
            }
            if let (true, Some(reason)) = (is_there && is_news, unreadable) {
                self.warn("warning", &relative, &reason);
            }
        }
        self.retire_if_settled(key);
        Ok(())
    }

    /// Keeps the ledger's record of a file's upload equal to that of its transfer.
    pub(super) fn record_upload(&mut self, key: FileKey, made_for: Option<String>) {
        let (Some(transfer), Some(file)) = (self.fleet.get(key), self.files.get_mut(key)) else {
            return;
        };
        let address = transfer.address().map(ToString::to_string);
        let recorded = match (&address, made_for, &file.recorded) {
            (Some(address), Some(path), _) => Some((address.clone(), path)),
            (Some(address), None, Some((known, path))) if known == address => {
                Some((known.clone(), path.clone()))
            }
            // A small file that was sent whole is simply sent again after a crash.
            _ => None,
        };
        if recorded == file.recorded {
            return;
        }
        file.recorded.clone_from(&recorded);
        let identity = transfer.observed().map_or(FileIdentity { device: 0, inode: 0 }, |seen| seen.identity);
        let is_done = transfer.delivery().is_some();
        let (upload, upload_path) = recorded.unzip();
        let stage = match (&upload, is_done) {
            (_, true) => FileStage::Done,
            (Some(_), false) => FileStage::Sending,
            (None, false) => FileStage::Waiting,
        };
        let folder = self.folders[file.folder].name.clone();
        self.ledger.put_file(FileRow {
            key: ledger::FileKey { folder, relative: file.relative.clone() },
            device: identity.device,
            inode: identity.inode,
            upload,
            upload_path,
            stage,
        });
    }

    /// Records the delivery of a file, if its transfer has come to one. Without `is_first` the archive had the contents before.
    pub(super) fn delivered(
        &mut self,
        key: FileKey,
        version: Option<String>,
        is_first: bool,
    ) -> ledger::Result<()> {
        let (Some(transfer), Some(file)) = (self.fleet.get(key), self.files.get_mut(key)) else {
            return Ok(());
        };
        let (Some(delivery), Some(observed)) = (transfer.delivery(), transfer.observed().copied()) else {
            return Ok(());
        };
        let name = ledger::FileKey {
            folder: self.folders[file.folder].name.clone(),
            relative: file.relative.clone(),
        };
        let known = if is_first { None } else { self.ledger.newest_version(&name)? };
        file.desk = SharedDesk::default();
        file.recorded = None;
        file.message = None;
        let root = delivery.root.unwrap_or_else(|| blake3::Hash::from_bytes([0; 32]));
        let row = FileRow {
            key: name.clone(),
            device: observed.identity.device,
            inode: observed.identity.inode,
            upload: None,
            upload_path: None,
            stage: FileStage::Done,
        };
        let version_name = version.or_else(|| known.map(|known| known.version));
        let shipped = ShippedVersion {
            key: name,
            shipped_ms: now_ms(),
            size: delivery.size,
            modified_ns: observed.modified,
            changed_ns: observed.changed,
            blake3: root,
            version: version_name.unwrap_or_else(|| root.to_hex().to_string()),
            verified: delivery.is_verified,
        };
        self.ledger.finish_file(row, shipped);
        if is_first {
            self.meter.totals.files += 1;
            self.meter.totals.bytes += delivery.size;
            self.meter.totals.unverified += u64::from(!delivery.is_verified);
            let folder = &self.folders[file.folder];
            self.notices.push(Notice::Delivered { path: folder.object(&file.relative), delivery });
            if folder.removes && delivery.is_verified && !delivery.is_cut {
                let path = folder.root.join(&file.relative);
                if let Err(error) = std::fs::remove_file(&path) {
                    self.warn("warning", &path.to_string_lossy(), &format!("{error}; remove it"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn report_link(&mut self, answer: &Answer) {
        match answer.link {
            LinkReport::Untouched => {}
            LinkReport::Up => {
                if let Some((outage, since)) = self.fleet.link_succeeded(answer.request) {
                    self.ledger.end_outage(now_ms());
                    let lasted = self.now().saturating_sub(since);
                    self.notices.push(Notice::OutageEnded { outage, lasted });
                }
            }
            LinkReport::Down(outage, pause) => {
                let kind = |engine: &Self| engine.fleet.link().outage().map(|(outage, _)| outage);
                let before = kind(self);
                self.fleet.link_failed(self.now(), outage, answer.request, pause);
                if kind(self) != before {
                    let reason = answer.message.clone().unwrap_or_default();
                    self.ledger.begin_outage(now_ms(), outage.name());
                    self.warn("outage", "", &reason);
                    self.notices.push(Notice::OutageBegan { outage, reason });
                }
            }
        }
    }

    pub(super) fn measure(&mut self, answer: &Answer) {
        if let Some((bytes, is_again)) = answer.sent {
            self.meter.sent(bytes, is_again);
        }
        let is_damaged = match &answer.event {
            Some(Event::SegmentFailed { failure, .. }) => *failure == Failure::Damaged,
            // The archive's own copy may be damaged too, but then nothing was sent.
            Some(Event::Failed(failure)) => *failure == Failure::Damaged && answer.sent.is_some(),
            _ => false,
        };
        if is_damaged {
            self.meter.damaged();
        }
        if let Some((times, spent)) = &answer.times {
            self.pace.take(times);
            self.meter.totals.wire_bytes += times.wire_bytes;
            let bytes = answer.sent.map_or(0, |(bytes, _)| bytes);
            self.meter.segment(now_ms().div_euclid(60_000), bytes, spent);
        }
    }

    pub(super) fn warn(&mut self, kind: &str, path: &str, text: &str) {
        let event = LedgerEvent {
            time_ms: now_ms(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            text: text.to_owned(),
        };
        if kind == "warning" {
            self.notices.push(Notice::Warning { path: path.to_owned(), reason: text.to_owned() });
        }
        self.ledger.add_event(event);
    }
}
