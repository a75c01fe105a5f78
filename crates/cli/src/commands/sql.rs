//! `holdfast sql`: questions one after the other, with completion and a history.

use crate::failure::{Failure, Result, reason};
use crate::index::IndexArg;
use crate::out::Out;
use crate::session::RingArg;
use crate::sql::{self, LimitArgs, Sql};
use holdfast_link::OpenSlots;
use holdfast_query::output::Format;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Ask in SQL, one question after the other
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A question ends with `;` and may take several lines. Tab completes tables, columns, functions and words of \
    SQL; the history is kept from one time to the next. `\\d` lists tables, `\\d TABLE` its columns, `\\q` leaves. What can be \
    asked is what `holdfast query` takes; every question sees the ring as it is by then.\n\n\
    Without a terminal questions are read from standard input, and the first that cannot be answered ends them.\n\n\
    Examples:\n  holdfast sql lab.hf\n  holdfast sql lab.hf < questions.sql"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    index: IndexArg,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = args.ring.path()?;
    let index = args.index.place(&args.ring)?;
    let format = if out.is_json() { Format::Jsonl } else { Format::Table };
    let slots = OpenSlots::default();
    let open = || sql::open(&path, &args.limits.limits(), index.clone(), &slots);
    let ask = |question: &str| -> Result<()> {
        let sql = open()?;
        sql.answer(question, format, |_| Ok(Box::new(io::BufWriter::new(io::stdout()))))?;
        sql::told(&sql.engine.trouble.take())
    };
    if !io::stdin().is_terminal() {
        return answer_all(&mut io::stdin().lock(), &ask);
    }
    // Whether it can be asked at all is told before a prompt.
    let known = Known::of(&open()?)?;
    converse(known, &path, &ask)
}

/// Answers each question as soon as it is there: whoever asks may wait for one answer before the next question.
fn answer_all(input: &mut dyn BufRead, ask: &dyn Fn(&str) -> Result<()>) -> Result<()> {
    let mut text = String::new();
    loop {
        let read = input.read_line(&mut text).map_err(|error| {
            Failure::failed(format_args!("cannot read the questions: {}", reason(&error)))
        })?;
        if read == 0 {
            return questions(&text).try_for_each(ask);
        }
        let (whole, rest) = split(&text);
        whole.into_iter().try_for_each(ask)?;
        text = rest.to_owned();
    }
}

/// Until the end of input.
fn converse(known: Known, ring: &Path, ask: &dyn Fn(&str) -> Result<()>) -> Result<()> {
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor: Editor<Known, FileHistory> =
        Editor::with_config(config).map_err(|error| terminal(&error))?;
    editor.set_helper(Some(known));
    let history = history();
    if let Some(path) = &history {
        // There may be none yet.
        let _ = editor.load_history(path);
    }
    let name = ring.file_stem().map_or_else(|| "ring".to_owned(), |name| name.to_string_lossy().into_owned());
    loop {
        let line = match editor.readline(&format!("{name}> ")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(&error)),
        };
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line.trim());
        let asked = match Meta::of(line.trim()) {
            Some(Meta::Leave) => break,
            Some(Meta::Ask(question)) => ask(&question),
            Some(Meta::Unknown) => Err(Failure::usage("there are \\d, \\d TABLE and \\q").at(line.trim())),
            None => questions(&line).try_for_each(ask),
        };
        if let Err(failure) = asked
            && !failure.is_quiet()
        {
            let _ = writeln!(io::stderr(), "{failure}");
        }
    }
    if let Some(path) = &history {
        if let Some(folder) = path.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        if let Err(error) = editor.save_history(path) {
            let _ = writeln!(
                io::stderr(),
                "holdfast: the history could not be kept at {}: {error}",
                path.display()
            );
        }
    }
    Ok(())
}

fn terminal(error: &ReadlineError) -> Failure {
    Failure::failed(format_args!("cannot use the terminal: {error}"))
        .advice("give the questions on standard input: `holdfast sql RING < questions.sql`")
}

/// Where the history is kept.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("holdfast/history"))
}

/// The questions of a text, apart from each other by `;` outside of quotes.
fn questions(text: &str) -> impl Iterator<Item = &str> {
    let (whole, rest) = split(text);
    whole.into_iter().chain([rest.trim()]).filter(|question| !question.is_empty())
}

/// Those that are ended, and what comes behind the last of them.
fn split(text: &str) -> (Vec<&str>, &str) {
    let (mut quote, mut start, mut parts) = (None, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), close) if open == close => quote = None,
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b';') => {
                parts.extend(Some(text[start..at].trim()).filter(|question| !question.is_empty()));
                start = at + 1;
            }
            _ => {}
        }
    }
    (parts, &text[start..])
}

/// A line that is no SQL.
#[derive(Debug, PartialEq, Eq)]
enum Meta {
    Leave,
    Ask(String),
    Unknown,
}

impl Meta {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim_end_matches(';').trim_end();
        if matches!(line, "quit" | "exit") {
            return Some(Self::Leave);
        }
        let mut words = line.strip_prefix('\\')?.split_whitespace();
        Some(match (words.next(), words.next(), words.next()) {
            (Some("q"), None, None) => Self::Leave,
            (Some("d"), None, None) => Self::Ask(
                "select table_name as \"table\", count(*) as columns from information_schema.columns \
                 where table_schema = 'ring' group by table_name order by table_name"
                    .to_owned(),
            ),
            (Some("d"), Some(table), None) => Self::Ask(format!(
                "select column_name as \"column\", data_type as \"type\" from information_schema.columns \
                 where table_schema = 'ring' and table_name = '{}' order by ordinal_position",
                table.trim_matches('"').replace('\'', "''")
            )),
            _ => Self::Unknown,
        })
    }
}

