//! Routes of verification and signed proofs.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::verify;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/verify/progress", ALL, "get_verification_progress")
        .summary("Shows the running verifications.")
        .answers(&[ok::<VerificationProgress>()], &[])
        .handler(boxed!(verify::progress)),
    post("/api/v1/verify/objects/{bucket}/{key}", STORAGE, "verify_object")
        .summary("Reads one version from the device and verifies it.")
        .query(&[VERSION_ID])
        .answers(&[ok::<ObjectVerification>()], &[BUCKET_NAME, BUCKET, OBJECT, VERSION])
        .unrecorded()
        .handler(boxed!(verify::object)),
    post("/api/v1/verify/imports", SYSTEM, "sign_import_report")
        .summary("Signs what a comparison with another store found, as a proof of the kind import.")
        .body(json::<SignImportReport>())
        .answers(&[ok::<SignedImportReport>()], &[])
        .handler(boxed!(verify::import_report)),
    post("/api/v1/verify/backups", STORAGE, "sign_backup_manifest")
        .summary("Signs the manifest of a backup, as a proof of the kind backup.")
        .body(json::<SignBackupManifest>())
        .answers(&[ok::<SignedImportReport>()], &[])
        .handler(boxed!(verify::backup_manifest)),
    post("/api/v1/verify/buckets/{bucket}", STORAGE, "verify_bucket")
        .summary("Reads every version in a bucket from the device and verifies it.")
        .body(optional_json::<VerifyBucket>())
        .answers(&[ok::<BucketVerification>()], &[BUCKET_NAME, BUCKET])
        .unrecorded()
        .handler(boxed!(verify::bucket)),
];
