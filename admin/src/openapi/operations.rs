//! What each operation takes and answers, in the order of the table of routes.

/// The body of a request or an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// JSON of this schema.
    Json(&'static str),
    /// Plain text.
    Text,
    /// Bytes of any type.
    Bytes,
}

/// A query parameter.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    pub(super) schema: &'static str,
    pub(super) is_required: bool,
}

/// The body that a request has.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBody {
    pub(super) content: Content,
    pub(super) is_required: bool,
}

/// A success.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) meaning: &'static str,
    pub(super) content: Option<Content>,
}

/// What one operation takes and answers.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) operation: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Asked],
    pub(super) request: Option<RequestBody>,
    pub(super) answers: &'static [Answer],
    /// Status and code of refusals beside those that all routes have.
    pub(super) refusals: &'static [(u16, &'static str)],
}

/// The description of an operation.
pub(super) fn description(operation: &str) -> Option<&'static Description> {
    DESCRIPTIONS.iter().find(|description| description.operation == operation)
}

/// The schema of a variable segment.
pub(super) fn path_schema(name: &str) -> &'static str {
    match name {
        "bucket" => "BucketName",
        "key" => "ObjectKey",
        _ => "Id",
    }
}

const fn optional(name: &'static str, schema: &'static str) -> Asked {
    Asked { name, schema, is_required: false }
}

const fn answer(status: u16, meaning: &'static str, schema: &'static str) -> Answer {
    Answer { status, meaning, content: Some(Content::Json(schema)) }
}

const fn ok(schema: &'static str) -> Answer {
    answer(200, "What was asked for.", schema)
}

const fn created(schema: &'static str) -> Answer {
    answer(201, "It was created.", schema)
}

const DONE: Answer = Answer { status: 204, meaning: "It was done.", content: None };
const CONTENT: Answer = Answer { status: 200, meaning: "The bytes.", content: Some(Content::Bytes) };
const VERSION_ID: Asked = optional("version_id", "VersionId");

const BUCKET: (u16, &str) = (404, "BUCKET_NOT_FOUND");
const BUCKET_NAME: (u16, &str) = (400, "INVALID_BUCKET_NAME");
const OBJECT: (u16, &str) = (404, "OBJECT_NOT_FOUND");
const VERSION: (u16, &str) = (404, "VERSION_NOT_FOUND");

const QUOTA: (u16, &str) = (409, "QUOTA_EXCEEDED");
const ACCOUNT: (u16, &str) = (404, "SERVICE_ACCOUNT_NOT_FOUND");
const CREDENTIAL: (u16, &str) = (404, "CREDENTIAL_NOT_FOUND");
const POLICY: (u16, &str) = (404, "POLICY_NOT_FOUND");
const LIMIT: (u16, &str) = (409, "LIMIT_REACHED");

const fn json_body(schema: &'static str) -> Option<RequestBody> {
    Some(RequestBody { content: Content::Json(schema), is_required: true })
}

const fn optional_json_body(schema: &'static str) -> Option<RequestBody> {
    Some(RequestBody { content: Content::Json(schema), is_required: false })
}

/// One row for each operation.
macro_rules! operations {
    ($($operation:literal, $tag:literal: $summary:literal;
       $query:expr, $request:expr => $answers:expr, $refusals:expr;)+) => {
        /// Every operation.
        pub(super) static DESCRIPTIONS: &[Description] = &[$(Description {
            operation: $operation,
            tag: $tag,
            summary: $summary,
            query: &$query,
            request: $request,
            answers: &$answers,
            refusals: &$refusals,
        }),+];
    };
}

