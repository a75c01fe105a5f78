//! Operations: the unit of replication. One operation is one atomic group of changes.
//!
//! Rules of merging are not here (`merge`), nor is the byte layout (`encoding`).

use crate::dispute::{Choice, DisputeKind};
use crate::fact::{FactKind, MAX_FACT_BYTES, MAX_FACT_KEY_BYTES};
use crate::grant::Right;
use crate::hlc::{Hlc, HlcTime};
use crate::ids::{ContentHash, Nanos, ObjectId, OpId, SiteId, Tag};
use crate::name::Name;
use crate::value::{Attribute, MAX_LABEL_BYTES, check_text};
use crate::vector::VersionVector;
use serde::{Deserialize, Serialize};

/// Most changes in one operation: bounds memory and the length of a transaction.
pub const MAX_CHANGES: usize = 4096;

/// Most moved entries that one deletion lists: bounds its size and the work of every later operation.
pub(crate) const MAX_MOVED: usize = 4096;

/// Longest key of a replica in bytes, the limit of S3.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// Longest annotation in bytes; longer notes belong into objects.
pub(crate) const MAX_NOTE_BYTES: usize = 64 << 10;

/// State of a replica, as its site last saw it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ReplicaState {
    /// Upload under way: the bytes may be incomplete.
    Pending,
    /// Bytes read back and compared with the hash of the version.
    Verified,
    /// Bytes that differ from the hash of the version.
    Damaged,
    /// Bytes that are no longer in the vault.
    Missing,
}

/// Place of a replica: a key in a vault of a site.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ReplicaPlace {
    /// Site that holds the vault.
    pub site: SiteId,
    /// Name of the vault at its site.
    pub vault: String,
    /// Key of the bytes in the vault.
    pub key: String,
}

/// One change of the catalog, within an operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// Makes a collection, with its first name.
    MakeCollection {
        /// New id, made by the origin.
        object: ObjectId,
        /// Collection that holds it.
        parent: ObjectId,
        /// First name of the collection.
        name: Name,
    },
    /// Makes an object without versions, with its first name.
    MakeObject {
        /// New id, made by the origin.
        object: ObjectId,
        /// Collection that holds it.
        parent: ObjectId,
        /// First name of the object.
        name: Name,
    },
    /// Moves or renames: sets the register of parent and name.
    SetName {
        /// Object or collection to move.
        object: ObjectId,
        /// Collection that holds it from now on.
        parent: ObjectId,
        /// Name from now on.
        name: Name,
        /// Stamp of the register value that the origin saw; another one means a conflict.
        replaces: Hlc,
    },
    /// Adds a version. Its identity is the tag of this change.
    AddVersion {
        /// Object that gets the version.
        object: ObjectId,
        /// Length of the contents in bytes.
        size: u64,
        /// Hash of the contents.
        hash: ContentHash,
        /// Time at which the contents were made.
        time: Nanos,
        /// Home site of the contents.
        home: SiteId,
    },
    /// Sets the register of the current version.
    SetCurrent {
        /// Object whose register is set.
        object: ObjectId,
        /// Version that is current from now on.
        version: Tag,
        /// Stamp of the register value that the origin saw.
        replaces: Option<Hlc>,
    },
    /// Adds a replica, or sets the state of one.
    SetReplica {
        /// Object whose bytes these are.
        object: ObjectId,
        /// Site, vault and key.
        place: ReplicaPlace,
        /// Version whose bytes these are.
        version: Tag,
        /// State of the replica from now on.
        state: ReplicaState,
    },
    /// Removes the record of a replica.
    RemoveReplica {
        /// Object whose replica is removed.
        object: ObjectId,
        /// Site, vault and key.
        place: ReplicaPlace,
    },
    /// Adds an attribute. Its identity is the tag of this change.
    AddAttribute {
        /// Object or collection that gets the attribute.
        object: ObjectId,
        /// Triple of name, value and unit.
        attribute: Attribute,
    },
    /// Removes the attributes that the origin saw.
    RemoveAttributes {
        /// Object or collection that loses them.
        object: ObjectId,
        /// Tags that the origin saw.
        tags: Vec<Tag>,
    },
    /// Adds an annotation. Its identity is the tag of this change.
    AddAnnotation {
        /// Object or collection that is annotated.
        object: ObjectId,
        /// Author of the text.
        author: String,
        /// Text of the annotation.
        text: String,
    },
    /// Removes the annotations that the origin saw.
    RemoveAnnotations {
        /// Object or collection that loses them.
        object: ObjectId,
        /// Tags that the origin saw.
        tags: Vec<Tag>,
    },
    /// Moves an object or a collection to the trash, unless a site changes it concurrently.
    Trash {
        /// Object or collection to delete.
        object: ObjectId,
        /// All operations that the origin had applied.
        saw: VersionVector,
        /// Entries below it that were moved by operations which other sites may not have seen.
        ///
        /// Such a site does not know that they lie below the object, so a change of one rescues the object too.
        moved: Vec<ObjectId>,
    },
    /// Takes an object or a collection out of the trash.
    Restore {
        /// Object or collection to restore.
        object: ObjectId,
    },
    /// Settles a recorded conflict. A flip is a change of its own beside this mark.
    Settle {
        /// Object or collection of the conflict.
        object: ObjectId,
        /// Kind of the conflict.
        kind: DisputeKind,
        /// Stamp of the write that lost.
        lost: Hlc,
        /// Write that stays in force.
        choice: Choice,
    },
    /// Sets or revokes the right of a subject on an entry, which may be the root.
    SetGrant {
        /// Entry that the right is for.
        object: ObjectId,
        /// Name of an account or a group.
        subject: String,
        /// Right from now on; nothing revokes it.
        right: Option<Right>,
    },
    /// Sets or removes a fact.
    SetFact {
        /// Kind of the fact.
        kind: FactKind,
        /// Key among the facts of its kind.
        key: String,
        /// Text from now on; nothing removes the fact.
        body: Option<String>,
    },
    /// Removes the contents of an entry of the trash for ever.
    ///
    /// No other change of an object has an effect beside it. Of a collection, all that the origin saw is removed.
    Purge {
        /// Object or collection that stays as a tombstone.
        object: ObjectId,
    },
    /// Makes a link: a second name of an object.
    MakeLink {
        /// New id, made by the origin.
        object: ObjectId,
        /// Collection that holds the link.
        parent: ObjectId,
        /// First name of the link.
        name: Name,
        /// Object that the link stands for, for ever.
        target: ObjectId,
    },
}

