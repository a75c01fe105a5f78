//! Inode numbers of entries, with their places in the tree and their last known attributes.
//!
//! A number is made from the identity that the catalog gives an entry, so it is the same at each mount. A file that is not
//! stored yet has a number of its own, which it keeps while the kernel knows it.

use crate::file_system::{Attributes, ROOT};
use std::collections::HashMap;
use std::time::Instant;

/// Version whose contents an object shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownVersion {
    /// Identity of the object, or of the link to it.
    pub(crate) object: String,
    pub(crate) version: String,
    pub(crate) size: u64,
}

/// Facts about an entry: its attributes and its version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    pub(crate) attributes: Attributes,
    /// Current version of an object.
    pub(crate) version: Option<ShownVersion>,
}

/// Entry of the tree that the kernel knows.
#[derive(Clone, Debug)]
struct Inode {
    parent: u64,
    name: String,
    /// References that the kernel holds.
    lookups: u64,
    facts: Option<(Facts, Instant)>,
    /// Identity of the object at the site, once it was learnt.
    object: Option<String>,
    /// True once it was deleted here. An entry that lost its name to an object of others is not.
    is_deleted: bool,
}

/// Table of all entries that the kernel knows.
#[derive(Debug)]
pub(crate) struct InodeTable {
    inodes: HashMap<u64, Inode>,
    by_name: HashMap<(u64, String), u64>,
    /// Last number that was given to a file that is not stored yet.
    unsaved: u64,
}

/// Number of the entry with an identity.
pub(crate) fn number(id: &str) -> u64 {
    let hash = blake3::hash(id.as_bytes());
    let bytes: [u8; 8] = hash.as_bytes()[..8].try_into().unwrap_or_default();
    // Numbers with the highest bit are those of unsaved files, and 1 is the root.
    (u64::from_le_bytes(bytes) >> 1).max(2)
}

impl InodeTable {
    pub(crate) fn new() -> Self {
        let root = Inode {
            parent: ROOT,
            name: String::new(),
            lookups: 1,
            facts: None,
            object: None,
            is_deleted: false,
        };
        Self { inodes: HashMap::from([(ROOT, root)]), by_name: HashMap::new(), unsaved: 1 << 63 }
    }

