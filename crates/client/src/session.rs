//! Session with a ring: opened by what was typed, with names instead of numbers, and with errors that say what to do.

use crate::config;
use crate::range::RangeOptions;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Clock, FileKind, StreamId, SystemClock, Timestamp};
use holdfast_format::FormatError;
use holdfast_protocol::ProtocolError;
use holdfast_reader::ReaderError;
use holdfast_reader::{RingReader, Selection};
use holdfast_ring::{Refusal, StreamStatus};
use rustix::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

/// The path of a ring that was named, by its path or by its name in the configuration file.
pub fn ring_path(named: &Path) -> Result<PathBuf> {
    let path = config::ring(named)?.path;
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

/// Leaves the processors to whoever captures: what only looks goes behind it, with the threads that it starts from here on.
pub fn give_way() {
    /// Less than a tenth of what others get where there is not enough for all.
    const BEHIND: i32 = 10;
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Where that is forbidden it goes beside it, as before.
        let _ = rustix::process::nice(BEHIND);
    });
}

/// Leaves the processors to recorders as `give_way` does, if one runs on this machine.
pub fn give_way_to_recorders() {
    if holdfast_protocol::runs_recorder() {
        give_way();
    }
}

/// Where memory is short this program is ended before all others, a recorder and who looks for what holds stand for above all: whoever
/// asked can ask again.
pub fn prefer_oom_kill() {
    // Where that is forbidden it is one of many, as before.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Opens the ring at a path for reading.
pub fn open(path: &Path) -> Result<RingReader> {
    RingReader::open(path).map_err(|error| ring_failure(&error))
}

/// Failure of a read, with advice.
pub fn ring_failure(error: &ReaderError) -> Failure {
    match error {
        ReaderError::Protocol(error) => protocol_failure(error),
        other => Failure::failed(other),
    }
}

/// Failure of the way to a ring or its recorder, with advice.
pub fn protocol_failure(error: &ProtocolError) -> Failure {
    match error {
        ProtocolError::Open { path, cause } if cause.kind() == io::ErrorKind::NotFound => {
            Failure::failed("there is no such ring")
                .at_path(path)
                .advice("give the path of a ring, or make one: `holdfast format PATH --size 10GiB`")
        }
        ProtocolError::Open { path, cause } => Failure::io("cannot open the ring", path, cause),
        ProtocolError::NotARing { path, cause } => {
            if let Some(kind) = FileKind::of(path) {
                return Failure::failed(format_args!("this is {}, not a ring", kind.name()))
                    .at_path(path)
                    .advice(kind.advice(path));
            }
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
pub fn refused(refusal: &Refusal) -> Failure {
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
pub fn now() -> Timestamp {
    SystemClock::new().now()
}

/// The streams with these names; none given means all, and stays so.
pub fn streams_named(all: &[StreamStatus], names: &[String]) -> Result<Vec<StreamId>> {
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
pub fn stream_name(all: &[StreamStatus], id: StreamId) -> String {
    all.iter().find(|stream| stream.id == id).map_or_else(|| id.to_string(), |stream| stream.name.clone())
}

/// A selection of what was asked for. Ordinals are of one stream: if the ring has no other, it need not be named.
pub fn selection(all: &[StreamStatus], names: &[String], range: &RangeOptions) -> Result<Selection> {
    let streams = match all {
        [only] if names.is_empty() && range.ordinals.is_some() => vec![only.id],
        _ => streams_named(all, names)?,
    };
    selection_of(streams, range)
}

/// A selection of streams that are chosen already.
pub fn selection_of(streams: Vec<StreamId>, range: &RangeOptions) -> Result<Selection> {
    let range = range.resolve(now(), streams.len())?;
    Ok(Selection { streams, range })
}
