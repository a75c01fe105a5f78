//! `holdfast sql`: questions one after the other, with completion and a history. One that is at work can be cancelled.

use crate::args::IndexArg;
use crate::args::LimitArgs;
use crate::args::RingArg;
use crate::out::{Out, notices};
use datafusion::common::TableReference;
use futures::future::{Either, select};
use futures::task::AtomicWaker;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::session;
use holdfast_client::sql::{self, Sql};
use holdfast_client::sql_text::{is_blank, questions, split};
use holdfast_query::output::Format;
use holdfast_reader::OpenSlots;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::future::poll_fn;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Who has cancelled a question waits no longer for what it has at work: a search ends with the part of a slot that it is in, and
/// what takes longer ends behind the next prompt.
const ENDING: Duration = Duration::from_secs(1);

/// Run SQL queries interactively
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A query ends with `;` and may take several lines. Tab completes tables, columns, functions and SQL\n\
    words; the history is kept between sessions. `\\d` lists tables, `\\d TABLE` its columns, `\\q` ends\n\
    the session. Queries are those of `holdfast query`; each one sees the current ring.\n\n\
    Without a terminal, queries are read from standard input, with `\\d` and `\\q` on lines of their\n\
    own. The first failing query ends the session.\n\n\
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
    let index = IndexCopies::at(args.index.place(&args.ring)?, notices());
    session::prefer_oom_kill();
    let format = if out.is_json() { Format::Jsonl } else { Format::Table };
    let slots = OpenSlots::default();
    let open = || sql::open(&path, &args.limits.limits(), &index, &slots);
    if !io::stdin().is_terminal() {
        let ask = |question: &str| -> Result<()> {
            let sql = open()?;
            sql.answer(question, format, |_| Ok(Box::new(io::BufWriter::new(io::stdout()))))?;
            sql::told(&sql.engine.diagnostics.take())
        };
        return answer_all(&mut io::stdin().lock(), &ask);
    }
    // Whether it can be asked at all is told before a prompt.
    let known = Known::of(&open()?);
    let cancel = Cancel::by_signal()?;
    let ask = |question: &str, known: &mut Known| -> Result<()> {
        let sql = open()?;
        // There may be more than the last time.
        *known = Known::of(&sql);
        cancel.answer(sql, question, format)
    };
    converse(known, &path, &cancel, &ask)
}

/// Answers each question as soon as it is there: whoever asks may wait for one answer before the next question.
fn answer_all(input: &mut dyn BufRead, ask: &dyn Fn(&str) -> Result<()>) -> Result<()> {
    let (mut text, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        let read = input.read_line(&mut line).map_err(|error| {
            Failure::failed(format_args!("cannot read the questions: {}", reason(&error)))
        })?;
        if read == 0 {
            return questions(&text).try_for_each(ask);
        }
        // In the middle of a question a line is part of it.
        if let Some(meta) = Meta::of(line.trim()).filter(|_| is_blank(&text)) {
            match meta.question()? {
                Some(question) => ask(&question)?,
                None => return Ok(()),
            }
            continue;
        }
        text.push_str(&line);
        let (whole, rest) = split(&text);
        whole.into_iter().try_for_each(ask)?;
        text = rest.to_owned();
    }
}

/// Until the end of input.
fn converse(
    mut known: Known,
    ring: &Path,
    cancel: &Cancel,
    ask: &dyn Fn(&str, &mut Known) -> Result<()>,
) -> Result<()> {
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor: Editor<Known, FileHistory> =
        Editor::with_config(config).map_err(|error| terminal(&error))?;
    let mut history = history();
    if let Some(path) = &history {
        // There may be none yet.
        let _ = editor.load_history(path);
    }
    let name = ring.file_stem().map_or_else(|| "ring".to_owned(), |name| name.to_string_lossy().into_owned());
    loop {
        editor.set_helper(Some(known.clone()));
        cancel.rest();
        let line = editor.readline(&format!("{name}> "));
        cancel.begin();
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal(&error)),
        };
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line.trim());
        keep(&mut editor, &mut history);
        let asked = match Meta::of(line.trim()).map(Meta::question) {
            Some(Ok(None)) => return Ok(()),
            Some(Ok(Some(question))) => ask(&question, &mut known),
            Some(Err(unknown)) => Err(unknown),
            None => questions(&line).try_for_each(|question| ask(question, &mut known)),
        };
        if let Err(failure) = asked
            && !failure.is_quiet()
        {
            let _ = writeln!(io::stderr(), "{failure}");
        }
    }
}

