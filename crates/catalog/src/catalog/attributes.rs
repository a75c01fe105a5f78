//! Attributes and annotations of entries; those of a link are those of its target.

use super::Catalog;
use super::batch::Batch;
use super::links::resolve_object;
use super::stat::attributes_of;
use crate::error::{CatalogError, Result};
use crate::ids::{ObjectId, Tag};
use crate::name::CatalogPath;
use crate::operation::Change;
use crate::record::TaggedAttribute;
use crate::store::CatalogStore;
use crate::value::{Attribute, Value};

/// Verb of messages about changes of attributes.
const SET: &str = "set attributes of";

/// Change of the attributes of one entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeChange {
    /// Path of the entry.
    pub path: CatalogPath,
    /// Names whose attributes are removed.
    pub replaced: Vec<String>,
    /// Attributes that the entry gets.
    pub attributes: Vec<Attribute>,
}

/// Failure of one of several changes of attributes, none of which was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct FailedChange {
    /// Place of the change among those that were given; `None` if the failure is that of the store.
    pub place: Option<usize>,
    /// Reason of the failure.
    pub error: CatalogError,
}

impl<S: CatalogStore> Catalog<S> {
    /// Adds attributes to an entry. A triple that is there already stays once.
    pub fn add_attributes(&mut self, path: &CatalogPath, attributes: &[Attribute]) -> Result<()> {
        self.set_attributes(path, None, &|_| false, attributes).map(drop)
    }

    /// Replaces attributes of an entry in one operation: removes those that `is_replaced` chooses by name, and adds others.
    ///
    /// With a version nothing happens unless it is the current one. Returns true if the attributes were replaced.
    pub fn set_attributes(
        &mut self,
        path: &CatalogPath,
        version: Option<Tag>,
        is_replaced: &dyn Fn(&str) -> bool,
        attributes: &[Attribute],
    ) -> Result<bool> {
        attributes.iter().try_for_each(Attribute::check)?;
        self.write(|writer| {
            writer.batch(|batch| batch.set_attributes(path, version, is_replaced, attributes))
        })
    }

    /// Makes several changes of attributes in one transaction, with an operation for each: all or none.
    ///
    /// An entry that has the attributes already, each once, gets no operation. Returns the number of operations.
    pub fn change_attributes_all(&mut self, changes: &[AttributeChange]) -> Result<usize, FailedChange> {
        let mut place = None;
        let mut change_all = |batch: &mut Batch<'_, S>| {
            let mut operations = 0;
            for (number, change) in changes.iter().enumerate() {
                place = Some(number);
                operations += usize::from(batch.change_attributes(change)?);
            }
            place = None;
            Ok(operations)
        };
        let done = self.write(|writer| writer.batch(&mut change_all));
        done.map_err(|error| FailedChange { place, error })
    }

    /// Lists the attributes of an entry by name, each triple once.
    pub fn attributes(&mut self, path: &CatalogPath) -> Result<Vec<Attribute>> {
        const VERB: &str = "list attributes of";
        self.read(|store| {
            let (node, _) = resolve_object(store, VERB, path)?.not_root(VERB)?;
            let mut all: Vec<Attribute> =
                attributes_of(store, node.id)?.into_iter().map(|row| row.attribute).collect();
            all.sort();
            all.dedup();
            Ok(all)
        })
    }

    /// Removes the attributes with a name, or only those with a value, and returns their number.
    pub fn remove_attributes(
        &mut self,
        path: &CatalogPath,
        name: &str,
        value: Option<&Value>,
    ) -> Result<usize> {
        const VERB: &str = "remove attributes of";
        self.write(|writer| {
            let (node, above) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            let is_meant = |row: &&TaggedAttribute| {
                row.attribute.name == name && value.is_none_or(|value| row.attribute.value == *value)
            };
            let held = attributes_of(writer.store, node.id)?;
            let tags: Vec<Tag> = held.iter().filter(is_meant).map(|row| row.tag).collect();
            let number = tags.len();
            if number > 0 {
                writer.submit(vec![Change::RemoveAttributes { object: node.id, tags }], above)?;
            }
            Ok(number)
        })
    }

    /// Adds an annotation to an entry, and returns its tag.
    pub fn annotate(&mut self, path: &CatalogPath, author: &str, text: &str) -> Result<Tag> {
        const VERB: &str = "annotate";
        self.write(|writer| {
            let (node, above) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            let (tag, author, text) = (writer.next_tag(0), author.to_owned(), text.to_owned());
            writer.submit(vec![Change::AddAnnotation { object: node.id, author, text }], above)?;
            Ok(tag)
        })
    }

    /// Removes an annotation of an entry by its tag.
    pub fn remove_annotation(&mut self, path: &CatalogPath, tag: Tag) -> Result<()> {
        const VERB: &str = "remove an annotation of";
        let is_there = self.stat(path)?.annotations.iter().any(|annotation| annotation.tag == tag);
        if !is_there {
            let remedy = "choose one of those that stat lists";
            return Err(CatalogError::unsuitable(VERB, path, "it has no such annotation", remedy));
        }
        self.write(|writer| {
            let (node, above) = resolve_object(writer.store, VERB, path)?.not_root(VERB)?;
            writer.submit(vec![Change::RemoveAnnotations { object: node.id, tags: vec![tag] }], above)?;
            Ok(())
        })
    }
}

