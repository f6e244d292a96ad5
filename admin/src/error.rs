//! Errors of the management plane, with their status, code and message.

use cairn_engine::EngineError;
use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use cairn_identity::Role;
use cairn_identity::directory::DirectoryError;
use cairn_sharing::{LinkError, LinkKind};
use cairn_tables::StoreFailure;
use cairn_webhooks::WebhookError;
use http::StatusCode;
use std::borrow::Cow;
use std::fmt::Display;

/// The response to an error: status, code and text.
struct Answer<'e> {
    status: StatusCode,
    code: &'static str,
    text: Cow<'e, str>,
}

/// Declares the errors: for each its values, its status, its code (specification, "Errors"), and its text for people.
macro_rules! error_table {
    ($($(#[$doc:meta])* $name:ident $(($($value:ident: $type:ty),+))? => $status:expr, $code:expr, $text:expr;)+) => {
        /// An error of a request to the management plane.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub(crate) enum AdminError { $($(#[$doc])* $name $(($($type),+))?,)+ }

        impl AdminError {
            fn answer(&self) -> Answer<'_> {
                use StatusCode as S;
                match self {
                    $(Self::$name $(($($value),+))? => {
                        Answer { status: $status, code: $code, text: Cow::from($text) }
                    })+
                }
            }
        }
    };
}

fn wrong_role(roles: &[Role]) -> String {
    let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
    format!(
        "the role of this credential does not allow this operation, which requires the role {}",
        names.join(" or ")
    )
}

error_table! {
    /// No route has this path.
    NotFound => S::NOT_FOUND, "NOT_FOUND", "the route does not exist";
    /// The path has routes for other methods only: the value of `Allow`.
    MethodNotAllowed(allow: String) => S::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED",
        format!("this route accepts only {allow}");
    /// The credential is missing or wrong. Clients are not told which.
    Unauthenticated => S::UNAUTHORIZED, "UNAUTHENTICATED", UNAUTHENTICATED;
    /// `/metrics` without its token: whether one is configured.
    NotScraper(is_configured: bool) => S::UNAUTHORIZED, "UNAUTHENTICATED",
        if *is_configured { NOT_SCRAPER } else { NO_SCRAPER };
    /// The caller's role may not call the operation.
    Forbidden => S::FORBIDDEN, "FORBIDDEN", "the role of this credential does not allow this operation";
    /// The caller's role may not call the operation: which ones may.
    WrongRole(roles: &'static [Role]) => S::FORBIDDEN, "FORBIDDEN", wrong_role(roles);
    /// A member may not do this: what is missing.
    MissingRight(message: String) => S::FORBIDDEN, "FORBIDDEN", message;
    /// A browser added its stored root credential to a request from another site's page.
    CrossSite => S::FORBIDDEN, "FORBIDDEN",
        "a page of another site sent this request with the stored root credential; pages must send a management token";
    /// The console's listener got no valid session, or a wrong login: which.
    NoSession(message: &'static str) => S::UNAUTHORIZED, "UNAUTHENTICATED", *message;
    /// The provider cannot sign anybody in now: why.
    SignInUnavailable(message: String) => S::SERVICE_UNAVAILABLE, "SIGN_IN_UNAVAILABLE", message;
    /// The request did not come from a page of the console.
    NotOfConsole => S::FORBIDDEN, "FORBIDDEN", "this request did not come from a page of the console";
    /// The request is invalid: a status of class 4xx, and what is wrong.
    Invalid(status: StatusCode, message: String) => *status,
        if *status == S::PAYLOAD_TOO_LARGE { "PAYLOAD_TOO_LARGE" } else { "INVALID_REQUEST" }, message;
    /// `after_time` and `after_id` do not come from a page of audit events: what is wrong.
    InvalidAuditCursor(message: String) => S::BAD_REQUEST, "INVALID_AUDIT_CURSOR", message;
    /// `after_time` and `after_id` are not the position of a storage event or of a delivery: what is wrong.
    InvalidEventCursor(message: String) => S::BAD_REQUEST, "INVALID_EVENT_CURSOR", message;
    /// The URL of a webhook is not valid or not allowed: why, and which setting would allow it.
    InvalidWebhookTarget(message: String) => S::BAD_REQUEST, "INVALID_WEBHOOK_TARGET", message;
    /// No webhook has this id.
    WebhookNotFound => S::NOT_FOUND, "WEBHOOK_NOT_FOUND", "the webhook does not exist";
    /// No backup has this id, or there was none.
    BackupNotFound => S::NOT_FOUND, "BACKUP_NOT_FOUND", "no such backup was begun since the service was started";
    /// No delivery with this id is in the log.
    DeliveryNotFound => S::NOT_FOUND, "DELIVERY_NOT_FOUND", "no delivery with this id is in the log";
    /// The event of the delivery is no longer kept.
    EventNotKept => S::NOT_FOUND, "DELIVERY_NOT_FOUND",
        "the event of this delivery is no longer kept (events.retention_days, events.records_max)";
    /// The webhook is disabled.
    WebhookDisabled => S::CONFLICT, "WEBHOOK_DISABLED", "the webhook is disabled: enable it first";
    /// Storage events are off.
    EventsDisabled => S::CONFLICT, "EVENTS_DISABLED",
        "storage events are off: set events.enabled to true, and restart";
    /// No link of this kind has this id.
    LinkNotFound(kind: LinkKind) => S::NOT_FOUND,
        match kind { LinkKind::Share => "SHARE_NOT_FOUND", LinkKind::Embed => "EMBED_NOT_FOUND" },
        format!("the {} does not exist", kind.name());
    /// The sharing policy requires an expiry: what to do.
    ExpirationRequired(message: String) => S::BAD_REQUEST, "EXPIRATION_REQUIRED", message;
    /// The sharing policy does not allow so long a lifetime: what to do.
    LifetimeTooLong(message: String) => S::BAD_REQUEST, "LIFETIME_TOO_LONG", message;
    /// The configuration turns embeds off: which setting.
    SharingDisabled(message: String) => S::FORBIDDEN, "SHARING_DISABLED", message;
    /// An entry of `allowed_origins` is not an origin: which, and why.
    InvalidOrigin(message: String) => S::BAD_REQUEST, "INVALID_ORIGIN", message;
    /// The type of the object does not allow it to be embedded: the type, and what would be allowed.
    EmbedContentTypeRefused(message: String) => S::BAD_REQUEST, "EMBED_CONTENT_TYPE_REFUSED", message;
    /// An invalid bucket name: the rule that it breaks.
    InvalidBucketName(message: &'static str) => S::BAD_REQUEST, "INVALID_BUCKET_NAME", *message;
    // The contract gives this text.
    /// No bucket has this name.
    BucketNotFound => S::NOT_FOUND, "BUCKET_NOT_FOUND", "bucket was not found";
    /// No object has this key.
    ObjectNotFound => S::NOT_FOUND, "OBJECT_NOT_FOUND", "the object does not exist";
    /// An object of several is missing: a message that names it.
    ObjectsNotFound(message: String) => S::NOT_FOUND, "OBJECT_NOT_FOUND", message;
    /// No version has this id.
    VersionNotFound => S::NOT_FOUND, "VERSION_NOT_FOUND", "the version does not exist";
    /// The run was never begun, or the server has restarted since, or it is of another bucket.
    ImportNotFound => S::NOT_FOUND, "IMPORT_NOT_FOUND",
        "no such import is known; after a restart of the server, begin another one";
    /// A version cannot be imported as it is: why.
    ImportConflict(message: &'static str) => S::CONFLICT, "IMPORT_CONFLICT", *message;
    /// The store does not allow it as it is: why, and what to do.
    InvalidStoreState(message: String) => S::CONFLICT, "INVALID_STORE_STATE", message;
    /// No unfinished upload has this id.
    UploadNotFound => S::NOT_FOUND, "UPLOAD_NOT_FOUND",
        "the upload does not exist: it was never begun, or was completed or aborted";
    /// No service account has this id.
    AccountNotFound => S::NOT_FOUND, "SERVICE_ACCOUNT_NOT_FOUND", "the service account does not exist";
    /// The account has no credential with this id.
    CredentialNotFound => S::NOT_FOUND, "CREDENTIAL_NOT_FOUND", "the credential does not exist";
    /// No policy has this id.
    PolicyNotFound => S::NOT_FOUND, "POLICY_NOT_FOUND", "the policy does not exist";
    /// No management token has this id.
    TokenNotFound => S::NOT_FOUND, "TOKEN_NOT_FOUND", "the management token does not exist";
    /// No session with this id exists, or it is another's.
    SessionNotFound => S::NOT_FOUND, "SESSION_NOT_FOUND",
        "the session does not exist or has ended, or it is another's";
    /// No refused request with this id is in memory or in the audit trail.
    RefusedRequestNotFound => S::NOT_FOUND, "REFUSED_REQUEST_NOT_FOUND", REFUSED_REQUEST_NOT_FOUND;
    /// No lifecycle rule has this id.
    LifecycleRuleNotFound => S::NOT_FOUND, "LIFECYCLE_RULE_NOT_FOUND", "the lifecycle rule does not exist";
    /// A service account with this name exists.
    AccountAlreadyExists => S::CONFLICT, "SERVICE_ACCOUNT_ALREADY_EXISTS",
        "a service account with this name already exists";
    /// A credential has this access key, or root.
    AccessKeyExists => S::CONFLICT, "ACCESS_KEY_EXISTS", "a credential with this access key already exists";
    /// The policy is attached to accounts: a message with their number.
    PolicyInUse(message: String) => S::CONFLICT, "POLICY_IN_USE", message;
    /// The maximum number of entries of one kind exists: a message that names the kind.
    LimitReached(message: String) => S::CONFLICT, "LIMIT_REACHED", message;
    /// A bucket with this name exists.
    BucketAlreadyExists => S::CONFLICT, "BUCKET_ALREADY_EXISTS", "a bucket with this name already exists";
    /// The bucket is not empty: what it holds.
    BucketNotEmpty(contents: String) => S::CONFLICT, "BUCKET_NOT_EMPTY",
        format!("the bucket is not empty: it holds {contents}");
    /// Public access is disabled by the configuration, and a rule would be added.
    PublicAccessDisabled => S::FORBIDDEN, "PUBLIC_ACCESS_DISABLED",
        "public access is disabled by auth.public_access_enabled; rules can only be removed";
    /// The destination of a copy that must be absent has an object.
    ObjectAlreadyExists => S::CONFLICT, "OBJECT_ALREADY_EXISTS",
        "the destination already has an object, which if_absent keeps; choose another key, or send if_absent: false to replace it";
    /// The bucket's settings do not allow the change: the reason.
    InvalidBucketState(message: &'static str) => S::CONFLICT, "INVALID_BUCKET_STATE", *message;
    /// Nothing can be locked in a bucket without object lock.
    ObjectLockNotEnabled => S::CONFLICT, "OBJECT_LOCK_NOT_ENABLED",
        "the bucket has no object lock; it is turned on when a bucket is created, and never later";
    /// Object lock protects the version: what does not work.
    ObjectLocked(message: &'static str) => S::FORBIDDEN, "OBJECT_LOCKED", *message;
    /// The change would exceed the bucket's quota.
    QuotaExceeded => S::CONFLICT, "QUOTA_EXCEEDED", "the change would exceed the bucket's quota";
    /// The bucket already holds more than the new quota allows.
    QuotaBelowUsage => S::CONFLICT, "QUOTA_BELOW_USAGE",
        "the bucket already holds more than this quota allows";
    /// A precondition of the request failed (RFC 9110 section 13).
    PreconditionFailed => S::PRECONDITION_FAILED, "PRECONDITION_FAILED",
        "a precondition of the request failed";
    /// The range begins after the end of the object: its size in bytes.
    RangeNotSatisfiable(size: u64) => S::RANGE_NOT_SATISFIABLE, "RANGE_NOT_SATISFIABLE",
        format!("the range is outside the object, which has {size} bytes");
    /// The object has no preview: the reason.
    UnsupportedMediaType(message: &'static str) => S::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE",
        *message;
    /// No space is left on the device.
    StorageFull => S::INSUFFICIENT_STORAGE, "STORAGE_FULL", "no space is left on the device";
    /// The maximum number of such requests is already running: which.
    TooManyRequests(message: Cow<'static, str>) => S::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", &**message;
    /// The client has closed the connection. No one reads the response; the code appears in the request log.
    ClientDisconnected => S::SERVICE_UNAVAILABLE, "CLIENT_GONE", "the client has closed the connection";
    /// The service cannot handle the request now: the reason.
    NotReady(message: &'static str) => S::SERVICE_UNAVAILABLE, "NOT_READY", *message;
    /// An internal error. The log has the details under the same request id.
    Internal => S::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR",
        "an internal error occurred; the server log has the details under this request id";
}

// Long messages.
const UNAUTHENTICATED: &str = "authentication is required: send a management token (Authorization: Bearer) or the root credential (HTTP Basic)";
const NOT_SCRAPER: &str = "/metrics accepts only the scrape token (observability.metrics_scrape_token) as a bearer token; one is configured";
const NO_SCRAPER: &str = "/metrics accepts only the scrape token as a bearer token, and none is configured: set observability.metrics_scrape_token (SERVICE_METRICS_SCRAPE_TOKEN), and restart; with another token, GET /api/v1/system/metrics has the same figures as JSON";
const REFUSED_REQUEST_NOT_FOUND: &str = "no refused request with this id is in memory or denied in the audit trail: of requests that were not \
                 denied, only the last ones since the start are kept; look for the id in the log";

impl AdminError {
    /// Returns the error for an invalid request, with status 400.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(StatusCode::BAD_REQUEST, message.into())
    }

    /// Returns the HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.answer().status
    }

    /// Returns the code in the JSON body.
    pub(crate) fn code(&self) -> &'static str {
        self.answer().code
    }

    /// Returns the message for people.
    pub(crate) fn message(&self) -> String {
        self.answer().text.into_owned()
    }

    /// Logs an error that no client can do anything about.
    fn internal(error: &dyn Display) -> Self {
        tracing::error!(target: "service", %error, "a management request failed");
        Self::Internal
    }
}

/// Maps errors of the engine. The cause of an internal error is logged.
impl From<EngineError> for AdminError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NoSuchBucket => Self::BucketNotFound,
            EngineError::NoSuchKey | EngineError::DeleteMarker { .. } | EngineError::KeyTooLong => {
                Self::ObjectNotFound
            }
            EngineError::NoSuchVersion => Self::VersionNotFound,
            EngineError::ImportConflict(why) => Self::ImportConflict(why),
            EngineError::NeedsUpgrade { .. } | EngineError::UpgradeRefused(_) => {
                Self::InvalidStoreState(error.to_string())
            }
            EngineError::NoSuchUpload => Self::UploadNotFound,
            EngineError::NoSuchLifecycleRule => Self::LifecycleRuleNotFound,
            EngineError::BucketAlreadyExists => Self::BucketAlreadyExists,
            EngineError::BucketNotEmpty => {
                Self::BucketNotEmpty("objects, versions or delete markers".to_owned())
            }
            EngineError::InvalidBucketState => {
                Self::InvalidBucketState("the bucket's object lock does not allow this change")
            }
            EngineError::PreconditionFailed(_) => Self::PreconditionFailed,
            EngineError::PayloadTooLarge => Self::Invalid(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("an object of more than {PAYLOAD_BYTES_MAX} bytes cannot be written in one upload"),
            ),
            EngineError::Conflict => Self::NotReady("the bucket is being deleted; try again"),
            EngineError::ObjectLocked => {
                Self::ObjectLocked("the version is protected by a retention period or a legal hold")
            }
            EngineError::QuotaExceeded => Self::QuotaExceeded,
            EngineError::QuotaBelowUsage => Self::QuotaBelowUsage,
            EngineError::StorageFull => Self::StorageFull,
            EngineError::Overloaded => {
                Self::NotReady("too many changes or copies are waiting; try again later")
            }
            EngineError::AlreadyRunning(_) => Self::TooManyRequests(error.to_string().into()),
            EngineError::ShuttingDown => Self::NotReady("the service is shutting down"),
            error => Self::internal(&error),
        }
    }
}

impl AdminError {
    /// Maps a failure of a small store. `cause` is the message of the failure; that of an internal error is logged.
    fn of_store(failure: &StoreFailure, cause: &dyn Display) -> Self {
        match failure {
            StoreFailure::Full => Self::StorageFull,
            StoreFailure::Overloaded => Self::NotReady("too many requests are waiting"),
            StoreFailure::Closing => Self::NotReady("the service is shutting down"),
            StoreFailure::Failed(_) => Self::internal(cause),
        }
    }
}

/// Maps failures of the audit trail.
impl From<StoreFailure> for AdminError {
    fn from(failure: StoreFailure) -> Self {
        Self::of_store(&failure, &failure)
    }
}

/// Maps errors of webhooks. The cause of an internal error is logged.
impl From<WebhookError> for AdminError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::WebhookNotFound => Self::WebhookNotFound,
            WebhookError::DeliveryNotFound => Self::DeliveryNotFound,
            WebhookError::EventNotFound => Self::EventNotKept,
            WebhookError::Disabled => Self::WebhookDisabled,
            WebhookError::InvalidTarget(message) => Self::InvalidWebhookTarget(message),
            WebhookError::Invalid(message) => Self::invalid(message),
            WebhookError::TooMany { .. } => Self::LimitReached(error.to_string()),
            WebhookError::Store(ref failure) => Self::of_store(failure, &error),
        }
    }
}

/// Maps errors of shares and embeds.
impl From<LinkError> for AdminError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::NotFound(kind) => Self::LinkNotFound(kind),
            LinkError::Invalid(message) => Self::invalid(message),
            LinkError::ExpirationRequired => Self::ExpirationRequired(error.to_string()),
            LinkError::LifetimeTooLong { .. } => Self::LifetimeTooLong(error.to_string()),
            LinkError::EmbedsDisabled => Self::SharingDisabled(error.to_string()),
            LinkError::TooMany { .. } => Self::LimitReached(error.to_string()),
            LinkError::Store(ref failure) => Self::of_store(failure, &error),
        }
    }
}

/// Maps errors of the directory of accounts.
impl From<DirectoryError> for AdminError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::AccountNotFound => Self::AccountNotFound,
            DirectoryError::CredentialNotFound => Self::CredentialNotFound,
            DirectoryError::PolicyNotFound => Self::PolicyNotFound,
            DirectoryError::TokenNotFound => Self::TokenNotFound,
            DirectoryError::NameTaken => Self::AccountAlreadyExists,
            DirectoryError::AccessKeyExists => Self::AccessKeyExists,
            DirectoryError::PolicyInUse { .. } => Self::PolicyInUse(error.to_string()),
            DirectoryError::TooMany { .. } => Self::LimitReached(error.to_string()),
            DirectoryError::Invalid(message) => Self::invalid(message),
            DirectoryError::Store(ref failure) => Self::of_store(failure, &error),
        }
    }
}
