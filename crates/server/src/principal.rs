//! Principal: the account of a request with its rights, loaded once a request. Decisions are in `authorization`.

use crate::account::{AccountName, EVERYONE};
use crate::directory;
use crate::site::AnyStore;
use holdfast_catalog::{Catalog, CatalogPath, Result, Right};

/// Account with the rights that it has by itself, by its groups, and as one of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Name of the account.
    pub(crate) account: AccountName,
    /// Entries with the rights on them and on all below them.
    pub(crate) rights: Vec<(CatalogPath, Right)>,
}

impl Principal {
    /// Loads the rights of an account; nothing for one that is disabled or removed.
    pub(crate) fn load(catalog: &mut Catalog<AnyStore>, account: &AccountName) -> Result<Option<Self>> {
        if directory::account(catalog, account)?.is_none_or(|found| found.disabled) {
            return Ok(None);
        }
        let groups = directory::groups_of(catalog, account)?;
        let subjects = [account.as_str(), EVERYONE].into_iter().chain(groups.iter().map(String::as_str));
        let rights = catalog.granted(&subjects.collect::<Vec<_>>())?;
        Ok(Some(Self { account: account.clone(), rights }))
    }

    /// Greatest right on the entry at a path or on one above it.
    pub(crate) fn right_on(&self, path: &CatalogPath) -> Option<Right> {
        self.rights.iter().filter(|(at, _)| at.holds(path)).map(|(_, right)| *right).max()
    }

    /// True if the account has the right on the entry at a path, or on one above or below it.
    pub(crate) fn reaches(&self, path: &CatalogPath, right: Right) -> bool {
        self.rights.iter().any(|(at, has)| *has >= right && (at.holds(path) || path.holds(at)))
    }
}
