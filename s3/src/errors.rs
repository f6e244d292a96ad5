//! The table of S3 errors: code, HTTP status, default message.
//!
//! Codes and statuses are those of AWS ("Error responses", List of error codes) unless `docs/s3-api.md` says otherwise.
//! An [`S3Error`] owns what its response needs; `reply` writes its XML. Messages go to clients and must not contain
//! secrets. Causes go to the log and never to clients, because they name files and devices.

use cairn_engine::EngineError;
use cairn_http1::HeadError;
use cairn_identity::AuthError;
use cairn_identity::policy::{Action, Decision, Resource};
use cairn_net::{BodyError, Rejection};
use cairn_observe::RefusingSetting;
use std::borrow::Cow;

/// The message for a client that tried to remove or to unlock a locked version.
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
    AccessControlListNotSupported 400 "The bucket does not allow ACLs";
    AccessDenied 403 "Access Denied";
    AccessForbidden 403 "This CORS request is not allowed.";
    BadDigest 400 "The Content-MD5 or checksum value that you specified did not match what the server received.";
    BadRequest 400 "The request could not be understood.";
    BucketAlreadyOwnedByYou 409 "Your previous request to create the named bucket succeeded and you already own it.";
    BucketNotEmpty 409 "The bucket you tried to delete is not empty.";
    ClientDisconnected 400 "The client closed the connection before the request was done.";
    ConditionalRequestConflict 409 "A conflicting operation occurred during the request to this resource; try again.";
    EntityTooLarge 400 "Your proposed upload exceeds the maximum allowed size of 5 GiB for a single request.";
    EntityTooSmall 400 "Your proposed upload is smaller than the minimum allowed size: each part but the last has at least \
                        5 MiB.";
    ExpectationFailed 417 "The only expectation that is met is 100-continue.";
    HTTPVersionNotSupported 505 "The HTTP version of the request is not supported; use HTTP/1.1.";
    IllegalVersioningConfigurationException 400 "The Versioning element must be specified";
    IncompleteBody 400 "The body ended before the number of bytes specified by the Content-Length header.";
    InsufficientStorage 507 "The store has no room for new data; reads and deletes still work.";
    IncorrectNumberOfFilesInPostRequest 400 "POST requires exactly one file upload per request.";
    InternalError 500 "We encountered an internal error. Please try again.";
    InvalidArgument 400 "Invalid Argument";
    InvalidBucketAclWithObjectOwnership 400 "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting: \
                                             grant access with the policies of service accounts.";
    InvalidBucketName 400 "The specified bucket is not valid.";
    InvalidBucketOwnerAWSAccountID 400 "The value of the expected bucket owner parameter must be an AWS Account ID.";
    InvalidBucketState 409 "The request is not valid for the current state of the bucket.";
    InvalidChunkSizeError 400 "The chunks of the body are too small: beyond the first 1000, they must have 512 bytes on average. \
                               Configure the client to send chunks of at least 8 KiB.";
    InvalidDigest 400 "The Content-MD5 you specified is not valid.";
    InvalidLocationConstraint 400 "The specified location constraint is not valid.";
    InvalidPart 400 "One or more of the specified parts could not be found. The part might not have been uploaded, or the \
                     specified entity tag might not have matched the part's entity tag.";
    InvalidPartNumber 416 "The requested part number is not satisfiable.";
    InvalidPartOrder 400 "The list of parts was not in ascending order. Parts must be ordered by part number.";
    InvalidPolicyDocument 400 "The content of the form does not meet the conditions specified in the policy document.";
    InvalidRange 416 "The requested range is not satisfiable.";
    InvalidRequest 400 "Invalid Request";
    InvalidTag 400 "The tag provided was not a valid tag.";
    InvalidURI 400 "Couldn't parse the specified URI.";
    KeyTooLongError 400 "Your key is too long: a key has at most 1024 bytes of UTF-8.";
    MalformedACLError 400 "The XML you provided was not well-formed or did not validate against our published schema";
    MalformedPOSTRequest 400 "The body of your POST request is not well-formed multipart/form-data.";
    MalformedTrailerError 400 "The request contained trailing data that was not well-formed or did not conform to our published \
                               schema.";
    MalformedPolicy 400 "Policies must be valid JSON and the first byte must be '{'";
    MalformedXML 400 "The XML you provided was not well-formed or did not validate against our published schema.";
    MaxPostPreDataLengthExceededError 400 "Your POST request fields preceding the upload file were too large: they may have 20 KiB, \
                                           and 32 KiB with their headers.";
    MetadataTooLarge 400 "Your metadata headers exceed the maximum allowed metadata size of 2 KiB.";
    MethodNotAllowed 405 "The specified method is not allowed against this resource.";
    MissingContentLength 411 "You must provide the Content-Length HTTP header.";
    MissingSecurityHeader 400 "Your request was missing a required header: send x-amz-acl, or an ACL in the body.";
    NoSuchBucket 404 "The specified bucket does not exist.";
    NoSuchPublicAccessBlockConfiguration 404 "The public access block configuration was not found";
    NoSuchBucketPolicy 404 "The bucket policy does not exist";
    NoSuchCORSConfiguration 404 "The CORS configuration does not exist";
    NoSuchKey 404 "The specified key does not exist.";
    NoSuchLifecycleConfiguration 404 "The lifecycle configuration does not exist";
    NoSuchObjectLockConfiguration 404 "The specified object does not have a ObjectLock configuration";
    NoSuchTagSet 404 "The TagSet does not exist";
    NoSuchUpload 404 "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart \
                      upload might have been aborted or completed.";
    NoSuchVersion 404 "The specified version does not exist.";
    NoSuchWebsiteConfiguration 404 "The specified bucket does not have a website configuration";
    NotImplemented 501 "This server does not implement what the request asks for.";
    ObjectLockConfigurationNotFoundError 404 "Object Lock configuration does not exist for this bucket";
    OperationAborted 409 "A conflicting operation is in progress against this resource; try again.";
    PreconditionFailed 412 "At least one of the preconditions you specified did not hold.";
    QuotaExceeded 403 "The bucket's quota does not allow the object.";
    ReplicationConfigurationNotFoundError 404 "The replication configuration was not found";
    RequestHeaderSectionTooLarge 431 "Your request head exceeds the maximum allowed size of 32 KiB or 192 header fields.";
    RequestTimeout 400 "Your socket connection to the server was not read from or written to within the timeout period.";
    ServerSideEncryptionConfigurationNotFoundError 404 "The server side encryption configuration was not found";
    ServiceUnavailable 503 "The server is stopping; send the request again.";
    SignatureDoesNotMatch 403 "The signature of a chunk of the body does not match the one that we calculated. The body was altered \
                               on its way, or the client signs chunks in another way.";
    SlowDown 503 "The server has more work than it can queue; reduce your request rate.";
    UnexpectedContent 400 "This request does not support content";
    UserKeyMustBeSpecified 400 "The bucket POST must contain the specified field name: key. If it is specified, check the order of \
                                the fields.";
    XAmzContentSHA256Mismatch 400 "The provided 'x-amz-content-sha256' header does not match what was computed.";
}

