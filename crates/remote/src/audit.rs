//! Audit of a site: denied requests, log-ins and administrative acts.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use serde::Deserialize;
use std::time::Duration;

/// Record of the audit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditRecord {
    /// Number of the record; later ones have greater numbers.
    pub id: i64,
    /// Time of the act, in milliseconds since 1970.
    pub time: i64,
    /// Account of the token, if it has one.
    pub account: Option<String>,
    /// Identity of the token, if a valid one was sent.
    pub token: Option<String>,
    /// Address of the client.
    pub peer: Option<String>,
    /// Act, such as `account add`; of a denied request its method.
    pub act: String,
    /// Object of the act; of a denied request its address.
    pub object: String,
    /// Outcome: `done` or `denied`.
    pub outcome: String,
}

/// Page of the audit, from the newest record to the oldest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditPage {
    /// Records of this page.
    pub records: Vec<AuditRecord>,
    /// Value of `before` for the next page; `None` on the last page.
    pub next: Option<i64>,
}

impl Site {
    /// Reads one page of the audit: records since a time, in milliseconds since 1970, before the record `before`.
    pub async fn audit(
        &self,
        denied: bool,
        since: Option<i64>,
        before: Option<i64>,
    ) -> Result<AuditPage, RemoteError> {
        let (action, url) = ("read the audit of", &self.address(["audit"])?);
        let query = (("denied", denied), ("since", since), ("before", before));
        let request = self.request(Method::GET, url).query(&query);
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }
}
