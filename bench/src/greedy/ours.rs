//! Holdfast: a recorder on a ring file, fed through its standard input; readers are its clients.

use super::{ELEMENT, Load, Reading, Recorder, Seen};
use crate::place::Place;
use crate::program::{Program, holdfast};
use crate::{Scale, Trouble};
use holdfast_link::{Item, RingReader, Selection};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is asked what can be read.
const LOOK: Duration = Duration::from_millis(2);

/// Holdfast at work.
pub struct Ours {
    ring: PathBuf,
    program: Program,
    input: ChildStdin,
    stop: Arc<AtomicBool>,
    looker: JoinHandle<()>,
}

impl Ours {
    /// Begins.
    pub fn begin(place: &Place, load: &Load, scale: Scale, seen: Arc<Seen>) -> Result<Self, Trouble> {
        let ring = place.file("ring.hf");
        let slot = scale.pick("2MiB", "32MiB");
        let arguments = [
            ring.display().to_string(),
            "--size".to_owned(),
            format!("{}", load.kept),
            "--slot".to_owned(),
            slot.to_owned(),
        ];
        let rest = ["--source", "stdin", "--name", "elements", "--frame"].map(str::to_owned);
        let last = [format!("fixed:{ELEMENT}"), "--json".to_owned()];
        let all: Vec<String> = arguments.into_iter().chain(rest).chain(last).collect();
        let path = holdfast("holdfast-recorder", scale)?;
        let mut program = Program::start(&path, &all, Stdio::piped(), &place.file("ours.said"))?;
        program.until("recording", |program| program.said().contains("recording "))?;
        let input = program.input().ok_or_else(|| Trouble::Accounting("no pipe".to_owned()))?;
        let mut reader = open(&ring)?;
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let looker = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let Ok(status) = reader.status() else { return };
                let sources = status.recorder.iter().flat_map(|recorder| &recorder.sources);
                seen.visible(sources.map(|source| source.packed_elements).sum());
                std::thread::sleep(LOOK);
            }
        });
        Ok(Self { ring, program, input, stop, looker })
    }
}

fn open(ring: &std::path::Path) -> Result<RingReader, Trouble> {
    RingReader::open(ring).map_err(Trouble::of("opening the ring"))
}

impl Recorder for Ours {
    fn take(&mut self, _: u64, element: &[u8]) -> Result<(), Trouble> {
        self.input.write_all(element).map_err(Trouble::file(&self.ring, "write to its recorder"))
    }

    fn reader(&self, _: u64) -> Result<Reading, Trouble> {
        let mut reader = open(&self.ring)?;
        let stop = Arc::clone(&self.stop);
        Ok(Box::new(move || {
            let plan = reader.plan(&Selection::ALL).map_err(Trouble::of("planning"))?;
            let mut bytes = 0;
            // In pieces, so that a reader ends when the others do.
            let mut sink = |item: Item<'_>| {
                if let Item::Element(element) = item {
                    bytes += element.data.len() as u64;
                }
                let enough = bytes >= 256 << 20 || stop.load(Ordering::Relaxed);
                if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            reader.read(&plan, &mut sink).map_err(Trouble::of("reading"))?;
            Ok(bytes)
        }))
    }

    fn end(self: Box<Self>) -> Result<u64, Trouble> {
        let Self { program, input, stop, looker, .. } = *self;
        stop.store(true, Ordering::Relaxed);
        let _ = looker.join();
        drop(input);
        let said = program.end(&[0])?;
        let line = said.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(line).map_err(Trouble::of("its summary"))?;
        json["streams"][0]["lost_elements"]
            .as_u64()
            .ok_or_else(|| Trouble::Accounting(format!("no summary: {said}")))
    }

    fn tells(&self) -> bool {
        true
    }
}
