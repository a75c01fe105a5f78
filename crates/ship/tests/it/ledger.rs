//! Ledger: equal to a model in memory over any operations and reopenings, its lock, its layout and its bounds.

use holdfast_ship::ledger::{FileKey, FileRow, FileStage, Ledger, LedgerEvent, MOST_EVENTS, ShippedVersion};
use holdfast_ship::statistics::{HistogramRow, MinuteRow};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Operation of the property test; small numbers name files, versions and times.
#[derive(Clone, Debug)]
enum Operation {
    Put(u8, u8, Option<String>, u8),
    Remove(u8),
    Rename(u8, u8),
    Finish(u8, u8, i64),
    Verify(u8, u8),
    Minute(u8, u64, u64),
    Event(i64, String),
    Reopen,
    Kill,
}

fn operation() -> impl Strategy<Value = Operation> {
    let file = 0_u8..4;
    prop_oneof![
        (file.clone(), any::<u8>(), proptest::option::of("[a-z]{1,5}"), 0_u8..5)
            .prop_map(|(file, inode, upload, stage)| Operation::Put(file, inode, upload, stage)),
        file.clone().prop_map(Operation::Remove),
        (file.clone(), file.clone()).prop_map(|(from, to)| Operation::Rename(from, to)),
        (file.clone(), 0_u8..3, 0_i64..100)
            .prop_map(|(file, version, time)| Operation::Finish(file, version, time)),
        (file, 0_u8..3).prop_map(|(file, version)| Operation::Verify(file, version)),
        (0_u8..3, 0_u64..1000, 0_u64..1000).prop_map(|(minute, a, b)| Operation::Minute(minute, a, b)),
        (any::<i64>(), ".{0,10}").prop_map(|(time, text)| Operation::Event(time, text)),
        Just(Operation::Reopen),
        Just(Operation::Kill),
    ]
}

fn key(file: u8) -> FileKey {
    FileKey { folder: format!("/f{}", file % 2), relative: format!("r{}", file / 2) }
}

fn row(file: u8, inode: u8, upload: Option<String>, stage: u8) -> FileRow {
    use FileStage::{Done, Failed, Sending, Verifying, Waiting};
    let stage = [Waiting, Sending, Verifying, Done, Failed][usize::from(stage)];
    let upload_path = upload.as_ref().map(|_| format!("f{file}"));
    FileRow { key: key(file), device: u64::MAX, inode: u64::from(inode), upload, upload_path, stage }
}

fn version(file: u8, version: u8, time: i64) -> ShippedVersion {
    ShippedVersion {
        key: key(file),
        shipped_ms: time,
        size: u64::from(version),
        modified_ns: i64::MIN,
        changed_ns: i64::MAX,
        blake3: blake3::hash(&[version]),
        version: version.to_string(),
        verified: false,
    }
}

/// Naive ledger in memory.
#[derive(Default)]
struct Model {
    files: BTreeMap<FileKey, FileRow>,
    /// Versions in the order of their last write.
    versions: Vec<ShippedVersion>,
    minutes: BTreeMap<i64, MinuteRow>,
    rates: BTreeMap<(i64, u16), u64>,
    events: Vec<LedgerEvent>,
}

impl Model {
    fn check(&self, ledger: &Ledger) -> Result<(), TestCaseError> {
        for file in 0..4 {
            prop_assert_eq!(ledger.file(&key(file)).unwrap(), self.files.get(&key(file)).cloned());
            let newest = self.versions.iter().filter(|version| version.key == key(file));
            // The last of equal maxima is the last written one.
            let newest = newest.max_by_key(|version| version.shipped_ms);
            prop_assert_eq!(ledger.newest_version(&key(file)).unwrap(), newest.cloned());
        }
        for row in self.files.values() {
            let same = |other: &&FileRow| other.inode == row.inode;
            let expected: Vec<_> = self.files.values().filter(same).cloned().collect();
            prop_assert_eq!(ledger.files_by_inode(row.device, row.inode).unwrap(), expected);
            let expected: Vec<_> =
                self.files.values().filter(|other| other.stage == row.stage).cloned().collect();
            prop_assert_eq!(ledger.files_in_stage(row.stage).unwrap(), expected);
        }
        let expected: Vec<_> = self.files.values().filter(|row| row.key.folder == "/f1").cloned().collect();
        prop_assert_eq!(ledger.files("/f1").unwrap(), expected);
        let mut versions: Vec<_> =
            self.versions.iter().filter(|version| (20..80).contains(&version.shipped_ms)).cloned().collect();
        versions.sort_by_key(|version| version.shipped_ms);
        prop_assert_eq!(ledger.versions(20, 80).unwrap(), versions);
        prop_assert_eq!(ledger.minutes(0, 3).unwrap(), self.minutes.values().copied().collect::<Vec<_>>());
        let rates = self.rates.iter().map(|((hour, bin), count)| HistogramRow {
            hour: *hour,
            bin: *bin,
            count: *count,
        });
        prop_assert_eq!(ledger.rates(0, 3).unwrap(), rates.collect::<Vec<_>>());
        let events: Vec<_> = self.events.iter().rev().take(5).cloned().collect();
        prop_assert_eq!(ledger.events(5).unwrap(), events);
        Ok(())
    }