operations! {
    "get_health", "system": "Whether the process accepts connections.";
    [], None => [ok("Health")], [];
    "get_readiness", "system": "Whether every subsystem is ready.";
    [], None => [ok("Readiness"), answer(503, "A subsystem is not ready.", "Readiness")], [];
    "scrape_metrics", "system": "The metrics in the text format of Prometheus.";
    [], None => [Answer { status: 200, meaning: "The metrics.", content: Some(Content::Text) }], [];
    "get_openapi", "system": "This document.";
    [], None => [ok("OpenApiDocument")], [];
    "get_system_info", "system": "Version and capabilities.";
    [], None => [ok("SystemInfo")], [];
    "get_metrics", "system": "The metrics as JSON.";
    [], None => [ok("Metrics")], [];
    "get_session", "system": "The role behind the credential.";
    [], None => [ok("Session")], [];
    "list_buckets", "buckets": "All buckets.";
    [], None => [ok("BucketList")], [];
    "create_bucket", "buckets": "Creates a bucket.";
    [], json_body("CreateBucket") => [created("Bucket")], [BUCKET_NAME, (409, "BUCKET_ALREADY_EXISTS")];
    "get_bucket", "buckets": "One bucket.";
    [], None => [ok("Bucket")], [BUCKET_NAME, BUCKET];
    "delete_bucket", "buckets": "Deletes an empty bucket.";
    [], None => [DONE], [BUCKET_NAME, BUCKET, (409, "BUCKET_NOT_EMPTY")];
    "get_versioning", "buckets": "Whether a bucket keeps versions.";
    [], None => [ok("Versioning")], [BUCKET_NAME, BUCKET];
    "set_versioning", "buckets": "Enables or suspends versioning.";
    [], json_body("SetVersioning") => [ok("Versioning")], [BUCKET_NAME, BUCKET, (409, "INVALID_BUCKET_STATE")];
    "set_quota", "buckets": "Sets both dimensions of a bucket's quota.";
    [], json_body("SetQuota") => [ok("Bucket")], [BUCKET_NAME, BUCKET, (409, "QUOTA_BELOW_USAGE")];
    "list_objects", "objects": "Current objects, in order of their keys.";
    [
        optional("prefix", "Text"), optional("delimiter", "Text"), optional("limit", "PageLimit"),
        optional("continuation_token", "Text"),
    ], None => [ok("ObjectPage")], [BUCKET_NAME, BUCKET];
    "get_object", "objects": "All that is known of an object but its content.";
    [VERSION_ID], None => [ok("ObjectRecord")], [BUCKET_NAME, BUCKET, OBJECT, VERSION];
    "upload_object", "objects": "Writes an object; the body is its content. Headers: Content-Type and x-amz-meta-*.";
    [], Some(RequestBody { content: Content::Bytes, is_required: false })
        => [created("ObjectRecord")],
        [BUCKET_NAME, BUCKET, QUOTA, (411, "INVALID_REQUEST"), (412, "PRECONDITION_FAILED")];
    "delete_object", "objects": "Deletes an object; a delete marker takes its place where the bucket keeps versions.";
    [], None => [DONE], [BUCKET_NAME, BUCKET, OBJECT];
    "download_object", "objects": "The content of an object, or a range of it.";
    [VERSION_ID], None
        => [
            CONTENT,
            Answer { status: 206, meaning: "The range that was asked for.", content: Some(Content::Bytes) },
            Answer { status: 304, meaning: "What the client has is current.", content: None },
        ],
        [BUCKET_NAME, BUCKET, OBJECT, VERSION, (412, "PRECONDITION_FAILED"), (416, "RANGE_NOT_SATISFIABLE")];
    "preview_object", "objects": "The first 1 MiB of a text, as plain text, or an image of up to 16 MiB.";
    [VERSION_ID], None => [CONTENT], [BUCKET_NAME, BUCKET, OBJECT, VERSION, (415, "UNSUPPORTED_MEDIA_TYPE")];
    "list_object_versions", "objects": "All versions and delete markers, the newest of a key first.";
    [
        optional("prefix", "Text"), optional("limit", "PageLimit"), optional("key_marker", "Text"),
        optional("version_id_marker", "VersionId"),
    ], None => [ok("VersionPage")], [BUCKET_NAME, BUCKET];
    "delete_object_version", "objects": "Removes one version, or one delete marker, for good.";
    [Asked { name: "version_id", schema: "VersionId", is_required: true }], None
        => [DONE], [BUCKET_NAME, BUCKET, VERSION, QUOTA, (403, "OBJECT_LOCKED")];
    "copy_object", "objects": "Copies an object, or one version of it, with its metadata.";
    [], json_body("CopyObject") => [created("ObjectRecord")], [BUCKET_NAME, BUCKET, OBJECT, VERSION, QUOTA];
    "restore_object", "objects": "Makes the content of an older version the current one, by a new version.";
    [], json_body("RestoreObject")
        => [created("ObjectRecord")], [BUCKET_NAME, BUCKET, VERSION, QUOTA, (409, "INVALID_BUCKET_STATE")];
    "list_service_accounts", "accounts": "All service accounts.";
    [], None => [ok("ServiceAccountList")], [];
    "create_service_account", "accounts": "Creates a service account with one credential, whose secret is told here alone.";
    [], json_body("CreateServiceAccount") => [created("NewServiceAccount")],
    [(409, "SERVICE_ACCOUNT_ALREADY_EXISTS"), LIMIT];
    "get_service_account", "accounts": "One service account.";
    [], None => [ok("ServiceAccount")], [ACCOUNT];
    "delete_service_account", "accounts": "Deletes a service account with its credentials, for good.";
    [], None => [DONE], [ACCOUNT];
    "set_service_account_status", "accounts": "Enables or disables all credentials of a service account.";
    [], json_body("SetStatus") => [ok("ServiceAccount")], [ACCOUNT];
    "create_credential", "accounts": "Issues a credential beside those that are there, whose secret is told here alone.";
    [], optional_json_body("Nothing") => [created("NewCredential")], [ACCOUNT, LIMIT];
    "create_temporary_credential", "accounts": "Issues a credential that expires, whose secret is told here alone.";
    [], json_body("CreateTemporaryCredential") => [created("NewCredential")], [ACCOUNT, LIMIT];
    "delete_credential", "accounts": "Deletes a credential.";
    [], None => [DONE], [ACCOUNT, CREDENTIAL];
    "set_credential_status", "accounts": "Enables or disables one credential.";
    [], json_body("SetStatus") => [ok("Credential")], [ACCOUNT, CREDENTIAL];
    "list_policies", "policies": "All policies, with the accounts that they are attached to.";
    [], None => [ok("PolicyList")], [];
    "create_policy", "policies": "Creates a policy, attached to nobody.";
    [], json_body("CreatePolicy") => [created("Policy")], [LIMIT];
    "get_policy", "policies": "One policy, with the accounts that it is attached to.";
    [], None => [ok("BoundPolicy")], [POLICY];
    "delete_policy", "policies": "Deletes a policy that is attached to nobody.";
    [], None => [DONE], [POLICY, (409, "POLICY_IN_USE")];
    "attach_policy", "policies": "Attaches a policy to a service account.";
    [], None => [DONE], [POLICY, ACCOUNT, LIMIT];
    "detach_policy", "policies": "Detaches a policy from a service account.";
    [], None => [DONE], [POLICY, ACCOUNT];
    "list_management_tokens", "tokens": "All management tokens.";
    [], None => [ok("ManagementTokenList")], [];
    "create_management_token", "tokens": "Creates a management token, which is told here alone.";
    [], json_body("CreateManagementToken") => [created("NewManagementToken")], [LIMIT];
    "delete_management_token", "tokens": "Deletes a management token.";
    [], None => [DONE], [(404, "TOKEN_NOT_FOUND")];
    "list_audit_events", "audit": "The audit trail, the latest first.";
    [
        optional("since", "Time"), optional("until", "Time"), optional("principal", "Text"), optional("operation", "Text"),
        optional("resource", "Text"), optional("result", "AuditResult"), optional("source_ip", "IpAddress"),
        optional("request_id", "Text"), optional("after_time", "Time"), optional("after_id", "Id"), optional("limit", "PageLimit"),
    ], None => [ok("AuditPage")], [(400, "INVALID_AUDIT_CURSOR")];
    "get_verification_progress", "integrity": "The verifications that run.";
    [], None => [ok("VerificationProgress")], [];
    "verify_object", "integrity": "Reads one version from the device and checks it.";
    [VERSION_ID], None => [ok("ObjectVerification")], [BUCKET_NAME, BUCKET, OBJECT, VERSION];
    "verify_bucket", "integrity": "Reads every version in a bucket and checks it.";
    [], optional_json_body("VerifyBucket") => [ok("BucketVerification")], [BUCKET_NAME, BUCKET];
    "get_storage_status", "storage": "Capacity and available bytes.";
    [], None => [ok("StorageStatus")], [];
    "get_storage_usage", "storage": "What the buckets hold.";
    [], None => [ok("StorageUsage")], [];
    "inspect_storage", "storage": "Compares the store's records with each other.";
    [optional("maximum_entries", "MaximumEntries")], None => [ok("Inspection")], [];
    "repair_storage", "storage": "Frees space that no record owns; by default it only says what it would free.";
    [], optional_json_body("RepairStorage") => [ok("Repair")], [];
}
