//! Tests of the faulty disk: every fault can be seen, and the same seed gives the same run. Recovery (promise
//! 6) is proven with it, so its faults must be known to occur.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::single_range_in_vec_init)] // lists of one range are meant

use holdfast_base::{BLOCK, Clock, ManualClock, Rate, Timestamp};
use holdfast_media::{
    Buffer, Completion, Disk, Fault, FaultPlan, FaultyDisk, Image, Op, Request, Stall, Survival,
};
use proptest::prelude::*;
use std::time::Duration;

const DISK: u64 = 1 << 20;
const S: Duration = Duration::from_secs(1);

fn disk(plan: FaultPlan, seed: u64) -> FaultyDisk {
    FaultyDisk::new(Image::new(DISK), plan, seed, ManualClock::default())
}

fn write(tag: u64, offset: u64, len: usize, byte: u8, durable: bool) -> Request {
    let mut buffer = Buffer::aligned(len).unwrap();
    buffer.fill(byte);
    Request { tag, op: Op::Write { offset, buffer, len, durable } }
}

fn run(disk: &mut FaultyDisk, request: Request) -> Completion {
    disk.submit(request).unwrap();
    disk.complete(Duration::from_hours(1)).unwrap()
}

fn read(disk: &mut FaultyDisk, offset: u64, len: usize) -> Result<Vec<u8>, Fault> {
    let buffer = Buffer::aligned(len).unwrap();
    let done = run(disk, Request { tag: 0, op: Op::Read { offset, buffer, len } });
    done.result.map_err(|error| error.fault)?;
    Ok(done.buffer.unwrap()[..len].to_vec())
}

fn fault(disk: &mut FaultyDisk, request: Request) -> Option<Fault> {
    run(disk, request).result.err().map(|error| error.fault)
}

fn measure() -> Request {
    Request { tag: 0, op: Op::Measure }
}

fn flush() -> Request {
    Request { tag: 0, op: Op::Flush }
}

#[test]
fn only_durable_writes_and_flushed_ones_are_sure_to_outlive_a_crash() {
    let mut disk = disk(FaultPlan::default(), 1);
    run(&mut disk, write(1, 0, BLOCK, 1, true));
    run(&mut disk, write(2, 4096, BLOCK, 2, false));
    run(&mut disk, flush());
    run(&mut disk, write(3, 8192, BLOCK, 3, false));
    disk.submit(write(4, 12288, BLOCK, 4, true)).unwrap();
    assert_eq!(disk.seen().range(8192, 1), [3], "reads see the cache");
    let least = disk.crash_with(Survival::Nothing);
    let bytes = [0, 4096, 8192, 12288].map(|at| least.range(at, 1)[0]);
    assert_eq!(bytes, [1, 2, 0, 0]);
    let most = disk.crash_with(Survival::Everything);
    let bytes = [0, 4096, 8192, 12288].map(|at| most.range(at, 1)[0]);
    assert_eq!(bytes, [1, 2, 3, 4]);
    assert_eq!(disk.complete(Duration::ZERO).unwrap().result.unwrap_err().fault, Fault::Gone);
}

#[test]
fn a_flush_covers_only_what_was_complete_when_it_was_submitted() {
    let mut disk = disk(FaultPlan::default(), 1);
    disk.submit(write(1, 0, BLOCK, 1, false)).unwrap();
    disk.submit(flush()).unwrap();
    while disk.complete(Duration::ZERO).is_some() {}
    assert_eq!(disk.durable().range(0, 1), [0]);
}

#[test]
fn a_crash_tears_in_every_way_at_the_sector_size() {
    for sector in [512, 4096] {
        let mut disk = disk(FaultPlan { sector, ..FaultPlan::default() }, 5);
        run(&mut disk, write(0, 0, 16 * BLOCK, 1, true));
        disk.submit(write(1, 0, 16 * BLOCK, 2, true)).unwrap();
        let (mut none, mut all, mut head, mut tail, mut hole) = (0, 0, 0, 0, 0);
        for _ in 0..300 {
            let left = disk.crash().range(0, 16 * BLOCK);
            let sectors: Vec<u8> = left.chunks(sector).map(|part| part[0]).collect();
            for (part, first) in left.chunks(sector).zip(&sectors) {
                assert!(part.iter().all(|b| b == first), "a sector is whole");
            }
            let new = |at: usize| sectors[at] == 2;
            let count = (0..sectors.len()).filter(|at| new(*at)).count();
            let last = sectors.len() - 1;
            none += u32::from(count == 0);
            all += u32::from(count == sectors.len());
            head += u32::from(new(0) && !new(last));
            tail += u32::from(!new(0) && new(last));
            hole += u32::from(new(0) && new(last) && count < sectors.len());
        }
        assert!([none, all, head, tail, hole].iter().all(|n| *n > 5), "{none} {all} {head} {tail} {hole}");
    }
}

