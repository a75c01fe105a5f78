//! Surroundings of a catalog: wall time and fresh ids. Tests pass their own.

use crate::hlc::Millis;
use crate::ids::ObjectId;
use std::time::{SystemTime, UNIX_EPOCH};

/// Source of wall time and of fresh object ids.
pub trait Host: Send {
    /// Wall time of this machine.
    fn now(&mut self) -> Millis;
    /// Id that no object has: a UUID of version 7.
    fn object_id(&mut self) -> ObjectId;
}

/// Clock and random numbers of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemHost;

impl Host for SystemHost {
    fn now(&mut self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn object_id(&mut self) -> ObjectId {
        ObjectId(uuid::Uuid::now_v7().into_bytes())
    }
}
