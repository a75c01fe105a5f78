//! `holdfast plan`: what a measured device would be admitted for, and what follows from it. Nothing is opened but the
//! profile.

use crate::args::LoadArgs;
use crate::out::Out;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, FLUSH_LIMITS, clean};
use holdfast_client::times;
use holdfast_media::Profile;
use holdfast_planning::plan::{LoadOptions, Plan, text};
use holdfast_planning::profile_notes;
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
    let options = LoadOptions { flush: args.flush, ..more.options(*rate, args.slot) };
    options.ask()?;
    if args.endurance == Some(ByteSize(0)) {
        return Err(Failure::usage("no device endures nothing")
            .at("--endurance")
            .advice("give what its maker states, such as 600TB"));
    }
    let Plan { profile, ask, answer } = Plan::of_profile(path, &options, args.size, args.endurance)?;
    if out.is_json() {
        return out.object(&answer);
    }
    out.line(format_args!("{}: {}", clean(&path.to_string_lossy()), device(&profile)))?;
    for (what, text) in text::lines(&answer, &ask) {
        out.line(format_args!("{what:<16} {text}"))?;
    }
    for note in profile_notes(&profile) {
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
