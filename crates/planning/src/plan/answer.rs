//! Everything that `holdfast plan` answers, as plain figures: for JSON as they are, for people by `text`. Pure.

use super::Site;
use super::region::{self, Region};
use super::{Admitted, Ask, Packs, slots};
use holdfast_base::{ByteSize, Rate};
use holdfast_client::json::AttributeLoad;
use holdfast_format::Measured;
use holdfast_ring::{Load, Shape, admit, figures};
use serde::Serialize;

/// How many slots in one go the table tells of.
const GATHERS: [u16; 4] = [1, 2, 4, 8];

/// Parts of the device that the table of regions tells of, in hundredths.
const REGIONS: [u8; 10] = [100, 90, 80, 70, 60, 50, 40, 30, 20, 10];

const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;

/// The answer.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    pub rate_bytes_per_second: u64,
    pub elements_per_second: u64,
    pub burst_bytes: u64,
    #[serde(flatten)]
    pub attributes: AttributeLoad,
    pub medium_bytes_per_second: u64,
    pub used_share: f64,
    pub region_percent: u8,
    pub region_bytes: u64,
    pub device_bytes: u64,
    pub worst_write_bytes_per_second: u64,
    pub worst_read_bytes_per_second: u64,
    pub slot_bytes: u64,
    pub slots: u32,
    pub gather: u16,
    pub quantum_bytes: u32,
    pub buffers: u32,
    pub memory_bytes: u64,
    pub flush_seconds: f64,
    pub write_seconds: f64,
    pub wait_seconds: f64,
    pub period_seconds: f64,
    pub forced_seconds: f64,
    pub durable_after_seconds: f64,
    pub capture_only_bytes_per_second: u64,
    pub capture_only_payload_bytes_per_second: u64,
    pub with_reads_bytes_per_second: u64,
    pub with_reads_payload_bytes_per_second: u64,
    pub reads_left_bytes_per_second: u64,
    /// At 1.5, 2 and 4 times the rate; `null`: for ever.
    pub burst_seconds: [Option<f64>; 3],
    pub kept_seconds: f64,
    pub drive_writes_per_day: f64,
    pub endurance_years: Option<f64>,
    pub by_gather: Vec<GatherRow>,
    pub by_region: Vec<RegionRow>,
}

/// The load of attributes, as it is asked for.
pub(crate) fn attribute_load(ask: &Ask) -> AttributeLoad {
    let size = ask.rate.0.div_ceil(ask.elements().max(1));
    AttributeLoad {
        attributes: ask.each.columns,
        attribute_bytes_per_element: ask.each.of_size(size).total(),
    }
}

/// What gathering costs and gives.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct GatherRow {
    pub gather: u16,
    pub admitted: bool,
    pub buffers: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub reads_left_bytes_per_second: Option<u64>,
    pub durable_after_seconds: Option<f64>,
}

/// What a part of the device would be good for.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Debug, Serialize)]
pub struct RegionRow {
    pub region_percent: u8,
    pub region_bytes: u64,
    pub worst_write_bytes_per_second: u64,
    pub medium_bytes_per_second: u64,
    pub rate_bytes_per_second: u64,
    /// How long data would stay at the rate that was asked for; `null` where that is not admitted.
    pub kept_seconds: Option<f64>,
}

