//! Every length, count and time that the directory limits itself to, with the reason.

use std::time::Duration;

/// Service accounts. All are in memory, some kilobyte each with its credentials.
pub const ACCOUNTS_MAX: usize = 100_000;
/// Credentials of an account that do not expire by themselves: a rotation needs two.
pub const CREDENTIALS_PER_ACCOUNT_MAX: usize = 100;
/// Temporary credentials of an account that are alive at a time.
pub const TEMPORARY_PER_ACCOUNT_MAX: usize = 1000;
/// Policies. All are in memory.
pub const POLICIES_MAX: usize = 100_000;
/// Policies that are attached to an account.
pub const POLICIES_PER_ACCOUNT_MAX: usize = 10_000;
/// Resources in all statements of the policies of an account: compiling them takes some tens of milliseconds of the
/// directory's thread.
pub const RESOURCES_PER_ACCOUNT_MAX: usize = 100_000;
/// Resources in all statements of all policies: some 100 bytes each in memory, a kilobyte with the longest keys.
pub const RESOURCES_MAX: usize = 1_000_000;
/// Resources in the policies of each account, added up over all accounts. Accounts with the same policies share what these
/// amount to; this bounds it when no two have the same, and with it the start, which compiles it, and the number of bindings.
pub const ATTACHED_RESOURCES_MAX: usize = 10_000_000;
/// Management tokens: people and tools, not requests. Those that have expired do not count.
pub const MANAGEMENT_TOKENS_MAX: usize = 10_000;

/// Shortest life of a temporary credential, in seconds.
pub const TEMPORARY_SECONDS_MIN: u64 = 60;
/// Longest life of a temporary credential, in seconds: a week.
pub const TEMPORARY_SECONDS_MAX: u64 = 604_800;
/// Longest life of a management token that expires, in seconds: ten years; one that shall live longer has no expiry.
pub const TOKEN_SECONDS_MAX: u64 = 10 * 366 * 86_400;

/// Changes that may wait for the directory's thread before further ones are refused.
pub(super) const CHANGES_WAITING_MAX: usize = 1024;
/// How often uses are written down and what has expired is removed.
pub(super) const UPKEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Expired credentials and tokens that one transaction of an upkeep removes, and uses that one writes down.
pub(super) const UPKEEP_CHANGES_MAX: usize = 200;
/// How long what has expired is kept after an upkeep found it so: a clock that jumped ahead is noticed before.
pub(super) const EXPIRED_KEPT_MILLIS: u64 = 86_400_000;
/// Expired credentials of an account that are kept; the oldest of more are removed at once. As many as may be alive, so that a
/// jump of the clock removes none.
pub(super) const EXPIRED_PER_ACCOUNT_MAX: usize = TEMPORARY_PER_ACCOUNT_MAX;
/// Expired management tokens that are kept, likewise.
pub(super) const EXPIRED_TOKENS_MAX: usize = MANAGEMENT_TOKENS_MAX;
/// How exactly the highest time is known that the clock has shown: each step is a write to memory that all cores read.
pub(super) const SEEN_INTERVAL_MILLIS: u64 = 1000;
/// A use is noted when the last one is at least so long ago, so that a busy credential writes to memory that all cores read
/// once a second and not with every request.
pub(super) const USE_INTERVAL_MILLIS: u64 = 1000;

/// Access keys that an executor keeps at hand. With more in use, all are forgotten and looked up again: a microsecond each.
pub(super) const CACHED_ACCESS_KEYS_MAX: usize = 16_384;

/// Address space of the environment's map.
pub(super) const MAP_BYTES: usize = 1 << 34;
/// Written space behind the last page of the data file that the thread restores ...
pub(super) const HEADROOM: u64 = 12 << 20;
/// ... when it has fallen below this ...
pub(super) const HEADROOM_LOW: u64 = 9 << 20;
/// ... and below which nothing is changed any more: more than the largest transaction can dirty. An upkeep removes two records of
/// each of [`UPKEEP_CHANGES_MAX`] credentials, and each removal can dirty its leaf and the neighbour that this is merged with:
/// 800 pages of 4 KiB, which is half of this, and the branches above them are fewer. An account that is removed has its records
/// side by side: some 600 pages with all that it may have.
pub(super) const HEADROOM_MIN: u64 = 6 << 20;
