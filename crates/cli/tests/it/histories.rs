//! Whatever happens to a ring, a search finds what a plain read of it has, and what holds have found is there: elements small, and
//! larger than slots, while they expire, are held by several at once, distilled again and again, and purged, and while whoever
//! distils is killed.
//!
//! One seed again: `HOLDFAST_SEED=123 cargo test -p holdfast-cli --test it histories`. More seeds: `HOLDFAST_SEEDS=20` (times as many).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::evaluating;
use crate::common::recording;

use common::{ends, folder, run};
use evaluating::Evaluator;
use holdfast_media::Seed;
use holdfast_sim::{SeedReport, seeds};
use recording::{PATIENCE, Recording};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

const ROUNDS: u64 = 10;
/// Bytes that come in a round at most: less than what is left of the ring beside all that is held.
const ROUND: usize = 3 << 19;

/// Bytes of elements that all of them look for, and that come just when they are waited for.
const BEACON: usize = 10;

/// What holds look for: in SQL, and by ordinal and size.
type LookedFor = (&'static str, fn(u64, usize) -> bool);
const LOOKED_FOR: [LookedFor; 2] = [
    ("ordinal_%_613_=_7_or_size_=_10_or_size_>_77000", |ordinal, size| {
        ordinal % 613 == 7 || size == BEACON || size > 77_000
    }),
    ("ordinal_%_997_=_7_or_size_in_(10,1003)_or_size_>_76000", |ordinal, size| {
        ordinal % 997 == 7 || [BEACON, 1003].contains(&size) || size > 76_000
    }),
];

/// A ring with all that was ever sent to it, and what must be there of that.
struct History<'d> {
    dir: &'d Path,
    seed: Seed,
    recording: Option<Recording>,
    sent: Vec<usize>,
    /// The holds that were given, by the condition's place in the list.
    holds: BTreeMap<usize, u64>,
    wanted: BTreeSet<u64>,
    purged: BTreeSet<u64>,
    originals: u64,
}

fn text(ordinal: u64, size: usize) -> String {
    let head = format!("{ordinal} ");
    let tail = "x".repeat(size - head.len());
    head + &tail
}

