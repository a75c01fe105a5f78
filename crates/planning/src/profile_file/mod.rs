//! The file that a profile is kept in: `*.profile.json`, with a version of its own. What its fields are called is in
//! `fields`; what is measured and what follows from it is not known here.

mod fields;

use fields::{Head, ProfileV1};
use holdfast_base::failure::{Failure, Result};
use holdfast_media::Profile;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What every such file says of itself.
const FORMAT: &str = "holdfast profile";

/// The version that is written, and the only one there is.
const VERSION: u32 = 1;

/// Bytes of a file: thousands of zones.
const MOST_BYTES: u64 = 4 << 20;

/// What to do about a file that cannot be relied on.
const ANEW: &str = "measure the device again: `holdfast profile`";

/// Writes a profile; a file of that name gives way to it, once it is whole.
pub fn write(path: &Path, profile: &Profile) -> Result<()> {
    let text = encode(profile).map_err(|what| unusable(&what, path))?;
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&part, path)).map_err(|error| {
        // What is left of it is of no use; the first error is the one to tell.
        let _ = fs::remove_file(&part);
        Failure::io("cannot write the profile", path, &error)
    })
}

/// Reads a profile.
pub fn read(path: &Path) -> Result<Profile> {
    let cannot = |error: &std::io::Error| Failure::io("cannot read the profile", path, error);
    let found = fs::metadata(path).map_err(|error| cannot(&error))?;
    if !found.is_file() {
        let failure = Failure::failed("this is no file, so it is no profile").at_path(path);
        return Err(failure.advice("give the file that `holdfast profile` wrote, such as sdb.profile.json"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| cannot(&error))?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(foreign(&format!("it has more than {MOST_BYTES} bytes"), path));
    }
    decode(&bytes, path)
}

fn encode(profile: &Profile) -> Result<String, String> {
    let fields = ProfileV1::of(profile);
    fields.check()?;
    serde_json::to_string_pretty(&fields).map(|text| text + "\n").map_err(|error| error.to_string())
}

fn decode(bytes: &[u8], path: &Path) -> Result<Profile> {
    let head: Head = match serde_json::from_slice(bytes) {
        Ok(head) => head,
        Err(error) if error.is_data() => return Err(foreign("it does not say that it is one", path)),
        Err(error) => return Err(unusable(&format!("it is damaged or cut off: {error}"), path)),
    };
    if head.format != FORMAT {
        let format: String = head.format.chars().filter(|c| !c.is_control()).take(40).collect();
        return Err(foreign(&format!("it says that it is `{format}`"), path));
    }
    if head.version != VERSION {
        let (version, known) = (head.version, VERSION);
        return Err(Failure::failed(format_args!(
            "this profile is of version {version}, and version {known} is known here"
        ))
        .at_path(path)
        .advice("use the Holdfast that wrote it or a newer one, or measure the device again with this one"));
    }
    let fields: ProfileV1 =
        serde_json::from_slice(bytes).map_err(|error| unusable(&error.to_string(), path))?;
    fields.check().map_err(|what| unusable(&what, path))?;
    fields.into_profile().map_err(|what| unusable(&what, path))
}

fn foreign(why: &str, path: &Path) -> Failure {
    Failure::failed(format_args!("this is not a profile: {why}"))
        .at_path(path)
        .advice("give the file that `holdfast profile` wrote, such as sdb.profile.json")
}

fn unusable(what: &str, path: &Path) -> Failure {
    Failure::failed(format_args!("this profile cannot be used: {what}")).at_path(path).advice(ANEW)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdfast_base::{ByteSize, Rate, Timestamp};
    use holdfast_media::{BySize, DriveModel, Identity, ReadError, Reposition, Stalls, Zone};
    use proptest::prelude::*;
    use std::time::Duration;

    const GOLDEN: &str = include_str!("../../tests/golden/paper.profile.json");

    /// The drive of the paper in twentieths, as its model has it, with a repositioning of 30 ms at worst.
    pub(crate) fn paper() -> Profile {
        let drive = DriveModel::paper();
        let rate = |mib: f64| Rate((mib * 1_048_576.0) as u64);
        let line = |at: f64, outer: f64, middle: f64, inner: f64| {
            if at <= 0.8 {
                outer + (middle - outer) * at / 0.8
            } else {
                middle + (inner - middle) * (at - 0.8) / 0.2
            }
        };
        let zone = drive.bytes / 20 / 4096 * 4096;
        let by_size = |bytes, write| BySize { bytes, write, write_at_end: None };
        let zones = (0..20).map(|number: u64| {
            let (from, to) = (number as f64 / 20.0, (number + 1) as f64 / 20.0);
            let (write, read) = (|at| line(at, 70.0, 65.0, 50.0), |at| line(at, 115.0, 70.0, 50.0));
            Zone {
                offset: number * zone,
                bytes: if number < 19 { zone } else { drive.bytes - 19 * zone },
                write_worst: rate(write(to)),
                write_mean: rate(f64::midpoint(write(from), write(to))),
                read_worst: rate(read(to)),
                read_mean: rate(f64::midpoint(read(from), read(to))),
            }
        });
        Profile {
            device: Identity {
                path: "/dev/sdb".to_owned(),
                model: "WDC WD15EARS".to_owned(),
                serial: "WD-EXAMPLE".to_owned(),
                medium: "device".to_owned(),
                bytes: ByteSize(drive.bytes),
                rotational: Some(true),
            },
            at: Timestamp(1_795_169_100_000_000_000),
            zones: zones.collect(),
            reposition: Reposition {
                near: Duration::from_millis(8),
                mean: Duration::from_millis(17),
                worst: Duration::from_millis(30),
                turnaround: Duration::from_micros(800),
            },
            commit: Duration::ZERO,
            read_error: ReadError::Limited(Duration::from_secs(7)),
            stalls: Stalls { watched: Duration::from_mins(3), ..Stalls::default() },
            by_block: vec![by_size(ByteSize::kib(64), rate(5.5)), by_size(ByteSize::mib(8), rate(68.5))],
            by_depth: vec![(1, rate(68.5), rate(112.0)), (8, rate(70.0), rate(115.0))],
            parallel: 1,
            write_beside_reads: rate(35.0),
            write_cache: Some(false),
            discard: false,
            preconditioned: true,
            packer_elements: 5_000_000,
            packer_cells: 20_000_000,
            packer_bytes: rate(2000.0),
            remarks: vec!["by the model of the drive, not measured".to_owned()],
        }
    }

    fn said(text: &str) -> String {
        decode(text.as_bytes(), Path::new("/p.json")).unwrap_err().to_string()
    }

    /// The golden file with one text put for another.
    fn with(old: &str, new: &str) -> String {
        assert!(GOLDEN.contains(old), "{old}");
        GOLDEN.replacen(old, new, 1)
    }

    // Version 1 stays readable for ever. To write the file anew after a change of the example on purpose:
    // HOLDFAST_BLESS=1.
    #[test]
    fn version_1_is_read_and_written_as_it_was() {
        if std::env::var_os("HOLDFAST_BLESS").is_some() {
            let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/paper.profile.json");
            return write(&golden, &paper()).unwrap();
        }
        assert_eq!(decode(GOLDEN.as_bytes(), Path::new("golden")).unwrap(), paper());
        assert_eq!(encode(&paper()).unwrap(), GOLDEN);
        // Newer ones have this besides.
        let mut newer = paper();
        newer.by_block[0].write_at_end = Some(Rate(5_242_880));
        let row = "\"write_bytes_per_s\": 5767168";
        let text = with(row, &format!("{row},\n      \"write_at_end_bytes_per_s\": 5242880"));
        assert_eq!(decode(text.as_bytes(), Path::new("newer")).unwrap(), newer);
        assert_eq!(encode(&newer).unwrap(), text);
    }

    #[test]
    fn a_file_is_replaced_by_a_whole_one_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sdb.profile.json");
        write(&path, &paper()).unwrap();
        assert_eq!(read(&path).unwrap(), paper());
        let broken = Profile { zones: Vec::new(), ..paper() };
        assert!(write(&path, &broken).unwrap_err().to_string().contains("no zones"));
        assert_eq!(read(&path).unwrap(), paper());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let text = write(&folder.path().join("none/x"), &paper()).unwrap_err().to_string();
        assert!(text.contains("cannot write the profile") && text.contains("none/x"), "{text}");
        let text = read(folder.path()).unwrap_err().to_string();
        assert!(text.contains("this is no file"), "{text}");
        assert!(read(&folder.path().join("x")).unwrap_err().to_string().contains("check the path"));
        fs::write(&path, vec![b' '; 5 << 20]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("more than 4194304 bytes"));
    }

    // Promise 8: what is no profile, or none that can be relied on, says so, and what to do.
    #[test]
    fn damaged_foreign_and_newer_files_are_told_apart() {
        for (text, wanted) in [
            (String::new(), "it is damaged or cut off"),
            (GOLDEN[..GOLDEN.len() / 2].to_owned(), "it is damaged or cut off"),
            ("{\"name\": \"x\"}".to_owned(), "this is not a profile: it does not say that it is one"),
            ("[1, 2]".to_owned(), "this is not a profile"),
            (with("holdfast profile", "fio"), "this is not a profile: it says that it is `fio`"),
            (
                with("\"version\": 1", "\"version\": 2"),
                "of version 2, and version 1 is known here, /p.json: use",
            ),
            (with("\"version\": 1", "\"version\": 0"), "of version 0"),
            (with("\"commit_seconds\"", "\"comit\""), "missing field `commit_seconds`"),
            (
                with("\"worst_seconds\": 0.03", "\"worst_seconds\": -0.03"),
                "reposition.worst_seconds is -0.03",
            ),
            (with("\"worst_seconds\": 0.03", "\"worst_seconds\": 1e30"), "reposition.worst_seconds is 1e30"),
            (with("\"rho_ppm\": 0", "\"rho_ppm\": 1000000"), "stalls.rho_ppm"),
            (with("\"parallel\": 1", "\"parallel\": 0"), "parallel"),
            (
                with("\"write_beside_reads_bytes_per_s\": 36700160", "\"write_beside_reads_bytes_per_s\": 0"),
                "write_beside_reads_bytes_per_s is 0",
            ),
            (with("\"bytes\": 75015094272", "\"bytes\": 75015094271"), "zone 1 begins"),
            (with("\"measured_at\": \"2026", "\"measured_at\": \"last year"), "measured_at"),
            (
                with("\"packer_elements_per_s\": 5000000", "\"packer_elements_per_s\": 0"),
                "packer_elements_per_s",
            ),
        ] {
            let said = said(&text);
            assert!(said.contains(wanted) && said.contains("/p.json: "), "{wanted}: {said}");
        }
        let more = with("\"version\": 1,", "\"version\": 1, \"more\": [1],");
        assert!(decode(more.as_bytes(), Path::new("p")).is_ok(), "fields may be added");
    }

    proptest! {
        #[test]
        fn whatever_was_measured_comes_back(
            spans in prop::array::uniform7(0u64..80_000_000_000_000), rates in prop::array::uniform4(1u64..1 << 50),
            lens in prop::collection::vec(1u64..1 << 40, 1..20), known: (Option<bool>, Option<bool>, bool, bool),
            text in ".{0,60}", rho in 0u32..1_000_000,
        ) {
            let span = |at: usize| Duration::from_nanos(spans[at]);
            let mut offset = 0;
            let zones: Vec<Zone> = lens.iter().map(|bytes| {
                let zone = Zone {
                    offset, bytes: *bytes, write_worst: Rate(rates[0]), write_mean: Rate(rates[1]),
                    read_worst: Rate(rates[2]), read_mean: Rate(rates[3]),
                };
                offset += bytes;
                zone
            }).collect();
            let profile = Profile {
                device: Identity { model: text.clone(), bytes: ByteSize(offset), rotational: known.0, ..paper().device },
                zones,
                reposition: Reposition { near: span(0), mean: span(1), worst: span(2), turnaround: span(3) },
                commit: span(4),
                read_error: if known.2 { ReadError::Assumed(span(5)) } else { ReadError::Limited(span(5)) },
                stalls: Stalls { sigma: span(6), rho, count: 3, watched: span(0) },
                write_cache: known.1,
                discard: known.3,
                remarks: vec![text],
                ..paper()
            };
            let text = encode(&profile).unwrap();
            prop_assert_eq!(decode(text.as_bytes(), Path::new("p")).unwrap(), profile);
        }
    }
}
