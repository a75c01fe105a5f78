//! Data objects of a science archive with ten typed triples each, made from their numbers: a run can be repeated.

use holdfast_catalog::{Attribute, CatalogPath, ContentHash, Finite, Nanos, NewReplica, NewVersion, Put};
use holdfast_catalog::{ReplicaState, Value};

/// Objects of one collection.
pub const IN_COLLECTION: u64 = 1000;

/// Seed of all values.
const SEED: u64 = 0x5eed_0f5e;

/// Creation time of the first object: 2021-01-01.
const FIRST_DATE: i64 = 1_609_459_200;

/// Seconds between the creation of two objects: 10⁶ objects take about five years.
const DATE_STEP: i64 = 150;

/// Least size of an object in bytes.
pub const LEAST_SIZE: u64 = 4096;

/// Number of different resolutions, in steps of a millimetre.
const RESOLUTIONS: u64 = 2000;

/// Number of different creators.
const CREATORS: u64 = 2000;

const LOCATIONS: [&str; 8] = ["lsu", "tulane", "uno", "ull", "latech", "lsus", "lsuhsc-no", "lsuhsc-s"];

const FILETYPES: [&str; 12] =
    ["nc", "hdf5", "fits", "tiff", "csv", "dat", "jpg", "png", "txt", "grib", "mat", "root"];

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence that depends on a number only.
    pub fn new(number: u64) -> Self {
        Self(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ SEED)
    }

    /// Next number of 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit.max(1)
    }

    /// Number above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Number below a limit, small ones more often: the share of numbers below k of n is the root of k/n.
    fn skewed(&mut self, limit: u64) -> u64 {
        let unit = self.unit();
        ((limit as f64 * unit * unit) as u64).min(limit - 1)
    }
}

/// Creation time of an object.
pub fn date(number: u64) -> Value {
    Value::Time(Nanos((FIRST_DATE + number as i64 * DATE_STEP) * 1_000_000_000))
}

/// Resolution in metres by its rank; the share of objects below it is the root of its share of the ranks.
pub fn resolution(rank: u64) -> Value {
    let metres = Finite::new((rank + 1) as f64 / 1000.0);
    metres.map_or(Value::Integer(0), Value::Float)
}

/// Ten triples of the object with a number.
pub fn triples(number: u64) -> Vec<Attribute> {
    let mut random = Random::new(number);
    let creator = random.skewed(CREATORS);
    let filetype = FILETYPES[random.skewed(FILETYPES.len() as u64) as usize];
    let location = LOCATIONS[random.skewed(LOCATIONS.len() as u64) as usize];
    // The share of objects larger than a size is inverse to it.
    let size = (LEAST_SIZE as f64 / random.unit()).min(1e15) as i64;
    // A creator works at one institution, and in a few projects.
    let project = (creator + 40 * random.below(5)) % 500;
    let resolution = resolution(random.skewed(RESOLUTIONS));
    let text = |text: String| Value::Text(text);
    vec![
        Attribute::new("location", location),
        Attribute::new("dateOfCreation", date(number)),
        Attribute::new("filetype", filetype),
        Attribute::new("size", size),
        Attribute::new("name", text(name(number, filetype))),
        Attribute::new("institution", text(format!("institution {}", creator % 50))),
        Attribute::new("creator", text(format!("creator {creator}"))),
        Attribute::new("resolution", resolution).with_unit("m"),
        Attribute::new("department", text(format!("department {}", creator / 50 % 30))),
        Attribute::new("project", text(format!("project {project}"))),
    ]
}

fn name(number: u64, filetype: &str) -> String {
    format!("run{:05}_{number:08}.{filetype}", number / 100)
}

/// Collection of the object with a number.
pub fn collection(number: u64) -> CatalogPath {
    let names = ["data".to_owned(), format!("{:05}", number / IN_COLLECTION)];
    names.iter().fold(CatalogPath::default(), |path, name| path.child(name).unwrap_or(path))
}

/// Name of the object with a number in its collection.
pub fn file_name(number: u64) -> String {
    format!("object{number:08}")
}

/// Path of the object with a number.
pub fn path(number: u64) -> CatalogPath {
    let collection = collection(number);
    collection.child(&file_name(number)).unwrap_or(collection)
}

/// Request that puts the object with a number into a catalog.
pub fn put(number: u64, attributes: Vec<Attribute>) -> Put {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    let (hash, time) = (ContentHash(hash), Nanos(FIRST_DATE * 1_000_000_000));
    let (vault, key, state) = ("disk".to_owned(), format!("{number:x}"), ReplicaState::Verified);
    Put {
        path: path(number),
        version: NewVersion { size: LEAST_SIZE, hash, time },
        replicas: vec![NewReplica { vault, key, state }],
        attributes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_typed_and_repeatable() {
        assert_eq!(triples(7), triples(7));
        assert_ne!(triples(7), triples(8));
        let names: Vec<String> = triples(7).into_iter().map(|triple| triple.name).collect();
        assert_eq!(names.len(), 10);
        assert!(triples(7).iter().all(|triple| triple.check().is_ok()));
    }

    #[test]
    fn small_values_are_frequent() {
        let mut random = Random::new(1);
        let first = (0..10_000).filter(|_| random.skewed(100) == 0).count();
        // The root of 1/100 is a tenth.
        assert!((900..1100).contains(&first), "{first}");
    }
}
