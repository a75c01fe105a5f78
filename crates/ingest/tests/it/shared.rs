//! Shared memory (promises 2 and 8): what a producer puts comes out as it would from a pipe, wherever it dies; what it gives up
//! is counted where it was; and whatever it does against the rules costs nobody but itself.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::Collector;
use common::hand::{CLOSED, COUNTED, DROPPED, HEAD, Hand, RING, TAIL};
use common::rig::{Rig, count, opened};
use holdfast_base::ByteSize;
use holdfast_ingest::{Cause, Framing, SourceEnd, SourceOptions, SourceSpec, StopFlag, open};
use proptest::prelude::*;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

struct Scene {
    _folder: tempfile::TempDir,
    path: PathBuf,
    rig: Rig,
}

fn options(framing: Framing) -> SourceOptions {
    SourceOptions { framing: Some(framing), area: Some(ByteSize::kib(4)), ..SourceOptions::default() }
}

/// A source with a ring of 4 KiB.
fn scene(framing: Framing) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("area.sock");
    let (opened, stop) = opened(&format!("shm:{}", path.display()), &options(framing));
    Scene { _folder: folder, path, rig: Rig::start(opened, stop, 4) }
}

impl Scene {
    /// Collects while `deliver` does so, on a thread of its own; then the source is stopped.
    fn collect(self, deliver: impl FnOnce(&Path) + Send) -> Collector {
        let Self { path, rig, _folder } = self;
        let stop = rig.stop.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // One that fails ends the collecting, too.
                let _stop = StopAtEnd(stop);
                deliver(&path);
            });
            let (collector, end) = rig.finish();
            assert!(matches!(end, Ok(SourceEnd::Stopped)), "{end:?}");
            collector
        })
    }
}

struct StopAtEnd(StopFlag);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn framed(framing: Framing, data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    framing.restore(&mut frame, framing.has_header().then_some(&b"\x01\0x"[..]), data, 0);
    frame
}

/// What is in element number `n`: no newline, and of this size.
fn data(n: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'0' + ((at * 7 + n * 13) % 64) as u8).collect()
}

/// What one producer does: the sizes of its elements, how many it puts at once, and how many bytes of a further one it gets in
/// before it dies.
type Life = (Vec<usize>, usize, Option<usize>);

