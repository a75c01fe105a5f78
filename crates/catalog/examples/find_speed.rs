//! Measures puts and searches on a catalog of many objects with ten attributes each.
//!
//! `find_speed [OBJECTS] [SQLITE_FILE | postgres CONFIG]`, by default 100000 objects in a temporary file.
//! Times are medians of seven runs, with the least and the greatest. A search reads one page of 1000 matches.
#![allow(clippy::unwrap_used)]

use holdfast_catalog::{
    Attribute, Catalog, CatalogPath, CatalogStore, ContentHash, Find, Nanos, NewReplica, NewVersion,
    PostgresStore, Put, ReplicaState, SiteId, SqliteStore, SystemHost, Value,
};
use std::path::Path;
use std::time::{Duration, Instant};

/// Objects put in one transaction.
const BATCH: u64 = 1000;

/// Runs of each search.
const RUNS: usize = 7;

/// Searches by selectivity: a share of objects for each condition, and of all together.
const SEARCHES: [(&str, &str); 9] = [
    ("one text, 0.1 %", "target = \"t123\""),
    ("one range of sizes, 0.1 %", "size > 10GB"),
    ("size and project, 0.1 % and 5 %", "size > 10GB and project = \"p7\""),
    ("size and project, 1 % and 5 %", "size > 1GB and project = \"p7\""),
    ("three conditions, 5 %, 20 %, 0.3 %", "project = \"p7\" and filter = \"r\" and exposure > 299"),
    ("two broad conditions, 5 % and 2 %", "project = \"p7\" and observer = \"o11\""),
    ("pattern and range, 1.1 % and 10 %", "target like \"t12*\" and quality >= 90"),
    ("either of two, and not a third", "(target = \"t1\" or target = \"t2\") and not filter = \"r\""),
    ("no match", "project = \"p7\" and target = \"none\""),
];

/// Scrambles a number, as a repeatable source of values.
fn scramble(number: u64) -> u64 {
    let word = (number ^ (number >> 30)).wrapping_add(0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 8
}

fn object(number: u64) -> Put {
    let random = |salt: u64| scramble(number * 16 + salt);
    // One object in a hundred is larger than 1 GB, one in a thousand larger than 10 GB.
    let size = 10_000_000_000_000 / (1 + random(0) % 1_000_000) + random(1) % 1_000_000;
    let float = |salt, scale: u64| Value::float((random(salt) % (scale * 1000)) as f64 / 1000.0).unwrap();
    let text =
        |prefix: &str, salt, number| Value::from(format!("{prefix}{}", random(salt) % number).as_str());
    let attribute = |name: &str, value| Attribute { name: name.into(), value, unit: None };
    let time = Nanos(1_700_000_000_000_000_000 + number as i64 * 1_000_000_000);
    let attributes = vec![
        attribute("project", text("p", 2, 20)),
        attribute("target", text("t", 3, 1000)),
        attribute("size", Value::Integer(size as i64)),
        attribute("exposure", float(4, 300)).with_unit("s"),
        attribute("filter", Value::from(["u", "g", "r", "i", "z"][(random(5) % 5) as usize])),
        attribute("observer", text("o", 6, 50)),
        attribute("start", Value::Time(time)),
        attribute("run", Value::Integer(number as i64 / 100)),
        attribute("seeing", float(7, 4)).with_unit("arcsec"),
        attribute("quality", Value::Integer((random(8) % 100) as i64)),
    ];
    let path: CatalogPath = format!("/survey/{:03}/{number:07}.fits", number / BATCH).parse().unwrap();
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    let version = NewVersion { size, hash: ContentHash(hash), time };
    let (vault, key) = ("disk".into(), format!("{number:x}"));
    Put {
        path,
        version,
        replicas: vec![NewReplica { vault, key, state: ReplicaState::Verified }],
        attributes,
    }
}

fn times(mut work: impl FnMut() -> usize) -> (usize, [Duration; 3]) {
    let mut result = 0;
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            result = work();
            started.elapsed()
        })
        .collect();
    times.sort();
    (result, [times[RUNS / 2], times[0], times[RUNS - 1]])
}

fn show(name: &str, result: usize, [median, least, greatest]: [Duration; 3]) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{name:<40} {result:>6} {:>9.2} ms ({:.2} to {:.2})", ms(median), ms(least), ms(greatest));
}

fn measure<S: CatalogStore>(open: impl Fn() -> S, objects: u64) {
    let mut catalog = Catalog::open(open(), SiteId::new(1).unwrap(), Box::new(SystemHost)).unwrap();
    let started = Instant::now();
    for batch in 0..objects / BATCH {
        catalog.make_collection(&format!("/survey/{batch:03}").parse().unwrap(), true).unwrap();
        let puts: Vec<Put> = (batch * BATCH..(batch + 1) * BATCH).map(object).collect();
        catalog.put_all(&puts).unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{objects} objects put in {seconds:.1} s: {:.0} objects/s", objects as f64 / seconds);
    // Servers gather statistics by themselves, but not at once.
    open().execute("ANALYZE", &[]).unwrap();
    let mut number = objects;
    let (_, single) = times(|| {
        number += 1;
        let mut put = object(number);
        put.path = format!("/survey/single{number}").parse().unwrap();
        catalog.put(&put).unwrap();
        1
    });
    show("put of one object", 1, single);
    for (name, condition) in SEARCHES {
        let find = Find { condition: Some(condition.parse().unwrap()), ..Find::default() };
        let (found, times) = times(|| catalog.find(&find, None, 1000).unwrap().found.len());
        show(name, found, times);
    }
    let (found, times_) =
        times(|| catalog.list(&"/survey/050".parse().unwrap(), None, 1000).unwrap().entries.len());
    show("list of 1000 entries", found, times_);
    let path = format!("/survey/{:03}/{:07}.fits", 1, 1500).parse().unwrap();
    let (found, times_) = times(|| catalog.stat(&path).unwrap().attributes.len());
    show("stat of one object", found, times_);
    let started = Instant::now();
    let digest = catalog.digest().unwrap();
    println!("digest {digest} in {:.1} s", started.elapsed().as_secs_f64());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let objects = arguments.first().map_or(100_000, |number| number.parse().unwrap());
    match arguments.get(1).map(String::as_str) {
        Some("postgres") => measure(|| PostgresStore::connect(&arguments[2], "find_speed").unwrap(), objects),
        Some(file) => measure(|| SqliteStore::open(Path::new(file)).unwrap(), objects),
        None => {
            let folder = tempfile::tempdir().unwrap();
            measure(|| SqliteStore::open(&folder.path().join("catalog")).unwrap(), objects);
        }
    }
}
