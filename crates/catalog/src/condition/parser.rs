//! Parser of conditions, by recursive descent with a bounded depth.

use super::lexer::{Lexer, Token};
use super::{Condition, ConditionError, MAX_COMPARISONS, MAX_NESTING, Pattern};
use crate::value::{Finite, MAX_TEXT_BYTES, Value, size_factor};

/// Advice where a comparison is expected.
const COMPARISON: &str = "write a comparison such as size > 1GB or project = \"m31\"";

struct Parser {
    lexer: Lexer,
    token: Token,
    /// Place of the token's first character, counted from 0.
    at: usize,
    comparisons: usize,
}

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Condition, ConditionError> {
    let mut lexer = Lexer::new(text)?;
    let (token, at) = lexer.next()?;
    let mut parser = Parser { lexer, token, at, comparisons: 0 };
    let condition = parser.any(0)?;
    match parser.token {
        Token::End => Ok(condition),
        Token::Close => Err(parser.error("a parenthesis closes that was not opened", "remove it")),
        _ => Err(parser.error("the condition goes on after its end", "join comparisons with and / or")),
    }
}

impl Parser {
    fn error(&self, reason: impl Into<String>, remedy: &'static str) -> ConditionError {
        self.lexer.error(self.at, reason, remedy)
    }

    fn advance(&mut self) -> Result<Token, ConditionError> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Takes a keyword if it is next.
    fn keyword(&mut self, keyword: &str) -> Result<bool, ConditionError> {
        let is_next = matches!(&self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword));
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn any(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.all(depth)?];
        while self.keyword("or")? {
            parts.push(self.all(depth)?);
        }
        Ok(single_or(parts, Condition::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.unary(depth)?];
        while self.keyword("and")? {
            parts.push(self.unary(depth)?);
        }
        Ok(single_or(parts, Condition::All))
    }

