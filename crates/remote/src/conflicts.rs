//! Conflicts between sites: lists of them, and their settlement.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use std::time::Duration;

/// Write that a conflict is about.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConflictWrite {
    /// Site that wrote, in hexadecimal digits.
    pub site: String,
    /// Name of the site; empty from a server that tells none.
    #[serde(default)]
    pub site_name: String,
    /// Time of the write, in milliseconds since 1970.
    pub time: i64,
    /// Path or version that was written, if it is still there.
    pub value: Option<String>,
}

/// Conflict between changes of several sites.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteConflict {
    /// Identity of the conflict, the same at all sites.
    pub id: String,
    /// Kind: `name`, `contents`, `same_name` or `cycle`.
    pub kind: String,
    /// Identity of the entry.
    pub object: String,
    /// Path of the entry; `None` if it lies in the trash.
    pub path: Option<String>,
    /// Earlier write, the one that lost.
    pub lost: ConflictWrite,
    /// Write that won, if there is one.
    pub won: Option<ConflictWrite>,
    /// Time at which the site learned of the conflict, in milliseconds since 1970.
    pub noted: Option<i64>,
    /// State: `open`, `settled` or `final`.
    pub state: String,
    /// End of the time for settling it, in milliseconds since 1970.
    pub until: Option<i64>,
    /// Decision of a settled conflict: `keep` or `flip`.
    pub choice: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    conflicts: Vec<SiteConflict>,
    next: Option<String>,
}

impl Site {
    /// Lists all conflicts: two writes of one register, equal names, and refused moves.
    pub async fn conflicts(&self) -> Result<Vec<SiteConflict>, RemoteError> {
        let (action, url) = ("list the conflicts of", &self.address(["conflicts"])?);
        let mut all = Vec::new();
        for group in ["recorded", "names", "moves"] {
            let mut after: Option<String> = None;
            loop {
                let query = [("group", Some(group)), ("after", after.as_deref())];
                let request = self.request(Method::GET, url).query(&query);
                let call = Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO };
                let page: Page = self.send_json(call).await?;
                all.extend(page.conflicts);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(all)
    }

    /// Settles a conflict: keeps what is shown now, or takes the write that lost.
    pub async fn settle_conflict(&self, id: &str, flip: bool) -> Result<(), RemoteError> {
        let (action, url) = ("settle the conflict", &self.address(["conflicts", id])?);
        let choice = if flip { "flip" } else { "keep" };
        let body = Bytes::from(format!("{{\"choice\":\"{choice}\"}}"));
        let request = self.request(Method::POST, url).header(CONTENT_TYPE, "application/json");
        self.send(Call { action, url, request, body, patience: Duration::ZERO }).await.map(drop)
    }
}
