//! Every way in which a request can fail to authenticate, and what S3 answers to each.
//!
//! This is the one place that maps a refusal to its S3 code, status, message and extra XML elements. No variant
//! holds a secret, so all of them may be logged.

use super::{ALGORITHM, PRESIGNED_LIFETIME_SECONDS_MAX, REQUEST_TIME_SKEW_SECONDS_MAX};
use std::fmt;

/// Why a request did not authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// Neither an `Authorization` header nor a signature in the query.
    NoAuthentication,
    /// Header and query authentication in one request.
    TwoMechanisms,
    /// Signature Version 2, in the header or in the query.
    SignatureVersion2,
    /// An `Authorization` header of the `AWS` scheme that is not even valid Signature Version 2.
    SignatureVersion2Malformed,
    /// The `Authorization` header cannot be read.
    HeaderMalformed(MalformedReason),
    /// The `X-Amz-*` parameters of a presigned URL cannot be read.
    QueryMalformed(MalformedReason),
    /// A header that may occur once occurs more often.
    HeaderRepeated {
        /// The name of the header.
        name: &'static str,
    },
    /// A way of signing that AWS has and this service has not.
    NotImplemented(UnsupportedSigning),
    /// Header authentication without `x-amz-content-sha256`.
    ContentSha256Missing,
    /// `x-amz-content-sha256` is neither a digest nor one of the fixed words.
    ContentSha256Invalid {
        /// The value as sent.
        value: String,
    },
    /// No date at all, or one that cannot be read.
    DateInvalid,
    /// The path or the query holds an invalid percent-encoding.
    UriInvalid,
    /// The clocks of client and server are too far apart.
    RequestTimeTooSkewed {
        /// The time of the request, `YYYYMMDDTHHMMSSZ`.
        request_time: String,
        /// Our time, ISO 8601.
        server_time: String,
    },
    /// A presigned URL from the future.
    NotYetValid {
        /// The time from which on the URL is valid, ISO 8601.
        valid_from: String,
        /// Our time, ISO 8601.
        server_time: String,
    },
    /// A presigned URL past its lifetime.
    Expired {
        /// The lifetime in seconds.
        lifetime_seconds: u64,
        /// When it ended, ISO 8601.
        expired_at: String,
        /// Our time, ISO 8601.
        server_time: String,
    },
    /// No credential has this access key.
    UnknownAccessKey {
        /// The access key as sent.
        access_key: String,
    },
    /// The signature is not the one that the request and the secret yield.
    SignatureMismatch(Box<SignatureMismatch>),
    /// The signature is right but leaves out headers that it has to cover.
    HeadersNotSigned {
        /// Their names, joined with `, `.
        names: String,
    },
    /// Rightly signed by a credential that may not be used for S3.
    DataPlaneRefused,
}

/// What a person needs to find out why two signatures differ; AWS returns the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureMismatch {
    /// The access key that was used.
    pub access_key: String,
    /// The string to sign as we computed it.
    pub string_to_sign: String,
    /// The canonical request as we computed it; bytes that are not UTF-8 are replaced.
    pub canonical_request: String,
    /// The signature as sent.
    pub signature_provided: String,
}

/// A way of signing that is refused with 501.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedSigning {
    /// `x-amz-security-token`, in the header or in the query.
    SecurityToken,
    /// `x-amz-content-sha256: STREAMING-…-TRAILER`: a checksum behind the body.
    StreamingTrailer,
    /// `x-amz-content-sha256: STREAMING-…`: the body signed chunk by chunk.
    StreamingPayload,
    /// SigV4A.
    Asymmetric,
}

impl UnsupportedSigning {
    /// Names the setting that makes a client work, as every 501 of this service does.
    const fn message(self) -> &'static str {
        match self {
            Self::SecurityToken => {
                "Session tokens (x-amz-security-token) are not implemented. Configure the access key and secret \
                 key alone and unset the session token (AWS_SESSION_TOKEN, aws_session_token); temporary \
                 credentials of this service need none."
            }
            Self::StreamingTrailer => {
                "Bodies with a trailing checksum (aws-chunked, STREAMING-*-TRAILER) are not implemented. Set \
                 request_checksum_calculation to when_required (AWS_REQUEST_CHECKSUM_CALCULATION=when_required, \
                 or requestChecksumCalculation WHEN_REQUIRED in code)."
            }
            Self::StreamingPayload => {
                "Bodies signed chunk by chunk (aws-chunked, STREAMING-AWS4-HMAC-SHA256-PAYLOAD) are not \
                 implemented. Switch chunked encoding off (chunkedEncodingEnabled(false) in the Java SDK), use \
                 https with clients made with minio-go (mc, restic, warp), or send x-amz-content-sha256 with the \
                 SHA-256 of the whole body or UNSIGNED-PAYLOAD."
            }
            Self::Asymmetric => {
                "Signature Version 4A (AWS4-ECDSA-P256-SHA256) is not implemented. Set the signature version of \
                 the client to s3v4 (AWS4-HMAC-SHA256) and address the bucket by name, not by an access point."
            }
        }
    }
}

