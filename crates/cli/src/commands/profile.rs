//! `holdfast profile`: measure a device, so that a rate can be promised.

use crate::commands::plan::notes;
use crate::identity;
use crate::out::Out;
use crate::packer_rate::{self, Packing};
use crate::picture;
use crate::plan::region::{self, Region};
use crate::plan::{Ask, Packs, slots};
use crate::profile_file;
use crate::progress;
use crate::subject::{self, Place};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, MAX_SLOT, Rate, SystemClock};
use holdfast_base::{clean, counted, grouped};
use holdfast_client::config;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_format::Measured;
use holdfast_media::{
    BySize, MAX_ZONES, Medium, Profile, ProfileError, ReadError, Subject, profile as measure_device,
};
use holdfast_ring::{admit, least_slot};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Slots for which the guarantee is shown: larger ones gain little.
const SLOT: u64 = 128 << 20;

/// Slots that are written in one go there.
const GATHER: u16 = 4;

/// The longest measurement, in minutes: a week.
const LONGEST: f64 = 7.0 * 24.0 * 60.0;

/// Measure a device: rates by place, repositioning, commits, stalls
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "An empty device or file is measured and overwritten completely; one with other contents is refused\n\
    without --destroy. In a ring without a recorder, only slots without data are written. Flash and\n\
    files are first written once, beyond --minutes. Stalls that are rarer than the measurement are not\n\
    seen: an hour is better than ten minutes.\n\n\
    Examples:\n  holdfast profile /dev/sdb --minutes 60\n  holdfast profile lab.hf -o lab.profile.json"
)]
pub(crate) struct Args {
    /// Device, file or ring, or a name from the configuration file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Output file, with the picture beside it (default: NAME.profile.json)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing profile and picture
    #[arg(long)]
    force: bool,
    /// Minutes to measure
    #[arg(long, value_name = "N", default_value = "10", value_parser = minutes)]
    minutes: Duration,
    /// Destroy existing contents
    #[arg(long)]
    destroy: bool,
    /// Zones to measure; more where neighbours differ
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=MAX_ZONES as i64 / 2))]
    zones: u16,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|minutes| (0.01..=LONGEST).contains(minutes));
    let number =
        number.ok_or_else(|| format!("`{text}` is not a number of minutes: give 0.01 to {LONGEST}"))?;
    Ok(Duration::from_secs_f64(number * 60.0))
}

#[derive(Serialize)]
struct Shown<'a> {
    profile: &'a Path,
    picture: &'a Path,
    device_bytes: u64,
    zones: usize,
    worst_write_bytes_per_second: u64,
    worst_read_bytes_per_second: u64,
    worst_reposition_seconds: f64,
    commit_seconds: f64,
    read_error_seconds: f64,
    stall_seconds: f64,
    stalled_share: f64,
    write_cache: Option<bool>,
    packer_elements_per_second: u64,
    packer_cells_per_second: u64,
    by_region: Vec<Promise>,
    notes: Vec<String>,
}

/// What a part of the device is good for.
#[derive(Serialize)]
struct Promise {
    region_percent: u8,
    region_bytes: u64,
    worst_write_bytes_per_second: u64,
    /// Of the largest slots that there could be, up to 128 MiB; `null` where none are large enough for a guarantee.
    slot_bytes: Option<u64>,
    capture_only_bytes_per_second: Option<u64>,
    with_reads_bytes_per_second: Option<u64>,
    /// The second, of payload.
    rate_bytes_per_second: Option<u64>,
    /// Of the slot buffers that it takes.
    memory_bytes: Option<u64>,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = config::ring(&args.path)?.path;
    let files = Files::new(args.out.as_deref(), &path, args.force)?;
    let place = subject::open(&path, args.destroy)?;
    let (ring, warnings) = (place.ring, place.warnings.clone());
    let found = measure(place, &path, args)?;
    profile_file::write(&files.profile, &found)?;
    let mut said = notes(&found);
    said.extend(warnings);
    if ring.is_none() {
        said.push("what was written is still there: `holdfast format` wants --force now".to_owned());
    }
    let total = found.device.bytes.0;
    let promises: Vec<Promise> =
        [100, 80].iter().filter_map(|percent| promise(&found, total, *percent)).collect();
    let table: Vec<[String; 8]> =
        std::iter::once(HEADS.map(str::to_owned)).chain(promises.iter().map(row)).collect();
    std::fs::write(&files.picture, picture::svg(&found, &table))
        .map_err(|error| Failure::io("cannot write the picture", &files.picture, &error))?;
    if out.is_json() {
        return out.object(&shown(&found, &files, promises, said));
    }
    tell(&found, &promises, out)?;
    for note in &said {
        out.line(format_args!("{:<16} {}", "note", clean(note)))?;
    }
    out.line(format_args!("{:<16} {}", "profile", files.profile.display()))?;
    out.line(format_args!("{:<16} {}", "picture", files.picture.display()))
}

