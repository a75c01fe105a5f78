//! Reading of rows: columns in their order, as typed values and records.

use super::SqlValue;
use crate::dispute::{Choice, Dispute, DisputeKind, Settlement, Write};
use crate::error::{CatalogError, Result};
use crate::fact::{Fact, FactKind};
use crate::grant::{Grant, Right};
use crate::hlc::{Hlc, HlcTime};
use crate::ids::{ContentHash, Nanos, ObjectId, OpId, SiteId, Tag};
use crate::name::Name;
use crate::operation::{ReplicaPlace, ReplicaState};
use crate::record::{
    Annotation, Current, Deletion, Kind, Move, Node, Replica, SiteProgress, TaggedAttribute, Version,
};
use crate::value::{Attribute, Finite, Value};
use crate::vector::VersionVector;

pub(crate) const NODE: &str = "n.id, n.kind, n.made_time, n.made_site, n.parent, n.name, n.named_time, n.named_site, \
    n.shown, n.trashed, n.current_site, n.current_seq, n.current_position, n.current_set_time, n.current_set_site, \
    n.target";
pub(crate) const MOVE: &str = "time, site, object, parent, name, placement, effective";
pub(crate) const DELETION: &str = "object, site, seq, time, saw, moved, purge";
pub(crate) const VERSION: &str = "object, site, seq, position, size, hash, time, home";
pub(crate) const REPLICA: &str = "object, site, vault, key, version_site, version_seq, version_position, state, set_time, \
    set_site";
pub(crate) const ATTRIBUTE: &str =
    "object, name, site, seq, position, unit, key_text, key_integer, key_float, key_time, given";
pub(crate) const ANNOTATION: &str = "object, site, seq, position, time, author, note";
pub(crate) const DISPUTE: &str = "kind, object, lost_time, lost_site, lost_seq, won_time, won_site, won_seq, settled_time, \
    settled_site, choice";
pub(crate) const GRANT: &str = "object, subject, granted, set_time, set_site";
pub(crate) const FACT: &str = "kind, key, body, set_time, set_site";
pub(crate) const SITE: &str = "site, applied, seen";

/// Reader of the columns of one row, from left to right.
pub(crate) struct RowReader {
    columns: std::vec::IntoIter<SqlValue>,
}

fn damaged<T>(expected: &str) -> Result<T> {
    Err(CatalogError::Damaged(format!("a column holds no {expected}")))
}

impl RowReader {
    pub(crate) fn new(columns: Vec<SqlValue>) -> Self {
        Self { columns: columns.into_iter() }
    }

    pub(crate) fn optional_integer(&mut self) -> Result<Option<i64>> {
        match self.columns.next() {
            Some(SqlValue::Integer(number)) => Ok(Some(number)),
            Some(SqlValue::Null) => Ok(None),
            _ => damaged("integer"),
        }
    }

    pub(crate) fn integer(&mut self) -> Result<i64> {
        self.optional_integer()?.map_or_else(|| damaged("integer"), Ok)
    }

    pub(crate) fn count(&mut self) -> Result<u64> {
        u64::try_from(self.integer()?).or_else(|_| damaged("count"))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        Ok(self.integer()? != 0)
    }

    fn optional_float(&mut self) -> Result<Option<f64>> {
        match self.columns.next() {
            Some(SqlValue::Float(number)) => Ok(Some(number)),
            Some(SqlValue::Null) => Ok(None),
            _ => damaged("number"),
        }
    }

