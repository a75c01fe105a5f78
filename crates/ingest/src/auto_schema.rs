//! Inference of a stream's attributes from the first elements of its source (`--attr auto`).
//!
//! These elements are handed over as they come, without cells. The batch with which the inference ends is the first with
//! cells, and carries the schema: the capture thread puts it in force before it packs that batch.

use crate::batch::{Batch, Content};
use crate::extraction::Extraction;
use holdfast_attributes::{Inference, Schema};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_format::{Builder, Classes};
use std::time::Duration;

/// Elements that are looked at: enough to see most fields, and few enough that they are soon over.
const ELEMENTS: usize = 1000;

/// Time after the first element until the fields seen so far are the schema: a slow stream is soon searchable, too.
const TIME: Duration = Duration::from_secs(1);

/// Bounds of an inferred schema.
#[derive(Clone, Debug)]
pub struct AutoLimits {
    /// Memory of its columns, in all batches and in the open slot.
    pub memory: ByteSize,
    /// Slot size of the ring.
    pub slot_bytes: u64,
    /// Columns of the other streams.
    pub others: Vec<Classes>,
    /// Streams whose schema is inferred: they share the columns of a slot.
    pub sharing: usize,
}

/// A schema that is being inferred.
#[derive(Clone, Debug)]
pub struct AutoSchema {
    explicit: Schema,
    limits: AutoLimits,
    inference: Inference,
    looked: usize,
    began: Option<Timestamp>,
    at_end: bool,
}

/// A schema, as the capture thread puts it in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAttributes {
    /// All attributes of the stream as text.
    pub text: String,
    /// The classes of their columns.
    pub classes: Classes,
}

impl AutoSchema {
    /// An inference whose schema begins with `explicit`.
    pub fn new(explicit: Schema, limits: AutoLimits) -> Self {
        Self { explicit, limits, inference: Inference::default(), looked: 0, began: None, at_end: false }
    }

    /// Extraction of the explicit attributes, which the inferred ones join later.
    pub(crate) fn extraction(&self) -> Extraction {
        Extraction::new(&self.explicit, Vec::new())
    }

    /// Looks at the elements of a batch; how many of them are no JSON objects, if nobody else looks at them.
    pub(crate) fn look(&mut self, batch: &Batch) -> u64 {
        let mut undecodable = 0;
        for row in batch.rows().iter().filter(|row| row.content == Content::Whole) {
            if self.looked == ELEMENTS {
                if !self.inference.is_empty() {
                    break;
                }
                (self.looked, self.began) = (0, None);
            }
            self.looked += 1;
            self.began.get_or_insert(row.arrival);
            let document = batch.bytes_of(row).get(usize::from(row.meta)..).unwrap_or_default();
            undecodable += u64::from(!self.inference.look(document));
        }
        if self.explicit.is_empty() { undecodable } else { 0 }
    }

    /// Time until the inference is over; `None` before the first element.
    pub(crate) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        self.began.map(|began| TIME.saturating_sub(now.since(began)))
    }

    /// The source ends: what was seen is all.
    pub(crate) fn end(&mut self) {
        self.at_end = true;
    }

    /// True once enough was seen.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.looked == ELEMENTS || self.at_end || self.due_in(now).is_some_and(|left| left.is_zero())
    }

    /// Fields that a schema inferred here leaves out, in words.
    pub(crate) fn left_out(&self, schema: &Schema) -> Option<String> {
        self.inference.left_out(schema)
    }

    /// The schema, if something was inferred; else the inference goes on with the next elements.
    pub(crate) fn conclude(
        &mut self,
        batches: usize,
        batch_bytes: usize,
        batch_rows: usize,
    ) -> Option<Schema> {
        let fits = |schema: &Schema| {
            let own = schema.classes();
            let mut all = self.limits.others.clone();
            all.resize(all.len() + self.limits.sharing.max(1), own);
            let in_batches = Batch::column_bytes(own, batch_bytes, batch_rows) * batches as u64;
            let in_slot = Builder::column_memory(self.limits.slot_bytes, &[own]).unwrap_or(usize::MAX);
            Builder::column_memory(self.limits.slot_bytes, &all).is_ok()
                && in_batches.saturating_add(in_slot as u64) <= self.limits.memory.0
        };
        let schema = self.inference.schema(&self.explicit, fits);
        if schema.len() > self.explicit.len() {
            return Some(schema);
        }
        (self.looked, self.began) = (0, None);
        None
    }
}
