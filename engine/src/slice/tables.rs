//! The tables of a slice's metadata (`slices/NN/meta`).
//!
//! | table | key | value |
//! |---|---|---|
//! | `objects` | `keys.rs` | `object_record.rs` |
//! | `uploads` | `keys.rs` | `upload_record.rs` |
//! | `parts` | `keys.rs` | `part_record.rs` |
//! | `assembled` | the key that the upload had in `uploads`, once it is completed | u64, the sequence of the version made of its parts |
//! | `imported_ids` | `keys.rs` | u64, the number of the imported version with this id; absent before format version 11 |
//! | `null_versions` | common prefix of the keys of a key's versions | u64, the sequence of its null version if that is not the newest |
//! | `events` | u64 tick, big-endian | `event_record.rs` |
//! | `due`, `due_state` | `due_record.rs` | `due_record.rs` |
//! | `free_map` | `free_map.rs` | `free_map.rs` |
//! | `usage` | `usage_record.rs` | `usage_record.rs` |
//! | `slice` | `identity` | 16 bytes store id, u16 number of the slice |
//! | `slice` | `sequence` | u64, the last sequence assigned to a version or an upload |

use crate::error::{OpenContext as _, OpenError};
use crate::format::codec::SMALL_RECORD_VERSION;
use crate::format::due_record::DUE_RECORD_VERSION;
use crate::format::event_record::EVENT_RECORD_VERSION;
use crate::format::format_version::Feature;
use crate::format::object_record::OBJECT_RECORD_VERSION;
use crate::format::part_record::PART_RECORD_VERSION;
use crate::format::superblock::Superblock;
use crate::format::upload_record::UPLOAD_RECORD_VERSION;
use crate::limits::SLICE_MAP_BYTES;
use crate::slice::change_log::FollowedTable;
use crate::types::event::Tick;
use cairn_lmdb::{Environment, EnvironmentOptions, FlushFailures, LogOptions, Table};
use std::path::Path;

pub(crate) const OBJECTS_TABLE: &str = "objects";
const IMPORTED_IDS_TABLE: &str = "imported_ids";
pub(crate) const IDENTITY_KEY: &[u8] = b"identity";
pub(crate) const SEQUENCE_KEY: &[u8] = b"sequence";

/// The tables of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) objects: Table,
    pub(crate) uploads: Table,
    pub(crate) parts: Table,
    pub(crate) assembled: Table,
    pub(crate) imported_ids: Table,
    pub(crate) null_versions: Table,
    pub(crate) events: Table,
    pub(crate) due: Table,
    pub(crate) due_state: Table,
    pub(crate) free_map: Table,
    pub(crate) usage: Table,
    pub(crate) slice: Table,
}

impl Tables {
    /// Returns a followed table, and the version byte of its new records.
    pub(crate) const fn followed(&self, table: FollowedTable) -> (Table, u8) {
        match table {
            FollowedTable::Objects => (self.objects, OBJECT_RECORD_VERSION),
            FollowedTable::Uploads => (self.uploads, UPLOAD_RECORD_VERSION),
            FollowedTable::Parts => (self.parts, PART_RECORD_VERSION),
            FollowedTable::Assembled => (self.assembled, SMALL_RECORD_VERSION),
            FollowedTable::ImportedIds => (self.imported_ids, SMALL_RECORD_VERSION),
            FollowedTable::NullVersions => (self.null_versions, SMALL_RECORD_VERSION),
            FollowedTable::Events => (self.events, EVENT_RECORD_VERSION),
            FollowedTable::Due => (self.due, DUE_RECORD_VERSION),
        }
    }
}

/// The options that open the metadata environment of a slice.
pub(crate) const METADATA_OPTIONS: EnvironmentOptions =
    EnvironmentOptions { map_bytes: SLICE_MAP_BYTES, tables_max: 16 };