fn life() -> impl Strategy<Value = Life> {
    let size = prop_oneof![4 => 0usize..40, 3 => 0usize..1500, 1 => 4000usize..20_000];
    (prop::collection::vec(size, 0..40), 1usize..8, prop::option::of(1usize..6000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_producers_put_one_after_the_other_is_there_but_for_what_they_cut(
        framing in prop::sample::select(vec![Framing::Len32, Framing::Len32Be, Framing::Attr32, Framing::Lines]),
        lives in prop::collection::vec(life(), 1..5),
    ) {
        let (mut wanted, mut cut) = (Vec::new(), 0);
        for (sizes, _, last) in &lives {
            wanted.extend(sizes.iter().enumerate().map(|(n, size)| data(n, *size)));
            match last {
                // A line that is cut is one all the same.
                Some(last) if framing == Framing::Lines => wanted.push(data(99, *last)),
                Some(_) => cut += 1,
                None => {}
            }
        }
        let collector = scene(framing).collect(|path| {
            for (sizes, at_once, last) in &lives {
                let mut hand = Hand::come(path).unwrap();
                let frames: Vec<_> =
                    sizes.iter().enumerate().map(|(n, size)| framed(framing, &data(n, *size))).collect();
                frames.chunks(*at_once).for_each(|some| hand.put(&some.concat()));
                if let Some(last) = last {
                    let all = framed(framing, &data(99, *last));
                    hand.put(&all[..all.len() - 1]);
                }
            }
        });
        let lost = collector.lost(Cause::Aborted as u8);
        prop_assert_eq!((collector.gaps.iter().filter_map(|gap| gap.elements).sum::<u64>(), lost), (cut, cut));
        let headed = framing.has_header();
        for (element, wanted) in collector.elements.iter().zip(&wanted) {
            prop_assert!(element.data == *wanted && element.header() == headed.then_some(&b"\x01\0x"[..]));
        }
        prop_assert_eq!(collector.elements.len(), wanted.len());
    }

    #[test]
    fn a_mad_producer_reaches_no_further_than_its_own_visit(
        visits in prop::collection::vec(
            prop::collection::vec((0u64..RING / 8, prop_oneof![any::<u64>(), 0u64..10_000]), 1..12),
            1..6,
        ),
        holes in any::<bool>(),
    ) {
        let collector = scene(Framing::Len32).collect(|path| {
            for words in &visits {
                let mut mad = Hand::come(path).unwrap();
                mad.put(&framed(Framing::Len32, b"before"));
                mad.flush();
                // All the words that there are, ours among them.
                for (at, word) in words {
                    mad.say(at * 8, *word);
                    mad.say(HEAD + at % 5 * 8, *word);
                    mad.ring();
                }
                if holes {
                    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                    rustix::fs::fallocate(&mad.area, flags, 0, RING).unwrap();
                }
                drop(mad.socket);
                // It goes on when it has left.
                let mut sane = Hand::come(path).unwrap();
                mad.area.write_all_at(&[0xff; 4096], 128).unwrap();
                sane.put(&framed(Framing::Len32, b"behind"));
                sane.flush();
                mad.area.write_all_at(&[0xff; 4096], RING).unwrap();
            }
        });
        let known = |word: &[u8]| collector.elements.iter().filter(|e| e.data == word).count();
        prop_assert!(known(b"before") >= visits.len());
        prop_assert_eq!(known(b"behind"), visits.len());
        prop_assert_eq!(&collector.elements.last().unwrap().data, b"behind");
    }
}

#[test]
fn a_producer_that_breaks_the_rules_is_put_out_and_leaves_a_gap_of_unknown_size() {
    let scene = scene(Framing::Len32);
    let counters = scene.rig.counters();
    let collector = scene.collect(|path| {
        for (at, word) in [(HEAD, 5000), (HEAD, 3), (DROPPED, u64::MAX / 2)] {
            let mut mad = Hand::come(path).unwrap();
            mad.put(&framed(Framing::Len32, b"fine"));
            mad.flush();
            mad.say(at, word);
            mad.ring();
            mad.await_end();
            assert_eq!(mad.word(CLOSED), 2);
        }
    });
    assert_eq!(collector.elements.len(), 3);
    let gap = |gap: &common::Gap| (gap.first, gap.ordinals, gap.elements, gap.cause);
    let wanted = [1, 2, 3].map(|first| (first, 0, None, Cause::Aborted as u8));
    assert_eq!(collector.gaps.iter().map(gap).collect::<Vec<_>>(), wanted);
    assert_eq!((count(&counters.refused), count(&counters.connections)), (3, 0));
}

#[test]
fn what_is_given_up_is_counted_where_it_would_have_stood() {
    let scene = scene(Framing::Lines);
    let counters = scene.rig.counters();
    let collector = scene.collect(|path| {
        let mut hand = Hand::come(path).unwrap();
        hand.give_up(1, 7);
        hand.await_counted();
        for n in 0..50u64 {
            hand.put(&framed(Framing::Lines, &data(0, n as usize)));
            match n % 10 {
                4 => {
                    hand.give_up(n, 3 * n);
                    hand.give_up(1, 0);
                }
                // What comes behind it may be there before the loss is seen, but not the next loss.
                6 => hand.await_counted(),
                _ => {}
            }
        }
        hand.flush();
        hand.give_up(5, 50);
        drop(hand);
        // An element that is never finished ends in front of what was given up meanwhile.
        let mut hand = Hand::come(path).unwrap();
        hand.put(b"begun");
        hand.give_up(2, 1);
    });
    // The collector has seen that the ordinals have no hole: what is left is where the gaps are.
    let mut gaps: Vec<common::Gap> = Vec::new();
    for gap in &collector.gaps {
        match gaps.last_mut() {
            // Losses at one place may be seen one after the other.
            Some(last) if last.first + last.ordinals == gap.first => {
                last.ordinals += gap.ordinals;
                last.elements = last.elements.zip(gap.elements).map(|(a, b)| a + b);
                last.bytes = last.bytes.zip(gap.bytes).map(|(a, b)| a + b);
            }
            _ => gaps.push(gap.clone()),
        }
    }
    let gap = |gap: &common::Gap| (gap.first, gap.elements, gap.bytes, gap.cause);
    let cause = Cause::NoBuffer as u8;
    let wanted = [
        (0, Some(1), Some(7), cause),
        (6, Some(5), Some(12), cause),
        (21, Some(15), Some(42), cause),
        (46, Some(25), Some(72), cause),
        (81, Some(35), Some(102), cause),
        (126, Some(45), Some(132), cause),
        (176, Some(5), Some(50), cause),
        (182, Some(2), Some(1), cause),
    ];
    assert_eq!(gaps.iter().map(gap).collect::<Vec<_>>(), wanted);
    assert_eq!(collector.elements.len(), 51);
    assert_eq!(counters.dropped(Cause::NoBuffer), 133);
    assert_eq!(count(&counters.elements), 184);
}

#[test]
fn one_producer_at_a_time_is_let_in() {
    let scene = scene(Framing::Len32);
    let counters = scene.rig.counters();
    let collector = scene.collect(|path| {
        assert_eq!(path.symlink_metadata().unwrap().mode() & 0o777, 0o600);
        let mut first = Hand::come(path).unwrap();
        assert_eq!(Hand::come(path).err(), Some(1));
        first.put(&framed(Framing::Len32, b"first"));
        drop(first);
        // The next one waits until the rest of the one before is taken.
        let mut second = Hand::come(path).unwrap();
        assert_eq!((second.word(HEAD), second.word(TAIL)), (0, 0));
        second.put(&framed(Framing::Len32, b"second"));
    });
    let data: Vec<_> = collector.elements.iter().map(|element| &element.data[..]).collect();
    assert_eq!((data, collector.gaps), (vec![&b"first"[..], b"second"], vec![]));
    assert_eq!(count(&counters.refused), 1);
}

#[test]
fn what_is_in_the_area_when_the_source_is_told_to_stop_is_taken_and_nothing_else() {
    let Scene { path, mut rig, _folder } = scene(Framing::Len32);
    let mut hand = Hand::come(&path).unwrap();
    let large = data(0, 3000);
    for _ in 0..400 {
        hand.put(&framed(Framing::Len32, &large));
        let Rig { inlet, collector, .. } = &mut rig;
        collector.let_go(inlet, usize::MAX);
        collector.drain(inlet, false);
    }
    hand.give_up(3, 9000);
    let (collector, end) = rig.stop();
    assert!(matches!(end, Ok(SourceEnd::Stopped)));
    assert_eq!((collector.elements.len(), collector.lost(Cause::NoBuffer as u8)), (400, 3));
    hand.await_end();
    assert_eq!((hand.word(CLOSED), hand.word(COUNTED)), (2, 3));
    assert_eq!(hand.word(TAIL), hand.word(HEAD));
    assert!(!path.exists(), "the socket goes with its source");
    // What is put now goes nowhere, and needs no memory of ours: of the old content nothing is left.
    let mut old = [1; 64];
    hand.area.read_exact_at(&mut old, RING).unwrap();
    assert_eq!(old, [0; 64]);
}

#[test]
fn what_is_no_socket_of_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let stop = StopFlag::new().unwrap();
    let refused = |path: &Path| {
        let spec: SourceSpec = format!("shm:{}", path.display()).parse().unwrap();
        open(&spec, &options(Framing::Len32), &stop).unwrap_err().to_string()
    };
    let file = folder.path().join("file");
    std::fs::write(&file, b"data").unwrap();
    assert!(
        refused(&file).contains("the path exists and is not a socket; use another path"),
        "{}",
        refused(&file)
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"data");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    assert!(refused(&link).contains("the path exists and is not a socket"));
    let nowhere = folder.path().join("none/at/all");
    assert!(refused(&nowhere).contains("cannot listen there"), "{}", refused(&nowhere));
    let scene = scene(Framing::Len32);
    assert!(refused(&scene.path).contains("another recorder or source listens there"));
    scene.rig.stop().1.unwrap();
}
