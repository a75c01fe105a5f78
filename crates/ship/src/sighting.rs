//! Sightings of a watched folder tree, and the bounded queue that joins those of one path.
//!
//! Here belongs the translation of events of the operating system. It is pure except for the question whether a path is a folder.
//! Watches and rescans are in `folder_watch`.

use crate::folder_scan::shippable_name;
use crate::path_filter::{PathFilter, PathRole};
use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{ErrorKind, Event};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Observation of a path in a watched tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Path of the file, or of the folder for `Rescan`.
    pub path: PathBuf,
    /// Kind of the observation.
    pub kind: SightingKind,
}

/// Kind of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SightingKind {
    /// The file appeared or its contents changed.
    Changed,
    /// A writer closed the file, or it was moved into the tree.
    Closed,
    /// The file was deleted or moved out of the tree. A folder that was moved out is reported the same way.
    Removed,
    /// The file was moved within the tree.
    Renamed {
        /// Path of the file before.
        from: PathBuf,
    },
    /// Sightings may be missing below this folder; scan it. Moved folders are reported this way at their new place.
    Rescan,
    /// The path cannot be sent, for this reason and with this remedy.
    Unshippable(String),
    /// The tree cannot be watched, for this reason and with this remedy; rescans go on.
    Warning(String),
}

/// Bounded queue of sightings with one entry for each path, apart from renames.
#[derive(Debug)]
pub(crate) struct SightingQueue {
    root: PathBuf,
    filter: PathFilter,
    capacity: usize,
    /// Sightings by the order of their arrival.
    waiting: BTreeMap<u64, Sighting>,
    /// Latest entry of a path which a later sighting of the path replaces.
    latest: HashMap<PathBuf, u64>,
    next: u64,
    /// Path and tracker of a move whose target is not known yet.
    moving: Option<(PathBuf, Option<usize>)>,
    new_folders: Vec<PathBuf>,
    /// True when the root was deleted or moved, also if another folder has taken its place.
    is_root_lost: bool,
}

impl SightingQueue {
    pub(crate) fn new(root: PathBuf, filter: PathFilter, capacity: usize) -> Self {
        Self {
            root,
            filter,
            capacity: capacity.max(1),
            waiting: BTreeMap::new(),
            latest: HashMap::new(),
            next: 0,
            moving: None,
            new_folders: Vec::new(),
            is_root_lost: false,
        }
    }

    pub(crate) fn is_root_lost(&self) -> bool {
        self.is_root_lost
    }

