//! A refusal in words: which term fails, and the single changes that would each do, as options to be typed.

use super::region::{self, Region};
use super::{Admitted, Ask, Packs, Refusal, choose};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, MAX_SLOT, MIN_GUARANTEED_SLOT, typed};
use holdfast_client::times;
use holdfast_format::Measured;
use holdfast_media::Profile;
use holdfast_ring::{Guarantee, Refused, each_would_do, least_above, most_below, most_rate, other_slots};

/// No larger ring is looked for.
const MAX_RING: u64 = 1 << 60;

/// Where the ring is to be.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) profile: &'a Profile,
    /// What was measured of the region.
    pub(crate) measured: Measured,
    /// Bytes of the device or file.
    pub(crate) total: u64,
    pub(crate) region: Region,
}

impl Site<'_> {
    /// Bytes of the region.
    pub(crate) fn lane(&self) -> u64 {
        region::bytes(self.profile, self.total, self.region)
    }

    /// What the packer may be relied on for.
    pub(crate) fn packs(&self) -> Packs {
        Packs::profiled(&self.measured, self.profile)
    }

    /// Admits what is asked, or says why not and what would do.
    pub(crate) fn admit(&self, ask: &Ask) -> Result<Admitted> {
        let admitted =
            choose(&self.measured, self.lane(), ask).map_err(|refusal| self.refused(&refusal, ask))?;
        if ask.rate > self.packs().bytes {
            let what = format!("not admitted: {}", self.packer());
            return Err(advised(what, &self.rate(ask).into_iter().collect::<Vec<_>>()));
        }
        Ok(admitted)
    }

    /// The refusal as a failure.
    fn refused(&self, refusal: &Refusal, ask: &Ask) -> Failure {
        match refusal {
            Refusal::TooSmall { slot, takes, .. } => {
                let mut ways = self.ways(ask);
                ways.extend(self.size(ask).map(|size| format!("{size} or more for the ring")));
                let what =
                    format!("not admitted: {}{}", self.too_small(*slot, takes.as_ref()), self.of_what());
                advised(what, &ways)
            }
            Refusal::Refused(_, refused) => {
                let all = self.with_what_else(refused, ask);
                advised(format!("not admitted: {}{}", all.join("; and "), self.of_what()), &self.ways(ask))
            }
        }
    }

    /// What the inequality says, and what else would: each term that the advice is about.
    fn with_what_else(&self, refused: &Refused, ask: &Ask) -> Vec<String> {
        let mut all = vec![in_words(refused)];
        if let Refused::Elements { most, .. } = *refused {
            match choose(&self.measured, self.lane(), &Ask { elements: Some(most), ..*ask }) {
                Err(Refusal::Refused(_, refused)) => {
                    all.push(format!("with so many, {}", in_words(&refused)));
                }
                Err(Refusal::TooSmall { slot, lane, .. }) => {
                    let region = if self.region == Region::WHOLE { "ring" } else { "region" };
                    let lane = lane.shown_up();
                    all.push(format!("with so many, it takes slots of {slot}, and a {region} of {lane}"));
                }
                Ok(_) => {}
            }
        }
        if ask.rate > self.packs().bytes {
            all.push(self.packer());
        }
        all
    }

    /// What a lane is too small for: before a place is overwritten the journal names it, with others for all buffers.
    fn too_small(&self, slot: ByteSize, takes: Option<&Guarantee>) -> String {
        let little = format!("{} are too little for a guarantee", ByteSize(self.lane()));
        match takes {
            None => format!("{little} in slots of {slot}"),
            Some(Guarantee { buffers, wait, .. }) => {
                let stall = self.measured.stall;
                let stall = if stall.is_zero() {
                    String::new()
                } else {
                    format!(", {} while the device stands still", times::spoken_up(stall))
                };
                format!(
                    "{little} of that load: it takes {buffers} slot buffers of {slot} to wait up to {} for a read{stall}, and for a \
                     burst, and the places of as many slots are named before they are overwritten",
                    times::spoken_up(*wait)
                )
            }
        }
    }

    /// What of the packer is too little for the rate.
    fn packer(&self) -> String {
        let packs = self.profile.packer_bytes;
        format!("the packer was measured to manage {packs} on that machine, of which 80 % may be promised")
    }

    /// Of what that is said.
    fn of_what(&self) -> String {
        if self.region == Region::WHOLE {
            return String::new();
        }
        format!(" (in the first {} % of the device)", self.region.0)
    }
}

