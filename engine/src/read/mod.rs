//! The read path: from a key to checked bytes.

pub(crate) mod open;
pub(crate) mod pinned_payload;
pub(crate) mod reader;
pub(crate) mod shared_parts;
