//! The table of S3 operations. A row holds everything about an operation.
//!
//! Source: the Amazon S3 API Reference, "Actions" (general purpose buckets), as of 2026. A row that is not implemented
//! names the client setting or the operation that works instead. There is one table for each mode of compatibility; they
//! differ in the operations that only the mode `extended` implements. `routing.rs` reads these tables: a
//! request that names a subresource of any row is never routed to a plain operation, whatever its method. It adds one rule,
//! for changes whose query names a subresource of no row.

use crate::access::recording::Effect;
use crate::call::Call;
use crate::compatibility::Compatibility;
use crate::errors::S3Result;
use crate::ops::{
    abort_multipart_upload, complete_multipart_upload, copy_object, create_bucket, create_multipart_upload,
    delete_bucket, delete_bucket_cors, delete_bucket_encryption, delete_bucket_lifecycle,
    delete_bucket_ownership_controls, delete_bucket_policy, delete_bucket_tagging, delete_object,
    delete_object_tagging, delete_objects, delete_public_access_block, get_bucket_accelerate_configuration,
    get_bucket_acl, get_bucket_cors, get_bucket_encryption, get_bucket_lifecycle_configuration,
    get_bucket_location, get_bucket_logging, get_bucket_notification_configuration,
    get_bucket_ownership_controls, get_bucket_policy, get_bucket_policy_status, get_bucket_replication,
    get_bucket_request_payment, get_bucket_tagging, get_bucket_versioning, get_bucket_website, get_object,
    get_object_acl, get_object_attributes, get_object_legal_hold, get_object_lock_configuration,
    get_object_retention, get_object_tagging, get_public_access_block, head_bucket, head_object,
    list_buckets, list_multipart_uploads, list_object_versions, list_objects, list_objects_v2, list_parts,
    post_object, put_bucket_acl, put_bucket_cors, put_bucket_encryption, put_bucket_lifecycle_configuration,
    put_bucket_ownership_controls, put_bucket_policy, put_bucket_tagging, put_bucket_versioning, put_object,
    put_object_acl, put_object_legal_hold, put_object_lock_configuration, put_object_retention,
    put_object_tagging, put_public_access_block, upload_part, upload_part_copy,
};
use crate::reply::Reply;
use crate::request::target::Resource;
use cairn_http1::Method;
use cairn_identity::policy::Action;
use cairn_net::RequestBody;

/// The selector of an operation, in addition to method and resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Selector {
    /// Nothing: the plain operation of the resource.
    Plain,
    /// A query parameter of this name.
    Query(&'static str),
    /// Query parameters of both names.
    QueryBoth(&'static str, &'static str),
    /// A query parameter of the first name and a header of the second.
    QueryAndHeader(&'static str, &'static str),
    /// A query parameter of this name with this value.
    QueryValue(&'static str, &'static str),
    /// A header of this name, or the equivalent `x-amz-*` query parameter.
    Header(&'static str),
}

/// Parts of a request that only some operations accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// The body. The handler reads it and checks its digests. Bodies of other operations are only compared with the
    /// digest in the signature.
    Body,
    /// A body with `aws-chunked` framing, in the mode `extended`.
    ChunkedBody,
    /// `versionId`, which says which version of the object is meant.
    Version,
    /// Conditions that make the write depend on the stored object.
    WriteCondition,
    /// The content of a new object, or of a part of one.
    NewObject,
    /// No signature, where a rule of public access allows it.
    Public,
    /// `x-amz-copy-source` and the headers whose names begin so.
    CopySource,
    /// `x-amz-copy-source-range`.
    CopyRange,
    /// `x-amz-checksum-type` with a value other than `FULL_OBJECT`.
    ChecksumType,
    /// The object lock of the new version: mode, date and legal hold.
    ObjectLock,
    /// `x-amz-bypass-governance-retention`.
    GovernanceBypass,
    /// `x-amz-bucket-object-lock-enabled`.
    BucketLock,
    /// `x-amz-server-side-encryption`. Completions accept it because minio-go repeats it there, except towards AWS, which
    /// refuses it.
    Encryption,
}

