//! The storage engine: slices, volumes, blocks, commits and lists. It knows no HTTP.
//!
//! A [`Store`] is what all threads share: the slices with their metadata (LMDB) and volumes (direct I/O), one committer
//! and one keeper thread for each slice, the buckets, the cache of checked blocks. An [`Engine`] is the store as one
//! executor uses it: its own files on its own ring.
//!
//! Promises: an acknowledged change is on the device, payload before metadata; every byte that is read was checked
//! against the check made when it was written; a reader sees one version, whole, whatever happens meanwhile.
//!
//! Disk assumptions: a flush that returns has made all completed writes durable; a sector of 512 bytes is written whole
//! or not at all; nothing else writes to the data folder.

mod allocation;
mod batch;
mod block;
mod bucket;
mod bucket_record;
mod cache;
mod changes;
mod codec;
mod committer;
mod compact;
mod control;
mod copy;
mod disk;
mod engine;
mod error;
mod events;
mod examine;
mod expiry;
mod extent;
mod figures;
mod files;
#[cfg(test)]
mod fragmentation;
mod free_map;
mod free_runs;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod hasher;
mod health;
mod inspect;
mod keeper;
mod keys;
pub mod limits;
mod list;
mod lock;
mod md5;
mod merge;
mod multipart;
mod object;
mod open;
mod pace;
mod part_record;
mod proof;
mod queue;
mod reader;
mod reclaim;
mod record;
mod repair;
mod scrub;
mod seal;
#[cfg(feature = "simulation")]
pub mod simulation;
mod slice;
mod space;
mod store;
mod superblock;
mod upload;
mod upload_budget;
mod upload_record;
mod verify;
mod volume;
mod writer;

pub use block::block_check;
pub use bucket::{Bucket, BucketChange, BucketSettings, Quota, Usage, Versioning};
pub use cairn_lmdb::Compaction;
pub use compact::{CompactError, compact_store};
pub use engine::{Engine, PutObject};
pub use error::{EngineError, OpenError};
pub use events::{FoundWhile, StoreEvent, StoreObserver};
pub use examine::{
    StoreFacts, StorePart, examine_direct_io, examine_file_system, examine_lock, examine_master_key,
    examine_store, store_parts,
};
pub use figures::StoreFigures;
pub use inspect::{Finding, FindingKind, Inspecting, Inspection};
pub use lock::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod};
pub use md5::{Md5, md5_digest};
pub use object::{
    Attributes, ChecksumAlgorithm, ChecksumKind, CompleteOutcome, DeleteOptions, DeleteOutcome, EtagMatch,
    ListObjects, ListPage, ListPosition, ListVersions, ListedObject, ListedVersion, ObjectInfo, PartRun,
    PutOutcome, VersionPosition, VersionsPage, WriteCondition,
};
pub use proof::ProofKey;
pub use reader::{OpenObject, PayloadChunk, PayloadReader};
pub use repair::{Repair, RepairMode};
pub use scrub::{ScrubOptions, ScrubRecord, ScrubStatus};
pub use store::{Store, StoreOptions, StoreUsage};
pub use superblock::{FORMAT_VERSION, StoreId};
pub use upload::{
    CompleteUpload, ListUploads, ListedUpload, NewUpload, PartInfo, PartsPage, PutPart, UploadChecksum,
    UploadInfo, UploadPosition, UploadsPage, composite_etag,
};
pub use upload_budget::Recall;
pub use verify::{BucketVerification, VerificationStatus, VerifiedVersion, VerifyPosition, VerifyProgress};
pub use writer::{PayloadWriter, StagedPayload};
