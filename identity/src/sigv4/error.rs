//! Authentication errors and the S3 response to each.
//!
//! This is the only place that maps an authentication error to its S3 code, status, message and extra XML elements. No
//! variant holds a secret, so all of them may be logged.

use super::limits::{ALGORITHM, PRESIGNED_LIFETIME_SECONDS_MAX, REQUEST_TIME_SKEW_SECONDS_MAX};
use crate::throttle::FailedCredential;
use std::fmt;

/// The error of a request that did not authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// No `Authorization` header and no signature in the query.
    NoAuthentication,
    /// Both header and query authentication in one request.
    TwoMechanisms,
    /// Signature Version 2, in the header or in the query.
    SignatureVersion2,
    /// An `Authorization` header of the `AWS` scheme that is not valid Signature Version 2 either.
    SignatureVersion2Malformed,
    /// The `Authorization` header cannot be parsed.
    HeaderMalformed(MalformedReason),
    /// The `X-Amz-*` parameters of a presigned URL cannot be parsed.
    QueryMalformed(MalformedReason),
    /// The signature fields of a browser form cannot be parsed.
    FormMalformed(MalformedReason),
    /// A browser form lacks a field of its signature.
    FormFieldMissing {
        /// The name of the field.
        name: &'static str,
    },
    /// A header that may occur only once occurs more often.
    HeaderRepeated {
        /// The name of the header.
        name: &'static str,
    },
    /// A signing method that AWS has and this service does not implement.
    NotImplemented(UnsupportedSigning),
    /// Header authentication without `x-amz-content-sha256`.
    ContentSha256Missing,
    /// `x-amz-content-sha256` is neither a digest nor one of the fixed words.
    ContentSha256Invalid {
        /// The value as sent.
        value: String,
    },
    /// The date is missing or cannot be parsed.
    DateInvalid,
    /// The path or the query contains an invalid percent-encoding.
    UriInvalid,
    /// The clocks of client and server are too far apart.
    RequestTimeTooSkewed {
        /// The time of the request, `YYYYMMDDTHHMMSSZ`.
        request_time: String,
        /// The server's time, ISO 8601.
        server_time: String,
    },
    /// A presigned URL with a date in the future.
    NotYetValid {
        /// The time when the URL becomes valid, ISO 8601.
        valid_from: String,
        /// The server's time, ISO 8601.
        server_time: String,
    },
    /// A presigned URL past its lifetime.
    Expired {
        /// The lifetime in seconds, if the URL has one and not the time of its end.
        lifetime_seconds: Option<u64>,
        /// The end of the validity, ISO 8601.
        expired_at: String,
        /// The server's time, ISO 8601.
        server_time: String,
    },
    /// A presigned URL of Signature Version 2 without all its parameters, or with one of them twice.
    QueryIncomplete,
    /// `Expires` of a presigned URL of Signature Version 2 is not a number.
    ExpiryInvalid {
        /// The value as sent.
        value: String,
    },
    /// The signature, of Version 2, cannot cover all parameters of the query.
    ParametersNotSigned {
        /// Their names, joined with `, `.
        names: String,
    },
    /// No credential has this access key.
    UnknownAccessKey {
        /// The access key as sent.
        access_key: String,
    },
    /// The signature differs from the one computed from the request and the secret.
    SignatureMismatch(Box<SignatureMismatch>),
    /// The signature is correct but does not cover all headers that it must cover.
    HeadersNotSigned {
        /// Their names, joined with `, `.
        names: String,
    },
    /// The credential may not be used for S3. Its signature was not checked.
    DataPlaneRefused,
    /// The root credential is being guessed from the same address. The signature was not checked.
    TooManyFailures,
}

