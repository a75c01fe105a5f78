//! Start and stop of a server. A running server owns its threads; its interface is synchronous.

use crate::app::App;
use crate::archive::Archive;
use crate::background::{self, Background};
use crate::connection::{Listener, serve};
use crate::copies::Copier;
use crate::data_folder::lock_data_folder;
use crate::drivers::{self, Runner, Scheduler};
use crate::error::ServerError;
use crate::extract::Extractors;
use crate::holds::Keeper;
use crate::log::{Event, Log};
use crate::log_in::LogIns;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::rate_limiter::RateLimiter;
use crate::recovery::open_uploads;
use crate::replication::{Replication, Surroundings};
use crate::routes::router;
use crate::searches::Searches;
use crate::site::SiteArchive;
use crate::tls;
use crate::token_store::TokenStore;
use holdfast_remote::Fingerprint;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// File of the orders to stage in the data folder.
const STAGE_ORDERS_FILE: &str = "staged";

/// Folder of temporary copies in the data folder, emptied at every start.
const TEMPORARY_FOLDER: &str = "temporary";

/// Blocking threads besides one for every connection: reads, background jobs, deliveries.
const MORE_THREADS: usize = 64;

/// Time that a dropped server gives its requests.
const DROP_BOUND: Duration = Duration::from_secs(5);

/// Time that a stop gives blocking work after its requests have ended: writes of received bytes, a store operation of the
/// archive. A store operation that hangs longer keeps its thread, and the lock of the data folder, until it ends.
const WORK_BOUND: Duration = Duration::from_secs(30);

/// Server that can be started.
#[derive(Debug)]
pub struct Server;

