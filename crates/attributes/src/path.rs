//! Paths into JSON documents, as typed: `sensors[0].temp`, `"odd.key"[2]`.

use crate::cursor::Cursor;
use crate::{Problem, SchemaError};
use std::fmt;
use std::str::FromStr;

/// Steps of a path: real documents have a handful.
pub const MAX_STEPS: usize = 16;

/// Where in a document a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the value of this key.
    Key(String),
    /// To the value at this place of an array.
    Index(u16),
}

impl Path {
    /// Its steps, one at least.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path through objects with these keys.
    pub(crate) fn of_keys(keys: &[String]) -> Self {
        Self(keys.iter().cloned().map(Step::Key).collect())
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        let mut steps = Vec::new();
        loop {
            let at = cursor.at();
            let step = if cursor.eat("[") {
                let index = cursor.number("a place in an array, from 0 to 65535,")?;
                cursor.expect("]", "`]`")?;
                Step::Index(index)
            } else if steps.is_empty() || cursor.eat(".") {
                Step::Key(key(cursor)?)
            } else {
                return Ok(Self(steps));
            };
            if steps.len() == MAX_STEPS {
                return Err(cursor.wrong_at(at, Problem::Steps));
            }
            steps.push(step);
        }
    }
}

impl FromStr for Path {
    type Err = SchemaError;

    /// Reads a whole text as a path.
    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let mut cursor = Cursor::new(text);
        let path = Self::parse(&mut cursor)?;
        if cursor.is_done() { Ok(path) } else { Err(cursor.wrong(Problem::Wanted("`.`, `[` or the end"))) }
    }
}

/// Whether a key can stand as it is.
fn plain(c: char) -> bool {
    !matches!(c, '.' | '[' | ']' | ',' | '"' | '\\')
}

fn key(cursor: &mut Cursor<'_>) -> Result<String, SchemaError> {
    const WANTED: Problem = Problem::Wanted("a key (in quotes if it has . [ ] , \" or \\ in it)");
    if !cursor.eat("\"") {
        let key = cursor.take_while(plain);
        return if key.is_empty() { Err(cursor.wrong(WANTED)) } else { Ok(key.to_owned()) };
    }
    let mut key = String::new();
    loop {
        match cursor.next() {
            Some('"') => return Ok(key),
            Some('\\') if cursor.eat("\"") => key.push('"'),
            Some('\\') if cursor.eat("\\") => key.push('\\'),
            Some('\\') => return Err(cursor.wrong(Problem::Wanted("`\"` or `\\`"))),
            Some(other) => key.push(other),
            None => return Err(cursor.wrong(Problem::Wanted("the `\"` at the end of a key"))),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    if !key.is_empty() && key.chars().all(plain) {
                        f.write_str(key)?;
                    } else {
                        write!(f, "\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))?;
                    }
                }
            }
        }
        Ok(())
    }
}
