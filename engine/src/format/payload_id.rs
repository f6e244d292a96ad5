//! The identity of a payload in volumes.

/// Random identity of a payload in volumes: names its blocks in the cache and seeds its check table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PayloadId(pub(crate) [u8; 16]);
