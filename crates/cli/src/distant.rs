//! Searches over rings of other sites: the command runs where the rings are, and its output comes here.

use crate::args::{RingArg, SiteArgs};
use crate::commands::Cli;
use crate::out::{Out, say};
use crate::site::{Session, failure};
use bytes::{Bytes, BytesMut};
use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory as _};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_remote::{LOSSY, NewSearch, RemoteError, SearchPart};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Options that a command does not pass on: those of the connection, and of the output's form, which is passed otherwise.
const NOT_PASSED: &[&str] = &["site", "token-file", "fingerprint", "json"];

/// Parts of all answers that wait to be written.
const MOST_PARTS: usize = 64;

/// Longest line of one of several sites, which is kept until it is whole.
const MOST_LINE: usize = 64 << 20;

/// Bytes of a message after which it is printed without its end.
const MOST_MESSAGE: usize = 64 << 10;

/// Lines of an answer that are told apart from those of other sites.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// JSON objects, which get the key `site`.
    Json,
    /// Texts, which begin with the name of the site.
    Text,
    /// No lines: only one site can be asked.
    None,
}

/// Rings of sites, by site.
pub(crate) struct DistantRings(BTreeMap<String, Vec<String>>);

impl DistantRings {
    /// Rings of sites among the places; nothing if all places are on this machine.
    pub(crate) fn among(places: &[PathBuf]) -> Result<Option<Self>> {
        let mut sites = BTreeMap::<_, Vec<_>>::new();
        let mut here = 0;
        for place in places {
            match RingArg::of(place.clone()).site_ring()? {
                Some(ring) if ring.site.is_empty() || ring.ring.is_empty() => {
                    return Err(
                        Failure::usage("the ring of a site is missing").advice("write hf://SITE/rings/RING")
                    );
                }
                Some(ring) => sites.entry(ring.site).or_default().push(ring.ring),
                None => here += 1,
            }
        }
        match (sites.is_empty(), here) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some(Self(sites))),
            _ => Err(Failure::usage("some sources are at sites, and others on this machine")
                .advice("search them by two commands")),
        }
    }
}

/// Command that searches at sites.
pub(crate) struct Distant<'a> {
    pub(crate) rings: DistantRings,
    pub(crate) command: &'static str,
    /// Options that are not passed on as they were given.
    pub(crate) without: &'a [&'static str],
    /// Options that are passed on besides those that were given.
    pub(crate) with: Vec<String>,
    pub(crate) sql: Option<&'a str>,
    pub(crate) lines: Lines,
    pub(crate) site: &'a SiteArgs,
}

impl Distant<'_> {
    /// Searches at all sites at the same time, and writes what they find.
    pub(crate) fn run(self, is_json: bool, to: &mut dyn Write) -> Result<Ended> {
        let DistantRings(sites) = self.rings;
        let are_several = sites.len() > 1;
        if are_several && self.lines == Lines::None {
            return Err(Failure::usage("answers of several sites cannot be put together in this form")
                .advice("take --format jsonl"));
        }
        let mut options = given(self.command, self.without);
        options.extend(self.with);
        if is_json {
            options.push("--json".to_owned());
        }
        let session = self.site.session()?;
        let searches = sites.into_iter().map(|(site, rings)| NewSearch {
            site: Some(site),
            command: self.command.to_owned(),
            rings,
            options: options.clone(),
            sql: self.sql.map(str::to_owned),
        });
        let lines = if are_several { self.lines } else { Lines::None };
        collect(&session, searches.collect(), lines, to)
    }
}

