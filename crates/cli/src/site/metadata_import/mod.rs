//! Import of metadata: lines of a file become changes of attributes, which go to the site in batches.
//!
//! The site makes each batch wholly or not at all. The notations of lines are in `csv` and `json_lines`.

mod csv;
mod json_lines;
mod lines;

use super::path::SitePath;
use super::retry::Retry;
use super::session::Session;
use csv::Csv;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_remote::{
    AttributeChange, ChangedEntries, EntryChange, MOST_BATCH_ATTRIBUTES, MOST_BATCH_ENTRIES, NewAttribute,
    RemoteError, RemoteErrorKind,
};
use json_lines::JsonLines;
use lines::Lines;
use std::fmt;
use std::io::BufRead;
use std::ops::RangeInclusive;

/// Bytes of lines after which a batch is sent: bounds the memory of client and server.
const MOST_BATCH_BYTES: usize = 512 << 10;

/// Most values of one line; the site takes no more for one entry.
const MOST_VALUES: usize = 1000;

/// Rules for all lines of an import.
#[derive(Clone, Debug)]
pub(crate) struct ImportRules {
    /// Collection below which paths without a slash at their begin are.
    pub(crate) under: Option<SitePath>,
    /// True to keep the values of the same names that entries have.
    pub(crate) keeps: bool,
}

/// Batch that the site has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportedBatch {
    /// First and last line of the batch.
    pub(crate) lines: RangeInclusive<u64>,
    /// Number of lines that change an entry.
    pub(crate) entries: u64,
    /// Number of those whose entry did not have these attributes already.
    pub(crate) changed: u64,
}

/// Line that cannot be imported.
#[derive(Debug, PartialEq, Eq)]
struct LineError {
    line: u64,
    reason: String,
}

/// Values that a line gives to an entry, before the rules are applied.
#[derive(Debug, PartialEq)]
struct Values {
    path: String,
    added: Vec<NewAttribute>,
    /// Names that have no value from now on.
    emptied: Vec<String>,
}

/// Line with the change that it asks for.
#[derive(Debug, PartialEq)]
struct ImportLine {
    number: u64,
    bytes: usize,
    change: EntryChange,
}

/// Lines that are sent together.
#[derive(Default)]
struct Batch {
    lines: Vec<ImportLine>,
    /// Values and removed names of all lines.
    attributes: usize,
    bytes: usize,
}

impl Batch {
    /// Adds a line, or gives it back if the batch is full.
    fn add(&mut self, line: ImportLine) -> Option<ImportLine> {
        let attributes = self.attributes + line.change.change.add.len() + line.change.change.remove.len();
        let bytes = self.bytes + line.bytes;
        let is_small = attributes <= MOST_BATCH_ATTRIBUTES && bytes <= MOST_BATCH_BYTES;
        if !self.lines.is_empty() && (self.lines.len() == MOST_BATCH_ENTRIES || !is_small) {
            return Some(line);
        }
        self.lines.push(line);
        (self.attributes, self.bytes) = (attributes, bytes);
        None
    }

    /// First and last line.
    fn range(&self) -> RangeInclusive<u64> {
        let number = |line: Option<&ImportLine>| line.map_or(0, |line| line.number);
        number(self.lines.first())..=number(self.lines.last())
    }
}

/// Reader of lines in the notation that their first character tells.
enum Notation<R> {
    Csv(Csv<R>),
    JsonLines(JsonLines<R>),
}

/// Import from a reader, which its messages call `name`.
pub(crate) struct MetadataImport<R> {
    notation: Notation<R>,
    rules: ImportRules,
    name: String,
}

impl<R: BufRead> MetadataImport<R> {
    /// Reads the begin of a file: an object of JSON is a line of JSON lines, anything else the head of a CSV file.
    pub(crate) fn open(reader: R, rules: &ImportRules, name: &str) -> Result<Self> {
        let mut lines = Lines::new(reader);
        let opened = lines.first().and_then(|first| match first {
            Some(b'{') => Ok(Notation::JsonLines(JsonLines::new(lines))),
            _ => Csv::open(lines).map(Notation::Csv),
        });
        let (rules, name) = (rules.clone(), name.to_owned());
        match opened {
            Ok(notation) => Ok(Self { notation, rules, name }),
            Err(error) => Err(cannot(&name, &error)),
        }
    }

