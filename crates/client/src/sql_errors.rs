//! Errors of the SQL engine in the words of the commands: the fault, its place, the remedy.
//! The engine tells of types and rules of its own; people know addresses, times and bytes.

use crate::session::ring_failure;
use crate::sql_text::{at, mark, signs, text, texts, word, words};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use holdfast_base::counted;
use holdfast_base::failure::Failure;
use holdfast_query::{IncompleteAnswer, describe_type, is_join_memory};
use holdfast_reader::ReaderError;
use std::collections::HashSet;

/// What helps against slots that expire while they are asked for.
pub const YOUNGER: &str =
    "ask for younger data (time > now() - interval '10 minutes'), or hold the range first";
/// What there is for bytes.
const BYTES: &str = "bytes are searched with matches(payload, 'GET /[a-z]+'), made text with text(payload), and cut with \
                     bytes(payload, 0, 4)";
const QUOTED_ADDRESS: &str = "write addresses in quotes, such as '10.0.0.1'";
const QUOTED_TIME: &str = "write times in quotes, such as '2026-11-20T10:05:00Z'";
const QUOTED_SPAN: &str = "write lengths of time as interval '5 seconds'";
/// Slots that are named.
const SLOTS: usize = 100;
/// Names that are told where there is none of that name.
const NAMES: usize = 12;

/// What the engine says against a question, with the place in it where it knows that. `tables` are those that there are.
pub fn failure(error: &DataFusionError, sql: &str, tables: &[String]) -> Failure {
    let root = error.find_root();
    if let DataFusionError::External(external) = root {
        if let Some(error) = external.downcast_ref::<ReaderError>() {
            return ring_failure(error);
        }
        if let Some(lacking) = external.downcast_ref() {
            return lacks(lacking);
        }
    }
    // It may come out of a step that knows only that it could not write.
    if error.to_string().contains("max_temp_directory_size") {
        return Failure::failed("what does not fit into memory takes more than it may on disk").advice(
            "give it more room with --spill-size, in a folder --spill that has it, or more --memory",
        );
    }
    if is_join_memory(error) {
        return Failure::failed("cannot join: out of memory; one side of this join must fit")
            .advice("raise --memory, or put the smaller side first");
    }
    if let DataFusionError::ResourcesExhausted(cause) = root {
        return Failure::failed(format_args!("cannot finish the query: out of memory; {}", plain(cause)))
            .advice("raise --memory");
    }
    let Complaint { is_wrong_use, what, advice, places } = complaint(root, sql, tables);
    // The engine knows which of several it means where a name has several meanings, and where we know of no place.
    let span = error.diagnostic().and_then(|told| told.span);
    let told = span.and_then(|span| at(sql, span.start.line as usize, span.start.column as usize));
    let is_ambiguous = matches!(root, DataFusionError::SchemaError(cause, _) if matches!(&**cause, SchemaError::AmbiguousReference { .. }));
    let places = match told {
        Some(told) if is_ambiguous || places.is_empty() => vec![told],
        _ => places,
    };
    let what = match &advice {
        Some(advice) if !places.is_empty() => format!("{what}: {advice}"),
        _ => what,
    };
    let failure = if is_wrong_use { Failure::usage(what) } else { Failure::failed(what) };
    match mark(sql, &places).or(advice) {
        Some(advice) => failure.advice(advice),
        None => failure,
    }
}

/// What cannot be had of what a question is about.
fn lacks(lacking: &IncompleteAnswer) -> Failure {
    match lacking {
        IncompleteAnswer::Expired(slots) => Failure::failed(format_args!(
            "{} expired while the query was at work: without what was in them the answer would be wrong",
            counted(*slots, "slot")
        ))
        .advice(YOUNGER),
        IncompleteAnswer::Partial(elements) => Failure::failed(format_args!(
            "of {} a part could not be had: without it the answer would be wrong",
            counted(*elements, "element that was found")
        ))
        .advice("`holdfast check` lists all damage"),
        IncompleteAnswer::Damaged { slots, first } => {
            let some: Vec<String> = slots.iter().take(SLOTS).map(ToString::to_string).collect();
            let more = if slots.len() > SLOTS { ", …" } else { "" };
            Failure::failed(format_args!(
                "{} could not be looked into, the first is {first}: without what is in them the answer would be wrong",
                counted(slots.len() as u64, "damaged slot")
            ))
            .advice(format_args!(
                "to leave them out, say `where slot not in ({}{more})` of the stream, or ask for other times; `holdfast check` \
                 lists all damage",
                some.join(", ")
            ))
        }
    }
}

