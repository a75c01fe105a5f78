//! Authorization: the decision for a verb on a path. Pure: token and rights are passed in.
//!
//! A token needs the scope of the verb. A token of an account needs the right of the verb on the path, too; the scope
//! `admin` stands for all rights, as its holder can make any token.

use crate::directory::right_name;
use crate::object_path::ProjectName;
use crate::principal::Principal;
use crate::token::{Scope, TokenInfo};
use holdfast_catalog::{CatalogPath, Right};
use std::fmt;

/// Verb of a request on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Listing a collection, or searching below it. The answer has only what the account may read.
    List,
    /// Reading an entry, its contents and the grants on it.
    Read,
    /// Uploading an object, and continuing an upload.
    Upload,
    /// Making, changing, moving, deleting and restoring an entry.
    Change,
    /// Settling a conflict about an entry.
    Settle,
    /// Granting and revoking rights on an entry.
    Grant,
}

impl Verb {
    /// Scope that a token needs; granting by a token without account is for administrators.
    fn scope(self, is_of_account: bool) -> Scope {
        match self {
            Self::List | Self::Read => Scope::Read,
            Self::Grant if !is_of_account => Scope::Admin,
            Self::Upload | Self::Change | Self::Settle | Self::Grant => Scope::Write,
        }
    }

    /// Right that an account needs.
    fn right(self) -> Right {
        match self {
            Self::List | Self::Read => Right::Read,
            Self::Upload | Self::Change => Right::Write,
            Self::Settle | Self::Grant => Right::Own,
        }
    }
}

/// Reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The token lacks the scope.
    Scope(Scope),
    /// The token is bound to another project.
    Project(ProjectName),
    /// The account lacks the right on the path.
    Right(Right, CatalogPath),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(scope) => write!(f, "it needs the scope {}", scope.name()),
            Self::Project(own) => write!(f, "the token is bound to the project {own}"),
            Self::Right(right, path) => {
                write!(f, "the account needs the right {} on `{path}`", right_name(*right))
            }
        }
    }
}

/// Decides on a verb on a path. On a link counts the lesser of the rights there and on its target.
pub(crate) fn decide(
    token: &TokenInfo,
    principal: Option<&Principal>,
    verb: Verb,
    path: &CatalogPath,
    link_target: Option<&CatalogPath>,
) -> Result<(), Denial> {
    let scope = verb.scope(principal.is_some());
    if !token.scopes.grants(scope) {
        return Err(Denial::Scope(scope));
    }
    if let Some(own) = &token.project
        && path.components().first().is_none_or(|project| project != own.as_str())
    {
        return Err(Denial::Project(own.clone()));
    }
    match principal.filter(|_| !token.scopes.grants(Scope::Admin)) {
        Some(principal) => decide_right(principal, verb, path, link_target),
        None => Ok(()),
    }
}

