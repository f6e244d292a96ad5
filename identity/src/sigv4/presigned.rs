//! Presigned URLs: signatures in the query.
//!
//! Parameter names are case-sensitive, as on AWS. The security token and the payload digest are exceptions, because clients
//! that move headers into the query use either case.

use super::canonical::{CanonicalQuery, SIGNATURE_PARAMETER};
use super::claim::Claim;
use super::date::AmzDate;
use super::error::UnsupportedSigning;
use super::error::{AuthError, MalformedReason};
use super::header::AuthHeaders;
use super::limits::{ALGORITHM, ALGORITHM_ASYMMETRIC, PRESIGNED_LIFETIME_SECONDS_MAX};
use super::payload::{AcceptedBodies, Payload};
use super::percent::decode_canonical;
use super::scope::{Scope, SignedHeaders};
use crate::request::SignatureKind;

/// The query parameters that authentication reads, in canonical encoding.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    algorithm: Option<&'a [u8]>,
    credential: Option<&'a [u8]>,
    date: Option<&'a [u8]>,
    lifetime: Option<&'a [u8]>,
    signed_headers: Option<&'a [u8]>,
    signature: Option<&'a [u8]>,
    content_sha256: Option<&'a [u8]>,
    pub(super) has_security_token: bool,
    pub(super) has_version_2_signature: bool,
    repeated: bool,
}

impl<'a> Parameters<'a> {
    pub(super) fn collect(query: &'a CanonicalQuery) -> Self {
        let mut found = Self::default();
        for (name, value) in query.parameters() {
            let slot = match name {
                b"X-Amz-Algorithm" => &mut found.algorithm,
                b"X-Amz-Credential" => &mut found.credential,
                b"X-Amz-Date" => &mut found.date,
                b"X-Amz-Expires" => &mut found.lifetime,
                b"X-Amz-SignedHeaders" => &mut found.signed_headers,
                SIGNATURE_PARAMETER => &mut found.signature,
                b"AWSAccessKeyId" | b"Signature" => {
                    found.has_version_2_signature = true;
                    continue;
                }
                _ if name.eq_ignore_ascii_case(b"x-amz-content-sha256") => &mut found.content_sha256,
                _ => {
                    found.has_security_token |= name.eq_ignore_ascii_case(b"x-amz-security-token");
                    continue;
                }
            };
            found.repeated |= slot.replace(value).is_some();
        }
        found
    }

    /// Returns whether the query tries to authenticate the request.
    pub(super) fn has_signature(&self) -> bool {
        self.algorithm.is_some() || self.credential.is_some() || self.signature.is_some()
    }

    /// Decodes and validates every parameter.
    pub(super) fn read(&self) -> Result<Presigned<'a>, MalformedReason> {
        if self.repeated {
            return Err(MalformedReason::Repeated);
        }
        if self.algorithm.is_some_and(|algorithm| algorithm != ALGORITHM.as_bytes()) {
            return Err(MalformedReason::Algorithm);
        }
        let (Some(_), Some(credential), Some(lifetime), Some(signed_headers), Some(signature)) =
            (self.algorithm, self.credential, self.lifetime, self.signed_headers, self.signature)
        else {
            return Err(MalformedReason::Components);
        };
        if signature.is_empty() {
            return Err(MalformedReason::Components);
        }
        Ok(Presigned {
            credential: decode_canonical(credential).ok_or(MalformedReason::Credential)?,
            signed_headers: decode_canonical(signed_headers).ok_or(MalformedReason::SignedHeaders)?,
            signature,
            lifetime_seconds: parse_lifetime(lifetime).ok_or(MalformedReason::Lifetime)?,
            date: self.date,
            content_sha256: self.content_sha256,
        })
    }

    /// Returns whether the URL is signed with SigV4A.
    pub(super) fn is_asymmetric(&self) -> bool {
        self.algorithm == Some(ALGORITHM_ASYMMETRIC.as_bytes())
    }
}

/// The parameters of a presigned URL, decoded.
#[derive(Debug)]
pub(super) struct Presigned<'a> {
    credential: String,
    signed_headers: String,
    signature: &'a [u8],
    date: Option<&'a [u8]>,
    content_sha256: Option<&'a [u8]>,
    /// The lifetime of the URL after its date. 0: it has expired, where that is accepted at all.
    pub(super) lifetime_seconds: u64,
}

