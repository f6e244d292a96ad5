//! Limits and timeouts of the network layer, with reasons.

use std::time::Duration;

use cairn_http1::HeadLimits;

/// The longest interval at which each executor is woken. Work whose wake-up was lost is delayed by this much.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// The time after which an executor is woken again that has not answered.
pub(crate) const HEARTBEAT_RETRY: Duration = Duration::from_millis(20);
/// Maximum number of wake-ups that an executor has not answered: those of more than three minutes. Each of them holds a
/// reference to a task, and glommio counts these in 16 bits.
pub(crate) const HEARTBEATS_UNANSWERED_MAX: u32 = 10_000;

/// The interval at which timeouts and the drain are checked. A connection may exceed its timeout by this much.
pub(crate) const TIMEOUT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two checks of the timeouts from which on the executor counts as paused.
pub(crate) const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The interval at which a long request checks whether its client has disconnected.
pub(crate) const DISCONNECT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Connections that wait in the kernel to be accepted, per executor and port. The kernel reduces it to
/// `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 1024;
/// Send buffer of a connection from this host, in bytes; the kernel doubles it for its own needs. Without a network in
/// between, more bytes in flight gain nothing: the kernel would queue up to 4 MiB, which have left the processor's
/// cache when the client reads them. Other connections keep the kernel's own sizing, because they need a buffer as
/// large as the bytes in flight.
pub(crate) const LOOPBACK_SEND_BYTES: usize = 128 * 1024;
/// Bytes of one read of a request head. The buffer belongs to the executor, not to a connection. A usual head with a
/// small body fits; of a large body, no more than this is copied once.
pub(crate) const HEAD_READ_BYTES: usize = 16 * 1024;
/// Bytes of one read of ciphertext: four TLS records. The buffer belongs to the executor, not to a connection.
pub(crate) const TLS_READ_BYTES: usize = 4 * 16 * 1024 + TLS_OVERHEAD_BYTES;
/// The excess of a read of ciphertext over the room for its plaintext: the overhead of four records (at most 256 bytes each in
/// TLS 1.3, RFC 8446 section 5.2) and a short record after them.
pub(crate) const TLS_OVERHEAD_BYTES: usize = 2048;
/// Bytes of one read during a handshake: one record, so that little of what follows the handshake must be buffered.
pub(crate) const HANDSHAKE_READ_BYTES: usize = 16 * 1024 + TLS_OVERHEAD_BYTES;
/// Client hellos that wait for a handshake thread. A thread with an RSA key answers about ten thousand before the first of
/// them times out. Further connections are closed.
pub(crate) const HELLOS_WAITING_MAX: usize = 16 * 1024;
/// Bytes encrypted before they are sent. Four records leave in one system call and are still in the processor's cache.
pub(crate) const TLS_WRITE_BYTES: usize = 4 * 16 * 1024;
/// Most bytes that TLS adds to the memory of a connection: encrypted bytes that the client has not taken, an incomplete
/// record, the bytes read after it, and the keys. An idle connection takes far less.
pub const TLS_CONNECTION_BYTES: usize = TLS_WRITE_BYTES + 2 * (16 * 1024 + TLS_OVERHEAD_BYTES) + 16 * 1024;
/// Most bytes of an unread request body that are discarded to keep the connection. Beyond this, closing is cheaper.
pub(crate) const DISCARD_BYTES_MAX: u64 = 256 * 1024;
/// The time for which a connection that the server closes lingers and discards what the client still sends. Closing with unread
/// bytes resets the connection, and the reset can overtake the response.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// Most bytes discarded while lingering.
pub(crate) const LINGER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Connections beyond [`Limits::connections_max`] that may linger at once, per executor and port. Others are closed at
/// once, because a flood must not hold descriptors that the limit reserves for other uses.
pub(crate) const LINGERING_REJECTED_MAX: usize = 64;
/// Connections that a scan for those to evict returns. The next scan is due when they are used up, so a flood of
/// connections costs little more than one look at each open connection per this many.
pub(crate) const EVICTION_CANDIDATES_MAX: usize = 256;
/// The same if all idle connections have sent requests. So many of these are evicted before a scan finds connections that
/// have sent nothing and came later.
pub(crate) const EVICTION_CANDIDATES_USED_MAX: usize = 16;
/// Unsigned requests that a search for those to end returns. A flood of them so causes one look at each open one per this many.
pub(crate) const UNSIGNED_CANDIDATES_MAX: usize = 64;
/// Steps of unsigned requests on an executor between two looks at its sockets. A step of a small GET takes some 10 µs, so
/// signed requests wait for a fraction of a millisecond behind them.
pub(crate) const UNSIGNED_TURNS: usize = 32;
/// Least time between two looks at the sockets if unsigned requests wait for turns. Their steps take longer.
pub(crate) const UNSIGNED_PAUSE: Duration = Duration::from_micros(20);
/// Time after which the response to an unsigned request has a rate. Before, it would be that of the client's first round trips.
pub(crate) const UNSIGNED_RATE_PERIOD: Duration = Duration::from_secs(1);
/// Connections that one executor may be asked to close before it has done so, which bounds by how many the limit on
/// connections may be exceeded for a moment.
pub(crate) const EVICTIONS_PENDING_MAX: usize = 64;
/// Time for connections to end after they were aborted at the end of a drain.
pub(crate) const ABORT_GRACE: Duration = Duration::from_secs(1);
/// First pause after `accept` has failed for lack of descriptors or memory.
pub(crate) const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
/// Longest pause after `accept` has failed; see [`ACCEPT_PAUSE_MIN`].
pub(crate) const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Depth of each io_uring ring of an executor.
pub(crate) const RING_DEPTH: usize = 256;
/// The time that a task may run before it is asked to yield, so that one client with endless data does not delay the others.
pub(crate) const PREEMPT_AFTER: Duration = Duration::from_millis(10);
/// The time that an executor may take to run its first task. Then it gets another thread, because it may sleep for ever.
pub(crate) const BEGIN_PATIENCE: Duration = Duration::from_secs(2);
/// Most threads that an executor gets at its start.
pub(crate) const BEGIN_ATTEMPTS_MAX: usize = 4;
/// Rings that glommio makes per executor. It registers the same memory with each; each registration counts.
pub(crate) const RINGS_PER_EXECUTOR: u64 = 3;
/// Memory of a ring of this depth: 16 KiB of requests, and 12 KiB of queues. Newer kernels count it as locked, 6.18 for
/// example.
pub(crate) const RING_BYTES: u64 = 28 * 1024;
/// Below this much lockable memory glommio refuses to start.
pub(crate) const MEMLOCK_BYTES_MIN: u64 = 512 * 1024;
/// Most memory registered for direct I/O per executor, in bytes. What does not fit comes from the heap.
pub(crate) const IO_MEMORY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Least memory registered for direct I/O per executor, in bytes: glommio accepts no less.
pub(crate) const IO_MEMORY_BYTES_MIN: u64 = 64 * 1024;