/// Details that help a person find out why two signatures differ. AWS returns the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureMismatch {
    /// The kind of credential that was used.
    pub failed: FailedCredential,
    /// The access key that was used.
    pub access_key: String,
    /// The string to sign as the server computed it.
    pub string_to_sign: String,
    /// The canonical request as the server computed it. Bytes that are not UTF-8 are replaced. Version 2 has none.
    pub canonical_request: Option<String>,
    /// The signature as sent.
    pub signature_provided: String,
}

/// A signing method that is answered with 501.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedSigning {
    /// `x-amz-security-token`, in the header or in the query.
    SecurityToken,
    /// `x-amz-content-sha256: STREAMING-…-TRAILER`: a checksum after the body.
    StreamingTrailer,
    /// `x-amz-content-sha256: STREAMING-…`: each chunk of the body is signed.
    StreamingPayload,
    /// SigV4A.
    Asymmetric,
}

impl UnsupportedSigning {
    /// Returns the message, which names the client setting that avoids the error, as every 501 of this service does.
    const fn message(self) -> &'static str {
        match self {
            Self::SecurityToken => {
                "Session tokens (x-amz-security-token) are not implemented. Configure only the access key and \
                 secret key and unset the session token (AWS_SESSION_TOKEN, aws_session_token). Temporary \
                 credentials of this service do not use one."
            }
            Self::StreamingTrailer => {
                "Bodies with a trailing checksum (aws-chunked, STREAMING-*-TRAILER) are not implemented. Set \
                 request_checksum_calculation to when_required (AWS_REQUEST_CHECKSUM_CALCULATION=when_required, \
                 or requestChecksumCalculation WHEN_REQUIRED in code)."
            }
            Self::StreamingPayload => {
                "Bodies signed chunk by chunk (aws-chunked, STREAMING-AWS4-HMAC-SHA256-PAYLOAD) are not \
                 implemented. Disable chunked encoding (chunkedEncodingEnabled(false) in the Java SDK), use \
                 https with clients based on minio-go (mc, restic, warp), or send x-amz-content-sha256 with the \
                 SHA-256 of the whole body or UNSIGNED-PAYLOAD."
            }
            Self::Asymmetric => {
                "Signature Version 4A (AWS4-ECDSA-P256-SHA256) is not implemented. Set the signature version of \
                 the client to s3v4 (AWS4-HMAC-SHA256) and address the bucket by name, not by an access point."
            }
        }
    }
}

/// The error in an `Authorization` header or in the parameters of a presigned URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedReason {
    /// The algorithm is unknown.
    Algorithm,
    /// A required component is missing, empty or unreadable.
    Components,
    /// A component occurs more than once.
    Repeated,
    /// The credential does not have the form `access key/date/region/s3/aws4_request`.
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
    /// The list of signed headers is empty, too long, or has an entry that is not a header name in lower case.
    SignedHeaders,
    /// `X-Amz-Date` is not `YYYYMMDDTHHMMSSZ`.
    Date,
    /// `X-Amz-Expires` is not a number from 1 to 604800.
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

/// Wording of messages for the place that the signature was read from.
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

const FORM: Source = Source {
    algorithm: "X-Amz-Algorithm",
    components: "a form requires the fields X-Amz-Algorithm, X-Amz-Credential, X-Amz-Date, X-Amz-Signature and Policy",
    credential: "Error parsing the X-Amz-Credential field; ",
};