    fn unary(&mut self, depth: usize) -> Result<Condition, ConditionError> {
        if depth >= MAX_NESTING {
            return Err(self.error("the nesting is deeper than 64 levels", "remove parentheses or not"));
        }
        if self.keyword("not")? {
            return Ok(Condition::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.token != Token::Open {
            return self.comparison();
        }
        self.advance()?;
        let inner = self.any(depth + 1)?;
        if self.token != Token::Close {
            return Err(self.error("a parenthesis is not closed", "add ) or join with and / or"));
        }
        self.advance()?;
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<Condition, ConditionError> {
        let attribute = match &self.token {
            Token::Word(word) if !is_keyword(word) => word.clone(),
            Token::Name(name) => name.clone(),
            Token::End => return Err(self.error("a comparison is missing", COMPARISON)),
            Token::Text(_) => {
                return Err(self.error("a text stands in the place of a name", "put odd names into brackets"));
            }
            _ => return Err(self.error("the name of an attribute is missing", COMPARISON)),
        };
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(self.error("it has more than 256 comparisons", "split the search"));
        }
        self.advance()?;
        if self.keyword("like")? {
            let Token::Text(text) = &self.token else {
                return Err(self.error("a pattern is missing", "write one in quotes, such as \"m*\""));
            };
            let pattern = pattern(text);
            self.advance()?;
            return Ok(Condition::Like { attribute, pattern });
        }
        let Token::Operator(operator) = self.token else {
            return Err(self.error("a comparison operator is missing", "write = != < <= > >= or like"));
        };
        self.advance()?;
        let literal = self.literal()?;
        Ok(Condition::Compare { attribute, operator, literal })
    }

    fn literal(&mut self) -> Result<Value, ConditionError> {
        let start = self.at;
        match self.token.clone() {
            Token::Text(text) => {
                self.advance()?;
                let text: String = text.into_iter().map(|c| c.unwrap_or('*')).collect();
                if text.len() > MAX_TEXT_BYTES {
                    return Err(self.lexer.error(start, "the text is longer than 2000 bytes", "shorten it"));
                }
                Ok(Value::Text(text))
            }
            Token::Literal(value) => {
                self.advance()?;
                self.unit(value)
            }
            Token::Word(_) => Err(self.error("a value is missing", "put texts into quotes")),
            _ => Err(self.error("a value is missing", "write a number, a time, or a text in quotes")),
        }
    }

    /// Takes a unit of size that stands apart from its number.
    fn unit(&mut self, value: Value) -> Result<Value, ConditionError> {
        let factor = match &self.token {
            Token::Word(word) => size_factor(word),
            _ => None,
        };
        let Some(factor) = factor else { return Ok(value) };
        let float = |number: f64| Finite::new(number * factor as f64).map(Value::Float);
        let scaled = match value {
            Value::Integer(number) => {
                number.checked_mul(factor).map(Value::Integer).map_or_else(|| float(number as f64), Ok)
            }
            Value::Float(number) => float(number.get()),
            other => Ok(other),
        };
        let scaled = scaled.map_err(|_| self.error("the size is out of range", "write a smaller one"))?;
        self.advance()?;
        Ok(scaled)
    }
}

fn is_keyword(word: &str) -> bool {
    ["and", "or", "not", "like"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

fn single_or(mut parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

/// Splits a text at its stars.
fn pattern(text: &[Option<char>]) -> Pattern {
    Pattern { pieces: text.split(Option::is_none).map(|piece| piece.iter().flatten().collect()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Operator;
    use crate::ids::Nanos;

    fn read(text: &str) -> Condition {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn literal(text: &str) -> Value {
        match read(&format!("a = {text}")) {
            Condition::Compare { operator: Operator::Equal, literal, .. } => literal,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn not_binds_strongest_and_or_weakest() {
        let text = "a = 1 or not b < 2 and c >= \"x\"";
        assert_eq!(read(text).to_string(), "(a = 1) or ((not (b < 2)) and (c >= \"x\"))");
        assert_eq!(read(text), read("(a = 1) OR ((NOT (b < 2)) AND (c >= 'x'))"));
    }

    #[test]
    fn literals_have_the_type_that_their_form_tells() {
        let float = |number| Value::float(number).unwrap();
        assert_eq!(literal("1GB"), Value::Integer(1_000_000_000));
        assert_eq!(literal("1.1 KiB"), float(1.1 * 1024.0));
        assert_eq!(literal("0.3GB"), Value::Integer(300_000_000));
        assert_eq!(literal("-4 KiB"), Value::Integer(-4096));
        assert_eq!(literal("9223372036854775807"), Value::Integer(i64::MAX));
        assert_eq!(literal("9223372036854775808"), float(9_223_372_036_854_775_808.0));
        assert_eq!(literal("1e3"), float(1000.0));
        assert_eq!(literal("1.0"), float(1.0));
        assert_eq!(literal("1970-01-01T00:00:01.5Z"), Value::Time(Nanos(1_500_000_000)));
        assert_eq!(literal("1970-01-01T01:00:00+01:00"), Value::Time(Nanos(0)));
        assert_eq!(literal("1970-01-02"), Value::Time(Nanos(86_400_000_000_000)));
        assert_eq!(literal(r#""a\"\n*\*""#), Value::Text("a\"\n**".into()));
    }

    #[test]
    fn patterns_split_at_stars() {
        let Condition::Like { attribute, pattern } = read(r#"[my name\]] like "a\**b*""#) else { panic!() };
        assert_eq!(
            (attribute.as_str(), pattern.pieces),
            ("my name]", vec!["a*".into(), "b".into(), String::new()])
        );
    }

    #[test]
    fn errors_name_the_place_and_the_remedy() {
        let cases = [
            ("", 1, "a comparison is missing"),
            ("size > ", 8, "a value is missing"),
            ("size > big", 8, "put texts into quotes"),
            ("size ~ 4", 6, "`~` has no meaning here"),
            ("size 4", 6, "a comparison operator is missing"),
            ("size > 4XB", 8, "`4XB` is not a number"),
            ("(a = 1", 7, "a parenthesis is not closed"),
            ("a = 1)", 6, "closes that was not opened"),
            ("a = 1 b = 2", 7, "join comparisons with and / or"),
            ("t > 2026-13-01", 5, "`2026-13-01` is not a time"),
            ("a = \"x", 5, "the text has no end"),
            ("ü = \"\\q\"", 6, "the escape is unknown"),
            ("and = 1", 1, "the name of an attribute is missing"),
            ("a like 5", 8, "a pattern is missing"),
            ("\"a\" = 5", 1, "put odd names into brackets"),
            ("a = 1e999", 5, "is not a number"),
        ];
        for (text, place, part) in cases {
            let error = parse(text).unwrap_err();
            let message = error.to_string();
            assert_eq!(error.place, place, "{text}: {message}");
            assert!(message.starts_with("cannot read the condition at character "), "{message}");
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let deep = format!("{}a = 1{}", "(".repeat(65), ")".repeat(65));
        assert!(parse(&deep).unwrap_err().reason.contains("64 levels"));
        let long = vec!["a = 1"; 257].join(" and ");
        assert!(parse(&long).unwrap_err().reason.contains("256 comparisons"));
        assert!(parse(&" ".repeat(70_000)).is_err());
        read(&vec!["a = 1"; 256].join(" or "));
    }
}
