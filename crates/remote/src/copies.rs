//! Policies of collections, jobs of a site, and staging.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Policy of a collection of the site.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SitePolicy {
    /// Path of the collection.
    pub path: String,
    /// Number of sites that shall have a verified replica.
    pub copies: u64,
    /// Names of the sites in the order in which they are chosen.
    pub sites: Vec<String>,
    /// Priority of the jobs; greater ones come first.
    pub priority: i32,
}

/// Policy that is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewPolicy {
    /// Number of sites that shall have a verified replica.
    pub copies: u64,
    /// Names or identities of the sites in the order in which they are chosen.
    pub sites: Vec<String>,
    /// Priority of the jobs; greater ones come first.
    pub priority: i32,
}

/// Job of a site.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteJob {
    /// Path of the object when the job was made.
    pub path: String,
    /// Identity of the object.
    pub object: String,
    /// Version that is fetched.
    pub version: String,
    /// Reason of the job: `policy` or `stage`.
    pub reason: String,
    /// State: `waiting`, `running`, `failed` or `done`.
    pub state: String,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Time of the last change of the state, in milliseconds since 1970.
    pub changed: i64,
    /// Time of the next attempt of a failed job, in milliseconds since 1970.
    pub due: Option<i64>,
    /// Error of the last attempt of a failed job.
    pub error: Option<String>,
}

#[derive(Deserialize)]
struct Staged {
    fetching: u64,
}

impl Site {
    /// Lists the policies of all collections.
    pub async fn policies(&self) -> Result<Vec<SitePolicy>, RemoteError> {
        let url = &self.address(["policies"])?;
        let (action, request) = ("list the policies of", self.request(Method::GET, url));
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }

    /// Sets the policy of a collection.
    pub async fn set_policy(&self, path: &str, policy: &NewPolicy) -> Result<SitePolicy, RemoteError> {
        let (action, url) = ("set the policy by", &self.address(["policies"])?);
        let body = serde_json::to_vec(policy);
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(Method::PUT, url).query(&[("path", path)]);
        let request = request.header(CONTENT_TYPE, "application/json");
        self.send_json(Call { action, url, request, body, patience: Duration::ZERO }).await
    }

    /// Removes the policy of a collection.
    pub async fn remove_policy(&self, path: &str) -> Result<(), RemoteError> {
        let (action, url) = ("remove the policy by", &self.address(["policies"])?);
        let request = self.request(Method::DELETE, url).query(&[("path", path)]);
        self.send(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await.map(drop)
    }

    /// Lists the jobs of the site.
    pub async fn jobs(&self) -> Result<Vec<SiteJob>, RemoteError> {
        let url = &self.address(["jobs"])?;
        let (action, request) = ("list the jobs of", self.request(Method::GET, url));
        self.send_json(Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }).await
    }

    /// Fetches what is at a path to this site, or to a peer of it. Returns the number of versions that are fetched.
    pub async fn stage(&self, path: &str, near: Option<&str>) -> Result<u64, RemoteError> {
        let url = &self.address(["jobs"])?;
        let request = self.request(Method::POST, url).query(&[("path", Some(path)), ("near", near)]);
        let call = Call { action: "stage by", url, request, body: Bytes::new(), patience: Duration::ZERO };
        let Staged { fetching } = self.send_json(call).await?;
        Ok(fetching)
    }
}
