//! Command line of the recorder: parsed by hand, without a framework, into plain settings.
//!
//! Only what can be told from the words alone is checked here; whether a file exists is found out by who opens it.

mod parse;
#[cfg(test)]
mod tests;

pub use parse::parse;

use holdfast_attributes::{From as Origin, Schema, SchemaError};
use holdfast_base::{ByteSize, Rate};
use holdfast_ingest::{Framing, SourceOptions, SourceSpec};
use std::path::PathBuf;
use std::time::Duration;

/// What `--help` prints.
pub const HELP: &str = include_str!("../help.txt");

/// Sources of one recorder: each has a thread and batches of its own.
pub const MAX_SOURCES: usize = 64;

/// How long a run that was told to end waits for a device that fails, unless said otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Shortest and longest `--patience`: below, a device that stumbles loses what is in memory; above, nobody waits.
pub const PATIENCE_LIMITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_hours(1));

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// The help text.
    Help,
    /// The version.
    Version,
    /// A recording.
    Record(Box<Settings>),
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The ring's file or device.
    pub ring: PathBuf,
    /// Bytes of a ring file that is to be made if it is not there.
    pub size: Option<ByteSize>,
    /// Its slot size.
    pub slot: Option<ByteSize>,
    /// What is to be recorded.
    pub sources: Vec<SourceSettings>,
    /// Longest time between commits of what the open slot gained.
    pub flush: Duration,
    /// Bound on buffers of all kinds.
    pub memory: Option<ByteSize>,
    /// Memory of the bird's-eye view.
    pub birds_eye: Option<ByteSize>,
    /// How long a run that was told to end waits for a device that fails.
    pub patience: Duration,
    /// Cores: capture, the lane, then the sources.
    pub cpus: Vec<usize>,
    /// Whether the lane's I/O thread goes before all ordinary threads.
    pub realtime: bool,
    /// Whether the summary is JSON.
    pub json: bool,
    /// Whether nothing but errors and the summary is said.
    pub quiet: bool,
}

/// One source and its stream.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSettings {
    /// What it is.
    pub spec: SourceSpec,
    /// The stream's name.
    pub name: String,
    /// What else was said of it.
    pub options: SourceOptions,
    /// What is to be known of its elements; `None`: nothing was said of it.
    pub schema: Option<Schema>,
    /// True if further attributes are inferred from its first elements.
    pub auto: bool,
    /// Bytes a second of payload that it declares.
    pub rate: Option<Rate>,
    /// Elements a second.
    pub elements: Option<u64>,
    /// Bytes that may come at once beyond the rate.
    pub burst: Option<ByteSize>,
}

impl SourceSettings {
    /// Format of files of whose headers attributes are read, by its name in a schema.
    pub fn header_format(&self) -> Option<&'static str> {
        self.schema.iter().flat_map(Schema::attributes).find_map(|attribute| match attribute.from() {
            Origin::Dada(_) => Some("dada"),
            Origin::Sigproc(_) => Some("sigproc"),
            _ => None,
        })
    }

    /// Bytes of every element, where it is said that all are of one size, and nothing but a loss is told between them: who connects
    /// anew may cut one each time, and a counter tells of what was lost before.
    pub fn frame(&self) -> Option<u32> {
        let whole = matches!(self.spec, SourceSpec::Stdin | SourceSpec::File(_) | SourceSpec::Shm(_));
        match self.options.framing {
            Some(Framing::Fixed(bytes)) if whole && self.options.counter.is_none() => bytes.try_into().ok(),
            _ => None,
        }
    }

    /// Elements a second that it declares with such a rate: those that it names, or as many as there are of its size.
    pub fn elements_at(&self, rate: Rate) -> u64 {
        let size = match self.options.framing {
            Some(Framing::Fixed(bytes)) => bytes.max(1),
            _ => ELEMENT,
        };
        self.elements.unwrap_or_else(|| rate.0.div_ceil(size))
    }
}

/// Elements whose size is not said are taken to be so long.
const ELEMENT: u64 = 64 << 10;

