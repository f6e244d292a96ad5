//! The implemented operations, one file each. `operations.rs` selects them.

mod abort_multipart_upload;
mod acl;
mod bucket_policy;
mod complete_multipart_upload;
mod copies;
mod copy_object;
mod create_bucket;
mod create_multipart_upload;
mod delete_bucket;
mod delete_bucket_cors;
mod delete_bucket_encryption;
mod delete_bucket_lifecycle;
mod delete_bucket_tagging;
mod delete_object;
mod delete_object_tagging;
mod delete_objects;
mod fixed_settings;
mod form_response;
mod get_bucket_cors;
mod get_bucket_encryption;
mod get_bucket_lifecycle_configuration;
mod get_bucket_location;
mod get_bucket_tagging;
mod get_bucket_versioning;
mod get_object;
mod get_object_attributes;
mod get_object_legal_hold;
pub(crate) mod get_object_lock_configuration;
pub(crate) mod get_object_retention;
mod get_object_tagging;
mod head_bucket;
mod head_object;
mod list_buckets;
pub(crate) mod list_multipart_uploads;
pub(crate) mod list_object_versions;
pub(crate) mod list_objects;
pub(crate) mod list_objects_v2;
mod list_page;
mod list_parts;
mod name_encoding;
pub(crate) mod named_objects;
mod object_response;
mod ownership_controls;
mod post_object;
mod public_policy;
mod put_bucket_cors;
mod put_bucket_encryption;
mod put_bucket_lifecycle_configuration;
mod put_bucket_tagging;
mod put_bucket_versioning;
mod put_object;
pub(crate) mod put_object_legal_hold;
pub(crate) mod put_object_lock_configuration;
pub(crate) mod put_object_retention;
mod put_object_tagging;
mod system_objects;
mod upload_part;
mod upload_part_copy;

pub(crate) use abort_multipart_upload::abort_multipart_upload;
pub(crate) use acl::{get_bucket_acl, get_object_acl, put_bucket_acl, put_object_acl};
pub(crate) use bucket_policy::{
    delete_bucket_policy, delete_public_access_block, get_bucket_policy, get_bucket_policy_status,
    get_public_access_block, put_bucket_policy, put_public_access_block,
};
pub(crate) use complete_multipart_upload::complete_multipart_upload;
pub(crate) use copy_object::copy_object;
pub(crate) use create_bucket::create_bucket;
pub(crate) use create_multipart_upload::create_multipart_upload;
pub(crate) use delete_bucket::delete_bucket;
pub(crate) use delete_bucket_cors::delete_bucket_cors;
pub(crate) use delete_bucket_encryption::delete_bucket_encryption;
pub(crate) use delete_bucket_lifecycle::delete_bucket_lifecycle;
pub(crate) use delete_bucket_tagging::delete_bucket_tagging;
pub(crate) use delete_object::delete_object;
pub(crate) use delete_object_tagging::delete_object_tagging;
pub(crate) use delete_objects::delete_objects;
pub(crate) use fixed_settings::{
    get_bucket_accelerate_configuration, get_bucket_logging, get_bucket_notification_configuration,
    get_bucket_replication, get_bucket_request_payment, get_bucket_website,
};
pub(crate) use get_bucket_cors::get_bucket_cors;
pub(crate) use get_bucket_encryption::get_bucket_encryption;
pub(crate) use get_bucket_lifecycle_configuration::get_bucket_lifecycle_configuration;
pub(crate) use get_bucket_location::get_bucket_location;
pub(crate) use get_bucket_tagging::get_bucket_tagging;
pub(crate) use get_bucket_versioning::get_bucket_versioning;
pub(crate) use get_object::get_object;
pub(crate) use get_object_attributes::get_object_attributes;
pub(crate) use get_object_legal_hold::get_object_legal_hold;
pub(crate) use get_object_lock_configuration::get_object_lock_configuration;
pub(crate) use get_object_retention::get_object_retention;
pub(crate) use get_object_tagging::get_object_tagging;
pub(crate) use head_bucket::head_bucket;
pub(crate) use head_object::head_object;
pub(crate) use list_buckets::list_buckets;
pub(crate) use list_multipart_uploads::list_multipart_uploads;
pub(crate) use list_object_versions::list_object_versions;
pub(crate) use list_objects::list_objects;
pub(crate) use list_objects_v2::list_objects_v2;
pub(crate) use list_parts::list_parts;
pub(crate) use ownership_controls::{
    delete_bucket_ownership_controls, get_bucket_ownership_controls, put_bucket_ownership_controls,
};
pub(crate) use post_object::post_object;
pub(crate) use put_bucket_cors::put_bucket_cors;
pub(crate) use put_bucket_encryption::put_bucket_encryption;
pub(crate) use put_bucket_lifecycle_configuration::put_bucket_lifecycle_configuration;
pub(crate) use put_bucket_tagging::put_bucket_tagging;
pub(crate) use put_bucket_versioning::put_bucket_versioning;
pub(crate) use put_object::put_object;
pub(crate) use put_object_legal_hold::put_object_legal_hold;
pub(crate) use put_object_lock_configuration::put_object_lock_configuration;
pub(crate) use put_object_retention::put_object_retention;
pub(crate) use put_object_tagging::put_object_tagging;
pub(crate) use upload_part::upload_part;
pub(crate) use upload_part_copy::upload_part_copy;
