//! Limits of webhooks, with the reasons.

use cairn_tables::Headroom;
use std::time::Duration;

/// Longest URL of a target, in bytes. Longer ones do not work everywhere.
pub(crate) const URL_BYTES_MAX: usize = 2048;
/// Longest host name, in bytes, and longest label (RFC 1035, section 2.3.4).
pub(crate) const HOST_BYTES_MAX: usize = 253;
pub(crate) const LABEL_BYTES_MAX: usize = 63;

/// Longest text of a failure, in bytes: it is kept with every failed attempt.
pub(crate) const FAILURE_TEXT_BYTES_MAX: usize = 256;

/// Look-ups that may run at a time, including those that nobody waits for any more. `getaddrinfo` cannot be interrupted.
pub(crate) const LOOKUPS_MAX: usize = 64;
/// The time for which a thread for look-ups waits for another one.
pub(crate) const LOOKUP_THREAD_IDLE: Duration = Duration::from_secs(10);
/// Addresses of one host that are tried. All of them are judged.
pub(crate) const ADDRESSES_MAX: usize = 16;

/// Largest head of an answer, in bytes. Common servers limit theirs to 8 KiB.
pub(crate) const RESPONSE_HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer's body that are read and discarded, so that the connection can be used again.
pub(crate) const RESPONSE_BODY_BYTES_MAX: u64 = 64 << 10;
/// The time for which the body is waited for. The status has arrived, and decides.
pub(crate) const RESPONSE_BODY_WAIT: Duration = Duration::from_secs(2);
/// Buffers of a connection, in bytes. That for input must hold more than the largest head.
pub(crate) const INPUT_BUFFER_BYTES: usize = RESPONSE_HEAD_BYTES_MAX + (8 << 10);
pub(crate) const OUTPUT_BUFFER_BYTES: usize = 8 << 10;
/// Bytes that a connection collects before it sends them: a head and the body of an event are one packet.
pub(crate) const UNSENT_BYTES_MAX: usize = 32 << 10;
/// The time for which an unused connection is kept. Common receivers close theirs after 5 to 75 seconds.
pub(crate) const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(30);
/// Longest wait that a receiver can ask for with `Retry-After`.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Unused connections that are kept: one for each delivery that can run at a time.
pub(crate) const CONNECTIONS_IDLE_MAX: usize = 64;

/// Webhooks. All are in memory, a few hundred bytes each, and every event is compared with each of them.
pub const WEBHOOKS_MAX: usize = 1000;
/// Deleted webhooks whose deliveries are still being removed.
pub(crate) const REMOVALS_MAX: usize = 1000;
/// Longest prefix filter, in bytes: that of the longest key.
pub(crate) const PREFIX_BYTES_MAX: usize = cairn_model::OBJECT_KEY_BYTES_MAX;
/// Longest time for which a rotated secret stays valid, in seconds: a week.
pub const OVERLAP_SECONDS_MAX: u64 = 604_800;
/// The default overlap of a rotated secret, in seconds: a day.
pub const OVERLAP_SECONDS_DEFAULT: u64 = 86_400;
/// Most attempts of a delivery. The waits before them add up to about three days.
pub const ATTEMPTS_MAX: u8 = 20;

/// Most entries of a page of deliveries.
pub const PAGE_DELIVERIES_MAX: usize = 1000;
/// Entries of a page of deliveries by default (specification, "Limits").
pub const PAGE_DELIVERIES_DEFAULT: usize = 100;
/// Records that are read for one page. A page ends early after this many, so that a filter without matches does not make one
/// request read the whole log.
pub(crate) const PAGE_RECORDS_READ_MAX: usize = 200_000;
/// Records that one read transaction reads. A longer transaction would delay the reuse of freed pages.
pub(crate) const TXN_RECORDS_READ_MAX: usize = 4096;
/// Deliveries of one event that are looked at for one page.
pub(crate) const EVENT_DELIVERIES_MAX: usize = 10_000;
/// Queries that may wait for the reader. Further ones are refused.
pub(crate) const QUERIES_WAITING_MAX: usize = 64;

