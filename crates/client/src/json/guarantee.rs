//! Guarantee of a ring, and what follows from it.

use super::time;
use holdfast_base::Timestamp;
use holdfast_ring::Lack;
use serde::{Serialize, Serializer};

/// Load of attributes, as a plan counts it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AttributeLoad {
    /// How many each element has.
    pub attributes: u16,
    /// Bytes that they take in columns, at most.
    pub attribute_bytes_per_element: u64,
}

/// Guarantee of a ring.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct Guarantee {
    /// Whether it holds now.
    pub holds: bool,
    /// Why it does not: until when, or for ever.
    #[serde(serialize_with = "in_words")]
    pub best_effort: Vec<Lack>,
    pub rate_bytes_per_second: u64,
    pub elements_per_second: u64,
    pub burst_bytes: u64,
    #[serde(flatten)]
    pub attributes: AttributeLoad,
    pub medium_bytes_per_second: u64,
    /// What the run that is under way was admitted for: its streams may declare something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_medium_bytes_per_second: Option<u64>,
    pub gather: u16,
    pub buffers: u32,
    pub memory_bytes: u64,
    pub region_bytes: u64,
    #[serde(serialize_with = "time")]
    pub measured_at: Timestamp,
    /// `None` when it would not be admitted any more.
    #[serde(flatten)]
    pub figures: Option<GuaranteeFigures>,
}

/// Figures of a guarantee that would be admitted now.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct GuaranteeFigures {
    pub capture_only_bytes_per_second: u64,
    pub with_reads_bytes_per_second: u64,
    pub reads_left_bytes_per_second: u64,
    pub burst_seconds: [Option<f64>; 3],
    pub durable_after_seconds: f64,
    pub longest_write_seconds: f64,
    pub longest_read_seconds: f64,
}

fn in_words<S: Serializer>(lacks: &[Lack], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lacks.iter().map(Lack::to_string))
}

impl Guarantee {
    /// Why it does not hold here and now.
    pub fn why_not(&self) -> &[Lack] {
        &self.best_effort
    }
}
