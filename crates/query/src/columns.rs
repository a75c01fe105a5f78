//! Columns of a stream's table: the columns common to all streams, and its attributes, with their Arrow
//! fields.

use crate::predicate::ColumnLookup;
use datafusion::arrow::datatypes::{DataType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
use holdfast_attributes::{EVENT_TIME, Schema, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// Under which key a field says which type its values have that Arrow has no type for.
pub(crate) const TYPE_KEY: &str = "holdfast.type";
const UNIT_KEY: &str = "unit";
const COMMENT_KEY: &str = "comment";

/// What every stream has of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonColumn {
    /// Its number in the stream.
    Ordinal,
    /// When its last byte arrived.
    Time,
    /// When it happened.
    EventTime,
    /// Nanoseconds from its first byte to its last.
    Span,
    /// `in` or `out`, for packets.
    Direction,
    /// Bytes of payload.
    Size,
    /// Bytes that it had when it arrived.
    OriginalSize,
    /// The sequence of the slot that it ends in.
    Slot,
    /// Its bytes.
    Payload,
}

impl CommonColumn {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Ordinal,
        Self::Time,
        Self::EventTime,
        Self::Span,
        Self::Direction,
        Self::Size,
        Self::OriginalSize,
        Self::Slot,
        Self::Payload,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordinal => "ordinal",
            Self::Time => "time",
            Self::EventTime => EVENT_TIME,
            Self::Span => "span",
            Self::Direction => "direction",
            Self::Size => "size",
            Self::OriginalSize => "original_size",
            Self::Slot => "slot",
            Self::Payload => "payload",
        }
    }

    fn kind(self) -> Type {
        match self {
            Self::Ordinal | Self::Span | Self::Size | Self::OriginalSize | Self::Slot => Type::Uint,
            Self::Time | Self::EventTime => Type::Time,
            Self::Direction => Type::Text,
            Self::Payload => Type::Binary,
        }
    }

    fn is_nullable(self) -> bool {
        matches!(self, Self::EventTime | Self::Direction | Self::Payload)
    }
}

/// Where a column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Every stream has it.
    Common(CommonColumn),
    /// The attribute of that number. (That of the event time is a fixed one.)
    Attribute(usize),
}

/// The columns of one table.
#[derive(Clone, Debug)]
pub struct Columns {
    all: Vec<(Column, Type)>,
    arrow: SchemaRef,
}

impl Columns {
    /// Of a stream with these attributes: payload last.
    pub fn new(schema: &Schema) -> Self {
        let (payload, first) = (
            CommonColumn::Payload,
            CommonColumn::ALL.into_iter().filter(|fixed| *fixed != CommonColumn::Payload),
        );
        let fixed = |fixed: CommonColumn| {
            let field = Field::new(fixed.name(), arrow_type(fixed.kind()), fixed.is_nullable());
            (Column::Common(fixed), fixed.kind(), field)
        };
        let attributes = schema.attributes().iter().enumerate().filter(|(_, a)| a.name() != EVENT_TIME);
        let attributes = attributes.map(|(number, attribute)| {
            let said = [(UNIT_KEY, attribute.unit()), (COMMENT_KEY, attribute.comment())];
            let said = said.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.to_owned())));
            let field = field(attribute.name(), attribute.kind(), said.collect());
            (Column::Attribute(number), attribute.kind(), field)
        });
        let all: Vec<_> = first.map(fixed).chain(attributes).chain([fixed(payload)]).collect();
        let fields: Vec<Field> = all.iter().map(|(_, _, field)| field.clone()).collect();
        let all = all.into_iter().map(|(column, kind, _)| (column, kind)).collect();
        Self { all, arrow: Arc::new(ArrowSchema::new(fields)) }
    }

    /// As Arrow has it.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// The column at a place, and its type.
    pub fn at(&self, place: usize) -> Option<(Column, Type)> {
        self.all.get(place).copied()
    }
}

impl ColumnLookup for Columns {
    fn find(&self, name: &str) -> Option<(usize, Type)> {
        let place = self.arrow.index_of(name).ok()?;
        let (column, kind) = self.at(place)?;
        (column != Column::Common(CommonColumn::Payload)).then_some((place, kind))
    }
}

/// A field that may be null.
fn field(name: &str, kind: Type, mut said: HashMap<String, String>) -> Field {
    if matches!(kind, Type::Ipv4 | Type::Mac | Type::Ipv6 | Type::Ip) {
        said.insert(TYPE_KEY.to_owned(), kind.name().to_owned());
    }
    Field::new(name, arrow_type(kind), true).with_metadata(said)
}

/// The type of a field, where Arrow has none of its own for it: an address. Where it does not say so itself, the bytes of its values
/// do, or of their items: nothing but addresses has a fixed number of them here.
pub fn address_type(field: &Field) -> Option<Type> {
    declared_type(field).or_else(|| match field.data_type() {
        DataType::FixedSizeBinary(4) => Some(Type::Ipv4),
        DataType::FixedSizeBinary(6) => Some(Type::Mac),
        DataType::FixedSizeBinary(16) => Some(Type::Ip),
        DataType::List(items) => address_type(items),
        _ => None,
    })
}

/// What a field says of that itself.
pub(crate) fn declared_type(field: &Field) -> Option<Type> {
    field.metadata().get(TYPE_KEY).and_then(|name| Type::named(name))
}

/// The Arrow type of values.
pub fn arrow_type(kind: Type) -> DataType {
    match kind {
        Type::Int => DataType::Int64,
        Type::Uint => DataType::UInt64,
        Type::Float => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Type::Text => DataType::Utf8View,
        Type::Binary => DataType::BinaryView,
        Type::Ipv4 => DataType::FixedSizeBinary(4),
        Type::Mac => DataType::FixedSizeBinary(6),
        Type::Ipv6 | Type::Ip => DataType::FixedSizeBinary(16),
    }
}

/// What values of an Arrow type are, by the name of the type, to people.
pub fn describe_type(kind: &str) -> &str {
    let is = |names: &[&str]| names.iter().any(|name| kind.starts_with(name));
    match kind {
        "FixedSizeBinary(4)" => "an IPv4 address",
        "FixedSizeBinary(6)" => "a MAC address",
        "FixedSizeBinary(16)" => "an IP address",
        "Boolean" => "a truth value",
        _ if is(&["Binary", "LargeBinary"]) => "bytes",
        _ if is(&["Utf8", "LargeUtf8"]) => "a text",
        _ if is(&["Int", "UInt", "Float", "Decimal"]) && !is(&["Interval"]) => "a number",
        _ if is(&["Timestamp", "Date"]) => "a time",
        _ if is(&["Interval", "Duration"]) => "a length of time",
        other => other,
    }
}