/// A right that the principal does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeniedRight {
    pub(crate) action: Action,
    pub(crate) bucket: String,
    /// `None`: the bucket itself.
    pub(crate) key: Option<String>,
    /// Whether a policy denies it. Otherwise none allows it.
    pub(crate) is_denied_explicitly: bool,
    /// Whether it is allowed for objects that do not exist yet.
    pub(crate) is_for_new_objects: bool,
}

/// The content of an [`S3Error`], in a box so that results stay small.
#[derive(Debug)]
struct Details {
    code: &'static str,
    status: u16,
    message: Cow<'static, str>,
    elements: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    close: bool,
    /// The failure in this server, for the log only.
    cause: Option<Cow<'static, str>>,
    /// The reason why the principal is not allowed to do this.
    denied_because: Option<String>,
    /// The right that it does not have.
    denied_right: Option<DeniedRight>,
    /// The client could not be authenticated.
    is_about_signature: bool,
    /// The remedy, for the operator.
    advice: Option<&'static str>,
    /// The key of the configuration that would change the answer.
    setting: Option<RefusingSetting>,
    /// The error replaces a 404 that the principal may not see. Nothing was denied.
    hides_missing: bool,
    /// The error is about the source of a copy, not about its destination.
    is_about_source: bool,
}

/// A refusal or a failure, as the client is told about it.
#[derive(Debug)]
pub(crate) struct S3Error(Box<Details>);

/// The result of an operation.
pub(crate) type S3Result<T> = Result<T, S3Error>;

impl S3Error {
    /// Creates an error with the message of the table.
    pub(crate) fn new(code: ErrorCode) -> Self {
        Self::with_message(code, code.row().message)
    }