impl History<'_> {
    fn send(&mut self, sizes: &[usize]) {
        let mut recording = self.recording.take().unwrap_or_else(|| {
            Recording::start(self.dir, if self.sent.is_empty() { "--size 8MiB --slot 64KiB" } else { "" })
        });
        let before =
            recording.await_lines(self.dir, 0)["recorder"]["sources"][0]["packed_elements"].as_u64().unwrap();
        let mut all = String::new();
        for size in sizes {
            let ordinal = self.sent.len() as u64;
            all += &text(ordinal, *size);
            all.push('\n');
            if self.holds.keys().any(|at| LOOKED_FOR[*at].1(ordinal, *size)) {
                self.wanted.insert(ordinal);
            }
            self.sent.push(*size);
        }
        recording.input.as_mut().unwrap().write_all(all.as_bytes()).unwrap();
        recording.await_lines(self.dir, before + sizes.len() as u64);
        self.recording = Some(recording);
    }

    /// Sends a lot of all sizes.
    fn round(&mut self) {
        let mut sizes = Vec::new();
        while sizes.iter().sum::<usize>() < ROUND {
            sizes.push(match self.seed.below(300) {
                0 => 60_000 + self.seed.below(20_000),
                2..=4 => 1000 + self.seed.below(10),
                _ => 20 + self.seed.below(3000),
            } as usize);
        }
        self.send(&sizes);
    }

    /// One more of what is looked for, from what is there on.
    fn hold(&mut self) -> Option<Evaluator> {
        let at = (0..LOOKED_FOR.len()).find(|at| !self.holds.contains_key(at))?;
        let (condition, is_wanted) = LOOKED_FOR[at];
        let line = format!("hold r.hf --where {condition} --standing --quota 30% --distil --reason h{at}");
        let mut evaluator = Evaluator::start(self.dir, &line);
        self.holds.insert(at, evaluator.next()["id"].as_u64().unwrap());
        let there = self.read().into_iter().filter(|(ordinal, size)| is_wanted(*ordinal, *size));
        self.wanted.extend(there.map(|(ordinal, _)| ordinal));
        Some(evaluator)
    }

    /// Lets it come to the end of what has arrived.
    fn end(&mut self, evaluator: Evaluator) {
        let (code, said) = evaluator.finish();
        assert_eq!(code, Some(0), "{said:?}");
        for said in said {
            assert!(said["missed"].as_u64().is_none_or(|missed| missed == 0), "{said}");
            self.originals += said["originals"].as_u64().unwrap_or(0);
        }
    }

    /// All go on for a while beside each other; now and then one is killed.
    fn work(&mut self, mut at_work: Vec<Evaluator>) {
        for id in self.holds.values().copied().take(self.holds.len() - at_work.len()).collect::<Vec<_>>() {
            let evaluator = Evaluator::start(self.dir, &format!("hold r.hf --resume {id}"));
            if self.seed.happens(0.2) {
                evaluator.kill();
                at_work.push(Evaluator::start(self.dir, &format!("hold r.hf --resume {id}")));
            } else {
                at_work.push(evaluator);
            }
        }
        self.send(&[BEACON]);
        let started = Instant::now();
        while !self.has_been_looked_at() {
            for evaluator in &mut at_work {
                assert_eq!(evaluator.child.try_wait().unwrap(), None, "{}", evaluator.warnings());
            }
            assert!(
                started.elapsed() < PATIENCE,
                "nobody looks at the last of {}: {}",
                self.sent.len(),
                ends(self.dir, "holds r.hf --json", 0).out
            );
        }
        for evaluator in at_work {
            self.end(evaluator);
        }
    }

    /// Whether whoever looks for something has looked at all that was sent.
    fn has_been_looked_at(&self) -> bool {
        let holds = ends(self.dir, "holds r.hf --json", 0).lines();
        holds
            .iter()
            .all(|hold| hold["finding"]["evaluated"][0]["ordinal"].as_u64() == Some(self.sent.len() as u64))
    }

    /// Destroys some, held or not.
    fn purge(&mut self) {
        let first = self.seed.below(self.sent.len() as u64);
        let end = first + 1 + self.seed.below(20);
        let done =
            run(self.dir, &format!("purge r.hf --stream log --ordinals {first}..{end} --held --reason law"));
        assert!(matches!(done.code, Some(0 | 3)), "{}", done.err);
        self.purged.extend(first..end);
        self.wanted.retain(|ordinal| !(first..end).contains(ordinal));
    }

    /// What a plain read has: the sizes of elements.
    fn read(&self) -> BTreeMap<u64, usize> {
        let read = ends(self.dir, "read r.hf --stream log --format jsonl", 0).lines();
        let elements = read.iter().filter(|line| line["kind"] == "element");
        elements
            .map(|line| {
                let (ordinal, said) = (line["ordinal"].as_u64().unwrap(), line["text"].as_str().unwrap());
                assert_eq!(said, text(ordinal, self.sent[ordinal as usize]), "{ordinal} is as it was sent");
                (ordinal, said.len())
            })
            .collect()
    }

    fn search(&self, condition: &str) -> Vec<u64> {
        let question =
            format!("query r.hf --format csv select_ordinal_from_log_where_{condition}_order_by_ordinal");
        ends(self.dir, &question, 0).out.lines().skip(1).map(|line| line.parse().unwrap()).collect()
    }

    fn look(&self) {
        let read = self.read();
        let lost: Vec<u64> =
            self.wanted.iter().copied().filter(|ordinal| !read.contains_key(ordinal)).collect();
        assert_eq!(lost, Vec::<u64>::new(), "what was found is there, of {} sent", self.sent.len());
        assert!(read.keys().all(|ordinal| !self.purged.contains(ordinal)), "what was purged is gone");
        let those = |which: &dyn Fn(u64, usize) -> bool| -> Vec<u64> {
            read.iter()
                .filter(|(ordinal, size)| which(**ordinal, **size))
                .map(|(ordinal, _)| *ordinal)
                .collect()
        };
        let all: [LookedFor; 3] = [
            ("true", |_, _| true),
            ("size_>_60000", |_, size| size > 60_000),
            // Of what is in the payload, to the last of its bytes.
            ("length(text(payload))_=_size_and_text(payload)_like_'%xx'_and_size_>_2000", |_, size| {
                size > 2000
            }),
        ];
        for (condition, which) in all.into_iter().chain(LOOKED_FOR) {
            let (found, there) = (self.search(condition), those(&which));
            let only = |some: &[u64], others: &[u64]| -> Vec<u64> {
                some.iter().copied().filter(|ordinal| !others.contains(ordinal)).collect()
            };
            let (found_only, read_only) = (only(&found, &there), only(&there, &found));
            assert!(
                found == there,
                "{condition}: {found_only:?} are found and not read, {read_only:?} read and not found"
            );
        }
    }
}

#[test]
fn a_search_finds_what_is_there_and_what_was_found_stays_whatever_happens_to_a_ring() {
    for seed in seeds(2) {
        let _report = SeedReport(seed, "holdfast-cli", "histories");
        let folder = folder();
        let mut history = History {
            dir: folder.path(),
            seed: Seed::new(seed),
            recording: None,
            sent: Vec::new(),
            holds: BTreeMap::new(),
            wanted: BTreeSet::new(),
            purged: BTreeSet::new(),
            originals: 0,
        };
        for round in 0..ROUNDS {
            history.round();
            let new = if round % 2 == 0 { history.hold() } else { None };
            history.work(new.into_iter().collect());
            if history.seed.happens(0.4) {
                history.purge();
            }
            // At rest, too.
            if history.seed.happens(0.3) {
                history.recording.take().unwrap().end();
            }
            history.look();
        }
        drop(history.recording.take());
        let large = history.wanted.iter().filter(|ordinal| history.sent[**ordinal as usize] > 76_000).count();
        let tells = (history.originals, history.wanted.len(), large, history.purged.len());
        assert!(history.originals > 10 && large > 0, "seed {seed}: {tells:?}");
        ends(folder.path(), "check r.hf", 0);
    }
}