/// What is wrong with a question.
#[derive(Debug, Default, PartialEq, Eq)]
struct Complaint {
    is_wrong_use: bool,
    what: String,
    advice: Option<String>,
    /// The byte of the question; several where it is one of them.
    places: Vec<usize>,
}

impl Complaint {
    fn of(what: impl Into<String>) -> Self {
        Self { is_wrong_use: true, what: what.into(), ..Self::default() }
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    fn at(self, places: impl IntoIterator<Item = usize>) -> Self {
        Self { places: places.into_iter().collect(), ..self }
    }
}

fn complaint(root: &DataFusionError, sql: &str, tables: &[String]) -> Complaint {
    match root {
        DataFusionError::SQL(cause, _) => no_sql(cause, sql, tables),
        DataFusionError::SchemaError(cause, _) => no_column(cause, sql),
        DataFusionError::ArrowError(cause, _) => match &**cause {
            ArrowError::CastError(said) | ArrowError::ParseError(said) => value(&plain(said), sql),
            ArrowError::DivideByZero => failed("a number is divided by zero").at(divisions(sql)),
            ArrowError::InvalidArgumentError(said)
                if said.contains("non-UTF-8") || said.contains("utf-8") =>
            {
                Complaint::of("not all of these bytes are text").advice(BYTES)
            }
            other => failed(&other.to_string()),
        },
        DataFusionError::Plan(said)
        | DataFusionError::NotImplemented(said)
        | DataFusionError::Internal(said) => planned(&plain(said), sql, tables),
        DataFusionError::Execution(said) => {
            let said = plain(said);
            // What is wrong with a text that stands in the question is so whatever is on the ring.
            match quoted(&said, sql) {
                places if places.is_empty() => failed(&said),
                places => Complaint::of(said).at(places),
            }
        }
        other => failed(&plain(&other.message())),
    }
}

fn failed(said: &str) -> Complaint {
    Complaint { is_wrong_use: false, ..Complaint::of(said) }
}

/// Without what is for those who work on the engine.
fn plain(said: &str) -> String {
    const BUG: (&str, &str) = ("\nThis issue was likely caused by a bug", "/issues");
    let said = said.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or(said);
    let mut said = said.split(" Hint: Please try with").next().unwrap_or(said).to_owned();
    while let Some(start) = said.find(BUG.0) {
        let end = said[start..].find(BUG.1).map_or(said.len(), |end| start + end + BUG.1.len());
        said.replace_range(start..end, "");
    }
    said.trim().trim_end_matches('.').to_owned()
}

/// What stands between two others.
fn between<'a>(said: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    said.split_once(before)?.1.split_once(behind).map(|(inner, _)| inner)
}

/// What is no SQL.
fn no_sql(cause: &ParserError, sql: &str, tables: &[String]) -> Complaint {
    let said = match cause {
        ParserError::ParserError(said) | ParserError::TokenizerError(said) => plain(said),
        ParserError::RecursionLimitExceeded => return Complaint::of("there is too much within each other"),
    };
    let (what, place) = match said.rsplit_once(" at Line: ") {
        Some((what, place)) => {
            let number = |text: &str| text.trim().parse().ok();
            let (line, column) = place.split_once(", Column: ").unwrap_or((place, ""));
            (what, number(line).zip(number(column)).and_then(|(line, column)| at(sql, line, column)))
        }
        None => (said.as_str(), said.contains("found: EOF").then(|| sql.trim_end().len())),
    };
    let what = match what.strip_prefix("Expected: ").and_then(|what| what.split_once(", found: ")) {
        Some((expected, "EOF")) => format!("expected {expected}, found its end"),
        Some((expected, found)) => format!("expected {expected}, found `{found}`"),
        None => what.replacen("Expected", "expected", 1).replacen("Unterminated", "unterminated", 1),
    };
    let complaint = Complaint::of(format!("this is no SQL: {what}")).at(place);
    match place.and_then(|place| name_at(sql, place, tables)) {
        Some(name) => complaint.advice(in_quotes(name)),
        None => complaint,
    }
}