impl AuthError {
    /// Returns the S3 error code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoAuthentication
            | Self::DateInvalid
            | Self::NotYetValid { .. }
            | Self::Expired { .. }
            | Self::QueryIncomplete
            | Self::ExpiryInvalid { .. }
            | Self::ParametersNotSigned { .. }
            | Self::HeadersNotSigned { .. }
            | Self::DataPlaneRefused => "AccessDenied",
            Self::TwoMechanisms
            | Self::SignatureVersion2Malformed
            | Self::FormMalformed(_)
            | Self::FormFieldMissing { .. }
            | Self::ContentSha256Invalid { .. } => "InvalidArgument",
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
            Self::TooManyFailures => "SlowDown",
        }
    }

    /// Returns which credential was wrong, if the error says so to the client. Such failures are throttled.
    #[must_use]
    pub const fn failed_credential(&self) -> Option<FailedCredential> {
        match self {
            Self::UnknownAccessKey { .. } => Some(FailedCredential::Other),
            Self::SignatureMismatch(mismatch) => Some(mismatch.failed),
            _ => None,
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::NotImplemented(_) => 501,
            Self::TooManyFailures => 503,
            Self::NoAuthentication
            | Self::DateInvalid
            | Self::NotYetValid { .. }
            | Self::Expired { .. }
            | Self::QueryIncomplete
            | Self::ExpiryInvalid { .. }
            | Self::ParametersNotSigned { .. }
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
            | Self::FormMalformed(_)
            | Self::FormFieldMissing { .. }
            | Self::HeaderRepeated { .. }
            | Self::ContentSha256Missing
            | Self::ContentSha256Invalid { .. }
            | Self::UriInvalid => 400,
        }
    }

    /// Returns the message for the error body.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// Returns what helps, for the operator; `None` if the message says it.
    #[must_use]
    pub const fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoAuthentication => {
                "The request is not signed. Configure the client with an access key and a secret key. For visitors \
                 without a credential, create a share or an embed, or make objects public (cairn public set; cairn public \
                 list shows what is, and what is blocked)."
            }
            Self::TwoMechanisms => "Sign in the Authorization header or in the URL, not in both.",
            Self::FormFieldMissing { .. } => {
                "All fields of the signature must be in the form, before the file."
            }
            Self::HeaderMalformed(_) | Self::QueryMalformed(_) | Self::FormMalformed(_) => {
                "Check access key and region in the client's configuration: neither may contain spaces or slashes."
            }
            Self::HeaderRepeated { .. } => "Look for a proxy that adds the header a second time.",
            Self::ContentSha256Missing | Self::ContentSha256Invalid { .. } => {
                "Send x-amz-content-sha256: the SHA-256 of the body in hexadecimal digits, or UNSIGNED-PAYLOAD."
            }
            Self::DateInvalid => "Send x-amz-date as YYYYMMDDTHHMMSSZ.",
            Self::RequestTimeTooSkewed { .. } => {
                "Synchronize the clocks of client and server (NTP). They may differ by 15 minutes."
            }
            Self::NotYetValid { .. } => {
                "Synchronize the clock of the machine that made the presigned URL or form (NTP)."
            }
            Self::Expired { .. } => "Make a new presigned URL or form. It can be valid for up to 7 days.",
            Self::UnknownAccessKey { .. } => {
                "The access key does not exist, is disabled or has expired. Compare the client's configuration with the \
                 service accounts. The key is not shown here, because it may be a secret in the wrong place."
            }
            Self::SignatureMismatch(_) => {
                "Check the secret key in the client's configuration, or create a new credential. If it is right, look for \
                 a proxy that changes the path, the Host header or another signed header."
            }
            Self::QueryIncomplete | Self::ExpiryInvalid { .. } => {
                "The URL was cut or changed on its way. Make a new one."
            }
            Self::ParametersNotSigned { .. } => {
                "Sign with Signature Version 4, which covers all parameters (boto3: Config(signature_version=\"s3v4\"))."
            }
            Self::HeadersNotSigned { .. } => {
                "The client must sign Host and all x-amz-* headers that it sends."
            }
            Self::DataPlaneRefused => {
                "The root credential is not allowed for S3 (auth.root_s3_enabled). Use a service account."
            }
            Self::TooManyFailures => {
                "The root credential was used with wrong secrets from this address. Stop that client, or use a service \
                 account."
            }
            Self::SignatureVersion2
            | Self::SignatureVersion2Malformed
            | Self::NotImplemented(_)
            | Self::UriInvalid => return None,
        })
    }

    /// Returns the further elements of the error body as pairs of name and text, in order.
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
            Self::FormFieldMissing { name } => {
                vec![("ArgumentName", (*name).to_owned()), ("ArgumentValue", String::new())]
            }
            Self::RequestTimeTooSkewed { request_time, server_time } => vec![
                ("RequestTime", request_time.clone()),
                ("ServerTime", server_time.clone()),
                ("MaxAllowedSkewMilliseconds", (REQUEST_TIME_SKEW_SECONDS_MAX * 1000).to_string()),
            ],
            Self::NotYetValid { valid_from, server_time } => {
                vec![("ValidFrom", valid_from.clone()), ("ServerTime", server_time.clone())]
            }
            Self::Expired { lifetime_seconds, expired_at, server_time } => {
                let lifetime = lifetime_seconds.map(|seconds| ("X-Amz-Expires", seconds.to_string()));
                let times = [("Expires", expired_at.clone()), ("ServerTime", server_time.clone())];
                lifetime.into_iter().chain(times).collect()
            }
            Self::UnknownAccessKey { access_key } => vec![("AWSAccessKeyId", access_key.clone())],
            Self::SignatureMismatch(mismatch) => {
                let mut details = vec![
                    ("AWSAccessKeyId", mismatch.access_key.clone()),
                    ("StringToSign", mismatch.string_to_sign.clone()),
                    ("SignatureProvided", mismatch.signature_provided.clone()),
                    ("StringToSignBytes", hex_bytes(&mismatch.string_to_sign)),
                ];
                if let Some(text) = &mismatch.canonical_request {
                    details.push(("CanonicalRequest", text.clone()));
                    details.push(("CanonicalRequestBytes", hex_bytes(text)));
                }
                details
            }
            Self::ExpiryInvalid { value } => {
                vec![("ArgumentName", "Expires".to_owned()), ("ArgumentValue", value.clone())]
            }
            Self::ParametersNotSigned { names } => vec![("ParametersNotSigned", names.clone())],
            Self::HeadersNotSigned { names } => vec![("HeadersNotSigned", names.clone())],
            _ => Vec::new(),
        }
    }
}

