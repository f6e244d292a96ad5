//! All limits of the engine: sizes, depths, counts and intervals, with reasons.

use cairn_model::u64_of;
use std::time::Duration;

/// Scales a limit down in simulations, so that small stores grow, fill up and use every form of payload.
const fn scaled(real: u64, simulated: u64) -> u64 {
    if cfg!(feature = "simulation") { simulated } else { real }
}

/// Bytes of a unit: the unit of allocation, and the alignment of direct I/O. Devices require 512 or 4096; 4096 suits both.
pub const UNIT_BYTES: u64 = 4096;

/// Bytes of a block: the unit of checks and of caching. A ranged read reads and checks at most this much more than it returns
/// at each end.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// Units of a whole block.
pub(crate) const BLOCK_UNITS: u64 = BLOCK_BYTES as u64 / UNIT_BYTES;

/// Payloads up to this size are stored in the metadata with their record (inline).
pub const INLINE_BYTES_MAX: u64 = 16 * 1024;

/// Largest single payload (AWS: 5 GiB for one PUT).
pub const PAYLOAD_BYTES_MAX: u64 = 5 << 30;

/// Most bytes of block checks in a record; more are stored in table pages. Enough for payloads of 16 MiB, or 8 MiB sealed.
/// Larger records would need runs of overflow pages, which LMDB finds slowly.
pub(crate) const INLINE_CHECK_BYTES_MAX: usize = if cfg!(feature = "simulation") { 32 } else { 2048 };

/// Bytes of one write to a volume.
pub(crate) const WRITE_BYTES: usize = 256 * 1024;

/// The first buffer of a payload is smaller, so that many slow uploads do not hold much memory each.
pub(crate) const FIRST_WRITE_BYTES: usize = BLOCK_BYTES;

/// Writes of one payload that may be in flight while the next buffer fills.
pub(crate) const WRITES_IN_FLIGHT_MAX: usize = 4;

/// Memory limits for the buffers of one executor. More than the default gains nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLimits {
    /// Bytes of upload buffers. Beyond it, uploads wait, and TCP slows the clients down.
    pub upload_bytes: u64,
    /// Bytes that all readers together may prefetch. Beyond it, each reads block by block.
    pub read_ahead_bytes: u64,
    /// Bytes of small bodies that are read into memory, beyond what a connection may hold. Beyond it, they wait.
    pub small_body_bytes: u64,
}

impl BufferLimits {
    /// The minimum: three times what one upload has in flight, and what four readers prefetch. With less, a single upload or
    /// download would be slow. And one small body of the usual limit: a longer one takes up to 7 MiB of the reserve.
    pub const MIN: Self =
        Self { upload_bytes: 4 << 20, read_ahead_bytes: 2 << 20, small_body_bytes: 1 << 20 };
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self { upload_bytes: 128 << 20, read_ahead_bytes: 64 << 20, small_body_bytes: 16 << 20 }
    }
}

/// Blocks that a reader holds for a client that does not read: the one being sent and the next one.
pub const BLOCKS_OF_SLOW_READER: u64 = 2;

/// The longest time that a buffer may take to fill while other uploads wait for memory: 16 KiB/s with the smallest buffers. Not
/// applied while there is enough memory, which by default suffices for 2048 concurrent uploads per executor.
pub(crate) const FILL_PATIENCE: Duration = Duration::from_secs(4);

/// The interval at which an upload that waits for memory recalls buffers that have been filling for too long.
pub(crate) const RECALL_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of a payload's first reservation. Later ones double it, so that an upload that is announced but never sent reserves
/// little space. Equal to the shortest piece of a large payload.
pub(crate) const FIRST_RESERVATION_BYTES: u64 = LONG_PIECE_UNITS * UNIT_BYTES;

/// Fewest units of a large payload's piece (1 MiB), as long as a volume can grow. In a full store pieces may be single blocks.
pub(crate) const LONG_PIECE_UNITS: u64 = scaled(1 << 20, 128 << 10) / UNIT_BYTES;

/// Most extents of a payload: the limit of the record's field.
pub(crate) const EXTENTS_MAX: usize = 65_535;