impl Change {
    /// Object or collection that the change is about; the root for a fact, which is about none.
    pub fn object(&self) -> ObjectId {
        match self {
            Self::MakeCollection { object, .. }
            | Self::MakeObject { object, .. }
            | Self::MakeLink { object, .. }
            | Self::SetName { object, .. }
            | Self::AddVersion { object, .. }
            | Self::SetCurrent { object, .. }
            | Self::SetReplica { object, .. }
            | Self::RemoveReplica { object, .. }
            | Self::AddAttribute { object, .. }
            | Self::RemoveAttributes { object, .. }
            | Self::AddAnnotation { object, .. }
            | Self::RemoveAnnotations { object, .. }
            | Self::Trash { object, .. }
            | Self::Restore { object }
            | Self::Purge { object }
            | Self::Settle { object, .. }
            | Self::SetGrant { object, .. } => *object,
            Self::SetFact { .. } => ObjectId::ROOT,
        }
    }

    /// True for changes that rescue their object from a concurrent deletion.
    ///
    /// Records of replicas are kept by machines and rescue nothing. Settlements, grants and facts leave the object as it is.
    pub fn rescues(&self) -> bool {
        !matches!(
            self,
            Self::SetReplica { .. }
                | Self::RemoveReplica { .. }
                | Self::Trash { .. }
                | Self::Purge { .. }
                | Self::Settle { .. }
                | Self::SetGrant { .. }
                | Self::SetFact { .. }
        )
    }
}

/// Operation that no site can have made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot apply operation {id}: {reason}; update the software of site {}", id.site)]
pub struct InvalidOperation {
    /// Operation that was refused.
    pub id: OpId,
    /// Rule that the operation breaks.
    pub reason: String,
}

/// One atomic, stamped group of changes, made at one site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Site and place in its log.
    pub id: OpId,
    /// Time part of the stamp.
    pub time: HlcTime,
    /// Operations of other sites that the origin applied since its previous operation.
    pub after: VersionVector,
    /// Collections above the changed objects at the origin; the operation rescues them too.
    pub under: Vec<ObjectId>,
    /// Changes in the order in which they take effect; none in a bare acknowledgement.
    pub changes: Vec<Change>,
}

impl Operation {
    /// Stamp of this operation.
    pub fn stamp(&self) -> Hlc {
        Hlc { time: self.time, site: self.id.site }
    }

