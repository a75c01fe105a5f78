//! Courier: carries one action of a transfer out, at the file or at the archive, and words the answer as an event.

use super::desk::{Desk, Prefix};
use super::meter::Spent;
use super::pace::SegmentTimes;
use crate::fleet::FileKey;
use crate::link::{Outage, Request};
use crate::throttle::Throttle;
use crate::transfer::{Action, Comparison, Event, Failure, Observation, Resumption, Segment};
use holdfast_remote::{
    Abilities, Extension, NewUpload, RemoteError, RemoteErrorKind, Segment as Body, Site, SiteExtension,
    UploadAddress, UploadState,
};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// Longest wait for the archive's store in one request.
const STORE_WAIT: Duration = Duration::from_secs(30);

/// Pause before the throttle is asked again while the rate is zero.
const CLOSED_PAUSE: Duration = Duration::from_secs(1);

/// Desk of a file, shared by its actions in their order.
pub(super) type SharedDesk = Arc<tokio::sync::Mutex<Desk>>;

/// Experience with the link in one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkReport {
    /// The action did not reach the link.
    Untouched,
    /// The archive has answered.
    Up,
    /// The archive takes nothing from anybody, with the pause that it asks for.
    Down(Outage, Option<Duration>),
}

/// Answer to an action.
pub(super) struct Answer {
    pub(super) key: FileKey,
    /// Event for the transfer; `None` when a rename has succeeded.
    pub(super) event: Option<Event<UploadAddress>>,
    pub(super) link: LinkReport,
    pub(super) request: Request,
    /// Message of a failure.
    pub(super) message: Option<String>,
    /// Path at the archive that the action used.
    pub(super) object: String,
    /// Version of a stored upload.
    pub(super) version: Option<String>,
    /// Bytes that were sent, and true if they were sent before.
    pub(super) sent: Option<(u64, bool)>,
    pub(super) times: Option<(SegmentTimes, Spent)>,
    /// True when the file must be looked at again.
    pub(super) needs_sight: bool,
    /// Abilities of the archive, once they are known.
    pub(super) abilities: Option<Arc<Abilities>>,
}

/// Action with everything that it needs.
pub(super) struct Job {
    pub(super) key: FileKey,
    pub(super) action: Action<UploadAddress>,
    pub(super) site: Site,
    pub(super) project: String,
    /// Path of the object in the project.
    pub(super) object: String,
    /// Path of the file.
    pub(super) path: PathBuf,
    pub(super) observed: Option<Observation>,
    pub(super) desk: SharedDesk,
    pub(super) throttle: Arc<Mutex<Throttle>>,
    pub(super) compress: bool,
}

/// Failure of an action with the link's part in it.
struct Trouble {
    failure: Failure,
    link: LinkReport,
    message: String,
    needs_sight: bool,
}

impl From<RemoteError> for Trouble {
    fn from(error: RemoteError) -> Self {
        use RemoteErrorKind as Kind;
        let down = |outage| LinkReport::Down(outage, error.retry_after);
        let (failure, link) = match error.kind {
            Kind::Unreachable | Kind::TimedOut => (Failure::Transient, down(Outage::Unreachable)),
            Kind::Unauthorized | Kind::Forbidden | Kind::Untrusted => {
                (Failure::Transient, down(Outage::Denied))
            }
            Kind::Full => (Failure::Transient, down(Outage::Full)),
            Kind::Busy => (Failure::Transient, down(Outage::Busy)),
            Kind::Locked | Kind::ServerFailed => (Failure::Transient, LinkReport::Up),
            Kind::NotFound | Kind::Gone => (Failure::Lost, LinkReport::Up),
            Kind::OffsetMismatch => {
                (Failure::OffsetMismatch { offset: error.offset.unwrap_or(0) }, LinkReport::Up)
            }
            Kind::ChecksumMismatch => (Failure::Damaged, LinkReport::Up),
            Kind::Taken | Kind::TooLarge | Kind::Unsupported | Kind::Refused => {
                (Failure::Refused, LinkReport::Up)
            }
        };
        Self { failure, link, message: error.message, needs_sight: false }
    }
}

