//! The state machine of a ring: which slot is overwritten next, what is held, what the journal records, what
//! a restart concludes.
//!
//! [`Ring`] is a pure state machine: events in, actions out, no I/O and no clock. [`Driver`] carries its actions out on
//! a disk. What arrives and how it is packed is not known here: the `ingest` crate's.
#![forbid(unsafe_code)]

mod ages;
mod backpressure;
mod birds_eye;
mod blocking;
mod cells;
mod check;
mod commit;
mod condition_hold;
mod copies;
mod crash_gaps;
mod create;
mod distil;
mod driver;
mod event;
mod failed_writes;
mod flush;
mod guarantee;
mod hold_refcounts;
mod inspect;
mod job;
mod job_step;
mod journal;
mod ledger;
mod min_size;
mod offline_order;
mod order;
mod orders;
mod pins;
mod purge;
mod ranges;
mod rates;
mod rebuild;
mod recover;
mod redact;
mod replace;
mod runway;
mod runway_order;
mod runway_replay;
mod scan;
mod schedule;
mod slot_row;
mod snapshot;
mod span;
mod state;
mod status;
mod streams;
mod table;
mod walk;

pub use ages::Ages;
pub use birds_eye::BirdsEye;
pub use blocking::Blocking;
pub use check::{CHECK_QUANTUM, Damage, Depth, OWN_QUANTUM, SlotCheck, check_slot};
pub use crash_gaps::CrashGap;
pub use create::{CreateError, NewRing, create, write_superblocks};
pub use driver::{Driver, DriverCounts, JournalDelta, ReadDone, SlotRead, Took, is_slot_write};
pub use event::{Action, Config, DeviceState, Event, OpenBrief, SealedSlot};
pub use flush::durable_after;
pub use guarantee::{
    BURSTS, COMMIT_BYTES, Declared, Figures, Guarantee, Lack, Load, Longest, NOTHING_PROMISED, PACKED,
    Refused, Shape, admit, counted_write, each_would_do, figures, least_above, load, longest, measured,
    most_below, most_rate, other_slots, packing, preferred_slot, soon, standing,
};
pub use job::{JobError, Port, Work};
pub use job_step::{Due, JobStep, PlacedCopy, StepReply, StepSlot};
pub use journal::JournalEnd;
pub use ledger::{ClockStep, EpochStart, Preamble};
pub use min_size::{TooSmallToHold, too_small_to_hold};
pub use offline_order::{OfflineOrderError, order_giving_way, order_offline};
pub use order::{
    DistilRequest, ExportRequest, ExtendRequest, HoldRequest, Order, OrderTag, Original, Outcome,
    PurgeRequest, Range, Refusal, ReleaseRequest,
};
pub use rates::{Excess, Piece, RateVerdict, Rates, Spare};
pub use rebuild::Rebuilt;
pub use recover::{
    RecoverError, Recovered, as_journaled, find_superblock, read_superblock, recover, recover_for_capture,
};
pub use runway::{fewest_slots, least_named, least_slots};
pub use scan::SCAN_READS;
pub use schedule::{Class, Margin, Next, Policy, Promise, ReadRequest, Reads, Schedule, View, visit};
pub use state::Ring;
pub use status::{
    ActKind, ActNumbers, ActStatus, HoldStatus, RingStatus, SlotCounts, SlotLook, SlotStatus, StreamStatus,
};
pub use streams::{NewSchema, NewStream};
pub use table::Bounds;