/// Limits on the connections of one port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limits on a request head.
    pub head: HeadLimits,
    /// Most connections open at once on the port, all executors together. A further one takes the place of an
    /// idle one: of those that have sent no request, or else of all, the one that has been idle longest. If none is idle,
    /// it gets 503 and is closed; with TLS it is closed without a response.
    pub connections_max: usize,
    /// Most connections at once whose request nobody has signed ([`Service::is_unsigned`](crate::Service::is_unsigned)). A
    /// further such request takes the place of another one: of the client with the most, the slowest.
    pub unsigned_max: usize,
    /// Most connections open at once from one client, see [`cairn_model::client_network`]; `None`: no limit. Trusted
    /// proxies are exempt. Further ones are refused in the same way.
    pub connections_per_client_max: Option<usize>,
    /// Longest time from the first byte of a head to its last.
    pub head_timeout: Duration,
    /// The time for which a connection may stay open before the first byte of its first request.
    pub first_request_timeout: Duration,
    /// The time for which a connection may stay open between requests.
    pub idle_timeout: Duration,
    /// The time for which a request body may make no progress at all.
    pub body_stall_timeout: Duration,
    /// The time for which a response may make no progress at all.
    pub write_stall_timeout: Duration,
    /// Least rate of a request or response body, in bytes per second. It is measured over the time spent waiting for
    /// the client, and the stall timeout is granted in advance. It ends clients that send or receive a byte at a time.
    pub rate_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HeadLimits::default(),
            connections_max: 20_000,
            unsigned_max: 10_000,
            connections_per_client_max: None,
            head_timeout: Duration::from_secs(10),
            first_request_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            body_stall_timeout: Duration::from_secs(30),
            write_stall_timeout: Duration::from_secs(60),
            rate_min: 1024,
        }
    }
}
