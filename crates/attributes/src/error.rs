//! Errors of attribute expressions: position, cause and remedy.

use crate::schema::RESERVED;
use crate::{MAX_ATTRIBUTE, MAX_STEPS, Type};
use holdfast_base::MAX_NAME;
use holdfast_format::{MAX_COLUMNS, MAX_TEXT, StreamRecord};

/// Why a text is no attribute, or cannot be one of this schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("in `{text}`, column {column}: {problem}")]
pub struct SchemaError {
    /// The text, its beginning if it is long.
    pub text: String,
    /// The character at which it stops being right; the first one is 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Something else should stand here.
    #[error("expected {0}")]
    Wanted(&'static str),
    /// No name.
    #[error("a name has 1 to {MAX_NAME} characters of a-z, 0-9 and _, and does not begin with a digit")]
    Name,
    /// The name of a column that is always there.
    #[error("`{0}` is a column of every stream ({all} are); choose another name", all = RESERVED.join(", "))]
    Reserved(String),
    /// Another attribute has the name.
    #[error("duplicate attribute `{0}`")]
    Twice(String),
    /// Event times are times.
    #[error("`event_time` is the event time of an element: its type must be time")]
    EventTime,
    /// No type.
    #[error("unknown type `{0}`: the types are {all}", all = list(&Type::ALL))]
    Type(String),
    /// Nothing that values come from.
    #[error(
        "unknown origin `{0}`: values come from at:, json:, packet:, vdif:, spead:, dada: or sigproc:, or are given"
    )]
    From(String),
    /// Something that values of this type cannot come from.
    #[error("`{from}` gives {types}, not {kind}", types = list(.gives))]
    Gives {
        /// Where values come from.
        from: String,
        /// Of which types they may be.
        gives: Vec<Type>,
        /// Of which type they are to be.
        kind: Type,
    },
    /// A field that is not known.
    #[error("`{of}` has no field `{name}`: the fields are {all}", all = .known.join(", "))]
    Field {
        /// Whose field.
        of: &'static str,
        /// As typed.
        name: String,
        /// All that there are.
        known: Vec<&'static str>,
    },
    /// No layout of bytes.
    #[error(
        "unknown layout `{0}`: the layouts are u8, i8, u16le, u16be and so on to u64, i64, f32 and f64, bytesN and textN (N from 1 to \
         {MAX_TEXT}), ipv4, ipv6 and mac"
    )]
    Layout(String),
    /// Outside of what is looked at.
    #[error("the field ends at byte {end}: only the first 65536 bytes of an element are read")]
    TooFar {
        /// Where it would end.
        end: u64,
    },
    /// No such bits.
    #[error(
        "bitsA..B takes the bits from A to before B, counted from the lowest, of an unsigned number: here A < B ≤ {0}"
    )]
    Bits(u32),
    /// Bits of something that is no unsigned number.
    #[error("only unsigned numbers (u8 to u64) have bits")]
    NoBits,
    /// No number that counts.
    #[error("expected an unsigned number (u8 to u64) with at least {least} bits")]
    Counter {
        /// As many bits as it needs.
        least: u32,
    },
    /// A path that is too long.
    #[error("a path has at most {MAX_STEPS} steps")]
    Steps,
    /// A unit of time that does not exist.
    #[error("a number that is a time counts s, ms, us or ns since 1970, not `{0}`")]
    TimeUnit(String),
    /// A unit where none can be.
    #[error("`{0}` has a unit of its own: omit the unit")]
    NoUnit(String),
    /// A text that is too long.
    #[error("{what} has at most {most} bytes")]
    TooLong {
        /// Of what.
        what: &'static str,
        /// As long as it may be.
        most: usize,
    },
    /// A control character.
    #[error("control characters are not allowed")]
    Control,
    /// Too many attributes.
    #[error("a stream has at most {MAX_COLUMNS} attributes")]
    TooMany,
    /// A schema that its record in the ring has no room for.
    #[error("with it the schema has more than {} bytes: shorten comments", StreamRecord::MAX_SCHEMA)]
    TooLarge,
    /// `none` among others.
    #[error("`none` cannot be combined with other attributes")]
    None,
    /// Longer than any attribute.
    #[error("an attribute has at most {MAX_ATTRIBUTE} bytes")]
    Attribute,
}

fn list(kinds: &[Type]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
