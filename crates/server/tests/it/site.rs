//! Site: a crash at every step of a store operation, over both databases; versions; recovery and the sweep.

use crate::databases::Place;
use crate::world::World;
use holdfast_catalog::{Access, CatalogError, CatalogStore, Dialect, SqlValue, StoreError};
use holdfast_server::{
    Archive, ArchiveError, CatalogSource, Clock, DriverAction, DriverOptions, Event, FinishedUpload,
    FolderStore, NamedStore, ObjectPath, ObjectStore, OpenObject, ProjectName, ServerOptions, SiteArchive,
    Source, Timestamp,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Steps until the crash, after which nothing works. A step fails before its effect, or after it.
#[derive(Clone)]
struct Budget {
    left: Arc<AtomicI64>,
    is_late: bool,
}

impl Budget {
    fn step<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            0 if self.is_late => {
                work();
                None
            }
            ..=0 => None,
            _ => Some(work()),
        }
    }

    fn is_spent(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }
}

struct FailingStore(FolderStore, Budget);

fn crashed() -> ArchiveError {
    ArchiveError::new("cannot do it: crash; none")
}

impl ObjectStore for FailingStore {
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError> {
        self.1.step(|| self.0.put(key, source)).unwrap_or_else(|| Err(crashed()))
    }

    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError> {
        self.0.open(key)
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.0.file(key)
    }

    fn remove(&self, key: &str) -> Result<(), ArchiveError> {
        self.1.step(|| self.0.remove(key)).unwrap_or_else(|| Err(crashed()))
    }
}

/// Database whose connection is lost at the crash, with its open transaction.
struct FailingCatalog(Option<Box<dyn CatalogStore + Send>>, Dialect, Budget);

impl FailingCatalog {
    fn step<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Box<dyn CatalogStore + Send>) -> Result<T, E>,
    ) -> Result<T, E> {
        let budget = self.2.clone();
        let done = self.0.as_mut().and_then(|store| budget.step(|| work(store)));
        done.unwrap_or_else(|| {
            self.0 = None;
            let lost =
                StoreError { verb: "reach", place: "test".into(), reason: "crash".into(), remedy: "none" };
            Err(lost.into())
        })
    }
}

impl CatalogStore for FailingCatalog {
    fn dialect(&self) -> Dialect {
        self.1
    }

    fn begin(&mut self, access: Access) -> Result<(), StoreError> {
        self.step(|store| store.begin(access))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.step(CatalogStore::commit)
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.step(CatalogStore::rollback)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        self.step(|store| store.execute(sql, values))
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        row: &mut dyn FnMut(Vec<SqlValue>) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        self.step(|store| store.query(sql, values, row))
    }
}

/// Folder, database and clock of a site that is opened again and again.
struct Bench {
    folder: tempfile::TempDir,
    place: Place,
    clock: Clock,
    number: u128,
}

