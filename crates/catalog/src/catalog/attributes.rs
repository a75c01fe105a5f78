//! Attributes and annotations of entries; those of a link are those of its target.

use super::Catalog;
use super::batch::Batch;
use super::links::resolve_object;
use super::stat::attributes_of;
use crate::error::{CatalogError, Result};
use crate::ids::Tag;
use crate::name::CatalogPath;
use crate::operation::Change;
use crate::record::TaggedAttribute;
use crate::store::CatalogStore;
use crate::value::{Attribute, Value};

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
    pub fn change_attributes_all(&mut self, changes: &[AttributeChange]) -> Result<()> {
        changes.iter().flat_map(|change| &change.attributes).try_for_each(Attribute::check)?;
        let change = |batch: &mut Batch<'_, S>, change: &AttributeChange| {
            let is_replaced = |name: &str| change.replaced.iter().any(|replaced| replaced == name);
            batch.set_attributes(&change.path, None, &is_replaced, &change.attributes).map(drop)
        };
        self.write(|writer| writer.batch(|batch| changes.iter().try_for_each(|one| change(batch, one))))
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
    fn set_attributes(
        &mut self,
        path: &CatalogPath,
        version: Option<Tag>,
        is_replaced: &dyn Fn(&str) -> bool,
        attributes: &[Attribute],
    ) -> Result<bool> {
        const VERB: &str = "set attributes of";
        let (node, above) = self.entry(VERB, path)?.not_root(VERB)?;
        if version.is_some() && version != node.current.map(|current| current.version) {
            return Ok(false);
        }
        let held = self.attributes(node.id)?;
        let replaced =
            held.iter().filter(|row| is_replaced(&row.attribute.name) || attributes.contains(&row.attribute));
        let (object, tags) = (node.id, replaced.map(|row| row.tag).collect::<Vec<Tag>>());
        let mut changes = Vec::with_capacity(attributes.len() + 1);
        if !tags.is_empty() {
            changes.push(Change::RemoveAttributes { object, tags });
        }
        let added = attributes.iter().cloned();
        changes.extend(added.map(|attribute| Change::AddAttribute { object, attribute }));
        if !changes.is_empty() {
            self.submit(changes, above)?;
        }
        Ok(true)
    }
}
