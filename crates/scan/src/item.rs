//! Items of a scan: files and elements, and their names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File, object or stream that items come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Container {
    /// Path of a file as it was found, or place of a ring, dataset or object.
    pub source: Arc<str>,
    /// Stream of the source, or path in a packed folder; `None` for a file.
    pub stream: Option<Arc<str>>,
    /// Path of a file of this machine, whose name need not be text.
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

    /// Container of a stream's elements.
    pub fn stream(source: &Arc<str>, stream: &str) -> Self {
        Self { source: Arc::clone(source), stream: Some(stream.into()), path: None }
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
