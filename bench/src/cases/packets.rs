//! Packets from a virtual link between two network name spaces: a sweep of rates and sizes, and at each the loss of
//! Holdfast, dumpcap and stenotype, one after the other on the same cores. The generator has the last of them; the
//! recorder the others or, in a further sweep, whichever it gets. What Holdfast recorded and what it says was lost must
//! add up to what the interface received.

use crate::cores::Cores;
use crate::link::{Traffic, VirtualLink};
use crate::packet_recorders::PacketRecorder;
use crate::report::Report;
use crate::rounds::Spread;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row};
use holdfast_base::ByteSize;
use holdfast_ingest::packet::af_packet::InterfaceCounters;
use std::time::Duration;

const RATES: [Option<u64>; 3] = [Some(100_000), Some(300_000), None];
/// Frames, and where the recorder may run.
const SWEEPS: [(usize, Cores); 3] = [(64, Cores::NotLast), (1400, Cores::NotLast), (1400, Cores::All)];

/// What came of one run.
struct PacketLoss {
    offered: f64,
    lost: f64,
    lost_percent: f64,
}

/// Runs the sweeps over a virtual link.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let link = VirtualLink::make()?;
    let place = WorkFolder::with_room(scale.pick(32 << 20, 10 << 30))?;
    let mut recorders = Vec::new();
    for recorder in [PacketRecorder::Holdfast, PacketRecorder::Dumpcap, PacketRecorder::Stenotype] {
        match recorder.path(scale) {
            Ok(_) if recorder == PacketRecorder::Holdfast || scale == Scale::Real => recorders.push(recorder),
            Ok(_) => {}
            Err(why) if recorder == PacketRecorder::Holdfast => return Err(why),
            Err(why) => println!("{why}"),
        }
    }
    let mut report = Report::new("packets", scale);
    let mut head = row!["frame", "recorder's cores", "offered packets/s"];
    head.extend(recorders.iter().map(|recorder| format!("{} lost %", recorder.name())));
    head.push("verdict".into());
    let mut rows = vec![head];
    for (frame, cores) in scale.pick(&SWEEPS[..1], &SWEEPS[..]) {
        for rate in scale.pick(&RATES[..1], &RATES[..]) {
            let time = Duration::from_millis(scale.pick(2000, 1000));
            let traffic = Traffic { frame: *frame, rate: *rate, time, most: scale.pick(2000, u64::MAX) };
            rows.push(sweep(&link, &place, &recorders, (traffic, *cores), scale)?);
        }
    }
    report.table(&rows);
    report.finish()
}

/// One line of the table.
fn sweep(
    link: &VirtualLink,
    place: &WorkFolder,
    recorders: &[PacketRecorder],
    (traffic, cores): (Traffic, Cores),
    scale: Scale,
) -> Result<Vec<String>, BenchError> {
    let rounds = scale.pick(1, 5);
    let mut all: Vec<Vec<PacketLoss>> = recorders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..recorders.len() {
            let who = (round + turn) % recorders.len();
            all[who].push(measure(link, place, recorders[who], (traffic, cores), scale)?);
        }
    }
    let offered = Spread::of(all.iter().flatten().map(|outcome| outcome.offered));
    let lost: Vec<Spread> =
        all.iter().map(|outcomes| Spread::of(outcomes.iter().map(|outcome| outcome.lost_percent))).collect();
    let ours = Spread::of(all[0].iter().map(|outcome| outcome.lost));
    let worst = all[1..].iter().map(|outcomes| Spread::of(outcomes.iter().map(|o| o.lost)).median);
    let worst = worst.fold(f64::NAN, f64::max);
    let verdict = match worst.is_nan() {
        true => "no peer here",
        false if ours.median <= worst => "reached (not the worst), exact",
        false => "**missed** (not the worst), exact",
    };
    let rate = if traffic.rate.is_none() { " (all it can)" } else { "" };
    let where_to = if cores == Cores::All { "all" } else { "not the generator's" };
    let mut row = row![ByteSize(traffic.frame as u64), where_to, format!("{:.0}{rate}", offered.median)];
    row.extend(lost.iter().map(|lost| lost.show(2)));
    row.push(verdict.into());
    Ok(row)
}

fn measure(
    link: &VirtualLink,
    place: &WorkFolder,
    recorder: PacketRecorder,
    (traffic, cores): (Traffic, Cores),
    scale: Scale,
) -> Result<PacketLoss, BenchError> {
    let count = || {
        InterfaceCounters::read(link.near())
            .ok_or_else(|| BenchError::Accounting("no interface counters".into()))
    };
    let running = cores.run(|| recorder.start(scale, link.near(), place.path()))?;
    let before = count()?;
    let sent = link.send(traffic)?;
    let after = count()?;
    std::thread::sleep(Duration::from_millis(scale.pick(100, 400)));
    let counted = running.end()?;
    let received = after.rx_packets - before.rx_packets;
    // All frames of a virtual link are of a type that somebody takes: what is perhaps lost is lost.
    let gone = |counted: &InterfaceCounters| counted.lost_before() + counted.perhaps_lost();
    let dropped = gone(&after) - gone(&before);
    if received + dropped != sent.frames {
        let said =
            format!("{} sent, {received} received and {dropped} dropped by the interface", sent.frames);
        return Err(BenchError::Accounting(said));
    }
    if recorder == PacketRecorder::Holdfast
        && Some(received) != counted.lost.map(|lost| counted.packets + lost)
    {
        let said = format!("the interface received {received} packets, and Holdfast says {counted:?}");
        return Err(BenchError::Accounting(said));
    }
    let lost = received.saturating_sub(counted.packets) as f64;
    let offered = sent.frames as f64 / sent.took.as_secs_f64();
    Ok(PacketLoss { offered, lost, lost_percent: lost * 100.0 / received.max(1) as f64 })
}
