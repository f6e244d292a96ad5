//! Routes of imports from another store.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::imports;

pub(super) static ROUTES: &[Route] = &[
    post("/api/v1/buckets/{bucket}/imports", SYSTEM, "begin_import")
        .summary("Begins a run that imports versions of another store into a bucket.")
        .body(json::<BeginImport>())
        .answers(&[created::<BegunImport>()], &[BUCKET_NAME, BUCKET, STORE_STATE])
        .handler(boxed!(imports::begin)),
    post("/api/v1/buckets/{bucket}/imported-objects", SYSTEM, "import_objects")
        .summary(
            "Imports small versions of a run together. The body is a pipeline of the requests that \
             import one, of media type application/http.",
        )
        .query(&[IMPORT_ID])
        .body(BYTES)
        .answers(&[ok::<ImportedVersions>()], &[BUCKET_NAME, BUCKET, IMPORT])
        .unrecorded()
        .handler(boxed!(imports::put_batch)),
    put("/api/v1/buckets/{bucket}/imported-objects/{key}", SYSTEM, "import_object")
        .summary(
            "Imports a version with its id, date and entity tag. The body is its content; headers, \
             tags and lock are stored.",
        )
        .query(&imports::PARAMETERS)
        .body(OPTIONAL_BYTES)
        .answers(
            &[created::<ImportedVersion>(), ok::<ImportedVersion>()],
            &[BUCKET_NAME, BUCKET, IMPORT, UPLOAD, IMPORT_CONFLICT, STATE, QUOTA, (411, "INVALID_REQUEST")],
        )
        .unrecorded()
        .handler(boxed!(imports::put)),
    patch("/api/v1/buckets/{bucket}/imported-objects/{key}", SYSTEM, "change_imported_object")
        .summary("Changes tags, retention or legal hold of an imported version.")
        .query(&[IMPORT_ID, required::<VersionId>("version_id")])
        .body(json::<ChangeImported>())
        .answers(
            &[ok::<ImportedVersion>()],
            &[
                BUCKET_NAME,
                BUCKET,
                OBJECT,
                VERSION,
                IMPORT,
                IMPORT_CONFLICT,
                (409, "OBJECT_LOCK_NOT_ENABLED"),
                (403, "OBJECT_LOCKED"),
            ],
        )
        .unrecorded()
        .handler(boxed!(imports::change)),
    post("/api/v1/buckets/{bucket}/imported-uploads/{key}", SYSTEM, "begin_imported_upload")
        .summary("Begins an upload whose parts will be an imported version.")
        .query(&[IMPORT_ID])
        .answers(
            &[created::<ImportedUpload>()],
            &[BUCKET_NAME, BUCKET, IMPORT, (409, "OBJECT_LOCK_NOT_ENABLED")],
        )
        .unrecorded()
        .handler(boxed!(imports::begin_upload)),
    put("/api/v1/buckets/{bucket}/imported-uploads/{key}", SYSTEM, "import_part")
        .summary("Writes a part of such an upload. The body is its content.")
        .query(&[IMPORT_ID, required::<UploadId>("upload_id"), required::<u16>("part_number")])
        .body(OPTIONAL_BYTES)
        .answers(&[ok::<ImportedPart>()], &[BUCKET_NAME, BUCKET, IMPORT, UPLOAD, (411, "INVALID_REQUEST")])
        .unrecorded()
        .handler(boxed!(imports::put_part)),
    get("/api/v1/imports", ALL, "list_imports")
        .summary("Lists the latest runs since the service was started, the newest first.")
        .answers(&[ok::<ImportList>()], &[])
        .handler(boxed!(imports::list)),
    get("/api/v1/imports/{id}", ALL, "get_import")
        .summary("Shows one run.")
        .answers(&[ok::<ImportRun>()], &[IMPORT])
        .handler(boxed!(imports::get)),
    post("/api/v1/imports/{id}/pause", SYSTEM, "pause_import")
        .summary("Pauses a run: the importer stops sending when it next asks.")
        .answers(&[ok::<ImportRun>()], &[IMPORT])
        .handler(boxed!(imports::pause)),
    post("/api/v1/imports/{id}/resume", SYSTEM, "resume_import")
        .summary("Ends the pause of a run.")
        .answers(&[ok::<ImportRun>()], &[IMPORT])
        .handler(boxed!(imports::resume)),
];
