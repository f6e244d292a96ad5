//! Verification of a request's signature, from top to bottom.
//!
//! The order of the checks is that of AWS: signing method, form, date, access key, signature, unsigned headers. A credential
//! that may not be used for S3 is refused before its signature is checked, so that its secret cannot be guessed here.
//! Requests of clients without a secret change no state.

use super::canonical::{CanonicalQuery, write_canonical_request};
use super::claim::Claim;
use super::date::AmzDate;
use super::error::{AuthError, MalformedReason, SignatureMismatch, UnsupportedSigning};
use super::header::AuthHeaders;
use super::key::{KeyName, SigningKey, SigningKeyCache};
use super::limits::{ALGORITHM, REQUEST_TIME_SKEW_SECONDS_MAX};
use super::payload::AcceptedBodies;
use super::presigned::{Parameters, refuse_asymmetric};
use super::presigned_cache::{PresignedCache, RequestDigest, VerifiedUrl};
use super::scope::{Scope, SignedHeaders};
use crate::chunk_signatures::{ChunkSignatures, hex_digits};
use crate::credential::{Credential, Credentials, Principal, Usability};
use crate::request::{Authentication, PayloadDigest, SignatureKind, SignedRequest};
use crate::throttle::{FailedCredential, RootAttempts};
use cairn_model::Timestamp;
use cairn_model::iso8601::iso8601_seconds;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Prefix of the headers that a signature must cover.
const AMZ_PREFIX: &[u8] = b"x-amz-";

/// Buffers that are reused between requests to avoid allocations. They are bounded, because request heads are: they take at
/// most three bytes for each byte of a head.
#[derive(Default)]
struct Scratch {
    query: CanonicalQuery,
    work: Work,
}

#[derive(Default)]
struct Work {
    canonical_request: Vec<u8>,
    string_to_sign: Vec<u8>,
}

/// Verifies signatures. Each executor has one, with its own buffers and its own bounded caches of signing keys and of
/// presigned URLs.
pub struct Authenticator<C> {
    credentials: C,
    bodies: AcceptedBodies,
    accepts_version_2: bool,
    keys: RefCell<SigningKeyCache>,
    presigned: RefCell<PresignedCache>,
    scratch: RefCell<Scratch>,
}

impl<C: Credentials> Authenticator<C> {
    /// Makes an authenticator for `credentials` with empty caches. It refuses `aws-chunked` bodies.
    #[must_use]
    pub fn new(credentials: C) -> Self {
        let keys = RefCell::new(SigningKeyCache::new());
        Self {
            credentials,
            bodies: AcceptedBodies::Whole,
            accepts_version_2: false,
            keys,
            presigned: RefCell::new(PresignedCache::new()),
            scratch: RefCell::default(),
        }
    }

    /// Accepts `aws-chunked` bodies of requests whose signature is in the header. The caller must decode the body and verify
    /// it ([`PayloadDigest::Chunked`](crate::PayloadDigest::Chunked)), or refuse the request.
    #[must_use]
    pub fn with_chunked_bodies(self) -> Self {
        Self { bodies: AcceptedBodies::WholeOrChunked, ..self }
    }

    /// Accepts Signature Version 2 in presigned URLs and browser forms.
    #[must_use]
    pub fn with_version_2(self) -> Self {
        Self { accepts_version_2: true, ..self }
    }

    pub(super) fn accepts_version_2(&self) -> bool {
        self.accepts_version_2
    }

    /// Returns the credentials that the authenticator looks up keys in.
    #[must_use]
    pub fn credentials(&self) -> &C {
        &self.credentials
    }

    /// Verifies the signature of `request` and returns its signer. `now` is the wall clock time.
    ///
    /// The body is not verified: the caller compares it with [`Authentication::payload`].
    ///
    /// # Errors
    /// An [`AuthError`] with its S3 code, status and message.
    pub fn authenticate(
        &self,
        request: &SignedRequest<'_>,
        now: Timestamp,
    ) -> Result<Authentication, AuthError> {
        self.authenticate_throttled(request, now, RootAttempts::Checked)
    }