/// Why a command line makes no sense; names the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongUse {
    /// Bytes that are no text.
    #[error("{0} is not UTF-8: rename the file, or link to it under another name")]
    NotText(String),
    /// Not an option.
    #[error("unknown option {0}: see --help")]
    Unknown(String),
    /// What another process does.
    #[error(
        "--metrics is an option of `holdfast record`: run `holdfast metrics RING --listen ADDR` beside holdfast-recorder"
    )]
    Metrics,
    /// A file that another program reads.
    #[error(
        "--schema is an option of `holdfast record`: run `holdfast record`, or use --attr for every attribute"
    )]
    Schema,
    /// An option that wants a value.
    #[error("{option} needs a value: {wanted}")]
    Missing {
        /// The option.
        option: &'static str,
        /// What it wants.
        wanted: &'static str,
    },
    /// A value that does not fit.
    #[error("{option} {value}: {why}")]
    Value {
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// An option that takes no value.
    #[error("{0} takes no value")]
    Switch(&'static str),
    /// An option twice.
    #[error("{option} is given twice{}", if *of_source { " for one source: each --source is followed by its own options" } else { "" })]
    Twice {
        /// The option.
        option: &'static str,
        /// Whether it belongs to a source.
        of_source: bool,
    },
    /// A source option in front of all sources.
    #[error("{0} is an option of a source: put it after its --source")]
    BeforeSource(&'static str),
    /// A source option that its kind does not know.
    #[error("{0}")]
    NotFor(String),
    /// An attribute that is none.
    #[error("--attr: {0}")]
    Attribute(#[from] SchemaError),
    /// Inference together with no attributes.
    #[error("--attr none --attr auto: one extracts no attributes, the other infers them; use one of both")]
    NoneAndAuto,
    /// Inference for what delivers no JSON.
    #[error(
        "--attr auto: attributes are inferred from JSON, and --source {0} delivers packets or messages of a file; use stdin, file:, tcp:, shm: or udp:"
    )]
    AutoOfPackets(String),
    /// Attributes of packets for what delivers none.
    #[error(
        "--attr {attribute}: only packets have it, and --source {source_spec} delivers none; use iface: or replay:"
    )]
    NoPackets {
        /// The first of them.
        attribute: String,
        /// The source.
        source_spec: String,
    },
    /// Attributes of other elements for packets.
    #[error(
        "--attr {attribute}: --source {source_spec} delivers packets, which begin with network headers; record their payload (udp:), or give the offset in the packet (at:42:u32be)"
    )]
    OnlyPackets {
        /// The first of them.
        attribute: String,
        /// The source.
        source_spec: String,
    },
    /// Attributes that come in a header for what has none.
    #[error(
        "--attr {attribute}: a producer sends it in the header of a frame, and --source {source_spec} has none; use stdin, file:, tcp: or shm: with --frame attr32"
    )]
    NotGiven {
        /// The first of them.
        attribute: String,
        /// The source.
        source_spec: String,
    },
    /// What goes with a rate only.
    #[error("{option} goes with --rate, and --source {source_spec} has none")]
    WithoutRate {
        /// The option.
        option: &'static str,
        /// The source.
        source_spec: String,
    },
    /// A source without a name.
    #[error("--source {0} has no name: add --name STREAM after it")]
    Nameless(String),
    /// Two sources with one name.
    #[error("two sources have the --name {0}: a stream has one source")]
    SameName(String),
    /// Standard input for several sources.
    #[error(
        "--source stdin is given twice: there is one standard input, and its bytes can go to one source only"
    )]
    TwiceStdin,
    /// More than one ring.
    #[error("unexpected argument {0}: a recorder records into one ring")]
    TwoRings(String),
    /// No ring.
    #[error("no ring is given: holdfast record RING --source SPEC --name STREAM; see --help")]
    NoRing,
    /// No source.
    #[error(
        "no source is given: say --source SPEC --name STREAM (stdin, file:PATH, tcp:ADDR, shm:PATH, udp:ADDR, iface:NAME or replay:FILE)"
    )]
    NoSource,
    /// Too many sources.
    #[error("{0} sources are too many: one recorder takes at most {MAX_SOURCES}")]
    TooManySources(usize),
}