    /// Returns true once after the root was deleted or moved.
    pub(crate) fn take_root_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_root_lost)
    }

    /// Takes the oldest sighting.
    pub(crate) fn pop(&mut self) -> Option<Sighting> {
        let (number, sighting) = self.waiting.pop_first()?;
        if self.latest.get(&sighting.path) == Some(&number) {
            self.latest.remove(&sighting.path);
        }
        Some(sighting)
    }

    /// Adds a sighting, or replaces the waiting one of the same path. A full queue becomes one rescan of the whole tree.
    pub(crate) fn push(&mut self, path: PathBuf, kind: SightingKind) {
        if let Some(sighting) = self.latest.get(&path).and_then(|number| self.waiting.get_mut(number)) {
            sighting.kind = kind;
            return;
        }
        if self.waiting.len() >= self.capacity {
            self.waiting.retain(|_, sighting| matches!(sighting.kind, SightingKind::Warning(_)));
            self.latest.clear();
            let root = self.root.clone();
            self.append(root, SightingKind::Rescan);
            return;
        }
        self.append(path, kind);
    }

    fn append(&mut self, path: PathBuf, kind: SightingKind) {
        if !matches!(kind, SightingKind::Renamed { .. } | SightingKind::Warning(_)) {
            self.latest.insert(path.clone(), self.next);
        }
        self.waiting.insert(self.next, Sighting { path, kind });
        self.next += 1;
    }

    /// Adds a file's sighting if the filter lets it through.
    fn push_file(&mut self, path: PathBuf, kind: SightingKind) {
        // A new file has taken the place of one that was moved.
        self.moving.take_if(|(from, _)| *from == path);
        match self.role(&path) {
            Ok(PathRole::Ignored) => {}
            Ok(_) => self.push(path, kind),
            Err(_) if matches!(kind, SightingKind::Removed) => {}
            Err(reason) => self.push(path, SightingKind::Unshippable(reason)),
        }
    }

    fn role(&self, path: &Path) -> Result<PathRole, String> {
        let Ok(relative) = path.strip_prefix(&self.root) else { return Ok(PathRole::Ignored) };
        if self.filter.excludes_folder(&relative.to_string_lossy()) {
            return Ok(PathRole::Ignored);
        }
        shippable_name(relative).map(|relative| self.filter.role(relative))
    }

    /// Reports the last move if its target is unknown: it lies outside the tree.
    pub(crate) fn end_move(&mut self) {
        if let Some((from, _)) = self.moving.take() {
            self.push_file(from, SightingKind::Removed);
        }
    }

    /// Adds the sightings of one event.
    pub(crate) fn apply(&mut self, event: Event, is_folder: impl Fn(&Path) -> bool) {
        if event.need_rescan() {
            self.push(self.root.clone(), SightingKind::Rescan);
            return;
        }
        let tracker = event.tracker();
        let mut paths = event.paths.into_iter();
        let Some(path) = paths.next() else { return };
        match event.kind {
            EventKind::Create(CreateKind::Folder) => self.new_folder(path),
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Data(_)) => {
                self.push_file(path, SightingKind::Changed);
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                self.push_file(path, SightingKind::Closed);
            }
            EventKind::Remove(RemoveKind::Folder) | EventKind::Modify(ModifyKind::Name(RenameMode::From))
                if path == self.root =>
            {
                self.is_root_lost = true;
            }
            EventKind::Remove(RemoveKind::File) => self.push_file(path, SightingKind::Removed),
            // A watched folder that moves reports itself without a tracker.
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) if tracker.is_some() => {
                self.end_move();
                self.moving = Some((path, tracker));
            }
            // An event with both paths follows one with a known tracker.
            EventKind::Modify(ModifyKind::Name(RenameMode::To))
                if self.moving.as_ref().is_none_or(|(_, moving)| *moving != tracker) =>
            {
                self.moved_in(path, is_folder);
            }
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {
                self.moving = None;
                match paths.next() {
                    Some(to) if is_folder(&to) => self.new_folder(to),
                    Some(to) => self.rename(path, to),
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn moved_in(&mut self, path: PathBuf, is_folder: impl Fn(&Path) -> bool) {
        if is_folder(&path) {
            self.new_folder(path);
        } else {
            self.push_file(path, SightingKind::Closed);
        }
    }

    /// Keeps a folder that must be watched before it is scanned.
    fn new_folder(&mut self, path: PathBuf) {
        let Ok(relative) = path.strip_prefix(&self.root) else { return };
        if self.filter.excludes_folder(&relative.to_string_lossy()) {
            return;
        }
        if self.new_folders.len() < self.capacity {
            self.new_folders.push(path);
        } else {
            self.push(self.root.clone(), SightingKind::Rescan);
        }
    }

    pub(crate) fn has_new_folders(&self) -> bool {
        !self.new_folders.is_empty()
    }

    /// Takes the folders that must be watched and then scanned.
    pub(crate) fn take_new_folders(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.new_folders)
    }

    /// Joins a rename with the waiting sightings of both paths: that of the old path holds for the new one.
    fn rename(&mut self, from: PathBuf, to: PathBuf) {
        let sent = |role| matches!(role, Ok(PathRole::File | PathRole::Marker));
        match (sent(self.role(&from)), sent(self.role(&to))) {
            // Files get their real name when they are finished.
            (false, _) => self.push_file(to, SightingKind::Closed),
            (true, false) => {
                self.push_file(from, SightingKind::Removed);
                self.push_file(to, SightingKind::Closed);
            }
            (true, true) => {
                let waiting = self.latest.remove(&from).and_then(|number| self.waiting.remove(&number));
                let waiting = waiting.filter(|sighting| sighting.kind != SightingKind::Removed);
                if let Some(number) = self.latest.remove(&to) {
                    self.waiting.remove(&number);
                }
                self.push(to.clone(), SightingKind::Renamed { from });
                if let Some(Sighting { kind, .. }) = waiting {
                    self.push(to, kind);
                }
            }
        }
    }

    /// Adds a warning, unless the same one waits already.
    pub(crate) fn warn(&mut self, reason: &str) {
        let text = format!("cannot watch the folder {}: {reason}", self.root.display());
        let kind = SightingKind::Warning(text);
        if self.waiting.values().all(|sighting| sighting.kind != kind) {
            self.append(self.root.clone(), kind);
        }
    }
}

