//! Signature Version 2, in presigned URLs and browser forms.
//!
//! Source: "Signing and authenticating REST requests" (query string request authentication) and "Browser-based uploads using
//! POST", both of Signature Version 2, in the Amazon S3 developer guide. boto3 and older SDKs make such URLs and forms unless
//! they are told otherwise. The string to sign names the method, three headers, all `x-amz-*` headers, the resource and its
//! subresources, but neither the host nor other parameters: requests with parameters that it does not cover are refused.

use super::canonical::CanonicalQuery;
use super::error::{AuthError, SignatureMismatch};
use super::header::AuthHeaders;
use super::payload::{AcceptedBodies, Payload};
use super::percent::decode_canonical;
use super::verify::{Authenticator, failed_credential};
use crate::credential::{Credential, Credentials};
use crate::request::{Authentication, PayloadDigest, SignatureKind, SignedForm, SignedRequest};
use crate::throttle::RootAttempts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_model::Timestamp;
use cairn_model::iso8601::iso8601_seconds;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::collections::BTreeMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// The parameters of the signature.
const ACCESS_KEY: &str = "AWSAccessKeyId";
const SIGNATURE: &str = "Signature";
const EXPIRES: &str = "Expires";

/// The parameters that the string to sign contains, beside `response-*`: those that select an operation or a part of it.
const SUBRESOURCES: [&str; 33] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "defaultObjectAcl",
    "delete",
    "inventory",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "restore",
    "select",
    "select-type",
    "storageClass",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
    "encryption",
    "publicAccessBlock",
    "ownershipControls",
    "policyStatus",
];

/// Parameters that repeat a header which the string to sign contains.
const REPEATED_HEADERS: [&str; 2] = ["content-md5", "content-type"];

/// A presigned URL, decoded.
struct Presigned {
    access_key: String,
    signature: String,
    expires: String,
    /// Names and values in the string to sign, in order. Names without a value have an empty one.
    subresources: Vec<(String, String)>,
    /// `x-amz-*` parameters, which count as headers. Names are in lower case.
    headers: Vec<(String, String)>,
}