    /// True for an operation without changes, which only tells what its site has applied.
    pub fn is_acknowledgement(&self) -> bool {
        self.changes.is_empty()
    }

    /// Tag of the change at a place.
    pub fn tag(&self, place: usize) -> Tag {
        Tag { op: self.id, index: place as u16 }
    }

    /// Objects and collections that this operation rescues from concurrent deletions, each once.
    pub fn rescued(&self) -> Vec<ObjectId> {
        let changed = self.changes.iter().filter(|change| change.rescues()).map(Change::object);
        let mut all: Vec<ObjectId> = changed.chain(self.under.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Checks limits and rules that need no state.
    pub fn check(&self) -> Result<(), InvalidOperation> {
        let invalid = |reason: String| Err(InvalidOperation { id: self.id, reason });
        if self.id.seq == 0 || i64::try_from(self.id.seq).is_err() || i64::try_from(self.time.0).is_err() {
            return invalid("its number or stamp is out of range".into());
        }
        if self.changes.len() > MAX_CHANGES {
            return invalid(format!("it has {} changes, more than {MAX_CHANGES}", self.changes.len()));
        }
        if self.is_acknowledgement() && (self.after.is_empty() || !self.under.is_empty()) {
            return invalid("it has no changes and acknowledges nothing".into());
        }
        if self.under.len() > crate::name::MAX_DEPTH {
            return invalid(format!("it lists {} collections above its objects", self.under.len()));
        }
        if self.after.get(self.id.site) != 0 {
            return invalid("it names its own site as another one".into());
        }
        let trashes = |change: &Change| matches!(change, Change::Trash { .. } | Change::Purge { .. });
        let mixed = !self.changes.iter().all(trashes) || !self.under.is_empty();
        if self.changes.iter().any(trashes) && mixed {
            return invalid("it mixes a deletion with other changes".into());
        }
        let fits_root = |change: &Change| matches!(change, Change::SetGrant { .. } | Change::SetFact { .. });
        if self.changes.iter().any(|change| change.object().is_root() && !fits_root(change)) {
            return invalid("it changes the root collection".into());
        }
        let named = self.changes.iter().filter(|change| {
            use Change::{MakeCollection, MakeLink, MakeObject, SetName};
            trashes(change)
                || matches!(
                    change,
                    MakeCollection { .. } | MakeObject { .. } | MakeLink { .. } | SetName { .. }
                )
        });
        let mut named: Vec<ObjectId> = named.map(Change::object).collect();
        named.sort_unstable();
        let number = named.len();
        named.dedup();
        if named.len() < number {
            return invalid("it names or deletes an object twice".into());
        }
        let checked = self.changes.iter().try_for_each(check_change);
        checked.or_else(invalid)
    }
}

/// Checks the texts of a change and the ranges of its numbers.
fn check_change(change: &Change) -> Result<(), String> {
    let checked = match change {
        Change::AddAttribute { attribute, .. } => attribute.check(),
        Change::AddAnnotation { author, text, .. } => check_text("author", author, MAX_LABEL_BYTES)
            .and_then(|()| check_text("annotation", text, MAX_NOTE_BYTES)),
        Change::SetGrant { subject, .. } if subject.is_empty() => {
            return Err("it has a grant without a subject".into());
        }
        Change::SetGrant { subject, .. } => check_text("subject", subject, MAX_LABEL_BYTES),
        Change::SetFact { key, .. } if key.is_empty() => return Err("it has a fact without a key".into()),
        Change::SetFact { key, body, .. } => {
            let body = body.as_deref().unwrap_or_default();
            check_text("key", key, MAX_FACT_KEY_BYTES)
                .and_then(|()| check_text("body of a fact", body, MAX_FACT_BYTES))
        }
        Change::SetReplica { place, .. } | Change::RemoveReplica { place, .. } => {
            check_text("vault", &place.vault, MAX_LABEL_BYTES)
                .and_then(|()| check_text("key", &place.key, MAX_KEY_BYTES))
        }
        Change::Trash { moved, .. } if moved.len() > MAX_MOVED => {
            return Err(format!("it lists {} moved entries, more than {MAX_MOVED}", moved.len()));
        }
        Change::AddVersion { size, .. } if i64::try_from(*size).is_err() => {
            return Err(format!("its size of {size} bytes is out of range"));
        }
        _ => Ok(()),
    };
    checked.map_err(|error| error.to_string())
}