/// Blocks that a reader prefetches.
pub(crate) const READ_AHEAD_BLOCKS: u64 = scaled(8, 2);
/// Most blocks of one read from the device.
pub(crate) const READ_RUN_BLOCKS: u64 = scaled(4, 1);
/// Blocks that a copy prefetches: more than a reader, because no client slows it down.
pub(crate) const COPY_AHEAD_BLOCKS: u64 = scaled(48, 2);
/// Most blocks of one read of a copy (1 MiB).
pub(crate) const COPY_RUN_BLOCKS: u64 = scaled(16, 1);
/// Bytes that a copy moves before it yields: about 0.1 ms of work.
pub(crate) const COPY_YIELD_BYTES: usize = 4 * BLOCK_BYTES;
/// Copies that run at a time on an executor. Two keep a device busy; with more, other requests only wait longer.
pub(crate) const COPIES_MAX: usize = 4;
/// Copies of one client that run at a time on an executor, so that another client's copy can always begin.
pub(crate) const COPIES_PER_CLIENT_MAX: usize = 2;
/// Copies that wait on an executor. A waiting copy takes some kilobytes, and its connection.
pub(crate) const COPIES_WAITING_MAX: usize = 1024;
/// Copies of one client that wait on an executor: more than clients send at a time.
pub(crate) const COPIES_WAITING_PER_CLIENT_MAX: usize = 128;
/// Bytes that a copy moves in its turn while others wait.
pub(crate) const COPY_TURN_BYTES: usize = 64 << 20;
/// Bytes that a copy moves between two rests: long enough to measure how fast the device is.
pub(crate) const COPY_PACE_BYTES: usize = 16 * BLOCK_BYTES;

/// Most units of one allocation (64 MiB). Larger payloads take several.
pub(crate) const EXTENT_UNITS_MAX: u64 = scaled(64 << 20, 256 << 10) / UNIT_BYTES;

/// Payloads up to this size prefer written space, where a flush needs no journal commit of the file system.
pub(crate) const SMALL_PAYLOAD_BYTES: u64 = 128 * 1024;

/// Units of written free space that the maintainer keeps ready for small payloads (64 MiB).
pub(crate) const WRITTEN_POOL_UNITS: u64 = scaled(64 << 20, 512 << 10) / UNIT_BYTES;
/// The maintainer writes more below this level.
pub(crate) const WRITTEN_POOL_LOW_UNITS: u64 = WRITTEN_POOL_UNITS / 2;

/// Least bytes of a growth step, which is a quarter of the slice's allocated space. Reclamation leaves one step of free space,
/// so that reclamation and growth do not alternate.
pub(crate) const GROWTH_BYTES_MIN: u64 = scaled(64 << 20, 512 << 10);
/// Most bytes of a growth step; see [`GROWTH_BYTES_MIN`].
pub(crate) const GROWTH_BYTES_MAX: u64 = 1 << 30;
/// The maintainer grows a volume when fewer units are free (32 MiB).
pub(crate) const FREE_LOW_UNITS: u64 = scaled(32 << 20, 128 << 10) / UNIT_BYTES;

/// Bytes of volumes that all slices of a new store have together, and so of the payloads that fit before a volume grows.
/// Small, because most new stores belong to somebody who tries the program.
const UNUSED_VOLUME_BYTES: u64 = scaled(8 << 20, GROWTH_BYTES_MIN * SLICES_MAX as u64);

/// Returns the bytes of the first volume of a slice of a new store.
pub(crate) fn first_volume_bytes(slices: u16) -> u64 {
    let block = u64_of(BLOCK_BYTES);
    let share = UNUSED_VOLUME_BYTES / u64::from(slices) / block * block;
    share.clamp(2 * block, GROWTH_BYTES_MIN)
}

/// With less free space in its volumes (8 MiB), a slice that cannot grow counts as full.
pub(crate) const ROOM_LOW_UNITS: u64 = scaled(8 << 20, 64 << 10) / UNIT_BYTES;
/// Disk space no longer counts as low when this part of the file system, in percent, is free beyond the limit of low space.
pub(crate) const LOW_PERCENT_RECOVERY: u64 = 2;

/// Least units worth returning to the file system (64 MiB).
pub(crate) const RECLAIM_UNITS_MIN: u64 = scaled(64 << 20, 256 << 10) / UNIT_BYTES;
/// Most units of one hole (64 MiB): punching a hole blocks writers of the volume.
pub(crate) const RECLAIM_PIECE_UNITS_MAX: u64 = (64 << 20) / UNIT_BYTES;
/// Fewest units of one hole (1 MiB). Shorter runs would fragment the volume, and small payloads use them.
pub(crate) const RECLAIM_PIECE_UNITS_MIN: u64 = LONG_PIECE_UNITS;
/// Reclamation takes at most this fraction (one in so many) of the time.
pub(crate) const RECLAIM_DUTY: u32 = if cfg!(feature = "simulation") { 1 } else { 10 };
/// Most holes that one growth step allocates again. If more would be needed, the file grows at its end instead.
pub(crate) const REUSED_HOLES_MAX: u64 = 8;

