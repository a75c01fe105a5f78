//! A refusal in words: which term fails, and the single changes that would each do, as options to be typed.

use super::region::{self, Region};
use super::{Admitted, Ask, Candidate, Refusal, choose};
use crate::failure::{Failure, Result};
use crate::times;
use holdfast_base::{ByteSize, Rate};
use holdfast_format::Measured;
use holdfast_media::Profile;
use holdfast_ring::{Advice, Refused, advise};

/// The share of the packer's rate that may be promised, of bytes as of elements.
const PACKED: f64 = 0.8;

/// Where the ring is to be.
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

    /// Admits what is asked, or says why not and what would do.
    pub(crate) fn admit(&self, ask: &Ask) -> Result<Admitted> {
        let admitted =
            choose(&self.measured, self.lane(), ask).map_err(|refusal| self.refused(&refusal, ask))?;
        let most = self.packed();
        if ask.rate > most {
            let packs = self.profile.packer_bytes;
            return Err(Failure::failed(format_args!(
                "not admitted: the packer was measured to manage {packs} on that machine, of which 80 % may be promised"
            ))
            .advice(format_args!("--rate {} would do", typed(&most))));
        }
        Ok(admitted)
    }

    /// The most that the packer may be relied on for.
    fn packed(&self) -> Rate {
        shown_down(Rate((self.profile.packer_bytes.0 as f64 * PACKED) as u64))
    }

    /// The refusal as a failure.
    fn refused(&self, refusal: &Refusal, ask: &Ask) -> Failure {
        match refusal {
            Refusal::TooSmall { slot, lane } => {
                let lane = lane.shown_up();
                let there = ByteSize(self.lane());
                Failure::failed(format_args!(
                    "{there} are too little for a guarantee: it takes slots of {slot} on this device, and with these a ring of {lane}"
                ))
                .advice(format_args!("use {lane} or more"))
            }
            Refusal::Refused(candidate, refused) => {
                let ways = self.ways(candidate, ask);
                let what = format!("not admitted: {}", self.in_words(refused));
                let failure = Failure::failed(what);
                match &ways[..] {
                    [] => {
                        failure.advice("nothing that could be changed alone would do: choose a faster device")
                    }
                    [one] => failure.advice(format_args!("{one} would do")),
                    [most @ .., last] => {
                        failure.advice(format_args!("each of these would do: {}, or {last}", most.join(", ")))
                    }
                }
            }
        }
    }

    /// What the inequality says, and of what.
    fn in_words(&self, refused: &Refused) -> String {
        let text = match *refused {
            Refused::Memory { needed, memory, buffers, wait, stall } => {
                let stall = if stall.is_zero() {
                    String::new()
                } else {
                    format!(", {} while the device stands still", times::spoken(stall))
                };
                format!(
                    "it takes {needed} slot buffers ({memory}) to wait up to {} for a read{stall}, and for a burst, but \
                     there is memory for {buffers}",
                    times::spoken(wait)
                )
            }
            _ => refused.to_string(),
        };
        if self.region == Region::WHOLE {
            return text;
        }
        format!("{text} (in the first {} % of the device)", self.region.0)
    }

    /// The single changes. Each was tried.
    fn ways(&self, candidate: &Candidate, ask: &Ask) -> Vec<String> {
        let known = |percent| region::known(self.profile, self.total, Region(percent));
        let Candidate { load, shape } = candidate;
        let mut ways = Vec::new();
        ways.extend(self.rate(ask).map(|rate| format!("--rate {}", typed(&rate))));
        ways.extend(self.elements(ask).map(|elements| format!("--elements {elements}")));
        for advice in advise(&self.measured, load, shape, known) {
            match advice {
                // Looked for above, with the slots that these would have.
                Advice::Rate(_) | Advice::Elements(_) => {}
                Advice::Slot(slot) => {
                    let way = format!("--slot {}", typed(&slot));
                    ways.extend(self.would(&Ask { slot: Some(slot), ..*ask }).then_some(way));
                }
                Advice::Buffers(buffers, memory) => {
                    let memory = memory.shown_up();
                    let way = format!("--memory {} ({buffers} buffers)", typed(&memory));
                    ways.extend(self.would(&Ask { memory: Some(memory), ..*ask }).then_some(way));
                }
                Advice::Region(percent) => {
                    let lane = region::bytes(self.profile, self.total, Region(percent));
                    let would = known(percent).is_some_and(|measured| choose(&measured, lane, ask).is_ok());
                    ways.extend(would.then(|| format!("--region 0..{percent}%")));
                }
            }
        }
        ways.extend(self.gather(ask).map(|gather| format!("--gather {gather}")));
        ways.extend(self.larger_slot(&ways, ask));
        ways
    }

    /// The highest rate of payload that is admitted, as far as it is shown.
    fn rate(&self, ask: &Ask) -> Option<Rate> {
        let low = self.most(ask.rate.0, |rate| Ask { rate: Rate(rate), ..*ask });
        let shown = shown_down(Rate(low)).min(self.packed());
        (shown.0 > 0).then_some(shown)
    }

    /// The most elements a second, where so many were declared.
    fn elements(&self, ask: &Ask) -> Option<u64> {
        let most = self.most(ask.elements?, |elements| Ask { elements: Some(elements), ..*ask });
        (most > 0).then_some(most)
    }

    /// The largest number below one that is not admitted, with which what is asked would be; 0 for none.
    fn most(&self, refused: u64, with: impl Fn(u64) -> Ask) -> u64 {
        let (mut low, mut high) = (0, refused);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.would(&with(middle)) { low = middle } else { high = middle }
        }
        low
    }

    /// Whether what is asked would be admitted in this region, the slots that the lane has of that size counted.
    fn would(&self, ask: &Ask) -> bool {
        choose(&self.measured, self.lane(), ask).is_ok()
    }

    /// Fewer slots in one go, where somebody asked for so many.
    fn gather(&self, ask: &Ask) -> Option<u16> {
        let asked = ask.gather?;
        let others = [4, 2, 1].into_iter().filter(|gather| *gather < asked);
        others.into_iter().find(|gather| self.would(&Ask { gather: Some(*gather), ..*ask }))
    }

    /// Leaving the choice of the slots to us, where somebody asked for smaller ones than would do.
    fn larger_slot(&self, ways: &[String], ask: &Ask) -> Option<String> {
        ask.slot.filter(|_| !ways.iter().any(|way| way.starts_with("--slot")))?;
        let admitted = choose(&self.measured, self.lane(), &Ask { slot: None, ..*ask }).ok()?;
        Some(format!("--slot {}", typed(&admitted.shape.slot)))
    }
}

