//! Every limit of the management plane, with the reason.

use std::time::Duration;

/// Verifications that run at once, all executors together: each reads one block at a time, and more would only make
/// each slower and the device busier.
pub(crate) const VERIFICATIONS_MAX: usize = 2;

/// Longest JSON body of a request, in bytes (specification, "Limits").
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;

/// Values in a JSON body: reading a body of 1 MiB that consists of empty objects would hold the executor for a tenth of a
/// second. The largest policy has some 11 000.
pub(crate) const JSON_VALUES_MAX: usize = 20_000;

/// Most bytes of a message about a body that cannot be read: it repeats what was sent.
pub(crate) const JSON_MESSAGE_BYTES_MAX: usize = 200;

/// Largest limit of a quota: the largest whole number that every JSON reader keeps exactly (RFC 8259, section 6).
pub(crate) const QUOTA_LIMIT_MAX: u64 = (1 << 53) - 1;

/// How long the answer to a wrong credential is held back after the first one of a client; twice as long after each
/// further one.
pub(crate) const WRONG_CREDENTIAL_DELAY: Duration = Duration::from_millis(50);
/// The longest that it is held back: an operator who mistypes a token waits no longer than this.
pub(crate) const WRONG_CREDENTIAL_DELAY_MAX: Duration = Duration::from_secs(2);
/// A client that sent no wrong credential for so long begins anew.
pub(crate) const WRONG_CREDENTIAL_MEMORY: Duration = Duration::from_secs(60);
/// Clients whose wrong credentials are remembered; the rest share one count.
pub(crate) const WRONG_CREDENTIAL_CLIENTS_MAX: usize = 4096;
/// Answers that are held back at once, all executors together. Beyond that a wrong credential is answered 429 at once, so
/// that those who guess cannot use up the plane's connections.
pub(crate) const HELD_BACK_MAX: usize = 256;

/// Most entries of a page of a list, and how many there are when nobody says.
pub(crate) const LIST_ENTRIES_MAX: usize = 1000;
/// Objects of a page that are looked up between two turns of other requests: some 0.2 ms.
pub(crate) const LIST_TURN_ENTRIES: usize = 64;

/// User metadata, names and values together, in bytes; the same for the other stored headers (AWS: "Working with object
/// metadata").
pub(crate) const STORED_HEADER_BYTES_MAX: usize = 2048;

/// How much of a text is shown in a preview, in bytes: more than anybody reads there.
pub(crate) const PREVIEW_TEXT_BYTES_MAX: u64 = 1 << 20;
/// Largest image that is shown, in bytes: what a browser draws without a pause.
pub(crate) const PREVIEW_IMAGE_BYTES_MAX: u64 = 16 << 20;
/// Answers of one client that are held back before the root credential is not looked at any more when it comes from there:
/// with the delay at its longest, four guesses in a second.
pub(crate) const HELD_BACK_PER_CLIENT_MAX: usize = 8;