impl Trouble {
    fn local(path: &std::path::Path, error: &io::Error) -> Self {
        let message = format!("cannot read {}: {error}; check the file", path.display());
        Self { failure: Failure::Transient, link: LinkReport::Untouched, message, needs_sight: true }
    }
}

/// Does blocking work at a desk.
async fn at_desk<T: Send + 'static>(
    job: &Job,
    work: impl FnOnce(&mut Desk) -> io::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let desk: OwnedMutexGuard<Desk> = Arc::clone(&job.desk).lock_owned().await;
    at(job, desk, work).await
}

async fn at<T: Send + 'static>(
    job: &Job,
    mut desk: OwnedMutexGuard<Desk>,
    work: impl FnOnce(&mut Desk) -> io::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(move || work(&mut desk)).await;
    let done = done.unwrap_or_else(|_| Err(io::Error::other("the work was interrupted")));
    done.map_err(|error| Trouble::local(&job.path, &error))
}

/// Waits until the rate limit admits bytes.
async fn admit(throttle: &Mutex<Throttle>, bytes: u64) {
    loop {
        let at = throttle.lock().unwrap_or_else(PoisonError::into_inner).admit(bytes, Instant::now());
        match at {
            Some(at) => return tokio::time::sleep_until(at.into()).await,
            None => tokio::time::sleep(CLOSED_PAUSE).await,
        }
    }
}

/// Carries an action out.
pub(super) async fn carry(job: Job) -> Answer {
    let mut answer = Answer {
        key: job.key,
        event: None,
        link: LinkReport::Up,
        request: job.action.request(),
        message: None,
        object: job.object.clone(),
        version: None,
        sent: None,
        times: None,
        needs_sight: false,
        abilities: None,
    };
    let done = match job.action.clone() {
        Action::Send { address, generation, segment } => {
            send(&job, &address, generation, segment, &mut answer).await.map(Some)
        }
        Action::Create { length } => create(&job, length, &mut answer).await.map(Some),
        Action::SendWhole { .. } => send_whole(&job, &mut answer).await.map(Some),
        Action::Resume { address } => resume(&job, &address).await.map(|found| Some(Event::Resumed(found))),
        Action::Compare { size } => {
            answer.link = LinkReport::Untouched;
            let compared = at_desk(&job, move |desk| desk.compare(size)).await;
            compared.map(|found| Some(Event::Compared(found)))
        }
        Action::Check { delivery } => {
            answer.link = LinkReport::Untouched;
            let path = job.path.clone();
            let compared = at_desk(&job, move |_| match Desk::check(&path, delivery.root) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Comparison::Changed),
                compared => compared,
            });
            compared.await.map(|found| Some(Event::Compared(found)))
        }
        Action::Seal { has_length: true, .. } => Ok(Some(Event::Sealed)),
        Action::Seal { address, length, .. } => {
            let body = Body { offset: length, length: Some(length), ..Body::default() };
            job.site.append(&address, &body).await.map(|_| Some(Event::Sealed)).map_err(Trouble::from)
        }
        Action::Await { address, .. } => stored(&job, &address, &mut answer).await.map(Some),
        Action::Retire { address } => match job.site.terminate(&address).await {
            // An upload that the server cannot remove is left to it.
            Err(error)
                if matches!(
                    error.kind,
                    RemoteErrorKind::NotFound | RemoteErrorKind::Gone | RemoteErrorKind::Unsupported
                ) =>
            {
                Ok(Some(Event::Retired))
            }
            done => done.map(|()| Some(Event::Retired)).map_err(Trouble::from),
        },
        Action::Rename { address } => rename(&job, &address).await.map(|()| None),
    };
    match done {
        Ok(event) => answer.event = event,
        Err(trouble) => {
            answer.event = Some(match job.action {
                Action::Send { generation, segment, .. } => {
                    Event::SegmentFailed { generation, start: segment.start, failure: trouble.failure }
                }
                _ => Event::Failed(trouble.failure),
            });
            answer.link = trouble.link;
            answer.message = Some(trouble.message);
            answer.needs_sight = trouble.needs_sight;
        }
    }
    answer
}

