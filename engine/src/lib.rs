//! The storage engine: slices, volumes, blocks, commits and lists. It knows no HTTP.
//!
//! A [`Store`] is shared by all threads: the slices with their metadata (LMDB) and volumes (direct I/O), one committer and
//! one maintenance thread per slice, the buckets, and the cache of checked blocks. An [`Engine`] is the store as one executor
//! uses it, with files of its own on its own ring.
//!
//! Promises: an acknowledged change is on the device, payload before metadata. Every byte that is read is compared with the
//! check that was computed when it was written. A reader sees one version, whole, whatever happens in the meantime.
//!
//! Assumptions about the disk: a flush that returns has made all completed writes durable. A sector of 512 bytes is written
//! completely or not at all. Nothing else writes to the data folder.

// The layers, from bottom to top: a folder imports only from those above it in this list.
mod counters;
mod error;
mod fault_reports;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod limits;

mod types;

mod format;

mod fault;

mod device;

mod space;

mod slice;

mod commit;

mod maintenance;

mod store;

mod executor;

mod read;

mod write;

mod list;

mod api;

mod check;

mod lifecycle;

pub mod backup;
mod salvage;
mod search;

#[cfg(feature = "simulation")]
pub mod simulation;

pub use api::copy::inspect_in_turns;
pub use api::engine::Engine;
pub use api::event_retention::EventRetention;
pub use cairn_lmdb::{Compaction, DamagedLog};
pub use check::inspect::{Finding, FindingKind, Inspecting, Inspection};
pub use check::repair::{Repair, RepairMode};
pub use check::scrub::ScrubOptions;
pub use check::upgrade::Upgrade;
pub use check::verifier::VerifiedVersion;
pub use check::verify::BucketVerification;
pub use error::{EngineError, OpenError, Precondition};
pub use executor::copy_queue::CopyPermit;
pub use executor::memory_budget::{MemoryPermit, Recall};
pub use fault_reports::{FaultObserver, FoundWhile, StoreFault};
pub use format::block::block_check;
pub use format::format_version::{FORMAT_VERSION, FORMAT_VERSION_MIN, Feature, format_changes};
pub use format::scrub_record::{ScrubRecord, VerifyPosition};
pub use format::signing_key::SigningKey;
pub use format::superblock::{StoreFacts, StoreId};
pub use lifecycle::LifecycleOptions;
pub use read::reader::{OpenObject, PayloadChunk, PayloadReader};
pub use salvage::{ContentError, DamagedStore, SalvageLoss, SalvageTarget, SalvagedVersion, WriteContent};
pub use slice::command::{CompleteUpload, ImportVersion, ImportedContent, PutObject, PutPart, VersionChange};
pub use slice::event_source::EventSignal;
pub use slice::staged::StagedPayload;
pub use store::background::lower_priority;
pub use store::compact::{CompactError, compact_store};
pub use store::compaction::OtherEnvironment;
pub use store::compaction_status::CompactionStatus;
pub use store::discard_logs::{DamagedSlice, DiscardMode, LostObject, discard_damaged_logs};
pub use store::hold_status::{HoldRequest, HoldState, HoldStatus};
pub use store::metrics::StoreMetrics;
pub use store::options::{CommitMode, EtagKind, StoreOptions};
pub use store::preflight::{
    StorePart, preflight_commit_logs, preflight_direct_io, preflight_file_system, preflight_lock,
    preflight_master_key, preflight_store, store_parts,
};
pub use store::scrub_status::ScrubStatus;
pub use store::upgrade::upgrade_stopped_store;
pub use store::verify_progress::{VerificationStatus, VerifyProgress};
pub use store::{Store, StoreRoom, StoreUsage};
pub use types::bucket::{Bucket, BucketChange, BucketEncryption, BucketSettings, Quota, Usage, Versioning};
pub use types::disk_state::DiskState;
pub use types::event::{
    Cause, EventId, EventPage, EventQuery, EventType, EventTypes, LatestEventPage, ObjectOfEvent, Origin,
    StorageEvent, Tick,
};
pub use types::import::{ImportOutcome, ImportedIdentity, PartsDigest};
pub use types::lifecycle::{
    DayLength, FilterForm, LifecycleChange, LifecycleRule, LifecycleRules, RuleId, VersionRole,
};
pub use types::lifecycle_status::{
    LifecyclePreview, LifecycleStatus, PlannedAction, PlannedRemoval, RuleCounts, RuleStatus,
};
pub use types::object::{
    Attributes, ChangedObject, ChangedPage, ChecksumAlgorithm, ChecksumKind, CompleteOutcome, DeleteOptions,
    DeleteOutcome, DeletedObject, DeletedPage, EtagMatch, ListObjects, ListPage, ListPosition, ListVersions,
    ListedObject, ListedVersion, ObjectInfo, PartRun, PutOutcome, VersionPosition, VersionsPage,
    WriteCondition,
};
pub use types::object_lock::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod};
pub use types::public_access::{
    NewPublicRules, PUBLIC_POLICY_BYTES_MAX, PUBLIC_PREFIXES_BYTES_MAX, PUBLIC_RULES_MAX, PublicAccess,
    PublicAccessBlock, PublicRule, public_rules_text,
};
pub use types::search::{
    AttributesFilter, CountFolders, FindObjects, Folder, FolderUsage, FoundObjects, KeyFilter, ObjectEvents,
    SearchBounds,
};
pub use types::tags::{InvalidTags, Tags};
pub use types::upload::{
    ListUploads, ListedUpload, NewUpload, ObjectParts, PartInfo, PartsPage, UploadChecksum, UploadInfo,
    UploadPosition, UploadsPage, composite_etag,
};
pub use write::writer::PayloadWriter;
