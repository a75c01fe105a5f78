//! Packet filter: an expression in tcpdump syntax, for the packets of some streams. It is compiled for the interfaces that each
//! stream's preamble describes, and again when that changes; by the recorder's program, for libpcap and what it loads would
//! be loaded at every start of this one.

use crate::pcapng::{interfaces, packet};
use holdfast_base::StreamId;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_format::StreamKind;
use holdfast_ingest::packet::LinkType;
use holdfast_ingest::packet::filter::{FileFilter, Filter as Compiled, check_length};
use holdfast_reader::Element;
use holdfast_ring::StreamStatus;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An expression, and what it comes to for each stream.
pub struct Filter {
    expression: String,
    recorder: PathBuf,
    names: HashMap<StreamId, String>,
    compiled: HashMap<StreamId, (Vec<u8>, FileFilter)>,
}

impl Filter {
    /// A filter for streams of packets, compiled by the program `recorder`; other streams are refused.
    pub fn new(expression: &str, streams: &[StreamStatus], recorder: PathBuf) -> Result<Self> {
        if let Some(other) = streams.iter().find(|stream| stream.kind != StreamKind::Packets) {
            return Err(Failure::usage(format_args!(
                "stream `{}` has no packets: it was recorded with the framing {}",
                other.name, other.framing
            ))
            .at("--filter")
            .advice("name streams of packets with --stream, or ask with `holdfast query`"));
        }
        let names = streams.iter().map(|stream| (stream.id, stream.name.clone())).collect();
        Ok(Self { expression: expression.to_owned(), recorder, names, compiled: HashMap::new() })
    }

    /// Takes a stream's preamble.
    pub fn preamble(&mut self, stream: StreamId, bytes: &[u8]) -> Result<()> {
        if self.compiled.get(&stream).is_some_and(|(known, _)| known == bytes) {
            return Ok(());
        }
        let interfaces = interfaces(self.names.get(&stream).map_or("", String::as_str), bytes)?;
        let filter = FileFilter::compiled_by(&interfaces, |link_type| {
            compile(&self.recorder, &self.expression, link_type)
        })?;
        self.compiled.insert(stream, (bytes.to_vec(), filter));
        Ok(())
    }

    /// Whether a packet passes; one of an interface that no preamble described does not.
    pub fn accepts(&self, element: &Element<'_>) -> bool {
        self.compiled.get(&element.stream).is_some_and(|(_, filter)| filter.accepts(&packet(element)))
    }
}

/// Has the recorder's program compile an expression.
fn compile(program: &Path, expression: &str, link_type: LinkType) -> Result<Compiled> {
    const OPTION: &str = "--compile";
    #[derive(serde::Deserialize)]
    struct Refused {
        error: String,
    }
    check_length(expression).map_err(|error| Failure::usage(error).at("--filter"))?;
    let failed = |what: &str, advice: &str| {
        Failure::failed(format_args!("cannot compile the filter: {what}")).at_path(program).advice(advice)
    };
    let said = Command::new(program)
        .args(["--json", OPTION])
        .arg(format!("{}:{expression}", link_type.0))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(&reason(&error), "install holdfast-recorder beside holdfast"))?;
    if said.status.success() {
        let text = String::from_utf8_lossy(&said.stdout);
        return text.parse().map_err(|error| failed(&format!("{error}"), OTHER_RELEASE));
    }
    // An older one does not know the option; without libpcap the system's loader says so.
    if let Ok(Refused { error }) = serde_json::from_slice(&said.stdout)
        && !error.contains(OPTION)
    {
        return Err(Failure::usage(error).at("--filter"));
    }
    let why = String::from_utf8_lossy(&said.stderr);
    Err(failed(why.lines().next_back().unwrap_or("it ended without a word"), OTHER_RELEASE))
}

const OTHER_RELEASE: &str = "install the holdfast-recorder of this release, and libpcap";
