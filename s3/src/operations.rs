//! The one table of S3 operations: what selects each, whether it is built, which action of policies allows it, and what a
//! refusal says.
//!
//! Source: the Amazon S3 API Reference, "Actions" (general purpose buckets), as of 2026. A row that is not built
//! names the client setting or the operation that works instead. `routing.rs` reads this table and decides
//! nothing that is not written here: a subresource that occurs in any row never falls through to a plain
//! operation, whatever the method.

use crate::target::Resource::{self, Bucket, Object, Service};
use cairn_http1::Method;
use cairn_identity::policy::Action;

/// What of a request, beside method and path, selects an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selector {
    /// Nothing else: the plain operation of the resource.
    Plain,
    /// A query parameter of this name.
    Query(&'static str),
    /// A query parameter of the first name beside one of the second.
    QueryBeside(&'static str, &'static str),
    /// A query parameter of the first name beside a header of the second.
    QueryAndHeader(&'static str, &'static str),
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
    GetBucketVersioning,
    PutBucketVersioning,
    ListObjectVersions,
    GetObjectLockConfiguration,
    PutObjectLockConfiguration,
    GetObjectRetention,
    PutObjectRetention,
    GetObjectLegalHold,
    PutObjectLegalHold,
    GetBucketCors,
    PutBucketCors,
    DeleteBucketCors,
    CopyObject,
    CreateMultipartUpload,
    UploadPart,
    ListParts,
    CompleteMultipartUpload,
    AbortMultipartUpload,
    ListMultipartUploads,
}

impl Handler {
    /// Whether the operation has a use for the request's body, and checks its digests itself.
    pub(crate) const fn takes_body(self) -> bool {
        match self {
            Self::CreateBucket
            | Self::PutObject
            | Self::PutBucketVersioning
            | Self::PutObjectLockConfiguration
            | Self::PutObjectRetention
            | Self::PutObjectLegalHold
            | Self::PutBucketCors
            | Self::UploadPart
            | Self::CompleteMultipartUpload => true,
            Self::ListBuckets
            | Self::HeadBucket
            | Self::DeleteBucket
            | Self::GetBucketLocation
            | Self::ListObjectsV2
            | Self::GetObject
            | Self::HeadObject
            | Self::DeleteObject
            | Self::GetBucketVersioning
            | Self::ListObjectVersions
            | Self::GetObjectLockConfiguration
            | Self::GetObjectRetention
            | Self::GetObjectLegalHold
            | Self::GetBucketCors
            | Self::DeleteBucketCors
            | Self::CopyObject
            | Self::CreateMultipartUpload
            | Self::ListParts
            | Self::AbortMultipartUpload
            | Self::ListMultipartUploads => false,
        }
    }

    /// Whether the write may depend on what is there.
    pub(crate) const fn takes_write_condition(self) -> bool {
        matches!(
            self,
            Self::PutObject | Self::CopyObject | Self::CompleteMultipartUpload | Self::DeleteObject
        )
    }

    /// Whether `versionId` says which version of the object is meant. All others refuse it.
    pub(crate) const fn takes_version(self) -> bool {
        matches!(
            self,
            Self::GetObject
                | Self::HeadObject
                | Self::DeleteObject
                | Self::GetObjectRetention
                | Self::PutObjectRetention
                | Self::GetObjectLegalHold
                | Self::PutObjectLegalHold
        )
    }
}

/// What becomes of a request for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handling {
    /// It is carried out, for who may do this action on the bucket or object of the request. Without an action it is for
    /// everyone who is known, and decides itself what it shows.
    Built(Handler, Option<Action>),
    /// It is carried out for anyone: nobody signs it.
    Preflight,
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
        matches!(self.handling, Handling::Built(..) | Handling::Preflight)
    }
}

const ACL: &str = "ACLs are not implemented: grant access with the policies of service accounts, and leave \
                   x-amz-acl and grant headers away.";
const ANALYTICS: &str = "Analytics, inventory and metrics configurations are not implemented: use ListObjectsV2, \
                         or the management API for usage figures.";
const ATTRIBUTES: &str =
    "GetObjectAttributes is not implemented: use HeadObject with x-amz-checksum-mode: ENABLED.";
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
const NOTIFICATION: &str = "Bucket notifications are not implemented: list the bucket with ListObjectsV2 to see \
                            changes.";
const OBJECT_LAMBDA: &str = "Object Lambda is not implemented: get the object with GetObject and transform it in \
                             the client.";
const PART_COPY: &str = "UploadPartCopy is not implemented: upload the part's bytes with UploadPart (turn copies of parts \
                         off in the client).";
const POLICY: &str = "Bucket policies are not implemented: grant access with presigned URLs or with the policies of \
                      service accounts.";