    /// Creates an error with a more specific message than the table's.
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
            denied_right: None,
            is_about_signature: false,
            advice: None,
            setting: None,
            hides_missing: false,
            is_about_source: false,
        }))
    }

    /// Replaces the message.
    pub(crate) fn saying(mut self, message: String) -> Self {
        self.0.message = message.into();
        self
    }

    /// Creates a 501 whose message names an alternative.
    pub(crate) fn not_implemented(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::NotImplemented, message)
    }

    /// Creates an `InvalidRequest` whose message says what is wrong.
    pub(crate) fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::InvalidRequest, message)
    }

    /// Creates an `InvalidArgument` with the name and the value of the argument, as AWS sends them.
    pub(crate) fn invalid_argument(name: &str, value: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid_argument_name(name, message).element("ArgumentValue", value)
    }

    /// Creates an `InvalidArgument` with the name of the argument alone, as AWS does for some.
    pub(crate) fn invalid_argument_name(name: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::with_message(ErrorCode::InvalidArgument, message).element("ArgumentName", name)
    }

    /// Adds an element to the error's XML.
    pub(crate) fn element(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.elements.push((name, value.into()));
        self
    }

    /// Adds a header to the response.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Closes the connection after the response, because the next bytes on it are not the start of a request.
    pub(crate) fn closing(mut self) -> Self {
        self.0.close = true;
        self
    }

    /// Creates an error for a failure of this server, with its cause for the log.
    pub(crate) fn internal(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InternalError).caused_by(cause)
    }

    /// Creates an authorization error. The reason is shown to the client and in the audit trail.
    pub(crate) fn denied(action: Action, resource: Resource<'_>, decision: Decision) -> Self {
        let is_denied_explicitly = decision == Decision::DeniedExplicitly;
        let is_for_new_objects = decision == Decision::AllowedIfAbsent;
        let (what, bucket, key) = match resource {
            Resource::Bucket(bucket) => ("the bucket", bucket, None),
            Resource::Object(bucket, key) => ("the object", bucket, Some(key.to_owned())),
        };
        let because = match decision {
            Decision::DeniedExplicitly => format!("a policy denies {action} on {what}"),
            Decision::AllowedIfAbsent => {
                format!("only_if_absent restricts {action} on {what} to new objects")
            }
            Decision::Allowed | Decision::DeniedImplicitly => format!("no policy allows {action} on {what}"),
        };
        let mut error = Self::with_message(ErrorCode::AccessDenied, format!("Access Denied: {because}."));
        error.0.denied_because = Some(because);
        let bucket = bucket.to_owned();
        error.0.denied_right =
            Some(DeniedRight { action, bucket, key, is_denied_explicitly, is_for_new_objects });
        error
    }

    /// Returns the right that the principal does not have, if that is why it was refused.
    pub(crate) fn denied_right(&self) -> Option<&DeniedRight> {
        self.0.denied_right.as_ref()
    }

    /// Returns whether the client could not be authenticated.
    pub(crate) fn is_about_signature(&self) -> bool {
        self.0.is_about_signature
    }

    /// Returns whether retention or a legal hold refused the request.
    pub(crate) fn is_about_lock(&self) -> bool {
        self.message() == OBJECT_LOCKED
    }

    /// Adds what helps, for the operator.
    pub(crate) fn advised(mut self, advice: &'static str) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// Returns what helps, for the operator, if it is known here.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        self.0.advice
    }

    /// Names the key of the configuration that would change the answer.
    pub(crate) fn setting_at(mut self, setting: RefusingSetting) -> Self {
        self.0.setting = Some(setting);
        self
    }

    /// Returns the key of the configuration that would change the answer, if it is known here.
    pub(crate) fn setting(&self) -> Option<RefusingSetting> {
        self.0.setting
    }

    /// Adds the reason of an authorization error, for the audit trail.
    pub(crate) fn denied_as(mut self, because: &str) -> Self {
        self.0.denied_because = Some(because.to_owned());
        self
    }

    /// Returns the reason of an authorization error.
    pub(crate) fn denied_because(&self) -> Option<&str> {
        self.0.denied_because.as_deref()
    }

    /// Marks the error as one that replaces a 404.
    pub(crate) fn hiding_missing(mut self) -> Self {
        self.0.hides_missing = true;
        self
    }

    /// Returns whether the error replaces a 404.
    pub(crate) fn hides_missing(&self) -> bool {
        self.0.hides_missing
    }

    /// Marks the error as one about the source of a copy.
    pub(crate) fn about_source(mut self) -> Self {
        self.0.is_about_source = true;
        self
    }

    /// Returns whether the error is about the source of a copy.
    pub(crate) fn is_about_source(&self) -> bool {
        self.0.is_about_source
    }

    fn caused_by(mut self, cause: impl Into<Cow<'static, str>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Returns the cause for the log, if this server failed and not the request.
    pub(crate) fn failure_cause(&self) -> Option<&str> {
        let is_failure = matches!(self.status(), 500 | 503 | 507);
        is_failure.then(|| self.0.cause.as_deref().unwrap_or(self.message()))
    }

    /// Describes the error for the audit trail: its code, and its cause or message.
    pub(crate) fn cause_text(&self) -> String {
        format!("{}: {}", self.code(), self.0.cause.as_deref().unwrap_or(self.message()))
    }

    /// Returns whether damaged data, the device or a defect of this program failed the request.
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

    /// Headers of the response.
    pub(crate) fn headers(&self) -> &[(&'static str, String)] {
        &self.0.headers
    }

    /// Returns whether the connection must be closed after the response.
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
            denied_right: None,
            is_about_signature: true,
            advice: error.advice(),
            setting: matches!(error, AuthError::DataPlaneRefused).then_some(RefusingSetting::RootS3Enabled),
            hides_missing: false,
            is_about_source: false,
        }))
    }
}

