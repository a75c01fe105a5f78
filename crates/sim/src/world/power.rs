//! Clean stops, power cuts, restarts, and the death of a disk.

use super::{Power, World, WorldStream};
use crate::model::Preambles;
use crate::recorder::Recorder;
use crate::view::{Survey, survey, survey_disk};
use crate::{Bound, Stage, schema};
use holdfast_base::Timestamp;
use holdfast_format::{SlotFlags, StreamKind};
use holdfast_media::{FaultyDisk, Image, Seed, Survival};
use holdfast_ring::{NewStream, Refusal};
use std::sync::Arc;
use std::time::Duration;

/// Streams of a world.
const STREAMS: usize = 3;

/// The one that has attributes, where one has.
const WITH_ATTRIBUTES: usize = 1;

/// Elements that are recorded at most until a planned cut comes.
const UNTIL_CUT: u16 = 60;

impl World {
    /// Begins a run on what is on the disk. Whether that is as it must be, the caller has seen.
    pub(super) fn start(&mut self, mut disk: FaultyDisk) -> Result<(), String> {
        let recovered =
            holdfast_ring::recover_for_capture(&mut disk).map_err(|e| format!("no recovery: {e}"))?;
        self.superblock = recovered.superblock.clone();
        self.runs += 1;
        // Nobody tells the next run of them.
        self.model.pins.clear();
        self.left_aside = self.set_aside;
        let mut run = Recorder::start(disk, recovered, self.setup.config.clone(), &self.clock);
        self.sources.clear();
        let mut preambles = Preambles::new();
        for number in 0..STREAMS {
            let name = format!("s{number}");
            // Now and then a source comes back with another preamble.
            let fill = (self.runs / 3).min(self.setup.preambles) as u8 + number as u8;
            let preamble = vec![fill; self.setup.preamble];
            let without = self.setup.preambles > 1 && self.runs.is_multiple_of(5);
            let preamble = (self.setup.preamble > 0 && !without).then_some(preamble.as_slice());
            let schema = (self.setup.attributes && number == WITH_ATTRIBUTES).then(schema);
            let mut new =
                NewStream { name: &name, kind: StreamKind::Bytes, framing: "blocks", preamble, schema };
            let mut entry = run.add_stream(&new);
            if let Err(Refusal::JournalFull { .. }) = entry {
                // Holds keep too many old ones: the source has to do without.
                new.preamble = None;
                entry = run.add_stream(&new);
            }
            let entry = entry.map_err(|e| format!("stream {name}: {e}"))?;
            let dictionary = run.entries[usize::from(entry)];
            if let Some(bytes) = new.preamble {
                preambles.insert((dictionary.stream.0, dictionary.preamble), bytes.to_vec());
            }
            let counted = dictionary.counters.next_ordinal.0;
            if let Some(last) = self.model.last_whole(dictionary.stream).filter(|last| *last >= counted) {
                return Err(format!("stream {name} would go on with ordinal {counted}, and has {last}"));
            }
            let next = self.model.next_ordinal(dictionary.stream, counted);
            self.sources.push(WorldStream { id: dictionary.stream, entry, next });
        }
        self.model.preambles = Arc::new(preambles);
        self.run = Some(run);
        self.power = Power::On;
        if !self
            .wait("starting", &mut |world| world.run.as_ref().is_some_and(|run| !run.driver.is_starting()))?
        {
            return Ok(());
        }
        let epoch = self.recorder()?.driver.ring().epoch().0;
        if epoch <= self.model.epoch {
            return Err(format!("epoch {epoch} comes again after {}", self.model.epoch));
        }
        self.model.epoch = epoch;
        self.look()
    }

    /// Ends the run cleanly.
    pub fn stop(&mut self) -> Result<Option<FaultyDisk>, String> {
        self.seal(SlotFlags::SHORT)?;
        let idle = |world: &mut Self| world.run.as_ref().is_some_and(|run| run.driver.is_idle());
        if !self.wait("the last orders", &mut |world| world.asked.is_empty())? {
            return Ok(None);
        }
        if !self.wait("the last slots", &mut |world| idle(world))? {
            return Ok(None);
        }
        self.look()?;
        let now = self.now();
        self.recorder()?.driver.ring_mut().end(now);
        if !self.wait("the end", &mut |world| idle(world))? {
            return Ok(None);
        }
        self.look()?;
        Ok(self.run.take().map(Recorder::into_disk))
    }

    pub(super) fn restart(&mut self) -> Result<(), String> {
        let Some(mut disk) = self.stop()? else { return Ok(()) };
        let image = disk.seen();
        let survey = survey_disk(&mut disk, &image).map_err(|e| format!("no recovery: {e}"))?;
        if survey.recovered.after_crash() {
            return Err("a clean end looks like a crash".to_owned());
        }
        let now = self.now();
        self.model.allows(&survey, Bound { durable: now, now })?;
        for found in &survey.found {
            let stage = self.model.slots.get(&found.sequence.0).map(|slot| slot.stage);
            if !matches!(stage, Some(Stage::Written(_))) {
                return Err(format!("sequence {} is found after a clean end: {stage:?}", found.sequence));
            }
        }
        self.model.adopt(&survey);
        self.start(disk)
    }