    /// Like [`Authenticator::authenticate`], but refuses the root credential unchecked if `root_attempts` says so. The
    /// caller counts failures, see [`AuthError::failed_credential`].
    ///
    /// # Errors
    /// Those of [`Authenticator::authenticate`], and [`AuthError::TooManyFailures`].
    pub fn authenticate_throttled(
        &self,
        request: &SignedRequest<'_>,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        let digest = RequestDigest::of(request);
        if let Some(authentication) =
            digest.and_then(|digest| self.authenticate_again(digest, now, root_attempts))
        {
            return Ok(authentication);
        }
        let scratch = &mut *self.scratch.borrow_mut();
        scratch.query.read(request.query).map_err(|_| AuthError::UriInvalid)?;
        let headers = AuthHeaders::collect(request.headers);
        let parameters = Parameters::collect(&scratch.query);
        if headers.has_security_token || parameters.has_security_token {
            return Err(AuthError::NotImplemented(UnsupportedSigning::SecurityToken));
        }
        let query_signed = parameters.has_signature() || parameters.has_version_2_signature;
        match headers.authorization {
            Some(_) if query_signed => Err(AuthError::TwoMechanisms),
            Some(authorization) => {
                refuse_repeated(&headers)?;
                let claim = headers.claim(authorization, self.bodies)?;
                check_skew(claim.date, now)?;
                let work = &mut scratch.work;
                self.verify(request, &claim, &scratch.query, work, now, root_attempts)
            }
            None if parameters.has_signature() => {
                refuse_repeated(&headers)?;
                refuse_asymmetric(&parameters)?;
                let presigned = parameters.read().map_err(AuthError::QueryMalformed)?;
                let claim = presigned.claim(&headers)?;
                let lifetime = presigned.lifetime_seconds;
                if lifetime == 0 && self.bodies == AcceptedBodies::Whole {
                    return Err(AuthError::QueryMalformed(MalformedReason::Lifetime));
                }
                check_lifetime(claim.date, lifetime, now)?;
                let authentication =
                    self.verify(request, &claim, &scratch.query, &mut scratch.work, now, root_attempts)?;
                if let Some(digest) = digest {
                    self.remember(digest, &claim, lifetime, &authentication);
                }
                Ok(authentication)
            }
            None if parameters.has_version_2_signature && self.accepts_version_2 => {
                refuse_repeated(&headers)?;
                self.authenticate_version_2(request, &scratch.query, &headers, now, root_attempts)
            }
            None if parameters.has_version_2_signature => Err(AuthError::SignatureVersion2),
            None => Err(AuthError::NoAuthentication),
        }
    }