/// What the inequality says.
fn in_words(refused: &Refused) -> String {
    match *refused {
        Refused::Memory { needed, memory, buffers, wait, stall } => {
            let stall = if stall.is_zero() {
                String::new()
            } else {
                format!(", {} while the device stands still", times::spoken_up(stall))
            };
            format!(
                "it takes {needed} slot buffers ({memory}) to wait up to {} for a read{stall}, and for a burst, but \
                     there is memory for {buffers}",
                times::spoken_up(wait)
            )
        }
        _ => refused.to_string(),
    }
}

impl Site<'_> {
    /// The single changes. Each was tried, and none that is nearer would do.
    fn ways(&self, ask: &Ask) -> Vec<String> {
        let ways = [
            self.rate(ask),
            self.elements(ask),
            self.burst(ask),
            self.slot(ask),
            self.memory(ask),
            self.nearest_region(ask),
            self.gather(ask),
            self.plain(ask),
        ];
        let mut ways: Vec<String> = ways.into_iter().flatten().collect();
        if ways.is_empty() {
            ways.extend(self.larger(ask));
        }
        ways
    }

    /// Whether what is asked would be admitted in this region, the slots that the lane has of that size counted.
    fn would(&self, ask: &Ask) -> bool {
        ask.rate <= self.packs().bytes && choose(&self.measured, self.lane(), ask).is_ok()
    }

    /// No attributes, where there are some.
    fn plain(&self, ask: &Ask) -> Option<String> {
        let plain = Ask { each: ask.each.plain(), ..*ask };
        (ask.each.columns > 0 && self.would(&plain)).then(|| "--attr none".to_owned())
    }

    /// The highest rate of payload.
    fn rate(&self, ask: &Ask) -> Option<String> {
        let most = most_rate(ask.rate, |rate| self.would(&Ask { rate, ..*ask }))?;
        Some(format!("--rate {}", typed(most)))
    }

    /// The most elements a second, where so many were declared.
    fn elements(&self, ask: &Ask) -> Option<String> {
        let most =
            most_below(ask.elements?, |elements| self.would(&Ask { elements: Some(elements), ..*ask }));
        (most > 0).then(|| format!("--elements {most}"))
    }

    /// The largest burst, where one was declared.
    fn burst(&self, ask: &Ask) -> Option<String> {
        let with = |burst| self.would(&Ask { burst: ByteSize(burst), ..*ask });
        let most = ByteSize(most_below(ask.burst.0, with)).shown_down();
        (ask.burst.0 > 0 && with(most.0)).then(|| format!("--burst {}", typed(most)))
    }

    /// Other slots, where somebody asked for these.
    fn slot(&self, ask: &Ask) -> Option<String> {
        let mut others = other_slots(ask.slot?.0, MIN_GUARANTEED_SLOT, MAX_SLOT).map(ByteSize);
        let slot = others.find(|slot| self.would(&Ask { slot: Some(*slot), ..*ask }))?;
        Some(format!("--slot {}", typed(slot)))
    }

    /// The least memory, where somebody limited it.
    fn memory(&self, ask: &Ask) -> Option<String> {
        let asked = ask.memory?;
        let ample = Ask { memory: None, ..*ask };
        let enough =
            choose(&self.measured, self.lane(), &ample).ok().filter(|_| self.would(&ample))?.memory();
        let with = |memory| Ask { memory: Some(memory), ..*ask };
        let least = least_above(asked.0, enough.0, |memory| self.would(&with(ByteSize(memory))));
        let admitted = choose(&self.measured, self.lane(), &with(ByteSize(least))).ok()?;
        // The least that would do is whole slots, and those are whole MiB: not one buffer more for the sake of a round number.
        let exact = ByteSize(least).shown_up().0 == least;
        let memory = if exact { typed(ByteSize(least)) } else { format!("{}MiB", least.div_ceil(1 << 20)) };
        Some(format!("--memory {memory} ({} buffers)", admitted.shape.buffers))
    }

    /// The largest smaller region.
    fn nearest_region(&self, ask: &Ask) -> Option<String> {
        let site = |percent| {
            let region = Region(percent);
            let measured = region::known(self.profile, self.total, region)?;
            Some(Site { measured, region, ..*self })
        };
        let smaller = (1..self.region.0).rev();
        let percent =
            smaller.into_iter().find(|percent| site(*percent).is_some_and(|site| site.would(ask)))?;
        Some(format!("--region 0..{percent}%"))
    }

    /// Another site of so many bytes. Where the profile ends, what is beyond is taken to be as what is before it.
    fn sized(&self, total: u64) -> Self {
        let measured = region::known(self.profile, total, self.region).unwrap_or(self.measured);
        Self { measured, total, ..*self }
    }

    /// The least ring.
    fn size(&self, ask: &Ask) -> Option<ByteSize> {
        let with = |total: u64| self.sized(total).would(ask);
        let doubled = std::iter::successors(Some(self.total), |total| total.checked_mul(2));
        let enough = doubled.skip(1).take_while(|total| *total <= MAX_RING).find(|total| with(*total))?;
        let least = ByteSize(least_above(self.total, enough, with));
        Some(least.shown_up()).filter(|shown| with(shown.0))
    }

    /// The least ring with other slots, where somebody asked for these.
    fn larger(&self, ask: &Ask) -> Option<String> {
        let ask = Ask { slot: ask.slot.and(None), ..*ask };
        let least = self.size(&ask)?;
        let site = self.sized(least.0);
        let slot = choose(&site.measured, site.lane(), &ask).ok()?.shape.slot;
        Some(format!("slots of {slot} in {least} or more for the ring"))
    }

    /// Fewer slots in one go, where somebody asked for so many.
    fn gather(&self, ask: &Ask) -> Option<String> {
        let asked = ask.gather?;
        let mut fewer = (1..asked).rev();
        let gather = fewer.find(|gather| self.would(&Ask { gather: Some(*gather), ..*ask }))?;
        Some(format!("--gather {gather}"))
    }
}