/// Keeps what was entered last, before it is asked: nobody knows how the session will end.
fn keep(editor: &mut Editor<Known, FileHistory>, history: &mut Option<PathBuf>) {
    let Some(path) = history.as_deref() else { return };
    if let Some(folder) = path.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    if let Err(error) = editor.append_history(path) {
        let _ =
            writeln!(io::stderr(), "holdfast: the history could not be kept at {}: {error}", path.display());
        // That is told once.
        *history = None;
    }
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

/// What Ctrl-C does while a question is at work: the question is cancelled, and the session goes on. At a prompt it is a key like others,
/// and no signal.
#[derive(Default)]
struct Cancel {
    heard: Arc<AtomicBool>,
    /// Whoever waits for it.
    waits: Arc<AtomicWaker>,
}

impl Cancel {
    /// Set by SIGINT from here on. One that finds it set ends the program at once: so does a second one where a question does not end.
    fn by_signal() -> Result<Self> {
        let cancel = Self::default();
        let waits = Arc::clone(&cancel.waits);
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&cancel.heard))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&cancel.heard)))
            .and_then(|_| Signals::new([SIGINT]))
            .and_then(|mut signals| {
                let thread = std::thread::Builder::new().name("signals".to_owned());
                thread.spawn(move || signals.forever().for_each(|_| waits.wake())).map(drop)
            })
            .map_err(|error| Failure::failed(format_args!("cannot wait for signals: {}", reason(&error))))?;
        Ok(cancel)
    }

    /// Nothing is at work: on a terminal that has signals at a prompt, too, they end the program.
    fn rest(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// From here on something is at work.
    fn begin(&self) {
        self.heard.store(false, Ordering::Relaxed);
    }

    fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Ends when it is set.
    fn comes(&self) -> impl Future<Output = ()> {
        poll_fn(move |context| {
            self.waits.register(context.waker());
            if self.is_heard() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Answers a question, unless it is cancelled before.
    fn answer(&self, sql: Sql, question: &str, format: Format) -> Result<()> {
        let shown = Shown { to: io::stdout(), cancelled: Arc::clone(&self.heard) };
        let answered = sql.runtime.block_on(async {
            let answer = pin!(sql.write(question, format, |_| Ok(Box::new(io::BufWriter::new(shown)))));
            let cancelled = pin!(self.comes());
            match select(answer, cancelled).await {
                Either::Left((answered, _)) => Some(answered),
                Either::Right(_) => None,
            }
        });
        match answered {
            Some(Ok(_)) => return sql::told(&sql.engine.diagnostics.take()),
            Some(Err(failure)) if !(failure.is_quiet() && self.is_heard()) => return Err(failure),
            _ => {}
        }
        // It is heeded: another one ends nothing.
        self.begin();
        // Of what was shown the last line may be cut, and behind it the terminal shows the key.
        let _ = writeln!(io::stdout());
        sql.runtime.shutdown_timeout(ENDING);
        Err(Failure::failed("cancelled"))
    }
}

/// Where an answer is shown until it is cancelled: what is ready of it may take long to show.
struct Shown<W> {
    to: W,
    cancelled: Arc<AtomicBool>,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) {
            // As if nobody looked any more.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A line that is no SQL.
#[derive(Debug, PartialEq, Eq)]
enum Meta {
    Leave,
    Ask(String),
    Unknown(String),
}

impl Meta {
    /// What it asks; nothing where it is time to go.
    fn question(self) -> Result<Option<String>> {
        match self {
            Self::Leave => Ok(None),
            Self::Ask(question) => Ok(Some(question)),
            Self::Unknown(line) => Err(Failure::usage("there are \\d, \\d TABLE and \\q").at(line)),
        }
    }

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
            _ => Self::Unknown(line.to_owned()),
        })
    }
}

/// Words of SQL that are worth completing.
const WORDS: [&str; 24] = [
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "desc",
    "distinct",
    "end",
    "explain analyze",
    "from",
    "group by",
    "having",
    "in",
    "interval",
    "is not null",
    "is null",
    "join",
    "like",
    "limit",
    "or",
    "order by",
    "select",
    "where",
];

/// What can be completed.
#[derive(Clone, Debug, Default)]
struct Known {
    words: Vec<String>,
}

impl Known {
    /// Words, and what the engine has by now: functions, tables and their columns. Nothing is read for it.
    fn of(sql: &Sql) -> Self {
        let mut words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        let context = &sql.engine.context;
        let state = context.state();
        let functions = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let more = state.window_functions().keys().chain(state.table_functions().keys());
        words.extend(functions.chain(more).map(|name| format!("{name}(")));
        for name in sql.engine.tables() {
            let table = context.table_provider(TableReference::bare(name.as_str()));
            // It is one of them.
            if let Ok(table) = sql.runtime.block_on(table) {
                words.extend(table.schema().fields().iter().map(|field| field.name().clone()));
            }
            words.push(name);
        }
        words.sort_unstable();
        words.dedup();
        Self { words }
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
    Meta::of(input).is_some() || (is_blank(split(input).1) && !input.ends_with("\\;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_answered() {
        assert!(is_whole("select 1;") && is_whole("\\q") && is_whole("exit") && is_whole(""));
        assert!(!is_whole("select 1") && !is_whole("select\n1") && !is_whole("select ';"));
        assert!(is_whole("select 1; -- done") && is_whole("-- only this") && !is_whole("select 1 -- done;"));
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
    fn lines_that_are_no_sql_are_taken_from_a_pipe_too() {
        let asked = |text: &str| {
            let asked = std::cell::RefCell::new(Vec::new());
            let ask = |question: &str| {
                asked.borrow_mut().push(question.to_owned());
                Ok(())
            };
            let ended = answer_all(&mut text.as_bytes(), &ask);
            (asked.into_inner(), ended)
        };
        let (questions, ended) =
            asked("select 1;\n-- tables\n\\d\n\\d eth0;\nselect\nexit\n;\n  \\q \nselect 2;");
        assert_eq!(questions.len(), 4, "{questions:?}");
        assert!(
            questions[1].contains("information_schema") && questions[2].contains("'eth0'"),
            "{questions:?}"
        );
        assert_eq!(
            questions[3], "-- tables\nselect\nexit",
            "in the middle of a question it is a word like others"
        );
        assert_eq!(ended, Ok(()));
        let (questions, ended) = asked("select 1;\nquit\nselect 2;");
        assert_eq!((questions.len(), ended), (1, Ok(())));
        let (_, ended) = asked("\\x\n");
        assert_eq!(ended.unwrap_err().to_string(), "there are \\d, \\d TABLE and \\q, \\x");
    }

    #[test]
    fn lines_that_are_no_sql() {
        assert_eq!(Meta::of("\\q"), Some(Meta::Leave));
        assert_eq!(Meta::of("quit;"), Some(Meta::Leave));
        assert_eq!(Meta::of("\\x"), Some(Meta::Unknown("\\x".into())));
        assert_eq!(Meta::of("select 1"), None);
        let Some(Meta::Ask(question)) = Meta::of("\\d o'clock") else { panic!() };
        assert!(question.contains("'o''clock'"), "{question}");
    }

    #[test]
    fn of_an_answer_that_is_cancelled_nothing_more_is_shown() {
        let cancel = Cancel::default();
        let mut shown = Shown { to: Vec::new(), cancelled: Arc::clone(&cancel.heard) };
        cancel.rest();
        cancel.begin();
        shown.write_all(b"1").unwrap();
        cancel.heard.store(true, Ordering::Relaxed);
        assert_eq!(shown.write_all(b"2").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(shown.to, b"1");
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
