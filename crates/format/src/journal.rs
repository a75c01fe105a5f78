//! The journal: commits, and the records in them. `ring` decides when to write what, and what recovery
//! concludes.

mod act;
mod commit;
mod condition_hold;
mod lent;
mod open;
mod orders;
mod record;
mod table;

pub use act::{Act, ActRecord};
pub use commit::{CommitHead, CommitWriter, MAX_COMMIT, Records, commit_len, find_recovery, read_commit};
pub use condition_hold::ConditionHold;
pub use open::{OpenEntries, OpenEntry, OpenSlot};
pub use orders::{HoldRecord, PurgeRecord, StreamRecord};
pub use record::Record;
pub use table::{CopyRecord, SlotState, TableEntry};
