//! Limits that more than one file of this crate uses.

/// Largest object or part that one request creates, in bytes: 5 GiB (AWS: "Uploading objects", "Multipart upload
/// limits", "Copying objects").
pub(crate) const REQUEST_PAYLOAD_BYTES_MAX: u64 = 5 << 30;