/// A size or rate without the space, as it can be typed.
fn typed(amount: &impl ToString) -> String {
    amount.to_string().replace(' ', "")
}

/// A rate that is shown as it is, and no higher.
fn shown_down(rate: Rate) -> Rate {
    let up = ByteSize(rate.0).shown_up();
    if up.0 == rate.0 {
        return rate;
    }
    let unit = 1u64 << (10 * (rate.0.max(1).ilog2() / 10).min(5));
    let tenths = (u128::from(rate.0) * 10 / u128::from(unit)) as u64;
    // Rounded up to whole bytes below a tenth, it would be read as more.
    Rate((tenths * unit).div_euclid(10))
}

#[cfg(test)]
mod tests {
    use super::super::tests::ask;
    use super::*;
    use crate::profile_file::tests::paper;

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
                 5.158s (98 % of the time may be promised); 48.6 MiB/s would be admitted: each of these would do: \
                 --rate 48.5MiB/s, or --region 0..80%",
            ),
            (80, ask(500), ": --rate 62.9MiB/s would do"),
            (80, ask(65), "--rate 62.9MiB/s, or --region 0..45%"),
            (80, Ask { slot: Some(mib(64)), ..ask(62) }, "--slot 128MiB"),
            (80, Ask { slot: Some(mib(32)), ..ask(20) }, "slots of 32 MiB are too small for a guarantee"),
            (
                80,
                Ask { memory: Some(mib(512)), ..ask(60) },
                "it takes 10 slot buffers (640 MiB) to wait up to 7.1 s for a read, and for a burst, but there is memory for 8 (in the first 80 % of the device): each of these would do: --rate 46.5MiB/s, or --memory 640MiB (10 buffers)",
            ),
            (80, Ask { memory: Some(mib(384)), gather: Some(4), ..ask(20) }, "--gather 2"),
            (80, Ask { elements: Some(10_000_000), ..ask(1) }, "--elements 1"),
        ] {
            let said = said(region, &ask);
            assert!(said.contains(wanted), "{said}");
        }
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
    fn larger_slots_are_offered_only_where_the_lane_has_enough_of_them() {
        let (slot, gather) = (Some(mib(4)), Some(7));
        let ask = Ask {
            rate: Rate(1 << 16),
            elements: Some(3921),
            burst: mib(1321),
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
        assert!(said.contains("manage 30 MiB/s") && said.ends_with("--rate 24MiB/s would do"), "{said}");
        let said = site.admit(&ask(65)).unwrap_err().to_string();
        assert!(said.contains("--rate 24MiB/s"), "{said}");
    }

    #[test]
    fn a_rate_is_shown_no_higher_than_it_is() {
        for rate in [0, 1, 1023, 1024, 1025, (60 << 20) + 5, 62 << 20, 123_456_789, u64::MAX] {
            let shown = shown_down(Rate(rate));
            assert!(shown.0 <= rate && rate - shown.0 <= rate / 10, "{rate} {shown}");
            let read: Rate = shown.to_string().parse().unwrap();
            assert!(read.0 <= rate, "{rate} {shown} {read:?}");
        }
    }
}