    /// Path of an entry; nothing for a number that the kernel does not know.
    pub(crate) fn path(&self, ino: u64) -> Option<String> {
        let mut names = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let inode = self.inodes.get(&at)?;
            names.push(inode.name.as_str());
            at = inode.parent;
        }
        names.reverse();
        Some(format!("/{}", names.join("/")))
    }

    /// Number of a known entry by its place.
    pub(crate) fn at(&self, parent: u64, name: &str) -> Option<u64> {
        self.by_name.get(&(parent, name.to_owned())).copied()
    }

    /// Collection and name of an entry.
    pub(crate) fn place(&self, ino: u64) -> Option<(u64, String)> {
        self.inodes.get(&ino).map(|inode| (inode.parent, inode.name.clone()))
    }

    /// Number for a file that is not stored yet.
    pub(crate) fn unsaved(&mut self) -> u64 {
        self.unsaved += 1;
        self.unsaved
    }

    /// Keeps the facts of an entry. Those of an entry that is known by its place keep its number, if it is an unsaved file and
    /// no other object has taken its place.
    pub(crate) fn learn(&mut self, parent: u64, name: &str, mut facts: Facts) -> Facts {
        let object = facts.version.as_ref().map(|version| version.object.clone());
        if let Some(known) = self.at(parent, name) {
            let was = self.inodes.get(&known).and_then(|inode| inode.object.as_ref());
            let is_same = was.zip(object.as_ref()).is_none_or(|(was, is)| was == is);
            if known >> 63 == 1 && is_same {
                facts.attributes.ino = known;
            } else if known != facts.attributes.ino {
                self.by_name.remove(&(parent, name.to_owned()));
            }
        }
        let ino = facts.attributes.ino;
        let inode = self.inodes.entry(ino).or_insert_with(|| Inode {
            parent,
            name: name.to_owned(),
            lookups: 0,
            facts: None,
            object: None,
            is_deleted: false,
        });
        inode.is_deleted = false;
        if (inode.parent, inode.name.as_str()) != (parent, name) {
            let old = (inode.parent, std::mem::replace(&mut inode.name, name.to_owned()));
            inode.parent = parent;
            if self.by_name.get(&old) == Some(&ino) {
                self.by_name.remove(&old);
            }
        }
        inode.facts = Some((facts.clone(), Instant::now()));
        inode.object = object.or(inode.object.take());
        self.by_name.insert((parent, name.to_owned()), ino);
        facts
    }

    /// Keeps the facts of an entry if it is known, and gives them the number that it has.
    pub(crate) fn refresh(&mut self, parent: u64, name: &str, facts: Facts) -> Facts {
        if self.at(parent, name).is_some() { self.learn(parent, name, facts) } else { facts }
    }

    /// Facts of an entry and the time at which they were learnt.
    pub(crate) fn facts(&self, ino: u64) -> Option<&(Facts, Instant)> {
        self.inodes.get(&ino)?.facts.as_ref()
    }

    /// Makes the next use of an entry ask the site.
    pub(crate) fn doubt(&mut self, ino: u64) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.facts = None;
        }
    }

    /// Notes that a version was stored at the place of an entry. The site may have made a new object for it, so the next object
    /// that is learnt there is that of the entry.
    pub(crate) fn stored(&mut self, ino: u64) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        (inode.facts, inode.object) = (None, None);
        let place = (inode.parent, inode.name.clone());
        // An object of others that has the name has the version.
        if let Some(named) = self.by_name.get(&place).copied() {
            self.doubt(named);
        }
    }

    /// True for an entry that was deleted here, and for one that is not known.
    pub(crate) fn is_deleted(&self, ino: u64) -> bool {
        self.inodes.get(&ino).is_none_or(|inode| inode.is_deleted)
    }

    /// Counts a reference of the kernel.
    pub(crate) fn refer(&mut self, ino: u64) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.lookups += 1;
        }
    }

    /// Takes references of the kernel back, and forgets an entry without any.
    pub(crate) fn forget(&mut self, ino: u64, lookups: u64) {
        let Some(inode) = self.inodes.get_mut(&ino) else { return };
        inode.lookups = inode.lookups.saturating_sub(lookups);
        if ino != ROOT && inode.lookups == 0 {
            let place = (inode.parent, inode.name.clone());
            self.inodes.remove(&ino);
            if self.by_name.get(&place) == Some(&ino) {
                self.by_name.remove(&place);
            }
        }
    }

    /// Takes an entry from its place: it was deleted.
    pub(crate) fn remove(&mut self, parent: u64, name: &str) {
        let Some(ino) = self.by_name.remove(&(parent, name.to_owned())) else { return };
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.is_deleted = true;
        }
    }

    /// Moves an entry to another place, and the entry there away.
    pub(crate) fn rename(&mut self, from: (u64, &str), to: (u64, &str)) {
        let Some(ino) = self.by_name.remove(&(from.0, from.1.to_owned())) else {
            self.remove(to.0, to.1);
            return;
        };
        self.remove(to.0, to.1);
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.parent = to.0;
            to.1.clone_into(&mut inode.name);
        }
        self.by_name.insert((to.0, to.1.to_owned()), ino);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::FileKind;
    use std::time::SystemTime;

    fn facts(ino: u64, kind: FileKind) -> Facts {
        let attributes = Attributes { ino, kind, size: 0, modified: SystemTime::UNIX_EPOCH };
        Facts { attributes, version: None }
    }

    #[test]
    fn numbers_depend_on_the_identity_only() {
        assert_eq!(number("a"), number("a"));
        assert_ne!(number("a"), number("b"));
        assert!(number("a") > 1 && number("a") >> 63 == 0);
    }

    #[test]
    fn paths_follow_renames_of_collections() {
        let mut table = InodeTable::new();
        table.learn(ROOT, "lab", facts(10, FileKind::Directory));
        table.learn(10, "run", facts(11, FileKind::File));
        assert_eq!(table.path(11).as_deref(), Some("/lab/run"));
        table.rename((ROOT, "lab"), (ROOT, "old"));
        assert_eq!(table.path(11).as_deref(), Some("/old/run"));
        assert_eq!(table.at(ROOT, "lab"), None);
    }

    #[test]
    fn an_entry_without_references_is_forgotten() {
        let mut table = InodeTable::new();
        table.learn(ROOT, "lab", facts(10, FileKind::Directory));
        table.refer(10);
        table.refer(10);
        table.forget(10, 1);
        assert!(table.path(10).is_some());
        table.forget(10, 1);
        assert_eq!((table.path(10), table.at(ROOT, "lab")), (None, None));
        table.forget(ROOT, 5);
        assert_eq!(table.path(ROOT).as_deref(), Some("/"));
    }

    #[test]
    fn an_unsaved_file_keeps_its_number_when_it_is_stored() {
        let mut table = InodeTable::new();
        let ino = table.unsaved();
        table.learn(ROOT, "new", facts(ino, FileKind::File));
        assert_eq!(table.learn(ROOT, "new", facts(77, FileKind::File)).attributes.ino, ino);
        let object = |ino, object: &str| {
            let version = ShownVersion { object: object.to_owned(), ..ShownVersion::default() };
            Facts { version: Some(version), ..facts(ino, FileKind::File) }
        };
        assert_eq!(table.learn(ROOT, "new", object(77, "a")).attributes.ino, ino);
        table.doubt(ino);
        assert_eq!(table.learn(ROOT, "new", object(77, "a")).attributes.ino, ino);
        assert_eq!(table.learn(ROOT, "new", object(78, "b")).attributes.ino, 78);
        // It lost its name to others, and was not deleted here.
        assert!(table.at(ROOT, "new") == Some(78) && !table.is_deleted(ino));
        // Another object in the place of a stored one has another number.
        table.learn(ROOT, "old", facts(5, FileKind::File));
        assert_eq!(table.learn(ROOT, "old", facts(6, FileKind::File)).attributes.ino, 6);
        assert_eq!(table.at(ROOT, "old"), Some(6));
    }

    #[test]
    fn the_object_of_a_stored_version_is_that_of_its_file() {
        let mut table = InodeTable::new();
        let ino = table.unsaved();
        let object = |object: &str| {
            let version = ShownVersion { object: object.to_owned(), ..ShownVersion::default() };
            Facts { version: Some(version), ..facts(number(object), FileKind::File) }
        };
        table.learn(ROOT, "new", facts(ino, FileKind::File));
        table.learn(ROOT, "new", object("a"));
        // Others deleted the object, so that the site made another one.
        table.stored(ino);
        assert_eq!(table.learn(ROOT, "new", object("b")).attributes.ino, ino);
        assert!(!table.is_deleted(ino));
        table.remove(ROOT, "new");
        assert!(table.is_deleted(ino));
    }
}
