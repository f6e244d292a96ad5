//! Every size, depth and count that the engine limits itself to, with the reason.

use std::time::Duration;

/// In a simulation volumes, pools and payload forms are scaled down, so that small stores grow, fill and take every form.
const fn scaled(real: u64, simulated: u64) -> u64 {
    if cfg!(feature = "simulation") { simulated } else { real }
}

/// Bytes of a unit: the smallest piece of a volume that is handed out, and the alignment of all direct I/O.
/// Devices want 512 or 4096; 4096 suits both.
pub const UNIT_BYTES: u64 = 4096;

/// Bytes of a block: the piece of a payload that has a check of its own, and the unit of caching. A ranged read
/// reads and checks no more than this beside what was asked for.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// Units of a whole block.
pub(crate) const BLOCK_UNITS: u64 = BLOCK_BYTES as u64 / UNIT_BYTES;

/// Payloads up to this size live in the record's tail and go through group commit alone.
pub const INLINE_BYTES_MAX: u64 = 16 * 1024;

/// Largest single payload (AWS: 5 GiB for one PUT).
pub const PAYLOAD_BYTES_MAX: u64 = 5 << 30;

/// Up to this many bytes of block checks stand in the record; more go behind the payload as table pages. They serve
/// payloads of up to 16 MiB, sealed ones of up to 8 MiB, and keep records off the long runs of pages that LMDB finds slowly.
pub(crate) const INLINE_CHECK_BYTES_MAX: usize = if cfg!(feature = "simulation") { 32 } else { 2048 };

/// Bytes that one write to a volume carries.
pub(crate) const WRITE_BYTES: usize = 256 * 1024;

/// The first buffer of a payload is smaller, so that many slow uploads do not hold much memory each.
pub(crate) const FIRST_WRITE_BYTES: usize = BLOCK_BYTES;

/// Writes of one payload that may be in flight while the next buffer fills.
pub(crate) const WRITES_IN_FLIGHT_MAX: usize = 4;

/// Memory that the buffers of one executor may take. More than the default gains nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLimits {
    /// Bytes of upload buffers that it hands out before further uploads wait (TCP then slows the clients).
    pub upload_bytes: u64,
    /// Bytes that all its readers may hold ahead of what they are sending. Beyond that each goes block by block.
    pub read_ahead_bytes: u64,
}

impl BufferLimits {
    /// With less, one upload or download alone would be slow: three times what an upload has under way, and what four
    /// readers read ahead.
    pub const MIN: Self = Self { upload_bytes: 4 << 20, read_ahead_bytes: 2 << 20 };
}

impl Default for BufferLimits {
    fn default() -> Self {
        Self { upload_bytes: 128 << 20, read_ahead_bytes: 64 << 20 }
    }
}

/// Most blocks that a reader holds for a client that does not read, however many such clients there are: the one that is
/// being sent and the next.
pub const BLOCKS_OF_SLOW_READER: u64 = 2;

/// How long a buffer may fill while other uploads wait for memory: 16 KiB/s with the smallest buffers. Nobody is held to
/// it while there is memory for all, which by default is enough for 2048 uploads of an executor at once.
pub(crate) const FILL_PATIENCE: Duration = Duration::from_secs(4);

/// How often an upload that waits for memory looks for buffers that have been filling for too long.
pub(crate) const RECALL_INTERVAL: Duration = Duration::from_millis(100);

/// Space reserved for the beginning of a payload; later reservations double what there is, so that an upload which is
/// announced but never sent keeps little space from others. The length of the shortest piece of a large payload.
pub(crate) const FIRST_RESERVATION_BYTES: u64 = LONG_PIECE_UNITS * UNIT_BYTES;

/// Pieces of a large payload have at least this many units (1 MiB) as long as a volume can grow; in a full store they
/// may be single blocks.
pub(crate) const LONG_PIECE_UNITS: u64 = scaled(1 << 20, 128 << 10) / UNIT_BYTES;

/// Extents that a payload may have: what the record's field holds.
pub(crate) const EXTENTS_MAX: usize = 65_535;

/// Blocks that a reader has under way ahead of the one being sent ...
pub(crate) const READ_AHEAD_BLOCKS: u64 = scaled(8, 2);
/// ... and that one of its reads from the device fetches together.
pub(crate) const READ_RUN_BLOCKS: u64 = scaled(4, 1);
/// A copy has nobody to send to: longer reads and more of them keep the device at work ...
pub(crate) const COPY_AHEAD_BLOCKS: u64 = scaled(48, 2);
/// ... (1 MiB each).
pub(crate) const COPY_RUN_BLOCKS: u64 = scaled(16, 1);
/// Bytes that a copy moves before other tasks have their turn: some 0.1 ms.
pub(crate) const COPY_TURN_BYTES: usize = 4 * BLOCK_BYTES;