/// Scan of rings at sites, whose lines go to standard output. `without` and `with` are as in [`Distant`].
pub(crate) fn scan(
    command: &'static str,
    rings: DistantRings,
    (without, with): (&[&'static str], Vec<String>),
    site: &SiteArgs,
    is_json: bool,
) -> Result<()> {
    let lines = if is_json { Lines::Json } else { Lines::Text };
    let distant = Distant { rings, command, without, with, sql: None, lines, site };
    distant.run(is_json, &mut io::stdout())?.end()
}

/// Options that were given to the command, `--NAME` or `--NAME=VALUE`.
fn given(command: &str, without: &[&str]) -> Vec<String> {
    let mut cli = Cli::command();
    cli.build();
    let matches = cli.clone().get_matches_from(std::env::args_os());
    let (Some(known), Some(matches)) = (cli.find_subcommand(command), matches.subcommand_matches(command))
    else {
        return Vec::new();
    };
    let mut options = Vec::new();
    for arg in known.get_arguments() {
        let id = arg.get_id().as_str();
        let Some(name) = arg.get_long().filter(|name| !NOT_PASSED.contains(name) && !without.contains(name))
        else {
            continue;
        };
        if !matches.try_contains_id(id).unwrap_or(false)
            || matches.value_source(id) != Some(ValueSource::CommandLine)
        {
            continue;
        }
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            options.push(format!("--{name}"));
        } else {
            let values = matches.get_raw(id).into_iter().flatten();
            options.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
        }
    }
    options
}

/// Answer of one site as it comes.
type Told = (usize, std::result::Result<SearchPart, RemoteError>);

/// Asks all sites, and writes their answers.
fn collect(session: &Session, searches: Vec<NewSearch>, lines: Lines, to: &mut dyn Write) -> Result<Ended> {
    let mut lost: Option<Failure> = None;
    let names: Vec<String> = searches.iter().map(|search| search.site.clone().unwrap_or_default()).collect();
    let mut answers: Vec<Answer> = names.iter().map(|name| Answer::of(name, lines)).collect();
    session.run(async {
        let (sender, mut parts) = mpsc::channel::<Told>(MOST_PARTS);
        for (at, search) in searches.into_iter().enumerate() {
            let (sender, site) = (sender.clone(), session.site().clone());
            tokio::spawn(async move {
                if let Err(error) = ask(&site, &search, at, &sender).await {
                    let _ = sender.send((at, Err(error))).await;
                }
            });
        }
        drop(sender);
        while let Some((at, part)) = parts.recv().await {
            let answer = &mut answers[at];
            match part {
                Ok(SearchPart::Output(bytes)) => answer.output(&bytes, to)?,
                Ok(SearchPart::Message(bytes)) => answer.message(&bytes),
                Ok(SearchPart::End(code)) => answer.end(code, to)?,
                Ok(SearchPart::Silence) => {}
                Err(error) => {
                    let failure = Failure::failed(format_args!("{}: {}", answer.name, failure(&error)));
                    if let Some(before) = lost.replace(failure) {
                        say(&before.to_string());
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(Ended { codes: answers.iter().map(|answer| answer.code).collect(), lost })
}

/// Ends of all answers.
pub(crate) struct Ended {
    codes: Vec<u8>,
    /// Last of the sites that could not be asked, or whose answer is cut.
    lost: Option<Failure>,
}

impl Ended {
    /// True if a site has given a complete result with rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.codes.iter().any(|code| [Kind::Done as u8, LOSSY].contains(code))
    }

    /// True if a site has given a complete result, be it without rows.
    pub(crate) fn has_result(&self) -> bool {
        self.has_rows() || self.codes.contains(&(Kind::Nothing as u8))
    }

    /// End of the command: that of the worst answer.
    pub(crate) fn end(self) -> Result<()> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let is = |kind: Kind| self.codes.contains(&(kind as u8));
        let fails = |code: &u8| ![Kind::Done as u8, Kind::Usage as u8, Kind::Nothing as u8].contains(code);
        if self.codes.iter().any(fails) {
            Err(Failure::said(Kind::Failed))
        } else if is(Kind::Usage) {
            Err(Failure::said(Kind::Usage))
        } else if is(Kind::Done) {
            Ok(())
        } else {
            Err(Failure::said(Kind::Nothing))
        }
    }
}

async fn ask(
    site: &holdfast_remote::Site,
    search: &NewSearch,
    at: usize,
    to: &mpsc::Sender<Told>,
) -> std::result::Result<(), RemoteError> {
    let mut running = site.search(search).await?;
    while let Some(part) = running.part().await? {
        if to.send((at, Ok(part))).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Bytes that have come, taken out line by line.
#[derive(Default)]
struct Pending {
    bytes: BytesMut,
    /// Bytes at the beginning that have no end of a line.
    searched: usize,
}

impl Pending {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes a line with its end, if one is whole.
    fn line(&mut self) -> Option<Bytes> {
        let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let line = self.bytes.split_to(self.searched + end + 1).freeze();
        self.searched = 0;
        Some(line)
    }
}

/// Answer of one site, and what of its last line has come.
struct Answer {
    /// Beginning of each line; empty if lines are passed on as they are.
    mark: String,
    lines: Lines,
    name: String,
    output: Pending,
    messages: Pending,
    code: u8,
}

impl Answer {
    fn of(name: &str, lines: Lines) -> Self {
        let mark = match lines {
            Lines::Json => format!("{{\"site\":{},", serde_json::Value::from(name)),
            Lines::Text => format!("{}: ", clean(name)),
            Lines::None => String::new(),
        };
        let (output, messages) = (Pending::default(), Pending::default());
        // An answer without an end has failed.
        Self { mark, lines, name: clean(name), output, messages, code: Kind::Failed as u8 }
    }

    /// Writes output, in whole lines if they are marked.
    fn output(&mut self, bytes: &[u8], to: &mut dyn Write) -> Result<()> {
        let write = |to: &mut dyn Write, bytes: &[u8]| {
            to.write_all(bytes).map_err(|error| crate::out::broken(&error))
        };
        if self.lines == Lines::None {
            return write(to, bytes);
        }
        self.output.add(bytes);
        while let Some(line) = self.output.line() {
            let rest =
                if self.lines == Lines::Json { line.strip_prefix(b"{").unwrap_or(&line) } else { &line };
            write(to, self.mark.as_bytes())?;
            write(to, rest)?;
        }
        if self.output.bytes.len() > MOST_LINE {
            return Err(Failure::failed(format_args!("a line of {} is longer than 64 MiB", self.name))
                .advice("search each site by a command of its own"));
        }
        Ok(())
    }

    /// Prints whole lines of messages.
    fn message(&mut self, bytes: &[u8]) {
        self.messages.add(bytes);
        if self.messages.bytes.len() > MOST_MESSAGE {
            self.messages.add(b"\n");
        }
        while let Some(line) = self.messages.line() {
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            match line.strip_prefix("holdfast: ") {
                Some(line) => say(&format!("{}: {}", self.name, clean(line))),
                // A report, or more of the line before.
                None => Out::stderr(false).line(clean(line)).unwrap_or_default(),
            }
        }
    }

    /// Ends the answer with the exit code of its command.
    fn end(&mut self, code: u8, to: &mut dyn Write) -> Result<()> {
        if !self.messages.bytes.is_empty() {
            self.message(b"\n");
        }
        if !self.output.bytes.is_empty() {
            self.output(b"\n", to)?;
        }
        self.code = code;
        to.flush().map_err(|error| crate::out::broken(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(lines: Lines, pieces: &[&str]) -> String {
        let (mut answer, mut to) = (Answer::of("ams", lines), Vec::new());
        for piece in pieces {
            answer.output(piece.as_bytes(), &mut to).unwrap();
        }
        answer.end(0, &mut to).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn lines_of_several_sites_are_marked_however_they_are_cut() {
        assert_eq!(
            written(Lines::Text, &["lab:e", "th0/1: x\nlab", ":eth0/2: y"]),
            "ams: lab:eth0/1: x\nams: lab:eth0/2: y\n"
        );
        assert_eq!(
            written(Lines::Json, &["{\"a\":1}\n{\"a", "\":2}\n"]),
            "{\"site\":\"ams\",\"a\":1}\n{\"site\":\"ams\",\"a\":2}\n"
        );
        assert_eq!(written(Lines::None, &["a\n", "b"]), "a\nb");
    }

    #[test]
    fn places_are_all_at_sites_or_none() {
        let among =
            |places: &[&str]| DistantRings::among(&places.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert!(among(&["lab", "/x"]).unwrap().is_none());
        let DistantRings(sites) =
            among(&["hf://ams/rings/a", "hf://gva/rings/c", "hf://ams/rings/b"]).unwrap().unwrap();
        assert_eq!(sites["ams"], ["a", "b"]);
        assert_eq!(sites["gva"], ["c"]);
        for bad in [&["hf://ams/rings/a", "lab"][..], &["hf://ams"], &["hf://ams/lab/x"]] {
            assert!(among(bad).is_err(), "{bad:?}");
        }
    }
}
