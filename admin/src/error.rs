//! Refusals of the management plane: one enum, and the one place that gives each its status and code.

use cairn_engine::EngineError;
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
            Self::NotFound | Self::BucketNotFound | Self::ObjectNotFound | Self::VersionNotFound => {
                StatusCode::NOT_FOUND
            }
            Self::InvalidBucketName(_) | Self::InvalidAuditCursor(_) => StatusCode::BAD_REQUEST,
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
            Self::BucketNotFound => "the bucket does not exist".to_owned(),
            Self::ObjectNotFound => "the object does not exist".to_owned(),
            Self::VersionNotFound => "the version does not exist".to_owned(),
            Self::InvalidAuditCursor(message)
            | Self::InvalidBucketName(message)
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
            EngineError::ShuttingDown => Self::NotReady("the service is shutting down"),
            error => {
                tracing::error!(target: "service", %error, "a management request failed");
                Self::Internal
            }
        }
    }
}