#[test]
fn what_a_durable_write_replaced_never_comes_back() {
    let mut disk = disk(FaultPlan::default(), 9);
    run(&mut disk, write(0, 0, 4 * BLOCK, 1, false));
    run(&mut disk, write(0, 4096, BLOCK, 2, true));
    let mut old = 0;
    for _ in 0..100 {
        let left = disk.crash().range(0, 4 * BLOCK);
        assert!(left[BLOCK..2 * BLOCK].iter().all(|b| *b == 2));
        old += u32::from(left[2 * BLOCK] == 1);
    }
    assert!(old > 0);
}

#[test]
fn the_power_goes_after_exactly_the_nth_write_or_flush() {
    for n in 0..=4u64 {
        let mut disk = disk(FaultPlan::default(), 3);
        disk.cut_after(n);
        let results = [
            fault(&mut disk, write(0, 0, BLOCK, 1, true)),
            fault(&mut disk, flush()),
            read(&mut disk, 0, BLOCK).err(),
            fault(&mut disk, write(0, 4096, BLOCK, 1, true)),
        ];
        // The nth is under way when the power goes, so it fails too; reads count for nothing.
        let gone = results.map(|fault| fault == Some(Fault::Gone));
        let wanted = [n <= 1, n <= 2, n <= 2, n <= 3];
        assert_eq!(gone, wanted, "cut after {n}");
        assert_eq!(disk.crash_with(Survival::Nothing).range(0, 1)[0], u8::from(n > 1));
    }
}

#[test]
fn a_dead_disk_returns_without_its_cache_but_with_what_was_durable() {
    let mut lost = 0;
    for seed in 0..20 {
        let mut disk = disk(FaultPlan::default(), seed);
        run(&mut disk, write(0, 0, BLOCK, 1, true));
        run(&mut disk, write(0, 4096, BLOCK, 2, false));
        disk.die();
        assert_eq!(read(&mut disk, 0, BLOCK), Err(Fault::Gone));
        assert_eq!(fault(&mut disk, measure()), Some(Fault::Gone));
        disk.come_back();
        assert_eq!(read(&mut disk, 0, BLOCK).unwrap()[0], 1);
        lost += u32::from(read(&mut disk, 4096, BLOCK).unwrap()[0] == 0);
    }
    assert!((1..20).contains(&lost), "{lost}");
}

#[test]
fn bad_places_fail_and_a_write_heals_what_was_only_unreadable() {
    let plan = FaultPlan { unwritable: vec![8192..8193], unreadable: vec![512..513], ..FaultPlan::default() };
    let mut disk = disk(plan, 1);
    assert_eq!(read(&mut disk, 0, BLOCK), Err(Fault::Io));
    assert!(read(&mut disk, 4096, BLOCK).is_ok());
    assert_eq!(fault(&mut disk, write(0, 0, BLOCK, 1, true)), None);
    assert_eq!(read(&mut disk, 0, BLOCK), Ok(vec![1; BLOCK]));
    assert_eq!(fault(&mut disk, write(0, 4096, 2 * BLOCK, 1, true)), Some(Fault::Io));
    assert_eq!(fault(&mut disk, write(0, 12288, BLOCK, 1, true)), None);
}

#[test]
fn chances_come_true_and_can_be_switched_off() {
    let mut disk = disk(FaultPlan { write_error: 0.5, read_error: 0.5, ..FaultPlan::default() }, 1);
    let bad = (0..100).filter(|_| fault(&mut disk, write(0, 0, BLOCK, 1, true)).is_some()).count();
    assert!((20..80).contains(&bad), "{bad}");
    let bad = (0..100).filter(|_| read(&mut disk, 0, BLOCK).is_err()).count();
    assert!((20..80).contains(&bad), "{bad}");
    *disk.plan_mut() = FaultPlan::default();
    assert!((0..100).all(|_| read(&mut disk, 0, BLOCK).is_ok()));
}