impl Bench {
    fn new(place: impl FnOnce(&Path) -> Place) -> Self {
        // In memory, where it exists: these tests are about the order of steps, and open databases hundreds of times.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let place = place(folder.path());
        let clock = Clock::manual(Timestamp::from_milliseconds(1_800_000_000_000));
        Self { folder, place, clock, number: 0 }
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn options(&self, budget: &Budget) -> ServerOptions {
        let mut options = ServerOptions::new(self.folder.path().join("data"));
        let store = Arc::new(FailingStore(FolderStore::new(self.vault()), budget.clone()));
        options.stores = vec![NamedStore { name: "disk".to_owned(), store }];
        let (place, budget) = (self.place.clone(), budget.clone());
        options.catalog = Some(CatalogSource::new(move || {
            let store = place.open();
            let dialect = store.dialect();
            Ok(FailingCatalog(Some(store), dialect, budget.clone()))
        }));
        options.clock = self.clock.clone();
        options.drivers = vec![DriverOptions {
            name: "copy".to_owned(),
            projects: vec!["p".to_owned()],
            action: DriverAction::Copy { vault: "disk".to_owned() },
        }];
        options
    }

    fn open(&self) -> SiteArchive {
        SiteArchive::open(&self.options(&unlimited())).unwrap()
    }

    fn upload(&mut self, path: &str, contents: &str) -> FinishedUpload {
        self.number += 1;
        let id = format!("{:032x}", self.number);
        let file = self.folder.path().join(&id);
        std::fs::write(&file, contents).unwrap();
        FinishedUpload {
            id: id.parse().unwrap(),
            project: project(),
            path: ObjectPath::parse(path).unwrap(),
            size: contents.len() as u64,
            blake3: blake3::hash(contents.as_bytes()),
            metadata: vec![("attribute.target".to_owned(), b"m31".to_vec())],
            file,
        }
    }
}

fn project() -> ProjectName {
    ProjectName::parse("p").unwrap()
}

fn unlimited() -> Budget {
    Budget { left: Arc::new(AtomicI64::new(i64::MAX)), is_late: false }
}

fn read(site: &SiteArchive, path: &ObjectPath) -> Option<String> {
    let open = site.open(&project(), path, None).unwrap()?;
    let mut bytes = vec![0; 100];
    let length = open.contents.read_at(&mut bytes, 0).unwrap();
    assert_eq!(length as u64, open.stored.size);
    Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
}

fn a_crash_at_any_step_leaves_an_object_whole_or_absent(place: impl FnOnce(&Path) -> Place) {
    let mut bench = Bench::new(place);
    let mut whole = 0;
    for is_late in [false, true] {
        for steps in 0.. {
            // Both the first version of an object, and a second one.
            let path = format!("{steps}/{is_late}/x");
            let first = bench.upload(&path, "first");
            let is_second = steps % 2 == 1;
            let budget = Budget { is_late, ..unlimited() };
            let site = SiteArchive::open(&bench.options(&budget)).unwrap();
            if is_second {
                site.store(&first).unwrap();
                whole += 1;
            }
            let upload = if is_second { bench.upload(&path, "second") } else { first };
            budget.left.store(steps, Ordering::SeqCst);
            let stored = site.store(&upload);
            let is_crashed = budget.is_spent();
            assert_eq!(stored.is_err(), is_crashed, "{steps} {is_late}");
            drop(site);
            let site = bench.open();
            let before = if is_second { Some("first") } else { None };
            let after = if is_second { "second" } else { "first" };
            let found = read(&site, &upload.path);
            let is_whole = found.as_deref() == Some(after);
            assert!(is_whole || found.as_deref() == before, "{steps} {is_late} {found:?}");
            if steps % 3 != 0 || !is_crashed {
                // The server stores the upload again, and then once more.
                let again = site.store(&upload).unwrap();
                assert_eq!(site.store(&upload).unwrap().version, again.version);
                assert_eq!(read(&site, &upload.path).as_deref(), Some(after));
                let versions = site.versions(&project(), &upload.path).unwrap();
                assert_eq!(versions.len(), 1 + usize::from(is_second), "{steps} {is_late}");
                assert_eq!(versions.last().unwrap().version, again.version);
                whole += 1;
            } else {
                whole += usize::from(is_whole);
            }
            if !is_crashed {
                break;
            }
        }
    }
    // The upload never comes back: its bytes are removed once they are old.
    bench.clock.advance(Duration::from_mins(59));
    drop(bench.open());
    assert!(files(&bench.vault()).len() > whole);
    bench.clock.advance(Duration::from_mins(2));
    let site = bench.open();
    assert_eq!(files(&bench.vault()).len(), whole);
    let objects = site.list(&project(), None, 10_000).unwrap();
    let versions = objects.iter().map(|object| site.versions(&project(), &object.path).unwrap().len());
    assert_eq!(versions.sum::<usize>(), whole);
    drop(site);
    // Each version has had its task made exactly once.
    let world = World::with(|options| {
        let (clock, log, listen) = (options.clock.clone(), options.log.clone(), options.listen);
        *options = ServerOptions { clock, log, listen, ..bench.options(&unlimited()) };
    });
    for _ in 0..whole {
        world.until(|event| matches!(event, Event::DriverSucceeded { .. }).then_some(()));
    }
    let runs = world.client().get("/drivers/runs").expect(200).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), whole);
}

