//! Journal reader: reads an extent commit by commit, in large pieces.

use crate::blocking::Blocking;
use holdfast_base::{BLOCK, RingId};
use holdfast_format::{CommitHead, Geometry, Key, Records, commit_len, read_commit};
use holdfast_media::DiskError;

/// Bytes that are read at once, at most: some commits, as one that is cut off at the end is read again. Few at first, for
/// there may be few commits.
pub(crate) const WINDOW: usize = 8 << 20;

/// Where a walk came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked {
    /// The first commit.
    pub(crate) first: CommitHead,
    /// The last commit.
    pub(crate) last: CommitHead,
    /// Bytes of the extent up to the end of the last commit.
    pub(crate) end: u64,
    /// Whether the snapshot at its head is whole.
    pub(crate) whole: bool,
}

/// The head of an extent's first commit, if that begins a snapshot.
pub(crate) fn peek(
    window: &mut Blocking<'_>,
    geometry: &Geometry,
    extent: usize,
    key: &Key,
    ring: RingId,
) -> Result<Option<CommitHead>, DiskError> {
    let walked = walk(window, geometry, extent, key, ring, 1, &mut |_, _| {})?;
    Ok(walked.map(|w| w.first))
}

/// Visits the commits of an extent from its head, as long as each continues the one before; at most `most` of them.
/// `None` when there is no snapshot at its head. A commit that cannot be read or does not continue ends the walk.
pub(crate) fn walk(
    window: &mut Blocking<'_>,
    geometry: &Geometry,
    extent: usize,
    key: &Key,
    ring: RingId,
    most: u64,
    visit: &mut dyn FnMut(&CommitHead, Records<'_>),
) -> Result<Option<Walked>, DiskError> {
    let (start, bytes) = (geometry.extent_offset(extent), geometry.extent_bytes());
    // Of a few commits no more than they can take.
    let most_bytes = (most.saturating_mul(geometry.commit_bytes() as u64)).min(window.size() as u64);
    let mut at_once = (geometry.commit_bytes() as u64).min(most_bytes);
    let mut walked: Option<Walked> = None;
    let mut at = 0;
    let mut seen = 0;
    while at < bytes && seen < most {
        let piece = match window.read(start + at, (bytes - at).min(at_once) as usize) {
            Ok(piece) => piece,
            // A torn or unreadable place in a larger piece: what lies before it can still be read block by block.
            Err(_) => match read_small(window, start + at, key, ring) {
                Some(len) => window.read(start + at, len)?,
                None => return Ok(walked),
            },
        };
        at_once = (2 * at_once).min(most_bytes);
        let mut used = 0;
        while used < piece.len() && seen < most {
            let rest = &piece[used..];
            match commit_len(rest, key, ring) {
                Ok(len) if len > rest.len() => break,
                Ok(_) => {}
                Err(_) => return Ok(walked),
            }
            let Ok((head, records, len)) = read_commit(rest, key, ring) else {
                return Ok(walked);
            };
            let continues = match &walked {
                None => head.begins,
                Some(w) => {
                    head.generation == w.first.generation && head.number == w.last.number + 1 && !head.begins
                }
            };
            if !continues {
                return Ok(walked);
            }
            visit(&head, records);
            used += len;
            seen += 1;
            let end = at + used as u64;
            match &mut walked {
                None => walked = Some(Walked { first: head, last: head, end, whole: head.ends }),
                Some(w) => (w.last, w.end, w.whole) = (head, end, w.whole || head.ends),
            }
        }
        if used == 0 {
            return Ok(walked);
        }
        at += used as u64;
    }
    Ok(walked)
}

fn read_small(window: &mut Blocking<'_>, offset: u64, key: &Key, ring: RingId) -> Option<usize> {
    let block = window.read(offset, BLOCK).ok()?;
    commit_len(block, key, ring).ok().map(|len| len.next_multiple_of(BLOCK))
}