impl<S: CatalogStore> Batch<'_, S> {
    /// Makes one change, unless the entry has the attributes already. Returns true if it made an operation.
    fn change_attributes(&mut self, change: &AttributeChange) -> Result<bool> {
        let AttributeChange { path, replaced, attributes } = change;
        attributes.iter().try_for_each(Attribute::check)?;
        let (node, above) = self.entry(SET, path)?.not_root(SET)?;
        let held = self.attributes(node.id)?;
        let is_replaced = |name: &str| replaced.iter().any(|replaced| replaced == name);
        let mut wanted = attributes.clone();
        wanted.sort();
        wanted.dedup();
        if are_held(&held, &is_replaced, &wanted) {
            return Ok(false);
        }
        self.replace_attributes(node.id, above, &held, &is_replaced, &wanted)?;
        Ok(true)
    }

    fn set_attributes(
        &mut self,
        path: &CatalogPath,
        version: Option<Tag>,
        is_replaced: &dyn Fn(&str) -> bool,
        attributes: &[Attribute],
    ) -> Result<bool> {
        let (node, above) = self.entry(SET, path)?.not_root(SET)?;
        if version.is_some() && version != node.current.map(|current| current.version) {
            return Ok(false);
        }
        let held = self.attributes(node.id)?;
        self.replace_attributes(node.id, above, &held, is_replaced, attributes)?;
        Ok(true)
    }

    /// Makes one operation that removes the replaced ones of the held attributes, and adds others.
    fn replace_attributes(
        &mut self,
        object: ObjectId,
        above: Vec<ObjectId>,
        held: &[TaggedAttribute],
        is_replaced: &dyn Fn(&str) -> bool,
        attributes: &[Attribute],
    ) -> Result<()> {
        let replaced =
            held.iter().filter(|row| is_replaced(&row.attribute.name) || attributes.contains(&row.attribute));
        let tags = replaced.map(|row| row.tag).collect::<Vec<Tag>>();
        let mut changes = Vec::with_capacity(attributes.len() + 1);
        if !tags.is_empty() {
            changes.push(Change::RemoveAttributes { object, tags });
        }
        let added = attributes.iter().cloned();
        changes.extend(added.map(|attribute| Change::AddAttribute { object, attribute }));
        if !changes.is_empty() {
            self.submit(changes, above)?;
        }
        Ok(())
    }
}

/// True if the replaced ones of the held attributes are exactly those that a change adds, sorted and each once.
fn are_held(held: &[TaggedAttribute], is_replaced: &dyn Fn(&str) -> bool, wanted: &[Attribute]) -> bool {
    let held = held.iter().map(|row| &row.attribute);
    let mut meant: Vec<_> = held.filter(|held| is_replaced(&held.name) || wanted.contains(held)).collect();
    meant.sort();
    meant.into_iter().eq(wanted)
}