    /// Reads all lines without sending them.
    pub(crate) fn check(mut self) -> Result<()> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// Sends all lines, and tells each batch that the site has made.
    pub(crate) fn send(
        mut self,
        session: &Session,
        told: &mut dyn FnMut(&ImportedBatch) -> Result<()>,
    ) -> Result<()> {
        let (mut batch, mut made) = (Batch::default(), None);
        loop {
            let read = self.next();
            let unread = match read {
                Ok(Some(line)) => match batch.add(line) {
                    None => continue,
                    full => Ok(full),
                },
                end => end,
            };
            // Lines before one that cannot be read are sent.
            if !batch.lines.is_empty() {
                let imported = send(session, &batch, &self.name, made)?;
                made = Some(*imported.lines.end());
                told(&imported)?;
            }
            let correct = |error: Failure| {
                error.advice(format_args!("{}; correct it and repeat the command", done(made)))
            };
            let Some(line) = unread.map_err(correct)? else { return Ok(()) };
            batch = Batch::default();
            batch.add(line);
        }
    }

    /// Change of the next line; `None` at the end.
    fn next(&mut self) -> Result<Option<ImportLine>> {
        let read = match &mut self.notation {
            Notation::Csv(csv) => csv.next(),
            Notation::JsonLines(lines) => lines.next(),
        };
        let line = read.and_then(|read| {
            let Some((number, bytes, values)) = read else { return Ok(None) };
            let change = change(&self.rules, values).map_err(|reason| LineError { line: number, reason })?;
            Ok(Some(ImportLine { number, bytes, change }))
        });
        line.map_err(|error| cannot(&self.name, &error))
    }
}

impl<R> fmt::Debug for MetadataImport<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataImport").field("name", &self.name).finish_non_exhaustive()
    }
}

fn cannot(name: &str, LineError { line, reason }: &LineError) -> Failure {
    Failure::failed(format_args!("cannot import line {line} of {}: {}", clean(name), clean(reason)))
        .advice("nothing was changed; correct it and repeat the command")
}

/// Text about the lines of a file that the site has made.
fn done(made: Option<u64>) -> String {
    made.map_or("nothing was changed".to_owned(), |last| {
        format!("the lines up to {last} are imported, and may come again")
    })
}

/// Change of an entry by the values of its line.
fn change(rules: &ImportRules, values: Values) -> Result<EntryChange, String> {
    let Values { path, added, emptied } = values;
    let path: SitePath = match &rules.under {
        Some(under) if !path.starts_with('/') => {
            format!("{}/{path}", under.to_string().trim_end_matches('/')).parse()?
        }
        _ => path.parse().map_err(|reason| format!("{reason}, or give --under"))?,
    };
    let number = added.len() + emptied.len();
    if number > MOST_VALUES {
        return Err(format!("it has {number} values, more than {MOST_VALUES}; split the line"));
    }
    let mut remove = emptied;
    if !rules.keeps {
        remove.extend(added.iter().map(|new| new.name.clone()));
        remove.sort_unstable();
        remove.dedup();
    } else if let Some(name) = remove.first() {
        return Err(format!("`{name}` has the value null, which removes values; leave out --add"));
    }
    Ok(EntryChange { path: path.to_string(), change: AttributeChange { add: added, remove } })
}

/// Sends a batch, and again after a failure of the network: a batch that was made already changes nothing.
fn send(session: &Session, batch: &Batch, name: &str, made: Option<u64>) -> Result<ImportedBatch> {
    let entries: Vec<EntryChange> = batch.lines.iter().map(|line| line.change.clone()).collect();
    let lines = batch.range();
    session.run(async {
        let mut retry = Retry::default();
        loop {
            match session.site().catalog_attributes_all(&entries).await {
                Ok(ChangedEntries { entries, changed }) => {
                    return Ok(ImportedBatch { lines, entries, changed });
                }
                Err(error) => {
                    let paused = retry.pause(error).await;
                    paused.map_err(|error| refused(&error, batch, &clean(name), made))?;
                }
            }
        }
    })
}

/// Failure of a batch with the lines that are imported.
fn refused(error: &RemoteError, batch: &Batch, name: &str, made: Option<u64>) -> Failure {
    let (lines, done) = (batch.range(), done(made));
    let (first, last) = (lines.start(), lines.end());
    if let Some(line) = error.entry.and_then(|place| batch.lines.get(place)) {
        let (number, path, text) = (line.number, clean(&line.change.path), clean(&error.message));
        let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason);
        let failed =
            Failure::failed(format_args!("cannot import line {number} of {name} (`{path}`): {reason}"));
        return failed.advice(format_args!(
            "none of the lines {first} to {last} is imported; {done}; correct it and repeat the command"
        ));
    }
    if error.kind == RemoteErrorKind::NotFound {
        return Failure::failed("cannot import: the site is older and takes no batches")
            .advice("use `holdfast meta set`, or update the site");
    }
    // The answer may have been lost after the work.
    let may_be_made = matches!(error.kind, RemoteErrorKind::Unreachable | RemoteErrorKind::TimedOut);
    let state = if may_be_made { "imported wholly or not at all" } else { "not imported" };
    let text = clean(&error.message);
    Failure::failed(text)
        .advice(format_args!("the lines {first} to {last} of {name} are {state}; {done}; repeat the command"))
}