/// Server that accepts connections. Dropping it stops it.
pub struct RunningServer {
    address: SocketAddr,
    fingerprint: Option<Fingerprint>,
    tokens: Arc<TokenStore>,
    log: Log,
    stop: watch::Sender<bool>,
    connections: Option<JoinHandle<()>>,
    /// Kept until the threads have ended: the connection of the catalog must not close on one of an async runtime.
    site: Option<Arc<SiteArchive>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts a server: recovers its uploads, binds its address and serves until it is stopped or dropped. Blocks for the recovery;
    /// any thread may call it.
    pub fn start(options: ServerOptions) -> Result<RunningServer, ServerError> {
        // A thread of its own: the caller may be a thread of an async runtime, on which a connection of the catalog must
        // neither open nor close.
        let thread = std::thread::Builder::new().name("start".to_owned()).spawn(|| Self::start_here(options));
        let thread = thread
            .map_err(|error| ServerError::failed("start the server's threads", error, "free some memory"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn start_here(options: ServerOptions) -> Result<RunningServer, ServerError> {
        let lock = lock_data_folder(&options.data)?;
        let site = Arc::new(SiteArchive::open(&options)?);
        let ServerOptions {
            data,
            name,
            listen,
            transport,
            limits,
            drivers,
            extractors,
            holds,
            searches,
            clock,
            log,
            ..
        } = options;
        let extractors = Arc::new(Extractors::default().with(extractors));
        let vaults: Vec<&str> = site.stores.iter().map(|store| store.name.as_str()).collect();
        drivers::check(&drivers, &vaults, &extractors)?;
        let folder = make_temporary(&data)?;
        let tokens = Arc::new(TokenStore::open(&data, clock.clone())?);
        let tls = tls::configure(&transport, listen.ip(), &data)?;
        let bind_failed = |error: std::io::Error| {
            let action = format_args!("listen on {listen}").to_string();
            ServerError::failed(action, crate::error::reason(&error), "choose another address or port")
        };
        let socket = std::net::TcpListener::bind(listen).map_err(bind_failed)?;
        socket.set_nonblocking(true).map_err(bind_failed)?;
        let address = socket.local_addr().map_err(bind_failed)?;
        let metrics = Arc::new(Metrics::default());
        let (work, incoming) = mpsc::unbounded_channel();
        let uploads = open_uploads(&data, lock, limits.clone(), clock.clone(), Arc::clone(&metrics), work)?;
        let uploads = Arc::new(uploads);
        let archive: Arc<dyn Archive> = Arc::clone(&site) as _;
        let scheduler = Arc::new(Scheduler {
            runner: Runner { site: Arc::clone(&site), extractors, folder: folder.clone() },
            drivers,
            limits: limits.clone(),
            clock: clock.clone(),
            log: log.clone(),
            metrics: Arc::clone(&metrics),
        });
        let background = Arc::new(Background {
            store: Arc::clone(&uploads),
            archive: Arc::clone(&archive),
            log: log.clone(),
            jobs: Semaphore::new(limits.background_jobs.max(1)),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("server")
            .max_blocking_threads(limits.connections.saturating_add(MORE_THREADS))
            .enable_all()
            .build()
            .map_err(|error| ServerError::failed("start the server's threads", error, "free some memory"))?;
        let surroundings = Surroundings {
            clock: clock.clone(),
            folder: folder.clone(),
            limits: limits.clone(),
            name: name.clone(),
        };
        let replication =
            Replication::start(Arc::clone(&site), surroundings, log.clone(), runtime.handle().clone())?;
        let orders = data.join(STAGE_ORDERS_FILE);
        let copier = Copier::new(Arc::clone(&site), clock.clone(), log.clone(), folder.clone(), &orders)
            .map_err(|error| ServerError::io("read the orders to stage", &orders, &error))?;
        let app = Arc::new(App {
            uploads,
            tokens: Arc::clone(&tokens),
            archive,
            site: Arc::clone(&site),
            name,
            replication,
            copier: Arc::clone(&copier),
            limiter: Mutex::new(RateLimiter::new(limits.requests_per_second, limits.request_burst)),
            log_ins: LogIns::new(),
            searches: Searches::new(searches),
            limits,
            clock,
            log: log.clone(),
            metrics,
            is_loopback: address.ip().is_loopback(),
        });
        let (stop, stopped) = watch::channel(false);
        let socket = {
            let _inside = runtime.enter();
            TcpListener::from_std(socket).map_err(bind_failed)?
        };
        let fingerprint = tls.as_ref().map(|tls| tls.fingerprint);
        let listener = Listener { socket, tls: tls.map(|tls| TlsAcceptor::from(tls.config)) };
        runtime.spawn(background::run(Arc::clone(&background), incoming));
        runtime.spawn(background::sweep(background));
        runtime.spawn(scheduler.run());
        runtime.spawn(copier.run());
        runtime.spawn(Keeper { site: Arc::clone(&site), log: log.clone(), taker: holds }.run());
        let connections = Some(runtime.spawn(serve(listener, Arc::clone(&app), router(app), stopped)));
        let (site, runtime) = (Some(site), Some(runtime));
        let server = RunningServer { address, fingerprint, tokens, log, stop, connections, site, runtime };
        let fingerprint = fingerprint.map(|fingerprint| fingerprint.to_string());
        server.log.event(&Event::Started { url: server.url(), fingerprint });
        Ok(server)
    }
}

/// Makes an empty folder for temporary copies.
fn make_temporary(data: &Path) -> Result<PathBuf, ServerError> {
    let folder = data.join(TEMPORARY_FOLDER);
    let made = match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => DirBuilder::new().mode(0o700).create(&folder),
    };
    made.map_err(|error| ServerError::io("empty the folder", &folder, &error))?;
    Ok(folder)
}

impl RunningServer {
    /// Address that the server listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the server with its scheme.
    pub fn url(&self) -> String {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Fingerprint of the certificate; `None` without TLS.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Tokens of the server.
    pub fn tokens(&self) -> &TokenStore {
        &self.tokens
    }

    /// Stops the server: no new requests; running ones have `within` to end, then they are cut. What they have sent until then
    /// becomes durable, for which there are 30 s more. Returns true if all requests ended in time.
    pub fn shutdown(mut self, within: Duration) -> bool {
        self.stop_within(within)
    }

    fn stop_within(&mut self, within: Duration) -> bool {
        self.stop.send_replace(true);
        let (Some(runtime), Some(connections)) = (self.runtime.take(), self.connections.take()) else {
            return true;
        };
        // A thread of its own: the caller may be a thread of another runtime, which must not block on this one.
        let ended = Arc::new(Mutex::new(false));
        let site = self.site.take();
        let result = Arc::clone(&ended);
        let stopping = move || {
            let in_time = runtime.block_on(async { timeout(within, connections).await.is_ok() });
            *result.lock().unwrap_or_else(PoisonError::into_inner) = in_time;
            // This cuts the connections and waits for blocking work, which makes received bytes durable.
            runtime.shutdown_timeout(WORK_BOUND);
            drop(site);
        };
        if let Ok(thread) = std::thread::Builder::new().name("stop".to_owned()).spawn(stopping) {
            let _ = thread.join();
        }
        self.log.event(&Event::Stopped);
        *ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop_within(DROP_BOUND);
    }
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningServer").field("url", &self.url()).finish_non_exhaustive()
    }
}