/// The table whose name a place of the question is in.
fn name_at<'a>(sql: &str, place: usize, tables: &'a [String]) -> Option<&'a str> {
    let is_there = |name: &&String| words(sql, name).iter().any(|at| (*at..at + name.len()).contains(&place));
    tables.iter().filter(is_there).max_by_key(|name| name.len()).map(String::as_str)
}

fn in_quotes(name: &str) -> String {
    format!(
        "a name with capitals, or with anything but letters, digits and _ in it, stands in quotes: \"{name}\""
    )
}

/// A column that there is not, or more than once.
fn no_column(cause: &SchemaError, sql: &str) -> Complaint {
    match cause {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let relation = field.relation.as_ref();
            let there: Vec<&str> = valid_fields
                .iter()
                .filter(|there| relation.is_none() || there.relation.as_ref() == relation)
                .map(Column::name)
                .collect();
            let complaint = Complaint::of(format!("there is no column `{}`", field.name()));
            let complaint = complaint.at(word(sql, field.name()));
            let alike = there.iter().find(|there| there.eq_ignore_ascii_case(field.name()));
            match (alike, there.as_slice()) {
                (Some(alike), _) => complaint.advice(in_quotes(alike)),
                (None, []) => complaint,
                (None, all) => complaint.advice(format!("there are {}", all.join(", "))),
            }
        }
        SchemaError::AmbiguousReference { field } => {
            let name = field.name();
            Complaint::of(format!("more than one table has a column `{name}`"))
                .advice(format!("write the table before it, as in t.{name}"))
                .at(word(sql, name))
        }
        other => Complaint::of(other.to_string()),
    }
}

/// A value that is none of its type.
fn value(said: &str, sql: &str) -> Complaint {
    if said.contains("can be represented as nanoseconds") {
        let year = between(said, "Overflow converting ", "-").unwrap_or_default();
        let there =
            texts(sql).into_iter().find(|(_, text)| !year.is_empty() && text.trim().starts_with(year));
        return Complaint::of("times are from 1677-09-21T00:12:44Z to 2262-04-11T23:47:16Z")
            .at(there.map(|(at, _)| at));
    }
    if let Some(span) = between(said, "type interval: \"", "\"") {
        return Complaint::of(format!("`{span}` is no length of time"))
            .advice("give one such as '90 seconds' or '1 hour 30 minutes'")
            .at(text(sql, span));
    }
    if let Some(time) = between(said, "Error parsing timestamp from '", "':") {
        let why = said.rsplit("': ").next().unwrap_or_default();
        return Complaint::of(format!("`{time}` is no time ({why})"))
            .advice("give one such as '2026-11-20T10:05:00Z'")
            .at(text(sql, time));
    }
    if let Some((number, _)) =
        said.strip_prefix("Can't cast value ").and_then(|rest| rest.split_once(" to type "))
    {
        return Complaint::of(format!("`{number}` does not fit the type of a cast"))
            .advice("cast to bigint or double, or use try_cast, which gives null")
            .at(only(sql, "cast"));
    }
    if let Some(cell) = between(said, "Cannot cast string '", "' to value of ") {
        let kind = between(said, "' to value of ", " type").unwrap_or_default();
        return Complaint::of(format!("`{cell}` is not {}", describe_type(kind))).at(text(sql, cell));
    }
    Complaint::of(said).at(quoted(said, sql))
}

/// What cannot be planned.
fn planned(said: &str, sql: &str, tables: &[String]) -> Complaint {
    if said.contains("non-boolean predicate") {
        return Complaint::of("a condition is true or false, as `size > 500` is, and this is neither")
            .at(only(sql, "where"));
    }
    if said.contains("must be in GROUP BY") {
        return Complaint::of("a column stands beside an aggregate, and is neither in one nor in `group by`");
    }
    if said.starts_with("Unary operator '-' only supports signed numeric") {
        return Complaint::of(
            "what `-` stands before is no number, or one that is never negative, as `size` is",
        )
        .advice("of such a number write `0 - size`")
        .at(signs(sql, "-"));
    }
    let known = [compared(said, sql), called(said, sql), asked(said, sql), named(said, sql, tables)];
    let places = || match quoted(said, sql) {
        places if places.is_empty() => clause(said, sql).into_iter().collect(),
        places => places,
    };
    known.into_iter().flatten().next().unwrap_or_else(|| Complaint::of(said).at(places()))
}

