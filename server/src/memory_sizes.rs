//! Memory sizes of each part, and the smallest possible limit.

use cairn_engine::limits::{BLOCK_BYTES, BLOCKS_OF_SLOW_READER, BufferLimits};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// One part in eight is held in reserve: fragmentation of the allocator, and the kernel's socket buffers.
const RESERVE_PART: u64 = 8;
/// The program itself, the directory of accounts, the queues of the log and the audit trail, the responses of the
/// management plane, refused requests (at most 6 MB), the history of metrics (less than 2 MiB), and one password hash.
const PROCESS_BYTES: u64 = 32 * MIB;
/// An executor: memory registered for direct I/O, rings, hashers, its stack, presigned URLs that were verified (less than
/// 2 MiB), and reads whose checks are being computed.
const EXECUTOR_BYTES: u64 = 8 * MIB;
/// A slice: the pages that a transaction changes, the free map, and the changes that wait for it.
const SLICE_BYTES: u64 = 4 * MIB;
/// A connection holds at most the blocks of a response that the client has not read, or a small payload that was received,
/// plus a request head and the state of the connection.
pub(crate) const CONNECTION_BYTES: u64 = BLOCKS_OF_SLOW_READER * BLOCK_BYTES as u64 + 24 * KIB;
/// The data plane always gets at least this many connections.
pub(crate) const CONNECTIONS_MIN: u64 = 64;
/// The management plane always gets at least this many: operators, probes and scrapes need a few.
pub(crate) const MANAGEMENT_CONNECTIONS_MIN: u64 = 16;
/// Maximum connections of the management plane: a few operators and probes, even while the data plane is flooded.
pub(crate) const MANAGEMENT_CONNECTIONS_MAX: usize = 1024;
/// The console's listener, if it is open, always gets at least this many. Few, so that the smallest limit hardly grows.
pub(crate) const CONSOLE_CONNECTIONS_MIN: u64 = 6;
/// Maximum connections of the console's listener. It serves visitors, several hundred of them with a browser each.
pub(crate) const CONSOLE_CONNECTIONS_MAX: usize = 4096;
/// A password hash, while it is computed, rounded up.
pub(crate) const PASSWORD_HASH_BYTES: u64 = cairn_sharing::PASSWORD_HASH_BYTES.next_multiple_of(MIB);
/// The smallest limit that any configuration can run in: one executor and one slice, without TLS.
pub(crate) const LIMIT_BYTES_MIN: u64 =
    limit_min(1, 1, connections_min(CONNECTION_BYTES, CONNECTION_BYTES, None));

/// Bytes that do not depend on the load.
pub(crate) const fn fixed(executors: usize, slices: usize) -> u64 {
    PROCESS_BYTES + executors as u64 * EXECUTOR_BYTES + slices as u64 * SLICE_BYTES
}

/// Bytes of the buffers of an executor.
pub(crate) const fn buffers(limits: BufferLimits) -> u64 {
    limits.upload_bytes + limits.read_ahead_bytes + limits.small_body_bytes
}

/// The limit without the reserve.
pub(crate) const fn without_reserve(limit: u64) -> u64 {
    limit - limit / RESERVE_PART
}

/// Bytes that the minimum number of connections of all listeners can hold. Without a console, its connections need none.
pub(crate) const fn connections_min(
    connection_bytes: u64,
    management_connection_bytes: u64,
    console_connection_bytes: Option<u64>,
) -> u64 {
    let console = match console_connection_bytes {
        Some(bytes) => CONSOLE_CONNECTIONS_MIN * bytes,
        None => 0,
    };
    CONNECTIONS_MIN * connection_bytes + MANAGEMENT_CONNECTIONS_MIN * management_connection_bytes + console
}

/// The smallest limit to run in, in whole MiB, without a cache and with `connections_min` bytes for connections.
pub(crate) const fn limit_min(executors: usize, slices: usize, connections_min: u64) -> u64 {
    let bytes = fixed(executors, slices) + executors as u64 * buffers(BufferLimits::MIN) + connections_min;
    (bytes * RESERVE_PART).div_ceil(RESERVE_PART - 1).next_multiple_of(MIB)
}
