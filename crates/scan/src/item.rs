//! Items of a scan: files and elements, and their names.

use holdfast_vault::Place;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File, object or stream that items come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Container {
    /// Path of a file as it was found, or place of a ring, dataset or object.
    pub source: Arc<str>,
    /// Stream of the source, or path in a packed folder; `None` for a file.
    pub stream: Option<Arc<str>>,
    /// Path of the source on this machine, whose name need not be text.
    pub path: Option<PathBuf>,
}

impl Container {
    /// Container of a file at this path.
    pub fn file(path: &Path) -> Self {
        Self { source: path.to_string_lossy().into(), stream: None, path: Some(path.to_owned()) }
    }

    /// Container of an object or source with this name.
    pub fn named(name: &str) -> Self {
        Self { source: name.into(), stream: None, path: None }
    }

    /// Container of a stream's elements, in this source.
    pub fn stream(source: &Self, stream: &str) -> Self {
        Self { source: Arc::clone(&source.source), stream: Some(stream.into()), path: source.path.clone() }
    }

    /// Container of what lies at this place.
    pub fn at(place: &Place) -> Self {
        match place {
            Place::Local(path) => Self::file(path),
            Place::Vault(..) => Self::named(&place.to_string()),
        }
    }

    /// Name of the source as bytes: a path of this machine need not be text.
    pub fn source_bytes(&self) -> &[u8] {
        self.path.as_ref().map_or(self.source.as_bytes(), |path| path.as_os_str().as_bytes())
    }

    /// Name as it is, with bytes that are no text.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.source_bytes().to_vec();
        if let Some(stream) = &self.stream {
            name.push(b':');
            name.extend_from_slice(stream.as_bytes());
        }
        name
    }
}

/// File, or element of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Origin of the item; all of it for a file.
    pub container: &'a Arc<Container>,
    /// Ordinal of an element.
    pub ordinal: Option<u64>,
    /// Arrival of an element, in nanoseconds since 1970 (UTC).
    pub arrival_ns: Option<i64>,
}

impl<'a> Item<'a> {
    /// All of a file.
    pub fn whole(container: &'a Arc<Container>) -> Self {
        Self { container, ordinal: None, arrival_ns: None }
    }

    /// Name of the item, owned.
    pub fn id(&self) -> ItemId {
        let Self { container, ordinal, arrival_ns } = *self;
        ItemId { container: Arc::clone(container), ordinal, arrival_ns }
    }
}

/// Name of an item, owned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId {
    /// Origin of the item; all of it for a file.
    pub container: Arc<Container>,
    /// Ordinal of an element.
    pub ordinal: Option<u64>,
    /// Arrival of an element, in nanoseconds since 1970 (UTC).
    pub arrival_ns: Option<i64>,
}

impl ItemId {
    /// Name as it is, with bytes that are no text.
    pub fn name(&self) -> Vec<u8> {
        let mut name = self.container.name();
        if let Some(ordinal) = self.ordinal {
            name.extend_from_slice(format!("/{ordinal}").as_bytes());
        }
        name
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        self.stream.as_ref().map_or(Ok(()), |stream| write!(f, ":{stream}"))
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.container.fmt(f)?;
        self.ordinal.map_or(Ok(()), |ordinal| write!(f, "/{ordinal}"))
    }
}