/// Where the results go.
struct Files {
    profile: PathBuf,
    picture: PathBuf,
}

impl Files {
    /// As asked, or named after what is measured. What cannot be written is told before hours of measuring, not after.
    fn new(asked: Option<&Path>, measured: &Path, force: bool) -> Result<Self> {
        let stem = measured.file_stem().unwrap_or_default().to_string_lossy();
        let profile = asked.map_or_else(|| PathBuf::from(format!("{stem}.profile.json")), Path::to_path_buf);
        let picture = profile.with_extension("svg");
        let folder = match profile.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let canonical = |path: &Path| std::fs::canonicalize(path).ok();
        let itself = |file: &Path| canonical(file).is_some() && canonical(file) == canonical(measured);
        if profile == picture || itself(&profile) || itself(&picture) {
            return Err(Failure::usage("the profile needs a file of its own, and its picture another")
                .at_path(&profile)
                .advice("give such as sdb.profile.json"));
        }
        let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK);
        let writable = writable.map_err(std::io::Error::from);
        writable.map_err(|error| Failure::io("cannot write the profile there", folder, &error))?;
        if profile.is_dir() {
            return Err(Failure::usage("this is a directory").at_path(&profile).advice("name a file in it"));
        }
        let there = [&profile, &picture].into_iter().find(|file| file.symlink_metadata().is_ok());
        if let Some(there) = there.filter(|_| !force) {
            return Err(Failure::failed("there is a file of that name, from an earlier run perhaps")
                .at_path(there)
                .advice("choose another name with -o, or say --force to replace it"));
        }
        Ok(Self { profile, picture })
    }
}

/// Measures the packer, then the device.
fn measure(place: Place, path: &Path, args: &Args) -> Result<Profile> {
    let Packing { elements: packer_elements, cells: packer_cells, bytes: packer_bytes } =
        packer_rate::measure()?;
    let Place { mut disk, buffers, bytes, described, writable, slots, ring, prefilled, .. } = place;
    let device = identity::of(path, bytes);
    let is_file = holdfast_media::Disk::info(&disk).medium == Medium::File;
    let subject = Subject {
        // Places of flash and of files that were never written are not what they will be.
        precondition: ring.is_none() && (is_file || device.rotational != Some(true)),
        preconditioned: prefilled,
        device,
        read_error: described.read_error,
        write_cache: described.write_cache,
        discard: described.discard,
        writable,
        slots,
        zones: args.zones,
        lasts: args.minutes,
        packer_elements,
        packer_cells,
        packer_bytes,
        remarks: unlimited(described.unlimited, path).into_iter().collect(),
    };
    let bar = progress::share();
    let found = measure_device(&mut disk, &SystemClock::new(), buffers, &subject, &mut |now| {
        let left = times::spoken(Duration::from_secs(now.left.as_secs()));
        progress::show_share(&bar, now.part, format!("{}, {left} left", now.what));
    });
    bar.finish_and_clear();
    found.map_err(|error| match (error, ring) {
        (ProfileError::Places { .. }, Some(ring)) => subject::too_full(ring, path, bytes),
        (error, _) => Failure::failed(format_args!("cannot be measured: {error}")),
    })
}

/// What to do about a drive that tries for ever.
fn unlimited(so: bool, path: &Path) -> Option<String> {
    so.then(|| {
        format!(
            "its limit on read errors (SCT ERC) is switched off: it may try for minutes, and longer than is assumed; \
             `smartctl -l scterc,70,70 {}` sets 7 s until power is lost: then measure again",
            path.display()
        )
    })
}