/// Opens the metadata environment of the slice in `folder`, with or without a commit log, with the tables that a store of this
/// format version has.
pub(crate) fn open_environment(
    folder: &Path,
    (log, flush_failures): (Option<LogOptions>, &FlushFailures),
    format_version: u32,
) -> Result<(Environment, Tables), OpenError> {
    let meta = folder.join("meta");
    if !meta.is_dir() {
        return Err(OpenError::Damaged { path: meta, what: "the slice's metadata is missing".to_owned() });
    }
    let opened = match log.map(|log| Environment::open_with_log(&meta, METADATA_OPTIONS, log, flush_failures))
    {
        Some(Err(cairn_lmdb::Error::Full)) => {
            // Deletes make room without a log, too.
            tracing::warn!(target: "service::engine", path = %meta.display(), "the disk is full: the commit log is created at the next start with room for it");
            Environment::open(&meta, METADATA_OPTIONS)
        }
        Some(opened) => opened,
        None => Environment::open(&meta, METADATA_OPTIONS),
    };
    let environment = opened.doing("opening", &meta)?;
    environment.count_in(flush_failures);
    let table = |name| environment.table(name).doing("opening", &meta);
    let tables = Tables {
        objects: table(OBJECTS_TABLE)?,
        uploads: table("uploads")?,
        parts: table("parts")?,
        assembled: table("assembled")?,
        imported_ids: match Feature::ImportedVersions.require(format_version) {
            Ok(()) => table(IMPORTED_IDS_TABLE)?,
            Err(_) => environment.table_if_present(IMPORTED_IDS_TABLE).doing("opening", &meta)?,
        },
        null_versions: table("null_versions")?,
        events: table("events")?,
        due: table("due")?,
        due_state: table("due_state")?,
        free_map: table("free_map")?,
        usage: table("usage")?,
        slice: table("slice")?,
    };
    Ok((environment, tables))
}

/// Returns the value of `identity` in the metadata of a slice.
fn identity(superblock: Superblock, number: u16) -> Vec<u8> {
    [&superblock.store.0[..], &number.to_le_bytes()].concat()
}

/// Writes the records of a new slice: its identity, and sequence 0.
pub(super) fn write_first_records(
    environment: &Environment,
    tables: Tables,
    superblock: Superblock,
    number: u16,
    meta: &Path,
) -> Result<(), OpenError> {
    let write = || {
        let mut txn = environment.write()?;
        let identity = identity(superblock, number);
        txn.put(tables.slice, IDENTITY_KEY, SMALL_RECORD_VERSION, &identity, &[])?;
        txn.put(tables.slice, SEQUENCE_KEY, SMALL_RECORD_VERSION, &0u64.to_le_bytes(), &[])?;
        txn.commit()
    };
    write().doing("writing", meta)
}

/// Refuses the metadata of another store or slice, and an empty environment.
pub(super) fn check_identity(
    environment: &Environment,
    tables: Tables,
    superblock: Superblock,
    number: u16,
    folder: &Path,
) -> Result<(), OpenError> {
    let path = folder.join("meta");
    let txn = environment.read().doing("reading", &path)?;
    let record = txn.get(tables.slice, IDENTITY_KEY).doing("reading", &path)?;
    if record.is_some_and(|record| record.body == identity(superblock, number)) {
        return Ok(());
    }
    let what = "the metadata is empty, or belongs to another store or slice".to_owned();
    Err(OpenError::Damaged { path, what })
}

/// Returns the tick of the last event in a table of events, or 0.
pub(crate) fn last_tick(environment: &Environment, events: Table) -> Result<Tick, cairn_lmdb::Error> {
    let txn = environment.read()?;
    let last = txn.scan_reverse(events, &[u8::MAX; 9])?.next().transpose()?;
    Ok(last.and_then(|(key, _)| key.try_into().ok()).map(u64::from_be_bytes).map(Tick).unwrap_or_default())
}