/// The handling of a request for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handling {
    /// It is carried out.
    Implemented(Implementation),
    /// A CORS preflight: it is answered without authentication, because browsers do not sign it.
    Preflight,
    /// It is answered with 501 and this message, and changes nothing.
    NotImplemented(&'static str),
}

/// The implementation of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Implementation {
    pub(crate) handler: Handler,
    /// The action that policies must allow on the request's bucket or object. `None`: every authenticated principal may
    /// call the operation, and the handler decides what to show.
    pub(crate) action: Option<Action>,
    inputs: &'static [Input],
}

impl Implementation {
    /// Returns whether the operation accepts this part of a request.
    pub(crate) fn accepts(self, input: Input) -> bool {
        self.inputs.contains(&input)
    }
}

/// One row: an operation of S3, or one of several ways to select it.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The name in the API Reference. A refusal contains it.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) resource: Resource,
    pub(crate) selector: Selector,
    pub(crate) handling: Handling,
}

impl Operation {
    /// Returns the effect of the operation, for the audit trail. Methods other than GET and HEAD change something.
    pub(crate) fn effect(&self) -> Effect {
        if let Handling::Implemented(Implementation { handler, .. }) = self.handling {
            match handler {
                Handler::DeleteObjects => return Effect::NamedObjectChanges,
                // The request's path names the bucket, and the form the object.
                Handler::PostObject => return Effect::ObjectChange,
                _ => {}
            }
        }
        match (&self.method, self.resource) {
            (&(Method::GET | Method::HEAD), _) => Effect::Read,
            (_, Resource::Object) => Effect::ObjectChange,
            (_, Resource::Bucket | Resource::Service) => Effect::BucketChange,
        }
    }

    /// Returns whether the operation is carried out.
    pub(crate) fn is_implemented(&self) -> bool {
        matches!(self.handling, Handling::Implemented(_) | Handling::Preflight)
    }
}

/// Defines the tables and [`Handler`] from three lists: the implemented operations, those that only the mode `extended`
/// implements, and all others. A row of the second list ends with the message of the mode `strict`.
///
/// A handler is called from a generated `match` and not through a function pointer: the futures of async handlers then
/// need no allocation.
macro_rules! operations {
    (
        implemented(|$call:ident, $body:ident|) { $(
            $name:ident: $method:ident $resource:ident [$($selector:expr),+], $action:expr
                => $answer:expr $(, accepts $($input:ident)+)?;
        )+ }
        extended { $(
            $added:ident: $added_method:ident $added_resource:ident [$added_selector:expr], $added_action:expr
                => $added_answer:expr $(, accepts $($added_input:ident)+)?, strict $added_message:expr;
        )+ }
        not_implemented { $(
            $other:ident: $other_method:ident $other_resource:ident [$other_selector:expr] => $message:expr;
        )+ }
    ) => {
        /// The handler of one implemented operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Handler { $( $name, )+ $( $added, )+ }

        impl Handler {
            /// Carries out the operation.
            ///
            /// # Errors
            /// Those of the operation. Nothing has been changed then.
            pub(crate) async fn answer(self, $call: &Call<'_>, $body: &mut RequestBody<'_>) -> S3Result<Reply> {
                match self {
                    $( Self::$name => $answer, )+
                    $( Self::$added => $added_answer, )+
                }
            }

            const fn inputs(self) -> &'static [Input] {
                match self {
                    $( Self::$name => &[$( $( Input::$input ),+ )?], )+
                    $( Self::$added => &[$( $( Input::$added_input ),+ )?], )+
                }
            }
        }

        operations! { @table STRICT:
            $( $( $name $method $resource ($selector) (implemented(Handler::$name, $action)); )+ )+
            $( $added $added_method $added_resource ($added_selector) (Handling::NotImplemented($added_message)); )+
            $( $other $other_method $other_resource ($other_selector) (Handling::NotImplemented($message)); )+
        }
        operations! { @table EXTENDED:
            $( $added $added_method $added_resource ($added_selector) (implemented(Handler::$added, $added_action)); )+
            $( $( $name $method $resource ($selector) (implemented(Handler::$name, $action)); )+ )+
            $( $other $other_method $other_resource ($other_selector) (Handling::NotImplemented($message)); )+
        }
    };
    (@table $table:ident: $( $name:ident $method:ident $resource:ident $selector:tt $handling:tt; )+) => {
        static $table: &[Operation] = &[
            $( Operation {
                name: stringify!($name),
                method: Method::$method,
                resource: Resource::$resource,
                selector: $selector,
                handling: $handling,
            }, )+
            preflight(Resource::Service),
            preflight(Resource::Bucket),
            preflight(Resource::Object),
        ];
    };
}

