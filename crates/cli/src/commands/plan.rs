//! `holdfast plan`: what a measured device would be admitted for, and what follows from it. Nothing is opened but the
//! profile.

use crate::out::Out;
use crate::plan::answer::Answer;
use crate::plan::refusal::Site;
use crate::plan::region::{self, Region};
use crate::plan::{Ask, text};
use crate::profile_file;
use holdfast_attributes::Schema;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, FLUSH_LIMITS, MAX_STREAMS, Rate, UnitError};
use holdfast_client::times;
use holdfast_format::Geometry;
use holdfast_ingest::Framing;
use holdfast_media::Profile;
use holdfast_ring::least_slot;
use std::path::PathBuf;
use std::time::Duration;

/// Compute the guarantee of a measured device: rate, memory, reads, reach, wear
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "Sizes that are not given are chosen, and marked so. A rate that is too high is refused with exit\n\
    code 1, the reason, and admissible values. docs/guarantee.md explains every figure.\n\n\
    Examples:\n  holdfast plan --profile sdb.profile.json --rate 60MiB/s\n  \
    holdfast plan --profile sdb.profile.json --rate 60MiB/s --elements 40000 --region 0..80%\n  \
    holdfast plan --profile sdb.profile.json --rate 60MiB/s --burst 500MiB --endurance 600TB"
)]
pub(crate) struct Args {
    #[command(flatten)]
    load: LoadArgs,
    /// Slot size, a power of two from 8MiB to 256MiB
    #[arg(long, value_name = "SIZE")]
    slot: Option<ByteSize>,
    /// Longest time between journal commits of the open slot
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = flush)]
    flush: Duration,
    /// Size of the ring (default: the whole device)
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
    /// Manufacturer's limit on bytes written over the life of the device
    #[arg(long, value_name = "SIZE")]
    endurance: Option<ByteSize>,
}

/// What is declared, and how it is to be carried: as `format` has it, too.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LoadArgs {
    /// Profile of the device, from `holdfast profile`
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: PathBuf,
    /// Payload rate of all streams together
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Rate,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
}

/// What may be said beside the rate.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MoreArgs {
    /// Elements a second of all streams together (default: elements of 64 KiB)
    #[arg(long, requires = "profile", value_name = "N", value_parser = each_second)]
    pub(crate) elements: Option<u64>,
    /// Framing as in `record`; fixed:N states the element size, and a single stream of such elements takes
    /// less room
    #[arg(long, requires = "profile", value_name = "FRAMING")]
    pub(crate) frame: Option<Framing>,
    /// Number of streams
    #[arg(long, requires = "profile", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MAX_STREAMS as i64))]
    pub(crate) streams: u16,
    /// Payload that may arrive at once beyond the rate
    #[arg(long, requires = "profile", value_name = "SIZE", default_value = "0")]
    pub(crate) burst: ByteSize,
    /// Attribute of every element, as in `record`; may be repeated
    #[arg(long = "attr", requires = "profile", value_name = "ATTRIBUTE")]
    pub(crate) attributes: Vec<String>,
    /// Full slots written in one go while a reader is active
    #[arg(long, requires = "profile", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) gather: Option<u16>,
    /// Largest read that starts at once
    #[arg(long, requires = "profile", value_name = "SIZE")]
    pub(crate) quantum: Option<ByteSize>,
    /// Memory for slot buffers (default: as needed)
    #[arg(long, requires = "profile", value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Part of the device to use, from its beginning, such as 0..80%
    #[arg(long, requires = "profile", value_name = "REGION", default_value = "0..100%")]
    pub(crate) region: Region,
}

impl MoreArgs {
    /// All that is asked.
    pub(crate) fn ask(&self, rate: Rate, slot: Option<ByteSize>) -> Result<Ask> {
        if rate.0 == 0 {
            return Err(Failure::usage("a rate of 0 needs no guarantee")
                .at("--rate")
                .advice("give the payload, such as 60MiB/s"));
        }
        if self.quantum.is_some_and(|quantum| !(4096..=1 << 30).contains(&quantum.0)) {
            return Err(Failure::usage("reads have 4KiB to 1GiB")
                .at("--quantum")
                .advice("leave it out, or give such as 8MiB"));
        }
        let schema = Schema::typed(&self.attributes).map_err(|error| Failure::usage(error).at("--attr"))?;
        let size = match self.frame {
            Some(Framing::Fixed(bytes)) => Some(bytes),
            _ => None,
        };
        // Beside others they are not alone in their chunks.
        let frame = size.filter(|_| self.streams == 1).and_then(|bytes| bytes.try_into().ok());
        Ok(Ask {
            rate,
            elements: self.elements,
            size,
            burst: self.burst,
            streams: self.streams.into(),
            each: schema.load(frame),
            slot,
            gather: self.gather,
            quantum: self.quantum,
            memory: self.memory,
            flush: crate::plan::FLUSH,
        })
    }
}