/// Returns the bytes of a text in hexadecimal digits, separated by blanks: they show what a text hides.
fn hex_bytes(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
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
                "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256: sign with \
                 Signature Version 4 (boto3: Config(signature_version=\"s3v4\"))."
            }
            Self::SignatureVersion2Malformed => {
                "AWS authorization header is invalid. Please use AWS4-HMAC-SHA256."
            }
            Self::HeaderMalformed(reason) => {
                formatter.write_str("The authorization header is malformed; ")?;
                return reason.write(formatter, &HEADER);
            }
            Self::QueryMalformed(reason) => return reason.write(formatter, &QUERY),
            Self::FormMalformed(reason) => return reason.write(formatter, &FORM),
            Self::FormFieldMissing { name } => {
                return write!(
                    formatter,
                    "Bucket POST must contain a field named '{name}'. If it is specified, please check the order of the \
                     fields."
                );
            }
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
            Self::QueryIncomplete => {
                "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters"
            }
            Self::ExpiryInvalid { value } => {
                return write!(formatter, "Invalid date (should be seconds since epoch): {value}");
            }
            Self::ParametersNotSigned { names } => {
                return write!(
                    formatter,
                    "A signature of Version 2 does not cover the parameters {names}: sign with Signature Version 4"
                );
            }
            Self::UnknownAccessKey { .. } => {
                "The AWS Access Key Id you provided does not exist in our records."
            }
            Self::SignatureMismatch(_) => {
                "The request signature we calculated does not match the signature you provided. Check your key \
                 and signing method."
            }
            Self::HeadersNotSigned { .. } => "There were headers present in the request which were not signed",
            Self::TooManyFailures => {
                "Too many wrong signatures with the root credential came from this address. Try again in a second, \
                 or use the credential of a service account, which is not affected."
            }
        })
    }
}

impl std::error::Error for AuthError {}