/// Reason and remedy of an error of the watcher.
pub(crate) fn watch_reason(error: &notify::Error) -> String {
    match error.kind {
        ErrorKind::MaxFilesWatch => {
            "the limit of inotify watches is reached; raise the sysctl fs.inotify.max_user_watches".to_owned()
        }
        _ => format!("{error}; check the folder"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{DataChange, Flag};

    fn queue(capacity: usize) -> SightingQueue {
        let exclude = ["*.part".to_owned(), "tmp".to_owned()];
        SightingQueue::new("/r".into(), PathFilter::new(&[], &exclude, None).unwrap(), capacity)
    }

    fn changed(path: &str) -> Event {
        Event::new(EventKind::Modify(ModifyKind::Data(DataChange::Any))).add_path(path.into())
    }

    fn closed(path: &str) -> Event {
        Event::new(EventKind::Access(AccessKind::Close(AccessMode::Write))).add_path(path.into())
    }

    /// Events of one move as the watcher gives them.
    fn moved(tracker: usize, from: Option<&str>, to: Option<&str>) -> Vec<Event> {
        let event = |mode, paths: &[Option<&str>]| {
            let event = Event::new(EventKind::Modify(ModifyKind::Name(mode))).set_tracker(tracker);
            paths.iter().flatten().fold(event, |event, path| event.add_path(path.into()))
        };
        let mut events = Vec::new();
        events.extend(from.map(|_| event(RenameMode::From, &[from])));
        events.extend(to.map(|_| event(RenameMode::To, &[to])));
        events.extend(from.and(to).map(|_| event(RenameMode::Both, &[from, to])));
        events
    }

    fn all(queue: &mut SightingQueue, events: Vec<Event>) -> Vec<(String, SightingKind)> {
        for event in events {
            queue.apply(event, |path| path.ends_with("folder"));
        }
        std::iter::from_fn(|| queue.pop())
            .map(|sighting| (sighting.path.to_str().unwrap().to_owned(), sighting.kind))
            .collect()
    }

    fn one(path: &str, kind: SightingKind) -> (String, SightingKind) {
        (path.to_owned(), kind)
    }

    #[test]
    fn sightings_of_a_path_are_joined_and_filtered() {
        let mut queue = queue(10);
        let events =
            vec![changed("/r/a"), changed("/r/a"), changed("/r/b"), closed("/r/a"), changed("/r/tmp/x")];
        let expected = [one("/r/a", SightingKind::Closed), one("/r/b", SightingKind::Changed)];
        assert_eq!(all(&mut queue, events), expected);
        assert_eq!(all(&mut queue, vec![changed("/r/a")]), [one("/r/a", SightingKind::Changed)]);
    }

    #[test]
    fn renames_take_the_waiting_sighting_along() {
        let mut queue = queue(10);
        let renamed = |from: &str| SightingKind::Renamed { from: from.into() };
        let mut events = vec![closed("/r/a")];
        events.extend(moved(1, Some("/r/a"), Some("/r/b")));
        events.push(changed("/r/b"));
        let expected = [one("/r/b", renamed("/r/a")), one("/r/b", SightingKind::Changed)];
        assert_eq!(all(&mut queue, events), expected);
        // An excluded name becomes a real one when the file is finished.
        let events = moved(2, Some("/r/a.part"), Some("/r/a"));
        assert_eq!(all(&mut queue, events), [one("/r/a", SightingKind::Closed)]);
        let events = moved(3, Some("/r/a"), Some("/r/a.part"));
        assert_eq!(all(&mut queue, events), [one("/r/a", SightingKind::Removed)]);
        let events = moved(4, None, Some("/r/in"));
        assert_eq!(all(&mut queue, events), [one("/r/in", SightingKind::Closed)]);
        assert_eq!(all(&mut queue, moved(5, Some("/r/out"), None)), []);
        queue.end_move();
        assert_eq!(all(&mut queue, Vec::new()), [one("/r/out", SightingKind::Removed)]);
        // A new file in the place of a moved one is not reported as removed.
        let mut events = moved(6, Some("/r/a"), None);
        events.push(changed("/r/a"));
        assert_eq!(all(&mut queue, events), [one("/r/a", SightingKind::Changed)]);
        queue.end_move();
        assert_eq!(queue.pop(), None);
        assert_eq!(all(&mut queue, moved(7, Some("/r/x"), Some("/r/folder"))), []);
        assert_eq!(queue.take_new_folders(), [PathBuf::from("/r/folder")]);
    }

    #[test]
    fn overflows_become_one_rescan_of_the_root() {
        let mut full = queue(2);
        let events = vec![changed("/r/a"), changed("/r/b"), changed("/r/c"), changed("/r/d")];
        let expected = [one("/r", SightingKind::Rescan), one("/r/d", SightingKind::Changed)];
        assert_eq!(all(&mut full, events), expected);
        let kernel = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(all(&mut full, vec![kernel]), [one("/r", SightingKind::Rescan)]);
        let reason = watch_reason(&notify::Error::new(ErrorKind::MaxFilesWatch));
        full.warn(&reason);
        full.warn(&reason);
        let warnings = all(&mut full, Vec::new());
        assert!(
            matches!(&warnings[..], [(_, SightingKind::Warning(text))] if text.contains("max_user_watches"))
        );
    }

    #[test]
    fn names_that_cannot_be_sent_are_reported() {
        let mut queue = queue(10);
        let found = all(&mut queue, vec![changed("/r/new\nline"), changed("/elsewhere")]);
        let reason = "its name contains a control character; rename it".to_owned();
        assert_eq!(found, [one("/r/new\nline", SightingKind::Unshippable(reason))]);
    }
}