const POST_FORM: &str = "POST form uploads are not implemented: use PutObject with a presigned PUT URL.";
const REPLICATION: &str = "Replication is not implemented: copy objects with a client such as rclone.";
const RESTORE: &str = "Storage tiering is not implemented: every object is readable at once with GetObject.";
const SELECT: &str = "S3 Select is not implemented: read the object, or a range of it, with GetObject.";
const SESSION: &str = "CreateSession is not implemented: sign each request with SigV4.";
const SETTINGS: &str = "This bucket setting is not implemented: use the bucket without it.";
const STS: &str = "STS and session tokens are not implemented: sign with an access key and its secret, or use \
                   presigned URLs.";
const TAGGING: &str = "Tagging is not implemented: use user metadata (x-amz-meta-*).";
const TORRENT: &str = "Torrents are not implemented: use GetObject, with ranges where needed.";
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
    action: Action,
) -> Operation {
    Operation { name, method, resource, selector, handling: Handling::Built(handler, Some(action)) }
}

/// ListBuckets: everyone sees the buckets on which something is allowed to them.
const LIST_BUCKETS: Operation = Operation {
    name: "ListBuckets",
    method: Method::GET,
    resource: Service,
    selector: Selector::Plain,
    handling: Handling::Built(Handler::ListBuckets, None),
};