    fn optional_text(&mut self) -> Result<Option<String>> {
        match self.columns.next() {
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            Some(SqlValue::Null) => Ok(None),
            _ => damaged("text"),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        self.optional_text()?.map_or_else(|| damaged("text"), Ok)
    }

    fn optional_blob(&mut self) -> Result<Option<Vec<u8>>> {
        match self.columns.next() {
            Some(SqlValue::Blob(bytes)) => Ok(Some(bytes)),
            Some(SqlValue::Null) => Ok(None),
            _ => damaged("bytes"),
        }
    }

    pub(crate) fn blob(&mut self) -> Result<Vec<u8>> {
        self.optional_blob()?.map_or_else(|| damaged("bytes"), Ok)
    }

    pub(crate) fn object(&mut self) -> Result<ObjectId> {
        self.blob()?.try_into().map(ObjectId).or_else(|_| damaged("object id"))
    }

    fn optional_object(&mut self) -> Result<Option<ObjectId>> {
        let Some(bytes) = self.optional_blob()? else { return Ok(None) };
        bytes.try_into().map(|id| Some(ObjectId(id))).or_else(|_| damaged("object id"))
    }

    pub(crate) fn site(&mut self) -> Result<SiteId> {
        SiteId::new(self.count()?).or_else(|_| damaged("site id"))
    }

    pub(crate) fn name(&mut self) -> Result<Name> {
        Name::new(self.text()?).or_else(|_| damaged("name"))
    }

    pub(crate) fn stamp(&mut self) -> Result<Hlc> {
        Ok(Hlc { time: HlcTime(self.count()?), site: self.site()? })
    }

    pub(crate) fn op(&mut self) -> Result<OpId> {
        Ok(OpId { site: self.site()?, seq: self.count()? })
    }

    pub(crate) fn tag(&mut self) -> Result<Tag> {
        let op = self.op()?;
        let index = u16::try_from(self.integer()?).or_else(|_| damaged("position"))?;
        Ok(Tag { op, index })
    }

    pub(crate) fn optional_tag(&mut self) -> Result<Option<Tag>> {
        let columns = (self.optional_integer()?, self.optional_integer()?, self.optional_integer()?);
        let (Some(site), Some(seq), Some(index)) = columns else { return Ok(None) };
        let columns = [site, seq, index].map(SqlValue::Integer);
        Self::new(columns.into()).tag().map(Some)
    }

    fn vector(&mut self) -> Result<VersionVector> {
        postcard::from_bytes(&self.blob()?).or_else(|_| damaged("version vector"))
    }

    pub(crate) fn node(&mut self) -> Result<Node> {
        Ok(Node {
            id: self.object()?,
            kind: match self.integer()? {
                0 => Kind::Collection,
                1 => Kind::Object,
                2 => Kind::Link,
                _ => return damaged("kind of entry"),
            },
            made: self.stamp()?,
            parent: self.object()?,
            name: self.name()?,
            named: self.stamp()?,
            shown: self.text()?,
            trashed: self.flag()?,
            current: self.current()?,
            target: self.optional_object()?,
        })
    }

    fn current(&mut self) -> Result<Option<Current>> {
        let Some(version) = self.optional_tag()? else {
            self.columns.nth(1);
            return Ok(None);
        };
        Ok(Some(Current { version, set: self.stamp()? }))
    }

    pub(crate) fn step(&mut self) -> Result<Move> {
        let (stamp, object, parent) = (self.stamp()?, self.object()?, self.object()?);
        let (name, placement, effective) = (self.name()?, self.flag()?, self.flag()?);
        Ok(Move { stamp, object, parent, name, placement, effective })
    }

    pub(crate) fn deletion(&mut self) -> Result<Deletion> {
        let (object, op, time) = (self.object()?, self.op()?, HlcTime(self.count()?));
        let saw = self.vector()?;
        let moved = postcard::from_bytes(&self.blob()?).or_else(|_| damaged("list of entries"))?;
        Ok(Deletion { object, op, stamp: Hlc { time, site: op.site }, saw, moved, purge: self.flag()? })
    }

    pub(crate) fn version(&mut self) -> Result<Version> {
        Ok(Version {
            object: self.object()?,
            tag: self.tag()?,
            size: self.count()?,
            hash: self.blob()?.try_into().map(ContentHash).or_else(|_| damaged("hash"))?,
            time: Nanos(self.integer()?),
            home: self.site()?,
        })
    }

    pub(crate) fn replica(&mut self) -> Result<Replica> {
        let object = self.object()?;
        let place = ReplicaPlace { site: self.site()?, vault: self.text()?, key: self.text()? };
        let (version, state) = (self.optional_tag()?, self.optional_integer()?);
        let state = match state {
            Some(0) => Some(ReplicaState::Pending),
            Some(1) => Some(ReplicaState::Verified),
            Some(2) => Some(ReplicaState::Damaged),
            Some(3) => Some(ReplicaState::Missing),
            _ => None,
        };
        Ok(Replica { object, place, content: version.zip(state), set: self.stamp()? })
    }

    pub(crate) fn attribute(&mut self) -> Result<TaggedAttribute> {
        let (object, name, tag, unit) = (self.object()?, self.text()?, self.tag()?, self.optional_text()?);
        let (text, integer) = (self.optional_text()?, self.optional_integer()?);
        let (float, time) = (self.optional_float()?, self.optional_integer()?);
        let value = match (self.optional_blob()?, text, integer, float, time) {
            (Some(given), ..) => postcard::from_bytes(&given).or_else(|_| damaged("value"))?,
            (_, Some(text), ..) => Value::Text(text),
            (_, _, Some(number), ..) => Value::Integer(number),
            (_, _, _, Some(number), _) => Value::Float(Finite::new(number)?),
            (.., Some(time)) => Value::Time(Nanos(time)),
            _ => return damaged("value"),
        };
        Ok(TaggedAttribute { object, tag, attribute: Attribute { name, value, unit } })
    }

    pub(crate) fn annotation(&mut self) -> Result<Annotation> {
        let (object, tag, time) = (self.object()?, self.tag()?, HlcTime(self.count()?));
        let stamp = Hlc { time, site: tag.op.site };
        Ok(Annotation { object, tag, stamp, author: self.text()?, text: self.text()? })
    }

    fn write(&mut self) -> Result<Write> {
        Ok(Write { stamp: self.stamp()?, seq: self.count()? })
    }

    pub(crate) fn dispute(&mut self) -> Result<Dispute> {
        let kind = match self.integer()? {
            0 => DisputeKind::Name,
            1 => DisputeKind::Contents,
            _ => return damaged("kind of conflict"),
        };
        let (object, lost, won) = (self.object()?, self.write()?, self.write()?);
        let settled = match (self.optional_integer()?, self.optional_integer()?, self.optional_integer()?) {
            (Some(time), Some(site), Some(choice)) => {
                let site = SiteId::new(site as u64).or_else(|_| damaged("site id"))?;
                let choice = if choice == Choice::Keep as i64 { Choice::Keep } else { Choice::Flip };
                Some(Settlement { set: Hlc { time: HlcTime(time as u64), site }, choice })
            }
            _ => None,
        };
        Ok(Dispute { kind, object, lost, won, settled })
    }

    pub(crate) fn grant(&mut self) -> Result<Grant> {
        let (object, subject) = (self.object()?, self.text()?);
        let right = match self.optional_integer()? {
            None => None,
            Some(0) => Some(Right::Read),
            Some(1) => Some(Right::Write),
            Some(2) => Some(Right::Own),
            Some(_) => return damaged("right"),
        };
        Ok(Grant { object, subject, right, set: self.stamp()? })
    }

    pub(crate) fn fact(&mut self) -> Result<Fact> {
        let kind =
            usize::try_from(self.integer()?).ok().and_then(|number| FactKind::ALL.get(number).copied());
        let Some(kind) = kind else { return damaged("kind of fact") };
        Ok(Fact { kind, key: self.text()?, body: self.optional_text()?, set: self.stamp()? })
    }

    pub(crate) fn progress(&mut self) -> Result<SiteProgress> {
        Ok(SiteProgress { site: self.site()?, applied: self.count()?, seen: self.vector()? })
    }
}
