//! The one table of S3 operations: what selects each, whether it is built, and what a refusal says.
//!
//! Source: the Amazon S3 API Reference, "Actions" (general purpose buckets), as of 2026. A row that is not built
//! names the client setting or the operation that works instead. `routing.rs` reads this table and decides
//! nothing that is not written here: a subresource that occurs in any row never falls through to a plain
//! operation, whatever the method.

use crate::target::Resource::{self, Bucket, Object, Service};
use cairn_http1::Method;

/// What of a request, beside method and path, selects an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selector {
    /// Nothing else: the plain operation of the resource.
    Plain,
    /// A query parameter of this name.
    Query(&'static str),
    /// A query parameter of this name with this value.
    QueryValue(&'static str, &'static str),
    /// A header of this name (or an `x-amz-*` parameter that stands for it).
    Header(&'static str),
}

/// The operations that are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handler {
    ListBuckets,
    CreateBucket,
    HeadBucket,
    DeleteBucket,
    GetBucketLocation,
    ListObjectsV2,
    PutObject,
    GetObject,
    HeadObject,
    DeleteObject,
}

impl Handler {
    /// Whether the operation has a use for the request's body, and checks its digests itself.
    pub(crate) const fn takes_body(self) -> bool {
        match self {
            Self::CreateBucket | Self::PutObject => true,
            Self::ListBuckets
            | Self::HeadBucket
            | Self::DeleteBucket
            | Self::GetBucketLocation
            | Self::ListObjectsV2
            | Self::GetObject
            | Self::HeadObject
            | Self::DeleteObject => false,
        }
    }
}

/// What becomes of a request for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handling {
    /// It is carried out.
    Built(Handler),
    /// It is answered with 501 and this message, and changes nothing.
    NotBuilt(&'static str),
}

/// One row: an operation of S3.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The name in the API Reference; a refusal carries it.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) resource: Resource,
    pub(crate) selector: Selector,
    pub(crate) handling: Handling,
}

impl Operation {
    /// Whether the operation is carried out.
    pub(crate) fn is_built(&self) -> bool {
        matches!(self.handling, Handling::Built(_))
    }
}

const ACL: &str = "ACLs are not implemented: grant access with the policies of service accounts, and leave \
                   x-amz-acl and grant headers away.";
const ANALYTICS: &str = "Analytics, inventory and metrics configurations are not implemented: use ListObjectsV2, \
                         or the management API for usage figures.";
const ATTRIBUTES: &str =
    "GetObjectAttributes is not implemented: use HeadObject with x-amz-checksum-mode: ENABLED.";
const COPY: &str = "CopyObject is not implemented: read the object and put it again (turn server-side copies off in \
                    the client).";
const CORS: &str = "Bucket CORS is not implemented: call the server from the same origin or through a proxy that \
                    answers for CORS.";
const DELETE_OBJECTS: &str = "DeleteObjects is not implemented: delete each key with DeleteObject (turn batch or \
                              multi deletes off in the client).";
const DIRECTORY: &str = "Directory buckets are not implemented: use general purpose buckets, and PutObject with the \
                         whole content.";
const ENCRYPTION: &str = "Bucket and request settings of server-side encryption are not implemented: encryption at \
                          rest is a setting of the whole server.";
const LIFECYCLE: &str =
    "Lifecycle configuration through S3 is not implemented: delete objects with DeleteObject.";
const LIST_V1: &str = "ListObjects (version 1) is not implemented: use ListObjectsV2, that is list-type=2 (set \
                       list_version = 2 or its like in the client).";
const LOCK: &str =
    "Object lock, retention and legal holds are not implemented: leave the lock settings away.";
const MULTIPART: &str = "Multipart upload is not implemented: put the object in one request of up to 5 GiB (raise \
                         the client's multipart threshold).";
const NOTIFICATION: &str = "Bucket notifications are not implemented: list the bucket with ListObjectsV2 to see \
                            changes.";
const OBJECT_LAMBDA: &str = "Object Lambda is not implemented: get the object with GetObject and transform it in \
                             the client.";
const POLICY: &str = "Bucket policies are not implemented: grant access with presigned URLs or with the policies of \
                      service accounts.";
const POST_FORM: &str = "POST form uploads are not implemented: use PutObject with a presigned PUT URL.";
const PREFLIGHT: &str = "CORS preflights are not implemented: call the server from the same origin or through a \
                         proxy that answers for CORS.";