/// The guarantee for the first so many hundredths.
fn promise(profile: &Profile, total: u64, percent: u8) -> Option<Promise> {
    let bytes = region::bytes(profile, total, Region(percent));
    let known = region::known(profile, total, Region(percent))?;
    let found = slot_for(&known, bytes).map(|(slot, slots)| {
        // Of elements of the size that is taken for granted.
        let ask = Ask::of(Rate(1));
        let shape = ask.candidate(slot, GATHER).shape.among(slots);
        let packs = Packs::profiled(&known, profile);
        let (alone, most) = (ask.most_alone(&shape, packs), ask.most(&shape, packs));
        let granted = admit(&known, &ask.at(most.payload).load(slot), &shape);
        (slot.0, alone, most, granted.ok().map(|granted| u64::from(granted.buffers) * slot.0))
    });
    Some(Promise {
        region_percent: percent,
        region_bytes: bytes,
        worst_write_bytes_per_second: known.write.0,
        slot_bytes: found.map(|(slot, ..)| slot),
        capture_only_bytes_per_second: found.map(|(_, alone, ..)| alone.medium.0),
        with_reads_bytes_per_second: found.map(|(_, _, most, _)| most.medium.0),
        rate_bytes_per_second: found.map(|(_, _, most, _)| most.payload.0),
        memory_bytes: found.and_then(|(.., memory)| memory),
    })
}

/// Slots of 128 MiB, or as near to it as the region and the guarantee let them be; and how many.
fn slot_for(known: &Measured, bytes: u64) -> Option<(ByteSize, u32)> {
    let least = least_slot(known).0;
    let halves = std::iter::successors(Some(least.max(SLOT)), |slot| (slot / 2 >= least).then_some(slot / 2));
    let mut sizes = halves.filter(|slot| *slot <= MAX_SLOT).map(ByteSize);
    sizes.find_map(|slot| slots(bytes, slot, GATHER).map(|slots| (slot, slots)))
}

fn least(profile: &Profile, rate: fn(&holdfast_media::Zone) -> Rate) -> Rate {
    profile.zones.iter().map(rate).min().unwrap_or_default()
}

fn shown<'a>(found: &Profile, files: &'a Files, by_region: Vec<Promise>, notes: Vec<String>) -> Shown<'a> {
    Shown {
        profile: &files.profile,
        picture: &files.picture,
        device_bytes: found.device.bytes.0,
        zones: found.zones.len(),
        worst_write_bytes_per_second: least(found, |zone| zone.write_worst).0,
        worst_read_bytes_per_second: least(found, |zone| zone.read_worst).0,
        worst_reposition_seconds: found.reposition.worst.as_secs_f64(),
        commit_seconds: found.commit.as_secs_f64(),
        read_error_seconds: found.read_error.limit().as_secs_f64(),
        stall_seconds: found.stalls.sigma.as_secs_f64(),
        stalled_share: f64::from(found.stalls.rho) / 1e6,
        write_cache: found.write_cache,
        packer_elements_per_second: found.packer_elements,
        packer_cells_per_second: found.packer_cells,
        by_region,
        notes,
    }
}

/// What the table of the regions says: in the terminal, and under the picture.
const HEADS: [&str; 8] = [
    "region",
    "size",
    "written at worst",
    "slots",
    "guarantee, nobody reads",
    "with readers",
    "of payload",
    "memory",
];

fn row(promise: &Promise) -> [String; 8] {
    let rate = |rate: Option<u64>| rate.map_or("-".to_owned(), |rate| Rate(rate).to_string());
    let payload = promise.rate_bytes_per_second.map(|rate| Rate(rate).shown_down().0);
    [
        format!("0..{}%", promise.region_percent),
        ByteSize(promise.region_bytes).to_string(),
        Rate(promise.worst_write_bytes_per_second).to_string(),
        promise.slot_bytes.map_or("too small".to_owned(), |slot| ByteSize(slot).to_string()),
        rate(promise.capture_only_bytes_per_second),
        rate(promise.with_reads_bytes_per_second),
        // It may be typed: no more is shown than there is.
        rate(payload),
        promise.memory_bytes.map_or("-".to_owned(), |memory| ByteSize(memory).to_string()),
    ]
}

