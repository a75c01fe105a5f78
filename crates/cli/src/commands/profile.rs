//! `holdfast profile`: measure a device, so that a rate can be promised.

use crate::out::Out;
use crate::progress;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, Rate, clean, counted, grouped};
use holdfast_client::config;
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_media::{BySize, MAX_ZONES, Profile, ReadError};
use holdfast_planning::plan::{RegionPromise, region_promise};
use holdfast_planning::{ProfileResult, measure, picture, profile_file, profile_notes, subject};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let path = config::ring(&args.path)?.path;
    let files = Files::new(args.out.as_deref(), &path, args.force)?;
    let place = subject::open(&path, args.destroy)?;
    let (ring, warnings) = (place.ring, place.warnings.clone());
    let bar = progress::share();
    let found = measure(place, &path, args.zones, args.minutes, &mut |what, left, part| {
        let left = times::spoken(Duration::from_secs(left.as_secs()));
        progress::show_share(&bar, part, format!("{what}, {left} left"));
    });
    bar.finish_and_clear();
    let found = found?;
    profile_file::write(&files.profile, &found)?;
    let mut said = profile_notes(&found);
    said.extend(warnings);
    if ring.is_none() {
        said.push("what was written is still there: `holdfast format` wants --force now".to_owned());
    }
    let total = found.device.bytes.0;
    let promises: Vec<RegionPromise> =
        [100, 80].iter().filter_map(|percent| region_promise(&found, total, *percent)).collect();
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

fn least(profile: &Profile, rate: fn(&holdfast_media::Zone) -> Rate) -> Rate {
    profile.zones.iter().map(rate).min().unwrap_or_default()
}

fn shown<'a>(
    found: &Profile,
    files: &'a Files,
    by_region: Vec<RegionPromise>,
    notes: Vec<String>,
) -> ProfileResult<'a> {
    ProfileResult {
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

fn row(promise: &RegionPromise) -> [String; 8] {
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
fn tell(found: &Profile, promises: &[RegionPromise], out: &mut Out) -> Result<()> {
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

    fn paper() -> Profile {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../planning/tests/golden/paper.profile.json");
        profile_file::read(Path::new(golden)).unwrap()
    }

    #[test]
    fn it_is_said_what_a_write_cache_means_and_how_long_reads_are_tried() {
        let say = |write_cache, read_error| {
            let found = Profile { write_cache, read_error, ..paper() };
            let lines = lines(&found);
            let line = |wanted: &str| lines.iter().find(|(what, _)| *what == wanted).unwrap().1.clone();
            (line("write cache"), line("bad places"), profile_notes(&found).join("\n"))
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
    }
}
