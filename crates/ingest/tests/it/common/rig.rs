//! Test rig of a source: the source on its thread, and a capture side that collects or holds back on purpose.

use super::Collector;
use holdfast_attributes::Counter;
use holdfast_base::{ByteSize, Ordinal, SystemClock};
use holdfast_ingest::{
    Inlet, Opened, Overload, Parker, Pressure, ProducerSettings, Running, Source, SourceCounters, SourceEnd,
    SourceError, SourceOptions, SourceSpec, StopFlag, channel, open, spawn,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub struct Rig {
    pub stop: StopFlag,
    pub inlet: Inlet,
    pub collector: Collector,
    parker: Parker,
    running: Option<Running>,
}

pub fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Opens as the recorder does.
pub fn opened(spec: &str, options: &SourceOptions) -> (Opened, StopFlag) {
    let stop = StopFlag::new().unwrap();
    let spec: SourceSpec = spec.parse().unwrap();
    (open(&spec, options, &stop).unwrap(), stop)
}

impl Rig {
    pub fn start(opened: Opened, stop: StopFlag, batches: usize) -> Self {
        Self::run(opened.source, opened.overload, stop, batches)
    }

    /// With a counter, as the recorder hands it to the producer.
    pub fn counting(opened: Opened, stop: StopFlag, counter: Option<Counter>) -> Self {
        let settings = ProducerSettings { counter, ..ProducerSettings::new(opened.overload, Ordinal(0)) };
        Self::with(opened.source, stop, &settings)
    }

    pub fn run(source: Box<dyn Source>, overload: Overload, stop: StopFlag, batches: usize) -> Self {
        let settings = ProducerSettings {
            batches,
            batch_bytes: ByteSize::kib(128),
            ..ProducerSettings::new(overload, Ordinal(0))
        };
        Self::with(source, stop, &settings)
    }

    fn with(source: Box<dyn Source>, stop: StopFlag, settings: &ProducerSettings) -> Self {
        let parker = Parker::new();
        let clock = Arc::new(SystemClock::new());
        let (producer, inlet) = channel(settings, clock, Arc::new(Pressure::default()), parker.waker());
        let running = spawn("test", source, producer, stop.clone(), || {}).unwrap();
        Self { stop, inlet, collector: Collector::default(), parker, running: Some(running) }
    }

    pub fn counters(&self) -> Arc<SourceCounters> {
        Arc::clone(self.inlet.counters())
    }

    /// Collects until `enough`, or the source has ended.
    pub fn collect_until(&mut self, mut enough: impl FnMut(&Collector) -> bool) {
        loop {
            let Self { inlet, collector, .. } = self;
            if let Some(preamble) = inlet.take_preamble() {
                collector.preamble = Some(preamble);
                inlet.answer_preamble(Ok(()));
            }
            collector.let_go(inlet, usize::MAX);
            collector.drain(inlet, false);
            // Asked behind the last take: nothing can come any more.
            if enough(collector) || inlet.is_finished() {
                return;
            }
            self.parker.wait(Some(Duration::from_mins(1)));
        }
    }

    /// Takes all batches that the source has, and keeps them: it has none left.
    pub fn starve(&mut self, batches: usize) {
        while self.collector.held.len() < batches {
            if !self.collector.hold_one(&mut self.inlet) {
                self.parker.wait(Some(Duration::from_mins(1)));
            }
        }
    }

    /// Collects all there is until the source ends by itself.
    pub fn finish(mut self) -> (Collector, Result<SourceEnd, SourceError>) {
        self.collect_until(|_| false);
        let end = self.running.take().unwrap().join();
        (std::mem::take(&mut self.collector), end)
    }

    /// The capture side goes away.
    pub fn hang_up(self) -> Result<SourceEnd, SourceError> {
        let Self { inlet, running, .. } = self;
        drop(inlet);
        running.unwrap().join()
    }

    /// Tells the source to stop, and collects the rest.
    pub fn stop(self) -> (Collector, Result<SourceEnd, SourceError>) {
        self.stop.stop();
        self.finish()
    }
}
