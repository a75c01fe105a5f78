//! Streams of a ring, with their attributes.

use super::{Counters, time};
use holdfast_attributes as attributes;
use holdfast_base::Timestamp;
use serde::Serialize;

/// Stream of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Stream<'a> {
    pub id: u32,
    pub name: &'a str,
    pub kind: &'static str,
    pub framing: &'a str,
    #[serde(serialize_with = "time")]
    pub created: Timestamp,
    pub preamble_version: u32,
    pub preamble_bytes: u32,
    pub attributes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Vec<Attribute<'a>>>,
    #[serde(flatten)]
    pub counters: Counters,
}

/// Attribute of a stream's elements.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct Attribute<'a> {
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: String,
    pub from: String,
    pub unit: Option<&'a str>,
    pub comment: Option<&'a str>,
}

impl<'a> From<&'a attributes::Attribute> for Attribute<'a> {
    fn from(attribute: &'a attributes::Attribute) -> Self {
        Self {
            name: attribute.name(),
            kind: attribute.kind().to_string(),
            from: attribute.from().to_string(),
            unit: attribute.unit(),
            comment: attribute.comment(),
        }
    }
}
