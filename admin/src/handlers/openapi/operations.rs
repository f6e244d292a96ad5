//! Parameters, bodies and errors of each operation, in route order.

use cairn_api::*;

/// The body of a request or a response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// JSON of this type.
    Json(TypeSchema),
    /// Plain text.
    Text,
    /// Bytes of any type.
    Bytes,
}

/// A query parameter.
#[derive(Debug)]
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    pub(super) schema: TypeSchema,
    pub(super) is_required: bool,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBody {
    pub(super) content: Content,
    pub(super) is_required: bool,
}

/// A successful response.
#[derive(Debug)]
pub(super) struct Success {
    pub(super) status: u16,
    pub(super) meaning: &'static str,
    pub(super) content: Option<Content>,
}

/// Parameters, bodies and errors of one operation.
#[derive(Debug)]
pub(crate) struct Description {
    pub(super) operation: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: &'static [QueryParameter],
    pub(super) request: Option<RequestBody>,
    pub(super) successes: &'static [Success],
    /// Status and code of errors, besides those that all routes have.
    pub(super) errors: &'static [(u16, &'static str)],
}

/// Returns the description of an operation.
pub(super) fn description(operation: &str) -> Option<&'static Description> {
    DESCRIPTIONS.iter().find(|description| description.operation == operation)
}

/// Returns the schema of a variable segment of a path.
pub(super) fn path_schema(name: &str) -> TypeSchema {
    match name {
        "bucket" => schema_of::<BucketName>(),
        "key" => schema_of::<ObjectKey>(),
        "token" => schema_of::<CapabilityToken>(),
        "request_id" => schema_of::<String>(),
        _ => schema_of::<Id>(),
    }
}

const fn optional<T: JsonSchema>(name: &'static str) -> QueryParameter {
    QueryParameter { name, schema: schema_of::<T>(), is_required: false }
}

const fn required<T: JsonSchema>(name: &'static str) -> QueryParameter {
    QueryParameter { name, schema: schema_of::<T>(), is_required: true }
}

const fn success<T: JsonSchema>(status: u16, meaning: &'static str) -> Success {
    Success { status, meaning, content: Some(Content::Json(schema_of::<T>())) }
}

const fn ok<T: JsonSchema>() -> Success {
    success::<T>(200, "The request succeeded.")
}

const fn created<T: JsonSchema>() -> Success {
    success::<T>(201, "The resource was created.")
}

const fn accepted<T: JsonSchema>() -> Success {
    success::<T>(202, "The work has begun.")
}

const DONE: Success =
    Success { status: 204, meaning: "The request succeeded; there is no body.", content: None };
const CONTENT: Success = Success { status: 200, meaning: "The bytes.", content: Some(Content::Bytes) };
const AT: QueryParameter = optional::<Time>("at");
const VERSION_ID: QueryParameter = optional::<VersionId>("version_id");

const BUCKET: (u16, &str) = (404, "BUCKET_NOT_FOUND");
const BUCKET_NAME: (u16, &str) = (400, "INVALID_BUCKET_NAME");
const OBJECT: (u16, &str) = (404, "OBJECT_NOT_FOUND");
const VERSION: (u16, &str) = (404, "VERSION_NOT_FOUND");

const IMPORT_ID: QueryParameter = required::<Id>("import_id");
const IMPORT: (u16, &str) = (404, "IMPORT_NOT_FOUND");
const IMPORT_CONFLICT: (u16, &str) = (409, "IMPORT_CONFLICT");
const STORE_STATE: (u16, &str) = (409, "INVALID_STORE_STATE");
const STATE: (u16, &str) = (409, "INVALID_BUCKET_STATE");
const UPLOAD: (u16, &str) = (404, "UPLOAD_NOT_FOUND");
const QUOTA: (u16, &str) = (409, "QUOTA_EXCEEDED");
const ACCOUNT: (u16, &str) = (404, "SERVICE_ACCOUNT_NOT_FOUND");
const CREDENTIAL: (u16, &str) = (404, "CREDENTIAL_NOT_FOUND");
const POLICY: (u16, &str) = (404, "POLICY_NOT_FOUND");
const LIFECYCLE_RULE: (u16, &str) = (404, "LIFECYCLE_RULE_NOT_FOUND");
const WEBHOOK: (u16, &str) = (404, "WEBHOOK_NOT_FOUND");
const DISABLED: (u16, &str) = (409, "WEBHOOK_DISABLED");
const TARGET: (u16, &str) = (400, "INVALID_WEBHOOK_TARGET");
const KEY_EXISTS: (u16, &str) = (409, "ACCESS_KEY_EXISTS");
const LIMIT: (u16, &str) = (409, "LIMIT_REACHED");
const SHARE: (u16, &str) = (404, "SHARE_NOT_FOUND");
const EMBED: (u16, &str) = (404, "EMBED_NOT_FOUND");
const GONE: (u16, &str) = (410, "SHARE_GONE");
const LOCKED: (u16, &str) = (401, "SHARE_LOCKED");
const EXPIRATION: (u16, &str) = (400, "EXPIRATION_REQUIRED");
const LIFETIME: (u16, &str) = (400, "LIFETIME_TOO_LONG");
const ORIGIN: (u16, &str) = (400, "INVALID_ORIGIN");
const EMBED_TYPE: (u16, &str) = (400, "EMBED_CONTENT_TYPE_REFUSED");