/// What was found, for people.
fn tell(found: &Profile, promises: &[Promise], out: &mut Out) -> Result<()> {
    for line in picture::text(found).lines() {
        out.line(line)?;
    }
    out.line("")?;
    for (what, text) in lines(found) {
        out.line(format_args!("{what:<16} {text}"))?;
    }
    out.line("\nWhat the whole device, or a part of it, is good for, on the medium:")?;
    let side = |column| if column == 0 { Side::Left } else { Side::Right };
    let heads: Vec<(&str, Side)> =
        HEADS.iter().enumerate().map(|(column, head)| (*head, side(column))).collect();
    let mut table = Table::new(&heads);
    for promise in promises {
        table.row(row(promise));
    }
    out.table(&table)?;
    out.line("")
}

fn by_size(size: &BySize) -> String {
    let end = size.write_at_end.map_or_else(String::new, |rate| format!(" ({rate} at the end)"));
    format!("{} {}{end}", size.bytes, size.write)
}

fn lines(found: &Profile) -> Vec<(&'static str, String)> {
    let span = |rate: fn(&holdfast_media::Zone) -> Rate| {
        let most = found.zones.iter().map(rate).max().unwrap_or_default();
        format!("{most} down to {}", least(found, rate))
    };
    let Profile { reposition, stalls, .. } = found;
    let spoken = times::spoken;
    let stalls = if stalls.count == 0 {
        format!("none in {}", spoken(stalls.watched))
    } else {
        format!(
            "{} in {}: at most {} at once, and {:.2} % of the time",
            stalls.count,
            spoken(stalls.watched),
            times::spoken_up(stalls.sigma),
            f64::from(stalls.rho) / 1e4
        )
    };
    let cache = match found.write_cache {
        Some(true) => "a volatile one is on: writes are flushed out of it, and safe if the device is honest",
        Some(false) => "none that is volatile: what is written is on the medium",
        None => "the device does not say whether it has one",
    };
    let read_error = match found.read_error {
        ReadError::Limited(limit) => format!("given up after {}, says the drive", times::spoken_up(limit)),
        ReadError::Assumed(limit) => format!("given up after {}, which is assumed", times::spoken_up(limit)),
    };
    let pairs = |pairs: Vec<String>| pairs.join(", ");
    vec![
        (
            "device",
            format!("{} {}", clean(&found.device.model), clean(&found.device.serial)).trim().to_owned(),
        ),
        ("writing", span(|zone| zone.write_worst)),
        ("reading", span(|zone| zone.read_worst)),
        (
            "repositioning",
            format!(
                "{} nearby, {} anywhere, {} at worst; {} from writing to reading",
                spoken(reposition.near),
                spoken(reposition.mean),
                times::spoken_up(reposition.worst),
                spoken(reposition.turnaround)
            ),
        ),
        ("commit", format!("{} beyond its bytes", spoken(found.commit))),
        ("stalls", stalls),
        ("bad places", read_error),
        ("write cache", cache.to_owned()),
        ("discard", if found.discard { "can be told" } else { "cannot be told" }.to_owned()),
        ("by size", pairs(found.by_block.iter().map(by_size).collect())),
        (
            "by number",
            pairs(found.by_depth.iter().map(|(n, write, read)| format!("{n}: {write}, {read}")).collect()),
        ),
        ("in parallel", format!("{} at once", counted(found.parallel.into(), "request"))),
        (
            "beside reads",
            format!(
                "written at {}, a MiB at a time, while {} of a MiB anywhere {} under way",
                found.write_beside_reads,
                counted(found.parallel.into(), "read"),
                if found.parallel == 1 { "is" } else { "are" }
            ),
        ),
        (
            "packer",
            format!(
                "{} elements/s of 20 bytes or {} cells/s of their attributes, {} of 1 MiB",
                grouped(found.packer_elements),
                grouped(found.packer_cells),
                found.packer_bytes
            ),
        ),
    ]
    .into_iter()
    .filter(|(_, text)| !text.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::choose;
    use crate::plan::refusal::Site;
    use crate::plan::tests::ask;
    use crate::profile_file::tests::paper;
    use holdfast_media::Zone;

    #[test]
    fn it_is_said_what_a_write_cache_means_and_how_long_reads_are_tried() {
        let say = |write_cache, read_error| {
            let found = Profile { write_cache, read_error, ..paper() };
            let lines = lines(&found);
            let line = |wanted: &str| lines.iter().find(|(what, _)| *what == wanted).unwrap().1.clone();
            (line("write cache"), line("bad places"), notes(&found).join("\n"))
        };
        let seven = Duration::from_secs(7);
        let (cache, places, notes) = say(Some(true), ReadError::Limited(seven));
        assert!(
            cache.contains("a volatile one is on")
                && notes.contains("every slot waits until that is flushed")
        );
        assert!(
            places == "given up after 7.0 s, says the drive" && !notes.contains("assumed"),
            "{places} {notes}"
        );
        let (cache, places, notes) = say(Some(false), ReadError::Assumed(seven));
        assert!(cache.contains("what is written is on the medium") && !notes.contains("flushed"), "{cache}");
        assert!(
            places.contains("which is assumed") && notes.contains("7.0 s are assumed"),
            "{places} {notes}"
        );
        assert!(say(None, ReadError::Assumed(seven)).0.contains("does not say"));
        assert_eq!(unlimited(false, Path::new("/dev/sdb")), None);
        assert!(unlimited(true, Path::new("/dev/sdb")).unwrap().contains("scterc,70,70 /dev/sdb"));
    }

    // Promise 8: what a small device is said to be good for, `plan` does not refuse for want of slots.
    #[test]
    fn a_small_fast_device_is_good_for_what_its_slots_can_be_named_for() {
        let mut found = paper();
        (found.device.bytes, found.reposition.worst) = (ByteSize::gib(8), Duration::from_micros(270));
        found.zones.truncate(1);
        let rate = Rate(1600 << 20);
        found.zones[0] = Zone { bytes: 8 << 30, write_worst: rate, read_worst: rate, ..found.zones[0] };
        let all = promise(&found, 8 << 30, 100).unwrap();
        let (told, memory) = (all.with_reads_bytes_per_second.unwrap(), all.memory_bytes.unwrap());
        assert!(
            told < 600 << 20 && memory < 4 << 30,
            "half of the ring has to last for 7 s: {told} {memory}"
        );
        let asked = |rate| Ask { slot: all.slot_bytes.map(ByteSize), gather: Some(4), ..ask(rate) };
        let known = region::known(&found, 8 << 30, Region(100)).unwrap();
        assert!(choose(&known, 8 << 30, &asked((told >> 20) * 98 / 100)).is_ok());
        assert!(choose(&known, 8 << 30, &asked((told >> 20) + 2)).is_err());
    }

    // Nor for want of a processor.
    #[test]
    fn a_fast_device_is_good_for_what_the_packer_manages() {
        let mut found = paper();
        (found.packer_bytes, found.reposition.worst) = (Rate(50 << 20), Duration::from_millis(5));
        for percent in [100, 80] {
            let total = found.device.bytes.0;
            let told = promise(&found, total, percent).unwrap();
            let rate = Rate(told.rate_bytes_per_second.unwrap());
            assert_eq!(rate, Rate(40 << 20), "four fifths of what it manages");
            assert!(told.capture_only_bytes_per_second.unwrap() < 41 << 20);
            let region = Region(percent);
            let measured = region::known(&found, total, region).unwrap();
            let site = Site { profile: &found, measured, total, region };
            let ask = Ask { slot: told.slot_bytes.map(ByteSize), gather: Some(GATHER), ..Ask::of(rate) };
            assert!(site.admit(&ask).is_ok(), "{}", site.admit(&ask).unwrap_err());
        }
    }

    #[test]
    fn what_turns_need_not_have_been_written_and_may_hide_its_zones() {
        let say = |rotational| {
            let mut found = Profile { preconditioned: false, ..paper() };
            found.device.rotational = rotational;
            notes(&found).join("\n")
        };
        let turns = say(Some(true));
        assert!(turns.contains("shingled") && !turns.contains("flash device"), "{turns}");
        let flash = say(Some(false));
        assert!(!flash.contains("shingled") && flash.contains("flash device"), "{flash}");
        let unknown = say(None);
        assert!(unknown.contains("shingled") && unknown.contains("flash device"), "{unknown}");
    }
}