#[test]
fn a_failed_flush_forgets_what_it_was_to_save() {
    let mut lost = 0;
    for seed in 0..20 {
        let mut disk = disk(FaultPlan { flush_error: 1.0, ..FaultPlan::default() }, seed);
        run(&mut disk, write(0, 0, BLOCK, 1, false));
        assert_eq!(fault(&mut disk, flush()), Some(Fault::Io));
        disk.plan_mut().flush_error = 0.0;
        assert_eq!(fault(&mut disk, flush()), None);
        lost += u32::from(disk.durable().range(0, BLOCK) != vec![1; BLOCK]);
    }
    assert!((1..20).contains(&lost), "{lost}");
}

#[test]
fn silent_corruption_is_one_bit_on_the_way_or_for_good() {
    let bits = |bytes: &[u8]| bytes.iter().map(|b| b.count_ones()).sum::<u32>();
    let mut disk = disk(FaultPlan { flip_read: 1.0, ..FaultPlan::default() }, 1);
    assert_eq!(bits(&read(&mut disk, 0, BLOCK).unwrap()), 1);
    assert_eq!(bits(&disk.seen().range(0, BLOCK)), 0);
    *disk.plan_mut() = FaultPlan { flip_write: 1.0, ..FaultPlan::default() };
    assert_eq!(fault(&mut disk, write(0, 0, BLOCK, 0, true)), None);
    assert_eq!(bits(&disk.durable().range(0, BLOCK)), 1);
    disk.flip(BLOCK as u64, 0x0f);
    assert_eq!(disk.durable().range(4096, 1), [0x0f]);
    *disk.plan_mut() = FaultPlan { phantom: 1.0, ..FaultPlan::default() };
    assert_eq!(fault(&mut disk, write(0, 8192, BLOCK, 1, true)), None);
    assert_eq!(read(&mut disk, 8192, BLOCK), Ok(vec![0; BLOCK]), "reported done, never made");
}

#[test]
fn a_zombie_lands_over_what_came_after_it() {
    let clock = ManualClock::default();
    let plan = FaultPlan { zombie: 1.0, zombie_after: 10 * S, ..FaultPlan::default() };
    let mut disk = FaultyDisk::new(Image::new(DISK), plan, 1, clock.clone());
    assert_eq!(fault(&mut disk, write(0, 0, BLOCK, 1, true)), Some(Fault::Io));
    disk.plan_mut().zombie = 0.0;
    assert_eq!(fault(&mut disk, write(0, 0, BLOCK, 2, true)), None);
    assert_eq!(read(&mut disk, 0, BLOCK).unwrap()[0], 2);
    assert_eq!(disk.next_event(), Some(Timestamp(0) + 10 * S));
    clock.set(Timestamp(0) + 11 * S);
    assert_eq!(read(&mut disk, 0, BLOCK).unwrap()[0], 1);
}

#[test]
fn time_moves_to_the_next_event_and_never_past_the_wait() {
    let clock = ManualClock::default();
    let plan = FaultPlan {
        latency: S,
        rate: Some(Rate(4096)),
        stalls: vec![Stall { first: 5 * S, length: 60 * S, every: Some(1000 * S) }],
        ..FaultPlan::default()
    };
    let mut disk = FaultyDisk::new(Image::new(DISK), plan, 1, clock.clone());
    disk.submit(write(1, 0, BLOCK, 1, true)).unwrap();
    disk.submit(write(2, 0, BLOCK, 1, true)).unwrap();
    disk.submit(write(3, 0, BLOCK, 1, true)).unwrap();
    assert!(disk.complete(S).is_none());
    let mut at = |tag: u64| {
        assert_eq!(disk.complete(1000 * S).unwrap().tag, tag);
        clock.now().since(Timestamp(0))
    };
    // Each takes 1 s and 1 s for its bytes; the third would end in the stall.
    assert_eq!([at(1), at(2), at(3)], [2 * S, 4 * S, 65 * S]);
    assert!(disk.complete(7 * S).is_none());
    assert_eq!(clock.now(), Timestamp(0) + 72 * S);
}