/// Where something is divided.
fn divisions(sql: &str) -> Vec<usize> {
    let mut all = [signs(sql, "/"), signs(sql, "%")].concat();
    all.sort_unstable();
    all
}

/// Where the part of a question stands that the engine names by what it is.
fn clause(said: &str, sql: &str) -> Option<usize> {
    const CLAUSES: [(&str, &str); 8] = [
        ("Order by column out of bounds", "order"),
        ("not allowed in the WHERE clause", "where"),
        ("HAVING clause", "having"),
        ("LIMIT must be", "limit"),
        ("OFFSET must be", "offset"),
        ("UNION queries", "union"),
        ("INTERSECT queries", "intersect"),
        ("EXCEPT queries", "except"),
    ];
    CLAUSES.iter().find(|(begin, _)| said.contains(begin)).and_then(|(_, word)| only(sql, word))
}

/// A word that stands there once.
fn only(sql: &str, word: &str) -> Option<usize> {
    match words(sql, word)[..] {
        [at] => Some(at),
        _ => None,
    }
}

/// Where a text stands in the question that the message speaks of. What it gives as an example is none.
fn quoted(said: &str, sql: &str) -> Vec<usize> {
    let said = said.split("such as").next().unwrap_or(said);
    let inner = |quote: char| said.split(quote).skip(1).step_by(2);
    let mut places = ['`', '\'', '"'].into_iter().flat_map(inner).map(|inner| text(sql, inner));
    places.find(|places| !places.is_empty()).unwrap_or_else(|| {
        // Long ones are told in part.
        let long = inner('`').find(|inner| inner.chars().count() >= 80);
        let begins = |(at, text): (usize, String)| {
            long.is_some_and(|long| text.trim().starts_with(long)).then_some(at)
        };
        texts(sql).into_iter().filter_map(begins).collect()
    })
}

/// Values of types that do not go together.
fn compared(said: &str, sql: &str) -> Option<Complaint> {
    const SIGNS: [&str; 12] = ["=", "!=", "<>", "<", "<=", ">", ">=", "~", "!~", "~*", "!~*", "%"];
    if let Some((_, kinds)) = said.split_once("Cannot infer common argument type for ") {
        let (what, kinds) = kinds.split_once(" operation ")?;
        let both = |sign: &str| Some((kinds.split_once(&format!(" {sign} "))?, sign.to_owned()));
        let ((left, right), sign) =
            SIGNS.into_iter().chain(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]).find_map(both)?;
        let verb = if what == "regex" { "searched by" } else { "compared with" };
        let what = format!("{} is not {verb} {}", describe_type(left), describe_type(right));
        return Some(advised(Complaint::of(verb_of(what)), [left, right]).at(operand(sql, &sign)));
    }
    if let Some(kinds) = said.strip_prefix("Cannot coerce arithmetic expression ") {
        let kinds = kinds.strip_suffix(" to valid types")?;
        let both = |sign: &str| Some((kinds.split_once(&format!(" {sign} "))?, sign.to_owned()));
        let ((left, right), sign) = ["+", "-", "*", "/", "%"].into_iter().find_map(both)?;
        let what = format!("{} {sign} {} is nothing", describe_type(left), describe_type(right));
        return Some(advised(Complaint::of(what), [left, right]).at(operand(sql, &sign)));
    }
    if let Some(kinds) = said.strip_prefix("Cannot infer common type for bitwise operation ") {
        let both = |sign: &str| Some((kinds.split_once(&format!(" {sign} "))?, sign.to_owned()));
        let ((left, right), sign) = ["&", "|", "#", "^", "<<", ">>"].into_iter().find_map(both)?;
        let what = format!("{} {sign} {} is nothing", describe_type(left), describe_type(right));
        return Some(
            Complaint::of(what)
                .advice("numbers are written in decimals: 18, and not 0x12, which is bytes")
                .at(operand(sql, &sign)),
        );
    }
    if let Some((left, right)) =
        said.strip_prefix("Unsupported CAST from ").and_then(|kinds| kinds.split_once(" to "))
    {
        let what = format!("{} is not made {} by a cast", describe_type(left), describe_type(right));
        return Some(advised(Complaint::of(verb_of(what)), [left, right]).at(only(sql, "cast")));
    }
    let pairs = [
        ("Can not find compatible types to compare ", " with [", "]", "compared with", "in"),
        ("Failed to coerce types ", " and ", " in BETWEEN", "compared with", "between"),
        ("a common type to coerce ", " and ", " in LIKE", "searched with LIKE by", "like"),
        ("a common type to coerce ", " and ", " in SIMILAR TO", "searched with SIMILAR TO by", "similar"),
    ];
    pairs.into_iter().find_map(|(before, and, behind, verb, word)| {
        let (left, right) = between(said, before, behind)?.split_once(and)?;
        let right =
            right.split(", ").find(|kind| describe_type(kind) != describe_type(left)).unwrap_or(right);
        let what = verb_of(format!("{} is not {verb} {}", describe_type(left), describe_type(right)));
        Some(advised(Complaint::of(what), [left, right]).at(operand(sql, word)))
    })
}

