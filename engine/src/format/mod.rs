//! On-disk formats: records, keys, blocks, the free map and the superblock.
//!
//! Everything here maps values to bytes and back. Golden-byte tests pin each version of each record.

pub(crate) mod block;
pub(crate) mod bucket_record;
pub(crate) mod codec;
pub(crate) mod due_record;
pub(crate) mod event_record;
pub(crate) mod extent;
pub(crate) mod format_version;
pub(crate) mod free_map;
pub(crate) mod keys;
pub(crate) mod lifecycle_record;
pub(crate) mod object_record;
pub(crate) mod part_record;
pub(crate) mod payload_id;
pub(crate) mod scrub_record;
pub(crate) mod seal;
pub(crate) mod signing_key;
pub(crate) mod superblock;
pub(crate) mod upload_record;
pub(crate) mod usage_record;