async fn send(
    job: &Job,
    address: &UploadAddress,
    generation: u32,
    segment: Segment,
    answer: &mut Answer,
) -> Result<Event<UploadAddress>, Trouble> {
    // The turn at the desk includes waiting; the time of reading does not.
    let desk = Arc::clone(&job.desk).lock_owned().await;
    let started = Instant::now();
    let bytes = at(job, desk, move |desk| desk.read(generation, segment)).await?;
    let read = started.elapsed();
    admit(&job.throttle, segment.length).await;
    let body =
        Body { offset: segment.start, bytes, length: None, ahead: segment.is_ahead, compress: job.compress };
    answer.sent = Some((segment.length, segment.is_again));
    let started = Instant::now();
    let appended = job.site.append(address, &body).await?;
    let elapsed = started.elapsed();
    let timings = appended.timings;
    let archive = timings.store.unwrap_or_default() + timings.wait.unwrap_or_default();
    let times = SegmentTimes {
        bytes: segment.length,
        wire_bytes: appended.wire_bytes as u64,
        total: timings.total,
        compressing: if job.compress { elapsed.saturating_sub(timings.total) } else { Duration::ZERO },
        receive: timings.receive,
        archive,
    };
    let network = timings.total.saturating_sub(archive);
    answer.times = Some((times, Spent { read, network, archive: timings.store.unwrap_or_default() }));
    at_desk(job, move |desk| {
        desk.forget(generation, segment.start);
        Ok(())
    })
    .await?;
    Ok(Event::Acknowledged { generation, start: segment.start })
}

async fn create(
    job: &Job,
    length: Option<u64>,
    answer: &mut Answer,
) -> Result<Event<UploadAddress>, Trouble> {
    let path = job.path.clone();
    at_desk(job, move |desk| desk.begin(&path)).await?;
    let abilities = job.site.known_abilities().await?;
    answer.abilities = Some(Arc::clone(&abilities));
    if length.is_none() && !abilities.has(Extension::CreationDeferLength) {
        let message = "the archive takes files after their end only".to_owned();
        return Err(Trouble {
            failure: Failure::Transient,
            link: LinkReport::Up,
            message,
            needs_sight: false,
        });
    }
    let new = NewUpload {
        project: Some(job.project.clone()),
        path: job.object.clone(),
        length,
        ..NewUpload::default()
    };
    Ok(Event::Created(job.site.create(&new).await?.address))
}

/// Renames an upload. At a server that cannot do this the file is sent again under its new name.
async fn rename(job: &Job, address: &UploadAddress) -> Result<(), Trouble> {
    if !job.site.known_abilities().await?.has_site(SiteExtension::Path) {
        let message = "the archive cannot rename uploads; the file is sent again".to_owned();
        return Err(Trouble { failure: Failure::Lost, link: LinkReport::Up, message, needs_sight: false });
    }
    Ok(job.site.rename(address, &job.object).await?)
}