/// Bytes are many.
fn verb_of(what: String) -> String {
    if what.starts_with("bytes is") { what.replacen("bytes is", "bytes are", 1) } else { what }
}

/// With what to write instead of one of these types.
fn advised(complaint: Complaint, kinds: [&str; 2]) -> Complaint {
    let words = kinds.map(describe_type);
    let is = |word: &str| words.contains(&word);
    let is_like = complaint.what.contains("searched");
    match () {
        () if is("bytes") => complaint.advice(BYTES),
        () if words.iter().any(|word| word.ends_with("address")) && is_like => {
            complaint.advice("networks are asked for with in_net(src, '10.0.0.0/8')")
        }
        () if words.iter().any(|word| word.ends_with("address")) => complaint.advice(QUOTED_ADDRESS),
        () if is("a time") && complaint.what.ends_with("is nothing") => complaint.advice(QUOTED_SPAN),
        () if is("a time") => complaint.advice(QUOTED_TIME),
        () => complaint,
    }
}

/// The number that stands behind a sign or a word, where there is but one; else that sign or word, where that is the only one.
fn operand(sql: &str, sign: &str) -> Option<usize> {
    const PARTS: &str = "<>=!~*";
    let is_part = |part: Option<char>| part.is_some_and(|part| PARTS.contains(part));
    let whole = |at: &usize| {
        !is_part(sql[..*at].chars().next_back()) && !is_part(sql[at + sign.len()..].chars().next())
    };
    let is_word = sign.starts_with(|first: char| first.is_ascii_alphabetic());
    let there: Vec<usize> =
        if is_word { words(sql, sign) } else { signs(sql, sign).into_iter().filter(whole).collect() };
    let number = |at: &usize| {
        let rest = &sql[at + sign.len()..];
        let start = rest.find(|c: char| !c.is_whitespace() && c != '(')?;
        let digits = rest[start..].strip_prefix('-').unwrap_or(&rest[start..]);
        digits.starts_with(|first: char| first.is_ascii_digit()).then_some(at + sign.len() + start)
    };
    let numbers: Vec<usize> = there.iter().filter_map(number).collect();
    match (numbers.as_slice(), there.as_slice()) {
        ([only], _) | ([], [only]) => Some(*only),
        _ => None,
    }
}

/// What a function does not take.
fn called(said: &str, sql: &str) -> Option<Complaint> {
    if let Some(call) = between(said, "given name and argument types '", "'. ") {
        let (name, kinds) = call.strip_suffix(')')?.split_once('(')?;
        let kinds: Vec<&str> = split_kinds(kinds).into_iter().map(describe_type).collect();
        let mut takes: Vec<String> =
            said.lines().filter_map(|line| described_call(line.trim(), name)).collect();
        let mut seen = HashSet::new();
        takes.retain(|call| seen.insert(call.clone()));
        let mut what = format!("`{name}` does not take ({})", kinds.join(", "));
        if !takes.is_empty() {
            what = format!("{what}, but {}", takes.join(" or "));
        }
        let complaint = Complaint::of(what).at(call_of(sql, name));
        return Some(if kinds.contains(&"bytes") { complaint.advice(BYTES) } else { complaint });
    }
    // Of our own functions.
    let (name, rest) = said.strip_prefix("cannot call ")?.split_once(": ")?;
    let open = call_of(sql, name)? + name.len();
    let argument = if rest.starts_with("the first argument") {
        Some(0)
    } else if rest.starts_with("the second argument") {
        Some(1)
    } else {
        None
    };
    let start = argument.and_then(|number| argument_of(sql, open + sql[open..].find('(')? + 1, number));
    Some(Complaint::of(said).at(start.or(Some(open - name.len()))))
}