/// A number a second: the unit may be said.
fn each_second(text: &str) -> std::result::Result<u64, UnitError> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text).trim().parse().ok();
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| UnitError::new("number a second", text, "such as 20000"))
}

/// A flush interval that `record` takes.
fn flush(text: &str) -> std::result::Result<Duration, String> {
    let (least, most) = FLUSH_LIMITS;
    let span = times::span(text).map_err(|error| error.to_string())?;
    let within = (least..=most).contains(&span).then_some(span);
    within.ok_or_else(|| format!("give {} to {}", times::spoken(least), times::spoken(most)))
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let LoadArgs { profile: path, rate, more } = &args.load;
    let ask = Ask { flush: args.flush, ..more.ask(*rate, args.slot)? };
    if args.endurance == Some(ByteSize(0)) {
        return Err(Failure::usage("no device endures nothing")
            .at("--endurance")
            .advice("give what its maker states, such as 600TB"));
    }
    let profile = profile_file::read(path)?;
    let total = args.size.map_or(profile.device.bytes.0, |size| size.0);
    let at = |failure: Failure| failure.at_path(path);
    let measured = region::covered(&profile, total, more.region).map_err(at)?;
    let site = Site { profile: &profile, measured, total, region: more.region };
    // What of smaller slots is wrong, the inequality says.
    if let Some(slot) = args.slot.filter(|slot| *slot >= least_slot(&measured)) {
        Geometry::for_lane(site.lane(), slot.0, Vec::new())
            .map_err(|error| Failure::usage(error).at("--slot"))?;
    }
    let admitted = site.admit(&ask).map_err(at)?;
    let answer = Answer::new(&site, &ask, &admitted, args.endurance);
    if out.is_json() {
        return out.object(&answer);
    }
    out.line(format_args!("{}: {}", clean(&path.to_string_lossy()), device(&profile)))?;
    for (what, text) in text::lines(&answer, &ask) {
        out.line(format_args!("{what:<16} {text}"))?;
    }
    for note in notes(&profile) {
        out.line(format_args!("{:<16} {}", "note", clean(&note)))?;
    }
    out.line("\nSlots that are written in one go while somebody reads:")?;
    out.table(&text::by_gather(&answer))?;
    out.line("\nThe whole device, or a part of it:")?;
    out.table(&text::by_region(&answer))
}

/// The device in a line.
fn device(profile: &Profile) -> String {
    let device = &profile.device;
    let name = if device.model.is_empty() { &device.path } else { &device.model };
    let serial = if device.serial.is_empty() { String::new() } else { format!(" {}", clean(&device.serial)) };
    format!("{}{serial}, {}, measured {}", clean(name), device.bytes, times::to_the_second(profile.at))
}

/// What a person should know before relying on a profile.
pub(crate) fn notes(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if let holdfast_media::ReadError::Assumed(limit) = profile.read_error {
        notes.push(format!(
            "how long it tries to read a bad place is not known: {} are assumed",
            times::spoken(limit)
        ));
    }
    let turns = profile.device.rotational;
    if turns != Some(false) {
        notes.push(
            "a shingled drive (overlapping tracks, SMR) that hides it looks like any other, and can be promised nothing: \
             the maker's data sheet tells"
                .to_owned(),
        );
    }
    // Where there is a head, a place takes as long before it was written.
    if !profile.preconditioned && turns != Some(true) {
        notes.push(
            "not every place had been written before it was measured: a flash device looks too fast then"
                .to_owned(),
        );
    }
    if profile.write_cache == Some(true) {
        let what = "it has a volatile write cache: every slot waits until that is flushed, which was measured with it";
        notes.push(what.to_owned());
    }
    notes.extend(profile.remarks.iter().cloned());
    notes
}
