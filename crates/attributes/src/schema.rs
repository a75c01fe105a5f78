//! Schema of a stream: its attributes in order, their text form, and the rules for extending it.

use crate::cursor::Cursor;
use crate::{Attribute, From, PacketField, Problem, SchemaError, preset};
use holdfast_format::{Classes, ElementLoad, MAX_COLUMNS, StreamRecord};
use std::fmt;
use std::str::FromStr;

/// Columns that every stream has: no attribute may have such a name.
pub const RESERVED: [&str; 9] =
    ["ordinal", "time", "span", "stream", "direction", "size", "original_size", "payload", "slot"];

/// The name of the attribute that is an element's event time. Where there is none, the event time is that of the source.
pub const EVENT_TIME: &str = "event_time";

/// The attributes of a stream: a list that only ever gets longer. Its *version* is how many there are; the first N are those of
/// version N.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    attributes: Vec<Attribute>,
}

/// Why a schema is not the beginning of another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Grown {
    /// An attribute is missing.
    #[error("the attribute `{0}` is missing: a schema may get longer, but what it has stays, in its order")]
    Missing(String),
    /// An attribute differs.
    #[error(
        "the attribute `{old}` would become `{new}`: a schema may get longer, but what it has stays, in its order"
    )]
    Changed {
        /// As it is.
        old: String,
        /// As it would be.
        new: String,
    },
}

impl Schema {
    /// From what was typed, an attribute or a preset each.
    pub fn typed<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, SchemaError> {
        let mut schema = Self::default();
        let mut none: Option<String> = None;
        let mut count = 0;
        for text in texts {
            let text = text.as_ref();
            count += 1;
            // Options of a preset stand behind a comma.
            if text.split_once('=').is_some_and(|(before, _)| !before.contains(',')) {
                schema.push(text.parse()?, text)?;
            } else {
                let attributes = preset::expand(text)?;
                if attributes.is_empty() {
                    none = Some(text.to_owned());
                }
                attributes.into_iter().try_for_each(|attribute| schema.push(attribute, text))?;
            }
        }
        match none {
            Some(text) if count > 1 => Err(Cursor::new(&text).wrong(Problem::None)),
            _ => Ok(schema),
        }
    }

    /// One more at the end; errors tell `text`.
    pub(crate) fn push(&mut self, attribute: Attribute, text: &str) -> Result<(), SchemaError> {
        let at = Cursor::new(text);
        if self.attributes.iter().any(|known| known.name() == attribute.name()) {
            return Err(at.wrong(Problem::Twice(attribute.name().to_owned())));
        }
        if self.attributes.len() == MAX_COLUMNS {
            return Err(at.wrong(Problem::TooMany));
        }
        self.attributes.push(attribute);
        if self.text().len() > StreamRecord::MAX_SCHEMA {
            return Err(at.wrong(Problem::TooLarge));
        }
        Ok(())
    }

    /// The text that stands for it: an attribute a line.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// Reads such a text. One that ends in the middle of an attribute is an error.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let mut schema = Self::default();
        for line in text.split_terminator('\n') {
            schema.push(line.parse()?, line)?;
        }
        Ok(schema)
    }

    /// The attributes, in order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// How many there are, which is the schema's version.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// What an element takes beside its payload, at most: less, where every element has as many bytes as `frame` says.
    pub fn load(&self, frame: Option<u32>) -> ElementLoad {
        let is_question = |from: &From| matches!(from, From::Packet(PacketField::DnsName, _));
        let asks = self.attributes.iter().any(|attribute| is_question(attribute.from()));
        let most = |from: &From| match from {
            // A packet has one of the two names.
            From::Packet(PacketField::TlsName, _) if asks => 0,
            from => from.most_text(),
        };
        let more = |load: ElementLoad, attribute: &Attribute| match frame
            .and_then(|bytes| attribute.bytes_in(bytes))
        {
            Some(bytes) => load.with_numbers(bytes),
            None => load.with(attribute.kind().class(), most(attribute.from())),
        };
        // An event time is kept in rows, too.
        let begin = ElementLoad { frame: frame.filter(|_| self.event_time().is_none()), ..ElementLoad::NONE };
        self.attributes.iter().fold(begin, more)
    }

    /// How the cells of each are kept.
    pub fn classes(&self) -> Classes {
        self.attributes.iter().map(|attribute| attribute.kind().class()).collect()
    }

    /// The place of the attribute that is the event time, if there is one.
    pub fn event_time(&self) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name() == EVENT_TIME)
    }

    /// The schema that this one was when it had so many attributes.
    #[must_use]
    pub fn version(&self, version: usize) -> Self {
        Self { attributes: self.attributes.iter().take(version).cloned().collect() }
    }

    /// The attributes with these numbers and what else has to be read for them, with their numbers here, in order. Values that a
    /// producer gives stand in one header, and each is found behind those before it.
    pub fn part(&self, wanted: &[usize]) -> (Self, Vec<usize>) {
        let is_given = |number: usize| self.attributes.get(number).is_some_and(|a| *a.from() == From::Given);
        let behind = wanted.iter().filter(|number| is_given(**number)).max();
        let is_needed = |number: usize| {
            wanted.contains(&number) || (is_given(number) && behind.is_some_and(|last| number < *last))
        };
        let needed = self.attributes.iter().enumerate().filter(|(number, _)| is_needed(*number));
        let (numbers, attributes) = needed.map(|(number, attribute)| (number, attribute.clone())).unzip();
        (Self { attributes }, numbers)
    }

    /// Whether `new` may follow this one: it begins with it. Units and comments may not change either, since what is recorded
    /// was recorded with them.
    pub fn extended_by(&self, new: &Self) -> Result<(), Grown> {
        for (at, old) in self.attributes.iter().enumerate() {
            match new.attributes.get(at) {
                None => return Err(Grown::Missing(old.to_string())),
                Some(new) if new != old => {
                    return Err(Grown::Changed { old: old.to_string(), new: new.to_string() });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        Self::parse(text)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.attributes.iter().try_for_each(|attribute| writeln!(f, "{attribute}"))
    }
}
