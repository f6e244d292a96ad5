//! Limits of the audit trail, with the reasons.

use cairn_tables::Headroom;
use std::time::Duration;

/// Longest principal, role or operation in bytes. Names of service accounts and routes are shorter.
pub(crate) const NAME_BYTES_MAX: usize = 256;
/// Longest resource in bytes: a bucket name, a slash and the longest object key (63 + 1 + 1024).
pub(crate) const RESOURCE_BYTES_MAX: usize = 1088;
/// Longest detail in bytes. A record with all fields at their longest fits into one overflow page of LMDB.
pub(crate) const DETAIL_BYTES_MAX: usize = 512;

/// Records that may wait for the writer, several megabytes. Further ones are refused.
pub(crate) const QUEUE_RECORDS_MAX: usize = 4096;
/// Offered records that may be among these: a flood of them must leave room for the changes of an administrator.
pub(crate) const QUEUE_OFFERED_MAX: usize = QUEUE_RECORDS_MAX / 4;
/// Commands that may wait while records of reads are not waited for: half of the queue stays for changes and offers.
pub(crate) const QUEUE_RECORDS_UNWAITED_MAX: usize = QUEUE_RECORDS_MAX / 4;
/// Commands that may wait when a read or an access is added: the other half of the queue is for changes.
pub(crate) const QUEUE_WITHOUT_CHANGE_MAX: usize = QUEUE_RECORDS_MAX / 2;
/// Records that the writer takes into one transaction.
pub(crate) const BATCH_RECORDS_MAX: usize = 256;

/// Outcomes of changes that wait for space on a full disk. Intents are refused meanwhile, so only the changes that were in
/// progress can wait.
pub(crate) const INCOMPLETE_MAX: usize = 1024;

/// Address space of the LMDB map, in bytes.
pub(crate) const MAP_BYTES: usize = 1 << 36;
/// Written space that the writer keeps after the last page of the data file.
///
/// A record needs more than a batch and as many waiting outcomes can dirty, with every record at its longest in its own page
/// and every page of the trees copied.
pub(crate) const HEADROOM: Headroom =
    Headroom { target: 12 << 20, low: 9 << 20, additions: 6 << 20, changes: 6 << 20, removals: 6 << 20 };

/// Old records that one transaction removes in addition to as many as it adds. The trail shrinks to a lower limit in steps.
pub(crate) const EXTRA_REMOVALS_MAX: usize = 256;
/// The interval at which the writer removes records that are too old while nothing is recorded.
pub(crate) const RETENTION_CHECK_INTERVAL: Duration = Duration::from_secs(600);

/// Most events of a page (specification, "Limits").
pub const AUDIT_PAGE_EVENTS_MAX: usize = 1000;
/// Events of a page by default (specification, "Limits").
pub const AUDIT_PAGE_EVENTS_DEFAULT: usize = 100;
/// Records that are read for one page. A page ends early after this many, so that a filter without matches does not make one
/// request read the whole trail.
pub(crate) const PAGE_RECORDS_READ_MAX: usize = 200_000;
/// Records that one read transaction reads. A longer transaction would delay the reuse of freed pages.
pub(crate) const TXN_RECORDS_READ_MAX: usize = 4096;
/// Queries that may wait for the reader. Further ones are refused.
pub(crate) const QUERIES_WAITING_MAX: usize = 64;

/// Repeated accesses of one caller from one source are merged for so long. A crash loses their count.
pub(crate) const ACCESS_INTERVAL: Duration = Duration::from_secs(300);
/// Accesses to different resources that one caller has recorded in an interval. Further ones are only counted: in the long
/// run, 105 million a year, of which `audit.records_max` are kept.
pub(crate) const ACCESS_RESOURCES_MAX: usize = 1000;
/// Recorded accesses that are compared with later ones. At more, all intervals end early. A few megabytes.
pub(crate) const ACCESSES_TRACKED_MAX: usize = 16_384;

/// Sources that a limiter tracks. Further ones share one limit.
pub(crate) const SOURCES_MAX: usize = 4096;

/// Limits on the records of each source and of all sources together: a burst, then one in each interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    pub(crate) source_burst: u32,
    pub(crate) source_interval: Duration,
    pub(crate) overall_burst: u32,
    pub(crate) overall_interval: Duration,
}

/// The limit for refused requests, by the client's address. In the long run, one address makes at most 8 640 records a day
/// and 3.2 million a year, and all addresses together make twice as many.
pub(crate) const REFUSALS: RateLimit = RateLimit {
    source_burst: 1000,
    source_interval: Duration::from_secs(10),
    overall_burst: 10_000,
    overall_interval: Duration::from_secs(5),
};

/// The limit for damage that the store found, by what is damaged. Repeated reads of a damaged object give no new information.
pub(crate) const FINDINGS: RateLimit = RateLimit {
    source_burst: 16,
    source_interval: Duration::from_secs(3600),
    overall_burst: 10_000,
    overall_interval: Duration::from_secs(1),
};