impl Presigned<'_> {
    /// Returns the claim of the URL and of the headers sent with it.
    pub(super) fn claim<'b>(&'b self, headers: &AuthHeaders<'b>) -> Result<Claim<'b>, AuthError> {
        let scope = Scope::parse(&self.credential).map_err(AuthError::QueryMalformed)?;
        let signed_headers = SignedHeaders::parse(&self.signed_headers).map_err(AuthError::QueryMalformed)?;
        let payload = self.payload(headers, signed_headers)?;
        let date = AmzDate::parse_basic(self.date.ok_or(AuthError::DateInvalid)?)
            .ok_or(AuthError::QueryMalformed(MalformedReason::Date))?;
        scope.check_day(&date).map_err(AuthError::QueryMalformed)?;
        Ok(Claim {
            kind: SignatureKind::Presigned,
            scope,
            signed_headers,
            signature: self.signature,
            date,
            payload,
        })
    }

    /// Returns the declared digest of the body: from the header if that is signed, else from the query parameter, else
    /// none. An unsigned header is ignored here; the check of unsigned headers refuses it later.
    fn payload<'b>(
        &'b self,
        headers: &AuthHeaders<'b>,
        signed_headers: SignedHeaders<'_>,
    ) -> Result<Payload<'b>, AuthError> {
        if let Some(value) = headers.content_sha256 {
            Payload::refuse_streaming(value)?;
            if signed_headers.contains("x-amz-content-sha256") {
                return Payload::parse(value, AcceptedBodies::Whole);
            }
        }
        let parse = |value| Payload::parse(value, AcceptedBodies::Whole);
        self.content_sha256.map_or(Ok(Payload::UNSIGNED), parse)
    }
}

/// Refuses a URL signed with SigV4A before its parameters are validated.
pub(super) fn refuse_asymmetric(parameters: &Parameters<'_>) -> Result<(), AuthError> {
    if parameters.is_asymmetric() {
        return Err(AuthError::NotImplemented(UnsupportedSigning::Asymmetric));
    }
    Ok(())
}

fn parse_lifetime(digits: &[u8]) -> Option<u64> {
    // `str::parse` would accept a leading plus.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (seconds <= PRESIGNED_LIFETIME_SECONDS_MAX).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Date=d&X-Amz-Expires=60\
                         &X-Amz-SignedHeaders=host&X-Amz-Signature=s";

    fn read(query: &str) -> Result<u64, MalformedReason> {
        let mut canonical = CanonicalQuery::default();
        canonical.read(Some(query)).expect("valid encoding");
        Parameters::collect(&canonical).read().map(|presigned| presigned.lifetime_seconds)
    }

    #[test]
    fn lifetime_is_at_most_one_week() {
        for (lifetime, expected) in [
            ("1", Some(1)),
            ("604800", Some(604_800)),
            ("0", Some(0)),
            ("604801", None),
            ("-1", None),
            ("%2B1", None),
            ("1.5", None),
            ("", None),
            ("99999999999999999999999", None),
        ] {
            let query = WHOLE.replace("Expires=60", &format!("Expires={lifetime}"));
            assert_eq!(read(&query), expected.ok_or(MalformedReason::Lifetime), "{lifetime}");
        }
    }

    #[test]
    fn every_parameter_is_required() {
        assert_eq!(read(WHOLE), Ok(60));
        for part in WHOLE.split('&').filter(|part| !part.starts_with("X-Amz-Date")) {
            assert_eq!(read(&WHOLE.replace(part, "")), Err(MalformedReason::Components), "{part}");
        }
    }

    #[test]
    fn repeated_parameters_are_refused() {
        for part in WHOLE.split('&') {
            assert_eq!(read(&format!("{WHOLE}&{part}")), Err(MalformedReason::Repeated), "{part}");
        }
    }

    #[test]
    fn other_algorithms_are_refused() {
        assert_eq!(read(&WHOLE.replace("SHA256", "SHA1")), Err(MalformedReason::Algorithm));
    }
}
