//! Accounts of a site: accounts, groups, log-ins and grants.

use serde::Serialize;

/// Account of a person or a project.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct AccountLine<'a> {
    pub name: &'a str,
    pub kind: Option<&'a str>,
    pub has_password: bool,
    pub disabled: bool,
}

/// Account that was removed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct RemovedAccount<'a> {
    pub removed: &'a str,
}

/// Member of a group.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct MemberLine<'a> {
    pub group: &'a str,
    pub account: &'a str,
}

/// Token of a log-in that is kept.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct LoggedInLine<'a> {
    pub site: &'a str,
    pub account: &'a str,
    pub id: &'a str,
    pub expires: String,
    pub file: String,
}

/// Site whose kept token was removed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct LoggedOutLine<'a> {
    pub site: &'a str,
    pub revoked: bool,
}

/// Account whose password was changed.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ChangedPassword<'a> {
    pub account: Option<&'a str>,
}

/// Right of an account, a group, or everyone on an entry.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct GrantLine<'a> {
    pub subject: &'a str,
    pub right: Option<&'a str>,
    pub path: &'a str,
}

/// Denied request or administrative act of a site.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct SiteAuditLine<'a> {
    pub time: String,
    pub account: Option<&'a str>,
    pub token: Option<&'a str>,
    pub peer: Option<&'a str>,
    pub act: &'a str,
    pub object: &'a str,
    pub outcome: &'a str,
}
