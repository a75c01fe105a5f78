//! Crashes: a connection that is lost at any statement, and writers that meet.

use super::databases::{Databases, path};
use super::objects::put;
use holdfast_catalog::{
    Access, Attribute, Catalog, CatalogStore, Dialect, Put, Result, SiteId, SqlValue, StoreError,
    VersionVector,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Store that fails from a statement on, and then never again reaches its database.
struct Failing<S> {
    /// Database; dropped, with its open transaction, by the failure.
    store: Option<S>,
    dialect: Dialect,
    left: Arc<AtomicUsize>,
}

impl<S: CatalogStore> Failing<S> {
    fn step(&mut self) -> Result<&mut S, StoreError> {
        let is_left =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if !is_left {
            self.store = None;
        }
        let lost = StoreError { verb: "reach", place: "test".into(), reason: "crash".into(), remedy: "none" };
        self.store.as_mut().ok_or(lost)
    }
}

impl<S: CatalogStore> CatalogStore for Failing<S> {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn begin(&mut self, access: Access) -> Result<(), StoreError> {
        self.step()?.begin(access)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.step()?.commit()
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.store.as_mut().map_or(Ok(()), CatalogStore::rollback)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        self.step()?.execute(sql, values)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<()>,
    ) -> Result<()> {
        self.step()?.query(sql, values, row)
    }
}

fn busy_put(at: &str) -> Put {
    let replicas = vec![holdfast_catalog::NewReplica {
        vault: "v".into(),
        key: at.into(),
        state: holdfast_catalog::ReplicaState::Verified,
    }];
    Put { replicas, attributes: vec![Attribute::new("a", 1), Attribute::new("b", "x")], ..put(at, 1) }
}

pub fn a_crash_at_any_statement_leaves_no_half_operation<D: Databases>(databases: &D) {
    let name = "crash";
    let mut witness = databases.catalog(name, 1);
    witness.make_collection(&path("/a/b"), true).unwrap();
    let mut commits = 0;
    // Each round crashes one statement later, until both operations succeed.
    for steps in 0.. {
        let before = (witness.digest().unwrap(), witness.vector().unwrap());
        let store = databases.open(name);
        let (dialect, left) = (store.dialect(), Arc::new(AtomicUsize::new(usize::MAX)));
        let failing = Failing { store: Some(store), dialect, left: Arc::clone(&left) };
        let host = Box::new(super::databases::TestHost::new(steps));
        let mut catalog = Catalog::open(failing, SiteId::new(1).unwrap(), host).unwrap();
        left.store(steps as usize, Ordering::Relaxed);
        let name = format!("/a/b/{steps}");
        let put = catalog.put(&busy_put(&name));
        let moved = put.is_ok() && catalog.rename(&path("/a/b"), &path("/a/c")).is_ok();
        drop(catalog);
        let after = (witness.digest().unwrap(), witness.vector().unwrap());
        assert_eq!(put.is_err(), before == after, "step {steps}");
        if put.is_ok() {
            let (at, done) = if moved { ("/a/c", 2) } else { ("/a/b", 1) };
            commits += done;
            let stat = witness.stat(&path(&format!("{at}/{steps}"))).unwrap();
            assert_eq!((stat.versions.len(), stat.replicas.len(), stat.attributes.len()), (1, 1, 2));
        }
        let log = witness.log_since(SiteId::new(1).unwrap(), 0, 1000).unwrap();
        assert!(log.iter().zip(1..).all(|(op, seq)| op.id.seq == seq), "a gap at step {steps}");
        assert_eq!(log.len(), commits + 1);
        if moved {
            assert!(steps > 15, "too few statements were tried");
            break;
        }
    }
}

pub fn writers_of_two_connections_leave_no_gap_in_the_log<D: Databases>(databases: &D) {
    const EACH: usize = 40;
    let mut catalogs = [1, 2].map(|seed| {
        let host = Box::new(super::databases::TestHost::new(seed));
        Catalog::open(databases.open("writers"), SiteId::new(1).unwrap(), host).unwrap()
    });
    std::thread::scope(|scope| {
        for (writer, catalog) in catalogs.iter_mut().enumerate() {
            scope.spawn(move || {
                for number in 0..EACH {
                    catalog.put(&busy_put(&format!("/{writer}_{number}"))).unwrap();
                }
            });
        }
    });
    let log = catalogs[0].operations_beyond(&VersionVector::default(), 1000).unwrap();
    assert!(log.iter().zip(1..).all(|(op, seq)| op.id.seq == seq), "a gap in the log");
    assert!(log.is_sorted_by_key(|op| op.time), "a stamp went back");
    assert_eq!(log.len(), 2 * EACH);
    assert_eq!(catalogs[1].list(&path("/"), None, 1000).unwrap().entries.len(), 2 * EACH);
}
