//! Operations on a simulated ring, as plain values: drawn from a seed, printed when a test fails, and left
//! out one by one to find the fewest that still fail.

use holdfast_media::Seed;
use std::time::Duration;

/// One step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Elements arrive, `every` apart.
    Write {
        /// Of which stream.
        stream: u8,
        /// How many.
        count: u16,
        /// How long each.
        bytes: u32,
        /// Time between them.
        every: Duration,
        /// Whether they have event times.
        event: bool,
    },
    /// Time passes.
    Pass(Duration),
    /// The open slot is sealed before it is full.
    Seal,
    /// A hold of a range of time: from so long ago, so long.
    Hold {
        /// Of one stream, or all.
        stream: Option<u8>,
        /// How long ago the range begins.
        back: Duration,
        /// How long it is.
        span: Duration,
        /// Event times instead of arrival times.
        by_event: bool,
        /// When it ends by itself.
        lasts: Option<Duration>,
        /// Whether the next step waits for the answer.
        wait: bool,
    },
    /// A hold of the slots that have a range of a stream's ordinals, counted back from the newest.
    HoldOrdinals {
        /// Of which stream.
        stream: u8,
        /// How many ordinals ago the range begins.
        back: u16,
        /// How many ordinals it has.
        count: u16,
    },
    /// A hold by condition that begins with the slots that have a range of a stream's ordinals, as above, or with nothing.
    Find {
        /// Of which stream.
        stream: u8,
        /// How many ordinals ago the range begins.
        back: u16,
        /// How many ordinals it has; 0: nothing was found.
        count: u16,
        /// Slots that it is promised; 0: none.
        quota: u8,
        /// When it ends by itself.
        lasts: Option<Duration>,
    },
    /// More was found: the n-th of the holds by condition grows by the slots that have a range of a stream's ordinals.
    Extend {
        /// Which.
        which: u8,
        /// Of which stream.
        stream: u8,
        /// How many ordinals ago the range begins.
        back: u16,
        /// How many ordinals it has.
        count: u16,
        /// Whether the next step waits for the answer.
        wait: bool,
        /// Whether that comes when all that the hold keeps would survive a crash.
        durable: bool,
    },
    /// A hold is released: the n-th of those there are.
    Release(u8),
    /// A client gives the n-th of its latest orders again, as if it had lost the answer.
    Repeat(u8),
    /// The n-th of the visible slots is read through the driver.
    Read(u8),
    /// A client pins slots, in the place of what it pinned before.
    Pin {
        /// Which.
        client: u8,
        /// From the oldest on, leaving out so many.
        skip: u8,
        /// How many; 0: it goes.
        count: u8,
    },
    /// A range is destroyed while the recorder goes on.
    Purge {
        /// Of one stream, or all.
        stream: Option<u8>,
        /// What.
        doom: Doom,
        /// Held data too.
        held: bool,
        /// The power goes at the n-th write from its beginning, or when it has come to its end; and what survives.
        cut: Option<(u8, u64)>,
    },
    /// The recorder ends cleanly and starts again.
    Restart,
    /// The power goes at the n-th write from now (0: at once), and what survives is drawn from the seed.
    Crash {
        /// Writes from now.
        after: u8,
        /// What survives.
        draw: u64,
    },
    /// The power goes at the n-th write of the next start, after a crash now.
    CrashTwice {
        /// Writes of the start.
        after: u8,
        /// What survives.
        draw: u64,
    },
    /// The lane gets so many slots longer.
    Grow(u8),
    /// The wall clock steps.
    ClockStep(i32),
    /// Writes fail now and then (one in so many), for so long.
    WriteErrors {
        /// One in so many.
        one_in: u8,
        /// For so long.
        lasts: Duration,
    },
    /// The disk does nothing for so long.
    Stall(Duration),
    /// The disk is gone for so long.
    Death(Duration),
    /// The disk answers every write with an error for so long.
    Outage(Duration),
}

/// What is to be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doom {
    /// A range of a stream's ordinals, counted back from the newest; of all streams: counted from those of the first.
    Ordinals {
        /// How many ordinals ago the range begins.
        back: u16,
        /// How many ordinals it has.
        count: u16,
    },
    /// A range of time: from so long ago, so long.
    Time {
        /// How long ago the range begins.
        back: Duration,
        /// How long it is.
        span: Duration,
        /// Event times instead of arrival times.
        by_event: bool,
    },
}

/// Which steps a test draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diet {
    /// No crash, no fault: what is visible is predicted exactly.
    Calm,
    /// With crashes.
    Crashes,
    /// With crashes and faults of the device.
    Faults,
}

fn millis(seed: &mut Seed, most: u64) -> Duration {
    Duration::from_millis(seed.below(most))
}

/// A length that somebody may choose: often small, sometimes none, now and then more than a slot.
fn length(seed: &mut Seed) -> u32 {
    let most = match seed.below(12) {
        0 => 1,
        1..=3 => 64,
        4..=7 => 2_000,
        8 | 9 => 8_193,
        10 => 20_000,
        _ => 150_000,
    };
    seed.below(most) as u32
}

fn write(seed: &mut Seed) -> Op {
    let bytes = length(seed);
    let most = (200_000 / u64::from(bytes.max(400))).clamp(1, 120);
    let every = match seed.below(4) {
        0 => Duration::ZERO,
        1 => Duration::from_micros(seed.below(1_000)),
        2 => millis(seed, 30),
        _ => millis(seed, 400),
    };
    Op::Write {
        stream: seed.below(3) as u8,
        count: 1 + seed.below(most) as u16,
        bytes,
        every,
        event: seed.below(3) == 0,
    }
}

