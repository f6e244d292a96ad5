//! The routes of objects, one file each (specification, "Objects").
//!
//! They use the engine as the data plane does, so object lock, default retention, versioning and quotas apply to both
//! planes.

mod abort_upload;
mod archive;
pub(crate) mod changes;
mod content;
mod copy;
mod copy_parts;
mod delete;
mod delete_objects;
mod delete_version;
mod deleted;
mod find;
mod headers;
mod history;
mod list;
mod list_uploads;
mod list_versions;
mod lock;
mod metadata;
mod moment;
mod move_object;
mod new_version;
mod object_ref;
mod preview;
mod put;
mod record;
mod restore;
mod restore_bucket;
mod set_metadata;
mod set_tags;
mod source;
mod usage;

pub(crate) use abort_upload::abort_upload;
pub(crate) use archive::{archive_keys, archive_prefix};
pub(crate) use content::content;
pub(crate) use copy::copy;
pub(crate) use delete::delete;
pub(crate) use delete_objects::delete_objects;
pub(crate) use delete_version::delete_version;
pub(crate) use deleted::{list_deleted, undelete};
pub(crate) use find::find;
pub(crate) use headers::stored_headers;
pub(crate) use history::history;
pub(crate) use list::list;
pub(crate) use list_uploads::list_uploads;
pub(crate) use list_versions::list_versions;
pub(crate) use lock::{set_legal_hold, set_retention};
pub(crate) use metadata::metadata;
pub(crate) use move_object::move_object;
pub(crate) use new_version::{completed, write_error};
pub(crate) use object_ref::ObjectRef;
pub(crate) use preview::preview;
pub(crate) use put::{declared_size, put, receive, receive_and_check};
pub(crate) use restore::restore;
pub(crate) use restore_bucket::restore_bucket;
pub(crate) use set_metadata::set_metadata;
pub(crate) use set_tags::set_tags;
pub(crate) use usage::folder_usage;
