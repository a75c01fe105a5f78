//! Extended attributes: the metadata of an entry as `user.NAME`, and properties of its version as `user.holdfast.NAME`.
//!
//! A value is written as on the command line, with its unit in brackets. Several values of one name stand on lines.

use super::{FileSystem, ROOT};
use crate::error::FsError;
use holdfast_catalog::Value;
use holdfast_remote::{AttributeChange, AttributeValue, CatalogAttribute, CatalogStat, NewAttribute};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Name space of the extended attributes of users.
const USER: &str = "user.";

/// Attribute with the reason for which a file of a ring could not be opened.
const ERROR: &str = "user.holdfast.error";

/// Beginning of the names of properties, which cannot be changed.
const OWN: &str = "holdfast.";

/// Text of a value as the command line takes it.
fn text(attribute: &CatalogAttribute) -> String {
    let value = match &attribute.value {
        AttributeValue::Text(text) | AttributeValue::Time(text) => text.clone(),
        AttributeValue::Integer(number) => number.to_string(),
        AttributeValue::Float(number) => number.to_string(),
    };
    attribute.unit.as_ref().map_or_else(|| value.clone(), |unit| format!("{value}[{unit}]"))
}

/// Properties of the current version.
fn properties(stat: &CatalogStat) -> Vec<(&'static str, String)> {
    let current = stat.versions.iter().find(|version| Some(&version.version) == stat.current.as_ref());
    let version =
        current.map(|version| [("version", version.version.clone()), ("blake3", version.blake3.clone())]);
    let id = stat.id.clone().map(|id| ("id", id));
    id.into_iter().chain(version.into_iter().flatten()).collect()
}

/// True for attributes that a file may have. Access control lists and labels are told apart by their names, whatever they
/// contain.
pub(crate) fn is_kept(name: &str) -> bool {
    name.starts_with(USER)
}

impl FileSystem {
    async fn stat(&self, ino: u64) -> Result<CatalogStat, FsError> {
        let path = self.path(ino)?;
        self.ask(|| self.site.catalog_stat(&path)).await
    }

    /// Names of the extended attributes of an entry.
    pub async fn list_attributes(&self, ino: u64) -> Result<Vec<String>, FsError> {
        if self.is_made(ino) {
            return Ok(self.made_error(ino).map(|_| ERROR.to_owned()).into_iter().collect());
        }
        // A file that is not stored yet has none.
        if ino >> 63 == 1 && self.spool(ino).is_some() {
            return Ok(Vec::new());
        }
        let stat = self.stat(ino).await?;
        let own = properties(&stat).into_iter().map(|(name, _)| format!("{USER}{OWN}{name}"));
        let names: BTreeSet<String> =
            stat.attributes.iter().map(|attribute| format!("{USER}{}", attribute.name)).chain(own).collect();
        Ok(names.into_iter().collect())
    }

    /// Value of an extended attribute.
    pub async fn attribute(&self, ino: u64, name: &str) -> Result<String, FsError> {
        let none =
            || FsError::new(Errno::NODATA, format!("cannot read `{name}`: the file has no such attribute"));
        if self.is_made(ino) {
            return self.made_error(ino).filter(|_| name == ERROR).ok_or_else(none);
        }
        let Some(name) = name.strip_prefix(USER) else {
            let message = format!("cannot read `{name}`: only names that begin with `user.` are kept");
            return Err(FsError::new(Errno::OPNOTSUPP, message));
        };
        if ino == ROOT || (ino >> 63 == 1 && self.spool(ino).is_some()) {
            return Err(none());
        }
        let stat = self.stat(ino).await?;
        if let Some(own) = name.strip_prefix(OWN) {
            let found = properties(&stat).into_iter().find(|(property, _)| *property == own);
            return found.map(|(_, value)| value).ok_or_else(none);
        }
        let values: Vec<String> =
            stat.attributes.iter().filter(|attribute| attribute.name == name).map(text).collect();
        if values.is_empty() { Err(none()) } else { Ok(values.join("\n")) }
    }

    /// Sets an extended attribute, or removes it.
    pub async fn set_attribute(&self, ino: u64, name: &str, value: Option<&str>) -> Result<(), FsError> {
        let path = self.path(ino)?;
        self.changeable("change an attribute of", &path)?;
        let refuse = |errno, reason: &str| {
            FsError::new(errno, format!("cannot change `{name}` of `{path}`: {reason}"))
        };
        let Some(name) = name.strip_prefix(USER) else {
            return Err(refuse(Errno::OPNOTSUPP, "only names that begin with `user.` are kept"));
        };
        if name.starts_with(OWN) {
            return Err(refuse(Errno::PERM, "it is a property of the stored version"));
        }
        // The site knows a file once it is stored.
        self.store(ino).await?;
        let add = value.map(|value| {
            let unit = value.strip_suffix(']').and_then(|value| value.rsplit_once('['));
            let (value, unit) = unit.map_or((value, None), |(value, unit)| (value, Some(unit.to_owned())));
            let value = match Value::read(value) {
                Value::Text(text) => text.into(),
                Value::Integer(number) => number.into(),
                Value::Float(number) => number.get().into(),
                time @ Value::Time(_) => time.to_string().into(),
            };
            NewAttribute { name: name.to_owned(), value, unit }
        });
        let change = AttributeChange { add: add.into_iter().collect(), remove: vec![name.to_owned()] };
        self.ask(|| self.site.catalog_attributes(&path, &change)).await.map(drop)
    }
}
