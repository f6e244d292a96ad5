//! Refusals of the management plane: one enum, and the one place that gives each its status and code.

use cairn_engine::EngineError;
use cairn_engine::limits::PAYLOAD_BYTES_MAX;
use cairn_identity::directory::DirectoryError;
use http::StatusCode;

/// Why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum AdminError {
    /// There is no such route.
    NotFound,
    /// The route exists, for other methods: the value of `Allow`.
    MethodNotAllowed(String),
    /// No credential, or one that is not right. Which of the two is not said.
    Unauthenticated,
    /// The caller's role does not have the route.
    Forbidden,
    /// A browser sent its stored root credential along with a request of another site's page.
    CrossSite,
    /// The request could not be understood; the status says in which way.
    Invalid(StatusCode, String),
    /// `after_time` and `after_id` that no page gave: what is wrong with them.
    InvalidAuditCursor(&'static str),
    /// A bucket name that is none: the rule that it breaks.
    InvalidBucketName(&'static str),
    /// No bucket of the name.
    BucketNotFound,
    /// No object of the key.
    ObjectNotFound,
    /// No version of the id.
    VersionNotFound,
    /// No service account of the id.
    AccountNotFound,
    /// The account has no credential of the id.
    CredentialNotFound,
    /// No policy of the id.
    PolicyNotFound,
    /// No management token of the id.
    TokenNotFound,
    /// A service account of the name is there.
    AccountAlreadyExists,
    /// The policy is attached to accounts: a sentence that says to how many.
    PolicyInUse(String),
    /// There are as many as may be: a sentence that says of what.
    LimitReached(String),
    /// A bucket of the name is there.
    BucketAlreadyExists,
    /// The bucket holds something.
    BucketNotEmpty,
    /// The bucket's settings do not allow it: which, and why.
    InvalidBucketState(&'static str),
    /// The version is locked.
    ObjectLocked,
    /// The bucket's quota would be passed.
    QuotaExceeded,
    /// The bucket holds more than the quota would allow.
    QuotaBelowUsage,
    /// A precondition of the request does not hold (RFC 9110 section 13).
    PreconditionFailed,
    /// The range lies past the end of so many bytes.
    RangeNotSatisfiable(u64),
    /// The object's content is none that is shown: why.
    UnsupportedMediaType(&'static str),
    /// No space is left on the device.
    StorageFull,
    /// As many as may run at once are running.
    TooManyRequests(&'static str),
    /// The client has closed the connection: whatever is answered, nobody reads it. Stands in the log.
    ClientGone,
    /// The service cannot take the request now.
    NotReady(&'static str),
    /// A defect; the log has the particulars, under the same request id.
    Internal,
}

impl AdminError {
    /// A request that says something wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(StatusCode::BAD_REQUEST, message.into())
    }

    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound
            | Self::BucketNotFound
            | Self::ObjectNotFound
            | Self::VersionNotFound
            | Self::AccountNotFound
            | Self::CredentialNotFound
            | Self::PolicyNotFound
            | Self::TokenNotFound => StatusCode::NOT_FOUND,
            Self::InvalidBucketName(_) | Self::InvalidAuditCursor(_) => StatusCode::BAD_REQUEST,
            Self::Forbidden | Self::CrossSite | Self::ObjectLocked => StatusCode::FORBIDDEN,
            Self::BucketAlreadyExists
            | Self::AccountAlreadyExists
            | Self::PolicyInUse(_)
            | Self::LimitReached(_)
            | Self::BucketNotEmpty
            | Self::InvalidBucketState(_)
            | Self::QuotaExceeded
            | Self::QuotaBelowUsage => StatusCode::CONFLICT,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::RangeNotSatisfiable(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Invalid(status, _) => *status,
            Self::NotReady(_) | Self::ClientGone => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed(_) => "METHOD_NOT_ALLOWED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden | Self::CrossSite => "FORBIDDEN",
            Self::AccountNotFound => "SERVICE_ACCOUNT_NOT_FOUND",
            Self::CredentialNotFound => "CREDENTIAL_NOT_FOUND",
            Self::PolicyNotFound => "POLICY_NOT_FOUND",
            Self::TokenNotFound => "TOKEN_NOT_FOUND",
            Self::AccountAlreadyExists => "SERVICE_ACCOUNT_ALREADY_EXISTS",
            Self::PolicyInUse(_) => "POLICY_IN_USE",
            Self::LimitReached(_) => "LIMIT_REACHED",
            Self::BucketAlreadyExists => "BUCKET_ALREADY_EXISTS",
            Self::BucketNotEmpty => "BUCKET_NOT_EMPTY",
            Self::InvalidBucketState(_) => "INVALID_BUCKET_STATE",
            Self::PreconditionFailed => "PRECONDITION_FAILED",
            Self::RangeNotSatisfiable(_) => "RANGE_NOT_SATISFIABLE",
            Self::UnsupportedMediaType(_) => "UNSUPPORTED_MEDIA_TYPE",
            Self::ObjectLocked => "OBJECT_LOCKED",
            Self::QuotaExceeded => "QUOTA_EXCEEDED",
            Self::QuotaBelowUsage => "QUOTA_BELOW_USAGE",
            Self::StorageFull => "STORAGE_FULL",
            Self::Invalid(StatusCode::PAYLOAD_TOO_LARGE, _) => "PAYLOAD_TOO_LARGE",
            Self::Invalid(..) => "INVALID_REQUEST",
            Self::InvalidAuditCursor(_) => "INVALID_AUDIT_CURSOR",
            Self::InvalidBucketName(_) => "INVALID_BUCKET_NAME",
            Self::BucketNotFound => "BUCKET_NOT_FOUND",
            Self::ObjectNotFound => "OBJECT_NOT_FOUND",
            Self::VersionNotFound => "VERSION_NOT_FOUND",
            Self::TooManyRequests(_) => "TOO_MANY_REQUESTS",
            Self::NotReady(_) => "NOT_READY",
            Self::ClientGone => "CLIENT_GONE",
            Self::Internal => "INTERNAL_ERROR",
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::NotFound => "there is no such route".to_owned(),
            Self::MethodNotAllowed(allow) => format!("this route takes {allow}"),
            Self::Unauthenticated => {
                "a management token (Authorization: Bearer) or the root credential (HTTP Basic) is needed"
                    .to_owned()
            }
            Self::Invalid(_, message) => message.clone(),
            Self::ClientGone => "the client has closed the connection".to_owned(),
            Self::CrossSite => {
                "a page of another site sent this with the stored root credential; pages send a management token".to_owned()
            }
            Self::Forbidden => "the role of this credential does not allow it".to_owned(),
            Self::BucketAlreadyExists => "a bucket of this name exists already".to_owned(),
            Self::BucketNotEmpty => {
                "the bucket is not empty: it holds objects, versions, delete markers or unfinished uploads"
                    .to_owned()
            }
            Self::PreconditionFailed => "a precondition of the request does not hold".to_owned(),
            Self::RangeNotSatisfiable(size) => {
                format!("the range lies outside of the object, which has {size} bytes")
            }
            Self::ObjectLocked => "the version is locked by a retention or a legal hold".to_owned(),
            Self::QuotaExceeded => "the bucket's quota would be passed".to_owned(),
            Self::QuotaBelowUsage => "the bucket holds more than this quota allows".to_owned(),
            Self::StorageFull => "no space is left on the device".to_owned(),
            Self::AccountNotFound => "service account was not found".to_owned(),
            Self::CredentialNotFound => "credential was not found".to_owned(),
            Self::PolicyNotFound => "policy was not found".to_owned(),
            Self::TokenNotFound => "management token was not found".to_owned(),
            Self::AccountAlreadyExists => "a service account of this name exists already".to_owned(),
            Self::PolicyInUse(message) | Self::LimitReached(message) => message.clone(),
            Self::BucketNotFound => "bucket was not found".to_owned(),
            Self::ObjectNotFound => "the object does not exist".to_owned(),
            Self::VersionNotFound => "the version does not exist".to_owned(),
            Self::InvalidAuditCursor(message)
            | Self::InvalidBucketName(message)
            | Self::InvalidBucketState(message)
            | Self::UnsupportedMediaType(message)
            | Self::TooManyRequests(message)
            | Self::NotReady(message) => (*message).to_owned(),
            Self::Internal => "the service failed; its log has this request id".to_owned(),
        }
    }
}

/// What the engine refused or failed. The cause of a failure goes to the log.
impl From<EngineError> for AdminError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NoSuchBucket => Self::BucketNotFound,
            EngineError::NoSuchKey | EngineError::DeleteMarker { .. } | EngineError::KeyTooLong => {
                Self::ObjectNotFound
            }
            EngineError::NoSuchVersion => Self::VersionNotFound,
            EngineError::BucketAlreadyExists => Self::BucketAlreadyExists,
            EngineError::BucketNotEmpty => Self::BucketNotEmpty,
            EngineError::InvalidBucketState => {
                Self::InvalidBucketState("the bucket's object lock does not allow it")
            }
            EngineError::PreconditionFailed => Self::PreconditionFailed,
            EngineError::PayloadTooLarge => Self::Invalid(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("an object of more than {PAYLOAD_BYTES_MAX} bytes cannot be written in one piece"),
            ),
            EngineError::Conflict => Self::NotReady("the bucket is just being deleted; try again"),
            EngineError::ObjectLocked => Self::ObjectLocked,
            EngineError::QuotaExceeded => Self::QuotaExceeded,
            EngineError::QuotaBelowUsage => Self::QuotaBelowUsage,
            EngineError::StorageFull => Self::StorageFull,
            EngineError::Overloaded => Self::NotReady("too many changes are waiting"),
            EngineError::ShuttingDown => Self::NotReady("the service is shutting down"),
            error => {
                tracing::error!(target: "service", %error, "a management request failed");
                Self::Internal
            }
        }
    }
}

/// What the directory of accounts refused or failed. The cause of a failure goes to the log.
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
            DirectoryError::Full => Self::StorageFull,
            DirectoryError::Overloaded => Self::NotReady("too many changes are waiting"),
            DirectoryError::ShuttingDown => Self::NotReady("the service is shutting down"),
            DirectoryError::Failed(_) => {
                tracing::error!(target: "service", %error, "a management request failed");
                Self::Internal
            }
        }
    }
}
