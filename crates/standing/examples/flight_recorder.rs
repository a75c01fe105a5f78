//! Flight recorder in sixty lines: records a file of JSON lines, holds its errors, counts them and exports the held range.
//!
//! ```text
//! cargo run -p holdfast-standing --example flight_recorder -- events.jsonl folder
//! ```

use holdfast_client::index_copies::IndexCopies;
use holdfast_client::{Notices, exports, session, sql};
use holdfast_export::{ElementFilter, Existing, Export, Format, Output, Sink, SourceAccess};
use holdfast_query::{Limits, output};
use holdfast_reader::{OpenSlots, Selection};
use holdfast_recorder::{args, run};
use holdfast_standing::{Options, Unobserved, hold};
use std::error::Error;
use std::fs::File;
use std::path::Path;

const QUERY: &str = "select code, count(*) n from events where level = 'error' group by code order by code";

/// Records `input` on the ring `folder/lab.hf`, holds its errors, and writes `counts.csv` and `held.jsonl` beside it.
pub(crate) fn flight_recorder(input: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    // Record: the settings are those of the program `holdfast-recorder`.
    let ring = folder.join("lab.hf");
    let source = format!("file:{input}");
    let words = ["--size", "16MiB", "--source", &source, "--name", "events", "--frame", "lines", "--quiet"];
    let attributes = ["--attr", "level:text=json:level", "--attr", "code:uint=json:code"];
    let words = [ring.as_os_str()].into_iter().chain(words.iter().chain(&attributes).map(AsRef::as_ref));
    let args::Invocation::Record(settings) = args::parse(words.map(Into::into))? else {
        return Err("these words ask for no recording".into());
    };
    let summary = run::record(&settings)?;
    println!("recorded {} elements", summary.streams[0].counters.received);

    // Hold by condition: the slots of all matches stay until the hold is released.
    let notices = Notices::new(|notice| eprintln!("{notice}"));
    hold(&ring, Options::matching("level = 'error'", "errors of the first run"), &notices, &mut Unobserved)?;

    // Query: the answer as CSV.
    let engine = sql::open(&ring, &Limits::default(), &IndexCopies::default(), &OpenSlots::default())?;
    let counts = File::create(folder.join("counts.csv"))?;
    engine.answer(QUERY, output::Format::Csv, |_| Ok(Box::new(counts)))?;

    // Export: everything in the range, as JSON lines.
    let mut reader = session::open(&ring)?;
    let streams = reader.streams()?;
    let export = Output::file(&folder.join("held.jsonl"), Existing::Keep, SourceAccess::default())?;
    let passed = export.passed();
    let export = Export::new(Format::Jsonl, &streams, export)?;
    let mut sink = Sink::new(export, passed, ElementFilter::All, Box::new(|_| ()))?;
    let plan = reader.plan(&Selection::ALL)?;
    exports::fill(&mut sink, &mut reader, &plan)?;
    let written = sink.finish().0.finish()?.finish()?;
    println!("exported {} bytes, BLAKE3 {}", written.bytes, written.blake3);
    Ok(())
}

#[cfg(not(test))]
fn main() -> Result<(), Box<dyn Error>> {
    let [_, input, folder] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("give a file of JSON lines and a folder".into());
    };
    flight_recorder(input, Path::new(folder))
}