fn hold(seed: &mut Seed) -> Op {
    if seed.below(3) == 0 {
        let (back, count) = (seed.below(300) as u16, 1 + seed.below(60) as u16);
        return Op::HoldOrdinals { stream: seed.below(3) as u8, back, count };
    }
    let longest = if seed.below(2) == 0 { 1_500 } else { 60_000 };
    Op::Hold {
        stream: (seed.below(2) == 0).then(|| seed.below(3) as u8),
        back: millis(seed, longest),
        span: millis(seed, longest),
        by_event: seed.below(4) == 0,
        lasts: (seed.below(4) == 0).then(|| millis(seed, 20_000)),
        wait: seed.below(2) == 0,
    }
}

fn pin(seed: &mut Seed) -> Op {
    // Mostly more than it gets.
    let count = seed.below(4).min(1) * (1 + seed.below(8));
    Op::Pin { client: seed.below(3) as u8, skip: seed.below(4) as u8, count: count as u8 }
}

fn purge(seed: &mut Seed, diet: Diet) -> Op {
    let doom = if seed.below(2) == 0 {
        Doom::Ordinals { back: seed.below(300) as u16, count: 1 + seed.below(60) as u16 }
    } else {
        let longest = if seed.below(2) == 0 { 1_500 } else { 60_000 };
        Doom::Time { back: millis(seed, longest), span: millis(seed, longest), by_event: seed.below(4) == 0 }
    };
    let cuts = diet != Diet::Calm && seed.below(2) == 0;
    Op::Purge {
        stream: (seed.below(3) > 0).then(|| seed.below(3) as u8),
        doom,
        held: seed.below(2) == 0,
        // Few writes go before the first copy, and many more may follow.
        cut: cuts.then(|| {
            let most = [8, 30, 120][seed.below(3) as usize];
            (seed.below(most) as u8, seed.bits())
        }),
    }
}

fn find(seed: &mut Seed) -> Op {
    let count = seed.below(2) * (1 + seed.below(40));
    Op::Find {
        stream: seed.below(3) as u8,
        back: seed.below(200) as u16,
        count: count as u16,
        quota: seed.below(7) as u8,
        lasts: (seed.below(5) == 0).then(|| millis(seed, 20_000)),
    }
}

fn extend(seed: &mut Seed) -> Op {
    Op::Extend {
        which: seed.below(8) as u8,
        stream: seed.below(3) as u8,
        // Often what came just now, and is not on the medium.
        back: if seed.below(2) == 0 { seed.below(12) as u16 } else { seed.below(300) as u16 },
        count: seed.below(40) as u16,
        wait: seed.below(2) == 0,
        durable: seed.below(3) > 0,
    }
}

/// `count` steps drawn from a seed.
pub fn ops(seed: u64, diet: Diet, count: usize) -> Vec<Op> {
    let seed = &mut Seed::new(seed);
    let mut all: Vec<Op> = Vec::with_capacity(count);
    while all.len() < count {
        // What was acknowledged a moment ago is durable; what was only taken may be.
        let acknowledged = matches!(all.last(), Some(Op::Extend { wait: true, .. }));
        // A client that has lost its answer repeats the order.
        let lost = matches!(all.last(), Some(Op::Crash { .. } | Op::CrashTwice { .. }));
        if lost && seed.below(2) == 0 {
            all.push(Op::Repeat(7));
            continue;
        }
        let at_once = acknowledged && diet != Diet::Calm && seed.below(2) == 0;
        all.push(if at_once { Op::Crash { after: 0, draw: seed.bits() } } else { op(seed, diet) });
    }
    all
}

fn op(seed: &mut Seed, diet: Diet) -> Op {
    let faults = match seed.below(100) {
        0 | 1 if diet != Diet::Calm => Some(Op::Crash { after: seed.below(12) as u8, draw: seed.bits() }),
        2 if diet != Diet::Calm => Some(Op::CrashTwice { after: seed.below(8) as u8, draw: seed.bits() }),
        3 if diet == Diet::Faults => {
            let lasts = millis(seed, 20_000);
            Some(Op::WriteErrors { one_in: 3 + seed.below(30) as u8, lasts })
        }
        4 if diet == Diet::Faults => Some(Op::Stall(millis(seed, 10_000))),
        5 if diet == Diet::Faults => Some(Op::Death(millis(seed, 10_000))),
        6 if diet == Diet::Faults => Some(Op::Outage(millis(seed, 10_000))),
        _ => None,
    };
    if let Some(op) = faults {
        return op;
    }
    match seed.below(100) {
        0..=41 => write(seed),
        42..=44 => pin(seed),
        45 | 46 => purge(seed, diet),
        47..=56 => Op::Pass(if seed.below(4) == 0 { millis(seed, 12_000) } else { millis(seed, 1_500) }),
        57..=60 => Op::Seal,
        61..=67 => hold(seed),
        68..=71 => find(seed),
        72..=78 => extend(seed),
        87 | 88 if diet != Diet::Calm => Op::Repeat(seed.below(8) as u8),
        79..=88 => Op::Release(seed.below(8) as u8),
        89..=92 => Op::Read(seed.below(64) as u8),
        93..=95 => Op::Restart,
        96 => Op::Grow(1 + seed.below(3) as u8),
        _ => Op::ClockStep(seed.below(10_000) as i32 - 5_000),
    }
}