/// A refusal with what would do instead.
fn advised(what: String, ways: &[String]) -> Failure {
    let nothing = || "no single change is admissible: choose a faster device".to_owned();
    Failure::failed(what).advice(each_would_do(ways).unwrap_or_else(nothing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::ask;
    use crate::profile_file::tests::paper;
    use holdfast_base::Rate;
    use holdfast_media::Zone;

    fn mib(number: u64) -> ByteSize {
        ByteSize::mib(number)
    }

    /// The refusal in words; nothing where it is admitted.
    fn said(region: u8, ask: &Ask) -> String {
        let profile = paper();
        let total = profile.device.bytes.0;
        let measured = region::known(&profile, total, Region(region)).unwrap();
        let site = Site { profile: &profile, measured, total, region: Region(region) };
        let Err(failure) = site.admit(ask) else { return String::new() };
        let said = failure.to_string();
        // Promise 8: what is offered would do, as it stands there.
        let words: Vec<&str> = said.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0].starts_with("--")) {
            let (option, value) = (pair[0], pair[1].trim_end_matches(','));
            let (mut other, mut percent) = (*ask, region);
            match option {
                "--rate" => other.rate = value.parse().unwrap(),
                "--elements" => other.elements = value.parse().ok(),
                "--slot" => other.slot = value.parse().ok(),
                "--burst" => other.burst = value.parse().unwrap(),
                "--memory" => other.memory = value.parse().ok(),
                "--gather" => other.gather = value.parse().ok(),
                "--region" => percent = value.parse::<Region>().unwrap().0,
                other => panic!("{other}"),
            }
            let measured = region::known(&profile, total, Region(percent)).unwrap();
            let site = Site { profile: &profile, measured, total, region: Region(percent) };
            assert!(
                site.admit(&other).is_ok(),
                "{option} {value} of {said}: {}",
                site.admit(&other).unwrap_err()
            );
            // And what is nearer would not.
            let mut nearer = other;
            let farther = |amount: u64| amount + amount / 8 + 1;
            match option {
                "--rate" => nearer.rate = Rate(farther(other.rate.0).min(ask.rate.0)),
                "--elements" => nearer.elements = other.elements.map(|elements| elements + 1),
                "--region" => percent += 1,
                "--burst" => nearer.burst = ByteSize(farther(other.burst.0).min(ask.burst.0)),
                "--memory" => nearer.memory = other.memory.map(|memory| ByteSize(memory.0 - memory.0 / 8)),
                _ => continue,
            }
            let measured = region::known(&profile, total, Region(percent)).unwrap();
            let site = Site { measured, region: Region(percent), ..site };
            assert!(site.admit(&nearer).is_err(), "{option}: more than {value} of {said}");
        }
        said
    }

    #[test]
    fn each_refusal_names_the_term_and_what_would_do() {
        for (region, ask, wanted) in [
            (
                100,
                ask(60),
                "not admitted: 60.1 MiB/s on the medium is too fast: a slot fills in 4.258s, and writing one takes up to \
                 5.158s (98 % of the time may be promised); 48.6 MiB/s would be admitted: admissible instead: \
                 --rate 48.5MiB/s, or --region 0..80%",
            ),
            (80, ask(500), ": admissible instead: --rate 62.9MiB/s"),
            (80, ask(65), "--rate 62.9MiB/s, or --region 0..45%"),
            (80, Ask { slot: Some(mib(64)), ..ask(62) }, "--slot 128MiB"),
            (80, Ask { slot: Some(mib(4)), ..ask(2) }, "slots of 4 MiB are too small for a guarantee"),
            (80, Ask { slot: Some(mib(32)), ..ask(40) }, "counted on in slots so small"),
            (
                80,
                Ask { memory: Some(mib(512)), ..ask(60) },
                "it takes 10 slot buffers (640 MiB) to wait up to 7.2 s for a read, and for a burst, but there is memory for 8 (in the first 80 % of the device): admissible instead: --rate 46.5MiB/s, or --memory 640MiB (10 buffers)",
            ),
            (
                80,
                Ask { memory: Some(mib(640)), burst: mib(2000), ..ask(40) },
                "admissible instead: --burst 181.4MiB, or --memory 2496MiB",
            ),
            (80, Ask { memory: Some(mib(320)), gather: Some(4), ..ask(20) }, "--gather 3"),
            (80, Ask { elements: Some(10_000_000), ..ask(1) }, "; and with so many, "),
            (80, Ask { elements: Some(10_000_000), ..ask(1) }, " on the medium is too fast"),
            (80, Ask { elements: Some(10_000_000), ..ask(1) }, "--elements 1"),
        ] {
            let said = said(region, &ask);
            assert!(said.contains(wanted), "{said}");
        }
    }

    #[test]
    fn a_lane_that_is_too_small_is_refused_with_the_term_and_what_would_do() {
        let mut profile = paper();
        let total = 5 << 30;
        profile.device.bytes = ByteSize(total);
        for zone in &mut profile.zones {
            (zone.offset, zone.bytes) = (0, total);
        }
        profile.zones.truncate(1);
        let measured = region::known(&profile, total, Region::WHOLE).unwrap();
        let site = Site { profile: &profile, measured, total, region: Region::WHOLE };
        let large = Ask { slot: Some(mib(64)), burst: mib(3000), ..ask(20) };
        let said = site.admit(&large).unwrap_err().to_string();
        for part in [
            "not admitted: 5 GiB are too little for a guarantee of that load: it takes ",
            " slot buffers of 64 MiB to wait up to 7.2 s for a read, and for a burst, and the places of as many slots are named",
            "admissible instead: --burst ",
            " GiB or more for the ring",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let word = |option: &str| said.split(option).nth(1).unwrap().split([',', ' ']).next().unwrap();
        let less = Ask { burst: word("--burst ").parse().unwrap(), ..large };
        assert!(site.admit(&less).is_ok() && less.burst.0 > 0, "{said}");
        let offered: ByteSize =
            said.rsplit(", or ").next().unwrap().split(" or more").next().unwrap().parse().unwrap();
        let larger = Site { total: offered.0, ..site };
        assert!(larger.admit(&large).is_ok(), "{said}");
        let little = Site { total: 300 << 20, ..site };
        let said = little.admit(&ask(1)).unwrap_err().to_string();
        assert!(said.contains("300 MiB are too little for a guarantee in slots of 8 MiB: "), "{said}");
    }

    /// What is offered as a ring's size is enough, in its region and for bursts, too; and an eighth less is not.
    #[test]
    fn the_size_that_is_offered_is_enough_and_the_least() {
        let profile = paper();
        let mut offers = 0;
        for (region, total, burst) in [30, 80, 100].into_iter().flat_map(|region| {
            let sizes = [200, 300, 600, 1000, 3000];
            sizes.into_iter().flat_map(move |total| [0, 500, 2000].map(|burst| (region, total, burst)))
        }) {
            let ask = Ask { burst: mib(burst), ..ask(5) };
            let site = Site {
                profile: &profile,
                measured: paper_measured(region),
                total: total << 20,
                region: Region(region),
            };
            let Err(failure) = site.admit(&ask) else { continue };
            let said = failure.to_string();
            let word = said.split(" or more for the ring").next().unwrap();
            let offered: Vec<&str> = word.rsplit(' ').take(2).collect();
            let least: ByteSize = format!("{}{}", offered[1], offered[0]).parse().unwrap();
            assert!(site.sized(least.0).admit(&ask).is_ok(), "{region} {total} {burst}: {said}");
            assert!(
                site.sized(least.0 - least.0 / 8).admit(&ask).is_err(),
                "{region} {total} {burst}: {said}"
            );
            offers += 1;
        }
        assert!(offers > 25, "{offers}");
    }

    fn paper_measured(region: u8) -> Measured {
        let profile = paper();
        region::known(&profile, profile.device.bytes.0, Region(region)).unwrap()
    }

    // Where neither other slots nor a larger ring would do alone, both are named.
    #[test]
    fn slots_and_a_ring_that_are_both_too_small_are_offered_together() {
        let profile = paper();
        let site =
            Site { profile: &profile, measured: paper_measured(80), total: 256 << 20, region: Region(80) };
        let said = site.admit(&Ask { slot: Some(mib(8)), ..ask(20) }).unwrap_err().to_string();
        let least =
            said.split("admissible instead: slots of 32 MiB in ").nth(1).unwrap_or_else(|| panic!("{said}"));
        let least: ByteSize = least.split(" or more").next().unwrap().replace(' ', "").parse().unwrap();
        assert!(site.sized(least.0).admit(&ask(20)).is_ok(), "{said}");
    }

    proptest::proptest! {
        // Promise 8, for whatever may be asked.
        #[test]
        fn whatever_is_offered_would_do(
            region in 1u8..=100, rate in 1u64..2000, elements in proptest::option::of(0u64..20_000_000), burst in 0u64..2000,
            slot in proptest::option::of(22u32..29), gather in proptest::option::of(1u16..10),
            memory in proptest::option::of(1u64..4000), streams in 1usize..20,
        ) {
            said(region, &Ask {
                rate: Rate(rate << 16), elements, burst: mib(burst), streams, slot: slot.map(|log2| ByteSize(1 << log2)),
                gather, memory: memory.map(mib), ..ask(1)
            });
        }
    }

    #[test]
    fn the_region_that_is_offered_ends_where_the_device_becomes_too_slow() {
        let mut profile = paper();
        let total = profile.device.bytes.0;
        let (fast, slow) = (profile.zones[0], *profile.zones.last().unwrap());
        let end = total / 100 * 43;
        profile.zones =
            vec![Zone { offset: 0, bytes: end, ..fast }, Zone { offset: end, bytes: total - end, ..slow }];
        let region = Region::WHOLE;
        let measured = region::known(&profile, total, region).unwrap();
        let site = Site { profile: &profile, measured, total, region };
        let said = site.admit(&ask(60)).unwrap_err().to_string();
        assert!(said.ends_with("or --region 0..43%"), "{said}");
    }

    #[test]
    fn larger_slots_are_offered_only_where_the_lane_has_enough_of_them() {
        let (slot, gather) = (Some(mib(4)), Some(7));
        let ask = Ask {
            rate: Rate(1 << 16),
            elements: Some(3921),
            burst: mib(8000),
            streams: 13,
            slot,
            gather,
            ..ask(1)
        };
        let said = said(1, &ask);
        assert!(!said.contains("--slot"), "{said}");
    }

    #[test]
    fn the_packer_is_relied_on_no_more_than_the_device() {
        let profile = Profile { packer_bytes: Rate(30 << 20), ..paper() };
        let (total, region) = (profile.device.bytes.0, Region(80));
        let measured = region::known(&profile, total, region).unwrap();
        let site = Site { profile: &profile, measured, total, region };
        assert!(site.admit(&ask(24)).is_ok());
        let said = site.admit(&ask(25)).unwrap_err().to_string();
        assert!(
            said.contains("manage 30 MiB/s") && said.ends_with("admissible instead: --rate 24MiB/s"),
            "{said}"
        );
        let said = site.admit(&ask(65)).unwrap_err().to_string();
        // The lane is named, and the packer, which is why no higher rate is offered.
        assert!(
            said.contains("too fast") && said.contains("; and the packer") && said.contains("--rate 24MiB/s"),
            "{said}"
        );
    }

    // Promise 8: the least memory, to a buffer; and the number that is asked for is the one that is offered.
    #[test]
    fn the_number_of_buffers_that_is_offered_is_the_least() {
        let profile = paper();
        let (total, region) = (profile.device.bytes.0, Region(80));
        let measured = region::known(&profile, total, region).unwrap();
        let site = Site { profile: &profile, measured, total, region };
        let number = |text: &str, before: &str| -> u32 {
            let (head, _) = text.split_once(before).unwrap();
            head.rsplit([' ', '(']).next().unwrap().parse().unwrap()
        };
        for (slot, gather, burst) in
            [(64, None, 40_000), (128, None, 40_960), (128, Some(4), 40_960), (256, None, 1)]
        {
            let slot = mib(slot);
            let ask =
                |memory| Ask { slot: Some(slot), gather, burst: mib(burst), memory: Some(memory), ..ask(60) };
            let said = site.admit(&ask(mib(512))).unwrap_err().to_string();
            let (takes, offered) = (number(&said, " slot buffers"), number(&said, " buffers)"));
            assert_eq!(takes, offered, "{said}");
            let with = |buffers: u32| site.admit(&ask(ByteSize(u64::from(buffers) * slot.0)));
            assert!(with(offered).is_ok_and(|admitted| admitted.shape.buffers == offered), "{said}");
            assert!(with(offered - 1).is_err(), "{said}");
        }
    }
}
