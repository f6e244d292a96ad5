//! All limits of sign-ins, with their reasons.

use std::time::Duration;

/// The time that a person has for a sign-in, with a password manager and a second factor.
pub const SIGN_IN_TIME_MAX: Duration = Duration::from_secs(600);
/// Most sign-ins that wait for their person, of about 300 bytes each. Everybody may begin one.
pub(crate) const PENDING_MAX: usize = 1000;
/// Most of them from one network. Beyond it, its own oldest one ends. Several people may be behind one address.
pub(crate) const PENDING_OF_CLIENT_MAX: usize = 50;
/// Most threads that speak with the provider.
pub(crate) const THREADS_MAX: usize = 4;
/// Most tasks of sign-ins that wait or run. Each takes tenths of a second, or the time limit of a request.
pub(crate) const SIGN_IN_TASKS_MAX: usize = 48;
/// Most tasks of logouts that wait or run. Sign-ins take none of these places, so that sessions can end in a rush.
pub(crate) const LOGOUT_TASKS_MAX: usize = 32;
/// Most of either from one network: the others are left to other networks. Many people may be behind one address.
pub(crate) const TASKS_OF_CLIENT_MAX: usize = 16;
/// Most threads that verify logouts, which anybody may send.
pub(crate) const LOGOUT_THREADS_MAX: usize = THREADS_MAX / 2;

/// Time limit of one request to the provider, from the look-up of its name to the end of the answer.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Largest body of an answer. A token with hundreds of groups has some ten kilobytes.
pub(crate) const ANSWER_BYTES_MAX: u64 = 256 << 10;
/// Largest head of an answer.
pub(crate) const ANSWER_HEAD_BYTES_MAX: usize = 32 << 10;
/// Most keys of a provider. It publishes one for each algorithm, and those of before and after a rotation.
pub(crate) const KEYS_MAX: usize = 64;
/// After this time, metadata and keys are read again: a provider may withdraw a key.
pub(crate) const METADATA_AGE_MAX: Duration = Duration::from_secs(3600);
/// An unknown key or a wrong signature leads to one reading of the keys in this time.
pub(crate) const KEYS_AGE_MIN: Duration = Duration::from_secs(10);
/// For this time after metadata or keys could not be read, what needs them is refused without another request.
pub(crate) const FAILURE_KEPT: Duration = Duration::from_secs(3);
/// The greatest difference between the clocks of provider and server, in seconds.
pub(crate) const CLOCK_SKEW_SECONDS: u64 = 60;

/// Largest logout token, in bytes. One has less than a kilobyte.
pub const LOGOUT_TOKEN_BYTES_MAX: usize = 16 << 10;
/// The age at which a logout token is not accepted any more, in seconds: the provider sends it at once.
pub(crate) const LOGOUT_AGE_SECONDS_MAX: u64 = 300;
/// Most logout tokens that are remembered, of at most 1 KiB each. Only the provider can send valid ones.
pub(crate) const LOGOUTS_USED_MAX: usize = 10_000;

/// Random bytes of state, nonce, PKCE verifier and cookie.
pub(crate) const RANDOM_BYTES: usize = 32;
/// Longest subject (OpenID Connect Core, section 2: 255 ASCII characters).
pub(crate) const SUBJECT_BYTES_MAX: usize = 255;
/// Longest name that is kept of a person, in bytes. It is in sessions, audit records and links.
pub(crate) const NAME_BYTES_MAX: usize = 128;
/// Longest text of the provider in a message, in bytes.
pub(crate) const QUOTED_BYTES_MAX: usize = 200;
/// Longest authorization code, in bytes. They have some hundred; the head of a request has a limit, too.
pub(crate) const CODE_BYTES_MAX: usize = 8 << 10;
