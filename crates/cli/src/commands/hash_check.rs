//! `holdfast hash --check`: compares files with lists of digests, as hash tools write them.

use crate::args::ScanArgs;
use crate::item_name;
use crate::out::{Out, say, say_of};
use crate::scanning;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::json::CheckedItem;
use holdfast_scan::{Algorithm, Hash, Pick};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Digest of one file in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    /// Hash functions that the digest may be of.
    algorithms: Vec<Algorithm>,
    digest: String,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Changed,
    Unread,
}

/// Compares the files of the lists. `given` are the hash functions of the command line.
pub(super) fn run(lists: &[PathBuf], given: &[Algorithm], scan: &ScanArgs, out: &mut Out) -> Result<()> {
    let (entries, malformed) = read(lists, given)?;
    let mut of_name: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut places = Vec::new();
    let mut algorithms = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let known = of_name.entry(&entry.name).or_default();
        if known.is_empty() {
            places.push(PathBuf::from(OsString::from_vec(entry.name.clone())));
        }
        known.push(at);
        for algorithm in &entry.algorithms {
            if !algorithms.contains(algorithm) {
                algorithms.push(*algorithm);
            }
        }
    }
    let mut verdicts: Vec<Option<Verdict>> = vec![None; entries.len()];
    // Those in front of this one are told, in the order of the lists.
    let mut told = 0;
    let mut take = |hashes: holdfast_scan::Hashes, out: &mut Out| -> Result<()> {
        for at in of_name.get(hashes.item.name().as_slice()).into_iter().flatten() {
            let Entry { algorithms, digest, .. } = &entries[*at];
            let is_same = hashes
                .values
                .iter()
                .any(|value| algorithms.contains(&value.algorithm) && value.hex == *digest);
            verdicts[*at] = Some(if is_same { Verdict::Same } else { Verdict::Changed });
        }
        while let Some(Some(verdict)) = verdicts.get(told) {
            tell(&entries[told], *verdict, out)?;
            told += 1;
        }
        Ok(())
    };
    match scan.sources(&places, Pick::Bytes) {
        Ok(sources) => {
            let hash = Hash::new(&algorithms);
            let report = scanning::run(&hash, &sources, scan, &mut |hashes| take(hashes, out))?;
            // Troubles are files that could not be read, which are counted below.
            let _ = scanning::end(&report, scan, out);
        }
        Err(failure) => say_of(&item_name::escaped(&entries[0].name), &failure.without_place().to_string()),
    }
    for (entry, verdict) in entries.iter().zip(&verdicts).skip(told) {
        tell(entry, verdict.unwrap_or(Verdict::Unread), out)?;
    }
    out.flush()?;
    let count = |wanted: Verdict| {
        let all = verdicts.iter().map(|verdict| verdict.unwrap_or(Verdict::Unread));
        all.filter(|verdict| *verdict == wanted).count() as u64
    };
    let mut wrong = Vec::new();
    for (count, text) in
        [(count(Verdict::Changed), "has another digest"), (count(Verdict::Unread), "could not be read")]
    {
        if count > 0 {
            wrong.push(format!("{count} of {} {text}", counted(entries.len() as u64, "file")));
        }
    }
    if malformed > 0 {
        wrong.push(format!("{} of the lists without a digest", counted(malformed, "line")));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    say(&wrong.join(", "));
    Err(Failure::said(Kind::Failed))
}

fn tell(entry: &Entry, verdict: Verdict, out: &mut Out) -> Result<()> {
    if out.is_json() {
        let text = std::str::from_utf8(&entry.name);
        return out.object(&CheckedItem {
            source: &String::from_utf8_lossy(&entry.name),
            source_bytes: text.is_err().then(|| STANDARD.encode(&entry.name)),
            check: match verdict {
                Verdict::Same => "ok",
                Verdict::Changed => "changed",
                Verdict::Unread => "unread",
            },
        });
    }
    let text = match verdict {
        Verdict::Same => "OK",
        Verdict::Changed => "FAILED",
        Verdict::Unread => "FAILED open or read",
    };
    out.line_of(&item_name::escaped(&entry.name), format_args!(": {text}"))
}

/// Entries of all lists, and the number of lines that are none.
fn read(lists: &[PathBuf], given: &[Algorithm]) -> Result<(Vec<Entry>, u64)> {
    let (mut entries, mut malformed) = (Vec::new(), 0);
    for list in lists {
        let mut bytes = Vec::new();
        let read = if list == Path::new("-") {
            io::stdin().lock().read_to_end(&mut bytes).map(drop)
        } else {
            std::fs::read(list).map(|read| bytes = read)
        };
        read.map_err(|error| Failure::io("cannot read the list of digests", list, &error))?;
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() || line.starts_with(b"#") {
                continue;
            }
            match entry(line, given) {
                Some(entry) => entries.push(entry),
                None => malformed += 1,
            }
        }
    }
    if entries.is_empty() {
        return Err(Failure::failed("cannot check: no line has a digest").advice(
            "give a list that `holdfast hash`, `sha256sum`, `b3sum` or another hash tool has written",
        ));
    }
    Ok((entries, malformed))
}

