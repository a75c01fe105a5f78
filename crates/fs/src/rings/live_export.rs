//! Contents of a file that grows: a thread that exports what arrives whenever a reader is at the end.

use super::export::{read, scratch};
use super::failed;
use super::ring_path::RingFile;
use crate::error::FsError;
use bytes::Bytes;
use holdfast_base::failure::{Failure, Result as Done};
use holdfast_base::{Ordinal, Timestamp};
use holdfast_client::session::{self, ring_failure};
use holdfast_export::{Export, Output};
use holdfast_reader::{Item, Selection};
use holdfast_ring::Range;
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use tokio::sync::oneshot;

/// Time before the open from which the file begins.
const BEFORE: i64 = 60_000_000_000;

/// Request for the size of the file, with all that has arrived.
type Refresh = oneshot::Sender<Done<u64>>;

/// Contents of a file that grows. Its thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct LiveExport {
    file: File,
    requests: Sender<Refresh>,
}

impl LiveExport {
    pub(super) fn start(ring: PathBuf, file: &RingFile, folder: &Path) -> Result<Self, FsError> {
        let broken =
            |error: std::io::Error| FsError::new(Errno::IO, format!("cannot follow the stream: {error}"));
        let scratch = scratch(folder)?;
        let copy = scratch.try_clone().map_err(broken)?;
        let (requests, receiver) = channel();
        let file = file.clone();
        let thread = move || {
            if let Err((failure, request)) = follow(&ring, &file, &copy, &receiver) {
                let _ = request.send(Err(failure));
            }
        };
        Builder::new().name("live-export".to_owned()).spawn(thread).map_err(broken)?;
        Ok(Self { file: scratch, requests })
    }

    /// Reads some bytes; at the end of the file those that have arrived since the last read, which may be none.
    pub(crate) async fn read(&self, offset: u64, length: u64) -> Result<Bytes, FsError> {
        let there = self.file.metadata().map_or(0, |found| found.len());
        let size = if offset.saturating_add(length) <= there { there } else { self.refresh().await? };
        read(&self.file, size, offset, length)
    }

    /// Exports what has arrived, and returns the size of the file.
    pub(crate) async fn refresh(&self) -> Result<u64, FsError> {
        let (request, answer) = oneshot::channel();
        let ended = || {
            FsError::new(Errno::IO, "cannot follow the stream: an earlier read failed; open the file again")
        };
        self.requests.send(request).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?.map_err(|failure| failed(&failure))
    }
}

/// Exports on request, until nobody asks any more. An error ends it.
fn follow(
    ring: &Path,
    file: &RingFile,
    to: &File,
    requests: &Receiver<Refresh>,
) -> Result<(), (Failure, Refresh)> {
    let Ok(first) = requests.recv() else { return Ok(()) };
    let mut reader = match session::open(ring) {
        Ok(reader) => reader,
        Err(failure) => return Err((failure, first)),
    };
    let began = Timestamp(session::now().0 - BEFORE);
    let mut export: Option<Export> = None;
    let mut next: Option<Ordinal> = None;
    let mut request = first;
    loop {
        let mut step = || -> Done<u64> {
            let streams = reader.streams().map_err(|error| ring_failure(&error))?;
            let Some(stream) = streams.into_iter().find(|stream| stream.name == file.stream) else {
                return Err(Failure::nothing(format_args!("no stream is named `{}`", file.stream)));
            };
            let export = match &mut export {
                Some(export) => export,
                none => {
                    let copy = to.try_clone().map_err(Failure::failed)?;
                    let made =
                        Export::new(file.format.into(), std::slice::from_ref(&stream), Output::writer(copy))?;
                    none.insert(made)
                }
            };
            let mut range = Range { from: began, ..Range::ALL };
            range.ordinals = next.map(|next| (next, Ordinal(u64::MAX)));
            let selection = Selection { streams: vec![stream.id], range };
            let plan = reader.plan(&selection).map_err(|error| ring_failure(&error))?;
            let mut wrong = None;
            let mut take = |item: Item<'_>| {
                if let Item::Element(element) = &item {
                    next = Some(Ordinal(element.ordinal.0 + 1));
                }
                match export.item(&item) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(failure) => {
                        wrong = Some(failure);
                        ControlFlow::Break(())
                    }
                }
            };
            reader.read(&plan, &mut take).map_err(|error| ring_failure(&error))?;
            wrong.map_or(Ok(()), Err)?;
            export.flush()?;
            Ok(to.metadata().map_err(Failure::failed)?.len())
        };
        match step() {
            Ok(size) => drop(request.send(Ok(size))),
            Err(failure) => return Err((failure, request)),
        }
        match requests.recv() {
            Ok(another) => request = another,
            Err(_) => return Ok(()),
        }
    }
}
