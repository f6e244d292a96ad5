//! Signatures in the `Authorization` header, and common headers.

use super::claim::Claim;
use super::date::AmzDate;
use super::error::UnsupportedSigning;
use super::error::{AuthError, MalformedReason};
use super::limits::{ALGORITHM, ALGORITHM_ASYMMETRIC};
use super::payload::{AcceptedBodies, Payload};
use super::scope::{Scope, SignedHeaders};
use crate::request::SignatureKind;

/// The headers that authentication reads.
#[derive(Debug, Default)]
pub(super) struct AuthHeaders<'a> {
    /// Not empty.
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) content_sha256: Option<&'a [u8]>,
    amz_date: Option<&'a [u8]>,
    date: Option<&'a [u8]>,
    pub(super) has_security_token: bool,
    /// The first of these headers that occurs twice. It is unknown which of its values was signed.
    pub(super) repeated: Option<&'static str>,
}

impl<'a> AuthHeaders<'a> {
    pub(super) fn collect(headers: &[(&str, &'a [u8])]) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            let (slot, name) = match *name {
                "authorization" => (&mut found.authorization, "authorization"),
                "x-amz-content-sha256" => (&mut found.content_sha256, "x-amz-content-sha256"),
                "x-amz-date" => (&mut found.amz_date, "x-amz-date"),
                "date" => (&mut found.date, "date"),
                "x-amz-security-token" => {
                    found.has_security_token = true;
                    continue;
                }
                _ => continue,
            };
            if slot.replace(value.trim_ascii()).is_some() {
                found.repeated.get_or_insert(name);
            }
        }
        // Clients without credentials may send an empty header, which does not authenticate.
        found.authorization = found.authorization.filter(|value| !value.is_empty());
        found
    }

    /// Returns the time of a request with a header signature.
    fn request_date(&self) -> Result<AmzDate, AuthError> {
        match (self.amz_date, self.date) {
            (Some(amz_date), _) => AmzDate::parse_basic(amz_date),
            (None, Some(date)) => AmzDate::parse_date_header(date),
            (None, None) => None,
        }
        .ok_or(AuthError::DateInvalid)
    }

    /// Parses the claim of an `Authorization` header with this value.
    pub(super) fn claim(
        &self,
        authorization: &'a [u8],
        bodies: AcceptedBodies,
    ) -> Result<Claim<'a>, AuthError> {
        let components = Components::parse(authorization)?;
        let scope = Scope::parse(components.credential).map_err(AuthError::HeaderMalformed)?;
        let signed_headers =
            SignedHeaders::parse(components.signed_headers).map_err(AuthError::HeaderMalformed)?;
        let payload = self.content_sha256.ok_or(AuthError::ContentSha256Missing)?;
        let payload = Payload::parse(payload, bodies)?;
        let date = self.request_date()?;
        scope.check_day(&date).map_err(AuthError::HeaderMalformed)?;
        Ok(Claim {
            kind: SignatureKind::Header,
            scope,
            signed_headers,
            signature: components.signature.as_bytes(),
            date,
            payload,
        })
    }
}

/// `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`, in any order.
#[derive(Debug, PartialEq, Eq)]
struct Components<'a> {
    credential: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
}

impl<'a> Components<'a> {
    fn parse(authorization: &'a [u8]) -> Result<Self, AuthError> {
        let malformed = |reason| Err(AuthError::HeaderMalformed(reason));
        let Ok(text) = std::str::from_utf8(authorization) else {
            return malformed(MalformedReason::Algorithm);
        };
        let (algorithm, fields) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        match algorithm {
            ALGORITHM => {}
            ALGORITHM_ASYMMETRIC => return Err(AuthError::NotImplemented(UnsupportedSigning::Asymmetric)),
            "AWS" if fields.contains(':') => return Err(AuthError::SignatureVersion2),
            "AWS" => return Err(AuthError::SignatureVersion2Malformed),
            _ => return malformed(MalformedReason::Algorithm),
        }
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        for field in fields.split(',') {
            let Some((name, value)) = field.trim_ascii().split_once('=') else {
                return malformed(MalformedReason::Components);
            };
            let slot = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return malformed(MalformedReason::Components),
            };
            if value.is_empty() {
                return malformed(MalformedReason::Components);
            }
            if slot.replace(value).is_some() {
                return malformed(MalformedReason::Repeated);
            }
        }
        match (credential, signed_headers, signature) {
            (Some(credential), Some(signed_headers), Some(signature)) => {
                Ok(Self { credential, signed_headers, signature })
            }
            _ => malformed(MalformedReason::Components),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Components<'_>, AuthError> {
        Components::parse(text.as_bytes())
    }

    #[test]
    fn spaces_after_commas_are_optional_and_order_is_free() {
        let expected = Components { credential: "c/d", signed_headers: "host", signature: "ab" };
        for text in [
            "AWS4-HMAC-SHA256 Credential=c/d, SignedHeaders=host, Signature=ab",
            "AWS4-HMAC-SHA256 Credential=c/d,SignedHeaders=host,Signature=ab",
            "AWS4-HMAC-SHA256  Signature=ab ,\tCredential=c/d,   SignedHeaders=host ",
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn missing_empty_unknown_or_repeated_components_are_malformed() {
        for text in [
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 ",
            "AWS4-HMAC-SHA256 Credential=HAHAHA",
            "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=host",
            "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=host,Signature=",
            "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=host,Signature=ab,",
            "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=host,Signature=ab,Extra=1",
            "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=host,Signature=ab,Signature=cd",
            "AWS4-HMAC-SHA256 Credential=c SignedHeaders=host Signature=ab",
            "aws4-hmac-sha256 Credential=c,SignedHeaders=host,Signature=ab",
            "Bearer abc",
            "nonsense",
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!((error.status(), error.code()), (400, "AuthorizationHeaderMalformed"), "{text}");
        }
    }

    #[test]
    fn other_signature_versions_have_their_own_errors() {
        assert_eq!(parse("AWS AKID:c2ln"), Err(AuthError::SignatureVersion2));
        assert_eq!(parse("AWS HAHAHA"), Err(AuthError::SignatureVersion2Malformed));
        let asymmetric = parse("AWS4-ECDSA-P256-SHA256 Credential=c,SignedHeaders=host,Signature=ab");
        assert_eq!(asymmetric, Err(AuthError::NotImplemented(UnsupportedSigning::Asymmetric)));
    }

    #[test]
    fn amz_date_overrides_date() {
        let both = AuthHeaders::collect(&[
            ("date", b"Fri, 24 May 2013 00:00:00 GMT"),
            ("x-amz-date", b"20200101T000000Z"),
        ]);
        assert_eq!(both.request_date().map(|date| date.seconds), Ok(1_577_836_800));
        let date = AuthHeaders::collect(&[("date", b"Fri, 24 May 2013 00:00:00 GMT")]);
        assert_eq!(date.request_date().map(|date| date.seconds), Ok(1_369_353_600));
        assert_eq!(AuthHeaders::collect(&[]).request_date(), Err(AuthError::DateInvalid));
    }

    #[test]
    fn an_empty_authorization_header_is_ignored() {
        assert_eq!(AuthHeaders::collect(&[("authorization", b" ")]).authorization, None);
    }
}