const fn implemented(handler: Handler, action: Option<Action>) -> Handling {
    Handling::Implemented(Implementation { handler, action, inputs: handler.inputs() })
}

impl Compatibility {
    /// All operations in this mode. Among the rows that match a request, routing prefers those that are not implemented,
    /// then the first one; plain rows come last.
    pub(crate) fn operations(self) -> &'static [Operation] {
        match self {
            Self::Strict => STRICT,
            Self::Extended => EXTENDED,
        }
    }
}

const ACL: &str = "ACLs are not implemented: grant access with the policies of service accounts, and omit \
                   x-amz-acl and grant headers.";
const ANALYTICS: &str = "Analytics, inventory and metrics configurations are not implemented: use ListObjectsV2, \
                         or the management API for usage figures.";
const ATTRIBUTES: &str =
    "GetObjectAttributes is not implemented: use HeadObject with x-amz-checksum-mode: ENABLED.";
const DELETE_OBJECTS: &str = "DeleteObjects is not implemented: delete each key with DeleteObject (turn off batch or \
                              multi deletes in the client).";
const DIRECTORY: &str = "Directory buckets are not implemented: use general purpose buckets, and PutObject with the \
                         complete content.";
const ENCRYPTION: &str = "Bucket and request settings of server-side encryption are not implemented: encryption at \
                          rest is a setting of the whole server.";
const LIFECYCLE: &str = "Lifecycle configuration through S3 is not implemented: set rules through the \
                         management API (cairn lifecycle create).";
const LIST_V1: &str = "ListObjects (version 1) is not implemented: use ListObjectsV2 (list-type=2; set \
                       list_version = 2 or similar in the client).";
const NOTIFICATION: &str = "Bucket notifications are not implemented: webhooks of the management API deliver the same \
                            events (cairn webhook create), and GET /api/v1/events lists them.";
const OBJECT_LAMBDA: &str = "Object Lambda is not implemented: get the object with GetObject and transform it in \
                             the client.";
const PART_COPY: &str = "UploadPartCopy is not implemented: upload the part's bytes with UploadPart (turn off copies of \
                         parts in the client).";
const POLICY: &str = "Bucket policies are not implemented: make objects public through the management API (cairn public \
                      set), or grant access with presigned URLs or with the policies of service accounts.";
const POST_FORM: &str = "POST form uploads are not implemented: use PutObject with a presigned PUT URL.";
const REPLICATION: &str = "Replication is not implemented: copy objects with a client such as rclone.";
const RESTORE: &str =
    "Storage tiering is not implemented: every object can be read immediately with GetObject.";
const SELECT: &str = "S3 Select is not implemented: read the object, or a range of it, with GetObject.";
const SESSION: &str = "CreateSession is not implemented: sign each request with SigV4.";
const SETTINGS: &str = "This bucket setting is not implemented: use the bucket without it.";
const STS: &str = "STS and session tokens are not implemented: sign with an access key and its secret, or use \
                   presigned URLs.";
const ANNOTATIONS: &str = "Annotations are not implemented: use user metadata (x-amz-meta-*).";
const BUCKET_TAGGING: &str =
    "Tagging through S3 is not implemented: tag the bucket through the management API (cairn bucket tags).";