impl Presigned {
    /// Reads the query.
    ///
    /// # Errors
    /// [`AuthError::QueryIncomplete`] for a missing or repeated parameter of the signature, and
    /// [`AuthError::ParametersNotSigned`] for parameters that it does not cover.
    fn read(query: &CanonicalQuery) -> Result<Self, AuthError> {
        let (mut access_key, mut signature, mut expires) = (None, None, None);
        let (mut subresources, mut headers, mut unsigned) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in query.parameters() {
            let decoded = decode_canonical(name).zip(decode_canonical(value));
            let (name, value) = decoded.ok_or(AuthError::UriInvalid)?;
            let lower = name.to_ascii_lowercase();
            let slot = match &*name {
                ACCESS_KEY => &mut access_key,
                SIGNATURE => &mut signature,
                EXPIRES => &mut expires,
                _ if SUBRESOURCES.contains(&&*name) || name.starts_with("response-") => {
                    subresources.push((name, value));
                    continue;
                }
                _ if lower.starts_with("x-amz-") => {
                    headers.push((lower, value));
                    continue;
                }
                _ if REPEATED_HEADERS.contains(&&*lower) => continue,
                _ => {
                    unsigned.push(name);
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(AuthError::QueryIncomplete);
            }
        }
        if !unsigned.is_empty() {
            return Err(AuthError::ParametersNotSigned { names: unsigned.join(", ") });
        }
        subresources.sort();
        match (access_key, signature, expires) {
            (Some(access_key), Some(signature), Some(expires)) => {
                Ok(Self { access_key, signature, expires, subresources, headers })
            }
            _ => Err(AuthError::QueryIncomplete),
        }
    }

    /// Returns the string that the client signed.
    fn string_to_sign(&self, request: &SignedRequest<'_>) -> Vec<u8> {
        let header = |wanted: &str| {
            request.headers.iter().find(|(name, _)| *name == wanted).map_or(&b""[..], |(_, value)| value)
        };
        let mut out = Vec::with_capacity(256);
        let lines = [
            request.method.as_bytes(),
            header("content-md5"),
            header("content-type"),
            self.expires.as_bytes(),
        ];
        for line in lines {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        let mut amz: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let sent = request.headers.iter().filter(|(name, _)| name.starts_with("x-amz-"));
        let hoisted = self.headers.iter().map(|(name, value)| (&**name, value.as_bytes()));
        for (name, value) in sent.copied().chain(hoisted) {
            let joined = amz.entry(name).or_default();
            if !joined.is_empty() {
                joined.push(b',');
            }
            joined.extend_from_slice(value);
        }
        for (name, value) in &amz {
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
            out.extend_from_slice(value);
            out.push(b'\n');
        }
        if let Some(bucket) = request.bucket_in_host {
            out.push(b'/');
            out.extend_from_slice(bucket.as_bytes());
        }
        out.extend_from_slice(if request.path.is_empty() { b"/" } else { request.path.as_bytes() });
        for (index, (name, value)) in self.subresources.iter().enumerate() {
            out.push(if index == 0 { b'?' } else { b'&' });
            out.extend_from_slice(name.as_bytes());
            if !value.is_empty() {
                out.push(b'=');
                out.extend_from_slice(value.as_bytes());
            }
        }
        out
    }
}

impl<C: Credentials> Authenticator<C> {
    /// Verifies a presigned URL and returns its signer.
    pub(super) fn authenticate_version_2(
        &self,
        request: &SignedRequest<'_>,
        query: &CanonicalQuery,
        headers: &AuthHeaders<'_>,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        let presigned = Presigned::read(query)?;
        let payload = match headers.content_sha256 {
            Some(value) => Payload::parse(value, AcceptedBodies::Whole)?,
            None => Payload::UNSIGNED,
        };
        let digits =
            !presigned.expires.is_empty() && presigned.expires.bytes().all(|byte| byte.is_ascii_digit());
        let expires: u64 = digits
            .then(|| presigned.expires.parse().ok())
            .flatten()
            .ok_or_else(|| AuthError::ExpiryInvalid { value: presigned.expires.clone() })?;
        if now.seconds() > expires {
            let expired_at = iso8601_seconds(expires);
            return Err(AuthError::Expired {
                lifetime_seconds: None,
                expired_at,
                server_time: iso8601_seconds(now.seconds()),
            });
        }
        let signed = Signed {
            access_key: &presigned.access_key,
            text: &presigned.string_to_sign(request),
            signature: presigned.signature.as_bytes(),
            kind: SignatureKind::Presigned,
            payload: payload.digest,
        };
        self.verify_version_2(&signed, now, root_attempts)
    }

    /// Verifies the signature of a form's policy and returns its signer. The policy says how long it is valid.
    pub(super) fn authenticate_form_version_2(
        &self,
        form: &SignedForm<'_>,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        let required = |value: Option<_>, name| value.ok_or(AuthError::FormFieldMissing { name });
        let signed = Signed {
            access_key: required(form.version_2.access_key, ACCESS_KEY)?,
            signature: required(form.version_2.signature, SIGNATURE)?.as_bytes(),
            text: required(form.policy, "Policy")?.as_bytes(),
            kind: SignatureKind::Form,
            payload: PayloadDigest::Unsigned,
        };
        self.verify_version_2(&signed, now, root_attempts)
    }

    fn verify_version_2(
        &self,
        signed: &Signed<'_>,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        // Before the lookup, so that a change in between is noticed later.
        let credentials_version = self.credentials().version();
        let credential = self.find(signed.access_key, now, root_attempts)?;
        if !signed.is_signed_by(&credential) {
            return Err(AuthError::SignatureMismatch(Box::new(SignatureMismatch {
                failed: failed_credential(&credential.principal),
                access_key: signed.access_key.to_owned(),
                string_to_sign: String::from_utf8_lossy(signed.text).into_owned(),
                canonical_request: None,
                signature_provided: String::from_utf8_lossy(signed.signature).into_owned(),
            })));
        }
        if let Some(last_use) = &credential.last_use {
            last_use.record(now);
        }
        Ok(Authentication {
            principal: credential.principal,
            access_key: Arc::from(signed.access_key),
            generation: credential.generation,
            payload: signed.payload,
            chunk_signatures: None,
            kind: signed.kind,
            // The signature has no time. The request that brings it has.
            signed_at: Timestamp(now.seconds() * 1000),
            credentials_version,
        })
    }
}

/// A string and the signature that the client claims to have made of it.
struct Signed<'a> {
    access_key: &'a str,
    text: &'a [u8],
    /// As sent: not necessarily Base64.
    signature: &'a [u8],
    kind: SignatureKind,
    payload: PayloadDigest,
}

impl Signed<'_> {
    fn is_signed_by(&self, credential: &Credential) -> bool {
        STANDARD.encode(sign(&credential.secret_key, self.text)).as_bytes().ct_eq(self.signature).into()
    }
}

