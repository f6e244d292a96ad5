//! The write path: buffers, digests and staged payloads.

pub(crate) mod writer;
