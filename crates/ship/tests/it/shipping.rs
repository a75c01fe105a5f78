//! A shipper and a server in one process: files that are there, that grow, that are renamed, rewritten and deleted.

use holdfast_server::{
    NewToken, ProjectName, RunningServer, Scope, Scopes, Server, ServerOptions, Timestamp,
};
use holdfast_ship::settings::{FolderSettings, Settings};
use holdfast_ship::shipper::{Notice, Status, Until, ship};
use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time after which a test has failed.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Archive {
    pub(crate) folder: TempDir,
    pub(crate) server: Option<RunningServer>,
    pub(crate) address: SocketAddr,
    pub(crate) token: PathBuf,
}

impl Archive {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// Starts a server with changed options.
    pub(crate) fn with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = ServerOptions::new(folder.path().join("data"));
        options.listen = "127.0.0.1:0".parse().unwrap();
        change(&mut options);
        let server = Server::start(options).unwrap();
        let scopes = Scopes::of(&[Scope::Read, Scope::Write]);
        let new = NewToken { name: "ship".to_owned(), scopes, project: None, account: None, expires: None };
        let (_, secret) = server.tokens().create(new).unwrap();
        let token = folder.path().join("token");
        fs::write(&token, secret).unwrap();
        let address = server.address();
        Self { folder, server: Some(server), address, token }
    }

    pub(crate) fn server(&self) -> &RunningServer {
        self.server.as_ref().unwrap()
    }

    /// Makes a token and writes it to the file that the shipper reads.
    pub(crate) fn give_token(&self, scopes: &[Scope], project: Option<&str>, expires: Option<Timestamp>) {
        let project = project.map(|project| ProjectName::parse(project).unwrap());
        let new = NewToken {
            name: "other".to_owned(),
            scopes: Scopes::of(scopes),
            project,
            account: None,
            expires,
        };
        let (_, secret) = self.server.as_ref().unwrap().tokens().create(new).unwrap();
        let written = self.folder.path().join("token.new");
        fs::write(&written, secret).unwrap();
        fs::rename(written, &self.token).unwrap();
    }

    /// Starts the server again at its address.
    pub(crate) fn restart(&mut self) {
        drop(self.server.take());
        let mut options = ServerOptions::new(self.folder.path().join("data"));
        options.listen = self.address;
        self.server = Some(Server::start(options).unwrap());
    }

    pub(crate) fn settings(&self, url: &str, folder: &Path) -> Settings {
        let mut settings = Settings::new(url, "array", self.folder.path().join("state"));
        settings.archive.token_file = Some(self.token.clone());
        settings.folders = vec![FolderSettings::new(folder)];
        settings
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn site(&self) -> holdfast_remote::Site {
        let mut endpoint = holdfast_remote::Endpoint::parse(&self.url()).unwrap();
        endpoint.token = Some(fs::read_to_string(&self.token).unwrap());
        holdfast_remote::Site::connect(&endpoint).unwrap()
    }

    /// Contents of the newest version of an object; `None` if there is none.
    pub(crate) fn contents(&self, path: &str) -> Option<Vec<u8>> {
        let site = self.site();
        let request = holdfast_remote::ReadRequest {
            project: "array".to_owned(),
            path: path.to_owned(),
            ..Default::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut reader = site.read(&request).await.ok()?;
            let mut bytes = Vec::new();
            while let Some(chunk) = reader.chunk().await.unwrap() {
                bytes.extend_from_slice(&chunk);
            }
            Some(bytes)
        })
    }

    /// Paths of all finished objects.
    pub(crate) fn paths(&self) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (site, mut paths, mut after) = (self.site(), Vec::new(), None);
        loop {
            let page = runtime.block_on(site.list("array", after.as_deref())).unwrap();
            paths.extend(page.objects.into_iter().map(|object| object.path));
            after = page.next;
            if after.is_none() {
                return paths;
            }
        }
    }
}

