//! Pins of simulated clients: how many are granted. The model decides what they keep from expiring.

use super::World;
use crate::model::Stage;
use holdfast_base::Sequence;

impl World {
    /// A client pins slots, from the oldest on that nothing holds, leaving out so many, so many; none if it goes.
    pub fn pin(&mut self, client: u64, skip: usize, count: usize) -> Result<(), String> {
        self.look()?;
        let mut there: Vec<(u64, u64)> = self
            .model
            .alive()
            .filter(|(sequence, slot)| {
                let sound = matches!(slot.stage, Stage::Written(_)) && !slot.damaged;
                sound && !self.model.may_be_kept(*sequence)
            })
            .map(|(sequence, slot)| (slot.age, sequence))
            .collect();
        there.sort_unstable();
        let wanted: Vec<u64> =
            there.into_iter().skip(skip).take(count).map(|(_, sequence)| sequence).collect();
        // What is nowhere may be named, too.
        let sequences = wanted.iter().copied().chain([0, u64::MAX].into_iter().take(wanted.len()));
        let (asked, total) = (sequences.map(Sequence).collect(), self.model.total);
        let (granted, _) = self.recorder()?.driver.ring_mut().pin(client, asked);
        self.model.pins.insert(client, wanted.iter().copied().collect());
        self.model.pins.retain(|_, slots| !slots.is_empty());
        let (clients, budget) = (self.model.pins.len().max(1), (total as usize / 20).max(1));
        let (granted, fair) = (granted as usize, wanted.len().min(budget / clients));
        if granted > wanted.len() || granted > budget || granted < fair {
            return Err(format!("{granted} of {wanted:?} are granted, {fair} at least, {budget} at most"));
        }
        self.look()
    }
}
