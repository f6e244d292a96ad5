//! Refusals of the management plane: one enum, and the one place that gives each its status and code.

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
    /// The service cannot take the request now.
    NotReady(&'static str),
    /// A defect; the log has the particulars, under the same request id.
    Internal,
}

impl AdminError {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Invalid(status, _) => *status,
            Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed(_) => "METHOD_NOT_ALLOWED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Invalid(..) => "INVALID_REQUEST",
            Self::NotReady(_) => "NOT_READY",
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
            Self::NotReady(message) => (*message).to_owned(),
            Self::Internal => "the service failed; its log has this request id".to_owned(),
        }
    }
}
