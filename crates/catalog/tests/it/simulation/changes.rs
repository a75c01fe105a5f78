//! Random changes as the API of a site would make them from its present state.

use crate::random::Random;
use holdfast_catalog::{
    Attribute, CatalogState, Change, ConflictId, ContentHash, FactKind, Kind, Name, Nanos, Node, ObjectId,
    ReplicaPlace, ReplicaState, Right, SiteId, Tag, Value,
};

/// Few names, so that equal ones meet; some look like numbered ones.
const NAMES: [&str; 5] = ["a", "b", "a_1", "a_2", "a_1_1"];

/// Changes of one operation, and the collections above the changed object.
pub type Changes = (Vec<Change>, Vec<ObjectId>);

struct Choice<'a> {
    state: &'a CatalogState,
    random: &'a mut Random,
    visible: Vec<&'a Node>,
    millis: u64,
    site: SiteId,
}

/// Chooses the next operation of a site; nothing if the choice does not fit its state.
pub fn random_changes(
    state: &CatalogState,
    random: &mut Random,
    site: SiteId,
    millis: u64,
) -> Option<Changes> {
    let is_visible = |node: &&Node| {
        !node.trashed && state.above(node.id).iter().all(|above| !state.node(*above).unwrap().trashed)
    };
    let visible = state.nodes().filter(is_visible).collect();
    let mut choice = Choice { state, random, visible, millis, site };
    match choice.random.below(100) {
        0..14 => Some(choice.collection()),
        14..28 => Some(choice.object()),
        28..30 => choice.link(),
        30..58 => choice.rename(),
        58..64 => choice.version(),
        64..68 => choice.current(),
        68..80 => choice.attribute(),
        80..85 => choice.replica(),
        85..87 if choice.random.chance(40) => Some(choice.grant()),
        85..87 if choice.random.chance(40) => Some(choice.fact()),
        85..87 => choice.annotation(),
        87..94 => choice.trash(),
        94..96 => choice.settle(),
        96..98 => choice.purge(),
        _ => choice.restore(),
    }
}

