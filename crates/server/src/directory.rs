//! Directory of accounts and groups: their facts in the catalog, so that all sites have them.
//!
//! The fact of an account has its name as key. A membership is a fact of its own, `GROUP/ACCOUNT`, so that two sites can
//! change the members of one group at once.

use crate::account::{Account, AccountName};
use crate::site::AnyStore;
use holdfast_catalog::{Catalog, CatalogError, FactKind, MAX_PAGE, Result, Right};
use serde::Serialize;
use utoipa::ToSchema;

/// Catalog of a site.
type SiteCatalog = Catalog<AnyStore>;

/// Member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Membership {
    /// Name of the group.
    pub(crate) group: String,
    /// Name of the account.
    pub(crate) account: String,
}

impl Membership {
    fn read(key: &str) -> Option<Self> {
        let (group, account) = key.split_once('/')?;
        Some(Self { group: group.to_owned(), account: account.to_owned() })
    }
}

/// Account with a name. A body that cannot be read counts as none, so that it gives no access.
pub(crate) fn account(catalog: &mut SiteCatalog, name: &AccountName) -> Result<Option<Account>> {
    let fact = catalog.fact(FactKind::Account, name.as_str())?;
    Ok(fact.and_then(|fact| fact.body).and_then(|body| serde_json::from_str(&body).ok()))
}

/// Accounts after a name, in the order of names, at most `most`.
pub(crate) fn accounts(
    catalog: &mut SiteCatalog,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<(String, Option<Account>)>> {
    let facts = catalog.facts(FactKind::Account, after, most)?.into_iter();
    let read = facts.map(|fact| (fact.key, fact.body.and_then(|body| serde_json::from_str(&body).ok())));
    Ok(read.collect())
}

/// Sets the body of an account.
pub(crate) fn set_account(catalog: &mut SiteCatalog, name: &AccountName, account: &Account) -> Result<()> {
    let body = serde_json::to_string(account).map_err(|error| CatalogError::Damaged(error.to_string()))?;
    catalog.set_fact(FactKind::Account, name.as_str(), Some(&body))
}

/// Removes an account with its memberships and the grants to it. False if there is none.
pub(crate) fn remove_account(catalog: &mut SiteCatalog, name: &AccountName) -> Result<bool> {
    if catalog.fact(FactKind::Account, name.as_str())?.is_none() {
        return Ok(false);
    }
    // Removed at first, so that an interruption leaves no account without its limits.
    catalog.set_fact(FactKind::Account, name.as_str(), None)?;
    for group in groups_of(catalog, name)? {
        catalog.set_fact(FactKind::Group, &format!("{group}/{name}"), None)?;
    }
    if memberships(catalog, Some(name))?.is_empty() {
        for (path, _) in catalog.granted(&[name.as_str()])? {
            // A grant on an entry in the trash stays.
            match catalog.revoke(&path, name.as_str()) {
                Err(CatalogError::NotFound { .. } | CatalogError::Unsuitable { .. }) => {}
                revoked => revoked?,
            }
        }
    }
    Ok(true)
}

/// Adds an account to a group, or removes it.
pub(crate) fn set_member(
    catalog: &mut SiteCatalog,
    group: &AccountName,
    account: &AccountName,
    is_member: bool,
) -> Result<()> {
    catalog.set_fact(FactKind::Group, &format!("{group}/{account}"), is_member.then_some("{}"))
}

/// True if the account is a member of the group.
pub(crate) fn is_member(
    catalog: &mut SiteCatalog,
    group: &AccountName,
    account: &AccountName,
) -> Result<bool> {
    Ok(catalog.fact(FactKind::Group, &format!("{group}/{account}"))?.is_some())
}

/// Groups of an account, in the order of names.
pub(crate) fn groups_of(catalog: &mut SiteCatalog, account: &AccountName) -> Result<Vec<String>> {
    let facts = catalog.facts_ending(FactKind::Group, &format!("/{account}"))?;
    Ok(facts.iter().filter_map(|fact| Some(Membership::read(&fact.key)?.group)).collect())
}

/// Members of a group, or of all groups.
pub(crate) fn memberships(catalog: &mut SiteCatalog, group: Option<&AccountName>) -> Result<Vec<Membership>> {
    let prefix = group.map_or_else(String::new, |group| format!("{group}/"));
    let (mut found, mut after) = (Vec::new(), prefix.clone());
    loop {
        let page = catalog.facts(FactKind::Group, Some(&after), MAX_PAGE)?;
        let within = page.iter().take_while(|fact| fact.key.starts_with(&prefix)).count();
        found.extend(page[..within].iter().filter_map(|fact| Membership::read(&fact.key)));
        match page.last().filter(|_| within == MAX_PAGE) {
            Some(last) => last.key.clone_into(&mut after),
            None => return Ok(found),
        }
    }
}

/// True if an account or a group has the name, or all accounts are meant.
pub(crate) fn is_subject(catalog: &mut SiteCatalog, name: &str) -> Result<bool> {
    if name == crate::account::EVERYONE {
        return Ok(true);
    }
    let Ok(name) = AccountName::parse(name) else { return Ok(false) };
    Ok(account(catalog, &name)?.is_some() || !memberships(catalog, Some(&name))?.is_empty())
}

/// Name of a right in lower case.
pub(crate) fn right_name(right: Right) -> &'static str {
    match right {
        Right::Read => "read",
        Right::Write => "write",
        Right::Own => "own",
    }
}
