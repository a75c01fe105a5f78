//! Engine: readers fill silos, workers empty them into the module, results go to the output.

use crate::batch::{Contents, LaneId};
use crate::item::Item;
use crate::lane::{Examined, Folded, Lanes};
use crate::module::{Block, Division, Module, ModuleError, Outputs};
use crate::report::Report;
use crate::silo::Silos;
use crate::source::{Sources, read};
use holdfast_base::failure::{Failure, Result};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Limits of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of all buffers together.
    pub memory: u64,
    /// Worker threads; `None`: one a core.
    pub workers: Option<NonZeroUsize>,
    /// Files of at most as many bytes are small: a silo of their own takes them, with many requests in flight. Zero: none is.
    pub small: u64,
    /// Bytes of a large file, or of small files and elements, in one buffer.
    pub block: u64,
    /// Bytes of a line that is searched whole; a longer one is searched in pieces that overlap by a quarter of it.
    pub longest_line: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { memory: 256 << 20, workers: None, small: 256 << 10, block: 4 << 20, longest_line: 16 << 20 }
    }
}

/// Receiver of results, called by one thread at a time; `Break` ends the scan.
pub type Sink<'a, O> = &'a mut (dyn FnMut(Vec<O>) -> ControlFlow<()> + Send);

/// Receiver of items that could not be scanned, with the reason, called by one thread at a time.
pub type Trouble<'a> = &'a mut (dyn FnMut(&Item<'_>, &str) + Send);

/// State that the readers and workers of a scan share.
pub(crate) struct Shared<'a> {
    pub(crate) silos: Silos,
    pub(crate) division: Division,
    pub(crate) options: Options,
    pub(crate) passed_over: AtomicU64,
    lanes: AtomicU64,
    troubles: AtomicU64,
    trouble: Mutex<Trouble<'a>>,
    failure: Mutex<Option<Failure>>,
}

impl Shared<'_> {
    pub(crate) fn lane(&self, is_single: bool) -> Arc<LaneId> {
        Arc::new(LaneId::new(self.lanes.fetch_add(1, Ordering::Relaxed), is_single))
    }

    /// Reports an item that cannot be scanned.
    pub(crate) fn trouble(&self, item: &Item<'_>, reason: impl AsRef<str>) {
        self.troubles.fetch_add(1, Ordering::Relaxed);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble(item, reason.as_ref());
    }

    /// Ends the scan because of a failure.
    pub(crate) fn fail(&self, failure: Failure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.silos.stop();
    }
}

/// Runs a module over all items of the sources. Items that cannot be read or processed are told to `trouble` and passed over.
pub fn scan<M: Module>(
    module: &M,
    sources: &Sources,
    options: Options,
    sink: Sink<'_, M::Output>,
    trouble: Trouble<'_>,
) -> Result<Report> {
    let began = Instant::now();
    let shared = Shared {
        silos: Silos::new((options.memory / 4) as usize),
        division: module.division(),
        options,
        passed_over: AtomicU64::new(0),
        lanes: AtomicU64::new(0),
        troubles: AtomicU64::new(0),
        trouble: Mutex::new(trouble),
        failure: Mutex::new(None),
    };
    let workers = options.workers.or_else(|| std::thread::available_parallelism().ok());
    let workers = workers.map_or(1, NonZeroUsize::get);
    let times = Mutex::new(Times::default());
    let lanes = Lanes::<M>::new();
    let output = Mutex::new(sink);
    std::thread::scope(|scope| {
        // Workers wait until the last source is done.
        shared.silos.begin_reader();
        for number in 0..workers {
            let worker = Worker { module, shared: &shared, lanes: &lanes, output: &output };
            let times = &times;
            let run = move || {
                if let Ok(own) = catch_unwind(AssertUnwindSafe(|| worker.run())) {
                    times.lock().unwrap_or_else(PoisonError::into_inner).add(own);
                } else {
                    // Readers would wait for ever for buffers that nobody empties.
                    worker.shared.fail(Failure::failed("the module has a bug, and ended the scan"));
                    worker.lanes.give_up();
                }
            };
            let started =
                std::thread::Builder::new().name(format!("holdfast-scan-{number}")).spawn_scoped(scope, run);
            if let Err(error) = started {
                shared.fail(Failure::failed(format_args!("cannot start a thread: {error}")));
            }
        }
        if let Err(failure) = read(sources, &shared, workers) {
            shared.fail(failure);
        }
        shared.silos.end_reader(None, 0.0);
    });
    if let Some(failure) = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure);
    }
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Report {
        silos: shared.silos.reports(),
        workers,
        seconds: began.elapsed().as_secs_f64(),
        idle_seconds: times.idle,
        module_seconds: times.module,
        output_seconds: times.output,
        troubles: shared.troubles.load(Ordering::Relaxed),
        passed_over: shared.passed_over.load(Ordering::Relaxed),
        stopped: shared.silos.is_stopped(),
    })
}

