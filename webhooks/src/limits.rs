//! Limits of webhooks, with the reasons.

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
/// How long a thread for look-ups waits for another one.
pub(crate) const LOOKUP_THREAD_IDLE: Duration = Duration::from_secs(10);
/// Addresses of one host that are tried. All of them are judged.
pub(crate) const ADDRESSES_MAX: usize = 16;

/// Largest head of an answer, in bytes. Common servers limit theirs to 8 KiB.
pub(crate) const RESPONSE_HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer's body that are read and discarded, so that the connection can be used again.
pub(crate) const RESPONSE_BODY_BYTES_MAX: u64 = 64 << 10;
/// How long the body is waited for. The status has arrived, and decides.
pub(crate) const RESPONSE_BODY_WAIT: Duration = Duration::from_secs(2);
/// Buffers of a connection, in bytes. That for input must hold more than the largest head.
pub(crate) const INPUT_BUFFER_BYTES: usize = RESPONSE_HEAD_BYTES_MAX + (8 << 10);
pub(crate) const OUTPUT_BUFFER_BYTES: usize = 8 << 10;
/// Bytes that a connection collects before it sends them: a head and the body of an event are one packet.
pub(crate) const UNSENT_BYTES_MAX: usize = 32 << 10;
/// How long an unused connection is kept. Common receivers close theirs after 5 to 75 seconds.
pub(crate) const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(30);
/// Longest wait that a receiver can ask for with `Retry-After`.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Unused connections that are kept: one for each delivery that can run at a time.
pub(crate) const CONNECTIONS_IDLE_MAX: usize = 64;
