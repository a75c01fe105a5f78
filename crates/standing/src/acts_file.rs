//! File of acts: a JSON line for each act that a ring's audit log has had, each once. The log keeps the newest, the file all.

use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::Act;
use holdfast_ring::{ActKind, ActNumbers, ActStatus, StreamStatus};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that acts are added to, by nobody else meanwhile.
pub struct ActsFile {
    path: PathBuf,
    file: File,
    /// The last purge in it, and the last of the other acts.
    purge: Option<Value>,
    other: Option<Value>,
    /// Whether these were seen on the ring.
    seen: bool,
}

/// Acts that were added to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedActs {
    /// Acts.
    pub acts: u64,
    /// Those that are missing before them: the ring had dropped them.
    pub dropped: u64,
}

impl ActsFile {
    /// Opens one, or makes it for this user alone. A line that was not written to its end is taken away.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error: io::Error| failed(path, &error);
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(
                Failure::failed("this is no file that could be added to and looked through").at_path(path)
            );
        }
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::failed("another `holdfast audit` adds to this file")
                .at_path(path)
                .advice("one that follows the ring needs no other beside it"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = text[..whole].lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>();
        let lines = lines.map_err(|error| {
            Failure::failed(format_args!("this is no file of acts: {error}"))
                .at_path(path)
                .advice("name a new one, or one that `holdfast audit --append` has made")
        })?;
        file.set_len(whole as u64).map_err(failed)?;
        let last = |purge: bool| lines.iter().rfind(|line| is_purge(line) == purge).cloned();
        Ok(Self { purge: last(true), other: last(false), path: path.to_owned(), file, seen: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Behind which numbers to look for what is not in it: the last of each kind is looked at once, to see that they are of this ring.
    pub fn after(&self) -> ActNumbers {
        let again = u64::from(!self.seen);
        let after = |last: &Option<Value>| number(last.as_ref()).saturating_sub(again);
        ActNumbers { purges: after(&self.purge), others: after(&self.other) }
    }

    /// From here on acts may be of another ring.
    pub fn look_again(&mut self) {
        self.seen = false;
    }

    /// Adds what is not in it, durably.
    pub fn add(&mut self, acts: &[ActStatus], streams: &[StreamStatus]) -> Result<AddedActs> {
        let (mut lines, mut added) = (Vec::new(), AddedActs::default());
        let (mut purge, mut other) = (self.purge.clone(), self.other.clone());
        for (purges, last) in [(false, &mut other), (true, &mut purge)] {
            let mut own: Vec<&ActStatus> =
                acts.iter().filter(|act| (act.kind == ActKind::Purge) == purges).collect();
            own.sort_by_key(|act| act.number);
            let known = number(last.as_ref());
            let shown = |act: &ActStatus| {
                serde_json::to_value(Act::new(act, streams))
                    .map_err(|error| failed(&self.path, &error.into()))
            };
            let is_other = !self.seen
                && match own.iter().find(|act| act.number == known) {
                    Some(act) => Some(shown(act)?) != *last,
                    None => own.last().map_or(0, |act| act.number) < known,
                };
            if is_other {
                return Err(Failure::failed("this file has the acts of another ring")
                    .at_path(&self.path)
                    .advice("give each ring a file of its own"));
            }
            let mut next = known + 1;
            for act in own.into_iter().skip_while(|act| act.number <= known) {
                added.dropped += act.number - next;
                added.acts += 1;
                next = act.number + 1;
                serde_json::to_writer(&mut lines, &Act::new(act, streams))
                    .map_err(|error| failed(&self.path, &error.into()))?;
                lines.push(b'\n');
                *last = Some(shown(act)?);
            }
        }
        if !lines.is_empty() {
            let written = self.file.write_all(&lines).and_then(|()| self.file.sync_all());
            written.map_err(|error| failed(&self.path, &error))?;
        }
        (self.purge, self.other, self.seen) = (purge, other, true);
        Ok(added)
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::io("cannot add to the file", path, error)
}

fn is_purge(line: &Value) -> bool {
    line["act"] == "purge"
}

/// The number of an act; 0 for none.
fn number(act: Option<&Value>) -> u64 {
    act.and_then(|act| act["number"].as_u64()).unwrap_or(0)
}
