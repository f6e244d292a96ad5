//! Limits of the directory, with the reasons.

use cairn_tables::Headroom;
use std::time::Duration;

/// Service accounts. All are in memory, about a kilobyte each with its credentials.
pub const ACCOUNTS_MAX: usize = 100_000;
/// Permanent credentials of an account. A rotation needs two.
pub const CREDENTIALS_PER_ACCOUNT_MAX: usize = 100;
/// Temporary credentials of an account that have not expired.
pub const TEMPORARY_PER_ACCOUNT_MAX: usize = 1000;
/// Policies. All are in memory.
pub const POLICIES_MAX: usize = 100_000;
/// Policies attached to an account.
pub const POLICIES_PER_ACCOUNT_MAX: usize = 10_000;
/// Resources in all policies of an account. Compiling that many takes tens of milliseconds on the directory's thread.
pub const RESOURCES_PER_ACCOUNT_MAX: usize = 100_000;
/// Different `source_ip` lists in the policies of an account. A decision looks at each of them.
pub const SOURCE_LISTS_PER_ACCOUNT_MAX: usize = 100;
/// Most resources in the policies of a person: as many as one policy can have. An executor compiles them after a change.
pub(super) const NAMED_RESOURCES_MAX: usize = 10_000;
/// Resources in the compiled rights of people that are kept. Beyond it, all are forgotten and compiled when they are needed.
pub(super) const NAMED_RESOURCES_CACHED_MAX: usize = 100_000;
/// Resources in all policies. Each takes about 100 bytes of memory, or a kilobyte with the longest keys.
pub const RESOURCES_MAX: usize = 1_000_000;
/// Resources in the policies of each account, summed over all accounts. Accounts with the same policies share their compiled
/// rights. This limit bounds the rights if no two accounts have the same policies, and therefore the time of a start, which
/// compiles them, and the number of bindings.
pub const ATTACHED_RESOURCES_MAX: usize = 10_000_000;
/// Management tokens that have not expired. They are for people and tools, not for requests.
pub const MANAGEMENT_TOKENS_MAX: usize = 10_000;

/// Shortest lifetime of a temporary credential, in seconds.
pub const TEMPORARY_SECONDS_MIN: u64 = 60;
/// Longest lifetime of a temporary credential, in seconds: a week.
pub const TEMPORARY_SECONDS_MAX: u64 = 604_800;
/// Longest lifetime of a management token that expires, in seconds: ten years. A token can also have no expiry.
pub const TOKEN_SECONDS_MAX: u64 = 10 * 366 * 86_400;

/// Changes that may wait for the directory's thread. Further ones are refused.
pub(super) const CHANGES_WAITING_MAX: usize = 1024;
/// The interval at which last uses are written to disk and expired entries are deleted.
pub(super) const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
/// Most expired entries that one transaction of the maintenance deletes, and most last uses that one writes.
pub(super) const MAINTENANCE_CHANGES_MAX: usize = 200;
/// The time for which an expired entry is kept after it was first seen expired. A clock that jumped ahead is noticed in this
/// time.
pub(super) const EXPIRED_KEPT_MILLIS: u64 = 86_400_000;
/// Expired credentials of an account that are kept. Of more, the oldest are deleted at once. The limit equals that of
/// credentials that have not expired, so that a clock jump deletes none.
pub(super) const EXPIRED_PER_ACCOUNT_MAX: usize = TEMPORARY_PER_ACCOUNT_MAX;
/// Expired management tokens that are kept, in the same way.
pub(super) const EXPIRED_TOKENS_MAX: usize = MANAGEMENT_TOKENS_MAX;

/// Access keys in the cache of an executor. If more are in use, the cache is emptied; a lookup takes a microsecond.
pub(super) const CACHED_ACCESS_KEYS_MAX: usize = 16_384;

/// Address space of the LMDB map, in bytes.
pub(super) const MAP_BYTES: usize = 1 << 34;
/// Written space that the directory's thread keeps after the last page of the data file.
///
/// A maintenance transaction deletes two records of each of [`MAINTENANCE_CHANGES_MAX`] credentials. Each deletion can dirty
/// its leaf and the neighbour that the leaf is merged with: 800 pages of 4 KiB, which is half of what a change needs, and there
/// are fewer branch pages above them. A deleted account has its records next to each other: about 600 pages at most.
pub(super) const HEADROOM: Headroom =
    Headroom { target: 12 << 20, low: 9 << 20, additions: 6 << 20, changes: 6 << 20, removals: 6 << 20 };