/// Seconds of worker threads.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    idle: f64,
    module: f64,
    output: f64,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.idle += other.idle;
        self.module += other.module;
        self.output += other.output;
    }
}

struct Worker<'a, 's, M: Module> {
    module: &'a M,
    shared: &'a Shared<'a>,
    lanes: &'a Lanes<M>,
    output: &'a Mutex<Sink<'s, M::Output>>,
}

impl<M: Module> Worker<'_, '_, M> {
    fn run(&self) -> Times {
        let mut times = Times::default();
        let mut scratch = match self.module.worker() {
            Ok(scratch) => scratch,
            Err(error) => {
                self.shared.fail(Failure::failed(error));
                return times;
            }
        };
        let mut since = Instant::now();
        let mut lap = || {
            let now = Instant::now();
            let seconds = now.duration_since(since).as_secs_f64();
            since = now;
            seconds
        };
        while let Some(batch) = self.shared.silos.take() {
            times.idle += lap();
            let mut examined = Examined { batch, partial: None, results: Vec::new() };
            let mut output = 0.0;
            match &examined.batch.contents {
                Contents::Whole(spans) => {
                    let ticket = examined.batch.ticket.as_ref();
                    let way = |results| {
                        // Results leave in the order of the lane.
                        if let Some(ticket) = ticket {
                            self.lanes.wait(ticket);
                        }
                        self.send(results);
                    };
                    let mut outputs = Outputs::leaving(&way);
                    for span in spans {
                        self.span(&mut scratch, &span.block(&examined.batch.buffer), &mut outputs);
                    }
                    output += outputs.seconds;
                    examined.results = std::mem::take(&mut outputs.results);
                }
                Contents::Part(part) => {
                    let block = part.block(&examined.batch.buffer);
                    examined.partial = Some(self.module.examine(&mut scratch, &block));
                }
            }
            times.module += lap() - output;
            times.output += std::mem::take(&mut output);
            if examined.batch.ticket.is_none() {
                self.send(examined.results);
                self.shared.silos.give(examined.batch.silo, examined.batch.buffer);
                times.output += lap();
                continue;
            }
            self.lanes.submit(self.module, examined, &|results| self.send(results), &mut |folded| {
                let began = Instant::now();
                output += folded.seconds;
                self.emit(folded);
                output += began.elapsed().as_secs_f64();
            });
            times.module += lap() - output;
            times.output += output;
        }
        times.idle += lap();
        times
    }

    /// Processes an item that a batch has whole.
    fn span(&self, scratch: &mut M::Worker, block: &Block<'_>, outputs: &mut Outputs<'_, M::Output>) {
        let kept = outputs.results.len();
        if let Err(error) = self.whole(scratch, block, outputs) {
            outputs.results.truncate(kept);
            self.shared.trouble(&block.item, error.to_string());
        }
        for warning in outputs.warnings.drain(..) {
            self.shared.trouble(&block.item, warning);
        }
    }

    fn whole(
        &self,
        scratch: &mut M::Worker,
        block: &Block<'_>,
        outputs: &mut Outputs<'_, M::Output>,
    ) -> Result<(), ModuleError> {
        let partial = self.module.examine(scratch, block)?;
        let mut state = self.module.start(&block.item)?;
        self.module.fold(&mut state, block, partial, outputs)?;
        self.module.end(&block.item, state, outputs)
    }

    fn emit(&self, folded: Folded<M>) {
        let Folded { batch, results, warnings, error, .. } = folded;
        if let Contents::Part(part) = &batch.contents {
            let item = crate::batch::item(&part.container, part.stamp);
            for warning in &warnings {
                self.shared.trouble(&item, warning);
            }
            if let Some(error) = &error {
                self.shared.trouble(&item, error.to_string());
            }
        }
        self.send(results);
        self.shared.silos.give(batch.silo, batch.buffer);
    }

    /// Sends results to the output.
    fn send(&self, results: Vec<M::Output>) {
        if results.is_empty() {
            return;
        }
        let mut sink = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.shared.silos.is_stopped() && sink(results).is_break() {
            self.shared.silos.stop();
        }
    }
}