const REPLICATION: &str = "Replication is not implemented: copy objects with a client such as rclone.";
const RESTORE: &str = "Storage tiering is not implemented: every object is readable at once with GetObject.";
const SELECT: &str = "S3 Select is not implemented: read the object, or a range of it, with GetObject.";
const SESSION: &str = "CreateSession is not implemented: sign each request with SigV4.";
const SETTINGS: &str = "This bucket setting is not implemented: use the bucket without it.";
const STS: &str = "STS and session tokens are not implemented: sign with an access key and its secret, or use \
                   presigned URLs.";
const TAGGING: &str = "Tagging is not implemented: use user metadata (x-amz-meta-*).";
const TORRENT: &str = "Torrents are not implemented: use GetObject, with ranges where needed.";
const VERSIONING: &str = "Versioning is not implemented: leave versionId away and list with ListObjectsV2.";
const WEBSITE: &str =
    "Website hosting is not implemented: put a web server or proxy in front and use GetObject.";
/// For a subresource that has a row, but none for the method or resource of the request.
pub(crate) const OTHER_SUBRESOURCE: &str =
    "The request names a subresource that is not implemented: leave it out of the query.";

const fn built(
    name: &'static str,
    method: Method,
    resource: Resource,
    selector: Selector,
    handler: Handler,
) -> Operation {
    Operation { name, method, resource, selector, handling: Handling::Built(handler) }
}

const fn refused(
    name: &'static str,
    method: Method,
    resource: Resource,
    selector: Selector,
    message: &'static str,
) -> Operation {
    Operation { name, method, resource, selector, handling: Handling::NotBuilt(message) }
}

const GET: Method = Method::GET;
const HEAD: Method = Method::HEAD;
const PUT: Method = Method::PUT;
const POST: Method = Method::POST;
const DELETE: Method = Method::DELETE;
const OPTIONS: Method = Method::OPTIONS;

const fn query(name: &'static str) -> Selector {
    Selector::Query(name)
}

use Selector::Plain;

