//! Parts of a request: path, query, body, names. Nothing here knows the store or the caller.

pub(crate) mod body;
pub(crate) mod json;
pub(crate) mod names;
pub(crate) mod path;
pub(crate) mod query;