impl Answer {
    /// What follows from an admission.
    pub(crate) fn new(site: &Site<'_>, ask: &Ask, admitted: &Admitted, endurance: Option<ByteSize>) -> Self {
        let Admitted { load, shape, guarantee } = admitted;
        let measured = &site.measured;
        let lane = site.lane();
        let slots = slots(lane, shape.slot, shape.gather).unwrap_or(0);
        let figures = admitted.figures(measured, slots);
        let among = shape.among(slots);
        let capture_only = ask.most_alone(&among, site.packs());
        let with_reads = ask.most(&among, site.packs());
        let rate = (load.rate.0 as f64).max(1.0);
        Self {
            rate_bytes_per_second: ask.rate.0,
            elements_per_second: ask.elements(),
            burst_bytes: ask.burst.0,
            attributes: attribute_load(ask),
            medium_bytes_per_second: load.rate.0,
            used_share: f64::from(guarantee.used) / 1e6,
            region_percent: site.region.0,
            region_bytes: lane,
            device_bytes: site.total,
            worst_write_bytes_per_second: measured.write.0,
            worst_read_bytes_per_second: measured.read.0,
            slot_bytes: shape.slot.0,
            slots,
            gather: shape.gather,
            quantum_bytes: shape.quantum,
            buffers: shape.buffers,
            memory_bytes: admitted.memory().0,
            flush_seconds: shape.flush.as_secs_f64(),
            write_seconds: guarantee.write.as_secs_f64(),
            wait_seconds: guarantee.wait.as_secs_f64(),
            period_seconds: guarantee.period.as_secs_f64(),
            forced_seconds: guarantee.forced.as_secs_f64(),
            durable_after_seconds: guarantee.durable_after.as_secs_f64(),
            capture_only_bytes_per_second: capture_only.medium.0,
            capture_only_payload_bytes_per_second: capture_only.payload.0,
            with_reads_bytes_per_second: with_reads.medium.0,
            with_reads_payload_bytes_per_second: with_reads.payload.0,
            reads_left_bytes_per_second: figures.reads_left.0,
            burst_seconds: figures.bursts.map(|burst| burst.map(|burst| burst.as_secs_f64())),
            kept_seconds: kept(slots, shape.slot, load.rate),
            drive_writes_per_day: rate * DAY / site.total.max(1) as f64,
            endurance_years: endurance.map(|endurance| endurance.0 as f64 / (rate * YEAR)),
            by_gather: GATHERS.map(|gather| by_gather(measured, load, shape, gather)).into(),
            by_region: regions(site.region)
                .into_iter()
                .filter_map(|percent| by_region(site, ask, shape, Region(percent)))
                .collect(),
        }
    }
}

/// The parts of the device that are told of, the one that was asked for among them.
fn regions(asked: Region) -> Vec<u8> {
    let mut all = REGIONS.to_vec();
    all.push(asked.0);
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.dedup();
    all
}

fn kept(slots: u32, slot: ByteSize, rate: Rate) -> f64 {
    f64::from(slots) * slot.0 as f64 / (rate.0 as f64).max(1.0)
}

/// The same load and slots, with the memory that it takes.
fn by_gather(measured: &Measured, load: &Load, shape: &Shape, gather: u16) -> GatherRow {
    let with = |buffers| Shape { gather, buffers, ..*shape };
    let granted = admit(measured, load, &with(u32::MAX)).ok();
    let left = granted.map(|granted| figures(measured, load, &with(granted.buffers)).reads_left.0);
    GatherRow {
        gather,
        admitted: granted.is_some(),
        buffers: granted.map(|granted| granted.buffers),
        memory_bytes: granted.map(|granted| u64::from(granted.buffers).saturating_mul(shape.slot.0)),
        reads_left_bytes_per_second: left,
        durable_after_seconds: granted.map(|granted| granted.durable_after.as_secs_f64()),
    }
}

/// The most that a part of the device is good for, in this shape and with the memory that it takes.
fn by_region(site: &Site<'_>, ask: &Ask, shape: &Shape, region: Region) -> Option<RegionRow> {
    let bytes = region::bytes(site.profile, site.total, region);
    let measured = region::known(site.profile, site.total, region)?;
    let slot = shape.slot;
    let slots = slots(bytes, slot, shape.gather)?;
    let shape = Shape { slot, buffers: u32::MAX, ..*shape }.among(slots);
    let load = ask.load(slot);
    let lane = figures(&measured, &load, &shape).with_reads;
    let most = ask.most(&shape, Packs::profiled(&measured, site.profile));
    Some(RegionRow {
        region_percent: region.0,
        region_bytes: bytes,
        worst_write_bytes_per_second: measured.write.0,
        medium_bytes_per_second: most.medium.0,
        rate_bytes_per_second: most.payload.0,
        kept_seconds: (load.rate <= lane).then(|| kept(slots, slot, load.rate)),
    })
}