/// All operations. Among the rows that fit a request, routing prefers those that are not built, then the order
/// here; plain rows come last.
#[rustfmt::skip]
pub(crate) static OPERATIONS: &[Operation] = &[
    // What is built.
    built("ListBuckets", GET, Service, Plain, Handler::ListBuckets),
    built("CreateBucket", PUT, Bucket, Plain, Handler::CreateBucket),
    built("HeadBucket", HEAD, Bucket, Plain, Handler::HeadBucket),
    built("DeleteBucket", DELETE, Bucket, Plain, Handler::DeleteBucket),
    built("GetBucketLocation", GET, Bucket, query("location"), Handler::GetBucketLocation),
    built("ListObjectsV2", GET, Bucket, Selector::QueryValue("list-type", "2"), Handler::ListObjectsV2),
    built("PutObject", PUT, Object, Plain, Handler::PutObject),
    built("GetObject", GET, Object, query("partNumber"), Handler::GetObject),
    built("GetObject", GET, Object, Plain, Handler::GetObject),
    built("HeadObject", HEAD, Object, query("partNumber"), Handler::HeadObject),
    built("HeadObject", HEAD, Object, Plain, Handler::HeadObject),
    built("DeleteObject", DELETE, Object, Plain, Handler::DeleteObject),

    // The service.
    refused("AssumeRole", POST, Service, Plain, STS),
    refused("Preflight", OPTIONS, Service, Plain, PREFLIGHT),

    // Buckets.
    refused("ListObjects", GET, Bucket, Plain, LIST_V1),
    refused("PostObject", POST, Bucket, Plain, POST_FORM),
    refused("Preflight", OPTIONS, Bucket, Plain, PREFLIGHT),
    refused("DeleteObjects", POST, Bucket, query("delete"), DELETE_OBJECTS),
    refused("ListMultipartUploads", GET, Bucket, query("uploads"), MULTIPART),
    refused("ListObjectVersions", GET, Bucket, query("versions"), VERSIONING),
    refused("GetBucketVersioning", GET, Bucket, query("versioning"), VERSIONING),
    refused("PutBucketVersioning", PUT, Bucket, query("versioning"), VERSIONING),
    refused("GetObjectLockConfiguration", GET, Bucket, query("object-lock"), LOCK),
    refused("PutObjectLockConfiguration", PUT, Bucket, query("object-lock"), LOCK),
    refused("GetBucketCors", GET, Bucket, query("cors"), CORS),
    refused("PutBucketCors", PUT, Bucket, query("cors"), CORS),
    refused("DeleteBucketCors", DELETE, Bucket, query("cors"), CORS),
    refused("GetBucketAbac", GET, Bucket, query("abac"), POLICY),
    refused("PutBucketAbac", PUT, Bucket, query("abac"), POLICY),
    refused("GetBucketAccelerateConfiguration", GET, Bucket, query("accelerate"), SETTINGS),
    refused("PutBucketAccelerateConfiguration", PUT, Bucket, query("accelerate"), SETTINGS),
    refused("GetBucketAcl", GET, Bucket, query("acl"), ACL),
    refused("PutBucketAcl", PUT, Bucket, query("acl"), ACL),
    refused("GetBucketAnalyticsConfiguration", GET, Bucket, query("analytics"), ANALYTICS),
    refused("PutBucketAnalyticsConfiguration", PUT, Bucket, query("analytics"), ANALYTICS),
    refused("DeleteBucketAnalyticsConfiguration", DELETE, Bucket, query("analytics"), ANALYTICS),
    refused("GetBucketEncryption", GET, Bucket, query("encryption"), ENCRYPTION),
    refused("PutBucketEncryption", PUT, Bucket, query("encryption"), ENCRYPTION),
    refused("DeleteBucketEncryption", DELETE, Bucket, query("encryption"), ENCRYPTION),
    refused("GetBucketIntelligentTieringConfiguration", GET, Bucket, query("intelligent-tiering"), RESTORE),
    refused("PutBucketIntelligentTieringConfiguration", PUT, Bucket, query("intelligent-tiering"), RESTORE),
    refused("DeleteBucketIntelligentTieringConfiguration", DELETE, Bucket, query("intelligent-tiering"), RESTORE),
    refused("GetBucketInventoryConfiguration", GET, Bucket, query("inventory"), ANALYTICS),
    refused("PutBucketInventoryConfiguration", PUT, Bucket, query("inventory"), ANALYTICS),
    refused("DeleteBucketInventoryConfiguration", DELETE, Bucket, query("inventory"), ANALYTICS),
    refused("GetBucketLifecycleConfiguration", GET, Bucket, query("lifecycle"), LIFECYCLE),
    refused("PutBucketLifecycleConfiguration", PUT, Bucket, query("lifecycle"), LIFECYCLE),
    refused("DeleteBucketLifecycle", DELETE, Bucket, query("lifecycle"), LIFECYCLE),
    refused("GetBucketLogging", GET, Bucket, query("logging"), SETTINGS),
    refused("PutBucketLogging", PUT, Bucket, query("logging"), SETTINGS),
    refused("GetBucketMetadataConfiguration", GET, Bucket, query("metadataConfiguration"), ANALYTICS),
    refused("CreateBucketMetadataConfiguration", POST, Bucket, query("metadataConfiguration"), ANALYTICS),
    refused("DeleteBucketMetadataConfiguration", DELETE, Bucket, query("metadataConfiguration"), ANALYTICS),
    refused("GetBucketMetadataTableConfiguration", GET, Bucket, query("metadataTable"), ANALYTICS),
    refused("CreateBucketMetadataTableConfiguration", POST, Bucket, query("metadataTable"), ANALYTICS),
    refused("DeleteBucketMetadataTableConfiguration", DELETE, Bucket, query("metadataTable"), ANALYTICS),
    refused("UpdateBucketMetadataInventoryTableConfiguration", PUT, Bucket, query("metadataInventoryTable"), ANALYTICS),
    refused("UpdateBucketMetadataJournalTableConfiguration", PUT, Bucket, query("metadataJournalTable"), ANALYTICS),
    refused("GetBucketMetricsConfiguration", GET, Bucket, query("metrics"), ANALYTICS),
    refused("PutBucketMetricsConfiguration", PUT, Bucket, query("metrics"), ANALYTICS),
    refused("DeleteBucketMetricsConfiguration", DELETE, Bucket, query("metrics"), ANALYTICS),
    refused("GetBucketNotificationConfiguration", GET, Bucket, query("notification"), NOTIFICATION),
    refused("PutBucketNotificationConfiguration", PUT, Bucket, query("notification"), NOTIFICATION),
    refused("ListenNotification", GET, Bucket, query("events"), NOTIFICATION),
    refused("GetBucketOwnershipControls", GET, Bucket, query("ownershipControls"), ACL),
    refused("PutBucketOwnershipControls", PUT, Bucket, query("ownershipControls"), ACL),
    refused("DeleteBucketOwnershipControls", DELETE, Bucket, query("ownershipControls"), ACL),
    refused("GetBucketPolicy", GET, Bucket, query("policy"), POLICY),
    refused("PutBucketPolicy", PUT, Bucket, query("policy"), POLICY),
    refused("DeleteBucketPolicy", DELETE, Bucket, query("policy"), POLICY),
    refused("GetBucketPolicyStatus", GET, Bucket, query("policyStatus"), POLICY),
    refused("GetPublicAccessBlock", GET, Bucket, query("publicAccessBlock"), POLICY),
    refused("PutPublicAccessBlock", PUT, Bucket, query("publicAccessBlock"), POLICY),
    refused("DeletePublicAccessBlock", DELETE, Bucket, query("publicAccessBlock"), POLICY),
    refused("GetBucketReplication", GET, Bucket, query("replication"), REPLICATION),
    refused("PutBucketReplication", PUT, Bucket, query("replication"), REPLICATION),
    refused("DeleteBucketReplication", DELETE, Bucket, query("replication"), REPLICATION),
    refused("GetBucketRequestPayment", GET, Bucket, query("requestPayment"), SETTINGS),
    refused("PutBucketRequestPayment", PUT, Bucket, query("requestPayment"), SETTINGS),
    refused("CreateSession", GET, Bucket, query("session"), SESSION),
    refused("GetBucketTagging", GET, Bucket, query("tagging"), TAGGING),
    refused("PutBucketTagging", PUT, Bucket, query("tagging"), TAGGING),
    refused("DeleteBucketTagging", DELETE, Bucket, query("tagging"), TAGGING),
    refused("GetBucketWebsite", GET, Bucket, query("website"), WEBSITE),
    refused("PutBucketWebsite", PUT, Bucket, query("website"), WEBSITE),
    refused("DeleteBucketWebsite", DELETE, Bucket, query("website"), WEBSITE),
    refused("WriteGetObjectResponse", POST, Bucket, Selector::Header("x-amz-request-route"), OBJECT_LAMBDA),

    // Objects.
    refused("Preflight", OPTIONS, Object, Plain, PREFLIGHT),
    refused("CopyObject", PUT, Object, Selector::Header("x-amz-copy-source"), COPY),
    refused("AppendObject", PUT, Object, Selector::Header("x-amz-write-offset-bytes"), DIRECTORY),
    refused("CreateMultipartUpload", POST, Object, query("uploads"), MULTIPART),
    refused("UploadPart", PUT, Object, query("uploadId"), MULTIPART),
    refused("UploadPart", PUT, Object, query("partNumber"), MULTIPART),
    refused("CompleteMultipartUpload", POST, Object, query("uploadId"), MULTIPART),
    refused("AbortMultipartUpload", DELETE, Object, query("uploadId"), MULTIPART),
    refused("ListParts", GET, Object, query("uploadId"), MULTIPART),
    refused("GetObjectVersion", GET, Object, query("versionId"), VERSIONING),
    refused("HeadObjectVersion", HEAD, Object, query("versionId"), VERSIONING),
    refused("DeleteObjectVersion", DELETE, Object, query("versionId"), VERSIONING),
    refused("GetObjectAcl", GET, Object, query("acl"), ACL),
    refused("PutObjectAcl", PUT, Object, query("acl"), ACL),
    refused("GetObjectAttributes", GET, Object, query("attributes"), ATTRIBUTES),
    refused("UpdateObjectEncryption", PUT, Object, query("encryption"), ENCRYPTION),
    refused("GetObjectLegalHold", GET, Object, query("legal-hold"), LOCK),
    refused("PutObjectLegalHold", PUT, Object, query("legal-hold"), LOCK),
    refused("GetObjectRetention", GET, Object, query("retention"), LOCK),
    refused("PutObjectRetention", PUT, Object, query("retention"), LOCK),
    refused("GetObjectTagging", GET, Object, query("tagging"), TAGGING),
    refused("PutObjectTagging", PUT, Object, query("tagging"), TAGGING),
    refused("DeleteObjectTagging", DELETE, Object, query("tagging"), TAGGING),
    refused("GetObjectTorrent", GET, Object, query("torrent"), TORRENT),
    refused("RenameObject", PUT, Object, query("renameObject"), DIRECTORY),
    refused("RestoreObject", POST, Object, query("restore"), RESTORE),
    refused("SelectObjectContent", POST, Object, query("select"), SELECT),
    refused("SelectObjectContent", POST, Object, query("select-type"), SELECT),
    refused("GetObjectLambda", GET, Object, query("lambdaArn"), OBJECT_LAMBDA),
];
