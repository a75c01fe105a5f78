//! A ring as the commands use it: opened by what was typed, with names instead of numbers, and with errors that say
//! what to do.

use crate::config;
use crate::range::{RangeArgs, Wanted};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Clock, StreamId, SystemClock, Timestamp};
use holdfast_format::FormatError;
use holdfast_protocol::LinkError;
use holdfast_reader::{RingReader, Selection};
use holdfast_ring::{Range, Refusal, StreamStatus};
use rustix::fs::FileType;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The ring that nearly every command begins with.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RingArg {
    #[arg(value_name = "RING", help = config::HELP)]
    named: PathBuf,
}

impl RingArg {
    /// Where the configuration file says that copies of its index are.
    pub(crate) fn index(&self) -> Result<Option<PathBuf>> {
        Ok(config::ring(&self.named)?.index)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let path = config::ring(&self.named)?.path;
        // What can never carry a ring is not even opened: a named pipe would wait for its other end.
        let found = match rustix::fs::stat(&path).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => "a directory",
            Ok(FileType::CharacterDevice) => "a character device",
            Ok(FileType::Fifo) => "a named pipe",
            Ok(FileType::Socket) => "a socket",
            _ => return Ok(path),
        };
        Err(Failure::failed(format_args!("this is {found}, not a ring"))
            .at_path(&path)
            .advice("a ring lives on a block device, a partition or a regular file"))
    }

    /// Opens it for reading.
    pub(crate) fn open(&self) -> Result<(PathBuf, RingReader)> {
        let path = self.path()?;
        let reader = open(&path)?;
        Ok((path, reader))
    }
}

/// Leaves the processors to whoever captures: what only looks goes behind it, with the threads that it starts from here on.
pub(crate) fn give_way() {
    /// Less than a tenth of what others get where there is not enough for all.
    const BEHIND: i32 = 10;
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Where that is forbidden it goes beside it, as before.
        let _ = rustix::process::nice(BEHIND);
    });
}

/// Where memory is short this program is ended before all others, a recorder and who looks for what holds stand for above all: whoever
/// asked can ask again.
pub(crate) fn prefer_oom_kill() {
    // Where that is forbidden it is one of many, as before.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// What is set by the first signal that asks for an end; a second one ends at once.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&end))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&end)))
            .map_err(|error| Failure::failed(format_args!("cannot wait for signals: {error}")))?;
    }
    Ok(end)
}

/// Opens the ring at a path for reading.
pub(crate) fn open(path: &Path) -> Result<RingReader> {
    RingReader::open(path).map_err(|error| link(&error))
}

/// What reading failed with, with what to do about it.
pub(crate) fn link(error: &LinkError) -> Failure {
    match error {
        LinkError::Open { path, cause } if cause.kind() == io::ErrorKind::NotFound => {
            Failure::failed("there is no such ring")
                .at_path(path)
                .advice("give the path of a ring, or make one: `holdfast format PATH --size 10GiB`")
        }
        LinkError::Open { path, cause } => Failure::io("cannot open the ring", path, cause),
        LinkError::NotARing { path, cause } => {
            let failure = match cause {
                FormatError::OutOfBounds { .. } => {
                    Failure::failed("this is not a ring: it is too short for one")
                }
                cause => Failure::failed(format_args!("this is not a ring: {cause}")),
            };
            failure.at_path(path).advice(
                "give the path of one; if its superblock was lost, `holdfast check --geometry STRING PATH` rebuilds it \
                 from the recovery string, and with `find` instead of that looks for it",
            )
        }
        other => Failure::failed(other),
    }
}

/// Why an order was not carried out.
pub(crate) fn refused(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::Nothing { oldest } => {
            let left = oldest.map_or("no data is left on the ring".to_owned(), |oldest| {
                format!("the oldest data that is left is of {}", crate::times::rfc3339(oldest))
            });
            Failure::nothing("nothing in that range is on the ring").advice(left)
        }
        Refusal::NoSuchHold(id) => Failure::nothing(format_args!("there is no hold {id}"))
            .advice("`holdfast holds RING` lists those there are"),
        Refusal::Wrong(text) => Failure::usage(text),
        other => Failure::failed(other),
    }
}

/// What time it is.
pub(crate) fn now() -> Timestamp {
    SystemClock::new().now()
}

/// The streams with these names; none given means all, and stays so.
pub(crate) fn streams_named(all: &[StreamStatus], names: &[String]) -> Result<Vec<StreamId>> {
    names
        .iter()
        .map(|name| {
            all.iter().find(|stream| stream.name == *name).map(|stream| stream.id).ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|stream| stream.name.as_str()).collect();
                let known = if known.is_empty() {
                    "the ring has none yet".to_owned()
                } else {
                    format!("the ring has {}", known.join(", "))
                };
                Failure::nothing(format_args!("there is no stream `{name}` on the ring")).advice(known)
            })
        })
        .collect()
}

/// The name of a stream, or its number where it has none.
pub(crate) fn stream_name(all: &[StreamStatus], id: StreamId) -> String {
    all.iter().find(|stream| stream.id == id).map_or_else(|| id.to_string(), |stream| stream.name.clone())
}

/// A selection of what was asked for. Ordinals are of one stream: if the ring has no other, it need not be named.
pub(crate) fn selection(all: &[StreamStatus], names: &[String], range: &RangeArgs) -> Result<Selection> {
    let streams = match all {
        [only] if names.is_empty() && range.ordinals.is_some() => vec![only.id],
        _ => streams_named(all, names)?,
    };
    selection_of(streams, range)
}

/// The same for streams that are chosen already.
pub(crate) fn selection_of(streams: Vec<StreamId>, range: &RangeArgs) -> Result<Selection> {
    let wanted = range.resolve(now(), streams.len())?;
    Ok(Selection { streams, range: ring_range(&wanted) })
}

fn ring_range(wanted: &Wanted) -> Range {
    let Wanted { from, to, by_event, ordinals } = *wanted;
    Range { from, to, by_event, ordinals }
}
