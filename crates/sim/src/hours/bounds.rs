//! Margins of the guarantee: the highest rate that never lost against the admitted one, and the readers'
//! share of the head time that writing leaves. In virtual time, on hand-made scenes.

use super::play::{Verdict, play_under};
use super::readers::{Habit, Reader};
use super::scene::{Places, Scene};
use super::source::Stream;
use holdfast_base::{ByteSize, Rate};
use holdfast_media::drive::DriveModel;
use holdfast_ring::{Class, Load, Policy, Shape, figures, visit};
use std::time::Duration;

impl Scene {
    /// A ring on the first part of a drive, with a steady load and nobody reading.
    pub fn steady(drive: DriveModel, region: f64, slot: ByteSize, gather: u16, rate: Rate) -> Self {
        let quantum = 8 << 20;
        let measured = Self::profiled(&drive, &(0.0..region), slot.0, quantum);
        let shape = Shape { slot, flush: Duration::from_secs(1), gather, quantum, buffers: u32::MAX };
        Self {
            seed: 1,
            drive,
            region: 0.0..region,
            measured,
            shape,
            base: 1 << 20,
            visit: visit(&measured, shape.quantum),
            load: Load { rate, elements: 1000, cells: 0, burst: ByteSize(0) },
            streams: Vec::new(),
            wild: Vec::new(),
            places: Places::All,
            readers: Vec::new(),
            lasts: Duration::from_hours(1),
        }
        .at(rate)
    }

    /// The same at another rate, with as many buffers as that takes, if it is admitted.
    #[must_use]
    pub fn at(mut self, rate: Rate) -> Self {
        self.load.rate = rate;
        self.streams = vec![Stream { rate: rate.0 as f64, burst: None, lull: None }];
        self.just_enough()
    }

    /// So many readers of a habit.
    #[must_use]
    pub fn read_by(mut self, readers: u64, habit: Habit) -> Self {
        self.readers = (0..readers).map(|one| Reader::new(one, Class::Export, habit, one + 7)).collect();
        self
    }

    /// The same with what is worst: slots free where the drive is slowest, or at both ends, and readers who go from one
    /// end to the other.
    pub fn adversaries(&self) -> Vec<Self> {
        let places = [Places::Last(2), Places::Ends, Places::Torn];
        let readers = [Habit::Torn, Habit::Scattered];
        let both = places.iter().flat_map(|places| readers.map(|habit| (*places, habit)));
        both.map(|(places, habit)| Self { places, ..self.clone().read_by(2, habit) }).collect()
    }

    /// The highest rate that is admitted, however much memory it takes.
    pub fn admitted(&self) -> Rate {
        let ample = Shape { buffers: u32::MAX, ..self.shape };
        figures(&self.measured, &self.load, &ample).with_reads
    }
}

/// How near admission comes to what a drive can do.
#[derive(Clone, Copy, Debug)]
pub struct Tightness {
    /// What is admitted.
    pub admitted: Rate,
    /// The highest rate, of those tried, at which nothing was lost in any scene.
    pub lossless: Rate,
}

impl Tightness {
    /// The admitted rate as a share of the other.
    pub fn share(&self) -> f64 {
        self.admitted.0 as f64 / (self.lossless.0 as f64).max(1.0)
    }

    /// Looks for the highest rate, to a thousandth, at which none of the scenes loses, each with the promise and the
    /// buffers for the rate that is tried.
    pub fn of(scenes: &[Scene]) -> Self {
        let admitted = scenes.iter().map(Scene::admitted).min().unwrap_or(Rate(0));
        let holds = |rate: u64| {
            scenes.iter().all(|scene| {
                let promised = scene.clone().at(admitted);
                let policy = promising(promised.policy(), &promised, rate as f64);
                let mut tried = promised;
                tried.streams = vec![Stream { rate: rate as f64, burst: None, lull: None }];
                play_under(&tried, policy).lost == 0.0
            })
        };
        let (mut low, mut high) = (admitted.0, admitted.0 * 5 / 4);
        if !holds(low) {
            return Self { admitted, lossless: Rate(0) };
        }
        while high - low > admitted.0 / 1000 {
            let middle = u64::midpoint(low, high);
            if holds(middle) { low = middle } else { high = middle }
        }
        Self { admitted, lossless: Rate(low) }
    }
}

/// A policy that promises another rate than admission would, with the buffers of the inequality.
fn promising(mut policy: Policy, scene: &Scene, rate: f64) -> Policy {
    if let Some(promise) = &mut policy.promise {
        promise.rate = rate;
        let waiting = (promise.blocked * rate / scene.shape.slot.0 as f64).ceil() as u32;
        policy.buffers = policy.gather + 1 + waiting;
    }
    policy
}

/// What a drive's time went to while readers asked for all that is left.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// What readers got of the head time that writing leaves, which is all but streaming what arrives. Going where a
    /// reader wants to be is the reader's time.
    pub readers: f64,
    /// Streaming what was written, and the readers' time, of all time: 1 is the model's limit.
    pub total: f64,
    /// Bytes read, per second.
    pub read: Rate,
}

impl Shares {
    /// Of an hour.
    pub fn of(verdict: &Verdict, lasts: Duration) -> Self {
        let (all, streamed) = (lasts.as_secs_f64(), verdict.streamed_writes.as_secs_f64());
        let readers = verdict.reading.as_secs_f64();
        Self {
            readers: readers / (all - streamed),
            total: (streamed + readers) / all,
            read: Rate((verdict.read as f64 / all) as u64),
        }
    }
}