/// A call that a function accepts, with its types in words.
fn described_call(line: &str, name: &str) -> Option<String> {
    let kinds = line.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    let kinds: Vec<&str> = split_kinds(kinds).into_iter().map(describe_type).collect();
    Some(format!("{name}({})", kinds.join(", ")))
}

/// Types that stand behind each other, some with types or texts within.
fn split_kinds(kinds: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0usize, 0, Vec::new());
    for (at, c) in kinds.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                all.push(kinds[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.extend(Some(kinds[start..].trim()).filter(|last| !last.is_empty()));
    all
}

/// Where a function is called, if it is once.
fn call_of(sql: &str, name: &str) -> Option<usize> {
    let calls = words(sql, name).into_iter();
    let calls: Vec<usize> = calls.filter(|at| sql[at + name.len()..].trim_start().starts_with('(')).collect();
    if let [only] = calls[..] { Some(only) } else { None }
}

/// Where the argument of that number begins, of those that begin at `open`.
fn argument_of(sql: &str, open: usize, number: usize) -> Option<usize> {
    let (mut depth, mut passed) = (0usize, 0);
    let mut start = open;
    for (at, c) in sql[open..].char_indices() {
        if passed == number {
            break;
        }
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => (passed, start) = (passed + 1, open + at + 1),
            _ => {}
        }
    }
    let space = sql[start..].len() - sql[start..].trim_start().len();
    (passed == number).then_some(start + space)
}

/// What is no question, or more than one, or in words that are not known.
fn asked(said: &str, sql: &str) -> Option<Complaint> {
    if said.contains("only supports a single SQL statement") {
        return Some(
            Complaint::of("this is more than one question")
                .advice("ask them one by one; `holdfast sql` takes several, each ended by `;`")
                .at(signs(sql, ";").first().map(|end| {
                    let rest = &sql[end + 1..];
                    end + 1 + rest.len() - rest.trim_start().len()
                })),
        );
    }
    if said.contains("Could not plan array literal") {
        return Some(
            Complaint::of("there are no lists in brackets")
                .advice("compare with each of some values by in (1, 2)")
                .at(words(sql, "array").first().or(signs(sql, "[").first()).copied()),
        );
    }
    let order = ["DDL", "DML", "Statement"]
        .into_iter()
        .find_map(|kind| said.strip_prefix(kind)?.strip_prefix(" not supported: "))?;
    Some(
        Complaint::of(format!("this is an order ({order}), and only questions are answered"))
            .advice("begin it with select, with, explain, describe or show tables"),
    )
}

/// A table or a function that there is not.
fn named(said: &str, sql: &str, tables: &[String]) -> Option<Complaint> {
    if let Some(rest) = said.strip_prefix("Invalid function '") {
        let (name, rest) = rest.split_once('\'')?;
        let complaint = Complaint::of(format!("there is no function `{name}`")).at(word(sql, name));
        return Some(match between(rest, "Did you mean '", "'") {
            Some(other) => complaint.advice(format!("the nearest is `{other}`")),
            None => complaint,
        });
    }
    let name = between(said, "table '", "' not found")?;
    let name = ["holdfast.ring.", "holdfast.stream."]
        .into_iter()
        .find_map(|of| name.strip_prefix(of))
        .unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let complaint =
        Complaint::of(format!("there is no table `{name}`")).at(word(sql, name).or_else(|| word(sql, last)));
    if let Some(alike) = tables.iter().find(|table| table.eq_ignore_ascii_case(name)) {
        return Some(complaint.advice(in_quotes(alike)));
    }
    let mut there: Vec<&str> = tables.iter().map(String::as_str).collect();
    there.sort_unstable();
    if there.is_empty() {
        return Some(complaint);
    }
    let more = if there.len() > NAMES { ", …" } else { "" };
    there.truncate(NAMES);
    Some(complaint.advice(format!("there are {}{more}", there.join(", "))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
