//! Presigned URLs that were verified before: what they must still be refused for.

use crate::signer::{DATE, NOW, Request, Signer, authenticator};
use cairn_identity::{
    Authenticator, Credential, Credentials, Generation, Principal, RootAttempts, RootCredential,
    SignedRequest,
};
use cairn_model::Timestamp;
use std::cell::Cell;

fn url(lifetime: &str) -> Request {
    let mut request = Request::new("GET", "/b/k", "", &[("host", "localhost:7600"), ("range", "bytes=0-1")]);
    Signer::default().presign(&mut request, "host", lifetime, "UNSIGNED-PAYLOAD");
    request
}

fn after(seconds: u64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1000)
}

/// Credentials that can be revoked and get another secret.
struct Changing {
    root: RootCredential,
    is_revoked: Cell<bool>,
    generation: Cell<Generation>,
    lookups: Cell<u64>,
}

impl Changing {
    fn new() -> Self {
        let root = RootCredential::new(crate::signer::ACCESS_KEY, crate::signer::SECRET_KEY);
        Self { root, is_revoked: Cell::new(false), generation: Cell::new(7), lookups: Cell::new(0) }
    }
}

impl Credentials for &Changing {
    fn find(&self, access_key: &str, now: Timestamp) -> Option<Credential> {
        self.lookups.set(self.lookups.get() + 1);
        let found = self.root.find(access_key, now)?;
        (!self.is_revoked.get()).then(|| Credential { generation: self.generation.get(), ..found })
    }

    fn version(&self) -> u64 {
        0
    }

    fn principal(&self, access_key: &str, generation: Generation) -> Option<Principal> {
        self.root.principal(access_key, generation)
    }
}

#[test]
fn a_remembered_url_gives_the_same_proof_again() {
    let (authenticator, request) = (authenticator(), url("60"));
    let first = request.authenticate(&authenticator, NOW).expect("signed");
    let mut again = request.clone();
    // A header that no signature covers and that verification does not read.
    again.set("range", "bytes=5-9");
    for seconds in [0, 30, 60] {
        assert_eq!(again.authenticate(&authenticator, after(seconds)).expect("signed"), first);
    }
}

#[test]
fn a_remembered_url_expires() {
    let (authenticator, request) = (authenticator(), url("60"));
    request.authenticate(&authenticator, after(60)).expect("still valid");
    let expired = request.authenticate(&authenticator, after(61)).expect_err("expired");
    assert_eq!(expired, request.authenticate(&self::authenticator(), after(61)).expect_err("expired"));
    let early = Timestamp(NOW.0 - 16 * 60 * 1000);
    let refused = request.authenticate(&authenticator, early).expect_err("not yet valid");
    assert_eq!(refused, request.authenticate(&self::authenticator(), early).expect_err("not yet valid"));
}

#[test]
fn a_revoked_credential_is_refused_for_the_very_next_request() {
    let credentials = Changing::new();
    let (authenticator, request) = (Authenticator::new(&credentials), url("60"));
    for _ in 0..3 {
        request.authenticate(&authenticator, NOW).expect("signed");
    }
    assert_eq!(credentials.lookups.get(), 3, "a remembered URL asks for the credential each time");
    credentials.is_revoked.set(true);
    let refused = request.authenticate(&authenticator, NOW).expect_err("revoked");
    assert_eq!((refused.status(), refused.code()), (403, "InvalidAccessKeyId"));
    credentials.is_revoked.set(false);
    request.authenticate(&authenticator, NOW).expect("signed");
}

#[test]
fn a_url_of_another_secret_is_verified_anew() {
    let credentials = Changing::new();
    let (authenticator, request) = (Authenticator::new(&credentials), url("60"));
    request.authenticate(&authenticator, NOW).expect("signed");
    // The test signer's secret is still the right one, so the whole verification accepts it.
    credentials.generation.set(8);
    request.authenticate(&authenticator, NOW).expect("signed");
}

#[test]
fn root_is_refused_while_it_is_throttled() {
    let (authenticator, request) = (authenticator(), url("60"));
    request.authenticate(&authenticator, NOW).expect("signed");
    let headers: Vec<(&str, &[u8])> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
    let signed = SignedRequest {
        method: &request.method,
        path: &request.path,
        query: request.query.as_deref(),
        headers: &headers,
        bucket_in_host: None,
    };
    let refused = authenticator.authenticate_throttled(&signed, NOW, RootAttempts::Refused);
    assert_eq!(refused.expect_err("throttled").status(), 503);
}

#[test]
fn a_remembered_url_with_another_signature_in_a_header_is_refused() {
    let (authenticator, request) = (authenticator(), url("60"));
    request.authenticate(&authenticator, NOW).expect("signed");
    for (name, value) in
        [("authorization", "AWS4-HMAC-SHA256 x"), ("x-amz-date", DATE), ("x-amz-acl", "private")]
    {
        let mut changed = request.clone();
        changed.header(name, value);
        let error = changed.authenticate(&authenticator, NOW).expect_err(name);
        assert_eq!(error, changed.authenticate(&self::authenticator(), NOW).expect_err(name));
    }
}