/// Most bytes of a volume, far below ext4's limit of 16 TiB. After that, a new volume is created.
pub(crate) const VOLUME_BYTES_MAX: u64 = scaled(1 << 40, 1 << 20);

/// Most changes of one transaction.
pub(crate) const BATCH_COMMANDS_MAX: usize = 512;

/// Part records that one transaction may read or remove before it ends. Bounds its dirty pages far below LMDB's limit, and
/// other changes wait only milliseconds.
pub(crate) const BATCH_PARTS_MAX: usize = 20_000;

/// Highest part number (AWS: "Multipart upload limits").
pub const PART_NUMBER_MAX: u16 = 10_000;

/// Largest multipart object: 48.8 TiB (AWS: 10 000 parts of 5 GiB).
pub const OBJECT_BYTES_MAX: u64 = PART_NUMBER_MAX as u64 * PAYLOAD_BYTES_MAX;

/// Most bytes of inline payloads in one transaction.
pub(crate) const BATCH_INLINE_BYTES_MAX: usize = 2 << 20;

/// Least written space after the last page of a slice's metadata file when a transaction begins. More than a batch can use:
/// each change dirties a few pages in addition to its inline payload.
pub(crate) const METADATA_HEADROOM_MIN: u64 = scaled(16 << 20, 1 << 20);
/// Headroom that the committer makes for the first change of a slice, so that this change does not wait for long.
pub(crate) const METADATA_HEADROOM_FIRST: u64 = METADATA_HEADROOM_MIN + scaled(4 << 20, 256 << 10);
/// Least headroom for deletes on a full disk. Puts need [`METADATA_HEADROOM_MIN`].
pub(crate) const METADATA_HEADROOM_FOR_DELETES: u64 = scaled(4 << 20, 256 << 10);
/// Headroom that the maintainer restores.
pub(crate) const METADATA_HEADROOM: u64 = scaled(48 << 20, 3 << 20);
/// The maintainer restores the headroom below this level.
pub(crate) const METADATA_HEADROOM_LOW: u64 = scaled(32 << 20, 2 << 20);

/// Headroom that all unused slices of a store have together (34 MiB). With two slices, each has what a transaction needs.
const UNUSED_HEADROOM: u64 = scaled(34 << 20, METADATA_HEADROOM * SLICES_MAX as u64);

/// Returns the headroom that the maintainer gives to a slice that has never been used.
pub(crate) fn unused_headroom(slices: u16) -> u64 {
    (UNUSED_HEADROOM / u64::from(slices)).min(METADATA_HEADROOM)
}

/// Most changes that wait for a committer. Further ones are refused.
pub(crate) const QUEUE_COMMANDS_MAX: usize = 65_536;

/// Most slices of a store. More slices mean smaller groups per commit.
pub const SLICES_MAX: u16 = 64;

/// Processor cores for each slice of a new store. The threads that commit take two fifths of the processor time of small
/// uploads, so one slice keeps two cores busy. With one slice for each core, groups were half as large, and each commit has
/// fixed costs.
const CORES_OF_SLICE: usize = 2;

/// Returns the default number of slices of a new store on a host with this many cores.
#[must_use]
pub fn default_slices(cores: usize) -> u16 {
    u16::try_from(cores.div_ceil(CORES_OF_SLICE)).unwrap_or(SLICES_MAX).clamp(1, SLICES_MAX)
}

/// Length up to which the commit log of a slice grows under load, in bytes.
pub(crate) const LOG_BYTES_MAX: u64 = scaled(64 << 20, 128 << 10);
/// Length up to which it may grow on any disk: a few of the largest batches.
pub(crate) const LOG_BYTES_LEAST: u64 = scaled(2 << 20, 128 << 10);
/// The logs of all slices together may take this fraction of the disk.
pub(crate) const LOG_DISK_SHARE: u64 = 64;
/// Bytes of log records, or of new pages of metadata, after which a checkpoint is made. More means fewer flushes, but more
/// pages that cannot be reused yet, and a longer start after a crash.
pub(crate) const CHECKPOINT_BYTES: u64 = scaled(16 << 20, 32 << 10);

/// Address space of a slice's metadata map.
pub(crate) const SLICE_MAP_BYTES: usize = 1 << 39;
/// Address space of the control environment's map.
pub(crate) const CONTROL_MAP_BYTES: usize = 1 << 34;

/// Longest encoded key in LMDB with pages of 4096 bytes. Only object keys with hundreds of NUL bytes exceed it; they are
/// refused.
pub(crate) const ENCODED_KEY_BYTES_MAX: usize = 1900;

