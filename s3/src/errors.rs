//! Every S3 error this server answers, in one table: code, HTTP status, default message; and the error as a value.
//!
//! Codes and statuses are those of AWS ("Error responses", List of error codes) unless `docs/api.md` says
//! otherwise. An [`S3Error`] owns what its answer needs; `reply.rs` makes the XML of it. Nothing here may put a
//! secret into a message: messages go to clients. Causes go to the log and never to clients: they name files and
//! devices.

use cairn_engine::EngineError;
use cairn_identity::AuthError;
use cairn_net::BodyError;
use std::borrow::Cow;

/// What a client is told that tried to remove, or to unlock, a locked version.
const OBJECT_LOCKED: &str = "Access Denied because object protected by object lock.";

/// One row of the table.
#[derive(Clone, Copy)]
pub(crate) struct ErrorRow {
    pub(crate) code: &'static str,
    pub(crate) status: u16,
    pub(crate) message: &'static str,
}

macro_rules! error_table {
    ($( $name:ident $status:literal $message:literal; )*) => {
        /// An S3 error code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum ErrorCode { $( $name, )* }

        impl ErrorCode {
            /// The row of this code.
            pub(crate) const fn row(self) -> ErrorRow {
                match self {
                    $( Self::$name => ErrorRow { code: stringify!($name), status: $status, message: $message }, )*
                }
            }

            /// All codes, for the tests.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[ $( Self::$name, )* ];
        }
    };
}

error_table! {
    AccessDenied 403 "Access Denied";
    AccessForbidden 403 "This CORS request is not allowed.";
    BadDigest 400 "The Content-MD5 or checksum value that you specified did not match what the server received.";
    BadRequest 400 "The request could not be understood.";
    BucketAlreadyOwnedByYou 409 "Your previous request to create the named bucket succeeded and you already own it.";
    BucketNotEmpty 409 "The bucket you tried to delete is not empty.";
    ConditionalRequestConflict 409 "A conflicting operation occurred during the request to this resource; try again.";
    EntityTooLarge 400 "Your proposed upload exceeds the maximum allowed size of 5 GiB for a single request.";
    EntityTooSmall 400 "Your proposed upload is smaller than the minimum allowed size: each part but the last has at least \
                        5 MiB.";
    ExpectationFailed 417 "The only expectation that is met is 100-continue.";
    HTTPVersionNotSupported 505 "The HTTP version of the request is not supported; use HTTP/1.1.";
    IncompleteBody 400 "The body ended before the number of bytes specified by the Content-Length header.";
    InsufficientStorage 507 "The store has no room for new data; reads and deletes still work.";
    InternalError 500 "We encountered an internal error. Please try again.";
    InvalidArgument 400 "Invalid Argument";
    InvalidBucketName 400 "The specified bucket is not valid.";
    InvalidBucketState 409 "The request is not valid for the current state of the bucket.";
    InvalidDigest 400 "The Content-MD5 you specified is not valid.";
    InvalidLocationConstraint 400 "The specified location constraint is not valid.";
    InvalidPart 400 "One or more of the specified parts could not be found. The part might not have been uploaded, or the \
                     specified entity tag might not have matched the part's entity tag.";
    InvalidPartNumber 416 "The requested part number is not satisfiable.";
    InvalidPartOrder 400 "The list of parts was not in ascending order. Parts must be ordered by part number.";
    InvalidRange 416 "The requested range is not satisfiable.";
    InvalidRequest 400 "Invalid Request";
    InvalidURI 400 "Couldn't parse the specified URI.";
    KeyTooLongError 400 "Your key is too long: a key has at most 1024 bytes of UTF-8.";
    MalformedXML 400 "The XML you provided was not well-formed or did not validate against our published schema.";
    MetadataTooLarge 400 "Your metadata headers exceed the maximum allowed metadata size of 2 KiB.";
    MethodNotAllowed 405 "The specified method is not allowed against this resource.";
    MissingContentLength 411 "You must provide the Content-Length HTTP header.";
    NoSuchBucket 404 "The specified bucket does not exist.";
    NoSuchCORSConfiguration 404 "The CORS configuration does not exist";
    NoSuchKey 404 "The specified key does not exist.";
    NoSuchObjectLockConfiguration 404 "The specified object does not have a ObjectLock configuration";
    NoSuchUpload 404 "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart \
                      upload might have been aborted or completed.";
    NoSuchVersion 404 "The specified version does not exist.";
    NotImplemented 501 "This server does not implement what the request asks for.";
    ObjectLockConfigurationNotFoundError 404 "Object Lock configuration does not exist for this bucket";
    OperationAborted 409 "A conflicting operation is in progress against this resource; try again.";
    PreconditionFailed 412 "At least one of the preconditions you specified did not hold.";
    QuotaExceeded 403 "The bucket's quota does not allow the object.";
    RequestHeaderSectionTooLarge 431 "Your request head exceeds the maximum allowed size of 32 KiB.";
    RequestTimeout 400 "Your socket connection to the server was not read from or written to within the timeout period.";
    ServiceUnavailable 503 "The server is stopping; send the request again.";
    SlowDown 503 "The server has more work than it can queue; reduce your request rate.";
    XAmzContentSHA256Mismatch 400 "The provided 'x-amz-content-sha256' header does not match what was computed.";
}

