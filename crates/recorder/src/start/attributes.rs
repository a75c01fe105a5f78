//! Choice of the attributes of each source: those requested, else those that the ring has for the stream, else the
//! defaults of its kind. `ingest` extracts them.

use super::{Known, StartError};
use crate::args::{Settings, SourceSettings};
use holdfast_attributes::{Attribute, From, Schema};
use holdfast_base::ByteSize;
use holdfast_format::{Builder, Classes, ElementLoad, FormatError, StreamKind};
use holdfast_ingest::packet::Preamble;
use holdfast_ingest::{AutoLimits, AutoSchema, Extraction, Opened, SourceError, SourceSpec};
use holdfast_ring::NewSchema;

/// What is read of packets unless something else is said, and of messages of MCAP files.
const USUAL: &str = "packets";
const OF_MESSAGES: &str = "mcap";

/// Memory of inferred attributes, of all sources together: a part of a bound, or so much.
const AUTO_OF_BOUND: u64 = 8;
const AUTO_MEMORY: ByteSize = ByteSize::mib(64);

/// Those of one source.
struct SourceAttributes {
    schema: Schema,
    text: String,
    /// Whether somebody asked for them.
    said: bool,
    /// True while further ones are to be inferred from its elements.
    auto: bool,
    /// Bytes of every element, where all are of one size.
    frame: Option<u32>,
}

impl SourceAttributes {
    /// What is usual for a file that is replayed is known when it is open: it has packets, or messages.
    fn fit(&mut self, source: &SourceSettings, opened: &Opened) -> Result<(), StartError> {
        let messages = opened.framing.has_header();
        let replayed = matches!(source.spec, SourceSpec::Replay(_));
        if replayed && !self.said && messages && !self.schema.is_empty() {
            self.turn_into(Schema::typed([OF_MESSAGES]).unwrap_or_default());
        }
        let wrong = |attribute: &&Attribute| match attribute.from() {
            From::Packet(..) => messages,
            From::Given => !messages,
            from => from.is_of_no_packet() && !messages,
        };
        match self.schema.attributes().iter().find(wrong).filter(|_| replayed) {
            Some(attribute) => {
                let has = match attribute.from() {
                    From::Packet(..) => "messages, and no packets",
                    From::Given => "packets, and nothing is given with them",
                    _ => "packets, which begin with headers of the network",
                };
                let what = format!("--attr {attribute}: this file has {has}");
                Err(StartError::Source(SourceError::Unfit { name: source.spec.to_string(), what }))
            }
            None => Ok(()),
        }
    }

    fn new(schema: Schema, said: bool, frame: Option<u32>) -> Self {
        Self { text: schema.text(), schema, said, auto: false, frame }
    }

    /// Others than those that were there, for which nobody asked.
    fn turn_into(&mut self, schema: Schema) {
        *self = Self::new(schema, false, self.frame);
    }
}

/// An opened source, with extraction and inference of its attributes.
pub(super) type SourceParts = (Opened, Option<Extraction>, Option<AutoSchema>);

/// Those of all sources, in their order.
pub(super) struct Attributes(Vec<SourceAttributes>);

impl Attributes {
    /// What was asked for, and what is usual where nothing was.
    pub(super) fn wanted(settings: &Settings) -> Self {
        let own = |source: &SourceSettings| match &source.schema {
            Some(schema) => SourceAttributes {
                auto: source.auto,
                ..SourceAttributes::new(schema.clone(), true, source.frame())
            },
            // The word is one of the library's own.
            None if source.spec.kind() == StreamKind::Packets => {
                SourceAttributes::new(Schema::typed([USUAL]).unwrap_or_default(), false, None)
            }
            None => SourceAttributes::new(Schema::default(), false, source.frame()),
        };
        Self(settings.sources.iter().map(own).collect())
    }

    /// What the ring knows of the streams goes before what is usual, and stays the beginning of what was asked for.
    pub(super) fn settle(
        &mut self,
        settings: &Settings,
        known: &Known,
        opened: &[Opened],
        warnings: &mut Vec<String>,
    ) -> Result<(), StartError> {
        for ((own, source), opened) in self.0.iter_mut().zip(&settings.sources).zip(opened) {
            own.fit(source, opened)?;
            let Some(text) = known.schema(&source.name) else { continue };
            match (Schema::parse(text), own.said) {
                // What was inferred stays.
                (Ok(old), _) if own.auto && own.schema.extended_by(&old).is_ok() => {
                    *own = SourceAttributes::new(old, true, own.frame);
                }
                (_, true) if own.schema.is_empty() && !own.auto => {}
                (Ok(old), true) => old.extended_by(&own.schema).map_err(|why| StartError::Changed {
                    stream: source.name.clone(),
                    why: why.to_string(),
                })?,
                (Err(why), true) => {
                    let why = format!("its attributes are of a later release ({why})");
                    return Err(StartError::Changed { stream: source.name.clone(), why });
                }
                (Ok(old), false) => own.turn_into(old),
                (Err(why), false) => {
                    warnings.push(format!(
                        "stream {}: its attributes are of a later release ({why}); this run extracts none",
                        source.name
                    ));
                    own.turn_into(Schema::default());
                }
            }
        }
        Ok(())
    }