const TAGGING: &str = "Tagging is not implemented: use user metadata (x-amz-meta-*).";
const TORRENT: &str = "Torrents are not implemented: use GetObject, with ranges where needed.";
const WEBSITE: &str =
    "Website hosting is not implemented: put a web server or proxy in front and use GetObject.";
/// For a subresource without a row for the method and resource of the request.
pub(crate) const OTHER_SUBRESOURCE: &str =
    "The request names a subresource that is not implemented: omit it from the query.";

const fn preflight(resource: Resource) -> Operation {
    let (method, selector) = (Method::OPTIONS, Selector::Plain);
    Operation { name: "Preflight", method, resource, selector, handling: Handling::Preflight }
}

use Selector::{Header, Plain, QueryAndHeader, QueryBoth, QueryValue};

const EVERYONE: Option<Action> = None;
/// The operation authorizes each key of its document.
const OF_EACH_KEY: Option<Action> = None;
/// `service/form.rs` requires `s3:PutObject` on the key that the form names.
const OF_FORM_KEY: Option<Action> = None;
const LIST_BUCKET: Option<Action> = Some(Action::ListBucket);
const GET_OBJECT: Option<Action> = Some(Action::GetObject);
const PUT_OBJECT: Option<Action> = Some(Action::PutObject);
const DELETE_OBJECT: Option<Action> = Some(Action::DeleteObject);
const MANAGE_BUCKET: Option<Action> = Some(Action::ManageBucket);

const fn query(name: &'static str) -> Selector {
    Selector::Query(name)
}