impl Choice<'_> {
    fn name(&mut self) -> Name {
        Name::new(*self.random.pick(&NAMES).unwrap()).unwrap()
    }

    fn node(&mut self) -> Option<Node> {
        self.random.pick(&self.visible).map(|node| (*node).clone())
    }

    fn object_node(&mut self) -> Option<Node> {
        let objects: Vec<_> = self.visible.iter().filter(|node| node.kind == Kind::Object).collect();
        self.random.pick(&objects).map(|node| (**node).clone())
    }

    /// Root or a visible collection.
    fn parent(&mut self) -> ObjectId {
        let collections = self.visible.iter().filter(|node| node.kind == Kind::Collection);
        let mut all: Vec<ObjectId> = collections.map(|node| node.id).collect();
        all.push(ObjectId::ROOT);
        *self.random.pick(&all).unwrap()
    }

    /// A collection and all above it, as an operation inside of it lists them.
    fn under(&self, collection: ObjectId) -> Vec<ObjectId> {
        let mut under = self.state.above(collection);
        under.extend((!collection.is_root()).then_some(collection));
        under
    }

    fn tag(&self, index: u16) -> Tag {
        Tag { op: self.state.next_op(), index }
    }

    fn collection(&mut self) -> Changes {
        let (parent, name) = (self.parent(), self.name());
        // Half of them as the API makes them, so that sites make the same ones.
        let same = ObjectId::of_collection(parent, &name);
        let is_free = self.state.node(same).is_none();
        let object = if is_free && self.random.chance(60) { same } else { self.random.id(self.millis) };
        (vec![Change::MakeCollection { object, parent, name }], self.under(parent))
    }

    fn object(&mut self) -> Changes {
        let (object, parent, name) = (self.random.id(self.millis), self.parent(), self.name());
        let mut changes = vec![Change::MakeObject { object, parent, name }];
        changes.push(self.add_version(object));
        changes.push(Change::SetCurrent { object, version: self.tag(1), replaces: None });
        (changes, self.under(parent))
    }

    fn link(&mut self) -> Option<Changes> {
        let target = self.object_node()?.id;
        let (object, parent, name) = (self.random.id(self.millis), self.parent(), self.name());
        Some((vec![Change::MakeLink { object, parent, name, target }], self.under(parent)))
    }

    fn add_version(&mut self, object: ObjectId) -> Change {
        let (size, hash) = (self.random.next() >> 20, ContentHash([self.random.next() as u8; 32]));
        Change::AddVersion { object, size, hash, time: Nanos(self.millis as i64), home: self.site }
    }

    fn rename(&mut self) -> Option<Changes> {
        let (node, parent, name) = (self.node()?, self.parent(), self.name());
        if parent == node.id || self.state.above(parent).contains(&node.id) {
            return None;
        }
        let change = Change::SetName { object: node.id, parent, name, replaces: node.named };
        Some((vec![change], self.under(parent)))
    }

    fn version(&mut self) -> Option<Changes> {
        let node = self.object_node()?;
        let (object, replaces) = (node.id, node.current.map(|current| current.set));
        let current = Change::SetCurrent { object, version: self.tag(0), replaces };
        Some((vec![self.add_version(object), current], self.under(node.parent)))
    }

    fn current(&mut self) -> Option<Changes> {
        let node = self.object_node()?;
        let versions: Vec<Tag> = self.state.versions(node.id).map(|version| version.tag).collect();
        let version = *self.random.pick(&versions)?;
        let replaces = node.current.map(|current| current.set);
        Some((vec![Change::SetCurrent { object: node.id, version, replaces }], self.under(node.parent)))
    }

    fn attribute(&mut self) -> Option<Changes> {
        let node = self.node()?;
        let object = node.id;
        let held: Vec<Tag> = self.state.attributes(object).map(|row| row.tag).collect();
        let change = if !held.is_empty() && self.random.chance(40) {
            Change::RemoveAttributes { object, tags: vec![*self.random.pick(&held)?] }
        } else {
            let value = Value::Integer(self.random.below(3) as i64);
            Change::AddAttribute { object, attribute: Attribute::new("x", value) }
        };
        Some((vec![change], self.under(node.parent)))
    }

    fn replica(&mut self) -> Option<Changes> {
        let node = self.object_node()?;
        let (object, version) = (node.id, node.current?.version);
        let (site, key) = (SiteId::new(1).unwrap(), self.random.below(2).to_string());
        let place = ReplicaPlace { site, vault: "v".into(), key };
        let states = [ReplicaState::Pending, ReplicaState::Verified, ReplicaState::Damaged];
        let change = match self.random.pick(&states) {
            Some(state) if self.random.chance(70) => {
                Change::SetReplica { object, place, version, state: *state }
            }
            _ => Change::RemoveReplica { object, place },
        };
        Some((vec![change], vec![]))
    }

    fn annotation(&mut self) -> Option<Changes> {
        let node = self.node()?;
        let (author, text) = ("ann".into(), self.random.below(9).to_string());
        Some((vec![Change::AddAnnotation { object: node.id, author, text }], self.under(node.parent)))
    }

    fn trash(&mut self) -> Option<Changes> {
        let node = self.node()?;
        // The state is copied, as a deletion is made from a state that may change.
        Some((vec![self.state.clone().deletion(node.id).unwrap()], vec![]))
    }

    fn grant(&mut self) -> Changes {
        let (object, subject) = (self.parent(), self.random.below(2).to_string());
        let right = *self.random.pick(&[None, Some(Right::Read), Some(Right::Own)]).unwrap();
        (vec![Change::SetGrant { object, subject, right }], vec![])
    }

    fn fact(&mut self) -> Changes {
        let kind = *self.random.pick(&[FactKind::Site, FactKind::Policy]).unwrap();
        let (key, body) = (self.random.below(2).to_string(), self.random.below(9).to_string());
        let body = self.random.chance(70).then_some(body);
        (vec![Change::SetFact { kind, key, body }], vec![])
    }

    fn settle(&mut self) -> Option<Changes> {
        let disputes: Vec<_> = self.state.disputes().map(holdfast_catalog::Dispute::id).collect();
        let ConflictId { kind, object, lost } = *self.random.pick(&disputes)?;
        let choice = if self.random.chance(50) {
            holdfast_catalog::Choice::Keep
        } else {
            holdfast_catalog::Choice::Flip
        };
        Some((vec![Change::Settle { object, kind, lost, choice }], vec![]))
    }

    /// Purge of a deleted entry with all in it, even if other sites do not know the deletion yet.
    fn purge(&mut self) -> Option<Changes> {
        let trashed: Vec<&Node> = self.state.nodes().filter(|node| node.trashed).collect();
        let object = self.random.pick(&trashed)?.id;
        let below = self.state.nodes().filter(|node| self.state.above(node.id).contains(&object));
        let all = below.map(|node| node.id).chain([object]);
        Some((all.map(|object| Change::Purge { object }).collect(), vec![]))
    }

    fn restore(&mut self) -> Option<Changes> {
        let trashed: Vec<&Node> = self.state.nodes().filter(|node| node.trashed).collect();
        let node = (*self.random.pick(&trashed)?).clone();
        let above = self.under(node.parent);
        if above.iter().any(|id| self.state.node(*id).unwrap().trashed) {
            return None;
        }
        Some((vec![Change::Restore { object: node.id }], above))
    }
}
