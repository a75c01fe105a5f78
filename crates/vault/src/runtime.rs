//! Runtime of the async clients of object stores. Callers are synchronous, and may themselves run on another runtime.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that drive requests: most of their time they wait for the network.
const THREADS: usize = 2;

/// Handle of the one runtime of this process.
pub(crate) fn handle() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("holdfast-vault").enable_all();
        builder.build().map_err(|error| error.to_string())
    });
    started.as_ref().map(Runtime::handle).map_err(|error| io::Error::other(error.clone()))
}

/// Runs a future to its end. It blocks the calling thread, which may be a thread of another runtime.
pub(crate) fn wait<T: Send + 'static>(
    future: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, result) = sync_channel(1);
    handle()?.spawn(async move {
        let _ = sender.send(future.await);
    });
    result.recv().map_err(|_| io::Error::other("a request to the vault ended without an answer"))?
}