/// Signs a string with HMAC-SHA1.
fn sign(secret_key: &str, text: &[u8]) -> [u8; 20] {
    let mac = Hmac::<Sha1>::new_from_slice(secret_key.as_bytes()).expect("HMAC takes keys of any length");
    mac.chain_update(text).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RootCredential, SignedFormVersion2};

    /// The credentials of the examples in the developer guide.
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    /// 2007-03-29T03:40:20Z, until when the example is valid.
    const EXPIRES_AT: u64 = 1_175_139_620;
    const HOST: &[(&str, &[u8])] = &[("host", b"johnsmith.s3.amazonaws.com")];
    /// "Example Query String Request Authentication": the signature that the guide prints.
    const QUERY: &str =
        "AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620";

    fn request<'a>(query: &'a str, headers: &'a [(&'a str, &'a [u8])]) -> SignedRequest<'a> {
        SignedRequest {
            method: "GET",
            path: "/photos/puppy.jpg",
            query: Some(query),
            headers,
            bucket_in_host: Some("johnsmith"),
        }
    }

    fn authenticator() -> Authenticator<RootCredential> {
        Authenticator::new(RootCredential::new(KEY, SECRET)).with_version_2()
    }

    fn checked(request: &SignedRequest<'_>, seconds: u64) -> Result<Authentication, AuthError> {
        authenticator().authenticate(request, Timestamp(seconds * 1000))
    }

    #[test]
    fn example_of_the_developer_guide_is_valid_until_it_expires() {
        let found = checked(&request(QUERY, HOST), EXPIRES_AT).expect("valid");
        assert_eq!((&*found.access_key, found.kind), (KEY, SignatureKind::Presigned));
        assert_eq!(found.payload, PayloadDigest::Unsigned);
        let expired = checked(&request(QUERY, HOST), EXPIRES_AT + 1).expect_err("expired");
        assert_eq!((expired.status(), expired.code()), (403, "AccessDenied"));
        assert_eq!(expired.details()[0], ("Expires", "2007-03-29T03:40:20Z".to_owned()));
    }

    #[test]
    fn version_4_alone_is_accepted_unless_enabled() {
        let strict = Authenticator::new(RootCredential::new(KEY, SECRET));
        let refused = strict.authenticate(&request(QUERY, HOST), Timestamp(EXPIRES_AT * 1000));
        assert_eq!(refused, Err(AuthError::SignatureVersion2));
    }

    #[test]
    fn every_part_of_the_request_is_signed() {
        let code =
            |request: SignedRequest<'_>| checked(&request, 0).map(|_| ()).map_err(|error| error.code());
        let valid = request(QUERY, HOST);
        assert_eq!(code(valid), Ok(()));
        let mismatch = Err("SignatureDoesNotMatch");
        assert_eq!(code(SignedRequest { method: "HEAD", ..valid }), mismatch);
        assert_eq!(code(SignedRequest { path: "/photos/puppy.jp", ..valid }), mismatch);
        assert_eq!(code(SignedRequest { bucket_in_host: Some("johnsmit"), ..valid }), mismatch);
        assert_eq!(code(SignedRequest { bucket_in_host: None, ..valid }), mismatch);
        for added in
            [("content-type", &b"text/html"[..]), ("content-md5", b"x"), ("x-amz-copy-source", b"/b/k")]
        {
            let headers = [HOST[0], added];
            assert_eq!(code(SignedRequest { headers: &headers, ..valid }), mismatch, "{}", added.0);
        }
        for added in ["acl", "versionId=null", "response-content-type=text%2Fhtml", "x-amz-acl=private"] {
            let query = format!("{QUERY}&{added}");
            assert_eq!(code(SignedRequest { query: Some(&query), ..valid }), mismatch, "{added}");
        }
        // The guide's other form names the bucket in the path.
        assert_eq!(
            code(SignedRequest { path: "/johnsmith/photos/puppy.jpg", bucket_in_host: None, ..valid }),
            Ok(())
        );
    }

    #[test]
    fn parameters_without_a_signature_are_refused() {
        for added in ["prefix=a", "list-type=2", "x-id=GetObject", "X-Amz=1"] {
            let query = format!("{QUERY}&{added}");
            let refused = checked(&request(&query, HOST), 0).expect_err(added);
            assert_eq!((refused.status(), refused.code()), (403, "AccessDenied"), "{added}");
        }
        for query in [
            "AWSAccessKeyId=a&Expires=9",
            "AWSAccessKeyId=a&Signature=b",
            "Signature=b&Expires=9",
            "AWSAccessKeyId=a&Signature=b&Signature=c&Expires=9",
        ] {
            assert_eq!(checked(&request(query, HOST), 0), Err(AuthError::QueryIncomplete), "{query}");
        }
        let query = "AWSAccessKeyId=a&Signature=b&Expires=tomorrow";
        let refused = checked(&request(query, HOST), 0).expect_err("no number");
        assert_eq!((refused.status(), refused.code()), (403, "AccessDenied"));
    }

    #[test]
    fn subresources_and_headers_are_signed_sorted() {
        let query = "versionId=3&x-amz-meta-b=2&response-content-type=a%2Fb&acl&AWSAccessKeyId=a&Signature=b&Expires=9";
        let mut canonical = CanonicalQuery::default();
        canonical.read(Some(query)).expect("valid");
        let headers: &[(&str, &[u8])] =
            &[("content-type", b"text/plain"), ("x-amz-meta-b", b"1"), ("x-amz-meta-a", b"x")];
        let text = Presigned::read(&canonical).expect("complete").string_to_sign(&request(query, headers));
        assert_eq!(
            String::from_utf8(text).expect("ASCII"),
            "GET\n\ntext/plain\n9\nx-amz-meta-a:x\nx-amz-meta-b:1,2\n\
             /johnsmith/photos/puppy.jpg?acl&response-content-type=a/b&versionId=3"
        );
    }

    #[test]
    fn form_is_signed_by_its_policy() {
        let policy = "eyJjb25kaXRpb25zIjogW119";
        let signature = STANDARD.encode(sign(SECRET, policy.as_bytes()));
        let form = |signature| SignedForm {
            policy: Some(policy),
            version_2: SignedFormVersion2 { access_key: Some(KEY), signature: Some(signature) },
            ..SignedForm::default()
        };
        let checked = |form: &SignedForm<'_>| {
            authenticator().authenticate_form(form, Timestamp(0), RootAttempts::Checked)
        };
        assert_eq!(checked(&form(&signature)).expect("valid").kind, SignatureKind::Form);
        let wrong = checked(&form("x")).expect_err("wrong");
        assert_eq!(wrong.code(), "SignatureDoesNotMatch");
        let incomplete = SignedForm {
            policy: Some(policy),
            version_2: SignedFormVersion2 { access_key: Some(KEY), signature: None },
            ..SignedForm::default()
        };
        assert_eq!(checked(&incomplete), Err(AuthError::FormFieldMissing { name: "Signature" }));
        let strict = Authenticator::new(RootCredential::new(KEY, SECRET));
        let refused = strict.authenticate_form(&form(&signature), Timestamp(0), RootAttempts::Checked);
        assert_eq!(refused, Err(AuthError::SignatureVersion2));
    }
}
