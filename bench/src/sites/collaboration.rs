//! Three sites in memory, each behind a link with latency, and a client that sits at the first of them.

use crate::BenchError;
use crate::shipping::archive_site::ArchiveSite;
use crate::shipping::shaped_proxy::{LinkShape, ShapedProxy};
use bytes::Bytes;
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_catalog::VersionVector;
use holdfast_remote::{
    Endpoint, NewUpload, PeerChange, ReadRequest, RemoteError, Segment, Site, UploadState,
};
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Number of sites of a collaboration.
pub const SITES: usize = 3;

/// Project of all files.
pub const PROJECT: &str = "p";

/// Bytes of one request, as `holdfast put` sends them.
const SEGMENT: usize = 8 << 20;

/// Segments on their way at the same time, as for `holdfast put`.
const PARALLEL: usize = 4;

/// Time that one request waits until an archive has an upload.
const WAIT: Duration = Duration::from_secs(30);

/// Running sites with their clients.
pub struct Collaboration {
    runtime: Runtime,
    /// Clients without a link.
    near: [Site; SITES],
    /// Clients through the link of each site.
    far: [Site; SITES],
    // Dropped in this order: the links end before the sites.
    links: Vec<ShapedProxy>,
    sites: Vec<ArchiveSite>,
}

fn failed(error: &RemoteError) -> BenchError {
    BenchError::during("using a site")(error)
}

fn client(address: SocketAddr) -> Result<Site, BenchError> {
    Endpoint::parse(&format!("http://{address}"))
        .and_then(|endpoint| Site::connect(&endpoint))
        .map_err(|error| failed(&error))
}

fn three<T>(all: Vec<T>) -> Result<[T; SITES], BenchError> {
    all.try_into().map_err(|_| BenchError::accounting("there are not three sites"))
}

impl Collaboration {
    /// Starts empty sites with room for so many bytes of contents each, behind links of one shape.
    pub fn start(holdfast: &Path, contents: u64, link: LinkShape) -> Result<Self, BenchError> {
        let sites: Vec<ArchiveSite> =
            (0..SITES).map(|_| ArchiveSite::start(holdfast, contents)).collect::<Result<_, _>>()?;
        let links: Vec<ShapedProxy> =
            sites.iter().map(|site| ShapedProxy::start(site.address(), link)).collect::<Result<_, _>>()?;
        let near = sites.iter().map(|site| client(site.address())).collect::<Result<_, _>>()?;
        let far = links.iter().map(|link| client(link.address())).collect::<Result<_, _>>()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BenchError::during("starting the client"))?;
        let all = Self { runtime, near: three(near)?, far: three(far)?, links, sites };
        // No measurement has the first connection to a site in it.
        all.run(try_join_all((0..SITES).map(|at| all.client(at).known_abilities())))?;
        Ok(all)
    }

    /// Adds every site at every other one, through its link.
    pub fn join(&self) -> Result<(), BenchError> {
        for (at, site) in self.near.iter().enumerate() {
            for (other, link) in self.links.iter().enumerate().filter(|(other, _)| *other != at) {
                let url = Some(format!("http://{}", link.address()));
                let change = PeerChange { url, ..PeerChange::default() };
                self.run(site.set_peer(&format!("site{other}"), &change))?;
            }
        }
        self.until_all_know(0)
    }

    /// Runs requests to their end.
    pub fn run<T>(&self, work: impl Future<Output = Result<T, RemoteError>>) -> Result<T, BenchError> {
        self.runtime.block_on(work).map_err(|error| failed(&error))
    }

    /// Client of a site as people at the first site reach it.
    pub fn client(&self, at: usize) -> &Site {
        if at == 0 { &self.near[0] } else { &self.far[at] }
    }

    /// Client of a site without a link between.
    pub fn observer(&self, at: usize) -> &Site {
        &self.near[at]
    }

    /// Client of a site for another runtime, which must not share connections with this one.
    pub fn separate_client(&self, at: usize) -> Result<Site, BenchError> {
        client(self.sites[at].address())
    }

    /// Sends a file to a site, and waits until its archive and its catalog have it.
    pub fn put(&self, at: usize, name: &str, contents: &Bytes) -> Result<(), BenchError> {
        let state = self.run(upload(self.client(at), name, contents))?;
        if state == UploadState::Stored {
            return Ok(());
        }
        Err(BenchError::accounting(format!("the upload of {name} is {state:?}")))
    }

    /// Reads a file by a site, which fetches it from the one that has it.
    pub fn get(&self, at: usize, name: &str) -> Result<u64, BenchError> {
        let request =
            ReadRequest { project: PROJECT.to_owned(), path: name.to_owned(), ..ReadRequest::default() };
        self.run(async {
            let mut reader = self.client(at).read(&request).await?;
            let mut bytes = 0;
            while let Some(piece) = reader.chunk().await? {
                bytes += piece.len() as u64;
            }
            Ok(bytes)
        })
    }

    /// Waits until all sites have the operations that one has now. The client asks all at once, again and again.
    pub fn until_all_know(&self, at: usize) -> Result<(), BenchError> {
        let mut waiting: Vec<usize> = (0..SITES).collect();
        let mut wanted: Option<VersionVector> = None;
        while !waiting.is_empty() {
            let asked = waiting.iter().map(|site| self.client(*site).replication_state());
            let states = self.run(try_join_all(asked))?;
            let vectors = states.iter().map(|state| vector(&state.vector)).collect::<Result<Vec<_>, _>>()?;
            // The first round asks all sites.
            let wanted = wanted.get_or_insert_with(|| vectors[at].clone());
            let lacks = |vector: &VersionVector| !vector.includes(wanted);
            waiting = waiting
                .iter()
                .zip(&vectors)
                .filter(|(_, vector)| lacks(vector))
                .map(|(site, _)| *site)
                .collect();
        }
        Ok(())
    }
}

/// Version vector in an answer of a site.
pub fn vector(text: &str) -> Result<VersionVector, BenchError> {
    text.parse().map_err(BenchError::during("reading a vector"))
}

async fn upload(site: &Site, name: &str, contents: &Bytes) -> Result<UploadState, RemoteError> {
    let length = contents.len();
    let first = (length <= SEGMENT).then(|| contents.clone());
    let is_whole = first.is_some();
    let (project, path, length) = (Some(PROJECT.to_owned()), name.to_owned(), Some(length as u64));
    let created = site.create(&NewUpload { project, path, metadata: Vec::new(), length, first }).await?;
    if !is_whole {
        let segments = (0..contents.len()).step_by(SEGMENT).map(|offset| Segment {
            offset: offset as u64,
            bytes: contents.slice(offset..contents.len().min(offset + SEGMENT)),
            ahead: true,
            ..Segment::default()
        });
        let sent = stream::iter(segments).map(|segment| {
            let address = &created.address;
            async move { site.append(address, &segment).await }
        });
        sent.buffered(PARALLEL).try_for_each(|_| std::future::ready(Ok(()))).await?;
    }
    loop {
        let state = site.progress(&created.address, Some(WAIT)).await?.state;
        if matches!(state, UploadState::Stored | UploadState::Failed) {
            return Ok(state);
        }
    }
}