operations! {
    // Operation: method, resource and selectors, action that policies must allow => handler, inputs that it accepts.
    implemented(|call, body|) {
        // The service.
        ListBuckets: GET Service [Plain], EVERYONE => list_buckets(call);

        // Buckets.
        CreateBucket: PUT Bucket [Plain], MANAGE_BUCKET => create_bucket(call, body).await, accepts Body BucketLock;
        HeadBucket: HEAD Bucket [Plain], LIST_BUCKET => head_bucket(call);
        DeleteBucket: DELETE Bucket [Plain], MANAGE_BUCKET => delete_bucket(call).await;
        GetBucketLocation: GET Bucket [query("location")], LIST_BUCKET => get_bucket_location(call);
        ListObjectsV2: GET Bucket [QueryValue("list-type", "2")], LIST_BUCKET => list_objects_v2(call), accepts Public;
        GetBucketVersioning: GET Bucket [query("versioning")], MANAGE_BUCKET => get_bucket_versioning(call);
        PutBucketVersioning: PUT Bucket [query("versioning")], MANAGE_BUCKET => put_bucket_versioning(call, body).await, accepts Body;
        ListObjectVersions: GET Bucket [query("versions")], LIST_BUCKET => list_object_versions(call);
        GetObjectLockConfiguration: GET Bucket [query("object-lock")], MANAGE_BUCKET => get_object_lock_configuration(call);
        PutObjectLockConfiguration: PUT Bucket [query("object-lock")], MANAGE_BUCKET => put_object_lock_configuration(call, body).await, accepts Body;
        GetBucketCors: GET Bucket [query("cors")], MANAGE_BUCKET => get_bucket_cors(call);
        PutBucketCors: PUT Bucket [query("cors")], MANAGE_BUCKET => put_bucket_cors(call, body).await, accepts Body;
        DeleteBucketCors: DELETE Bucket [query("cors")], MANAGE_BUCKET => delete_bucket_cors(call).await;
        ListMultipartUploads: GET Bucket [query("uploads")], LIST_BUCKET => list_multipart_uploads(call).await;

        // Objects.
        PutObject: PUT Object [Plain], PUT_OBJECT => put_object(call, body).await, accepts NewObject Body ChunkedBody WriteCondition ObjectLock Encryption;
        GetObjectRetention: GET Object [query("retention")], GET_OBJECT => get_object_retention(call), accepts Version;
        PutObjectRetention: PUT Object [query("retention")], PUT_OBJECT => put_object_retention(call, body).await, accepts Body Version GovernanceBypass;
        GetObjectLegalHold: GET Object [query("legal-hold")], GET_OBJECT => get_object_legal_hold(call), accepts Version;
        PutObjectLegalHold: PUT Object [query("legal-hold")], PUT_OBJECT => put_object_legal_hold(call, body).await, accepts Body Version;
        CopyObject: PUT Object [Header("x-amz-copy-source")], PUT_OBJECT => copy_object(call, body).await, accepts NewObject WriteCondition CopySource ObjectLock Encryption;
        CreateMultipartUpload: POST Object [query("uploads")], PUT_OBJECT => create_multipart_upload(call).await, accepts NewObject ChecksumType ObjectLock Encryption;
        UploadPart: PUT Object [query("uploadId"), query("partNumber")], PUT_OBJECT => upload_part(call, body).await, accepts NewObject Body ChunkedBody;
        ListParts: GET Object [query("uploadId")], GET_OBJECT => list_parts(call);
        CompleteMultipartUpload: POST Object [query("uploadId")], PUT_OBJECT => complete_multipart_upload(call, body).await, accepts NewObject Body WriteCondition ChecksumType Encryption;
        AbortMultipartUpload: DELETE Object [query("uploadId")], DELETE_OBJECT => abort_multipart_upload(call).await;
        GetObject: GET Object [query("partNumber"), Plain], GET_OBJECT => get_object(call).await, accepts Version Public;
        HeadObject: HEAD Object [query("partNumber"), Plain], GET_OBJECT => head_object(call), accepts Version Public;
        DeleteObject: DELETE Object [Plain], DELETE_OBJECT => delete_object(call).await, accepts Version WriteCondition GovernanceBypass;
    }
    // The same, and what the client is told in the mode `strict`. More specific selectors than those of implemented rows
    // are preferred.
    extended {
        ListObjects: GET Bucket [Plain], LIST_BUCKET => list_objects(call), accepts Public, strict LIST_V1;
        GetBucketTagging: GET Bucket [query("tagging")], MANAGE_BUCKET => get_bucket_tagging(call), strict BUCKET_TAGGING;
        PutBucketTagging: PUT Bucket [query("tagging")], MANAGE_BUCKET => put_bucket_tagging(call, body).await, accepts Body, strict BUCKET_TAGGING;
        DeleteBucketTagging: DELETE Bucket [query("tagging")], MANAGE_BUCKET => delete_bucket_tagging(call).await, strict BUCKET_TAGGING;
        GetObjectTagging: GET Object [query("tagging")], GET_OBJECT => get_object_tagging(call), accepts Version, strict TAGGING;
        PutObjectTagging: PUT Object [query("tagging")], PUT_OBJECT => put_object_tagging(call, body).await, accepts Body Version, strict TAGGING;
        DeleteObjectTagging: DELETE Object [query("tagging")], PUT_OBJECT => delete_object_tagging(call).await, accepts Version, strict TAGGING;
        PostObject: POST Bucket [Plain], OF_FORM_KEY => post_object(call, body).await, accepts NewObject Body WriteCondition ObjectLock Encryption, strict POST_FORM;
        DeleteObjects: POST Bucket [query("delete")], OF_EACH_KEY => delete_objects(call, body).await, accepts Body GovernanceBypass, strict DELETE_OBJECTS;
        GetBucketAccelerateConfiguration: GET Bucket [query("accelerate")], MANAGE_BUCKET => get_bucket_accelerate_configuration(call), strict SETTINGS;
        GetBucketAcl: GET Bucket [query("acl")], MANAGE_BUCKET => get_bucket_acl(call), strict ACL;
        PutBucketAcl: PUT Bucket [query("acl")], MANAGE_BUCKET => put_bucket_acl(call, body).await, accepts Body, strict ACL;
        GetBucketEncryption: GET Bucket [query("encryption")], MANAGE_BUCKET => get_bucket_encryption(call), strict ENCRYPTION;
        PutBucketEncryption: PUT Bucket [query("encryption")], MANAGE_BUCKET => put_bucket_encryption(call, body).await, accepts Body, strict ENCRYPTION;
        DeleteBucketEncryption: DELETE Bucket [query("encryption")], MANAGE_BUCKET => delete_bucket_encryption(call).await, strict ENCRYPTION;
        GetBucketLifecycleConfiguration: GET Bucket [query("lifecycle")], MANAGE_BUCKET => get_bucket_lifecycle_configuration(call), strict LIFECYCLE;
        PutBucketLifecycleConfiguration: PUT Bucket [query("lifecycle")], MANAGE_BUCKET => put_bucket_lifecycle_configuration(call, body).await, accepts Body, strict LIFECYCLE;
        DeleteBucketLifecycle: DELETE Bucket [query("lifecycle")], MANAGE_BUCKET => delete_bucket_lifecycle(call).await, strict LIFECYCLE;
        GetBucketLogging: GET Bucket [query("logging")], MANAGE_BUCKET => get_bucket_logging(call), strict SETTINGS;
        GetBucketNotificationConfiguration: GET Bucket [query("notification")], MANAGE_BUCKET => get_bucket_notification_configuration(call), strict NOTIFICATION;
        GetBucketOwnershipControls: GET Bucket [query("ownershipControls")], MANAGE_BUCKET => get_bucket_ownership_controls(call), strict ACL;
        PutBucketOwnershipControls: PUT Bucket [query("ownershipControls")], MANAGE_BUCKET => put_bucket_ownership_controls(call, body).await, accepts Body, strict ACL;
        DeleteBucketOwnershipControls: DELETE Bucket [query("ownershipControls")], MANAGE_BUCKET => delete_bucket_ownership_controls(call), strict ACL;
        GetBucketPolicy: GET Bucket [query("policy")], MANAGE_BUCKET => get_bucket_policy(call), strict POLICY;
        PutBucketPolicy: PUT Bucket [query("policy")], MANAGE_BUCKET => put_bucket_policy(call, body).await, accepts Body, strict POLICY;
        DeleteBucketPolicy: DELETE Bucket [query("policy")], MANAGE_BUCKET => delete_bucket_policy(call).await, strict POLICY;
        GetBucketPolicyStatus: GET Bucket [query("policyStatus")], MANAGE_BUCKET => get_bucket_policy_status(call), strict POLICY;
        GetBucketReplication: GET Bucket [query("replication")], MANAGE_BUCKET => get_bucket_replication(call), strict REPLICATION;
        GetBucketRequestPayment: GET Bucket [query("requestPayment")], MANAGE_BUCKET => get_bucket_request_payment(call), strict SETTINGS;
        GetBucketWebsite: GET Bucket [query("website")], MANAGE_BUCKET => get_bucket_website(call), strict WEBSITE;
        GetPublicAccessBlock: GET Bucket [query("publicAccessBlock")], MANAGE_BUCKET => get_public_access_block(call), strict POLICY;
        PutPublicAccessBlock: PUT Bucket [query("publicAccessBlock")], MANAGE_BUCKET => put_public_access_block(call, body).await, accepts Body, strict POLICY;
        DeletePublicAccessBlock: DELETE Bucket [query("publicAccessBlock")], MANAGE_BUCKET => delete_public_access_block(call).await, strict POLICY;
        GetObjectAcl: GET Object [query("acl")], GET_OBJECT => get_object_acl(call), accepts Version, strict ACL;
        PutObjectAcl: PUT Object [query("acl")], PUT_OBJECT => put_object_acl(call, body).await, accepts Body Version, strict ACL;
        GetObjectAttributes: GET Object [query("attributes")], GET_OBJECT => get_object_attributes(call), accepts Version, strict ATTRIBUTES;
        UploadPartCopy: PUT Object [QueryAndHeader("uploadId", "x-amz-copy-source")], PUT_OBJECT => upload_part_copy(call, body).await, accepts NewObject CopySource CopyRange, strict PART_COPY;
    }
    // Operation: method, resource and selectors => what the client is told.
    not_implemented {
        // The service.
        AssumeRole: POST Service [Plain] => STS;
        ListDirectoryBuckets: GET Service [query("max-directory-buckets")] => DIRECTORY;

        // Buckets.
        GetBucketAbac: GET Bucket [query("abac")] => POLICY;
        PutBucketAbac: PUT Bucket [query("abac")] => POLICY;
        PutBucketAccelerateConfiguration: PUT Bucket [query("accelerate")] => SETTINGS;
        GetBucketAnalyticsConfiguration: GET Bucket [QueryBoth("analytics", "id")] => ANALYTICS;
        ListBucketAnalyticsConfigurations: GET Bucket [query("analytics")] => ANALYTICS;
        PutBucketAnalyticsConfiguration: PUT Bucket [query("analytics")] => ANALYTICS;
        DeleteBucketAnalyticsConfiguration: DELETE Bucket [query("analytics")] => ANALYTICS;
        GetBucketIntelligentTieringConfiguration: GET Bucket [QueryBoth("intelligent-tiering", "id")] => RESTORE;
        ListBucketIntelligentTieringConfigurations: GET Bucket [query("intelligent-tiering")] => RESTORE;
        PutBucketIntelligentTieringConfiguration: PUT Bucket [query("intelligent-tiering")] => RESTORE;
        DeleteBucketIntelligentTieringConfiguration: DELETE Bucket [query("intelligent-tiering")] => RESTORE;
        GetBucketInventoryConfiguration: GET Bucket [QueryBoth("inventory", "id")] => ANALYTICS;
        ListBucketInventoryConfigurations: GET Bucket [query("inventory")] => ANALYTICS;
        PutBucketInventoryConfiguration: PUT Bucket [query("inventory")] => ANALYTICS;
        DeleteBucketInventoryConfiguration: DELETE Bucket [query("inventory")] => ANALYTICS;
        PutBucketLogging: PUT Bucket [query("logging")] => SETTINGS;
        GetBucketMetadataConfiguration: GET Bucket [query("metadataConfiguration")] => ANALYTICS;
        CreateBucketMetadataConfiguration: POST Bucket [query("metadataConfiguration")] => ANALYTICS;
        DeleteBucketMetadataConfiguration: DELETE Bucket [query("metadataConfiguration")] => ANALYTICS;
        GetBucketMetadataTableConfiguration: GET Bucket [query("metadataTable")] => ANALYTICS;
        CreateBucketMetadataTableConfiguration: POST Bucket [query("metadataTable")] => ANALYTICS;
        DeleteBucketMetadataTableConfiguration: DELETE Bucket [query("metadataTable")] => ANALYTICS;
        UpdateBucketMetadataAnnotationTableConfiguration: PUT Bucket [query("metadataAnnotationTable")] => ANALYTICS;
        UpdateBucketMetadataInventoryTableConfiguration: PUT Bucket [query("metadataInventoryTable")] => ANALYTICS;
        UpdateBucketMetadataJournalTableConfiguration: PUT Bucket [query("metadataJournalTable")] => ANALYTICS;
        GetBucketMetricsConfiguration: GET Bucket [QueryBoth("metrics", "id")] => ANALYTICS;
        ListBucketMetricsConfigurations: GET Bucket [query("metrics")] => ANALYTICS;
        PutBucketMetricsConfiguration: PUT Bucket [query("metrics")] => ANALYTICS;
        DeleteBucketMetricsConfiguration: DELETE Bucket [query("metrics")] => ANALYTICS;
        PutBucketNotificationConfiguration: PUT Bucket [query("notification")] => NOTIFICATION;
        ListenNotification: GET Bucket [query("events")] => NOTIFICATION;
        PutBucketReplication: PUT Bucket [query("replication")] => REPLICATION;
        DeleteBucketReplication: DELETE Bucket [query("replication")] => REPLICATION;
        PutBucketRequestPayment: PUT Bucket [query("requestPayment")] => SETTINGS;
        CreateSession: GET Bucket [query("session")] => SESSION;
        PutBucketWebsite: PUT Bucket [query("website")] => WEBSITE;
        DeleteBucketWebsite: DELETE Bucket [query("website")] => WEBSITE;
        WriteGetObjectResponse: POST Bucket [Header("x-amz-request-route")] => OBJECT_LAMBDA;

        // Objects.
        AppendObject: PUT Object [Header("x-amz-write-offset-bytes")] => DIRECTORY;
        GetObjectAnnotation: GET Object [query("annotation")] => ANNOTATIONS;
        PutObjectAnnotation: PUT Object [query("annotation")] => ANNOTATIONS;
        DeleteObjectAnnotation: DELETE Object [query("annotation")] => ANNOTATIONS;
        UpdateObjectEncryption: PUT Object [query("encryption")] => ENCRYPTION;
        GetObjectTorrent: GET Object [query("torrent")] => TORRENT;
        RenameObject: PUT Object [query("renameObject")] => DIRECTORY;
        RestoreObject: POST Object [query("restore")] => RESTORE;
        SelectObjectContent: POST Object [query("select")] => SELECT;
        SelectObjectContent: POST Object [query("select-type")] => SELECT;
        GetObjectLambda: GET Object [query("lambdaArn")] => OBJECT_LAMBDA;
    }
}

