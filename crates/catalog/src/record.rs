//! Records: the rows of a catalog's state, the same in memory and in both databases.
//!
//! Equal sets of operations give equal sets of records at every site. A snapshot is a stream of records.

use crate::dispute::Dispute;
use crate::fact::Fact;
use crate::grant::Grant;
use crate::hlc::Hlc;
use crate::ids::{ContentHash, Nanos, ObjectId, OpId, SiteId, Tag};
use crate::name::Name;
use crate::operation::{ReplicaPlace, ReplicaState};
use crate::value::Attribute;
use crate::vector::VersionVector;
use serde::{Deserialize, Serialize};

/// Kind of an entry of the name space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Directory of the name space.
    Collection,
    /// File of the name space.
    Object,
    /// Second name of an object.
    Link,
}

/// Register of the current version of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Current {
    /// Version that is current.
    pub version: Tag,
    /// Stamp of the operation that set the register.
    pub set: Hlc,
}

/// Object or collection with its registers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Id given by the origin.
    pub id: ObjectId,
    /// Collection, object or link, fixed for ever.
    pub kind: Kind,
    /// Stamp of the operation that made it.
    pub made: Hlc,
    /// Collection that holds it.
    pub parent: ObjectId,
    /// Name as it was given, which siblings may share.
    pub name: Name,
    /// Stamp of the register of parent and name.
    pub named: Hlc,
    /// Name that is shown, unique among the visible siblings.
    pub shown: String,
    /// True if a deletion is in force.
    pub trashed: bool,
    /// Current version, once one is set.
    pub current: Option<Current>,
    /// Object that a link stands for.
    pub target: Option<ObjectId>,
}

/// Placement or move of a collection. All are kept, because a late move changes the fate of later ones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Move {
    /// Stamp of the operation, by which moves are replayed.
    pub stamp: Hlc,
    /// Collection that was moved.
    pub object: ObjectId,
    /// Collection that holds it from then on.
    pub parent: ObjectId,
    /// Name from then on.
    pub name: Name,
    /// True for the first placement, which can make no cycle.
    pub placement: bool,
    /// False for a move that would have made a cycle.
    pub effective: bool,
}

/// Deletion in force: no concurrent change has rescued the object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Deletion {
    /// Object or collection in the trash.
    pub object: ObjectId,
    /// Operation that deleted it.
    pub op: OpId,
    /// Stamp of that operation.
    pub stamp: Hlc,
    /// Operations that the deleting site had applied.
    pub saw: VersionVector,
    /// Entries below the object whose changes rescue it too.
    pub moved: Vec<ObjectId>,
    /// True for a purge, from which nothing rescues an object.
    ///
    /// A collection is rescued by what was moved into it or made in it unseen, and is visible again without the rest.
    pub purge: bool,
}

/// Version of the contents of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Version {
    /// Object that has the version.
    pub object: ObjectId,
    /// Identity of the version.
    pub tag: Tag,
    /// Length of the contents in bytes.
    pub size: u64,
    /// Hash of the contents.
    pub hash: ContentHash,
    /// Time at which the contents were made.
    pub time: Nanos,
    /// Home site of the contents.
    pub home: SiteId,
}

/// Register of one replica. A removed one stays as a tombstone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Replica {
    /// Object whose bytes these are.
    pub object: ObjectId,
    /// Site, vault and key.
    pub place: ReplicaPlace,
    /// Version and state; nothing once the replica is removed.
    pub content: Option<(Tag, ReplicaState)>,
    /// Stamp of the operation that set the register.
    pub set: Hlc,
}

/// Attribute with the tag that identifies it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TaggedAttribute {
    /// Object or collection that has the attribute.
    pub object: ObjectId,
    /// Identity of the attribute.
    pub tag: Tag,
    /// Triple of name, value and unit.
    pub attribute: Attribute,
}

/// Annotation with the tag that identifies it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Annotation {
    /// Object or collection that is annotated.
    pub object: ObjectId,
    /// Identity of the annotation.
    pub tag: Tag,
    /// Stamp of the operation that added it.
    pub stamp: Hlc,
    /// Author of the text.
    pub author: String,
    /// Text of the annotation.
    pub text: String,
}

/// Progress of a site, as this catalog knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SiteProgress {
    /// Site that made the operations.
    pub site: SiteId,
    /// Number of its operations applied here.
    pub applied: u64,
    /// Operations of other sites that it had applied when it made the last of these.
    pub seen: VersionVector,
}

/// Row of the state of a catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Record {
    /// Object or collection of the tree.
    Node(Node),
    /// Placement or move of a collection.
    Move(Move),
    /// Deletion that is in force.
    Deletion(Deletion),
    /// Version of an object.
    Version(Version),
    /// Replica or its tombstone.
    Replica(Replica),
    /// Attribute of an object or collection.
    Attribute(TaggedAttribute),
    /// Annotation of an object or collection.
    Annotation(Annotation),
    /// Progress of a site.
    Site(SiteProgress),
    /// Conflict between two concurrent writes.
    Dispute(Dispute),
    /// Right of a subject on an entry, or its tombstone.
    Grant(Grant),
    /// Text by kind and key, or its tombstone.
    Fact(Fact),
}

impl RecordKey {
    /// Operation that made the record, if its identity tells it.
    pub(crate) fn op(self) -> Option<OpId> {
        match self {
            Self::Deletion(_, op) => Some(op),
            Self::Attribute(_, tag) | Self::Annotation(_, tag) => Some(tag.op),
            Self::Placement(..) => None,
        }
    }
}

/// Identity of a record that merging can remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordKey {
    /// Deletion of an object by an operation.
    Deletion(ObjectId, OpId),
    /// Attribute of an object with a tag.
    Attribute(ObjectId, Tag),
    /// Annotation of an object with a tag.
    Annotation(ObjectId, Tag),
    /// Placement of a collection with a stamp.
    Placement(ObjectId, Hlc),
}
