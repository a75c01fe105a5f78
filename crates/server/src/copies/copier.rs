//! Copier: the task that finds versions which this site shall have, and fetches them.

use super::fetch::fetch;
use super::job::{Job, JobState, Jobs};
use super::policy::Policies;
use super::stage_orders::{OrderedVersion, StageOrders};
use crate::clock::Clock;
use crate::log::Log;
use crate::site::{AnyStore, SiteArchive};
use holdfast_catalog::{
    Catalog, CatalogError, CatalogPath, Change, FactKind, ObjectId, ReplicaState, Result, StoreError, Tag,
    VersionVector,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Fetches at the same time: they share the network with clients.
const AT_ONCE: usize = 2;

/// Time after a commit in which more are gathered.
const GATHER: Duration = Duration::from_millis(50);

/// Pause between two looks at all objects.
const LOOK: Duration = Duration::from_mins(10);

/// Objects that one step of a look reads.
const PAGE: usize = 1000;

/// Priority of staged versions, above that of any policy.
const STAGED: i64 = i64::MAX;

/// Copier of a site with its jobs.
pub(crate) struct Copier {
    site: Arc<SiteArchive>,
    clock: Clock,
    log: Log,
    /// Folder of temporary copies.
    folder: PathBuf,
    jobs: Mutex<Jobs>,
    orders: Mutex<StageOrders>,
    staged: Notify,
}

/// Result of a fetch with its job.
type Fetched = (Job, std::result::Result<bool, String>);

impl Copier {
    /// Copier without jobs; [`run`](Self::run) finds them. Orders to stage are kept in the file `orders`.
    pub(crate) fn new(
        site: Arc<SiteArchive>,
        clock: Clock,
        log: Log,
        folder: PathBuf,
        orders: &Path,
    ) -> io::Result<Arc<Self>> {
        let orders = Mutex::new(StageOrders::read(orders)?);
        Ok(Arc::new(Self { site, clock, log, folder, jobs: Mutex::default(), orders, staged: Notify::new() }))
    }

    fn with_jobs<T>(&self, work: impl FnOnce(&mut Jobs) -> T) -> T {
        work(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Open jobs and the last completed ones.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        self.with_jobs(|jobs| jobs.all())
    }

    /// Fetches the current versions of an object, or of all objects below a collection, before all others, also after a
    /// restart of the site. Returns the number of versions that this site lacks. Blocks.
    pub(crate) fn stage(&self, path: &CatalogPath) -> Result<usize> {
        self.with_orders(|orders| self.add_order(orders, path))
    }

    fn with_orders<T>(&self, work: impl FnOnce(&mut StageOrders) -> T) -> T {
        work(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on with the orders of an earlier process.
    fn resume_orders(&self) {
        for order in self.with_orders(|orders| orders.paths()) {
            self.with_orders(|orders| self.resume(orders, &order));
        }
    }

    /// Goes on with an order. One whose path is gone is told and given up.
    fn resume(&self, orders: &mut StageOrders, order: &str) {
        let path = order.parse::<CatalogPath>().map_err(|error| error.to_string());
        let added = path.and_then(|path| self.add_order(orders, &path).map_err(|error| error.to_string()));
        if let Err(error) = &added {
            self.log.trouble("copies", format!("cannot go on with staging {order}: {error}; order it again"));
        }
        if !matches!(added, Ok(1..)) {
            self.tell_unrecorded(orders.remove(order));
        }
    }

    /// Ends the orders of which no other version is left. Blocks.
    fn end_staged(&self, version: OrderedVersion) {
        self.tell_unrecorded(self.with_orders(|orders| orders.end(version)));
    }

    fn tell_unrecorded(&self, recorded: io::Result<()>) {
        if let Err(error) = recorded {
            self.log.trouble("copies", format!("cannot record that staging is done: {error}"));
        }
    }

    /// Adds an order and its jobs, if this site lacks a version. Its caller holds the orders: none of the jobs ends before
    /// the order has it.
    fn add_order(&self, orders: &mut StageOrders, path: &CatalogPath) -> Result<usize> {
        let now = self.clock.now();
        let wanted = self.site.catalog.with(|catalog| {
            catalog.stat(path)?;
            let mut wanted = Vec::new();
            each_lacking(catalog, &mut |at, object, version| {
                if path.holds(at) {
                    wanted.push((object, version, at.to_string()));
                }
            })?;
            Ok(wanted)
        })?;
        if wanted.is_empty() {
            return Ok(0);
        }
        let versions = wanted.iter().map(|(object, version, _)| (*object, *version));
        orders.add(path, versions).map_err(|error| StoreError {
            verb: "record an order beside",
            place: orders.place(),
            reason: error.to_string(),
            remedy: "make room in the data folder",
        })?;
        self.with_jobs(|jobs| {
            for (object, version, path) in &wanted {
                let (path, state) = (path.clone(), JobState::Waiting);
                let (object, version, changed) = (*object, *version, now);
                jobs.add(&Job {
                    object,
                    version,
                    path,
                    priority: STAGED,
                    is_staged: true,
                    attempts: 0,
                    state,
                    changed,
                });
            }
        });
        self.staged.notify_one();
        Ok(wanted.len())
    }

    /// Finds and does jobs for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut commits = self.site.catalog.commits();
        let mut seen: Option<VersionVector> = None;
        let mut running: JoinSet<Fetched> = JoinSet::new();
        let copier = Arc::clone(&self);
        if let Err(error) = tokio::task::spawn_blocking(move || copier.resume_orders()).await {
            self.log.trouble("copies", error);
        }
        loop {
            commits.mark_unchanged();
            let (copier, known) = (Arc::clone(&self), seen.take());
            let found = tokio::task::spawn_blocking(move || copier.find(known)).await;
            match found {
                Ok(Ok(vector)) => seen = Some(vector),
                Ok(Err(error)) => self.log.trouble("copies", error),
                Err(error) => self.log.trouble("copies", error),
            }
            self.start(&mut running);
            let next = self.with_jobs(|jobs| jobs.next_due());
            let pause = next.map_or(LOOK, |due| due.since(self.clock.now()).max(GATHER));
            tokio::select! {
                changed = commits.changed() => match changed {
                    Ok(()) => sleep(GATHER).await,
                    // The catalog is gone with its server.
                    Err(_) => return,
                },
                () = self.staged.notified() => {}
                Some(fetched) = running.join_next() => self.ended(fetched).await,
                () = sleep(pause) => if next.is_none() { seen = None },
            }
            while let Some(fetched) = running.try_join_next() {
                self.ended(fetched).await;
            }
        }
    }

    fn start(self: &Arc<Self>, running: &mut JoinSet<Fetched>) {
        while running.len() < AT_ONCE {
            let Some(job) = self.with_jobs(|jobs| jobs.start(self.clock.now())) else { return };
            let copier = Arc::clone(self);
            running.spawn_blocking(move || {
                let (site, now) = (&copier.site, copier.clock.now());
                let result = fetch(site, job.object, job.version, &copier.folder, now);
                (job, result)
            });
        }
    }

    async fn ended(self: &Arc<Self>, fetched: std::result::Result<Fetched, tokio::task::JoinError>) {
        match fetched {
            Ok((job, result)) => {
                if let Err(error) = &result {
                    self.log.trouble("copies", error);
                }
                if self.with_jobs(|jobs| jobs.end(&job, result, self.clock.now())) {
                    let copier = Arc::clone(self);
                    let end = move || copier.end_staged((job.object, job.version));
                    if let Err(error) = tokio::task::spawn_blocking(end).await {
                        self.log.trouble("copies", error);
                    }
                }
            }
            Err(error) => self.log.trouble("copies", error),
        }
    }

    /// Adds the jobs that policies ask for: of the objects that operations beyond a vector have changed, or of all objects.
    fn find(&self, known: Option<VersionVector>) -> Result<VersionVector> {
        let (own, now) = (self.site.catalog.site(), self.clock.now());
        let mut wanted = Vec::new();
        let vector = self.site.catalog.with(|catalog| {
            let vector = catalog.vector()?;
            let policies = Policies::read(catalog)?;
            if policies.is_empty() {
                return Ok(vector);
            }
            let mut consider = |catalog: &mut Catalog<AnyStore>, path: &CatalogPath, object, version: Tag| {
                let Some(policy) = policies.of(path) else { return Ok::<_, CatalogError>(()) };
                let replicas = catalog.replicas(path)?;
                let state = Some((version, ReplicaState::Verified));
                let holders: BTreeSet<_> = replicas
                    .iter()
                    .filter(|replica| replica.content == state)
                    .map(|r| r.place.site)
                    .collect();
                if policy.body.wants(own, &holders) {
                    wanted.push((object, version, path.to_string(), policy.body.priority));
                }
                Ok(())
            };
            let changed = known.map(|known| changed(catalog, &known)).transpose()?.flatten();
            if let Some(objects) = changed {
                for object in objects {
                    if let Some(version) = catalog.lacks(object)?
                        && let Some(path) = catalog.path_of(object)?
                    {
                        consider(catalog, &path, object, version)?;
                    }
                }
            } else {
                let mut all = Vec::new();
                each_lacking(catalog, &mut |path, object, version| {
                    if policies.of(path).is_some() {
                        all.push((path.clone(), object, version));
                    }
                })?;
                for (path, object, version) in all {
                    consider(catalog, &path, object, version)?;
                }
            }
            Ok(vector)
        })?;
        self.with_jobs(|jobs| {
            for (object, version, path, priority) in wanted {
                let (priority, state) = (priority.into(), JobState::Waiting);
                jobs.add(&Job {
                    object,
                    version,
                    path,
                    priority,
                    is_staged: false,
                    attempts: 0,
                    state,
                    changed: now,
                });
            }
        });
        Ok(vector)
    }
}

/// Objects that operations beyond a vector have changed; nothing if all objects must be looked at.
fn changed(catalog: &mut Catalog<AnyStore>, known: &VersionVector) -> Result<Option<BTreeSet<ObjectId>>> {
    let operations = match catalog.operations_beyond(known, PAGE) {
        Err(CatalogError::Compacted { .. }) => return Ok(None),
        operations => operations?,
    };
    if operations.len() == PAGE {
        return Ok(None);
    }
    let mut objects = BTreeSet::new();
    for change in operations.iter().flat_map(|operation| &operation.changes) {
        match change {
            Change::SetFact { kind: FactKind::Policy, .. } => return Ok(None),
            Change::SetCurrent { object, .. }
            | Change::SetReplica { object, .. }
            | Change::SetName { object, .. }
            | Change::Restore { object } => drop(objects.insert(*object)),
            _ => {}
        }
    }
    Ok(Some(objects))
}

/// Passes all visible objects whose current version this site lacks and another one has.
fn each_lacking(
    catalog: &mut Catalog<AnyStore>,
    visit: &mut dyn FnMut(&CatalogPath, ObjectId, Tag),
) -> Result<()> {
    let mut after = None;
    loop {
        let page = catalog.lacking(after, PAGE)?;
        for (object, version) in &page {
            if let Some(path) = catalog.path_of(*object)? {
                visit(&path, *object, *version);
            }
        }
        after = page.last().map(|(object, _)| *object);
        if page.len() < PAGE {
            return Ok(());
        }
    }
}
