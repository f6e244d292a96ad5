//! The routes of objects, one file each (specification, "Objects"). They go through the engine as the data plane does, so
//! locks, retention defaults, versioning and quotas hold for both alike.

mod content;
mod copy;
mod copy_parts;
mod delete;
mod delete_version;
mod headers;
mod list;
mod list_versions;
mod metadata;
mod named;
mod preview;
mod put;
mod record;
mod restore;
mod source;
mod token;

pub(crate) use content::content;
pub(crate) use copy::copy;
pub(crate) use delete::delete;
pub(crate) use delete_version::delete_version;
pub(crate) use list::list;
pub(crate) use list_versions::list_versions;
pub(crate) use metadata::metadata;
pub(crate) use preview::preview;
pub(crate) use put::put;
pub(crate) use restore::restore;