/// Most extents that a hold keeps in one slice: 48 MiB of memory. A store that removes more while it is held is too busy for
/// it.
pub(crate) const HELD_EXTENTS_MAX: usize = if cfg!(feature = "simulation") { 64 } else { 4 << 20 };
/// Extents of a hold that are freed at once, which takes less than a millisecond.
pub(crate) const HELD_RELEASED_AT_ONCE: usize = 1024;
/// A hold ends when less than this much disk space is left above the reserve.
pub(crate) const HOLD_ROOM_MIN: u64 = 64 << 20;
/// The interval at which a hold looks whether it must end.
pub(crate) const HOLD_LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time of a hold.
pub const HOLD_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The interval at which the maintainer checks the free space of the file system.
pub(crate) const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Tests in a row that a device must pass after a failed flush before the slice is recovered.
pub(crate) const RECOVERY_TESTS: u32 = 3;
/// Time between two tests. It doubles after each failed test or recovery.
pub(crate) const RECOVERY_PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest time between two tests.
pub(crate) const RECOVERY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A compaction rests this many times as long as its last step took, so that processors and device are left to requests.
pub(crate) const COMPACTION_REST_FACTOR: u32 = 2;
/// Longest rest of a compaction, however slow the device is.
pub(crate) const COMPACTION_REST_MAX: Duration = Duration::from_secs(1);

/// The interval at which the maintainer checks the readers of the metadata.
pub(crate) const READERS_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Age of a read transaction that causes a warning: the metadata file grows while it is open, and nothing in the engine needs
/// so long.
pub(crate) const READ_AGE_MAX: Duration = Duration::from_secs(30);

/// Most reads and seeks for one page of a list. The page then ends early, so that it occupies neither the executor nor freed
/// metadata pages for long. A page of 1000 keys takes 1000; a page of 1000 common prefixes takes 1000 in each slice.
pub(crate) const LIST_STEPS_MAX: usize = 10_000;

/// Parts of a multipart object that a reader opens for itself. If a range touches more, the object's parts are opened once for
/// all readers on an executor, because an open part takes 1 to 2 KiB of memory.
pub(crate) const OWN_PARTS_MAX: usize = 16;

/// Most events of a page (management API: `limit` is 1 to 1000).
pub const EVENT_PAGE_EVENTS_MAX: usize = 1000;
/// Most events examined for one page, matching or not: a few milliseconds on an executor.
pub(crate) const EVENT_STEPS_MAX: usize = 4096;
/// Old events that one transaction removes: a few milliseconds of the committer's time.
pub(crate) const EVENTS_REMOVED_AT_ONCE: usize = 1000;
/// The interval at which events that are no longer kept are searched for.
pub(crate) const EVENT_EXPIRY_INTERVAL: Duration = Duration::from_secs(600);

/// Shares of the task queue for background reads; requests have 1000.
pub(crate) const BACKGROUND_SHARES: usize = 20;

/// Most blocks of one background read in an idle store.
pub(crate) const BACKGROUND_RUN_BLOCKS: u64 = 4;

/// The store counts as busy for this long after a request began.
pub(crate) const BACKGROUND_BUSY: Duration = Duration::from_millis(200);

/// In a busy store, a background reader rests this many times as long as its last read took. So it uses at most a tenth of
/// the device's time.
pub(crate) const BACKGROUND_REST_FACTOR: u32 = 9;
/// Shortest rest: with a fast device, the processor's caches take longer to recover than the read took.
pub(crate) const BACKGROUND_REST_MIN: Duration = Duration::from_millis(2);
/// Longest rest, however slow the device is.
pub(crate) const BACKGROUND_REST_MAX: Duration = Duration::from_secs(1);

/// Keys that a walk over a slice reads from one snapshot.
pub(crate) const WALK_PAGE_RECORDS: usize = 256;
/// Longest time that a walk over objects reads from one snapshot, if a key takes long: a pattern of a thousand characters.
pub(crate) const WALK_STEP_TIME: Duration = Duration::from_millis(1);

/// Most findings listed for one version. Further ones are counted.
pub(crate) const FINDINGS_OF_VERSION_MAX: usize = 16;

/// Most damaged versions listed by one verification of a bucket. Further ones are counted.
pub const CORRUPT_VERSIONS_MAX: usize = 1000;