/// Longest run that is asked of the allocator at once, in units (64 MiB). Larger payloads take several.
pub(crate) const EXTENT_UNITS_MAX: u64 = scaled(64 << 20, 256 << 10) / UNIT_BYTES;

/// Payloads up to this size prefer space that was written before, where a flush needs no journal commit.
pub(crate) const SMALL_PAYLOAD_BYTES: u64 = 128 * 1024;

/// Written free space of a slice that the keeper keeps ready for small payloads, in units (64 MiB) ...
pub(crate) const WRITTEN_POOL_UNITS: u64 = scaled(64 << 20, 512 << 10) / UNIT_BYTES;
/// ... and the level below which it writes more.
pub(crate) const WRITTEN_POOL_LOW_UNITS: u64 = WRITTEN_POOL_UNITS / 2;

/// A slice grows in steps of a quarter of what it has allocated, but at least and at most this many bytes. It keeps as much
/// free when it gives space back, so that giving back and growing do not take turns.
pub(crate) const GROWTH_BYTES_MIN: u64 = scaled(64 << 20, 512 << 10);
/// See [`GROWTH_BYTES_MIN`].
pub(crate) const GROWTH_BYTES_MAX: u64 = 1 << 30;
/// The keeper grows a volume ahead of need when less than this many units are free (32 MiB).
pub(crate) const FREE_LOW_UNITS: u64 = scaled(32 << 20, 128 << 10) / UNIT_BYTES;

/// Less than this is not worth giving back (64 MiB).
pub(crate) const RECLAIM_UNITS_MIN: u64 = scaled(64 << 20, 256 << 10) / UNIT_BYTES;
/// Longest run that is given back at once (64 MiB): the file system keeps writers of the volume waiting meanwhile.
pub(crate) const RECLAIM_PIECE_UNITS_MAX: u64 = (64 << 20) / UNIT_BYTES;
/// Shortest run that is given back (1 MiB): short ones would scatter the volume over the disk, and small payloads use
/// them up.
pub(crate) const RECLAIM_PIECE_UNITS_MIN: u64 = LONG_PIECE_UNITS;
/// Giving back takes no more than one part in this many of the time.
pub(crate) const RECLAIM_DUTY: u32 = if cfg!(feature = "simulation") { 1 } else { 10 };
/// Runs that one growth step allocates again: with more, and shorter, ones the file grows at its end instead.
pub(crate) const REUSED_HOLES_MAX: u64 = 8;

/// Largest volume file; the next volume follows it. Far below ext4's 16 TiB.
pub(crate) const VOLUME_BYTES_MAX: u64 = scaled(1 << 40, 1 << 20);

/// Changes that the committer takes into one transaction.
pub(crate) const BATCH_JOBS_MAX: usize = 512;

/// Part records that one transaction looks at or removes before what still waits goes to the next: their pages, and those of
/// the free map, stay far below what LMDB lets a transaction change, and other changes wait for milliseconds.
pub(crate) const BATCH_PARTS_MAX: usize = 20_000;

/// Highest part number (AWS: "Multipart upload limits").
pub const PART_NUMBER_MAX: u16 = 10_000;

/// Largest object that parts may make (5 TiB).
pub const OBJECT_BYTES_MAX: u64 = 5 << 40;

/// Bytes of inline payloads that the committer takes into one transaction.
pub(crate) const BATCH_INLINE_BYTES_MAX: usize = 2 << 20;

/// Written space that a slice's metadata file has behind its last page when a transaction begins: more than a batch can
/// use, whose changes dirty a few pages each beside their inline payloads.
pub(crate) const METADATA_HEADROOM_MIN: u64 = scaled(16 << 20, 1 << 20);
/// On a full disk deletes go on while there is this much headroom, puts only while there is [`METADATA_HEADROOM_MIN`].
pub(crate) const METADATA_HEADROOM_FOR_DELETES: u64 = scaled(4 << 20, 256 << 10);
/// Headroom that the keeper restores while others commit ...
pub(crate) const METADATA_HEADROOM: u64 = scaled(48 << 20, 3 << 20);
/// ... when it has fallen below this.
pub(crate) const METADATA_HEADROOM_LOW: u64 = scaled(32 << 20, 2 << 20);

