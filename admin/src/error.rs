//! Errors of the management plane, with their status, code and message.

use cairn_engine::EngineError;
use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use cairn_identity::directory::DirectoryError;
use cairn_sharing::{LinkKind, SharingError};
use cairn_tables::StoreFailure;
use cairn_webhooks::WebhookError;
use http::StatusCode;

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AdminError {
    /// No route has this path.
    NotFound,
    /// The path has routes for other methods only: the value of `Allow`.
    MethodNotAllowed(String),
    /// The credential is missing or wrong. Clients are not told which.
    Unauthenticated,
    /// `/metrics` without its token: whether one is configured.
    NotScraper { is_configured: bool },
    /// The caller's role may not call the operation.
    Forbidden,
    /// A browser added its stored root credential to a request from another site's page.
    CrossSite,
    /// The console's listener got no valid session, or a wrong login: which.
    NoSession(&'static str),
    /// The request did not come from a page of the console.
    NotOfConsole,
    /// The request is invalid: a status of class 4xx, and what is wrong.
    Invalid(StatusCode, String),
    /// `after_time` and `after_id` do not come from a page of audit events: what is wrong.
    InvalidAuditCursor(&'static str),
    /// `after_time` and `after_id` are not the position of a storage event or of a delivery: what is wrong.
    InvalidEventCursor(&'static str),
    /// The URL of a webhook is not valid or not allowed: why, and which setting would allow it.
    InvalidWebhookTarget(String),
    /// No webhook has this id.
    WebhookNotFound,
    /// No delivery with this id is in the log.
    DeliveryNotFound,
    /// The event of the delivery is no longer kept.
    EventNotKept,
    /// The webhook is disabled.
    WebhookDisabled,
    /// Storage events are off.
    EventsDisabled,
    /// No link of this kind has this id.
    LinkNotFound(LinkKind),
    /// The sharing policy requires an expiry: what to do.
    ExpirationRequired(String),
    /// The sharing policy does not allow so long a lifetime: what to do.
    LifetimeTooLong(String),
    /// The configuration turns embeds off: which setting.
    SharingDisabled(String),
    /// An entry of `allowed_origins` is not an origin: which, and why.
    InvalidOrigin(String),
    /// The type of the object does not allow it to be embedded: the type, and what would be allowed.
    EmbedContentTypeRefused(String),
    /// An invalid bucket name: the rule that it breaks.
    InvalidBucketName(&'static str),
    /// No bucket has this name.
    BucketNotFound,
    /// No object has this key.
    ObjectNotFound,
    /// No version has this id.
    VersionNotFound,
    /// No unfinished upload has this id.
    UploadNotFound,
    /// No service account has this id.
    AccountNotFound,
    /// The account has no credential with this id.
    CredentialNotFound,
    /// No policy has this id.
    PolicyNotFound,
    /// No management token has this id.
    TokenNotFound,
    /// No session with this id exists, or it is another's.
    SessionNotFound,
    /// No refused request with this id is in memory.
    RefusedRequestNotFound,
    /// No lifecycle rule has this id.
    LifecycleRuleNotFound,
    /// A service account with this name exists.
    AccountAlreadyExists,
    /// The policy is attached to accounts: a message with their number.
    PolicyInUse(String),
    /// The maximum number of entries of one kind exists: a message that names the kind.
    LimitReached(String),
    /// A bucket with this name exists.
    BucketAlreadyExists,
    /// The bucket is not empty: what it holds.
    BucketNotEmpty(String),
    /// The bucket's settings do not allow the change: the reason.
    InvalidBucketState(&'static str),
    /// Nothing can be locked in a bucket without object lock.
    ObjectLockNotEnabled,
    /// Object lock protects the version: what does not work.
    ObjectLocked(&'static str),
    /// The change would exceed the bucket's quota.
    QuotaExceeded,
    /// The bucket already holds more than the new quota allows.
    QuotaBelowUsage,
    /// A precondition of the request failed (RFC 9110 section 13).
    PreconditionFailed,
    /// The range begins after the end of the object: its size in bytes.
    RangeNotSatisfiable(u64),
    /// The object has no preview: the reason.
    UnsupportedMediaType(&'static str),
    /// No space is left on the device.
    StorageFull,
    /// The maximum number of such requests is already running: which.
    TooManyRequests(&'static str),
    /// The client has closed the connection. No one reads the response; the code appears in the request log.
    ClientDisconnected,
    /// The service cannot handle the request now: the reason.
    NotReady(&'static str),
    /// An internal error. The log has the details under the same request id.
    Internal,
}

// Long messages.
const UNAUTHENTICATED: &str = "authentication is required: send a management token (Authorization: Bearer) or the root credential (HTTP Basic)";
const NOT_SCRAPER: &str = "/metrics accepts only the scrape token (observability.metrics_scrape_token) as a bearer token; one is configured";
const NO_SCRAPER: &str = "/metrics accepts only the scrape token as a bearer token, and none is configured: set observability.metrics_scrape_token (SERVICE_METRICS_SCRAPE_TOKEN), and restart; with another token, GET /api/v1/system/metrics has the same figures as JSON";
const REFUSED_REQUEST_NOT_FOUND: &str = "no refused request with this id is in memory: only the last ones since the start are kept; look for the \
                 id in the audit trail and in the log";

impl AdminError {
    /// Returns the error for an invalid request, with status 400.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(StatusCode::BAD_REQUEST, message.into())
    }

    /// Returns the HTTP status.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound
            | Self::BucketNotFound
            | Self::ObjectNotFound
            | Self::VersionNotFound
            | Self::UploadNotFound
            | Self::AccountNotFound
            | Self::CredentialNotFound
            | Self::PolicyNotFound
            | Self::LifecycleRuleNotFound
            | Self::TokenNotFound
            | Self::SessionNotFound
            | Self::RefusedRequestNotFound
            | Self::WebhookNotFound
            | Self::DeliveryNotFound
            | Self::LinkNotFound(_)
            | Self::EventNotKept => StatusCode::NOT_FOUND,
            Self::InvalidBucketName(_)
            | Self::InvalidAuditCursor(_)
            | Self::InvalidEventCursor(_)
            | Self::InvalidWebhookTarget(_)
            | Self::ExpirationRequired(_)
            | Self::LifetimeTooLong(_)
            | Self::InvalidOrigin(_)
            | Self::EmbedContentTypeRefused(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden
            | Self::CrossSite
            | Self::NotOfConsole
            | Self::ObjectLocked(_)
            | Self::SharingDisabled(_) => StatusCode::FORBIDDEN,
            Self::BucketAlreadyExists
            | Self::EventsDisabled
            | Self::WebhookDisabled
            | Self::AccountAlreadyExists
            | Self::PolicyInUse(_)
            | Self::LimitReached(_)
            | Self::BucketNotEmpty(_)
            | Self::InvalidBucketState(_)
            | Self::ObjectLockNotEnabled
            | Self::QuotaExceeded
            | Self::QuotaBelowUsage => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::RangeNotSatisfiable(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated | Self::NoSession(_) | Self::NotScraper { .. } => StatusCode::UNAUTHORIZED,
            Self::Invalid(status, _) => *status,
            Self::NotReady(_) | Self::ClientDisconnected => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the code in the JSON body (specification, "Errors").
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed(_) => "METHOD_NOT_ALLOWED",
            Self::Unauthenticated | Self::NoSession(_) | Self::NotScraper { .. } => "UNAUTHENTICATED",
            Self::Forbidden | Self::CrossSite | Self::NotOfConsole => "FORBIDDEN",
            Self::AccountNotFound => "SERVICE_ACCOUNT_NOT_FOUND",
            Self::CredentialNotFound => "CREDENTIAL_NOT_FOUND",
            Self::PolicyNotFound => "POLICY_NOT_FOUND",
            Self::TokenNotFound => "TOKEN_NOT_FOUND",
            Self::SessionNotFound => "SESSION_NOT_FOUND",
            Self::RefusedRequestNotFound => "REFUSED_REQUEST_NOT_FOUND",
            Self::LifecycleRuleNotFound => "LIFECYCLE_RULE_NOT_FOUND",
            Self::AccountAlreadyExists => "SERVICE_ACCOUNT_ALREADY_EXISTS",
            Self::PolicyInUse(_) => "POLICY_IN_USE",
            Self::LimitReached(_) => "LIMIT_REACHED",
            Self::BucketAlreadyExists => "BUCKET_ALREADY_EXISTS",
            Self::BucketNotEmpty(_) => "BUCKET_NOT_EMPTY",
            Self::InvalidBucketState(_) => "INVALID_BUCKET_STATE",
            Self::ObjectLockNotEnabled => "OBJECT_LOCK_NOT_ENABLED",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::RangeNotSatisfiable(_) => "RANGE_NOT_SATISFIABLE",
            Self::UnsupportedMediaType(_) => "UNSUPPORTED_MEDIA_TYPE",
            Self::ObjectLocked(_) => "OBJECT_LOCKED",
            Self::QuotaExceeded => "QUOTA_EXCEEDED",
            Self::QuotaBelowUsage => "QUOTA_BELOW_USAGE",
            Self::StorageFull => "STORAGE_FULL",
            Self::Invalid(StatusCode::PAYLOAD_TOO_LARGE, _) => "PAYLOAD_TOO_LARGE",
            Self::Invalid(..) => "INVALID_REQUEST",
            Self::InvalidAuditCursor(_) => "INVALID_AUDIT_CURSOR",
            Self::InvalidEventCursor(_) => "INVALID_EVENT_CURSOR",
            Self::InvalidWebhookTarget(_) => "INVALID_WEBHOOK_TARGET",
            Self::WebhookNotFound => "WEBHOOK_NOT_FOUND",
            Self::DeliveryNotFound | Self::EventNotKept => "DELIVERY_NOT_FOUND",
            Self::WebhookDisabled => "WEBHOOK_DISABLED",
            Self::EventsDisabled => "EVENTS_DISABLED",
            Self::LinkNotFound(LinkKind::Share) => "SHARE_NOT_FOUND",
            Self::LinkNotFound(LinkKind::Embed) => "EMBED_NOT_FOUND",
            Self::ExpirationRequired(_) => "EXPIRATION_REQUIRED",
            Self::LifetimeTooLong(_) => "LIFETIME_TOO_LONG",
            Self::SharingDisabled(_) => "SHARING_DISABLED",
            Self::InvalidOrigin(_) => "INVALID_ORIGIN",
            Self::EmbedContentTypeRefused(_) => "EMBED_CONTENT_TYPE_REFUSED",
            Self::InvalidBucketName(_) => "INVALID_BUCKET_NAME",
            Self::BucketNotFound => "BUCKET_NOT_FOUND",
            Self::ObjectNotFound => "OBJECT_NOT_FOUND",
            Self::VersionNotFound => "VERSION_NOT_FOUND",
            Self::UploadNotFound => "UPLOAD_NOT_FOUND",
            Self::TooManyRequests(_) => "TOO_MANY_REQUESTS",
            Self::NotReady(_) => "NOT_READY",
            Self::ClientDisconnected => "CLIENT_GONE",
            Self::Internal => "INTERNAL_ERROR",
        }
    }

    /// Returns the message for people.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::NotFound => "the route does not exist".to_owned(),
            Self::MethodNotAllowed(allow) => format!("this route accepts only {allow}"),
            Self::Unauthenticated => UNAUTHENTICATED.to_owned(),
            Self::NotScraper { is_configured: true } => NOT_SCRAPER.to_owned(),
            Self::NotScraper { is_configured: false } => NO_SCRAPER.to_owned(),
            Self::Invalid(_, message) => message.clone(),
            Self::ClientDisconnected => "the client has closed the connection".to_owned(),
            Self::CrossSite => {
                "a page of another site sent this request with the stored root credential; pages must send a management token".to_owned()
            }
            Self::NotOfConsole => "this request did not come from a page of the console".to_owned(),
            Self::Forbidden => "the role of this credential does not allow this operation".to_owned(),
            Self::BucketAlreadyExists => "a bucket with this name already exists".to_owned(),
            Self::BucketNotEmpty(contents) => format!("the bucket is not empty: it holds {contents}"),
            Self::PreconditionFailed => "a precondition of the request failed".to_owned(),
            Self::RangeNotSatisfiable(size) => {
                format!("the range is outside the object, which has {size} bytes")
            }
            Self::QuotaExceeded => "the change would exceed the bucket's quota".to_owned(),
            Self::QuotaBelowUsage => "the bucket already holds more than this quota allows".to_owned(),
            Self::StorageFull => "no space is left on the device".to_owned(),
            Self::AccountNotFound => "the service account does not exist".to_owned(),
            Self::CredentialNotFound => "the credential does not exist".to_owned(),
            Self::PolicyNotFound => "the policy does not exist".to_owned(),
            Self::TokenNotFound => "the management token does not exist".to_owned(),
            Self::SessionNotFound => "the session does not exist or has ended, or it is another's".to_owned(),
            Self::RefusedRequestNotFound => REFUSED_REQUEST_NOT_FOUND.to_owned(),
            Self::LifecycleRuleNotFound => "the lifecycle rule does not exist".to_owned(),
            Self::AccountAlreadyExists => "a service account with this name already exists".to_owned(),
            Self::PolicyInUse(message)
            | Self::LimitReached(message)
            | Self::InvalidWebhookTarget(message)
            | Self::ExpirationRequired(message)
            | Self::LifetimeTooLong(message)
            | Self::SharingDisabled(message)
            | Self::InvalidOrigin(message)
            | Self::EmbedContentTypeRefused(message) => message.clone(),
            Self::LinkNotFound(kind) => format!("the {} does not exist", kind.name()),
            // The contract gives this text.
            Self::BucketNotFound => "bucket was not found".to_owned(),
            Self::ObjectNotFound => "the object does not exist".to_owned(),
            Self::ObjectLockNotEnabled => {
                "the bucket has no object lock; it is turned on when a bucket is created, and never later".to_owned()
            }
            Self::VersionNotFound => "the version does not exist".to_owned(),
            Self::UploadNotFound => {
                "the upload does not exist: it was never begun, or was completed or aborted".to_owned()
            }
            Self::WebhookNotFound => "the webhook does not exist".to_owned(),
            Self::DeliveryNotFound => "no delivery with this id is in the log".to_owned(),
            Self::EventNotKept => {
                "the event of this delivery is no longer kept (events.retention_days, events.records_max)".to_owned()
            }
            Self::WebhookDisabled => "the webhook is disabled: enable it first".to_owned(),
            Self::EventsDisabled => "storage events are off: set events.enabled to true, and restart".to_owned(),
            Self::NoSession(message)
            | Self::InvalidAuditCursor(message)
            | Self::InvalidEventCursor(message)
            | Self::InvalidBucketName(message)
            | Self::InvalidBucketState(message)
            | Self::ObjectLocked(message)
            | Self::UnsupportedMediaType(message)
            | Self::TooManyRequests(message)
            | Self::NotReady(message) => (*message).to_owned(),
            Self::Internal => "an internal error occurred; the server log has the details under this request id".to_owned(),
        }
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
            EngineError::NoSuchUpload => Self::UploadNotFound,
            EngineError::NoSuchLifecycleRule => Self::LifecycleRuleNotFound,
            EngineError::BucketAlreadyExists => Self::BucketAlreadyExists,
            EngineError::BucketNotEmpty => {
                Self::BucketNotEmpty("objects, versions, delete markers or unfinished uploads".to_owned())
            }
            EngineError::InvalidBucketState => {
                Self::InvalidBucketState("the bucket's object lock does not allow this change")
            }
            EngineError::PreconditionFailed => Self::PreconditionFailed,
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
            EngineError::ShuttingDown => Self::NotReady("the service is shutting down"),
            error => {
                tracing::error!(target: "service", %error, "a management request failed");
                Self::Internal
            }
        }
    }
}

impl AdminError {
    /// Maps a failure of a small store. `cause` is the message of the failure; that of an internal error is logged.
    fn of_store(failure: &StoreFailure, cause: &str) -> Self {
        match failure {
            StoreFailure::Full => Self::StorageFull,
            StoreFailure::Overloaded => Self::NotReady("too many requests are waiting"),
            StoreFailure::Closing => Self::NotReady("the service is shutting down"),
            StoreFailure::Failed(_) => {
                tracing::error!(target: "service", cause, "a management request failed");
                Self::Internal
            }
        }
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
            WebhookError::Store(ref failure) => Self::of_store(failure, &error.to_string()),
        }
    }
}

/// Maps errors of shares and embeds. The cause of an internal error is logged.
impl From<SharingError> for AdminError {
    fn from(error: SharingError) -> Self {
        match error {
            SharingError::NotFound(kind) => Self::LinkNotFound(kind),
            SharingError::Invalid(message) => Self::invalid(message),
            SharingError::ExpirationRequired => Self::ExpirationRequired(error.to_string()),
            SharingError::LifetimeTooLong { .. } => Self::LifetimeTooLong(error.to_string()),
            SharingError::EmbedsDisabled => Self::SharingDisabled(error.to_string()),
            SharingError::TooMany { .. } => Self::LimitReached(error.to_string()),
            SharingError::Store(ref failure) => Self::of_store(failure, &error.to_string()),
        }
    }
}

/// Maps errors of the directory of accounts. The cause of an internal error is logged.
impl From<DirectoryError> for AdminError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::AccountNotFound => Self::AccountNotFound,
            DirectoryError::CredentialNotFound => Self::CredentialNotFound,
            DirectoryError::PolicyNotFound => Self::PolicyNotFound,
            DirectoryError::TokenNotFound => Self::TokenNotFound,
            DirectoryError::NameTaken => Self::AccountAlreadyExists,
            DirectoryError::PolicyInUse { .. } => Self::PolicyInUse(error.to_string()),
            DirectoryError::TooMany { .. } => Self::LimitReached(error.to_string()),
            DirectoryError::Invalid(message) => Self::invalid(message),
            DirectoryError::Store(ref failure) => Self::of_store(failure, &error.to_string()),
        }
    }
}
