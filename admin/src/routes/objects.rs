//! Routes of objects, versions and unfinished uploads.

use cairn_api::*;
use cairn_identity::policy::Action;

use super::Route;
use super::row::*;
use crate::handlers::objects;
use crate::operation::MemberAccess;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/buckets/{bucket}/objects", ALL, "list_objects")
        .summary("Lists current objects in key order.")
        .query(&[
            optional::<String>("prefix"),
            optional::<String>("delimiter"),
            optional::<PageLimit>("limit"),
            optional::<String>("continuation_token"),
            AT,
        ])
        .answers(&[ok::<ObjectPage>()], &[BUCKET_NAME, BUCKET, STATE])
        .data_read()
        .open_to_members(MemberAccess::Bucket(Action::ListBucket))
        .handler(boxed!(objects::list)),
    get("/api/v1/buckets/{bucket}/object/{key}", ALL, "get_object")
        .summary("Shows the metadata of an object.")
        .query(&[VERSION_ID, AT])
        .answers(&[ok::<ObjectRecord>()], &[BUCKET_NAME, BUCKET, OBJECT, VERSION, STATE])
        .data_read()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::metadata)),
    put("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "upload_object")
        .summary(
            "Uploads an object. The body is its content; Content-Type and x-amz-meta-* headers are \
             stored.",
        )
        .body(OPTIONAL_BYTES)
        .answers(
            &[created::<ObjectRecord>()],
            &[BUCKET_NAME, BUCKET, QUOTA, (411, "INVALID_REQUEST"), (412, "PRECONDITION_FAILED")],
        )
        .object_change()
        .open_to_members(MemberAccess::Object(Action::PutObject))
        .handler(boxed!(objects::put)),
    delete("/api/v1/buckets/{bucket}/object/{key}", STORAGE, "delete_object")
        .summary("Deletes an object. A bucket with versioning gets a delete marker.")
        .answers(&[DONE], &[BUCKET_NAME, BUCKET, OBJECT])
        .object_change()
        .open_to_members(MemberAccess::Object(Action::DeleteObject))
        .handler(boxed!(objects::delete)),
    get("/api/v1/buckets/{bucket}/object-content/{key}", STORAGE, "download_object")
        .summary("Returns the content of an object, or a range of it.")
        .query(&[VERSION_ID, AT])
        .answers(
            &[CONTENT, PARTIAL_CONTENT, NOT_MODIFIED],
            &[
                BUCKET_NAME,
                BUCKET,
                OBJECT,
                VERSION,
                STATE,
                (412, "PRECONDITION_FAILED"),
                (416, "RANGE_NOT_SATISFIABLE"),
            ],
        )
        .data_read()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::content)),
    get("/api/v1/buckets/{bucket}/object-preview/{key}", STORAGE, "preview_object")
        .summary("Returns the first 1 MiB of a text as plain text, or an image of up to 16 MiB.")
        .query(&[VERSION_ID])
        .answers(&[CONTENT], &[BUCKET_NAME, BUCKET, OBJECT, VERSION, (415, "UNSUPPORTED_MEDIA_TYPE")])
        .data_read()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::preview)),
    get("/api/v1/buckets/{bucket}/object-versions", ALL, "list_object_versions")
        .summary("Lists all versions and delete markers, the newest of a key first.")
        .query(&[
            optional::<String>("prefix"),
            optional::<PageLimit>("limit"),
            optional::<String>("key_marker"),
            optional::<VersionId>("version_id_marker"),
        ])
        .answers(&[ok::<VersionPage>()], &[BUCKET_NAME, BUCKET])
        .data_read()
        .open_to_members(MemberAccess::Bucket(Action::ListBucket))
        .handler(boxed!(objects::list_versions)),
    delete("/api/v1/buckets/{bucket}/object-versions/{key}", STORAGE, "delete_object_version")
        .summary(
            "Permanently deletes one version or delete marker. With `only_imported`, one that an \
             import has brought; another counts as missing.",
        )
        .query(&[required::<VersionId>("version_id"), optional::<bool>("only_imported")])
        .answers(&[DONE], &[BUCKET_NAME, BUCKET, VERSION, QUOTA, (403, "OBJECT_LOCKED")])
        .object_change()
        .open_to_members(MemberAccess::Object(Action::DeleteObject))
        .handler(boxed!(objects::delete_version)),
    put("/api/v1/buckets/{bucket}/object-retention/{key}", STORAGE, "set_object_retention")
        .summary("Sets the retention of a version, by default the current one. Null removes it.")
        .query(&[VERSION_ID])
        .body(json::<SetRetention>())
        .answers(
            &[ok::<RetentionOfVersion>()],
            &[BUCKET_NAME, BUCKET, OBJECT, VERSION, (403, "OBJECT_LOCKED"), (409, "OBJECT_LOCK_NOT_ENABLED")],
        )
        .handler(boxed!(objects::set_retention)),
    put("/api/v1/buckets/{bucket}/object-legal-hold/{key}", STORAGE, "set_object_legal_hold")
        .summary("Puts a legal hold on a version, by default the current one, or takes it off.")
        .query(&[VERSION_ID])
        .body(json::<LegalHold>())
        .answers(
            &[ok::<LegalHold>()],
            &[BUCKET_NAME, BUCKET, OBJECT, VERSION, (409, "OBJECT_LOCK_NOT_ENABLED")],
        )
        .handler(boxed!(objects::set_legal_hold)),
    put("/api/v1/buckets/{bucket}/object-tags/{key}", STORAGE, "set_object_tags")
        .summary("Replaces the tags of a version, by default the current one.")
        .query(&[VERSION_ID])
        .body(json::<ObjectTags>())
        .answers(&[ok::<ObjectTags>()], &[BUCKET_NAME, BUCKET, OBJECT, VERSION])
        .object_change()
        .open_to_members(MemberAccess::Existing(Action::PutObject))
        .handler(boxed!(objects::set_tags)),
    put("/api/v1/buckets/{bucket}/object-metadata/{key}", STORAGE, "set_object_metadata")
        .summary("Replaces content type, headers and metadata of an object, by a copy onto itself.")
        .body(json::<SetObjectMetadata>())
        .answers(
            &[created::<ObjectRecord>()],
            &[BUCKET_NAME, BUCKET, OBJECT, QUOTA, (412, "PRECONDITION_FAILED")],
        )
        .object_change()
        .handler(boxed!(objects::set_metadata)),
    get("/api/v1/buckets/{bucket}/multipart-uploads", ALL, "list_multipart_uploads")
        .summary("Lists unfinished multipart uploads in key order.")
        .query(&[
            optional::<String>("prefix"),
            optional::<PageLimit>("limit"),
            optional::<String>("key_marker"),
            optional::<UploadId>("upload_id_marker"),
        ])
        .answers(&[ok::<UploadPage>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(objects::list_uploads)),
    delete("/api/v1/buckets/{bucket}/multipart-uploads/{key}", STORAGE, "abort_multipart_upload")
        .summary("Aborts a multipart upload and removes its parts.")
        .query(&[required::<UploadId>("upload_id")])
        .answers(&[DONE], &[BUCKET_NAME, BUCKET, UPLOAD])
        .object_change()
        .handler(boxed!(objects::abort_upload)),
    // The handlers ask for the rights on the destination, and for that to delete the source.
    post("/api/v1/buckets/{bucket}/object-copy/{key}", STORAGE, "copy_object")
        .summary("Copies an object, or one version of it, with its metadata.")
        .body(json::<CopyObject>())
        .answers(
            &[created::<ObjectRecord>()],
            &[BUCKET_NAME, BUCKET, OBJECT, VERSION, QUOTA, (409, "OBJECT_ALREADY_EXISTS")],
        )
        .object_change()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::copy)),
    post("/api/v1/buckets/{bucket}/object-move/{key}", STORAGE, "move_object")
        .summary("Moves an object: copies it with its metadata, and deletes that version of the source.")
        .body(json::<MoveObject>())
        .answers(
            &[created::<ObjectRecord>()],
            &[BUCKET_NAME, BUCKET, OBJECT, QUOTA, (409, "OBJECT_ALREADY_EXISTS")],
        )
        .object_change()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::move_object)),
    get("/api/v1/buckets/{bucket}/archive", STORAGE, "download_archive")
        .summary("Returns a ZIP archive of the objects below a prefix, also as they were at a moment.")
        .query(&[optional::<String>("prefix"), AT])
        .answers(&[CONTENT], &[BUCKET_NAME, BUCKET, OBJECT, STATE])
        .data_read()
        .handler(boxed!(objects::archive_prefix)),
    post("/api/v1/buckets/{bucket}/archive", STORAGE, "download_objects")
        .summary("Returns a ZIP archive of the objects with the given keys.")
        .body(json::<ArchiveObjects>())
        .answers(&[CONTENT], &[BUCKET_NAME, BUCKET, OBJECT])
        .data_read()
        .handler(boxed!(objects::archive_keys)),
    get("/api/v1/buckets/{bucket}/changes", ALL, "count_changes")
        .summary("Counts the changes of objects between two times, and names the largest deletions.")
        .query(&[
            required::<Time>("since"),
            optional::<Time>("until"),
            optional::<ChangeSteps>("steps"),
            optional::<Prefix>("prefix"),
        ])
        .answers(&[ok::<Changes>()], &[BUCKET_NAME, BUCKET])
        .data_read()
        .handler(boxed!(objects::changes::of_bucket)),
    get("/api/v1/buckets/{bucket}/find", ALL, "find_objects")
        .summary(
            "Finds the objects that fulfil all conditions. A parameter tag.<name> is the value \
             that the tag must have.",
        )
        .query(&[
            optional::<KeyText>("contains"),
            optional::<KeyText>("glob"),
            optional::<Prefix>("prefix"),
            optional::<Bytes>("min_bytes"),
            optional::<Bytes>("max_bytes"),
            optional::<Time>("modified_since"),
            optional::<Time>("modified_until"),
            optional::<ContentType>("content_type"),
            family::<String>("tag."),
            AT,
            optional::<PageLimit>("limit"),
            optional::<String>("continuation_token"),
        ])
        .answers(&[ok::<FoundPage>()], &[BUCKET_NAME, BUCKET, STATE])
        .data_read()
        .handler(boxed!(objects::find)),
    get("/api/v1/buckets/{bucket}/folder-usage", ALL, "get_folder_usage")
        .summary("Counts objects and bytes below a prefix, and of the folders one level below it.")
        .query(&[
            optional::<Prefix>("prefix"),
            optional::<MaxKeys>("max_keys"),
            optional::<String>("continuation_token"),
        ])
        .answers(&[ok::<FolderUsage>()], &[BUCKET_NAME, BUCKET])
        .data_read()
        .handler(boxed!(objects::folder_usage)),
    get("/api/v1/buckets/{bucket}/object-history/{key}", ALL, "get_object_history")
        .summary("Shows what has happened to an object, the latest first.")
        .answers(&[ok::<ObjectHistory>()], &[BUCKET_NAME, BUCKET, OBJECT])
        .data_read()
        .handler(boxed!(objects::history)),
    get("/api/v1/buckets/{bucket}/deleted-objects", ALL, "list_deleted_objects")
        .summary("Lists the objects that delete markers hide, in key order.")
        .query(&[
            optional::<String>("prefix"),
            optional::<String>("delimiter"),
            optional::<PageLimit>("limit"),
            optional::<String>("continuation_token"),
        ])
        .answers(&[ok::<DeletedPage>()], &[BUCKET_NAME, BUCKET, STATE])
        .data_read()
        .handler(boxed!(objects::list_deleted)),
    post("/api/v1/buckets/{bucket}/delete", STORAGE, "delete_objects")
        .summary("Deletes up to 1000 objects or versions.")
        .body(json::<DeleteObjects>())
        .answers(&[ok::<DeletedObjects>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(objects::delete_objects)),
    post("/api/v1/buckets/{bucket}/undelete", STORAGE, "undelete_objects")
        .summary("Removes the delete markers that hide objects.")
        .body(json::<Undelete>())
        .answers(&[ok::<Undeleted>()], &[BUCKET_NAME, BUCKET, STATE])
        .handler(boxed!(objects::undelete)),
    post("/api/v1/buckets/{bucket}/restore", STORAGE, "restore_bucket")
        .summary(
            "Makes the current objects equal to those of a moment, by writing new versions and \
             delete markers.",
        )
        .body(json::<RestoreBucket>())
        .answers(&[ok::<RestoredBucket>()], &[BUCKET_NAME, BUCKET, STATE])
        .handler(boxed!(objects::restore_bucket)),
    post("/api/v1/restore/{bucket}/{key}", STORAGE, "restore_object")
        .summary("Restores an older version by writing a new version with its content.")
        .body(json::<RestoreObject>())
        .answers(&[created::<ObjectRecord>()], &[BUCKET_NAME, BUCKET, VERSION, QUOTA, STATE])
        .object_change()
        .open_to_members(MemberAccess::Object(Action::GetObject))
        .handler(boxed!(objects::restore)),
];