impl From<BodyError> for S3Error {
    fn from(error: BodyError) -> Self {
        let code = match error {
            BodyError::TimedOut => ErrorCode::RequestTimeout,
            BodyError::Stopping => ErrorCode::ServiceUnavailable,
            BodyError::Malformed(error) => {
                let message = format!("The body could not be understood: {error}.");
                return Self::with_message(ErrorCode::BadRequest, message).closing();
            }
            BodyError::Incomplete | BodyError::Io(_) => ErrorCode::IncompleteBody,
        };
        // The next bytes on the connection are the rest of a body, not a request.
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
            EngineError::QuotaBelowUsage
            | EngineError::NoSuchLifecycleRule
            | EngineError::TooManyLifecycleRules => ErrorCode::InvalidRequest,
            // No S3 request imports, or does what may run only once.
            EngineError::AlreadyRunning(_)
            | EngineError::ImportConflict(_)
            | EngineError::NeedsUpgrade { .. }
            | EngineError::UpgradeRefused(_) => ErrorCode::InternalError,
            EngineError::NoSuchUpload => ErrorCode::NoSuchUpload,
            EngineError::InvalidPart(_) => ErrorCode::InvalidPart,
            EngineError::PreconditionFailed(_) => ErrorCode::PreconditionFailed,
            EngineError::KeyTooLong => ErrorCode::KeyTooLongError,
            EngineError::StorageFull => ErrorCode::InsufficientStorage,
            EngineError::ShuttingDown => ErrorCode::ServiceUnavailable,
            EngineError::PayloadTooLarge => ErrorCode::EntityTooLarge,
            EngineError::Overloaded => ErrorCode::SlowDown,
            EngineError::Corrupt(_) | EngineError::Io(_) => ErrorCode::InternalError,
        };
        let refused = match error {
            EngineError::ObjectLocked => Self::with_message(code, OBJECT_LOCKED),
            EngineError::PreconditionFailed(condition) => {
                Self::new(code).element("Condition", condition.name())
            }
            _ => Self::new(code),
        };
        // Common errors such as 404 need no cause: formatting it would be wasted.
        if refused.failure_cause().is_some() { refused.caused_by(error.to_string()) } else { refused }
    }
}

/// Returns the error for a connection whose request could not be read.
pub(crate) fn rejection_error(reason: &Rejection) -> S3Error {
    match reason {
        Rejection::Head(HeadError::BadRequest(what)) => S3Error::with_message(
            ErrorCode::BadRequest,
            format!("The request could not be understood: {what}."),
        ),
        Rejection::Head(HeadError::TooLarge) => ErrorCode::RequestHeaderSectionTooLarge.into(),
        Rejection::Head(HeadError::VersionNotSupported) => ErrorCode::HTTPVersionNotSupported.into(),
        Rejection::Head(HeadError::TransferCodingNotSupported) => {
            S3Error::not_implemented("Transfer codings are not implemented: send a Content-Length.")
        }
        Rejection::Head(HeadError::ExpectationFailed) => ErrorCode::ExpectationFailed.into(),
        Rejection::HeadTimeout | Rejection::BodyTimeout => ErrorCode::RequestTimeout.into(),
        Rejection::PlainHttp => S3Error::with_message(
            ErrorCode::InvalidRequest,
            "This port speaks TLS: the address must begin with https.",
        ),
        Rejection::Panic => ErrorCode::InternalError.into(),
        Rejection::TooManyConnections => ErrorCode::SlowDown.into(),
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
        let documentation = include_str!("../../docs/s3-api.md");
        for code in ErrorCode::ALL {
            let row = code.row();
            let start = format!("| {} |", row.status);
            let line = documentation.lines().find(|line| line.starts_with(&start));
            assert!(line.is_some_and(|line| line.contains(&format!("`{}`", row.code))), "{}", row.code);
        }
    }

    /// The text of the engine's error was dropped, and no log line explained a 500 in the request log.
    #[test]
    fn cause_of_a_failure_is_not_sent_to_the_client() {
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
