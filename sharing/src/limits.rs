//! Limits of sharing, with the reasons.

use cairn_tables::Headroom;
use std::time::Duration;

/// Shares, and as many embeds. A record takes about a kilobyte on disk; nothing of it is kept in memory.
pub const LINKS_MAX: u64 = 1_000_000;
/// Shares of one object, and as many embeds: one response lists all of them.
pub const LINKS_PER_OBJECT_MAX: usize = 1000;
/// Shares up to which members can create further ones; the others are left to people with a role. A member who fills them is
/// in the audit trail, and an administrator deletes them.
pub(crate) const MEMBER_SHARES_MAX: u64 = LINKS_MAX / 10 * 9;
/// The same for the shares of one object.
pub(crate) const MEMBER_SHARES_PER_OBJECT_MAX: usize = LINKS_PER_OBJECT_MAX / 10 * 9;
/// Longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Longest password, in bytes. Nothing limits what Argon2 accepts.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Memory of one password hash, in bytes: the first recommendation of the OWASP Password Storage Cheat Sheet.
pub const PASSWORD_HASH_BYTES: u64 = 19 * 1024 * 1024;
/// Origins of an embed.
pub const ORIGINS_MAX: usize = 100;
/// Longest origin, in bytes: a host name has at most 253.
pub(crate) const ORIGIN_BYTES_MAX: usize = 280;

/// Most links of a page.
pub const PAGE_LINKS_MAX: usize = 1000;
/// Links of a page by default.
pub const PAGE_LINKS_DEFAULT: usize = 1000;
/// Records that are read for one page. A page ends early after this many, so that a filter without matches does not make one
/// request read all links.
pub(crate) const PAGE_RECORDS_READ_MAX: usize = 20_000;
/// Records that one read transaction reads. A longer transaction would delay the reuse of freed pages.
pub(crate) const TXN_RECORDS_READ_MAX: usize = 1000;
/// Lists and inspections that may wait for the reader. Further ones are refused.
pub(crate) const QUERIES_WAITING_MAX: usize = 64;
/// Findings of an inspection that are returned.
pub(crate) const FINDINGS_MAX: usize = 100;

/// Changes that may wait for the writer. Further ones are refused.
pub(crate) const CHANGES_WAITING_MAX: usize = 1024;
/// The interval at which counted downloads are written to disk, apart from those of shares with a limit of downloads.
pub(crate) const USAGE_INTERVAL: Duration = Duration::from_secs(1);
/// Links whose new counts are in memory. Beyond that, downloads are not counted until the next write.
pub(crate) const USAGE_ENTRIES_MAX: usize = 65_536;
/// Counts that one transaction writes.
pub(crate) const USAGE_BATCH_MAX: usize = 1000;
/// Time in which all requests of a visitor for the content of a link count as one download.
pub(crate) const DOWNLOAD_PERIOD: Duration = Duration::from_secs(3600);
/// Downloads that are remembered for this purpose, about 64 bytes each. A visitor who was forgotten is counted again.
pub(crate) const DOWNLOADS_REMEMBERED_MAX: usize = 65_536;

/// The time for which an unlock is valid.
pub(crate) const UNLOCK_PERIOD: Duration = Duration::from_secs(12 * 3600);

/// Address space of the LMDB map, in bytes.
pub(crate) const MAP_BYTES: usize = 1 << 36;
/// Written space that the writer keeps after the last page of the data file.
///
/// A transaction of [`USAGE_BATCH_MAX`] counts dirties as many leaves of 4 KiB at most, with fewer branch pages above them.
/// New links are refused earlier, so that links can still be revoked and deleted on a full disk.
pub(crate) const HEADROOM: Headroom =
    Headroom { target: 16 << 20, low: 12 << 20, additions: 11 << 20, changes: 9 << 20, removals: 9 << 20 };