    /// Authenticates a presigned request whose signature was verified before. Returns `None` if it was not, or if anything
    /// else speaks against the request: the whole verification then finds out what.
    fn authenticate_again(
        &self,
        request: RequestDigest,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Option<Authentication> {
        let cache = self.presigned.borrow();
        let verified = cache.get(request)?;
        lifetime_fault(verified.signed_at_seconds, verified.lifetime_seconds, now).is_none().then_some(())?;
        // Before the lookup, so that a change in between is noticed later.
        let credentials_version = self.credentials.version();
        let credential = self.find(&verified.access_key, now, root_attempts).ok()?;
        (credential.generation == verified.generation).then_some(())?;
        if let Some(last_use) = &credential.last_use {
            last_use.record(now);
        }
        Some(Authentication {
            principal: credential.principal,
            access_key: Arc::clone(&verified.access_key),
            generation: verified.generation,
            payload: PayloadDigest::Unsigned,
            chunk_signatures: None,
            kind: SignatureKind::Presigned,
            signed_at: Timestamp(verified.signed_at_seconds * 1000),
            credentials_version,
        })
    }

    /// Remembers a presigned request whose signature was verified, if it covers `host` only and no body.
    fn remember(
        &self,
        request: RequestDigest,
        claim: &Claim<'_>,
        lifetime_seconds: u64,
        authentication: &Authentication,
    ) {
        if claim.signed_headers.text != "host" || claim.payload.digest != PayloadDigest::Unsigned {
            return;
        }
        let url = VerifiedUrl {
            access_key: Arc::clone(&authentication.access_key),
            generation: authentication.generation,
            signed_at_seconds: claim.date.seconds,
            lifetime_seconds,
        };
        self.presigned.borrow_mut().insert(request, url);
    }

    /// Looks the signer of an earlier request up again, if anything has changed since. Returns `None` if nothing has: the
    /// usual case, which costs one atomic load.
    ///
    /// # Errors
    /// [`AuthError::UnknownAccessKey`] if the credential was deleted or disabled, also if another one has its access key now.
    pub fn changed_principal(&self, authentication: &Authentication) -> Result<Option<Principal>, AuthError> {
        let Authentication { principal, access_key, generation, credentials_version, .. } = authentication;
        if matches!(principal, Principal::Root | Principal::Anonymous)
            || self.credentials.version() == *credentials_version
        {
            return Ok(None);
        }
        let unknown = || AuthError::UnknownAccessKey { access_key: access_key.to_string() };
        self.credentials.principal(access_key, *generation).map(Some).ok_or_else(unknown)
    }

    /// Returns whether a credential may be used, or `None` if no account has this access key. For explanations only.
    #[must_use]
    pub fn usability(&self, access_key: &str) -> Option<Usability> {
        self.credentials.usability(access_key)
    }

    /// Looks up the credential, compares signatures, and then checks what the signature covers.
    fn verify(
        &self,
        request: &SignedRequest<'_>,
        claim: &Claim<'_>,
        query: &CanonicalQuery,
        work: &mut Work,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        // Before the lookup, so that a change in between is noticed later.
        let credentials_version = self.credentials.version();
        let credential = self.find(claim.scope.access_key, now, root_attempts)?;
        write_canonical_request(
            &mut work.canonical_request,
            request,
            query,
            claim.signed_headers,
            claim.payload.text,
        )
        .map_err(|_| AuthError::UriInvalid)?;
        write_string_to_sign(work, claim);
        let (access_key, chunk_signatures) = self.compare(claim, &credential, work)?;
        refuse_unsigned_headers(request.headers, claim.signed_headers)?;
        Ok(authenticated(claim, credential, access_key, chunk_signatures, credentials_version, now))
    }

    /// Looks up the credential and compares the signature of a text that a form has.
    pub(super) fn verify_text(
        &self,
        claim: &Claim<'_>,
        text: &[u8],
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Authentication, AuthError> {
        let credentials_version = self.credentials.version();
        let credential = self.find(claim.scope.access_key, now, root_attempts)?;
        let work = &mut self.scratch.borrow_mut().work;
        work.canonical_request.clear();
        work.string_to_sign.clear();
        work.string_to_sign.extend_from_slice(text);
        let (access_key, _) = self.compare(claim, &credential, work)?;
        Ok(authenticated(claim, credential, access_key, None, credentials_version, now))
    }

    /// Looks up the credential, if it may be used here.
    pub(super) fn find(
        &self,
        access_key: &str,
        now: Timestamp,
        root_attempts: RootAttempts,
    ) -> Result<Credential, AuthError> {
        let Some(credential) = self.credentials.find(access_key, now) else {
            return Err(AuthError::UnknownAccessKey { access_key: access_key.to_owned() });
        };
        if !credential.allowed_on_data_plane {
            return Err(AuthError::DataPlaneRefused);
        }
        if credential.principal == Principal::Root && root_attempts == RootAttempts::Refused {
            return Err(AuthError::TooManyFailures);
        }
        Ok(credential)
    }

    /// Compares the claimed signature with the computed one. Returns the access key as a shared string, and what verifies the
    /// chunks of the body if they are signed.
    fn compare(
        &self,
        claim: &Claim<'_>,
        credential: &Credential,
        work: &Work,
    ) -> Result<(Arc<str>, Option<Box<ChunkSignatures>>), AuthError> {
        let Scope { access_key, date, region, .. } = claim.scope;
        let name = KeyName { access_key, date, region };
        if let Some((key, access_key)) = self.keys.borrow().get(name, credential.generation) {
            return if signs(key, work, claim) {
                Ok((Arc::clone(access_key), chunk_signatures(key, claim)))
            } else {
                Err(mismatch(claim, credential, work))
            };
        }
        let key = SigningKey::derive(&credential.secret_key, date, region);
        if !signs(&key, work, claim) {
            return Err(mismatch(claim, credential, work));
        }
        let access_key: Arc<str> = access_key.into();
        let chunk_signatures = chunk_signatures(&key, claim);
        self.keys.borrow_mut().insert(name, credential.generation, &access_key, key);
        Ok((access_key, chunk_signatures))
    }
}

impl<C> fmt::Debug for Authenticator<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

/// Returns the proof that `credential` signed the request, and records its use.
fn authenticated(
    claim: &Claim<'_>,
    credential: Credential,
    access_key: Arc<str>,
    chunk_signatures: Option<Box<ChunkSignatures>>,
    credentials_version: u64,
    now: Timestamp,
) -> Authentication {
    if let Some(last_use) = &credential.last_use {
        last_use.record(now);
    }
    Authentication {
        principal: credential.principal,
        access_key,
        generation: credential.generation,
        payload: claim.payload.digest,
        chunk_signatures,
        kind: claim.kind,
        signed_at: Timestamp(claim.date.seconds * 1000),
        credentials_version,
    }
}

/// Refuses requests that repeat a header which authentication reads.
fn refuse_repeated(headers: &AuthHeaders<'_>) -> Result<(), AuthError> {
    headers.repeated.map_or(Ok(()), |name| Err(AuthError::HeaderRepeated { name }))
}

/// Checks the date of a header signature. It is valid for as long as clocks may differ, so a recorded request soon expires.
fn check_skew(date: AmzDate, now: Timestamp) -> Result<(), AuthError> {
    if now.seconds().abs_diff(date.seconds) <= REQUEST_TIME_SKEW_SECONDS_MAX {
        return Ok(());
    }
    Err(AuthError::RequestTimeTooSkewed {
        request_time: date.text().to_owned(),
        server_time: iso8601_seconds(now.seconds()),
    })
}

/// Checks the lifetime of a presigned URL. Its date may be in the future by as much as clocks may differ.
pub(super) fn check_lifetime(date: AmzDate, lifetime_seconds: u64, now: Timestamp) -> Result<(), AuthError> {
    match lifetime_fault(date.seconds, lifetime_seconds, now) {
        None => Ok(()),
        Some(LifetimeFault::NotYetValid) => Err(AuthError::NotYetValid {
            valid_from: iso8601_seconds(date.seconds),
            server_time: iso8601_seconds(now.seconds()),
        }),
        Some(LifetimeFault::Expired) => {
            let expired_at = iso8601_seconds(date.seconds + lifetime_seconds);
            Err(AuthError::Expired {
                lifetime_seconds: Some(lifetime_seconds),
                expired_at,
                server_time: iso8601_seconds(now.seconds()),
            })
        }
    }
}

/// The reason why a presigned URL is not valid at a time.
enum LifetimeFault {
    NotYetValid,
    Expired,
}

/// Returns why a URL that was signed at `date_seconds` is not valid now; `None` if it is.
fn lifetime_fault(date_seconds: u64, lifetime_seconds: u64, now: Timestamp) -> Option<LifetimeFault> {
    if date_seconds > now.seconds().saturating_add(REQUEST_TIME_SKEW_SECONDS_MAX) {
        Some(LifetimeFault::NotYetValid)
    } else if lifetime_seconds == 0 || now.seconds() > date_seconds + lifetime_seconds {
        Some(LifetimeFault::Expired)
    } else {
        None
    }
}

/// Writes the string to sign: algorithm, time, scope, and the digest of the canonical request, one per line.
fn write_string_to_sign(work: &mut Work, claim: &Claim<'_>) {
    let out = &mut work.string_to_sign;
    out.clear();
    for line in [ALGORITHM, claim.date.text(), claim.scope.text] {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(&hex_digits(&Sha256::digest(&work.canonical_request).into()));
}

fn signs(key: &SigningKey, work: &Work, claim: &Claim<'_>) -> bool {
    hex_digits(&key.sign(&work.string_to_sign)).ct_eq(claim.signature).into()
}

/// Returns what verifies the chunks of the body, if they are signed. The signature of `claim` has been verified.
fn chunk_signatures(key: &SigningKey, claim: &Claim<'_>) -> Option<Box<ChunkSignatures>> {
    let PayloadDigest::Chunked(chunked) = claim.payload.digest else { return None };
    if !chunked.is_signed() {
        return None;
    }
    let seed = claim.signature.try_into().expect("a verified signature has 64 digits");
    let mac = key.clone().into_mac();
    Some(Box::new(ChunkSignatures::new(mac, claim.date.text(), claim.scope.text, seed)))
}

/// Returns how wrong signatures of a credential are throttled.
pub(super) const fn failed_credential(principal: &Principal) -> FailedCredential {
    match principal {
        Principal::Root => FailedCredential::Root,
        Principal::Account(_) | Principal::Anonymous => FailedCredential::Other,
    }
}

fn mismatch(claim: &Claim<'_>, credential: &Credential, work: &Work) -> AuthError {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    AuthError::SignatureMismatch(Box::new(SignatureMismatch {
        failed: failed_credential(&credential.principal),
        access_key: claim.scope.access_key.to_owned(),
        string_to_sign: text(&work.string_to_sign),
        // The policy of a form is signed as it is.
        canonical_request: Some(text(&work.canonical_request)).filter(|text| !text.is_empty()),
        signature_provided: text(claim.signature),
    }))
}

/// Refuses a request whose signature does not cover the host or an `x-amz-` header. The holder of a presigned URL could
/// otherwise add, for example, a copy source to it.
fn refuse_unsigned_headers(
    headers: &[(&str, &[u8])],
    signed_headers: SignedHeaders<'_>,
) -> Result<(), AuthError> {
    // Callers pass names in lower case. A name that is not is found here too, and refused.
    let is_amz = |name: &str| {
        name.as_bytes().get(..AMZ_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(AMZ_PREFIX))
    };
    let mut unsigned: Vec<&str> = Vec::new();
    if !signed_headers.contains("host") {
        unsigned.push("host");
    }
    for (name, _) in headers {
        if is_amz(name) && !signed_headers.contains(name) && !unsigned.contains(name) {
            unsigned.push(name);
        }
    }
    if unsigned.is_empty() { Ok(()) } else { Err(AuthError::HeadersNotSigned { names: unsigned.join(", ") }) }
}