/// Changes that may wait for a committer before further ones are refused.
pub(crate) const QUEUE_JOBS_MAX: usize = 65_536;

/// Slices of a store: more mean smaller batches.
pub const SLICES_MAX: u16 = 64;

/// Address space of a slice's metadata map.
pub(crate) const SLICE_MAP_BYTES: usize = 1 << 39;
/// Address space of the control environment's map.
pub(crate) const CONTROL_MAP_BYTES: usize = 1 << 34;

/// Longest encoded key in LMDB with pages of 4096 bytes; longer object keys (only with hundreds of NUL bytes) are
/// refused.
pub(crate) const ENCODED_KEY_BYTES_MAX: usize = 1900;

/// How often the keeper looks at the file system's free space.
pub(crate) const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How often the keeper looks at the readers of the metadata.
pub(crate) const READERS_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// A read transaction on metadata that has been open for longer is warned of: nothing in the engine needs as much, and the
/// metadata file grows while it lasts.
pub(crate) const READ_AGE_MAX: Duration = Duration::from_secs(30);

/// Seeks and steps of a list's cursors; a page ends early after so many, so that one list cannot hold an executor (or
/// freed metadata pages) for long. A page of 1000 keys takes 1000, one of 1000 folders 1000 in each slice.
pub(crate) const LIST_STEPS_MAX: usize = 10_000;

/// Shares of the executor that background reading (verification, scrub) gets; requests have 1000.
pub(crate) const BACKGROUND_SHARES: usize = 20;

/// Blocks that background reading fetches at once in an idle store.
pub(crate) const BACKGROUND_RUN_BLOCKS: u64 = 4;

/// The store counts as busy for so long after a request began.
pub(crate) const BACKGROUND_BUSY: Duration = Duration::from_millis(200);

/// Beside requests background reading rests so many times as long as its last read took: it has a tenth of the device's
/// time at most ...
pub(crate) const BACKGROUND_REST_FACTOR: u32 = 9;
/// ... but at least so long, for a fast device answers a read sooner than a processor's caches recover from it ...
pub(crate) const BACKGROUND_REST_MIN: Duration = Duration::from_millis(2);
/// ... and at most so long, however slow the device is.
pub(crate) const BACKGROUND_REST_MAX: Duration = Duration::from_secs(1);

/// Records whose keys a walk over a slice takes from one snapshot.
pub(crate) const WALK_PAGE_RECORDS: usize = 256;

/// Findings of one version that are written out; the rest is counted.
pub(crate) const FINDINGS_OF_VERSION_MAX: usize = 16;

/// Damaged versions that one verification of a bucket lists; the rest is counted.
pub const CORRUPT_VERSIONS_MAX: usize = 1000;

/// Records that an inspection examines when it is not told otherwise (specification: "storage inspect").
pub const INSPECTION_ENTRIES_DEFAULT: u64 = 100_000;
/// Most records that one inspection may be told to examine.
pub const INSPECTION_ENTRIES_MAX: u64 = 1_000_000_000;
/// Records that an inspection reads from one snapshot: a few milliseconds, in which freed pages are kept.
pub(crate) const INSPECTION_SEGMENT_RECORDS: u64 = 4096;
/// Findings that an inspection writes down; the others are counted.
pub const FINDINGS_MAX: usize = 1000;
/// Changes of records that are written down for an inspection between two of its snapshots: far more than are committed in
/// that time, completions of thousands of parts apart, and some 20 MB with keys of ordinary length.
pub(crate) const FOLLOWED_CHANGES_MAX: usize = 65_536;
/// Orphaned runs of one slice that one repair removes; the next repair finds the others.
pub(crate) const REPAIRED_RUNS_MAX: usize = 65_536;
/// Orphaned runs that one change of the free map removes ...
pub(crate) const REPAIR_RUNS_PER_CHANGE: usize = 256;
/// ... and units (256 MiB): the chunks that it touches stay a small part of a transaction.
pub(crate) const REPAIR_UNITS_PER_CHANGE: u64 = (256 << 20) / UNIT_BYTES;
/// How often the scrub saves its place: what a restart verifies again at most.
pub(crate) const SCRUB_SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// How often the scrub looks whether the next pass is due.
pub(crate) const SCRUB_LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How often abandoned uploads are looked for.
pub(crate) const UPLOAD_EXPIRY_INTERVAL: Duration = Duration::from_secs(3600);
/// How long the scrub waits after a failure that says nothing of the stored data.
pub(crate) const SCRUB_RETRY: Duration = Duration::from_secs(300);