/// What is wrong with an `Authorization` header or with the parameters of a presigned URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedReason {
    /// Not an authorization of a kind that is known.
    Algorithm,
    /// One of the necessary parts is missing, empty or not readable.
    Components,
    /// A part occurs twice.
    Repeated,
    /// The credential has not the form `access key/date/region/s3/aws4_request`.
    Credential,
    /// The date in the credential is not `YYYYMMDD`.
    CredentialDate(String),
    /// The credential is for another service.
    Service(String),
    /// The credential does not end in `aws4_request`.
    Terminator(String),
    /// The date in the credential is not the day of the request.
    DateMismatch {
        /// The date in the credential.
        credential: String,
        /// The day of the request.
        request: String,
    },
    /// The list of signed headers is empty, too long, or holds something that is no lower-case header name.
    SignedHeaders,
    /// `X-Amz-Date` is not `YYYYMMDDTHHMMSSZ`.
    Date,
    /// `X-Amz-Expires` is not a number within 1 and 604800.
    Lifetime,
}

impl MalformedReason {
    fn write(&self, out: &mut dyn fmt::Write, source: &Source) -> fmt::Result {
        match self {
            Self::Algorithm => write!(out, "{} only supports \"{ALGORITHM}\"", source.algorithm),
            Self::Components => out.write_str(source.components),
            Self::Repeated => out.write_str("a component occurs more than once"),
            Self::Credential => write!(
                out,
                "{}the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/s3/aws4_request\"",
                source.credential
            ),
            Self::CredentialDate(date) => write!(
                out,
                "{}incorrect date format \"{date}\". This date in the credential must be in the format \
                 \"yyyyMMdd\"",
                source.credential
            ),
            Self::Service(service) => write!(
                out,
                "{}incorrect service \"{service}\". This endpoint belongs to \"s3\"",
                source.credential
            ),
            Self::Terminator(terminator) => write!(
                out,
                "{}incorrect terminal \"{terminator}\". This endpoint uses \"aws4_request\"",
                source.credential
            ),
            Self::DateMismatch { credential, request } => write!(
                out,
                "{}invalid credential date \"{credential}\". This date is not the same as X-Amz-Date: \
                 \"{request}\"",
                source.credential
            ),
            Self::SignedHeaders => {
                out.write_str("SignedHeaders must list header names in lower case, separated by semicolons")
            }
            Self::Date => {
                out.write_str("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
            }
            Self::Lifetime => write!(
                out,
                "X-Amz-Expires must be a number of seconds between 1 and {PRESIGNED_LIFETIME_SECONDS_MAX}"
            ),
        }
    }
}

/// How a message speaks of the place that the signature was read from.
struct Source {
    algorithm: &'static str,
    components: &'static str,
    credential: &'static str,
}

const HEADER: Source = Source {
    algorithm: "the Authorization header",
    components: "the authorization header requires three components: Credential, SignedHeaders, and Signature",
    credential: "",
};

const QUERY: Source = Source {
    algorithm: "X-Amz-Algorithm",
    components: "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
                 X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters",
    credential: "Error parsing the X-Amz-Credential parameter; ",
};

impl AuthError {
    /// The S3 error code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAuthentication
            | Self::DateInvalid
            | Self::NotYetValid { .. }
            | Self::Expired { .. }
            | Self::HeadersNotSigned { .. }
            | Self::DataPlaneRefused => "AccessDenied",
            Self::TwoMechanisms | Self::SignatureVersion2Malformed | Self::ContentSha256Invalid { .. } => {
                "InvalidArgument"
            }
            Self::SignatureVersion2 | Self::ContentSha256Missing | Self::HeaderRepeated { .. } => {
                "InvalidRequest"
            }
            Self::HeaderMalformed(_) => "AuthorizationHeaderMalformed",
            Self::QueryMalformed(_) => "AuthorizationQueryParametersError",
            Self::NotImplemented(_) => "NotImplemented",
            Self::UriInvalid => "InvalidURI",
            Self::RequestTimeTooSkewed { .. } => "RequestTimeTooSkewed",
            Self::UnknownAccessKey { .. } => "InvalidAccessKeyId",
            Self::SignatureMismatch(_) => "SignatureDoesNotMatch",
        }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotImplemented(_) => 501,
            Self::NoAuthentication
            | Self::DateInvalid
            | Self::NotYetValid { .. }
            | Self::Expired { .. }
            | Self::HeadersNotSigned { .. }
            | Self::DataPlaneRefused
            | Self::RequestTimeTooSkewed { .. }
            | Self::UnknownAccessKey { .. }
            | Self::SignatureMismatch(_) => 403,
            Self::TwoMechanisms
            | Self::SignatureVersion2
            | Self::SignatureVersion2Malformed
            | Self::HeaderMalformed(_)
            | Self::QueryMalformed(_)
            | Self::HeaderRepeated { .. }
            | Self::ContentSha256Missing
            | Self::ContentSha256Invalid { .. }
            | Self::UriInvalid => 400,
        }
    }

    /// The message for people, which goes into the error body.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// The elements that the error body has beyond code and message: name and text, in order.
    ///
    /// Source: the error bodies that Amazon S3 sends for these codes.
    #[must_use]
    pub fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::TwoMechanisms | Self::SignatureVersion2Malformed => {
                vec![("ArgumentName", "Authorization".to_owned())]
            }
            Self::ContentSha256Invalid { value } => {
                vec![("ArgumentName", "x-amz-content-sha256".to_owned()), ("ArgumentValue", value.clone())]
            }
            Self::RequestTimeTooSkewed { request_time, server_time } => vec![
                ("RequestTime", request_time.clone()),
                ("ServerTime", server_time.clone()),
                ("MaxAllowedSkewMilliseconds", (REQUEST_TIME_SKEW_SECONDS_MAX * 1000).to_string()),
            ],
            Self::NotYetValid { valid_from, server_time } => {
                vec![("ValidFrom", valid_from.clone()), ("ServerTime", server_time.clone())]
            }
            Self::Expired { lifetime_seconds, expired_at, server_time } => vec![
                ("X-Amz-Expires", lifetime_seconds.to_string()),
                ("Expires", expired_at.clone()),
                ("ServerTime", server_time.clone()),
            ],
            Self::UnknownAccessKey { access_key } => vec![("AWSAccessKeyId", access_key.clone())],
            Self::SignatureMismatch(mismatch) => vec![
                ("AWSAccessKeyId", mismatch.access_key.clone()),
                ("StringToSign", mismatch.string_to_sign.clone()),
                ("SignatureProvided", mismatch.signature_provided.clone()),
                ("CanonicalRequest", mismatch.canonical_request.clone()),
            ],
            Self::HeadersNotSigned { names } => vec![("HeadersNotSigned", names.clone())],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoAuthentication | Self::DataPlaneRefused => "Access Denied",
            Self::TwoMechanisms => {
                "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query \
                 string parameter or the Authorization header should be specified"
            }
            Self::SignatureVersion2 => {
                "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."
            }
            Self::SignatureVersion2Malformed => {
                "AWS authorization header is invalid. Please use AWS4-HMAC-SHA256."
            }
            Self::HeaderMalformed(reason) => {
                formatter.write_str("The authorization header is malformed; ")?;
                return reason.write(formatter, &HEADER);
            }
            Self::QueryMalformed(reason) => return reason.write(formatter, &QUERY),
            Self::HeaderRepeated { name } => {
                return write!(formatter, "The header {name} may occur only once");
            }
            Self::NotImplemented(unsupported) => unsupported.message(),
            Self::ContentSha256Missing => "Missing required header for this request: x-amz-content-sha256",
            Self::ContentSha256Invalid { .. } => {
                "x-amz-content-sha256 must be UNSIGNED-PAYLOAD or a valid sha256 value."
            }
            Self::DateInvalid => "AWS authentication requires a valid Date or x-amz-date header",
            Self::UriInvalid => "Couldn't parse the specified URI.",
            Self::RequestTimeTooSkewed { .. } => {
                "The difference between the request time and the current time is too large."
            }
            Self::NotYetValid { .. } => "Request is not yet valid",
            Self::Expired { .. } => "Request has expired",
            Self::UnknownAccessKey { .. } => {
                "The AWS Access Key Id you provided does not exist in our records."
            }
            Self::SignatureMismatch(_) => {
                "The request signature we calculated does not match the signature you provided. Check your key \
                 and signing method."
            }
            Self::HeadersNotSigned { .. } => "There were headers present in the request which were not signed",
        })
    }
}

impl std::error::Error for AuthError {}
