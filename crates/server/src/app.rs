//! Shared state of all request handlers.

use crate::archive::Archive;
use crate::clock::Clock;
use crate::copies::Copier;
use crate::log::Log;
use crate::log_in::LogIns;
use crate::metrics::Metrics;
use crate::options::Limits;
use crate::rate_limiter::RateLimiter;
use crate::replication::Replication;
use crate::searches::Searches;
use crate::site::SiteArchive;
use crate::token_store::TokenStore;
use crate::upload_store::UploadStore;
use std::sync::{Arc, Mutex};

/// State of one server.
pub(crate) struct App {
    pub(crate) uploads: Arc<UploadStore>,
    pub(crate) tokens: Arc<TokenStore>,
    pub(crate) archive: Arc<dyn Archive>,
    /// Site behind the archive, for routes of the catalog and of drivers.
    pub(crate) site: Arc<SiteArchive>,
    /// Name that this site gives itself.
    pub(crate) name: String,
    pub(crate) replication: Arc<Replication>,
    pub(crate) copier: Arc<Copier>,
    pub(crate) limiter: Mutex<RateLimiter>,
    pub(crate) log_ins: LogIns,
    pub(crate) searches: Searches,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) metrics: Arc<Metrics>,
    /// True when only programs of this machine can reach the server.
    pub(crate) is_loopback: bool,
}