/// The summary of one S3 operation on this server.
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
    /// Whether it is carried out. If not, it answers 501 and changes nothing.
    pub is_implemented: bool,
    /// The action that policies must allow.
    pub action: Option<Action>,
}

/// Returns all operations of S3 that this server distinguishes, and what it does with them in this mode.
pub fn operations(mode: Compatibility) -> impl Iterator<Item = OperationSummary> {
    mode.operations().iter().map(|row| {
        let (query, header) = match row.selector {
            Selector::Plain => (vec![], None),
            Selector::Query(name) => (vec![(name, "")], None),
            Selector::QueryBoth(first, second) => (vec![(first, ""), (second, "")], None),
            Selector::QueryValue(name, value) => (vec![(name, value)], None),
            Selector::QueryAndHeader(name, header) => (vec![(name, "")], Some(header)),
            Selector::Header(name) => (vec![], Some(name)),
        };
        let action = match row.handling {
            Handling::Implemented(implementation) => implementation.action,
            Handling::Preflight | Handling::NotImplemented(_) => None,
        };
        OperationSummary {
            name: row.name,
            method: row.method.clone(),
            path: row.resource.pattern(),
            query,
            header,
            is_implemented: row.is_implemented(),
            action,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{EXTENDED, Handling, STRICT};
    use crate::request::target::Resource;
    use std::collections::BTreeSet;

    /// A row that the mode `extended` forgot would be carried out as the plain operation of its resource.
    #[test]
    fn both_modes_know_the_same_requests() {
        let requests = |table: &[super::Operation]| -> BTreeSet<String> {
            table
                .iter()
                .map(|row| format!("{} {} {:?} {:?}", row.name, row.method, row.resource, row.selector))
                .collect()
        };
        assert_eq!(requests(STRICT), requests(EXTENDED));
        let implemented =
            |table: &[super::Operation]| table.iter().filter(|row| row.is_implemented()).count();
        assert!(implemented(EXTENDED) > implemented(STRICT));
    }

    /// Explanations of permissions rely on it.
    #[test]
    fn actions_are_either_on_buckets_or_on_objects() {
        for row in EXTENDED {
            let Handling::Implemented(implementation) = &row.handling else { continue };
            let Some(action) = implementation.action else { continue };
            assert_eq!(action.is_on_buckets(), row.resource == Resource::Bucket, "{}", row.name);
        }
    }

    #[test]
    fn every_implemented_operation_is_documented() {
        let documentation = include_str!("../../docs/s3-api.md");
        for row in EXTENDED {
            if let Handling::Implemented(_) = row.handling {
                assert!(documentation.contains(row.name), "{}", row.name);
            }
        }
    }
}
