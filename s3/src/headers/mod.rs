//! Headers and parameters that several operations share: how they are read from requests and written to responses.

pub(crate) mod attributes;
pub(crate) mod copy_source;
mod encoded_words;
pub(crate) mod encryption;
pub(crate) mod expiration;
pub(crate) mod object_lock;
pub(crate) mod tagging;
pub(crate) mod version;
pub(crate) mod write_conditions;

pub(crate) use cairn_transfer::checksum;
