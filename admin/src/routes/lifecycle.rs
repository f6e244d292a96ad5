//! Routes of lifecycle rules.

use cairn_api::*;

use super::Route;
use super::row::*;
use crate::handlers::lifecycle;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/buckets/{bucket}/lifecycle", ALL, "list_lifecycle_rules")
        .summary("Lists the lifecycle rules of a bucket, with what each has done.")
        .answers(&[ok::<LifecycleRuleList>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(lifecycle::list)),
    post("/api/v1/buckets/{bucket}/lifecycle", STORAGE, "create_lifecycle_rule")
        .summary("Creates a lifecycle rule. It applies to objects that exist already, too.")
        .body(json::<SetLifecycleRule>())
        .answers(&[created::<LifecycleRule>()], &[BUCKET_NAME, BUCKET, LIMIT])
        .handler(boxed!(lifecycle::create)),
    post("/api/v1/buckets/{bucket}/lifecycle/preview", STORAGE, "preview_lifecycle_rule")
        .summary("Shows what a lifecycle rule would do now. Changes nothing.")
        .body(json::<SetLifecycleRule>())
        .answers(&[ok::<LifecyclePreview>()], &[BUCKET_NAME, BUCKET])
        .unrecorded()
        .handler(boxed!(lifecycle::preview)),
    put("/api/v1/buckets/{bucket}/lifecycle/{rule_id}", STORAGE, "replace_lifecycle_rule")
        .summary("Replaces a lifecycle rule. Its id, creation time and totals stay.")
        .body(json::<SetLifecycleRule>())
        .answers(&[ok::<LifecycleRule>()], &[BUCKET_NAME, BUCKET, LIFECYCLE_RULE])
        .handler(boxed!(lifecycle::replace)),
    delete("/api/v1/lifecycle-rules/{id}", STORAGE, "delete_lifecycle_rule")
        .summary("Deletes a lifecycle rule.")
        .answers(&[DONE], &[LIFECYCLE_RULE])
        .handler(boxed!(lifecycle::delete)),
    get("/api/v1/lifecycle/status", ALL, "get_lifecycle_status")
        .summary("Shows the state of the lifecycle worker.")
        .answers(&[ok::<LifecycleStatus>()], &[])
        .handler(boxed!(lifecycle::status)),
    post("/api/v1/lifecycle/resume", STORAGE, "resume_lifecycle")
        .summary("Resumes the lifecycle worker after a jump of the clock.")
        .answers(&[ok::<LifecycleStatus>()], &[])
        .handler(boxed!(lifecycle::resume)),
];