/// Default for the most records that an inspection reads (specification: "storage inspect").
pub const INSPECTION_ENTRIES_DEFAULT: u64 = 100_000;
/// Largest configurable number of records for one inspection.
pub const INSPECTION_ENTRIES_MAX: u64 = 1_000_000_000;
/// Records that an inspection reads from one snapshot: a few milliseconds, during which freed pages cannot be reused.
pub(crate) const INSPECTION_SEGMENT_RECORDS: u64 = 4096;
/// Most findings listed by an inspection. Further ones are counted.
pub const FINDINGS_MAX: usize = 1000;
/// Most changes logged for an inspection between two of its snapshots: about 20 MB with keys of ordinary length. Far more
/// than are usually committed in that time, except for completions of thousands of parts.
pub(crate) const FOLLOWED_CHANGES_MAX: usize = 65_536;
/// Most orphaned runs of one slice that one repair frees. The next repair finds the others.
pub(crate) const REPAIRED_RUNS_MAX: usize = 65_536;
/// Most orphaned runs freed by one change.
pub(crate) const REPAIR_RUNS_PER_CHANGE: usize = 256;
/// Most units freed by one change (256 MiB), so that it stays a small part of a transaction.
pub(crate) const REPAIR_UNITS_PER_CHANGE: u64 = (256 << 20) / UNIT_BYTES;
/// The interval at which the scrub saves its position: at most this much work is repeated after a restart.
pub(crate) const SCRUB_SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// The interval at which the scrub checks whether the next pass is due.
pub(crate) const SCRUB_LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// The interval at which abandoned uploads are searched for.
pub(crate) const UPLOAD_EXPIRY_INTERVAL: Duration = Duration::from_secs(3600);
/// The wait of the scrub after a failure that says nothing about the stored data.
pub(crate) const SCRUB_RETRY: Duration = Duration::from_secs(300);

/// Most lookups for opening one version. Each attempt fails only if space was freed within the microseconds since its
/// snapshot began, so the limit is reached only under a load that frees space without pause.
pub(crate) const OPEN_ATTEMPTS_MAX: usize = 1000;

/// Most tags of an object (AWS: "Categorizing your objects using tags").
pub const OBJECT_TAGS_MAX: usize = 10;
/// Most tags of a bucket (AWS: "Using cost allocation S3 bucket tags").
pub const BUCKET_TAGS_MAX: usize = 50;
/// Longest key of a tag, in UTF-16 code units, as AWS counts.
pub const TAG_KEY_UNITS_MAX: usize = 128;
/// Longest value of a tag, in UTF-16 code units.
pub const TAG_VALUE_UNITS_MAX: usize = 256;

/// Most lifecycle rules of one bucket (AWS has the same limit).
pub const LIFECYCLE_RULES_MAX: usize = 1000;
/// Most non-current versions that a lifecycle rule can keep.
pub const NEWER_NONCURRENT_VERSIONS_MAX: u32 = 1000;
/// Most days of a lifecycle rule: a hundred years.
pub const LIFECYCLE_DAYS_MAX: u32 = 36_500;

/// Time after the start of the service until the first lifecycle run, unless the interval is shorter.
pub(crate) const LIFECYCLE_FIRST_RUN: Duration = Duration::from_secs(60);
/// The interval at which the lifecycle worker looks at the clock, and for changes of rules.
pub(crate) const LIFECYCLE_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which the time that is trusted is saved. It is compared with the clock after a restart, by days.
pub(crate) const TRUSTED_TIME_SAVE_INTERVAL: Duration = Duration::from_secs(3600);
/// Most entries that one step of building or removing a due index changes: a few milliseconds.
pub(crate) const INDEX_STEP_ENTRIES: usize = 1024;
/// The same while requests arrive.
pub(crate) const INDEX_STEP_ENTRIES_BUSY: usize = 64;
/// Entries of a due index that are read from one snapshot: a few milliseconds, with the records of their versions.
pub(crate) const DUE_PAGE_ENTRIES: usize = 4096;
/// Most versions that one command removes because they are due: a few milliseconds of the committer.
pub(crate) const EXPIRE_COMMAND_VERSIONS: usize = 256;
/// The same while requests arrive, so that none of them waits noticeably longer for its commit.
pub(crate) const EXPIRE_COMMAND_VERSIONS_BUSY: usize = 16;
/// Entries of a due index that are examined for the next due time of one rule.
pub(crate) const UPCOMING_ENTRIES_MAX: usize = 256;
/// Records of versions that are read for the next due times of all rules of a bucket with tags: a few milliseconds.
pub(crate) const UPCOMING_RECORDS_MAX: usize = 4096;
/// Most versions, uploads and parts that a preview of a lifecycle rule reads.
pub(crate) const PREVIEW_RECORDS_MAX: u64 = 10_000_000;
/// Longest time of a preview. Clients wait for it.
pub(crate) const PREVIEW_TIME_MAX: Duration = Duration::from_secs(20);
/// Most versions that a preview names.
pub const PREVIEW_SAMPLE_MAX: usize = 100;