#[test]
fn completions_come_in_other_orders() {
    let mut disk = disk(FaultPlan { reorder: true, ..FaultPlan::default() }, 1);
    for tag in 0..20 {
        disk.submit(write(tag, 0, BLOCK, tag as u8, true)).unwrap();
    }
    let tags: Vec<u64> = std::iter::from_fn(|| disk.complete(Duration::ZERO)).map(|c| c.tag).collect();
    let mut sorted = tags.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    assert_ne!(tags, sorted);
    assert_eq!(u64::from(disk.seen().range(0, 1)[0]), tags[19], "the last one served stands");
}

#[test]
fn room_ends_where_it_was_told() {
    let mut disk = disk(FaultPlan { room: Some(8192), ..FaultPlan::default() }, 1);
    assert_eq!(fault(&mut disk, write(0, 4096, BLOCK, 1, true)), None);
    assert_eq!(fault(&mut disk, write(0, 8192, BLOCK, 1, true)), Some(Fault::NoSpace));
    disk.plan_mut().room = None;
    disk.lengthen(DISK * 2);
    assert_eq!(disk.info().bytes, DISK, "nobody has looked");
    assert_eq!(fault(&mut disk, measure()), None);
    assert_eq!(fault(&mut disk, write(0, DISK, BLOCK, 1, true)), None);
}

/// A write, its durability, or a flush; then whether the oldest request is fetched.
#[derive(Clone, Debug)]
enum Step {
    Write { block: u64, blocks: usize, durable: bool },
    Flush,
    Fetch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0u64..24, 1usize..8, any::<bool>())
            .prop_map(|(block, blocks, durable)| Step::Write { block, blocks, durable }),
        1 => Just(Step::Flush),
        3 => Just(Step::Fetch),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// After a crash each sector holds the last version that was certain or a later one, never an older one and
    /// never anything else; and a second run from the same seed ends in the same image.
    #[test]
    fn a_crash_leaves_certain_or_later_versions(steps in steps(), seed: u64, reorder: bool) {
        let play = || {
            let plan = FaultPlan { reorder, jitter: S, ..FaultPlan::default() };
            let mut disk = disk(plan, seed);
            // For each block: all versions in the order of completion, and how many are certainly behind us.
            let mut versions = vec![vec![0u8]; 32];
            let mut certain = vec![0usize; 32];
            let mut flying = std::collections::BTreeMap::new();
            for (tag, step) in steps.iter().enumerate() {
                let (tag, byte) = (tag as u64, tag as u8 + 1);
                match step {
                    Step::Write { block, blocks, durable } => {
                        let request = write(tag, block * 4096, blocks * BLOCK, byte, *durable);
                        disk.submit(request).unwrap();
                        flying.insert(tag, (step.clone(), Vec::new()));
                    }
                    Step::Flush => {
                        let covers: Vec<usize> = versions.iter().map(|v| v.len() - 1).collect();
                        disk.submit(Request { tag, op: Op::Flush }).unwrap();
                        flying.insert(tag, (step.clone(), covers));
                    }
                    Step::Fetch => {
                        let Some(done) = disk.complete(10 * S) else { continue };
                        done.result.unwrap();
                        let (step, covers) = flying.remove(&done.tag).unwrap();
                        for (block, covered) in covers.into_iter().enumerate() {
                            certain[block] = certain[block].max(covered);
                        }
                        if let Step::Write { block, blocks, durable } = step {
                            for block in block as usize..block as usize + blocks {
                                versions[block].push(done.tag as u8 + 1);
                                if durable {
                                    certain[block] = versions[block].len() - 1;
                                }
                            }
                        }
                    }
                }
            }
            for (tag, (step, _)) in &flying {
                if let Step::Write { block, blocks, .. } = step {
                    for versions in versions.iter_mut().skip(*block as usize).take(*blocks) {
                        versions.push(*tag as u8 + 1);
                    }
                }
            }
            let images: Vec<Image> = (0..4).map(|_| disk.crash()).collect();
            for image in &images {
                for sector in 0..32 * 8 {
                    let bytes = image.range(sector as u64 * 512, 512);
                    let allowed = &versions[sector / 8][certain[sector / 8]..];
                    assert!(bytes.iter().all(|b| *b == bytes[0]) && allowed.contains(&bytes[0]), "sector {sector}: {} not of {allowed:?}", bytes[0]);
                }
            }
            images
        };
        prop_assert!(play() == play());
    }
}