/// Reads a line: `DIGEST  NAME`, `DIGEST *NAME`, `ALGORITHM DIGEST  NAME` or `ALGORITHM (NAME) = DIGEST`. A backslash in front
/// tells that the name has escapes.
fn entry(line: &[u8], given: &[Algorithm]) -> Option<Entry> {
    let line = line.trim_ascii_start();
    let (line, mut is_escaped) = unmarked(line, false);
    if let Some((algorithm, name, digest)) = tagged(line) {
        return made(name, is_escaped, vec![algorithm], digest, given);
    }
    let named = Algorithm::ALL.into_iter().find_map(|algorithm| {
        let rest = line.strip_prefix(algorithm.name().as_bytes())?.strip_prefix(b" ")?;
        Some((algorithm, rest))
    });
    let (algorithm, rest) = named.map_or((None, line), |(algorithm, rest)| (Some(algorithm), rest));
    let (rest, is_marked) = unmarked(rest, is_escaped);
    is_escaped = is_marked;
    let end = rest.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let (digest, rest) = rest.split_at(end);
    let name = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
    let algorithms = algorithm.map_or_else(|| by_length(digest.len()), |algorithm| vec![algorithm]);
    made(name, is_escaped, algorithms, digest, given)
}

fn unmarked(line: &[u8], is_marked: bool) -> (&[u8], bool) {
    line.strip_prefix(b"\\").map_or((line, is_marked), |rest| (rest, true))
}

/// Parts of a line in the form of BSD.
fn tagged(line: &[u8]) -> Option<(Algorithm, &[u8], &[u8])> {
    let tags = [
        ("BLAKE3", Algorithm::Blake3),
        ("SHA256", Algorithm::Sha256),
        ("SHA1", Algorithm::Sha1),
        ("MD5", Algorithm::Md5),
    ];
    tags.into_iter().find_map(|(tag, algorithm)| {
        let rest = line.strip_prefix(tag.as_bytes())?.strip_prefix(b" (")?;
        let end = rest.windows(4).rposition(|window| window == b") = ")?;
        Some((algorithm, &rest[..end], &rest[end + 4..]))
    })
}

/// Hash functions whose digests have so many hexadecimal digits.
fn by_length(digits: usize) -> Vec<Algorithm> {
    let of_length = |algorithm: &Algorithm| length(*algorithm) == digits;
    Algorithm::ALL.into_iter().filter(of_length).collect()
}

/// Hexadecimal digits of a digest.
fn length(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Blake3 | Algorithm::Sha256 => 64,
        Algorithm::Sha1 => 40,
        Algorithm::Md5 => 32,
    }
}

fn made(
    name: &[u8],
    is_escaped: bool,
    mut algorithms: Vec<Algorithm>,
    digest: &[u8],
    given: &[Algorithm],
) -> Option<Entry> {
    let is_digest = digest.iter().all(u8::is_ascii_hexdigit);
    algorithms.retain(|algorithm| {
        length(*algorithm) == digest.len() && (given.is_empty() || given.contains(algorithm))
    });
    let name = if is_escaped { unescaped(name)? } else { name.to_vec() };
    if !is_digest || algorithms.is_empty() || name.is_empty() || name.contains(&0) {
        return None;
    }
    Some(Entry { name, algorithms, digest: String::from_utf8_lossy(digest).to_ascii_lowercase() })
}

fn unescaped(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_hash_tools_are_read() {
        let (md5, sha1, long) = ("d4".repeat(16), "0A".repeat(20), "5f".repeat(32));
        let both = [Algorithm::Blake3, Algorithm::Sha256];
        for (line, name, algorithms) in [
            (format!("{md5}  a b"), "a b", &[Algorithm::Md5][..]),
            (format!("{sha1} *a"), "a", &[Algorithm::Sha1]),
            (format!("{long}  a"), "a", &both),
            (format!("sha256 {long}  a"), "a", &[Algorithm::Sha256]),
            (format!("blake3 \\{long}  a\\nb\\\\"), "a\nb\\", &[Algorithm::Blake3]),
            (format!("\\{md5}  a\\rb"), "a\rb", &[Algorithm::Md5]),
            (format!("SHA256 (a) = b) = {long}"), "a) = b", &[Algorithm::Sha256]),
            (format!("\\MD5 (a\\nb) = {md5}"), "a\nb", &[Algorithm::Md5]),
            (format!("  {md5}   a "), " a ", &[Algorithm::Md5]),
        ] {
            let entry = entry(line.as_bytes(), &[]).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((entry.name.as_slice(), entry.algorithms.as_slice()), (name.as_bytes(), algorithms));
            assert_eq!(entry.digest, entry.digest.to_ascii_lowercase());
        }
        let given = [Algorithm::Sha256];
        assert_eq!(entry(format!("{long}  a").as_bytes(), &given).unwrap().algorithms, given);
        for line in [
            format!("{md5} a"),
            md5.clone(),
            format!("{md5}  "),
            format!("{md5}0  a"),
            format!("\\{md5}  a\\x"),
            format!("MD5 (a) = {long}"),
            "no digest".to_owned(),
        ] {
            assert_eq!(entry(line.as_bytes(), &[]), None, "{line}");
        }
        assert_eq!(entry(format!("{md5}  a").as_bytes(), &given), None);
    }
}
