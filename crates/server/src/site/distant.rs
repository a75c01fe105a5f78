//! Replicas at other sites, behind a trait. The implementation over the network is in `replication`.

use crate::archive::{ArchiveError, ReadAt};
use holdfast_catalog::{Stat, Version};

/// Replicas at other sites. Methods block.
pub(crate) trait DistantReplicas: Send + Sync {
    /// Opens a verified replica of a version, at the nearest site that gives it; nothing if no peer has one.
    fn open(&self, stat: &Stat, version: &Version) -> Result<Option<Box<dyn ReadAt>>, ArchiveError>;
}