async fn send_whole(job: &Job, answer: &mut Answer) -> Result<Event<UploadAddress>, Trouble> {
    let (path, Some(observed)) = (job.path.clone(), job.observed) else {
        return Err(Trouble::local(&job.path, &ErrorKind::NotFound.into()));
    };
    let started = Instant::now();
    let bytes = at_desk(job, move |_| Desk::whole(&path, &observed)).await?;
    let read = started.elapsed();
    let (root, size) = (blake3::hash(&bytes), bytes.len() as u64);
    answer.abilities = Some(job.site.known_abilities().await?);
    admit(&job.throttle, size).await;
    answer.sent = Some((size, false));
    let new = NewUpload {
        project: Some(job.project.clone()),
        path: job.object.clone(),
        length: Some(size),
        first: Some(bytes.clone()),
        ..NewUpload::default()
    };
    let started = Instant::now();
    let created = job.site.create(&new).await?;
    let mut offset = created.offset;
    while offset < size {
        let rest = bytes.slice(offset as usize..);
        let body = Body { offset, bytes: rest, ..Body::default() };
        let reached = job.site.append(&created.address, &body).await?.offset;
        if reached <= offset {
            return Err(Trouble::local(&job.path, &ErrorKind::WriteZero.into()));
        }
        offset = reached;
    }
    let total = started.elapsed();
    let times = SegmentTimes {
        bytes: 0,
        wire_bytes: size,
        total,
        compressing: Duration::ZERO,
        receive: None,
        archive: Duration::ZERO,
    };
    answer.times = Some((times, Spent { read, network: total, archive: Duration::ZERO }));
    Ok(Event::SentWhole { address: created.address, root, size })
}

async fn resume(job: &Job, address: &UploadAddress) -> Result<Resumption, Trouble> {
    let progress = match job.site.progress(address, None).await {
        Err(error) if matches!(error.kind, RemoteErrorKind::NotFound | RemoteErrorKind::Gone) => {
            return Ok(Resumption::Lost);
        }
        progress => progress?,
    };
    let path = job.path.clone();
    match progress.state {
        UploadState::Receiving => {}
        UploadState::Failed => return Ok(Resumption::Differs),
        _ => {
            let size = progress.length.unwrap_or(progress.offset);
            let described = at_desk(job, move |_| Desk::describe(&path)).await;
            return Ok(match described {
                Ok((root, observed)) if observed.size == size => Resumption::Sealed { root, size, observed },
                _ => Resumption::Settled,
            });
        }
    }
    let abilities = job.site.known_abilities().await?;
    let mut prefix = Prefix { offset: progress.offset, block: 1 << 20, blocks: Vec::new(), tail: None };
    if abilities.has_site(SiteExtension::Tail) {
        let mut next = Some(0);
        while let Some(first) = next {
            let page = job.site.blocks(address, first).await?;
            prefix.offset = page.offset;
            prefix.block = page.block_bytes;
            prefix.blocks.extend(page.blocks);
            prefix.tail = page.tail;
            next = page.next;
        }
    }
    let offset = prefix.offset;
    let resumed = at_desk(job, move |desk| match desk.resume(&path, &prefix) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        matches => matches.map(Some),
    });
    Ok(match resumed.await? {
        Some(true) => Resumption::Matches { offset, length: progress.length },
        Some(false) => Resumption::Differs,
        None => Resumption::Unreadable { offset },
    })
}

async fn stored(
    job: &Job,
    address: &UploadAddress,
    answer: &mut Answer,
) -> Result<Event<UploadAddress>, Trouble> {
    loop {
        let abilities = job.site.known_abilities().await?;
        let progress = job.site.progress(address, Some(STORE_WAIT)).await?;
        let is_foreign = !abilities.has_site(SiteExtension::Wait);
        match progress.state {
            UploadState::Stored => {
                answer.version = progress.version;
                return Ok(Event::Stored { root: progress.blake3 });
            }
            UploadState::Complete if is_foreign => {
                return Ok(Event::Stored { root: job.site.read_back(address).await? });
            }
            UploadState::Failed => {
                answer.message = progress.reason;
                return Ok(Event::Failed(Failure::Damaged));
            }
            UploadState::Receiving => {
                return Ok(Event::Failed(Failure::OffsetMismatch { offset: progress.offset }));
            }
            _ => {}
        }
    }
}