    /// True if attributes of a source are to be inferred.
    pub(super) fn are_inferred(&self) -> bool {
        self.0.iter().any(|own| own.auto)
    }

    /// Memory that is kept for attributes that are to be inferred.
    pub(super) fn reserve(&self, bound: Option<ByteSize>) -> u64 {
        let reserve = bound.map_or(AUTO_MEMORY.0, |bound| bound.0 / AUTO_OF_BOUND);
        if self.are_inferred() { reserve } else { 0 }
    }

    /// Does without those that nobody asked for, and says so; `false`: there are none such.
    pub(super) fn do_without(&mut self, why: impl std::fmt::Display, warnings: &mut Vec<String>) -> bool {
        let unasked = self.0.iter_mut().filter(|own| !own.said && !own.schema.is_empty());
        let count = unasked.map(|own| own.turn_into(Schema::default())).count();
        if count > 0 {
            warnings.push(format!("sources without --attr get no attributes: {why}"));
        }
        count > 0
    }

    /// What elements take beside their payload at most, by source.
    pub(super) fn loads(&self) -> Vec<ElementLoad> {
        self.0.iter().map(|own| own.schema.load(own.frame)).collect()
    }

    /// What their columns are made of, by source.
    pub(super) fn classes(&self) -> Vec<Classes> {
        self.0.iter().map(|own| own.schema.classes()).collect()
    }

    /// Memory that they take beside batches; not before those are left out that do not fit the slots.
    pub(super) fn memory(&mut self, slot_bytes: u64, warnings: &mut Vec<String>) -> Result<u64, StartError> {
        let why = match self.memory_as_they_are(slot_bytes) {
            Err(why) => why,
            Ok(bytes) => return Ok(bytes),
        };
        if !self.do_without(&why, warnings) {
            return Err(StartError::Attributes(why));
        }
        self.memory_as_they_are(slot_bytes).map_err(StartError::Attributes)
    }

    fn memory_as_they_are(&self, slot_bytes: u64) -> Result<u64, FormatError> {
        let columns = Builder::column_memory(slot_bytes, &self.classes())?;
        let read = self.0.iter().filter(|own| !own.schema.is_empty()).count();
        Ok((columns + read * Extraction::BYTES) as u64)
    }

    /// What the ring is told of a source's stream.
    pub(super) fn told(&self, at: usize) -> Option<NewSchema<'_>> {
        let SourceAttributes { schema, text, .. } = self.0.get(at).filter(|own| !own.schema.is_empty())?;
        Some(NewSchema { text, classes: schema.classes() })
    }

    /// Inference of the attributes of a source, if wanted.
    fn inference(&self, own: &SourceAttributes, slot_bytes: u64, reserve: u64) -> Option<AutoSchema> {
        let (inferred, others): (Vec<_>, Vec<_>) = self.0.iter().partition(|own| own.auto);
        let limits = AutoLimits {
            memory: ByteSize(reserve / inferred.len().max(1) as u64),
            slot_bytes,
            others: others.iter().map(|own| own.schema.classes()).collect(),
            sharing: inferred.len(),
        };
        own.auto.then(|| AutoSchema::new(own.schema.clone(), limits))
    }

    /// The sources, each with extraction and inference of its attributes.
    pub(super) fn join(&self, opened: Vec<Opened>, slot_bytes: u64, reserve: u64) -> Vec<SourceParts> {
        let all = opened.into_iter().zip(&self.0).map(|(opened, own)| {
            let interfaces = opened.preamble.as_deref().and_then(|bytes| Preamble::validate(bytes).ok());
            let links =
                interfaces.unwrap_or_default().iter().map(|interface| interface.link_type.0).collect();
            let extraction = (!own.schema.is_empty()).then(|| Extraction::new(&own.schema, links));
            (opened, extraction, self.inference(own, slot_bytes, reserve))
        });
        all.collect()
    }
}