/// Shipper on a thread of its own.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Status>>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Running {
    pub(crate) fn start(settings: Settings) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let notices = Arc::new(Mutex::new(Vec::new()));
        let (stops, seen) = (Arc::clone(&stop), Arc::clone(&notices));
        let thread = std::thread::spawn(move || {
            let mut tell = |notice: &Notice| seen.lock().unwrap().push(notice.clone());
            ship(settings, Until::Stopped, &|| stops.load(Ordering::SeqCst), &mut tell).unwrap()
        });
        Self { stop, thread: Some(thread), notices }
    }

    /// Waits until a notice of this kind has come.
    pub(crate) fn wait(&self, what: &str, is_wanted: impl Fn(&Notice) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !self.notices.lock().unwrap().iter().any(&is_wanted) {
            assert!(Instant::now() < end, "{what}: {:?}", self.notices.lock().unwrap());
            std::thread::yield_now();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    pub(crate) fn delivered(&self, path: &str, size: u64) {
        self.wait(path, |notice| {
            matches!(notice, Notice::Delivered { path: at, delivery } if at == path && delivery.size == size)
        });
    }

    /// Notices of the shipper until now.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }

    pub(crate) fn stop(mut self) -> Status {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_met() {
        assert!(Instant::now() < end, "{what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn files_that_are_there_are_shipped_once_and_verified() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    let files = [("empty", 0), ("a/small", 1000), ("a/b/block", 1 << 20), ("large", 5_000_001)];
    for (at, (name, length)) in files.iter().enumerate() {
        fs::write(folder.path().join(name), noise(*length, at as u64)).unwrap();
    }
    let mut settings = archive.settings(&archive.url(), folder.path());
    settings.folders[0].quiet = Duration::from_millis(300);
    let run = |settings: Settings| ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap();
    let status = run(settings.clone());
    assert_eq!((status.counts.delivered, status.counts.open, status.counts.backlog_bytes), (4, 0, 0));
    assert_eq!(status.totals.sent_bytes, files.iter().map(|(_, length)| *length as u64).sum::<u64>());
    for (at, (name, length)) in files.iter().enumerate() {
        assert_eq!(archive.contents(name).unwrap(), noise(*length, at as u64), "{name}");
    }
    // A second run finds everything in its ledger, and a touched file by its hash.
    let file = File::options().append(true).open(folder.path().join("large")).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(1000)).unwrap();
    let status = run(settings);
    assert_eq!((status.counts.delivered, status.totals.sent_bytes), (4, 0));
}

#[test]
fn a_growing_file_is_in_the_archive_when_it_is_closed() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(archive.settings(&archive.url(), folder.path()));
    let mut file = File::create(folder.path().join("run.dat")).unwrap();
    let bytes = noise(6 << 20, 1);
    for (at, piece) in bytes.chunks(300_000).enumerate() {
        file.write_all(piece).unwrap();
        if at == 10 {
            // The archive has the first blocks while the file is open.
            let end = Instant::now() + PATIENCE;
            while archive.contents("run.dat").is_none_or(|found| found.len() < 2 << 20) {
                assert!(Instant::now() < end);
            }
        }
    }
    drop(file);
    running.delivered("run.dat", 6 << 20);
    assert_eq!(archive.contents("run.dat").unwrap(), bytes);
    let status = running.stop();
    assert_eq!((status.totals.sent_bytes, status.totals.resent_bytes), (6 << 20, 0));
}

#[test]
fn renamed_rewritten_truncated_and_deleted_files_arrive_as_they_are_at_last() {
    let archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(archive.settings(&archive.url(), folder.path()));
    let path = |name: &str| folder.path().join(name);
    // Renamed while it grows.
    let mut file = File::create(path("run.tmp")).unwrap();
    file.write_all(&noise(3 << 20, 1)).unwrap();
    let end = Instant::now() + PATIENCE;
    while archive.contents("run.tmp").is_none_or(|found| found.len() < 2 << 20) {
        assert!(Instant::now() < end);
    }
    fs::rename(path("run.tmp"), path("run.fits")).unwrap();
    file.write_all(&noise(1 << 20, 2)).unwrap();
    drop(file);
    running.delivered("run.fits", 4 << 20);
    assert_eq!(archive.contents("run.fits").unwrap(), [noise(3 << 20, 1), noise(1 << 20, 2)].concat());
    // Rewritten in its beginning, then closed.
    let mut file = File::create(path("header")).unwrap();
    file.write_all(&noise(2_500_000, 3)).unwrap();
    let end = Instant::now() + PATIENCE;
    while archive.contents("header").is_none_or(|found| found.len() < 2 << 20) {
        assert!(Instant::now() < end);
    }
    std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 10).unwrap();
    drop(file);
    running.delivered("header", 2_500_000);
    assert_eq!(archive.contents("header").unwrap(), fs::read(path("header")).unwrap());
    // Replaced by a shorter one.
    fs::write(path("header"), b"short").unwrap();
    running.delivered("header", 5);
    assert_eq!(archive.contents("header").unwrap(), b"short");
    // Deleted while it grows: the open file is read to its end.
    let mut file = File::create(path("gone")).unwrap();
    file.write_all(&noise(2 << 20, 4)).unwrap();
    let end = Instant::now() + PATIENCE;
    while archive.contents("gone").is_none_or(|found| found.len() < 1 << 20) {
        assert!(Instant::now() < end);
    }
    fs::remove_file(path("gone")).unwrap();
    drop(file);
    running.delivered("gone", 2 << 20);
    assert_eq!(archive.contents("gone").unwrap(), noise(2 << 20, 4));
    assert_eq!(archive.paths(), ["gone", "header", "run.fits"]);
    running.stop();
}

#[test]
fn an_outage_of_the_archive_delays_and_loses_nothing() {
    let mut archive = Archive::start();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(archive.settings(&archive.url(), folder.path()));
    let mut file = File::create(folder.path().join("run")).unwrap();
    file.write_all(&noise(2 << 20, 1)).unwrap();
    let end = Instant::now() + PATIENCE;
    while archive.contents("run").is_none() {
        assert!(Instant::now() < end);
    }
    drop(archive.server.take());
    file.write_all(&noise(3 << 20, 2)).unwrap();
    drop(file);
    running.wait("outage", |notice| matches!(notice, Notice::OutageBegan { .. }));
    archive.restart();
    running.delivered("run", 5 << 20);
    running.wait("end", |notice| matches!(notice, Notice::OutageEnded { .. }));
    assert_eq!(archive.contents("run").unwrap(), [noise(2 << 20, 1), noise(3 << 20, 2)].concat());
    running.stop();
}