fn versions_stay_and_attributes_are_added(place: impl FnOnce(&Path) -> Place) {
    let mut bench = Bench::new(place);
    let site = bench.open();
    let mut versions = Vec::new();
    for text in ["one", "two", "two", "one"] {
        let upload = bench.upload("d/x", text);
        versions.push(site.store(&upload).unwrap().version);
        bench.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(versions[1], versions[2]);
    versions.dedup();
    let found = site.versions(&project(), &ObjectPath::parse("d/x").unwrap()).unwrap();
    assert_eq!(found.iter().map(|found| found.version.clone()).collect::<Vec<_>>(), versions);
    assert_eq!(files(&bench.vault()).len(), 3);
    for path in ["d/w", "a", "d/e/f", "z"] {
        site.store(&bench.upload(path, path)).unwrap();
    }
    let mut listed = Vec::new();
    loop {
        let page = site.list(&project(), listed.last(), 2).unwrap();
        listed.extend(page.iter().map(|object| object.path.clone()));
        if page.len() < 2 {
            break;
        }
    }
    let listed: Vec<_> = listed.iter().map(ObjectPath::as_str).collect();
    assert_eq!(listed, ["a", "d/e/f", "d/w", "d/x", "z"]);
    for path in ["d", "d/x/y"] {
        let refused = site.store(&bench.upload(path, "no")).unwrap_err();
        assert!(refused.is_refusal(), "{refused}");
    }
    assert_eq!(files(&bench.vault()).len(), 7, "a refused upload leaves no bytes");
}

fn an_upload_replaces_only_the_version_that_it_names(place: impl FnOnce(&Path) -> Place) {
    let mut bench = Bench::new(place);
    let site = bench.open();
    let mut store = |contents: &str, replaces: &str| {
        let mut upload = bench.upload("x", contents);
        upload.metadata.push(("replaces".to_owned(), replaces.as_bytes().to_vec()));
        site.store(&upload)
    };
    let first = store("one", "none").unwrap().version;
    let second = store("two", first.as_str()).unwrap().version;
    // Equal contents need no version.
    assert_eq!(store("two", "none").unwrap().version, second);
    for stale in ["none", first.as_str(), "no version"] {
        let refused = store("three", stale).unwrap_err();
        assert!(refused.is_refusal(), "{refused}");
    }
    assert_eq!(read(&site, &ObjectPath::parse("x").unwrap()).as_deref(), Some("two"));
    assert_eq!(files(&bench.vault()).len(), 2, "a refused upload leaves no bytes");
}

fn a_lost_connection_is_opened_again(place: impl FnOnce(&Path) -> Place) {
    let mut bench = Bench::new(place);
    let budget = unlimited();
    let site = SiteArchive::open(&bench.options(&budget)).unwrap();
    let upload = bench.upload("x", "x");
    budget.left.store(1, Ordering::SeqCst);
    assert!(!site.store(&upload).unwrap_err().is_refusal());
    budget.left.store(i64::MAX, Ordering::SeqCst);
    site.store(&upload).unwrap();
    assert_eq!(read(&site, &upload.path).as_deref(), Some("x"));
}

macro_rules! suite {
    ($($name:ident),*) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(super::Place::sqlite); })*
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(place) = super::Place::postgres() { super::$name(|_| place); }
            })*
        }
    };
}

suite!(
    a_crash_at_any_step_leaves_an_object_whole_or_absent,
    a_lost_connection_is_opened_again,
    an_upload_replaces_only_the_version_that_it_names,
    versions_stay_and_attributes_are_added
);