/// Decides on the right of an account for a verb on a path, without the scope.
pub(crate) fn decide_right(
    principal: &Principal,
    verb: Verb,
    path: &CatalogPath,
    link_target: Option<&CatalogPath>,
) -> Result<(), Denial> {
    let right = verb.right();
    let has = |path: &CatalogPath| principal.right_on(path) >= Some(right);
    let is_on_the_way = verb == Verb::List && principal.reaches(path, right);
    match [Some(path), link_target].into_iter().flatten().find(|path| !has(path)) {
        Some(lacking) if !is_on_the_way => Err(Denial::Right(right, lacking.clone())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, AccountKind, AccountName, EVERYONE};
    use crate::clock::Timestamp;
    use crate::directory::{remove_account, set_account, set_member};
    use crate::site::AnyStore;
    use crate::token::{Scopes, TokenId};
    use holdfast_catalog::{Catalog, SiteId, SqliteStore, SystemHost};

    const VERBS: [Verb; 6] = [Verb::List, Verb::Read, Verb::Upload, Verb::Change, Verb::Settle, Verb::Grant];

    fn name(text: &str) -> AccountName {
        AccountName::parse(text).unwrap()
    }

    fn path(text: &str) -> CatalogPath {
        text.parse().unwrap()
    }

    /// Catalog with `/lab/a/b`, `/public` and `/other`, and an account for every relation.
    fn catalog(folder: &std::path::Path) -> Catalog<AnyStore> {
        let store: AnyStore = Box::new(SqliteStore::open(&folder.join("c.db")).unwrap());
        let mut catalog = Catalog::open_own(store, SiteId::random(), Box::new(SystemHost)).unwrap();
        for at in ["/lab/a/b", "/public", "/other"] {
            catalog.make_collection(&path(at), true).unwrap();
        }
        for account in ["owner", "writer", "reader", "member", "other", "below", "gone", "disabled"] {
            let kind = AccountKind::Person;
            let disabled = account == "disabled";
            set_account(&mut catalog, &name(account), &Account { kind, password: None, disabled }).unwrap();
        }
        set_member(&mut catalog, &name("staff"), &name("member"), true).unwrap();
        for (at, subject, right) in [
            ("/lab", "owner", Right::Own),
            ("/lab", "writer", Right::Write),
            ("/lab", "reader", Right::Read),
            ("/lab/a", "reader", Right::Read),
            ("/lab", "staff", Right::Write),
            ("/lab", "disabled", Right::Own),
            ("/lab", "gone", Right::Own),
            ("/other", "other", Right::Own),
            ("/lab/a/b", "below", Right::Own),
            ("/public", EVERYONE, Right::Read),
        ] {
            catalog.grant(&path(at), subject, right).unwrap();
        }
        assert!(remove_account(&mut catalog, &name("gone")).unwrap());
        assert!(!remove_account(&mut catalog, &name("gone")).unwrap());
        catalog
    }

    fn token(scopes: &[Scope], project: Option<&str>) -> TokenInfo {
        TokenInfo {
            id: TokenId::from_bits(1),
            name: String::new(),
            scopes: Scopes::of(scopes),
            project: project.map(|project| ProjectName::parse(project).unwrap()),
            account: None,
            created: Timestamp::from_milliseconds(0),
            expires: None,
            revoked: None,
            last_use: None,
        }
    }

    #[test]
    fn every_verb_of_every_relation_is_decided_by_its_right() {
        let folder = tempfile::tempdir().unwrap();
        let mut catalog = catalog(folder.path());
        let token = token(&[Scope::Read, Scope::Write], None);
        let (all, write, read, list) = (6, 4, 2, 1);
        // Relation, path, and the number of verbs that it may do, in the order of `VERBS`.
        for (account, at, allowed) in [
            ("owner", "/lab/a", all),
            ("owner", "/lab", all),
            ("owner", "/lab/a/b/new/entry", all),
            ("owner", "/", list),
            ("writer", "/lab/a", write),
            ("reader", "/lab/a", read),
            ("member", "/lab/a", write),
            ("below", "/lab/a/b", all),
            ("below", "/lab/a", list),
            ("below", "/lab/c", 0),
            ("other", "/lab/a", 0),
            ("other", "/lab/none", 0),
            ("other", "/other", all),
            // Everyone, and with it every relation, may read this.
            ("other", "/public/x", read),
            ("owner", "/public/x", read),
        ] {
            let principal = Principal::load(&mut catalog, &name(account)).unwrap().unwrap();
            for (place, verb) in VERBS.into_iter().enumerate() {
                let decision = decide(&token, Some(&principal), verb, &path(at), None);
                assert_eq!(decision.is_ok(), place < allowed, "{account} {verb:?} {at}: {decision:?}");
            }
        }
        for closed in ["disabled", "gone", "stranger"] {
            assert_eq!(Principal::load(&mut catalog, &name(closed)).unwrap(), None, "{closed}");
        }
        // An account of a former name has none of its rights.
        let (kind, password, disabled) = (AccountKind::Person, None, false);
        set_account(&mut catalog, &name("gone"), &Account { kind, password, disabled }).unwrap();
        let again = Principal::load(&mut catalog, &name("gone")).unwrap().unwrap();
        assert_eq!(again.rights, [(path("/public"), Right::Read)]);
    }

    #[test]
    fn scopes_projects_and_link_targets_limit_rights() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Principal::load(&mut catalog(folder.path()), &name("owner")).unwrap().unwrap();
        let (lab, other) = (path("/lab/a"), path("/other"));
        let decide = |token: &TokenInfo, principal, verb, at: &CatalogPath, target| {
            decide(token, principal, verb, at, target).err()
        };
        let reading = token(&[Scope::Read], None);
        assert_eq!(decide(&reading, Some(&owner), Verb::Read, &lab, None), None);
        let denial = decide(&reading, Some(&owner), Verb::Grant, &lab, None);
        assert_eq!(denial, Some(Denial::Scope(Scope::Write)));
        let bound = token(&[Scope::Write], Some("lab"));
        assert_eq!(decide(&bound, Some(&owner), Verb::Change, &lab, None), None);
        let denial = decide(&bound, None, Verb::Change, &other, None);
        assert_eq!(denial, Some(Denial::Project(ProjectName::parse("lab").unwrap())));
        // Without account the scope decides, and granting is for administrators.
        let free = token(&[Scope::Read, Scope::Write], None);
        for verb in VERBS {
            let expected = (verb == Verb::Grant).then_some(Denial::Scope(Scope::Admin));
            assert_eq!(decide(&free, None, verb, &other, None), expected, "{verb:?}");
            let admin = token(&[Scope::Admin], None);
            assert_eq!(decide(&admin, Some(&owner), verb, &other, None), None, "{verb:?}");
        }
        // A link does not reach what its target forbids.
        let denial = decide(&free, Some(&owner), Verb::Read, &lab, Some(&other));
        assert_eq!(denial, Some(Denial::Right(Right::Read, other)));
    }
}