const fn preflight(resource: Resource) -> Operation {
    Operation {
        name: "Preflight",
        method: Method::OPTIONS,
        resource,
        selector: Selector::Plain,
        handling: Handling::Preflight,
    }
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

const fn query(name: &'static str) -> Selector {
    Selector::Query(name)
}

use Selector::Plain;

/// All operations. Among the rows that fit a request, routing prefers those that are not built, then the order
/// here; plain rows come last. `versionId` selects nothing: it says which version an operation means.
#[rustfmt::skip]
pub(crate) static OPERATIONS: &[Operation] = &[
    // What is built.
    LIST_BUCKETS,
    built("CreateBucket", PUT, Bucket, Plain, Handler::CreateBucket, Action::ManageBucket),
    built("HeadBucket", HEAD, Bucket, Plain, Handler::HeadBucket, Action::ListBucket),
    built("DeleteBucket", DELETE, Bucket, Plain, Handler::DeleteBucket, Action::ManageBucket),
    built("GetBucketLocation", GET, Bucket, query("location"), Handler::GetBucketLocation, Action::ListBucket),
    built("ListObjectsV2", GET, Bucket, Selector::QueryValue("list-type", "2"), Handler::ListObjectsV2, Action::ListBucket),
    built("PutObject", PUT, Object, Plain, Handler::PutObject, Action::PutObject),
    built("GetBucketVersioning", GET, Bucket, query("versioning"), Handler::GetBucketVersioning, Action::ManageBucket),
    built("PutBucketVersioning", PUT, Bucket, query("versioning"), Handler::PutBucketVersioning, Action::ManageBucket),
    built("ListObjectVersions", GET, Bucket, query("versions"), Handler::ListObjectVersions, Action::ListBucket),
    built("GetObjectLockConfiguration", GET, Bucket, query("object-lock"), Handler::GetObjectLockConfiguration, Action::ManageBucket),
    built("PutObjectLockConfiguration", PUT, Bucket, query("object-lock"), Handler::PutObjectLockConfiguration, Action::ManageBucket),
    built("GetBucketCors", GET, Bucket, query("cors"), Handler::GetBucketCors, Action::ManageBucket),
    built("PutBucketCors", PUT, Bucket, query("cors"), Handler::PutBucketCors, Action::ManageBucket),
    built("DeleteBucketCors", DELETE, Bucket, query("cors"), Handler::DeleteBucketCors, Action::ManageBucket),
    built("GetObjectRetention", GET, Object, query("retention"), Handler::GetObjectRetention, Action::GetObject),
    built("PutObjectRetention", PUT, Object, query("retention"), Handler::PutObjectRetention, Action::PutObject),
    built("GetObjectLegalHold", GET, Object, query("legal-hold"), Handler::GetObjectLegalHold, Action::GetObject),
    built("PutObjectLegalHold", PUT, Object, query("legal-hold"), Handler::PutObjectLegalHold, Action::PutObject),
    built("CopyObject", PUT, Object, Selector::Header("x-amz-copy-source"), Handler::CopyObject, Action::PutObject),
    built("CreateMultipartUpload", POST, Object, query("uploads"), Handler::CreateMultipartUpload, Action::PutObject),
    built("UploadPart", PUT, Object, query("uploadId"), Handler::UploadPart, Action::PutObject),
    built("UploadPart", PUT, Object, query("partNumber"), Handler::UploadPart, Action::PutObject),
    built("ListParts", GET, Object, query("uploadId"), Handler::ListParts, Action::GetObject),
    built("CompleteMultipartUpload", POST, Object, query("uploadId"), Handler::CompleteMultipartUpload, Action::PutObject),
    built("AbortMultipartUpload", DELETE, Object, query("uploadId"), Handler::AbortMultipartUpload, Action::DeleteObject),
    built("ListMultipartUploads", GET, Bucket, query("uploads"), Handler::ListMultipartUploads, Action::ListBucket),
    built("GetObject", GET, Object, query("partNumber"), Handler::GetObject, Action::GetObject),
    built("GetObject", GET, Object, Plain, Handler::GetObject, Action::GetObject),
    built("HeadObject", HEAD, Object, query("partNumber"), Handler::HeadObject, Action::GetObject),
    built("HeadObject", HEAD, Object, Plain, Handler::HeadObject, Action::GetObject),
    built("DeleteObject", DELETE, Object, Plain, Handler::DeleteObject, Action::DeleteObject),
    preflight(Service),
    preflight(Bucket),
    preflight(Object),

    // The service.
    refused("AssumeRole", POST, Service, Plain, STS),
    refused("ListDirectoryBuckets", GET, Service, query("max-directory-buckets"), DIRECTORY),

    // Buckets.
    refused("ListObjects", GET, Bucket, Plain, LIST_V1),
    refused("PostObject", POST, Bucket, Plain, POST_FORM),
    refused("DeleteObjects", POST, Bucket, query("delete"), DELETE_OBJECTS),
    refused("GetBucketAbac", GET, Bucket, query("abac"), POLICY),
    refused("PutBucketAbac", PUT, Bucket, query("abac"), POLICY),
    refused("GetBucketAccelerateConfiguration", GET, Bucket, query("accelerate"), SETTINGS),
    refused("PutBucketAccelerateConfiguration", PUT, Bucket, query("accelerate"), SETTINGS),
    refused("GetBucketAcl", GET, Bucket, query("acl"), ACL),
    refused("PutBucketAcl", PUT, Bucket, query("acl"), ACL),
    refused("GetBucketAnalyticsConfiguration", GET, Bucket, Selector::QueryBeside("analytics", "id"), ANALYTICS),
    refused("ListBucketAnalyticsConfigurations", GET, Bucket, query("analytics"), ANALYTICS),
    refused("PutBucketAnalyticsConfiguration", PUT, Bucket, query("analytics"), ANALYTICS),
    refused("DeleteBucketAnalyticsConfiguration", DELETE, Bucket, query("analytics"), ANALYTICS),
    refused("GetBucketEncryption", GET, Bucket, query("encryption"), ENCRYPTION),
    refused("PutBucketEncryption", PUT, Bucket, query("encryption"), ENCRYPTION),
    refused("DeleteBucketEncryption", DELETE, Bucket, query("encryption"), ENCRYPTION),
    refused("GetBucketIntelligentTieringConfiguration", GET, Bucket, Selector::QueryBeside("intelligent-tiering", "id"), RESTORE),
    refused("ListBucketIntelligentTieringConfigurations", GET, Bucket, query("intelligent-tiering"), RESTORE),
    refused("PutBucketIntelligentTieringConfiguration", PUT, Bucket, query("intelligent-tiering"), RESTORE),
    refused("DeleteBucketIntelligentTieringConfiguration", DELETE, Bucket, query("intelligent-tiering"), RESTORE),
    refused("GetBucketInventoryConfiguration", GET, Bucket, Selector::QueryBeside("inventory", "id"), ANALYTICS),
    refused("ListBucketInventoryConfigurations", GET, Bucket, query("inventory"), ANALYTICS),
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
    refused("GetBucketMetricsConfiguration", GET, Bucket, Selector::QueryBeside("metrics", "id"), ANALYTICS),
    refused("ListBucketMetricsConfigurations", GET, Bucket, query("metrics"), ANALYTICS),
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
    refused("AppendObject", PUT, Object, Selector::Header("x-amz-write-offset-bytes"), DIRECTORY),
    refused("UploadPartCopy", PUT, Object, Selector::QueryAndHeader("uploadId", "x-amz-copy-source"), PART_COPY),
    refused("GetObjectAcl", GET, Object, query("acl"), ACL),
    refused("PutObjectAcl", PUT, Object, query("acl"), ACL),
    refused("GetObjectAttributes", GET, Object, query("attributes"), ATTRIBUTES),
    refused("UpdateObjectEncryption", PUT, Object, query("encryption"), ENCRYPTION),
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

/// What this server does with one operation of S3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationSummary {
    /// The name in the API Reference.
    pub name: &'static str,
    /// The method of its requests.
    pub method: Method,
    /// The form of their paths.
    pub path: &'static str,
    /// The query parameters that select it, with their values.
    pub query: Vec<(&'static str, &'static str)>,
    /// The header that selects it.
    pub header: Option<&'static str>,
    /// Whether it is carried out; if not, it answers 501 and changes nothing.
    pub is_built: bool,
    /// What of policies allows it.
    pub action: Option<Action>,
}

/// All operations of S3 that are told apart, in the order of the table.
pub fn operations() -> impl Iterator<Item = OperationSummary> {
    OPERATIONS.iter().map(|row| {
        let (query, header) = match row.selector {
            Selector::Plain => (vec![], None),
            Selector::Query(name) => (vec![(name, "")], None),
            Selector::QueryBeside(name, beside) => (vec![(name, ""), (beside, "")], None),
            Selector::QueryValue(name, value) => (vec![(name, value)], None),
            Selector::QueryAndHeader(name, header) => (vec![(name, "")], Some(header)),
            Selector::Header(name) => (vec![], Some(name)),
        };
        let Operation { name, ref method, resource, .. } = *row;
        let path = resource.pattern();
        let action = match row.handling {
            Handling::Built(_, action) => action,
            Handling::Preflight | Handling::NotBuilt(_) => None,
        };
        OperationSummary {
            name,
            method: method.clone(),
            path,
            query,
            header,
            is_built: row.is_built(),
            action,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::OPERATIONS;

    /// The actions on general purpose buckets in the API Reference. Left out are those whose requests are the same as those
    /// of their successors: Get- and PutBucketLifecycle, Get- and PutBucketNotification.
    const ACTIONS: &str = "AbortMultipartUpload CompleteMultipartUpload CopyObject CreateBucket \
        CreateBucketMetadataConfiguration CreateBucketMetadataTableConfiguration CreateMultipartUpload CreateSession \
        DeleteBucket DeleteBucketAnalyticsConfiguration DeleteBucketCors DeleteBucketEncryption \
        DeleteBucketIntelligentTieringConfiguration DeleteBucketInventoryConfiguration DeleteBucketLifecycle \
        DeleteBucketMetadataConfiguration DeleteBucketMetadataTableConfiguration DeleteBucketMetricsConfiguration \
        DeleteBucketOwnershipControls DeleteBucketPolicy DeleteBucketReplication DeleteBucketTagging DeleteBucketWebsite \
        DeleteObject DeleteObjects DeleteObjectTagging DeletePublicAccessBlock GetBucketAbac \
        GetBucketAccelerateConfiguration GetBucketAcl GetBucketAnalyticsConfiguration GetBucketCors GetBucketEncryption \
        GetBucketIntelligentTieringConfiguration GetBucketInventoryConfiguration GetBucketLifecycleConfiguration \
        GetBucketLocation GetBucketLogging GetBucketMetadataConfiguration GetBucketMetadataTableConfiguration \
        GetBucketMetricsConfiguration GetBucketNotificationConfiguration GetBucketOwnershipControls GetBucketPolicy \
        GetBucketPolicyStatus GetBucketReplication GetBucketRequestPayment GetBucketTagging GetBucketVersioning \
        GetBucketWebsite GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectLockConfiguration \
        GetObjectRetention GetObjectTagging GetObjectTorrent GetPublicAccessBlock HeadBucket HeadObject \
        ListBucketAnalyticsConfigurations ListBucketIntelligentTieringConfigurations ListBucketInventoryConfigurations \
        ListBucketMetricsConfigurations ListBuckets ListDirectoryBuckets ListMultipartUploads ListObjects ListObjectsV2 \
        ListObjectVersions ListParts PutBucketAbac PutBucketAccelerateConfiguration PutBucketAcl \
        PutBucketAnalyticsConfiguration PutBucketCors PutBucketEncryption PutBucketIntelligentTieringConfiguration \
        PutBucketInventoryConfiguration PutBucketLifecycleConfiguration PutBucketLogging PutBucketMetricsConfiguration \
        PutBucketNotificationConfiguration PutBucketOwnershipControls PutBucketPolicy PutBucketReplication \
        PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutObject PutObjectAcl \
        PutObjectLegalHold PutObjectLockConfiguration PutObjectRetention PutObjectTagging PutPublicAccessBlock \
        RenameObject RestoreObject SelectObjectContent UpdateBucketMetadataInventoryTableConfiguration \
        UpdateBucketMetadataJournalTableConfiguration UpdateObjectEncryption UploadPart UploadPartCopy \
        WriteGetObjectResponse";

    /// ListBucketAnalyticsConfigurations and its like, ListDirectoryBuckets and UploadPartCopy had no row of their own.
    #[test]
    fn every_action_of_the_api_reference_has_a_row() {
        for action in ACTIONS.split_whitespace() {
            assert!(OPERATIONS.iter().any(|row| row.name == action), "{action}");
        }
    }
}
