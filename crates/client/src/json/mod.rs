//! JSON shapes of results: what commands, a server and Python give programs. Their fields are promised, and listed in
//! `docs/commands.md`. Results of planning and proving are shapes of `planning`.

mod accounts;
mod act;
mod audit;
mod check;
mod condition_hold;
mod copies;
mod counters;
mod datasets;
mod exports;
mod failure;
mod figures;
mod format;
mod gaps;
mod guarantee;
mod holds;
mod index;
mod orders;
mod peers;
mod scans;
mod ships;
mod sites;
mod slots;
mod status;
mod streams;
mod tree;

pub use accounts::{
    AccountLine, ChangedPassword, GrantLine, LoggedInLine, LoggedOutLine, MemberLine, RemovedAccount,
    SiteAuditLine,
};
pub use act::Act;
pub use audit::{AppendedActs, DroppedActs};
pub use check::{CheckedRing, DamagedPlace, RebuiltRing};
pub use condition_hold::{DistilledSlots, HoldProgress, UnseenElements};
pub use copies::{HoldOrderLine, JobLine, PolicyLine, PurgedEntry, RemovedPolicy, StagedVersions};
pub use counters::Counters;
pub use datasets::{
    ArchivedDataset, CheckedVault, ConvertedFile, DamagedDataset, DamagedPart, DatasetInfo, EvacuatedHold,
    FileDamage, ListedEntry, McapInfo, PackedFolder, RecoveredFile, RemovedObject, ScrubbedVault,
    SyncedVaults, TopicInfo, UnpackedFolder, VaultLine, VaultObjectLine, VerifiedDataset,
};
pub use exports::{HitsExport, RangeExport};
pub use failure::ErrorMessage;
pub use figures::FiguresJson;
pub use format::FormattedRing;
pub use gaps::{CutOffRun, InterfaceLoss};
pub use guarantee::{AttributeLoad, Guarantee, GuaranteeFigures};
pub use holdfast_export::json::{Gap, time, time_if};
pub use holds::{EvaluatedStream, Hold, HoldCondition};
pub use index::CopiedIndex;
pub use orders::{GrownRing, NewHold, PurgedRange, ReleasedHold};
pub use peers::{ConflictLine, ConflictWriteLine, DigestLine, PeerLine, RemovedPeer, SettledConflict};
pub use scans::{
    CheckedItem, CryptedItem, FoundItem, FoundLine, FoundMatch, ItemHashes, ItemStatistics, ModuleResult,
    ModuleTotal, ScanReport, ScannedItem,
};
pub use ships::{PlannedArchive, PlannedProject, PlannedSchedule, ShipEvent, WrittenReport};
pub use sites::{
    ImportedLines, MountEvent, ReceivedFile, RefusedWay, RevokedToken, SentFile, ShellWays, SiteAttribute,
    SiteEntryLine, SiteReplica, SiteStat, SiteToken, SiteUpload, SiteVersion, StartedServer,
};
pub use slots::Slot;
pub use status::{DroppedElements, Lane, Recorder, RingStatus, Source};
pub use streams::{Attribute, Stream};
pub use tree::{
    CopiedEntry, EditedObject, MovedEntry, PlaceUsage, ReplicaLine, SiteEntryId, TouchedObject, TrashLine,
};
