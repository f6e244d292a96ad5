//! Links, their ids, tokens and passwords, web origins and media types. Nothing here reads or writes.

pub(crate) mod author;
pub(crate) mod embed;
pub(crate) mod id;
pub(crate) mod link;
pub(crate) mod media_type;
pub(crate) mod origin;
pub(crate) mod password;
pub(crate) mod share;
pub(crate) mod token;
