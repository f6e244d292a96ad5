//! Every length, count and rate that the audit trail limits itself to, with the reason.

use std::time::Duration;

/// Longest principal, role or operation in bytes; service account names and routes are shorter.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// Longest resource in bytes: a bucket name, a slash and the longest object key (63 + 1 + 1024).
pub(crate) const RESOURCE_BYTES_MAX: usize = 1088;
/// Longest detail in bytes. With all fields at their longest a record stays in one page of LMDB's overflow.
pub(crate) const DETAIL_BYTES_MAX: usize = 512;

/// Records that may wait for the writer before further ones are refused: some megabytes.
pub(crate) const QUEUE_RECORDS_MAX: usize = 4096;
/// Of these, how many nobody waits for: a flood of refusals must leave room for the changes of an administrator.
pub(crate) const QUEUE_OFFERED_MAX: usize = QUEUE_RECORDS_MAX / 4;
/// Records that the writer takes into one transaction.
pub(crate) const BATCH_RECORDS_MAX: usize = 256;

/// Outcomes of changes that wait for space on a full disk. Intents are refused meanwhile, so there are no more of them than
/// changes that were under way.
pub(crate) const UNSETTLED_MAX: usize = 1024;

/// Address space of the trail's map.
pub(crate) const MAP_BYTES: usize = 1 << 36;
/// Written space behind the last page of the data file that the writer restores ...
pub(crate) const HEADROOM: u64 = 12 << 20;
/// ... when it has fallen below this ...
pub(crate) const HEADROOM_LOW: u64 = 9 << 20;
/// ... and below which nothing is written any more: more than a batch can dirty together with as many outcomes that waited,
/// with every record at its longest in a page of its own and every page of the trees copied.
pub(crate) const HEADROOM_MIN: u64 = 6 << 20;

/// Old records that one transaction removes beyond as many as it adds: the trail shrinks to a new limit in steps.
pub(crate) const REMOVALS_BEYOND_MAX: usize = 256;
/// How often the writer looks for records that are too old while nothing is recorded.
pub(crate) const RETENTION_CHECK_INTERVAL: Duration = Duration::from_secs(600);

/// Most events of a page (specification, "Limits").
pub const AUDIT_PAGE_EVENTS_MAX: usize = 1000;
/// Events of a page when nothing is asked for (specification, "Limits").
pub const AUDIT_PAGE_EVENTS_DEFAULT: usize = 100;
/// Records that are looked at for one page; it ends early after so many, so that a filter which nothing fits does not make
/// one request walk the whole trail.
pub(crate) const PAGE_EXAMINED_MAX: usize = 200_000;
/// Records that one read transaction looks at: a longer one would keep freed pages from being used again.
pub(crate) const READ_RECORDS_MAX: usize = 4096;
/// Pages that may wait for the reader before further queries are refused.
pub(crate) const QUERIES_WAITING_MAX: usize = 64;

/// Sources that a limiter remembers. Beyond that, new ones share one allowance.
pub(crate) const SOURCES_MAX: usize = 4096;

/// How many records come from one source, and from all together: so many at once, then one in each interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) source_burst: u32,
    pub(crate) source_interval: Duration,
    pub(crate) overall_burst: u32,
    pub(crate) overall_interval: Duration,
}

/// Refused requests, by the client's address. One address makes at most 8 640 records a day in the long run, 3.2 million
/// a year; all together twice that.
pub(crate) const REFUSALS: Allowance = Allowance {
    source_burst: 1000,
    source_interval: Duration::from_secs(10),
    overall_burst: 10_000,
    overall_interval: Duration::from_secs(5),
};

/// Damage that the store found, by what is damaged: a client that reads a damaged object in a loop says nothing new.
pub(crate) const FINDINGS: Allowance = Allowance {
    source_burst: 16,
    source_interval: Duration::from_secs(3600),
    overall_burst: 10_000,
    overall_interval: Duration::from_secs(1),
};