    pub(super) fn crash(&mut self, after: u8, draw: u64) -> Result<(), String> {
        if after > 0 {
            self.disk()?.cut_after(u64::from(after));
            for number in 0..UNTIL_CUT {
                self.element(number as u8, 3_000, false)?;
                if self.is_dead() {
                    break;
                }
                self.pass(Duration::from_millis(30))?;
            }
        }
        self.after_cut(draw, None)
    }

    pub(super) fn crash_twice(&mut self, after: u8, draw: u64) -> Result<(), String> {
        self.after_cut(draw, Some(after))?;
        self.after_cut(draw.rotate_left(13), None)
    }

    /// What must be there now that the power went.
    pub fn mourn(&mut self) -> Result<Bound, String> {
        self.look()?;
        Ok(self.bound())
    }

    /// Looks at what a cut left, and starts again; in that run the power goes at the `cut`-th write.
    pub fn after_cut(&mut self, draw: u64, cut: Option<u8>) -> Result<(), String> {
        let bound = self.mourn()?;
        let chance = &mut Seed::new(draw);
        let disk = self.disk()?;
        let image = match chance.below(8) {
            0 => disk.crash_with(Survival::Nothing),
            1 => disk.crash_with(Survival::Everything),
            _ => (0..=chance.below(4)).map(|_| disk.crash()).last().unwrap_or_default(),
        };
        self.resume(image, bound, cut)
    }

    /// Compares a medium after a crash with the model, and goes on from it.
    pub fn resume(&mut self, image: Image, bound: Bound, cut: Option<u8>) -> Result<(), String> {
        let survey = self.inspect(&image, bound)?;
        self.run = None;
        self.asked.clear();
        self.purging = None;
        self.trouble = None;
        self.crashed = true;
        self.errors_until = None;
        self.model.adopt(&survey);
        self.setup.slots = self.model.total;
        let (plan, seed) = (self.setup.plan.clone(), self.setup.seed + self.runs);
        self.disk_start = self.now();
        let mut disk = FaultyDisk::new(image, plan, seed, self.clock.clone());
        if let Some(cut) = cut {
            disk.cut_after(u64::from(cut.max(1)));
        }
        self.start(disk)
    }

    /// Compares a medium after a crash with the model.
    pub fn inspect(&self, image: &Image, bound: Bound) -> Result<Survey, String> {
        let survey = survey(image).map_err(|e| format!("no recovery: {e}"))?;
        self.model.allows(&survey, bound)?;
        Ok(survey)
    }

    /// A world of its own that goes on from one outcome of the crash of this one.
    pub fn fork(&self, image: Image, bound: Bound, cut: Option<u8>) -> Result<Self, String> {
        let mut other = Self {
            setup: self.setup.clone(),
            model: self.model.clone(),
            clock: holdfast_base::ManualClock::new(self.now()),
            seed: self.seed.clone(),
            run: None,
            superblock: self.superblock.clone(),
            sources: self.sources.clone(),
            asked: self.asked.clone(),
            given: self.given.clone(),
            next_content: None,
            purging: self.purging.clone(),
            ..*self
        };
        other.resume(image, bound, cut)?;
        Ok(other)
    }

    pub(super) fn death(&mut self, span: Duration) -> Result<(), String> {
        self.power = Power::Away;
        self.note_trouble(span);
        self.disk()?.die();
        self.pass(span)?;
        self.disk()?.come_back();
        self.power = Power::On;
        Ok(())
    }

    /// The disk is there and answers every write with an error.
    pub(super) fn outage(&mut self, span: Duration) -> Result<(), String> {
        self.model.outages = true;
        self.note_trouble(span);
        self.disk()?.plan_mut().unwritable.push(0..u64::MAX);
        self.pass(span)?;
        self.disk()?.plan_mut().unwritable.pop();
        Ok(())
    }

    /// The device fails from here on until [`World::device_returns`]: it answers every write with an error, or is
    /// `gone` for everything.
    pub fn device_fails(&mut self, gone: bool) -> Result<(), String> {
        // Until it is known to be over.
        self.note_trouble(Duration::from_hours(1));
        if gone {
            self.power = Power::Away;
            self.disk()?.die();
        } else {
            self.disk()?.plan_mut().unwritable.push(0..u64::MAX);
        }
        Ok(())
    }

    /// Ends what [`World::device_fails`] began.
    pub fn device_returns(&mut self) -> Result<(), String> {
        self.note_trouble(Duration::ZERO);
        self.disk()?.plan_mut().unwritable.clear();
        self.disk()?.come_back();
        self.power = Power::On;
        Ok(())
    }

    /// Records one element if there is room for it now: nothing is waited for, as for a source that drops.
    pub fn offer(&mut self, stream: u8, bytes: u32) -> Result<bool, String> {
        let recorder = self.recorder()?;
        if recorder.open().is_none() || recorder.room() < bytes as usize {
            self.seal(SlotFlags::default())?;
            let Some(sequence) = self.recorder()?.open_slot() else { return Ok(false) };
            self.model.open(sequence.0)?;
        }
        self.element(stream, bytes, false)
    }

    /// When the disk was made: what its stalls are counted from.
    pub fn disk_start(&self) -> Timestamp {
        self.disk_start
    }
}
