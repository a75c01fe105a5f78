//! Files that say which attributes a stream has, for `record --schema`: one `[[attribute]]` each, as the recorder takes them
//! with `--attr`. What an attribute may be is the `attributes` crate's; here it is only found where in the file one is wrong.

use holdfast_attributes::{Attribute, Schema, SchemaError};
use holdfast_base::failure::{Failure, Result};
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// Bytes of a file: all attributes there may be, with longest texts, and as much again around them.
const MOST_BYTES: u64 = 256 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    attribute: Vec<One>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    name: Spanned<String>,
    #[serde(rename = "type")]
    kind: Spanned<String>,
    from: Spanned<String>,
    unit: Option<Spanned<String>>,
    comment: Option<Spanned<String>>,
}

/// Where something stands in an attribute, in characters, and in the file.
type Part = (Range<usize>, Range<usize>);

impl One {
    /// What `--attr` takes, and which part of it stands where in the file.
    fn typed(&self) -> (String, Vec<Part>) {
        let mut text = String::new();
        let mut parts = Vec::new();
        let mut put = |before: &str, part: &Spanned<String>| {
            text.push_str(before);
            let start = text.chars().count();
            text.push_str(part.get_ref());
            parts.push((start..text.chars().count(), part.span()));
        };
        put("", &self.name);
        put(":", &self.kind);
        put("=", &self.from);
        self.unit.iter().for_each(|unit| put(",unit=", unit));
        self.comment.iter().for_each(|comment| put(",comment=", comment));
        (text, parts)
    }
}

/// The attributes in `file`, each as `--attr` takes it.
pub fn attributes(file: &Path) -> Result<Vec<String>> {
    let cannot = |error: &std::io::Error| Failure::io("cannot read the schema", file, error);
    let bytes = std::fs::metadata(file).map_err(|error| cannot(&error))?.len();
    if bytes > MOST_BYTES {
        let what = format_args!("the schema has {bytes} bytes, {MOST_BYTES} at most are taken");
        return Err(Failure::usage(what).at_path(file));
    }
    parse(&std::fs::read_to_string(file).map_err(|error| cannot(&error))?, file)
}

fn parse(text: &str, file: &Path) -> Result<Vec<String>> {
    let wrong = |what: String, at: usize| {
        let before = &text[..text.floor_char_boundary(at)];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Failure::usage(what).at(format_args!("{} line {line} column {column}", file.display())).advice(
            "an attribute is written as [[attribute]] with name = \"temp\", type = \"float\", from = \"json:temp\" and, if \
             wanted, unit and comment",
        )
    };
    let whole: Whole = toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        wrong(message, error.span().map_or(0, |span| span.start))
    })?;
    let mut all: Vec<String> = Vec::new();
    for one in &whole.attribute {
        let (typed, parts) = one.typed();
        if let Err(error) = typed.parse::<Attribute>() {
            return Err(wrong(error.problem.to_string(), place(&error, &parts)));
        }
        all.push(typed);
        if let Err(error) = Schema::typed(&all) {
            return Err(wrong(error.problem.to_string(), one.name.span().start));
        }
    }
    Ok(all)
}

/// Where in the file an error is: in the last part that begins before it, as far as that goes.
fn place(error: &SchemaError, parts: &[Part]) -> usize {
    let at = error.column.saturating_sub(1);
    let part = parts.iter().rev().find(|(part, _)| part.start <= at);
    part.map_or(0, |(part, span)| {
        // Behind the quotation mark; exact where nothing is written with a backslash.
        (span.start + 1 + (at - part.start)).min(span.end.saturating_sub(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_those_that_would_be_typed() {
        let text = "[[attribute]]\nname = \"beam\"\ntype = \"uint\"\nfrom = \"at:4:u16be\"\n\n[[attribute]]\nname = 'temp'\n\
            type = 'float'\nfrom = 'json:\"a.b\"[2]'\nunit = 'K'\ncomment = 'of the mixer, at its middle'\n";
        let wanted =
            ["beam:uint=at:4:u16be", "temp:float=json:\"a.b\"[2],unit=K,comment=of the mixer, at its middle"];
        assert_eq!(parse(text, Path::new("s.toml")).unwrap(), wanted);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let good = "[[attribute]]\nname = \"a\"\ntype = \"uint\"\nfrom = \"at:4:u16be\"\n";
        for (text, said) in [
            ("", "missing field `attribute`"),
            ("[[attribute]]\nname = 1\n", "s.toml line 2 column 8"),
            ("[[attribute]]\nnome = 'a'\n", "unknown field `nome`"),
            ("[[attribute]]\nname = 'a'\ntype = 'uint'\n", "missing field `from`"),
            (&good.replace("uint", "integer"), "s.toml line 3 column 9: "),
            (&good.replace("at:4:u16be", "at:4:u17be"), "s.toml line 4 column 14: "),
            (&good.replace("\"a\"", "\"A\""), "s.toml line 2 column 9: "),
            (&good.replace("\"a\"", "\"slot\""), "`slot` is a column of every stream"),
            (&[good, good].concat(), "duplicate attribute `a`, s.toml line 6 column 8"),
            (&format!("{good}unit = \"a,b\"\n"), "s.toml line 5 column 10: "),
            (&format!("{good}comment = \"\"\n"), "s.toml line 5 column 12: "),
        ] {
            let failure = parse(text, Path::new("s.toml")).unwrap_err().to_string();
            assert!(failure.contains(said.trim_end_matches(": ")), "{text}: {failure}");
        }
    }
}
