//! Reads of replicas at peers: the nearest one that answers, in pieces, with the others behind it.

use super::Replication;
use crate::archive::{ArchiveError, ReadAt};
use crate::site::{DistantReplicas, version_of};
use bytes::Bytes;
use holdfast_catalog::{ReplicaState, Stat, Version};
use holdfast_remote::{RemoteError, Site};
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Bytes that are read from a peer at once: large beside the latency of a request.
const PIECE: u64 = 4 << 20;

/// Pieces that are read ahead of a sequential reader.
const AHEAD: usize = 4;

/// Piece that is being read.
type Coming = JoinHandle<Result<Bytes, RemoteError>>;

impl DistantReplicas for Replication {
    fn open(&self, stat: &Stat, version: &Version) -> Result<Option<Box<dyn ReadAt>>, ArchiveError> {
        let state = Some((version.tag, ReplicaState::Verified));
        let has_it = |site| stat.replicas.iter().any(|r| r.content == state && r.place.site == site);
        let mut peers: Vec<(bool, Duration, Site)> = Vec::new();
        for peer in self.peers() {
            let status = peer.status();
            if let (Some(site), Ok(client)) = (status.site, peer.client())
                && has_it(site)
            {
                let latency = status.latency.unwrap_or(Duration::MAX);
                peers.push((status.failure.is_some(), latency, client.clone()));
            }
        }
        if peers.is_empty() {
            return Ok(None);
        }
        peers.sort_by_key(|(is_lost, latency, _)| (*is_lost, *latency));
        let source = Source {
            peers: peers.into_iter().map(|(_, _, client)| client).collect(),
            object: version.object.to_string(),
            version: version_of(version.tag).as_str().to_owned(),
            size: version.size,
        };
        let contents = DistantContents { runtime: self.runtime.clone(), source, last: Mutex::default() };
        // A peer that cannot give the first piece is found now, while another replica can still be tried.
        contents.read_at(&mut [0], 0).map_err(|error| ArchiveError::new(error.to_string()))?;
        Ok(Some(Box::new(contents)))
    }
}

/// Version at some peers, the nearest first.
#[derive(Clone)]
struct Source {
    peers: Vec<Site>,
    object: String,
    version: String,
    size: u64,
}

impl Source {
    /// Reads the piece at an offset from the first peer that gives it.
    async fn piece(self, offset: u64) -> Result<Bytes, RemoteError> {
        let last = (offset + PIECE).min(self.size) - 1;
        let mut failure = None;
        for peer in &self.peers {
            match peer.read_version(&self.object, &self.version, (offset, last)).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // There is at least one peer.
        failure.map_or_else(|| Ok(Bytes::new()), Err)
    }
}

/// Piece of contents, and the next ones while they are being read.
#[derive(Default)]
struct Pieces {
    offset: u64,
    bytes: Bytes,
    ahead: VecDeque<(u64, Coming)>,
}

impl Pieces {
    /// Ends the reads ahead.
    fn abort(&mut self) {
        for (_, task) in self.ahead.drain(..) {
            task.abort();
        }
    }
}

/// Contents of a version at peers.
struct DistantContents {
    runtime: Handle,
    source: Source,
    last: Mutex<Pieces>,
}

impl DistantContents {
    /// Makes the piece at an offset the last one, and begins to read the pieces behind it.
    fn advance(&self, pieces: &mut Pieces, offset: u64) -> io::Result<()> {
        let next = pieces.ahead.pop_front_if(|(at, _)| *at == offset);
        if next.is_none() {
            pieces.abort();
        }
        let ahead = next.and_then(|(_, task)| self.runtime.block_on(task).ok());
        let piece = ahead.unwrap_or_else(|| self.runtime.block_on(self.source.clone().piece(offset)));
        pieces.bytes = piece.map_err(io::Error::other)?;
        let is_sequential = offset == 0 || offset == pieces.offset + PIECE;
        pieces.offset = offset;
        let mut end = pieces.ahead.back().map_or(offset + PIECE, |(at, _)| at + PIECE);
        while is_sequential && pieces.ahead.len() < AHEAD && end < self.source.size {
            pieces.ahead.push_back((end, self.runtime.spawn(self.source.clone().piece(end))));
            end += PIECE;
        }
        Ok(())
    }
}

impl ReadAt for DistantContents {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.source.size || buffer.is_empty() {
            return Ok(0);
        }
        let mut pieces = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !(pieces.offset..pieces.offset + pieces.bytes.len() as u64).contains(&offset) {
            self.advance(&mut pieces, offset)?;
        }
        let rest = &pieces.bytes[(offset - pieces.offset) as usize..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl Drop for DistantContents {
    fn drop(&mut self) {
        self.last.get_mut().unwrap_or_else(PoisonError::into_inner).abort();
    }
}
