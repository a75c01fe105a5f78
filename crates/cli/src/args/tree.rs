//! Options of commands that show the name space of a site as files.

use crate::folders;
use crate::site::{Session, SitePath, failure};
use holdfast_base::ByteSize;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::config::{self, ConfiguredRing};
use holdfast_client::times;
use holdfast_fs::{BufferMode, FileSystem, FsOptions, NamedRing};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Most bytes that are fetched ahead in one file, as a part of the memory.
const SHARE: u64 = 4;

/// Name space as files.
#[derive(clap::Args, Debug)]
pub(crate) struct TreeArgs {
    /// Collection that becomes the root [default: all projects]
    #[arg(long, value_name = "PATH")]
    path: Option<SitePath>,
    /// Refuse all changes of the tree
    #[arg(long)]
    read_only: bool,
    /// Memory of all read buffers
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    buffer: ByteSize,
    /// Bytes that each file fetches ahead, 0 for none [default: as its reads need it]
    #[arg(long, value_name = "SIZE")]
    buffer_size: Option<ByteSize>,
    /// Time for which names, sizes and metadata may be old
    #[arg(long, value_name = "SPAN", value_parser = times::span, default_value = "1s")]
    cache: Duration,
    /// Time for which reads and writes wait for a site that is away; then they fail
    #[arg(long, value_name = "SPAN", value_parser = times::span, default_value = "1m")]
    wait: Duration,
}

impl TreeArgs {
    /// File system of a site, with the runtime that carries out its requests.
    pub(crate) fn open(&self, session: &Session) -> Result<(Arc<FileSystem>, Runtime)> {
        let root = self.path.as_ref().map_or_else(|| "/".to_owned(), SitePath::to_string);
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::failed(format_args!("cannot start the client: {}", reason(&error))))?;
        // A wrong address or token is told now, not by each program.
        let found = runtime.block_on(session.site().catalog_list(&root, None));
        found.map_err(|error| failure(&error))?;
        let fs = Arc::new(FileSystem::new(session.site().clone(), self.options(root)?));
        Ok((fs, runtime))
    }

    fn options(&self, root: String) -> Result<FsOptions> {
        let spool = folders::state().join("mount");
        std::fs::create_dir_all(&spool)
            .map_err(|error| Failure::io("cannot make the folder of written files", &spool, &error))?;
        let memory = self.buffer.0;
        let buffer = match self.buffer_size.map(|size| size.0) {
            None => BufferMode::Adaptive(memory / SHARE),
            Some(0) => BufferMode::Off,
            Some(size) => BufferMode::Fixed(size),
        };
        let (patience, cache, read_only) = (self.wait, self.cache, self.read_only);
        let named = |ring: ConfiguredRing| NamedRing {
            name: ring.name,
            path: ring.path,
            index: ring.index,
            queries: ring.queries,
        };
        let rings = config::rings()?.into_iter().map(named).collect();
        Ok(FsOptions { root, read_only, buffer, memory, patience, cache, spool, rings })
    }
}

/// Failure of files that the site did not take.
pub(crate) fn check_written(unwritten: &[String]) -> Result<()> {
    let all: Vec<String> = unwritten.iter().map(|message| clean(message)).collect();
    if all.is_empty() { Ok(()) } else { Err(Failure::failed(all.join("\n"))) }
}