/// Words of SQL that are worth completing.
const WORDS: [&str; 35] = [
    "addr_text(",
    "and",
    "as",
    "asc",
    "avg(",
    "between",
    "by",
    "case",
    "count(",
    "date_bin(",
    "desc",
    "distinct",
    "end",
    "explain analyze",
    "from",
    "group by",
    "having",
    "hex(",
    "in",
    "in_net(",
    "interval",
    "is not null",
    "is null",
    "join",
    "like",
    "limit",
    "matches(",
    "max(",
    "min(",
    "or",
    "order by",
    "select",
    "sum(",
    "text(",
    "where",
];

/// What can be completed.
#[derive(Debug, Default)]
struct Known {
    words: Vec<String>,
}

impl Known {
    fn of(sql: &Sql) -> Result<Self> {
        let mut words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        let question = "select distinct table_name from information_schema.columns where table_schema = 'ring' \
                        union select distinct column_name from information_schema.columns where table_schema = 'ring'";
        words.extend(sql.column(question)?);
        words.sort_unstable();
        words.dedup();
        Ok(Self { words })
    }

    /// Where the word at `at` begins, and what it can become.
    fn candidates(&self, line: &str, at: usize) -> (usize, Vec<&str>) {
        let head = &line[..at];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let start = head
            .rfind(|c| !is_word(c))
            .map_or(0, |before| before + head[before..].chars().next().map_or(1, char::len_utf8));
        let begun = head[start..].to_lowercase();
        if begun.is_empty() {
            return (start, Vec::new());
        }
        let fits = |word: &&str| word.to_lowercase().starts_with(&begun);
        (start, self.words.iter().map(String::as_str).filter(fits).collect())
    }
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.candidates(line, at);
        let pair = |word: &str| Pair { display: word.to_owned(), replacement: word.to_owned() };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Validator for Known {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Hinter for Known {
    type Hint = String;
}

impl Highlighter for Known {}

impl Helper for Known {}

/// Whether what was typed is to be answered now.
fn is_whole(input: &str) -> bool {
    let input = input.trim();
    input.is_empty() || Meta::of(input).is_some() || (input.ends_with(';') && !input.ends_with("\\;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_end_with_a_semicolon_outside_of_quotes() {
        let split = |text| questions(text).collect::<Vec<_>>();
        assert_eq!(
            split("select 1;\n select ';' ; ; select \"a;b\""),
            ["select 1", "select ';'", "select \"a;b\""]
        );
        assert_eq!(split(" ;\n"), Vec::<&str>::new());
        assert_eq!(super::split("select ';\n"), (vec![], "select ';\n"));
        assert!(is_whole("select 1;") && is_whole("\\q") && is_whole("exit") && is_whole(""));
        assert!(!is_whole("select 1") && !is_whole("select\n1"));
    }

    /// Lines, one a read, each of them told when it is read.
    struct Lines<'a>(&'a [&'a str], &'a std::cell::RefCell<Vec<String>>);
    impl io::Read for Lines<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some((line, rest)) = self.0.split_first() else { return Ok(0) };
            self.1.borrow_mut().push(format!("reads {}", line.trim()));
            self.0 = rest;
            into[..line.len()].copy_from_slice(line.as_bytes());
            Ok(line.len())
        }
    }

    #[test]
    fn a_question_is_answered_before_the_next_one_is_read() {
        let asked = std::cell::RefCell::new(Vec::new());
        let lines = ["select 1; select\n", "2\n", ";select 3"];
        let mut input = io::BufReader::new(Lines(&lines, &asked));
        let ask = |question: &str| {
            asked.borrow_mut().push(question.to_owned());
            Ok(())
        };
        answer_all(&mut input, &ask).unwrap();
        let wanted =
            ["reads select 1; select", "select 1", "reads 2", "reads ;select 3", "select\n2", "select 3"];
        assert_eq!(*asked.borrow(), wanted);
    }

    #[test]
    fn lines_that_are_no_sql() {
        assert_eq!(Meta::of("\\q"), Some(Meta::Leave));
        assert_eq!(Meta::of("quit;"), Some(Meta::Leave));
        assert_eq!(Meta::of("\\x"), Some(Meta::Unknown));
        assert_eq!(Meta::of("select 1"), None);
        let Some(Meta::Ask(question)) = Meta::of("\\d o'clock") else { panic!() };
        assert!(question.contains("'o''clock'"), "{question}");
    }

    #[test]
    fn words_are_completed_where_they_stand() {
        let known = Known { words: ["eth0", "select", "src", "src_port"].map(str::to_owned).to_vec() };
        assert_eq!(known.candidates("sel", 3), (0, vec!["select"]));
        assert_eq!(known.candidates("select SR from x", 9), (7, vec!["src", "src_port"]));
        assert_eq!(known.candidates("select ü.e", 11), (10, vec!["eth0"]));
        assert_eq!(known.candidates("select ", 7), (7, vec![]));
    }
}