/// The largest part of an [`S3Error`], behind a box so that results stay small.
#[derive(Debug)]
struct Details {
    code: &'static str,
    status: u16,
    message: Cow<'static, str>,
    elements: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    close: bool,
    /// What went wrong inside, for the log alone.
    cause: Option<Cow<'static, str>>,
    /// Why who asked may not do it.
    denied_because: Option<String>,
    /// It stands for something that is missing, which who asked may not know: nobody was denied anything.
    hides_a_miss: bool,
    /// It is about what a copy is made of, not about what the request is for.
    is_of_source: bool,
}

/// A refusal or a failure, ready to be answered.
#[derive(Debug)]
pub(crate) struct S3Error(Box<Details>);

/// What an operation yields.
pub(crate) type S3Result<T> = Result<T, S3Error>;

impl S3Error {
    /// An error with the message of the table.
    pub(crate) fn new(code: ErrorCode) -> Self {
        Self::with_message(code, code.row().message)
    }

    /// An error whose message says more than the table's.
    pub(crate) fn with_message(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let row = code.row();
        Self(Box::new(Details {
            code: row.code,
            status: row.status,
            message: message.into(),
            elements: Vec::new(),
            headers: Vec::new(),
            close: false,
            cause: None,
            denied_because: None,
            hides_a_miss: false,
            is_of_source: false,
        }))
    }

