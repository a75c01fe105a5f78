//! Searches over rings of this site: a program that the server gets as options, run for one request, with its output in frames.
//!
//! The program ends when nobody reads its output any more. Rings and commands are not known here.

use crate::log::Log;
use bytes::{Bytes, BytesMut};
use holdfast_remote::{RunningSearch, SearchPart};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// Searches that run at the same time: each reads the disks as fast as these go. Others wait.
const MOST_RUNNING: usize = 2;

/// Searches that wait, each with a connection.
const MOST_WAITING: usize = 32;

/// Time for which a reader may take nothing before the search ends: it has a place that others wait for.
const MOST_STALL: Duration = Duration::from_mins(2);

/// Bytes of one part of an answer.
const PIECE: usize = 64 << 10;

/// Pause between two signs of a search that has nothing to tell: below every idle timeout of clients.
const SIGN: Duration = Duration::from_secs(5);

/// Exit code of a search that could not be run to its end.
const FAILED: u8 = 1;

/// Search for the program that knows rings. Everything in it comes from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Command that searches, by name.
    pub command: String,
    /// Names of rings in the configuration.
    pub rings: Vec<String>,
    /// Options of the command, `--NAME` or `--NAME=VALUE`.
    pub options: Vec<String>,
    /// Query in SQL, if the command takes one.
    pub sql: Option<String>,
}

/// Maker of programs that search the rings of a site.
pub trait SearchProgram: Send + Sync {
    /// Program that carries out a search, or the reason why it is refused. It blocks for a moment at most.
    fn command(&self, search: &Search) -> Result<std::process::Command, String>;
}

/// Searches of a server.
pub(crate) struct Searches {
    program: Option<Arc<dyn SearchProgram>>,
    /// Places of searches that run.
    running: Arc<Semaphore>,
    /// Places of all searches, with those that wait.
    all: Arc<Semaphore>,
}

/// Search that has a place.
pub(crate) struct AdmittedSearch {
    command: Command,
    _place: OwnedSemaphorePermit,
}

/// Reason why a search is not run.
pub(crate) enum SearchRefusal {
    /// The search is not allowed.
    Refused(String),
    /// Too many others wait.
    Busy,
}

impl Searches {
    pub(crate) fn new(program: Option<Arc<dyn SearchProgram>>) -> Self {
        let [running, all] =
            [MOST_RUNNING, MOST_RUNNING + MOST_WAITING].map(|most| Arc::new(Semaphore::new(most)));
        Self { program, running, all }
    }

    /// Admits a search, or tells why not. `by` is known to the command as its user.
    pub(crate) fn admit(&self, search: &Search, by: &str) -> Result<AdmittedSearch, SearchRefusal> {
        let Some(program) = &self.program else {
            let reason = "no ring of this site may be searched; ask its administrator".to_owned();
            return Err(SearchRefusal::Refused(reason));
        };
        let command = program.command(search).map_err(SearchRefusal::Refused)?;
        let place = Arc::clone(&self.all).try_acquire_owned().map_err(|_| SearchRefusal::Busy)?;
        let mut command = Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).env("USER", by).env_remove("SUDO_USER");
        Ok(AdmittedSearch { command, _place: place })
    }

    /// Runs a search, and sends its output until it ends or nobody reads it. It waits for its turn before.
    pub(crate) async fn run(&self, mut search: AdmittedSearch, log: Log, to: Sender<Bytes>) {
        let (running, told) = (Arc::clone(&self.running), to.clone());
        let work = async move {
            let _place = running.acquire_owned().await;
            let code = match run(&mut search.command, &told).await {
                Ok(code) => code,
                Err(error) => {
                    log.trouble("search", &error);
                    let message = format!("holdfast: cannot start the search: {error}; make it shorter\n");
                    send(&told, &SearchPart::Message(message.into())).await?;
                    FAILED
                }
            };
            send(&told, &SearchPart::End(code)).await
        };
        deliver(work, to).await;
    }

    /// Sends the answer of a peer on.
    pub(crate) async fn relay(mut running: RunningSearch, to: Sender<Bytes>) {
        let told = to.clone();
        let work = async move {
            loop {
                match running.part().await {
                    Ok(Some(SearchPart::Silence)) => {}
                    Ok(Some(part)) => send(&told, &part).await?,
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        let message = format!("holdfast: {}\n", error.message);
                        send(&told, &SearchPart::Message(message.into())).await?;
                        return send(&told, &SearchPart::End(FAILED)).await;
                    }
                }
            }
        };
        deliver(work, to).await;
    }
}

/// Does the work until its end, with signs meanwhile, or until nobody reads.
async fn deliver(work: impl Future<Output = Result<(), Left>>, to: Sender<Bytes>) {
    let signs = async {
        loop {
            sleep(SIGN).await;
            if send(&to, &SearchPart::Silence).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = work => {}
        () = signs => {}
        () = to.closed() => {}
    }
}

/// Runs a program to its end; its exit code.
async fn run(command: &mut Command, to: &Sender<Bytes>) -> io::Result<u8> {
    let mut child = command.spawn()?;
    let (output, messages) = (child.stdout.take(), child.stderr.take());
    tokio::join!(read(output, SearchPart::Output, to), read(messages, SearchPart::Message, to));
    let status = child.wait().await?;
    if let Some(signal) = status.signal() {
        let message = format!("holdfast: the search was ended by signal {signal}\n");
        let _ = send(to, &SearchPart::Message(message.into())).await;
    }
    Ok(status.code().and_then(|code| code.try_into().ok()).unwrap_or(FAILED))
}

/// Sends the output of a program until its end, or until its reader has left: then the program finds nobody there.
async fn read(from: Option<impl AsyncRead + Unpin>, part: impl Fn(Bytes) -> SearchPart, to: &Sender<Bytes>) {
    let Some(mut from) = from else { return };
    let mut bytes = BytesMut::with_capacity(PIECE);
    while matches!(from.read_buf(&mut bytes).await, Ok(1..)) {
        if send(to, &part(bytes.split().freeze())).await.is_err() {
            return;
        }
        bytes.reserve(PIECE);
    }
}

/// Reader that has left, or takes nothing any more.
struct Left;

/// Sends a part to the reader.
async fn send(to: &Sender<Bytes>, part: &SearchPart) -> Result<(), Left> {
    match timeout(MOST_STALL, to.send(part.frame())).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Left),
    }
}