    fn put_version(&mut self, new: ShippedVersion) {
        self.versions.retain(|old| (&old.key, &old.version) != (&new.key, &new.version));
        self.versions.push(new);
    }

    fn apply(&mut self, ledger: &mut Ledger, operation: Operation) {
        match operation {
            Operation::Put(file, inode, upload, stage) => {
                let row = row(file, inode, upload, stage);
                ledger.put_file(&row).unwrap();
                self.files.insert(row.key.clone(), row);
            }
            Operation::Remove(file) => {
                ledger.remove_file(&key(file)).unwrap();
                self.files.remove(&key(file));
            }
            Operation::Rename(from, to) => {
                ledger.rename_file(&key(from), &key(to)).unwrap();
                if let Some(row) = self.files.remove(&key(from)) {
                    self.files.insert(key(to), FileRow { key: key(to), ..row });
                }
            }
            Operation::Finish(file, number, time) => {
                let (row, version) = (row(file, 0, None, 3), version(file, number, time));
                ledger.finish_file(&row, &version).unwrap();
                self.files.insert(row.key.clone(), row);
                self.put_version(version);
            }
            Operation::Verify(file, number) => {
                let (key, name) = (key(file), number.to_string());
                let known = self.versions.iter_mut().find(|known| known.key == key && known.version == name);
                assert_eq!(ledger.set_verified(&key, &name).unwrap(), known.is_some());
                if let Some(known) = known {
                    known.verified = true;
                }
            }
            Operation::Minute(minute, a, b) => {
                let (minute, bin) = (i64::from(minute), a as u16 % 5);
                let add = MinuteRow {
                    minute,
                    blocks: a,
                    rate_sum: b as f64,
                    damaged_blocks: b,
                    ..MinuteRow::default()
                };
                ledger.add_throughput(&add, &[HistogramRow { hour: minute, bin, count: b }]).unwrap();
                let sum = self.minutes.entry(minute).or_insert(MinuteRow { minute, ..MinuteRow::default() });
                sum.blocks += a;
                sum.rate_sum += b as f64;
                sum.damaged_blocks += b;
                *self.rates.entry((minute, bin)).or_default() += b;
            }
            Operation::Event(time_ms, text) => {
                let event = LedgerEvent { time_ms, kind: "kind".to_owned(), path: text.clone(), text };
                ledger.add_event(&event).unwrap();
                self.events.push(event);
            }
            Operation::Reopen | Operation::Kill => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_ledger_equals_its_model(operations in proptest::collection::vec(operation(), 1..30)) {
        let mut folder = tempfile::tempdir().unwrap();
        let mut ledger = Some(Ledger::open(folder.path()).unwrap());
        let mut model = Model::default();
        for operation in operations {
            match operation {
                Operation::Reopen => ledger = None,
                Operation::Kill => {
                    // Files as a killed process leaves them: nothing is written back or closed.
                    let image = tempfile::tempdir().unwrap();
                    for file in ["ledger.db", "ledger.db-wal"] {
                        let _ = std::fs::copy(folder.path().join(file), image.path().join(file));
                    }
                    (ledger, folder) = (None, image);
                }
                _ => {}
            }
            let ledger = ledger.get_or_insert_with(|| Ledger::open(folder.path()).unwrap());
            model.apply(ledger, operation);
            model.check(ledger)?;
        }
    }
}

#[test]
fn a_second_shipper_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("new/state");
    let ledger = Ledger::open(&state).unwrap();
    let expected = format!(
        "cannot use the state folder {}: another shipper uses it; stop that shipper, or choose another folder",
        state.display()
    );
    assert_eq!(Ledger::open(&state).unwrap_err().to_string(), expected);
    drop(ledger);
    Ledger::open(&state).unwrap();
}

#[test]
fn a_newer_layout_and_a_damaged_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(Ledger::open(folder.path()).unwrap());
    let file = folder.path().join("ledger.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = Ledger::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("a newer program wrote it (layout 99, known is 2)"), "{error}");
    std::fs::write(&file, [7; 8192]).unwrap();
    let error = Ledger::open(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("cannot use the state folder ") && error.contains("; restore it"), "{error}");
}

#[test]
fn the_oldest_events_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path()).unwrap();
    let event = |time_ms| {
        let (kind, path, text) = Default::default();
        LedgerEvent { time_ms, kind, path, text }
    };
    drop(ledger);
    // A ledger that is full already, made at once because each event is a transaction.
    let connection = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_EVENTS})
         INSERT INTO events(time_ms, kind, path, text) SELECT i, '', '', '' FROM n"
    );
    connection.execute_batch(&sql).unwrap();
    drop(connection);
    ledger = Ledger::open(folder.path()).unwrap();
    ledger.add_event(&event(MOST_EVENTS + 1)).unwrap();
    let events = ledger.events(usize::MAX).unwrap();
    assert_eq!(events.len() as i64, MOST_EVENTS);
    assert_eq!((events[0].time_ms, events.last().unwrap().time_ms), (MOST_EVENTS + 1, 2));
}