    /// A 501 whose message says what would work instead.
    pub(crate) fn not_implemented(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::NotImplemented, message)
    }

    /// `InvalidRequest` with what is wrong.
    pub(crate) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::InvalidRequest, message)
    }

    /// `InvalidArgument` with the name and the value of the argument, as AWS sends them.
    pub(crate) fn invalid_argument(
        name: &'static str,
        value: &str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::with_message(ErrorCode::InvalidArgument, message)
            .element("ArgumentName", name)
            .element("ArgumentValue", value)
    }

    /// Adds an element to the error's XML.
    pub(crate) fn element(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.elements.push((name, value.into()));
        self
    }

    /// Adds a header to the answer.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Has the connection closed after the answer, because what follows on it cannot be trusted.
    pub(crate) fn closing(mut self) -> Self {
        self.0.close = true;
        self
    }

    /// A failure of this server, with what the log says of it.
    pub(crate) fn internal(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InternalError).caused_by(cause)
    }

    /// A refusal of who asked: what the client and the audit trail are told of the reason.
    pub(crate) fn denied(because: String) -> Self {
        let mut error = Self::with_message(ErrorCode::AccessDenied, format!("Access Denied: {because}."));
        error.0.denied_because = Some(because);
        error
    }

    /// Why who asked may not do it, if that is what the error is about.
    pub(crate) fn denied_because(&self) -> Option<&str> {
        self.0.denied_because.as_deref()
    }

    /// The error stands in the place of another, that something is missing.
    pub(crate) fn hiding_a_miss(mut self) -> Self {
        self.0.hides_a_miss = true;
        self
    }

    /// Whether it stands for something that is missing.
    pub(crate) fn hides_a_miss(&self) -> bool {
        self.0.hides_a_miss
    }

    /// The error is about what a copy is made of.
    pub(crate) fn of_source(mut self) -> Self {
        self.0.is_of_source = true;
        self
    }

    /// Whether it is about what a copy is made of.
    pub(crate) fn is_of_source(&self) -> bool {
        self.0.is_of_source
    }

    fn caused_by(mut self, cause: impl Into<Cow<'static, str>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// What the log says when this server, and not the request, is to blame for the error.
    pub(crate) fn failure_cause(&self) -> Option<&str> {
        let own = matches!(self.status(), 500 | 503 | 507);
        own.then(|| self.0.cause.as_deref().unwrap_or(self.message()))
    }

    /// Whether stored data, the device or a defect here failed the request.
    pub(crate) fn is_internal(&self) -> bool {
        self.status() == 500
    }

    /// The S3 error code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    /// The message for the client.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Further elements of the error's XML.
    pub(crate) fn elements(&self) -> &[(&'static str, String)] {
        &self.0.elements
    }

    /// Headers of the answer.
    pub(crate) fn headers(&self) -> &[(&'static str, String)] {
        &self.0.headers
    }

    /// Whether the connection must be closed after the answer.
    pub(crate) fn closes(&self) -> bool {
        self.0.close
    }
}

impl From<ErrorCode> for S3Error {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl From<AuthError> for S3Error {
    fn from(error: AuthError) -> Self {
        Self(Box::new(Details {
            code: error.code(),
            status: error.status(),
            message: error.message().into(),
            elements: error.details(),
            headers: Vec::new(),
            close: false,
            cause: None,
            denied_because: None,
            hides_a_miss: false,
            is_of_source: false,
        }))
    }
}

impl From<BodyError> for S3Error {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::TimedOut => ErrorCode::RequestTimeout,
            BodyError::Incomplete | BodyError::Io(_) => ErrorCode::IncompleteBody,
        };
        // What is left on the connection is the rest of a body, not a request.
        Self::new(code).closing()
    }
}

impl From<EngineError> for S3Error {
    fn from(error: EngineError) -> Self {
        let code = match &error {
            EngineError::NoSuchBucket => ErrorCode::NoSuchBucket,
            EngineError::BucketAlreadyExists => ErrorCode::BucketAlreadyOwnedByYou,
            EngineError::BucketNotEmpty => ErrorCode::BucketNotEmpty,
            EngineError::Conflict => ErrorCode::OperationAborted,
            EngineError::NoSuchKey | EngineError::DeleteMarker { .. } => ErrorCode::NoSuchKey,
            EngineError::NoSuchVersion => ErrorCode::NoSuchVersion,
            EngineError::ObjectLocked => ErrorCode::AccessDenied,
            EngineError::InvalidBucketState => ErrorCode::InvalidBucketState,
            EngineError::QuotaExceeded => ErrorCode::QuotaExceeded,
            EngineError::QuotaBelowUsage => ErrorCode::InvalidRequest,
            EngineError::NoSuchUpload => ErrorCode::NoSuchUpload,
            EngineError::InvalidPart(_) => ErrorCode::InvalidPart,
            EngineError::PreconditionFailed => ErrorCode::PreconditionFailed,
            EngineError::KeyTooLong => ErrorCode::KeyTooLongError,
            EngineError::StorageFull => ErrorCode::InsufficientStorage,
            EngineError::ShuttingDown => ErrorCode::ServiceUnavailable,
            EngineError::PayloadTooLarge => ErrorCode::EntityTooLarge,
            EngineError::Overloaded => ErrorCode::SlowDown,
            EngineError::Corrupt(_) | EngineError::Io(_) => ErrorCode::InternalError,
        };
        let refused = match error {
            EngineError::ObjectLocked => Self::with_message(code, OBJECT_LOCKED),
            _ => Self::new(code),
        };
        // Spares the many 404s a text that nobody reads.
        if refused.failure_cause().is_some() { refused.caused_by(error.to_string()) } else { refused }
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorCode, S3Error};
    use cairn_engine::EngineError;

    #[test]
    fn every_code_has_an_error_status_and_a_message() {
        for code in ErrorCode::ALL {
            let row = code.row();
            assert!((400..600).contains(&row.status), "{}", row.code);
            assert!(!row.message.is_empty(), "{}", row.code);
            assert_eq!(row.code, format!("{code:?}"));
        }
    }

    #[test]
    fn every_code_is_documented_under_its_status() {
        let documentation = include_str!("../../docs/api.md");
        for code in ErrorCode::ALL {
            let row = code.row();
            let start = format!("| {} |", row.status);
            let line = documentation.lines().find(|line| line.starts_with(&start));
            assert!(line.is_some_and(|line| line.contains(&format!("`{}`", row.code))), "{}", row.code);
        }
    }

    /// The text of the engine's error was dropped, and a 500 in the request log had no line that said why.
    #[test]
    fn a_failure_tells_the_log_its_cause_and_the_client_nothing_more() {
        for (error, status, code) in [
            (EngineError::Io("/dev/sdb: bad".into()), 500, "InternalError"),
            (EngineError::Corrupt("block 3".into()), 500, "InternalError"),
            (EngineError::StorageFull, 507, "InsufficientStorage"),
            (EngineError::Overloaded, 503, "SlowDown"),
            (EngineError::ShuttingDown, 503, "ServiceUnavailable"),
        ] {
            let cause = error.to_string();
            let failure = S3Error::from(error);
            assert_eq!((failure.status(), failure.code()), (status, code));
            assert_eq!(failure.failure_cause(), Some(&*cause));
            assert!(!failure.message().contains("sdb") && !failure.message().contains("block"));
            assert!(failure.elements().is_empty() && failure.headers().is_empty());
        }
        let refusals = [S3Error::from(EngineError::NoSuchKey), S3Error::not_implemented("x: y.")];
        assert!(refusals.iter().all(|refused| refused.failure_cause().is_none()));
    }
}