/// Changes by administrators that may wait for the writer. Further ones are refused.
pub(crate) const CHANGES_WAITING_MAX: usize = 256;
/// Outcomes of attempts that may wait for the writer. Delivery threads wait for room.
pub(crate) const OUTCOMES_WAITING_MAX: usize = 1024;
/// Outcomes that the writer takes into one transaction.
pub(crate) const BATCH_OUTCOMES_MAX: usize = 256;
/// New deliveries of one transaction. One event for all webhooks has no more.
pub(crate) const BATCH_DELIVERIES_MAX: usize = 1024;
/// Deliveries that one transaction drops, and log entries that one removes.
pub(crate) const BATCH_REMOVALS_MAX: usize = 256;
/// The interval at which the writer looks for log entries that are too old.
pub(crate) const RETENTION_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Address space of the LMDB map, in bytes.
pub(crate) const MAP_BYTES: usize = 1 << 38;
/// Written space that the writer keeps after the last page of the data file.
///
/// A batch of new deliveries changes two pages of 4 KiB for each of [`BATCH_DELIVERIES_MAX`] deliveries at most, and as many
/// again when all of them are split: 16 MiB. [`BATCH_OUTCOMES_MAX`] outcomes change about six pages each, and one more for each
/// earlier attempt of a delivery that ends. [`BATCH_REMOVALS_MAX`] removals change about six pages each, and may use what is
/// kept for others.
pub(crate) const HEADROOM: Headroom =
    Headroom { target: 40 << 20, low: 32 << 20, additions: 24 << 20, changes: 24 << 20, removals: 8 << 20 };

/// Longest wait between two attempts.
pub(crate) const ATTEMPT_WAIT_MAX: Duration = Duration::from_secs(6 * 3600);
/// Requests that are made at a time, each on a thread of its own.
pub(crate) const DELIVERY_THREADS_MAX: usize = 64;
/// The time for which a delivery thread waits for another delivery.
pub(crate) const DELIVERY_THREAD_IDLE: Duration = Duration::from_secs(10);
/// Requests at a time to targets whose last attempt did not succeed. The rest of the threads is for the others.
pub(crate) const UNPROVEN_MAX: usize = 48;
/// Requests at a time to a target of which nothing is known. Each success doubles them.
pub(crate) const CONCURRENCY_START: usize = 2;
/// Attempts in a row that found the target unavailable, after which first attempts are held back.
pub(crate) const TARGET_FAILURES_MAX: u32 = 5;
/// First and longest interval between probes of a target for which first attempts are held back.
pub(crate) const PROBE_INTERVAL_MIN: Duration = Duration::from_secs(5);
pub(crate) const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(300);
/// Deliveries of one webhook that are in memory, of those that have begun and of the others. More are on disk.
pub(crate) const LANE_DELIVERIES_MAX: usize = 256;
/// Deliveries of a lane at or below which more are loaded.
pub(crate) const LANE_DELIVERIES_LOW: usize = 64;
/// Deliveries with their events in memory, over all webhooks. The events of others are read from the store again.
pub(crate) const EVENTS_IN_MEMORY_MAX: usize = 16_384;
/// Events that the fan-out reads at a time.
pub(crate) const FAN_OUT_EVENTS_MAX: usize = 1000;
/// The interval at which the position of the fan-out becomes durable if there are events but no deliveries. After a crash, the
/// events of this time are read again.
pub(crate) const POSITION_INTERVAL: Duration = Duration::from_secs(60);
/// The wait of delivery before it tries again after a failure to read or write.
pub(crate) const FAILURE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait of the loader while something is due later: the clock may be set meanwhile.
pub(crate) const TIMER_WAIT_MAX: Duration = Duration::from_millis(100);
/// The interval at which connections that are not in use are closed.
pub(crate) const IDLE_CONNECTIONS_INTERVAL: Duration = Duration::from_secs(60);
/// The time for which the end of the service waits for attempts that were interrupted.
pub(crate) const INTERRUPTED_WAIT: Duration = Duration::from_secs(2);
/// Tests of webhooks, and redeliveries of many events, that run at a time.
pub(crate) const TASKS_MAX: usize = 4;
