//! Accounts of a site: administration of accounts, groups and grants, logging in, and the own password.

use crate::error::RemoteError;
use crate::send::Call;
use crate::site::Site;
use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Time that the server takes for a password, besides the wait for its turn.
const PASSWORD_PATIENCE: Duration = Duration::from_secs(30);

/// Account without its password.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteAccount {
    /// Name of the account.
    pub name: String,
    /// Kind: `person` or `project`; `None` if a newer server wrote it.
    pub kind: Option<String>,
    /// True if the account has a password.
    pub has_password: bool,
    /// True while no token of the account is accepted.
    pub disabled: bool,
}

/// Member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Membership {
    /// Name of the group.
    pub group: String,
    /// Name of the account.
    pub account: String,
}

/// Token of a log-in.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct LoggedIn {
    /// Text of the token.
    pub secret: String,
    /// Name of the account.
    pub account: String,
    /// Public identity of the token.
    pub id: String,
    /// End of its validity, in milliseconds since 1970.
    pub expires: i64,
}

/// Right of an account, a group, or everyone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteGrant {
    /// Account or group, or `everyone`.
    pub subject: String,
    /// Right: `read`, `write` or `own`.
    pub right: String,
    /// Entry that has the grant: the entry itself, or one above it.
    pub path: String,
}

#[derive(Deserialize)]
struct AccountPage {
    accounts: Vec<SiteAccount>,
    next: Option<String>,
}

impl Site {
    /// Lists all accounts in the order of their names.
    pub async fn accounts(&self) -> Result<Vec<SiteAccount>, RemoteError> {
        let (action, url) = ("list the accounts of", &self.address(["accounts"])?);
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let request = self.request(Method::GET, url).query(&[("after", after.as_deref())]);
            let page: AccountPage = self.send_json(plain(action, url, request)).await?;
            all.extend(page.accounts);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Adds an account. Without a password nobody logs in to it by password.
    pub async fn add_account(
        &self,
        name: &str,
        is_project: bool,
        password: Option<&str>,
    ) -> Result<SiteAccount, RemoteError> {
        let kind = if is_project { "project" } else { "person" };
        let body = json!({"name": name, "kind": kind, "password": password});
        self.ask(Method::POST, "add the account by", &self.address(["accounts"])?, &body).await
    }

    /// Changes the password of an account, or disables or enables it.
    pub async fn change_account(
        &self,
        name: &str,
        password: Option<&str>,
        disabled: Option<bool>,
    ) -> Result<SiteAccount, RemoteError> {
        let body = json!({"password": password, "disabled": disabled});
        self.ask(Method::PATCH, "change the account by", &self.address(["accounts", name])?, &body).await
    }

    /// Removes an account with its memberships and the grants to it.
    pub async fn remove_account(&self, name: &str) -> Result<(), RemoteError> {
        let url = &self.address(["accounts", name])?;
        self.send(plain("remove the account by", url, self.request(Method::DELETE, url))).await.map(drop)
    }

    /// Lists the members of a group, or of all groups.
    pub async fn groups(&self, group: Option<&str>) -> Result<Vec<Membership>, RemoteError> {
        let url = &self.address(["groups"])?;
        let request = self.request(Method::GET, url).query(&[("group", group)]);
        self.send_json(plain("list the groups of", url, request)).await
    }

    /// Adds an account to a group, or removes it.
    pub async fn set_member(&self, group: &str, account: &str, is_member: bool) -> Result<(), RemoteError> {
        let url = &self.address(["groups", group, account])?;
        let method = if is_member { Method::PUT } else { Method::DELETE };
        self.send(plain("change the group by", url, self.request(method, url))).await.map(drop)
    }

    /// Makes a token for an account, by its password, or without one as a member of a project account.
    pub async fn log_in(&self, account: &str, password: Option<&str>) -> Result<LoggedIn, RemoteError> {
        let body = json!({"account": account, "password": password});
        self.ask(Method::POST, "log in by", &self.address(["login"])?, &body).await
    }

    /// Ends the token of this client at once.
    pub async fn log_out(&self) -> Result<(), RemoteError> {
        let url = &self.address(["login"])?;
        self.send(plain("log out by", url, self.request(Method::DELETE, url))).await.map(drop)
    }

    /// Changes the password of the account of the token.
    pub async fn change_password(&self, current: &str, new: &str) -> Result<(), RemoteError> {
        let url = &self.address(["password"])?;
        let call = self.with_body(
            Method::POST,
            "change the password by",
            url,
            &json!({"current": current, "new": new}),
        );
        self.send(call?).await.map(drop)
    }

    /// Lists the grants that apply to the entry at a path, from the root down to it.
    pub async fn grants(&self, path: &str) -> Result<Vec<SiteGrant>, RemoteError> {
        let url = &self.address(["grants"])?;
        let request = self.request(Method::GET, url).query(&[("path", path)]);
        self.send_json(plain("list the grants by", url, request)).await
    }

    /// Grants a right on the entry at a path: `read`, `write` or `own`.
    pub async fn grant(&self, path: &str, subject: &str, right: &str) -> Result<(), RemoteError> {
        let mut url = self.address(["grants"])?;
        url.query_pairs_mut().append_pair("path", path);
        let body = json!({"subject": subject, "right": right});
        self.send(self.with_body(Method::PUT, "grant the right by", &url, &body)?).await.map(drop)
    }

    /// Revokes the right that a subject has by a grant on the entry at a path.
    pub async fn revoke(&self, path: &str, subject: &str) -> Result<(), RemoteError> {
        let url = &self.address(["grants"])?;
        let request = self.request(Method::DELETE, url).query(&[("path", path), ("subject", subject)]);
        self.send(plain("revoke the right by", url, request)).await.map(drop)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        action: &str,
        url: &Url,
        body: &impl Serialize,
    ) -> Result<T, RemoteError> {
        self.send_json(self.with_body(method, action, url, body)?).await
    }

    fn with_body<'a>(
        &self,
        method: Method,
        action: &'a str,
        url: &'a Url,
        body: &impl Serialize,
    ) -> Result<Call<'a>, RemoteError> {
        let body = serde_json::to_vec(body);
        let body = body.map_err(|error| RemoteError::nonsense(action, url, error))?.into();
        let request = self.request(method, url).header(CONTENT_TYPE, "application/json");
        Ok(Call { action, url, request, body, patience: PASSWORD_PATIENCE })
    }
}

fn plain<'a>(action: &'a str, url: &'a Url, request: RequestBuilder) -> Call<'a> {
    Call { action, url, request, body: Bytes::new(), patience: Duration::ZERO }
}
