//! Routes of buckets and their settings.

use cairn_api::*;
use cairn_identity::policy::Action;

use super::Route;
use super::row::*;
use crate::handlers::{bucket_tags, buckets, cors, object_lock, public_access};
use crate::operation::MemberAccess;

pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/buckets", ALL, "list_buckets")
        .summary("Lists all buckets.")
        .answers(&[ok::<BucketList>()], &[])
        .open_to_members(MemberAccess::OwnBuckets)
        .handler(boxed!(buckets::list)),
    post("/api/v1/buckets", STORAGE, "create_bucket")
        .summary("Creates a bucket.")
        .body(json::<CreateBucket>())
        .answers(&[created::<Bucket>()], &[BUCKET_NAME, (409, "BUCKET_ALREADY_EXISTS")])
        .handler(boxed!(buckets::create)),
    get("/api/v1/buckets/{bucket}", ALL, "get_bucket")
        .summary("Shows one bucket.")
        .answers(&[ok::<Bucket>()], &[BUCKET_NAME, BUCKET])
        .open_to_members(MemberAccess::Bucket(Action::ListBucket))
        .handler(boxed!(buckets::get)),
    get("/api/v1/buckets/{bucket}/contents", ALL, "get_bucket_contents")
        .summary(
            "Counts what a bucket contains, including older versions, delete markers and \
             unfinished uploads.",
        )
        .answers(&[ok::<BucketContents>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(buckets::contents)),
    delete("/api/v1/buckets/{bucket}", STORAGE, "delete_bucket")
        .summary("Deletes an empty bucket.")
        .answers(&[DONE], &[BUCKET_NAME, BUCKET, (409, "BUCKET_NOT_EMPTY")])
        .handler(boxed!(buckets::delete)),
    get("/api/v1/buckets/{bucket}/versioning", ALL, "get_versioning")
        .summary("Shows the versioning state of a bucket.")
        .answers(&[ok::<Versioning>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(buckets::versioning)),
    put("/api/v1/buckets/{bucket}/versioning", STORAGE, "set_versioning")
        .summary("Enables or suspends versioning.")
        .body(json::<SetVersioning>())
        .answers(&[ok::<Versioning>()], &[BUCKET_NAME, BUCKET, STATE])
        .handler(boxed!(buckets::set_versioning)),
    put("/api/v1/buckets/{bucket}/quota", STORAGE, "set_quota")
        .summary("Sets a bucket's quota: both bytes and objects.")
        .body(json::<SetQuota>())
        .answers(&[ok::<Bucket>()], &[BUCKET_NAME, BUCKET, (409, "QUOTA_BELOW_USAGE")])
        .handler(boxed!(buckets::set_quota)),
    get("/api/v1/buckets/{bucket}/cors", ALL, "get_cors")
        .summary("Shows the CORS rules of a bucket.")
        .answers(&[ok::<CorsRules>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(cors::get)),
    put("/api/v1/buckets/{bucket}/cors", STORAGE, "set_cors")
        .summary("Replaces the CORS rules of a bucket, as PutBucketCors does.")
        .body(json::<SetCorsRules>())
        .answers(&[ok::<CorsRules>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(cors::set)),
    delete("/api/v1/buckets/{bucket}/cors", STORAGE, "delete_cors")
        .summary("Removes the CORS rules of a bucket.")
        .answers(&[DONE], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(cors::delete)),
    get("/api/v1/buckets/{bucket}/tags", ALL, "get_bucket_tags")
        .summary("Shows the tags of a bucket.")
        .answers(&[ok::<BucketTags>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(bucket_tags::get)),
    put("/api/v1/buckets/{bucket}/tags", STORAGE, "set_bucket_tags")
        .summary("Replaces the tags of a bucket, as PutBucketTagging does.")
        .body(json::<BucketTags>())
        .answers(&[ok::<BucketTags>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(bucket_tags::set)),
    get("/api/v1/buckets/{bucket}/public-access", ALL, "get_public_access")
        .summary("Shows what anybody may read and list in a bucket.")
        .answers(&[ok::<PublicAccess>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(public_access::get)),
    put("/api/v1/buckets/{bucket}/public-access", STORAGE, "set_public_access")
        .summary("Replaces the rules of public access of a bucket.")
        .body(json::<PublicAccess>())
        .answers(&[ok::<PublicAccess>()], &[BUCKET_NAME, BUCKET, (403, "PUBLIC_ACCESS_DISABLED")])
        .handler(boxed!(public_access::set)),
    get("/api/v1/public-access", ALL, "list_public_access")
        .summary("Lists all that is public.")
        .answers(&[ok::<PublicAccessList>()], &[])
        .handler(boxed!(public_access::list)),
    get("/api/v1/buckets/{bucket}/object-lock", ALL, "get_object_lock")
        .summary("Shows whether a bucket has object lock, and its default retention.")
        .answers(&[ok::<ObjectLock>()], &[BUCKET_NAME, BUCKET])
        .handler(boxed!(object_lock::get)),
    put("/api/v1/buckets/{bucket}/object-lock", STORAGE, "set_object_lock")
        .summary("Sets the default retention of a bucket with object lock. Null removes it.")
        .body(json::<SetObjectLock>())
        .answers(&[ok::<ObjectLock>()], &[BUCKET_NAME, BUCKET, (409, "OBJECT_LOCK_NOT_ENABLED")])
        .handler(boxed!(object_lock::set)),
];
