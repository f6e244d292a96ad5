//! Every limit of the management plane, with the reason.

/// Verifications that run at once, all executors together: each reads one block at a time, and more would only make
/// each slower and the device busier.
pub(crate) const VERIFICATIONS_MAX: usize = 2;

/// Longest JSON body of a request, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
