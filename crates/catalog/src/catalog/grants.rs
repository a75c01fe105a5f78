//! Grants of rights on entries, which the entries below inherit.

use super::links::target_of;
use super::lookup::{Resolved, WayFinder, node, path_of, resolve};
use super::tree::former_path;
use super::{Catalog, MAX_PAGE};
use crate::error::{CatalogError, Result};
use crate::grant::{Grant, Right};
use crate::ids::ObjectId;
use crate::name::CatalogPath;
use crate::operation::Change;
use crate::store::row::{GRANT, RowReader};
use crate::store::{CatalogStore, SqlValue, collect};

impl<S: CatalogStore> Catalog<S> {
    /// Grants a right on the entry at a path to an account or a group, in the place of its right there.
    pub fn grant(&mut self, path: &CatalogPath, subject: &str, right: Right) -> Result<()> {
        self.set_grant("grant a right on", path, subject, Some(right))
    }

    /// Revokes the right on the entry at a path of an account or a group. An inherited right stays.
    pub fn revoke(&mut self, path: &CatalogPath, subject: &str) -> Result<()> {
        const VERB: &str = "revoke a right on";
        if self.grants(path)?.iter().all(|grant| grant.subject != subject) {
            let (reason, remedy) = ("the subject has none there", "list the grants of the entry");
            return Err(CatalogError::unsuitable(VERB, path, reason, remedy));
        }
        self.set_grant(VERB, path, subject, None)
    }

    fn set_grant(
        &mut self,
        verb: &'static str,
        path: &CatalogPath,
        subject: &str,
        right: Option<Right>,
    ) -> Result<()> {
        self.write(|writer| {
            let object = resolve(writer.store, verb, path)?.id();
            let subject = subject.to_owned();
            writer.submit(vec![Change::SetGrant { object, subject, right }], Vec::new())?;
            Ok(())
        })
    }

    /// Lists the grants on the entry at a path by subject, without inherited ones.
    pub fn grants(&mut self, path: &CatalogPath) -> Result<Vec<Grant>> {
        self.read(|store| {
            let object = resolve(store, "list the grants on", path)?.id();
            grants_on(store, object)
        })
    }

    /// Lists the rights that subjects have by grants to them, with the paths of the entries: for those in the trash, the
    /// former ones. At most [`MAX_PAGE`] a subject.
    pub fn granted(&mut self, subjects: &[&str]) -> Result<Vec<(CatalogPath, Right)>> {
        self.read(|store| {
            let sql = format!(
                "SELECT {GRANT} FROM grants WHERE subject = ?1 AND granted IS NOT NULL ORDER BY object LIMIT ?2"
            );
            let (mut finder, mut granted) = (WayFinder::default(), Vec::new());
            for subject in subjects {
                let limit = SqlValue::from(MAX_PAGE as u64);
                for grant in collect(store, &sql, &[(*subject).into(), limit], RowReader::grant)? {
                    let path = match path_of(store, &mut finder, grant.object)? {
                        _ if grant.object.is_root() => Some(CatalogPath::root()),
                        Some(path) => Some(path),
                        None => node(store, grant.object)?.map(|node| former_path(store, &node)).transpose()?,
                    };
                    granted.extend(path.zip(grant.right));
                }
            }
            Ok(granted)
        })
    }

    /// Finds the greatest right of an account, given with its groups, on the entry at a path or any above it.
    ///
    /// A link grants nothing on its target: on a link counts the lesser of the rights there and on the target.
    pub fn right_of(&mut self, path: &CatalogPath, subjects: &[&str]) -> Result<Option<Right>> {
        self.read(|store| {
            let found = resolve(store, "check the rights on", path)?;
            let right = greatest_right(store, &found, subjects)?;
            match target_of(store, &mut WayFinder::default(), &found)? {
                Some(target) => Ok(right.min(greatest_right(store, &target, subjects)?)),
                None => Ok(right),
            }
        })
    }
}

/// Greatest right on an entry or any above it.
fn greatest_right<S: CatalogStore>(
    store: &mut S,
    entry: &Resolved,
    subjects: &[&str],
) -> Result<Option<Right>> {
    let mut greatest = None;
    for object in entry.above.iter().copied().chain([ObjectId::ROOT, entry.id()]) {
        let grants = grants_on(store, object)?.into_iter();
        let own = grants.filter(|grant| subjects.contains(&grant.subject.as_str()));
        greatest = own.filter_map(|grant| grant.right).chain(greatest).max();
    }
    Ok(greatest)
}

/// Grants on one entry by subject, without tombstones.
fn grants_on<S: CatalogStore>(store: &mut S, object: ObjectId) -> Result<Vec<Grant>> {
    let sql = format!(
        "SELECT {GRANT} FROM grants WHERE object = ?1 AND granted IS NOT NULL ORDER BY subject LIMIT ?2"
    );
    let limit = SqlValue::from(MAX_PAGE as u64);
    collect(store, &sql, &[object.into(), limit], RowReader::grant)
}