const fn json_body<T: JsonSchema>() -> Option<RequestBody> {
    Some(RequestBody { content: Content::Json(schema_of::<T>()), is_required: true })
}

const fn optional_json_body<T: JsonSchema>() -> Option<RequestBody> {
    Some(RequestBody { content: Content::Json(schema_of::<T>()), is_required: false })
}

/// One row for each operation.
macro_rules! operations {
    ($($operation:literal, $tag:literal: $summary:literal;
       $query:expr, $request:expr => $successes:expr, $errors:expr;)+) => {
        /// Every operation.
        pub(crate) static DESCRIPTIONS: &[Description] = &[$(Description {
            operation: $operation,
            tag: $tag,
            summary: $summary,
            query: &$query,
            request: $request,
            successes: &$successes,
            errors: &$errors,
        }),+];
    };
}

operations! {
    "get_health", "system": "Whether the process accepts connections.";
    [], None => [ok::<Health>()], [];
    "get_readiness", "system": "Whether every subsystem is ready.";
    [], None => [ok::<Readiness>(), success::<Readiness>(503, "A subsystem is not ready.")], [];
    "scrape_metrics", "system": "Returns the metrics in the text format of Prometheus.";
    [], None => [Success { status: 200, meaning: "The metrics.", content: Some(Content::Text) }], [];
    "get_openapi", "system": "Returns this document.";
    [], None => [ok::<OpenApiDocument>()], [];
    "get_system_info", "system": "Shows version and capabilities.";
    [], None => [ok::<SystemInfo>()], [];
    "get_metrics", "system": "Returns the metrics as JSON.";
    [], None => [ok::<Metrics>()], [];
    "get_metric_history", "system": "Returns requests, latency and space over the last hour, day or month.";
    [optional::<HistoryPeriod>("period")], None => [ok::<MetricHistory>()], [];
    "get_session", "system": "Role of the credential.";
    [], None => [ok::<Session>()], [];
    "list_buckets", "buckets": "Lists all buckets.";
    [], None => [ok::<BucketList>()], [];
    "create_bucket", "buckets": "Creates a bucket.";
    [], json_body::<CreateBucket>() => [created::<Bucket>()], [BUCKET_NAME, (409, "BUCKET_ALREADY_EXISTS")];
    "get_bucket", "buckets": "Shows one bucket.";
    [], None => [ok::<Bucket>()], [BUCKET_NAME, BUCKET];
    "get_bucket_contents", "buckets": "Counts what a bucket contains, including older versions, delete markers and unfinished uploads.";
    [], None => [ok::<BucketContents>()], [BUCKET_NAME, BUCKET];
    "delete_bucket", "buckets": "Deletes an empty bucket.";
    [], None => [DONE], [BUCKET_NAME, BUCKET, (409, "BUCKET_NOT_EMPTY")];
    "get_versioning", "buckets": "Shows the versioning state of a bucket.";
    [], None => [ok::<Versioning>()], [BUCKET_NAME, BUCKET];
    "set_versioning", "buckets": "Enables or suspends versioning.";
    [], json_body::<SetVersioning>() => [ok::<Versioning>()], [BUCKET_NAME, BUCKET, (409, "INVALID_BUCKET_STATE")];
    "set_quota", "buckets": "Sets a bucket's quota: both bytes and objects.";
    [], json_body::<SetQuota>() => [ok::<Bucket>()], [BUCKET_NAME, BUCKET, (409, "QUOTA_BELOW_USAGE")];
    "get_cors", "buckets": "Shows the CORS rules of a bucket.";
    [], None => [ok::<CorsRules>()], [BUCKET_NAME, BUCKET];
    "set_cors", "buckets": "Replaces the CORS rules of a bucket, as PutBucketCors does.";
    [], json_body::<SetCorsRules>() => [ok::<CorsRules>()], [BUCKET_NAME, BUCKET];
    "delete_cors", "buckets": "Removes the CORS rules of a bucket.";
    [], None => [DONE], [BUCKET_NAME, BUCKET];
    "get_bucket_tags", "buckets": "Shows the tags of a bucket.";
    [], None => [ok::<BucketTags>()], [BUCKET_NAME, BUCKET];
    "set_bucket_tags", "buckets": "Replaces the tags of a bucket, as PutBucketTagging does.";
    [], json_body::<BucketTags>() => [ok::<BucketTags>()], [BUCKET_NAME, BUCKET];
    "get_public_access", "buckets": "Shows what anybody may read and list in a bucket.";
    [], None => [ok::<PublicAccess>()], [BUCKET_NAME, BUCKET];
    "set_public_access", "buckets": "Replaces the rules of public access of a bucket.";
    [], json_body::<PublicAccess>() => [ok::<PublicAccess>()], [BUCKET_NAME, BUCKET, (403, "PUBLIC_ACCESS_DISABLED")];
    "list_public_access", "buckets": "Lists all that is public.";
    [], None => [ok::<PublicAccessList>()], [];
    "get_object_lock", "buckets": "Shows whether a bucket has object lock, and its default retention.";
    [], None => [ok::<ObjectLock>()], [BUCKET_NAME, BUCKET];
    "set_object_lock", "buckets": "Sets the default retention of a bucket with object lock. Null removes it.";
    [], json_body::<SetObjectLock>() => [ok::<ObjectLock>()], [BUCKET_NAME, BUCKET, (409, "OBJECT_LOCK_NOT_ENABLED")];
    "list_lifecycle_rules", "lifecycle": "Lists the lifecycle rules of a bucket, with what each has done.";
    [], None => [ok::<LifecycleRuleList>()], [BUCKET_NAME, BUCKET];
    "create_lifecycle_rule", "lifecycle": "Creates a lifecycle rule. It applies to objects that exist already, too.";
    [], json_body::<SetLifecycleRule>() => [created::<LifecycleRule>()], [BUCKET_NAME, BUCKET, LIMIT];
    "preview_lifecycle_rule", "lifecycle": "Shows what a lifecycle rule would do now. Changes nothing.";
    [], json_body::<SetLifecycleRule>() => [ok::<LifecyclePreview>()], [BUCKET_NAME, BUCKET];
    "replace_lifecycle_rule", "lifecycle": "Replaces a lifecycle rule. Its id, creation time and totals stay.";
    [], json_body::<SetLifecycleRule>() => [ok::<LifecycleRule>()], [BUCKET_NAME, BUCKET, LIFECYCLE_RULE];
    "delete_lifecycle_rule", "lifecycle": "Deletes a lifecycle rule.";
    [], None => [DONE], [LIFECYCLE_RULE];
    "get_lifecycle_status", "lifecycle": "Shows the state of the lifecycle worker.";
    [], None => [ok::<LifecycleStatus>()], [];
    "resume_lifecycle", "lifecycle": "Resumes the lifecycle worker after a jump of the clock.";
    [], None => [ok::<LifecycleStatus>()], [];
    "list_objects", "objects": "Lists current objects in key order.";
    [
        optional::<String>("prefix"), optional::<String>("delimiter"), optional::<PageLimit>("limit"),
        optional::<String>("continuation_token"), AT,
    ], None => [ok::<ObjectPage>()], [BUCKET_NAME, BUCKET, STATE];
    "get_object", "objects": "Shows the metadata of an object.";
    [VERSION_ID, AT], None => [ok::<ObjectRecord>()], [BUCKET_NAME, BUCKET, OBJECT, VERSION, STATE];
    "upload_object", "objects": "Uploads an object. The body is its content; Content-Type and x-amz-meta-* headers are stored.";
    [], Some(RequestBody { content: Content::Bytes, is_required: false })
        => [created::<ObjectRecord>()],
        [BUCKET_NAME, BUCKET, QUOTA, (411, "INVALID_REQUEST"), (412, "PRECONDITION_FAILED")];
    "delete_object", "objects": "Deletes an object. A bucket with versioning gets a delete marker.";
    [], None => [DONE], [BUCKET_NAME, BUCKET, OBJECT];
    "download_object", "objects": "Returns the content of an object, or a range of it.";
    [VERSION_ID, AT], None
        => [
            CONTENT,
            Success { status: 206, meaning: "The requested range.", content: Some(Content::Bytes) },
            Success { status: 304, meaning: "The client's copy is current.", content: None },
        ],
        [
            BUCKET_NAME, BUCKET, OBJECT, VERSION, STATE, (412, "PRECONDITION_FAILED"),
            (416, "RANGE_NOT_SATISFIABLE"),
        ];
    "preview_object", "objects": "Returns the first 1 MiB of a text as plain text, or an image of up to 16 MiB.";
    [VERSION_ID], None => [CONTENT], [BUCKET_NAME, BUCKET, OBJECT, VERSION, (415, "UNSUPPORTED_MEDIA_TYPE")];
    "list_object_versions", "objects": "Lists all versions and delete markers, the newest of a key first.";
    [
        optional::<String>("prefix"), optional::<PageLimit>("limit"), optional::<String>("key_marker"),
        optional::<VersionId>("version_id_marker"),
    ], None => [ok::<VersionPage>()], [BUCKET_NAME, BUCKET];
    "delete_object_version", "objects": "Permanently deletes one version or delete marker. With `only_imported`, one that an import has brought; another counts as \
    missing.";
    [required::<VersionId>("version_id"), optional::<bool>("only_imported")], None
        => [DONE], [BUCKET_NAME, BUCKET, VERSION, QUOTA, (403, "OBJECT_LOCKED")];
    "set_object_retention", "objects": "Sets the retention of a version, by default the current one. Null removes it.";
    [VERSION_ID], json_body::<SetRetention>() => [ok::<RetentionOfVersion>()],
    [BUCKET_NAME, BUCKET, OBJECT, VERSION, (403, "OBJECT_LOCKED"), (409, "OBJECT_LOCK_NOT_ENABLED")];
    "set_object_legal_hold", "objects": "Puts a legal hold on a version, by default the current one, or takes it off.";
    [VERSION_ID], json_body::<LegalHold>() => [ok::<LegalHold>()],
    [BUCKET_NAME, BUCKET, OBJECT, VERSION, (409, "OBJECT_LOCK_NOT_ENABLED")];
    "set_object_tags", "objects": "Replaces the tags of a version, by default the current one.";
    [VERSION_ID], json_body::<ObjectTags>() => [ok::<ObjectTags>()], [BUCKET_NAME, BUCKET, OBJECT, VERSION];
    "set_object_metadata", "objects": "Replaces content type, headers and metadata of an object, by a copy onto itself.";
    [], json_body::<SetObjectMetadata>() => [created::<ObjectRecord>()],
    [BUCKET_NAME, BUCKET, OBJECT, QUOTA, (412, "PRECONDITION_FAILED")];
    "list_multipart_uploads", "objects": "Lists unfinished multipart uploads in key order.";
    [
        optional::<String>("prefix"), optional::<PageLimit>("limit"), optional::<String>("key_marker"),
        optional::<UploadId>("upload_id_marker"),
    ], None => [ok::<UploadPage>()], [BUCKET_NAME, BUCKET];
    "abort_multipart_upload", "objects": "Aborts a multipart upload and removes its parts.";
    [required::<UploadId>("upload_id")], None
        => [DONE], [BUCKET_NAME, BUCKET, (404, "UPLOAD_NOT_FOUND")];
    "copy_object", "objects": "Copies an object, or one version of it, with its metadata.";
    [], json_body::<CopyObject>() => [created::<ObjectRecord>()],
    [BUCKET_NAME, BUCKET, OBJECT, VERSION, QUOTA, (409, "OBJECT_ALREADY_EXISTS")];
    "move_object", "objects": "Moves an object: copies it with its metadata, and deletes that version of the source.";
    [], json_body::<MoveObject>() => [created::<ObjectRecord>()],
    [BUCKET_NAME, BUCKET, OBJECT, QUOTA, (409, "OBJECT_ALREADY_EXISTS")];
    "download_archive", "objects": "Returns a ZIP archive of the objects below a prefix, also as they were at a moment.";
    [optional::<String>("prefix"), AT], None => [CONTENT], [BUCKET_NAME, BUCKET, OBJECT, STATE];
    "download_objects", "objects": "Returns a ZIP archive of the objects with the given keys.";
    [], json_body::<ArchiveObjects>() => [CONTENT], [BUCKET_NAME, BUCKET, OBJECT];
    "begin_import", "imports": "Begins a run that imports versions of another store into a bucket.";
    [], json_body::<BeginImport>() => [created::<BegunImport>()], [BUCKET_NAME, BUCKET, STORE_STATE];
    "import_object", "imports": "Imports a version with its id, date and entity tag. The body is its content; headers, tags and lock are stored.";
    [IMPORT_ID, required::<VersionId>("version_id"), required::<Time>("last_modified"), optional::<EntityTag>("etag"),
     optional::<bool>("opaque_etag"), optional::<bool>("delete_marker"), optional::<UploadId>("upload_id")],
    Some(RequestBody { content: Content::Bytes, is_required: false })
        => [created::<ImportedVersion>(), ok::<ImportedVersion>()],
        [BUCKET_NAME, BUCKET, IMPORT, UPLOAD, IMPORT_CONFLICT, STATE, QUOTA, (411, "INVALID_REQUEST")];
    "import_objects", "imports": "Imports small versions of a run together. The body is a pipeline of the requests that import one, of media type application/http.";
    [IMPORT_ID], Some(RequestBody { content: Content::Bytes, is_required: true })
        => [ok::<ImportedVersions>()], [BUCKET_NAME, BUCKET, IMPORT];
    "change_imported_object", "imports": "Changes tags, retention or legal hold of an imported version.";
    [IMPORT_ID, required::<VersionId>("version_id")], json_body::<ChangeImported>() => [ok::<ImportedVersion>()],
        [BUCKET_NAME, BUCKET, OBJECT, VERSION, IMPORT, IMPORT_CONFLICT, (409, "OBJECT_LOCK_NOT_ENABLED"), (403, "OBJECT_LOCKED")];
    "begin_imported_upload", "imports": "Begins an upload whose parts will be an imported version.";
    [IMPORT_ID], None => [created::<ImportedUpload>()], [BUCKET_NAME, BUCKET, IMPORT, (409, "OBJECT_LOCK_NOT_ENABLED")];
    "import_part", "imports": "Writes a part of such an upload. The body is its content.";
    [IMPORT_ID, required::<UploadId>("upload_id"), required::<u16>("part_number")],
    Some(RequestBody { content: Content::Bytes, is_required: false })
        => [ok::<ImportedPart>()], [BUCKET_NAME, BUCKET, IMPORT, UPLOAD, (411, "INVALID_REQUEST")];
    "list_imports", "imports": "Lists the latest runs since the service was started, the newest first.";
    [], None => [ok::<ImportList>()], [];
    "get_import", "imports": "Shows one run.";
    [], None => [ok::<ImportRun>()], [IMPORT];
    "pause_import", "imports": "Pauses a run: the importer stops sending when it next asks.";
    [], None => [ok::<ImportRun>()], [IMPORT];
    "resume_import", "imports": "Ends the pause of a run.";
    [], None => [ok::<ImportRun>()], [IMPORT];
    "count_changes", "objects": "Counts the changes of objects between two times, and names the largest deletions.";
    [required::<Time>("since"), optional::<Time>("until"), optional::<ChangeSteps>("steps"), optional::<Prefix>("prefix")],
    None => [ok::<Changes>()], [BUCKET_NAME, BUCKET];
    "find_objects", "objects": "Finds the objects that fulfil all conditions. A parameter tag.<name> is the value that the tag must have.";
    [
        optional::<KeyText>("contains"), optional::<KeyText>("glob"), optional::<Prefix>("prefix"),
        optional::<Bytes>("min_bytes"), optional::<Bytes>("max_bytes"), optional::<Time>("modified_since"),
        optional::<Time>("modified_until"), optional::<ContentType>("content_type"), AT,
        optional::<PageLimit>("limit"), optional::<String>("continuation_token"),
    ], None => [ok::<FoundPage>()], [BUCKET_NAME, BUCKET, STATE];
    "get_folder_usage", "objects": "Counts objects and bytes below a prefix, and of the folders one level below it.";
    [optional::<Prefix>("prefix"), optional::<MaxKeys>("max_keys"), optional::<String>("continuation_token")],
    None => [ok::<FolderUsage>()], [BUCKET_NAME, BUCKET];
    "get_object_history", "objects": "Shows what has happened to an object, the latest first.";
    [], None => [ok::<ObjectHistory>()], [BUCKET_NAME, BUCKET, OBJECT];
    "list_deleted_objects", "objects": "Lists the objects that delete markers hide, in key order.";
    [
        optional::<String>("prefix"), optional::<String>("delimiter"), optional::<PageLimit>("limit"),
        optional::<String>("continuation_token"),
    ], None => [ok::<DeletedPage>()], [BUCKET_NAME, BUCKET, STATE];
    "delete_objects", "objects": "Deletes up to 1000 objects or versions.";
    [], json_body::<DeleteObjects>() => [ok::<DeletedObjects>()], [BUCKET_NAME, BUCKET];
    "undelete_objects", "objects": "Removes the delete markers that hide objects.";
    [], json_body::<Undelete>() => [ok::<Undeleted>()], [BUCKET_NAME, BUCKET, STATE];
    "restore_bucket", "objects": "Makes the current objects equal to those of a moment, by writing new versions and delete markers.";
    [], json_body::<RestoreBucket>() => [ok::<RestoredBucket>()], [BUCKET_NAME, BUCKET, STATE];
    "restore_object", "objects": "Restores an older version by writing a new version with its content.";
    [], json_body::<RestoreObject>()
        => [created::<ObjectRecord>()], [BUCKET_NAME, BUCKET, VERSION, QUOTA, (409, "INVALID_BUCKET_STATE")];
    "list_object_shares", "sharing": "Lists the shares of an object, the newest first.";
    [], None => [ok::<ShareList>()], [BUCKET_NAME, BUCKET, OBJECT];
    "create_share", "sharing": "Creates a share: a URL for people, optionally with a password, an expiry and a limit of downloads.";
    [], optional_json_body::<CreateShare>() => [created::<NewShare>()],
    [BUCKET_NAME, BUCKET, OBJECT, VERSION, EXPIRATION, LIFETIME, LIMIT];
    "list_shares", "sharing": "Lists the shares of all objects, the newest first. A page may have fewer entries although more follow.";
    [
        optional::<BucketName>("bucket"), optional::<ShareStatus>("status"), optional::<String>("created_by"),
        optional::<PageLimit>("limit"), optional::<String>("continuation_token"),
    ], None => [ok::<SharePage>()], [BUCKET_NAME, BUCKET];
    "get_share", "sharing": "Shows one share, without its URL.";
    [], None => [ok::<Share>()], [SHARE];
    "update_share", "sharing": "Changes label, expiry, password or limit of downloads of a share. Null removes a value.";
    [], json_body::<UpdateShare>() => [ok::<Share>()], [SHARE, EXPIRATION, LIFETIME];
    "delete_share", "sharing": "Deletes a share with its counts.";
    [], None => [DONE], [SHARE];
    "get_share_url", "sharing": "Returns the URL of a share, which is all that a visitor needs. Each call is audited.";
    [], None => [ok::<LinkUrl>()], [SHARE];
    "revoke_share", "sharing": "Revokes a share, permanently.";
    [], optional_json_body::<Nothing>() => [ok::<Share>()], [SHARE];
    "list_object_embeds", "sharing": "Lists the embeds of an object, the newest first.";
    [], None => [ok::<EmbedList>()], [BUCKET_NAME, BUCKET, OBJECT];
    "create_embed", "sharing": "Creates an embed: a URL that pages of the allowed origins can show.";
    [], json_body::<CreateEmbed>() => [created::<NewEmbed>()],
    [BUCKET_NAME, BUCKET, OBJECT, VERSION, EXPIRATION, LIFETIME, ORIGIN, EMBED_TYPE, (403, "SHARING_DISABLED"), LIMIT];
    "list_embeds", "sharing": "Lists the embeds of all objects, the newest first. A page may have fewer entries although more follow.";
    [
        optional::<BucketName>("bucket"), optional::<EmbedStatus>("status"), optional::<String>("created_by"),
        optional::<PageLimit>("limit"), optional::<String>("continuation_token"),
    ], None => [ok::<EmbedPage>()], [BUCKET_NAME, BUCKET];
    "get_embed", "sharing": "Shows one embed, without its URL.";
    [], None => [ok::<Embed>()], [EMBED];
    "update_embed", "sharing": "Changes label, origins, expiry or disposition of an embed. Null removes label and expiry.";
    [], json_body::<UpdateEmbed>() => [ok::<Embed>()], [EMBED, OBJECT, VERSION, EXPIRATION, LIFETIME, ORIGIN, EMBED_TYPE];
    "delete_embed", "sharing": "Deletes an embed with its counts.";
    [], None => [DONE], [EMBED];
    "get_embed_url", "sharing": "Returns the URL of an embed. Each call is audited.";
    [], None => [ok::<LinkUrl>()], [EMBED];
    "revoke_embed", "sharing": "Revokes an embed, permanently.";
    [], optional_json_body::<Nothing>() => [ok::<Embed>()], [EMBED];
    "get_sharing_settings", "sharing": "Shows the deployment-wide policy of sharing.";
    [], None => [ok::<SharingSettings>()], [];
    "list_service_accounts", "accounts": "Lists all service accounts.";
    [], None => [ok::<ServiceAccountList>()], [];
    "create_service_account", "accounts": "Creates a service account with one credential. Only this response contains its secret key, unless the client gives one.";
    [], json_body::<CreateServiceAccount>() => [created::<NewServiceAccount>()],
    [(409, "SERVICE_ACCOUNT_ALREADY_EXISTS"), KEY_EXISTS, LIMIT];
    "get_service_account", "accounts": "Shows one service account.";
    [], None => [ok::<ServiceAccount>()], [ACCOUNT];
    "delete_service_account", "accounts": "Permanently deletes a service account and its credentials.";
    [], None => [DONE], [ACCOUNT];
    "set_service_account_status", "accounts": "Enables or disables all credentials of a service account.";
    [], json_body::<SetStatus>() => [ok::<ServiceAccount>()], [ACCOUNT];
    "create_credential", "accounts": "Issues an additional credential. Only this response contains its secret key, unless the client gives one.";
    [], optional_json_body::<CreateCredential>() => [created::<NewCredential>()], [ACCOUNT, KEY_EXISTS, LIMIT];
    "create_temporary_credential", "accounts": "Issues a credential that expires. Only this response contains its secret key.";
    [], json_body::<CreateTemporaryCredential>() => [created::<NewCredential>()], [ACCOUNT, LIMIT];
    "delete_credential", "accounts": "Deletes a credential.";
    [], None => [DONE], [ACCOUNT, CREDENTIAL];
    "set_credential_status", "accounts": "Enables or disables one credential.";
    [], json_body::<SetStatus>() => [ok::<Credential>()], [ACCOUNT, CREDENTIAL];
    "list_service_account_policies", "accounts": "Lists the policies of a service account with their statements.";
    [], None => [ok::<PolicyStatements>()], [ACCOUNT];
    "check_access", "policies": "Says whether an account may do something, and which statement decides. Changes nothing.";
    [], json_body::<CheckAccess>() => [ok::<AccessVerdict>()], [BUCKET_NAME, ACCOUNT, CREDENTIAL];
    "list_policies", "policies": "Lists all policies, with the accounts that they are attached to.";
    [], None => [ok::<PolicyList>()], [];
    "create_policy", "policies": "Creates a policy that is attached to no account.";
    [], json_body::<PolicyDocument>() => [created::<Policy>()], [LIMIT];
    "get_policy", "policies": "Shows one policy, with the accounts that it is attached to.";
    [], None => [ok::<BoundPolicy>()], [POLICY];
    "replace_policy", "policies": "Replaces the document of a policy. The new statements are in force for the next request.";
    [], json_body::<PolicyDocument>() => [ok::<BoundPolicy>()], [POLICY, LIMIT];
    "delete_policy", "policies": "Deletes a policy that is attached to no account.";
    [], None => [DONE], [POLICY, (409, "POLICY_IN_USE")];
    "attach_policy", "policies": "Attaches a policy to a service account.";
    [], None => [DONE], [POLICY, ACCOUNT, LIMIT];
    "detach_policy", "policies": "Detaches a policy from a service account.";
    [], None => [DONE], [POLICY, ACCOUNT];
    "list_management_tokens", "tokens": "Lists all management tokens.";
    [], None => [ok::<ManagementTokenList>()], [];
    "create_management_token", "tokens": "Creates a management token. Only this response contains the token.";
    [], json_body::<CreateManagementToken>() => [created::<NewManagementToken>()], [LIMIT];
    "delete_management_token", "tokens": "Deletes a management token.";
    [], None => [DONE], [(404, "TOKEN_NOT_FOUND")];
    "list_audit_events", "audit": "Queries the audit trail, the latest event first.";
    [
        optional::<Time>("since"), optional::<Time>("until"), optional::<String>("principal"), optional::<OperationNames>("operation"),
        optional::<String>("resource"), optional::<String>("bucket"), optional::<String>("key"), optional::<AuditResult>("result"),
        optional::<IpAddress>("source_ip"),
        optional::<String>("request_id"), optional::<ContainedText>("contains"), optional::<Time>("after_time"),
        optional::<Id>("after_id"), optional::<PageLimit>("limit"),
    ], None => [ok::<AuditPage>()], [(400, "INVALID_AUDIT_CURSOR")];
    "list_refused_requests", "audit": "Lists the last refused S3 requests in memory, the latest first, with what would help.";
    [
        optional::<IpAddress>("client"), optional::<String>("code"), optional::<String>("bucket"), optional::<String>("principal"),
        optional::<PageLimit>("limit"),
    ], None => [ok::<RefusedRequestList>()], [];
    "get_refused_request", "audit": "Shows one refused S3 request.";
    [], None => [ok::<RefusedRequest>()], [(404, "REFUSED_REQUEST_NOT_FOUND")];
    "list_events", "events": "Returns storage events, the oldest or the latest first. Can wait for the next one.";
    [
        optional::<Time>("since"), optional::<Time>("until"), optional::<EventTypes>("type"), optional::<String>("bucket"),
        optional::<String>("prefix"), optional::<String>("principal"), optional::<ContainedText>("contains"),
        optional::<EventOrder>("order"), optional::<Time>("after_time"), optional::<Id>("after_id"),
        optional::<Time>("before_time"), optional::<Id>("before_id"), optional::<PageLimit>("limit"),
        optional::<WaitSeconds>("wait_seconds"),
    ], None => [ok::<EventPage>()], [(400, "INVALID_EVENT_CURSOR")];
    "count_all_changes", "events": "Counts the changes of objects of all buckets between two times, and names the largest deletions.";
    [required::<Time>("since"), optional::<Time>("until"), optional::<ChangeSteps>("steps")], None => [ok::<Changes>()], [];
    "list_webhooks", "webhooks": "Lists all webhooks.";
    [], None => [ok::<WebhookList>()], [];
    "create_webhook", "webhooks": "Creates a webhook. Only this response contains its signing secret.";
    [], json_body::<CreateWebhook>() => [created::<NewWebhook>()],
    [TARGET, BUCKET_NAME, (409, "EVENTS_DISABLED"), LIMIT];
    "get_webhook", "webhooks": "Shows one webhook and its health.";
    [], None => [ok::<Webhook>()], [WEBHOOK];
    "update_webhook", "webhooks": "Changes the target, the events or the filters of a webhook. A filter that is null is removed.";
    [], json_body::<UpdateWebhook>() => [ok::<Webhook>()], [TARGET, BUCKET_NAME, WEBHOOK];
    "delete_webhook", "webhooks": "Deletes a webhook with its secret and its pending deliveries.";
    [], None => [DONE], [WEBHOOK];
    "set_webhook_status", "webhooks": "Enables or disables a webhook. Disabling drops its pending deliveries.";
    [], json_body::<SetStatus>() => [ok::<Webhook>()], [WEBHOOK];
    "rotate_webhook_secret", "webhooks": "Creates a new signing secret. For a while deliveries are signed with both.";
    [], optional_json_body::<RotateSecret>() => [created::<RotatedSecret>()], [WEBHOOK];
    "test_webhook", "webhooks": "Sends one signed event for a test, and shows each step.";
    [], None => [ok::<WebhookTest>()], [WEBHOOK];
    "resume_webhook", "webhooks": "Sends the deliveries that wait because the target was away.";
    [], None => [ok::<Webhook>()], [WEBHOOK, DISABLED];
    "redeliver_events", "webhooks": "Delivers the events of a period again: those whose delivery failed, or all.";
    [], json_body::<RedeliverEvents>() => [accepted::<QueuedDeliveries>()], [WEBHOOK, DISABLED];
    "list_webhook_deliveries", "webhooks": "Returns the delivery log, the latest entry first.";
    [
        optional::<PageLimit>("limit"), optional::<EventId>("webhook_id"), optional::<EventId>("event_id"),
        optional::<DeliveryStatus>("status"), optional::<bool>("lost"), optional::<bool>("details"),
        optional::<Time>("after_time"), optional::<Id>("after_id"),
    ], None => [ok::<DeliveryPage>()], [(400, "INVALID_EVENT_CURSOR")];
    "redeliver_delivery", "webhooks": "Delivers the event of one delivery again.";
    [], None => [accepted::<Delivery>()], [(404, "DELIVERY_NOT_FOUND"), DISABLED];
    "get_verification_progress", "integrity": "Shows the running verifications.";
    [], None => [ok::<VerificationProgress>()], [];
    "verify_object", "integrity": "Reads one version from the device and verifies it.";
    [VERSION_ID], None => [ok::<ObjectVerification>()], [BUCKET_NAME, BUCKET, OBJECT, VERSION];
    "verify_bucket", "integrity": "Reads every version in a bucket from the device and verifies it.";
    [], optional_json_body::<VerifyBucket>() => [ok::<BucketVerification>()], [BUCKET_NAME, BUCKET];
    "sign_import_report", "integrity": "Signs what a comparison with another store found, as a proof of the kind import.";
    [], json_body::<SignImportReport>() => [ok::<SignedImportReport>()], [];
    "sign_backup_manifest", "integrity": "Signs the manifest of a backup, as a proof of the kind backup.";
    [], json_body::<SignBackupManifest>() => [ok::<SignedImportReport>()], [];
    "get_storage_status", "storage": "Shows capacity and available bytes.";
    [], None => [ok::<StorageStatus>()], [];
    "get_storage_usage", "storage": "Shows the usage of each bucket and of the store.";
    [], None => [ok::<StorageUsage>()], [];
    "get_storage_history", "storage": "Shows the space of each bucket on each of the last 90 days.";
    [], None => [ok::<StorageDays>()], [];
    "get_attention", "system": "Shows what was dismissed, when backups were made, and when certificates expire.";
    [], None => [ok::<Attention>()], [];
    "dismiss_attention", "system": "Dismisses something that needs attention for at most a day, or with 0 seconds shows it again.";
    [], json_body::<DismissAttention>() => [ok::<DismissedAttention>()], [];
    "inspect_storage", "storage": "Checks the consistency of the store's metadata.";
    [optional::<MaximumEntries>("maximum_entries")], None => [ok::<Inspection>()], [];
    "repair_storage", "storage": "Frees space that no record owns. By default only reports what it would free.";
    [], optional_json_body::<RepairStorage>() => [ok::<Repair>()], [];
    "upgrade_storage", "storage": "Raises the format version of the store to the latest, after an inspection. There is no way back.";
    [], optional_json_body::<UpgradeStorage>() => [ok::<StorageUpgrade>()], [STORE_STATE];
    "get_compaction", "storage": "Shows the running compaction, or the result of the last one.";
    [], None => [ok::<Compaction>()], [];
    "compact_storage", "storage": "Begins to return free space in metadata and empty volumes to the file system.";
    [], None => [accepted::<Compaction>()], [];
    "get_backup", "storage": "Shows the backup in progress, or the last one.";
    [], None => [ok::<Backup>()], [];
    "begin_backup", "storage": "Copies the metadata of this moment, and keeps what they refer to until the backup ends.";
    [], optional_json_body::<BeginBackup>() => [accepted::<Backup>()], [];
    "end_backup", "storage": "Ends the backup in progress, and says whether everything was kept until now.";
    [optional::<String>("id")], None => [ok::<Backup>()], [(404, "BACKUP_NOT_FOUND")];
    "get_share_descriptor", "visitors": "Describes the object of a share; nothing of it before a required password was given. Browsers get a page.";
    [], None => [ok::<ShareDescriptor>()], [SHARE, OBJECT, GONE, (500, "INTERNAL_ERROR"), (503, "NOT_READY")];
    "unlock_share", "visitors": "Checks the password of a share. Sets a cookie, and returns a token for the header x-service-unlock.";
    [], json_body::<UnlockShare>() => [ok::<UnlockedShare>()],
    [
        (400, "INVALID_REQUEST"), (401, "SHARE_PASSWORD_INCORRECT"), (403, "FORBIDDEN"), SHARE, GONE,
        (429, "TOO_MANY_REQUESTS"), (500, "INTERNAL_ERROR"), (503, "NOT_READY"),
    ];
    "get_share_content", "visitors": "Returns the content of a share, or a range of it.";
    [], None
        => [
            CONTENT,
            Success { status: 206, meaning: "The requested range.", content: Some(Content::Bytes) },
            Success { status: 304, meaning: "The client's copy is current.", content: None },
        ],
        [
            LOCKED, (403, "FORBIDDEN"), SHARE, OBJECT, GONE, (412, "PRECONDITION_FAILED"), (416, "RANGE_NOT_SATISFIABLE"),
            (500, "INTERNAL_ERROR"), (503, "NOT_READY"), (507, "STORAGE_FULL"),
        ];
}
