//! Every limit and deadline of the network layer, in one place, with the reason for its default.

use std::time::Duration;

use cairn_http1::HeadLimits;

/// How often deadlines and the drain signal are looked at. A deadline may pass by this much.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// How often a request that takes long looks whether somebody still waits for its answer.
pub(crate) const CLIENT_LOOK: Duration = Duration::from_millis(250);
/// Connections that wait in the kernel to be accepted, per executor and port; the kernel cuts it to
/// `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 1024;
/// Send buffer of a connection from this host, in bytes; the kernel doubles it for its own needs. Without a network in
/// between nothing is gained by more bytes in flight: the kernel would queue up to 4 MiB, which have left the processor's cache
/// when the client reads them. Connections from elsewhere keep the kernel's own sizing, for they need a buffer as large as
/// what is in flight.
pub(crate) const LOOPBACK_SEND_BYTES: usize = 128 * 1024;
/// Bytes asked for when a head is expected. One buffer per executor, not per connection; a usual head with a small
/// body fits, and of a large body no more than this is copied once.
pub(crate) const HEAD_READ_BYTES: usize = 16 * 1024;
/// Bytes of ciphertext asked for at once: four records of TLS. One buffer per executor, not per connection.
pub(crate) const CIPHER_READ_BYTES: usize = 4 * 16 * 1024 + RECORD_SLACK_BYTES;
/// By how much a read of ciphertext may be longer than the room for its plaintext: what four records have beside their
/// content (at most 256 bytes in TLS 1.3, RFC 8446 section 5.2), and a short record behind them.
pub(crate) const RECORD_SLACK_BYTES: usize = 2048;
/// Bytes asked for at once during a handshake: a record, so that little of what follows it must be kept.
pub(crate) const HANDSHAKE_READ_BYTES: usize = 16 * 1024 + RECORD_SLACK_BYTES;
/// Bytes sealed before they are sent: four records leave in one system call, and they are still in the processor's cache.
pub(crate) const SEAL_BYTES: usize = 4 * 16 * 1024;
/// What a connection with TLS can hold at most beside what it holds without: what is sealed and not taken by the client, a
/// record that has come in part, what was read behind it, and the keys. An idle one takes far less.
pub const TLS_CONNECTION_BYTES: usize = SEAL_BYTES + 2 * (16 * 1024 + RECORD_SLACK_BYTES) + 16 * 1024;
/// Bytes of an unread request body that are read away to keep the connection; more than this and closing is cheaper.
pub(crate) const DISCARD_BYTES_MAX: u64 = 256 * 1024;
/// How long a connection that we close lingers, reading away what the client still sends: closing with unread bytes
/// resets the connection, and the reset can overtake the response.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// Bytes read away while lingering.
pub(crate) const LINGER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Connections past [`Limits::connections_max`] that may linger at once, per executor and port; further ones are closed
/// at once, for a flood must not hold descriptors that the limit keeps for others.
pub(crate) const LINGER_TURNED_AWAY_MAX: usize = 64;
/// Time given to connections to notice that they were shut down at the end of a drain.
pub(crate) const ABORT_PATIENCE: Duration = Duration::from_secs(1);
/// First and longest pause after `accept` has failed for want of descriptors or memory.
pub(crate) const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
/// See [`ACCEPT_PAUSE_MIN`].
pub(crate) const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Depth of each io_uring ring of an executor.
pub(crate) const RING_DEPTH: usize = 256;
/// How long a task may run before it is asked to yield: one client with endless data must not hold up the others.
pub(crate) const PREEMPT: Duration = Duration::from_millis(10);
/// glommio makes three rings per executor and registers the same memory with each; each counts.
pub(crate) const RINGS_PER_EXECUTOR: u64 = 3;
/// Below this much lockable memory glommio refuses to start.
pub(crate) const MEMLOCK_BYTES_MIN: u64 = 512 * 1024;
/// Most memory registered for direct I/O per executor, in bytes; what does not fit comes from the heap.
pub(crate) const IO_MEMORY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Least memory registered for direct I/O per executor, in bytes: glommio takes no less.
pub(crate) const IO_MEMORY_BYTES_MIN: u64 = 64 * 1024;

/// Limits on the connections of one port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limits on a request head.
    pub head: HeadLimits,
    /// Most connections open at once on the port, all executors together; further ones get 503 and are closed, those with TLS without the 503.
    pub connections_max: usize,
    /// From the first byte of a head to its last.
    pub head_timeout: Duration,
    /// How long a connection may stay open between requests, and before the first.
    pub idle_timeout: Duration,
    /// How long a request body may make no progress at all.
    pub body_stall_timeout: Duration,
    /// How long a response may make no progress at all.
    pub write_stall_timeout: Duration,
    /// Slowest rate in bytes per second at which a body may flow, either way, measured over the time spent waiting for
    /// the client and granted the stall timeout in advance. It ends clients that send or take a byte at a time.
    pub rate_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: HeadLimits::default(),
            connections_max: 20_000,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            body_stall_timeout: Duration::from_secs(30),
            write_stall_timeout: Duration::from_secs(60),
            rate_min: 1024,
        }
    }
}
