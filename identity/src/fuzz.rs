//! Bodies of the fuzz targets for authentication and policies.
//!
//! The targets in `fuzz/` call them. `cargo test` also runs them on the stored corpora and on mutations of these.

use crate::chunk_signatures::ChunkSignatures;
use crate::credential::RootCredential;
use crate::policy::{Action, Policy, Resource, Rights, naive};
use crate::request::SignedRequest;
use crate::sigv4::{self, AuthError, Authenticator, sign};
use cairn_model::Timestamp;
use sha2::{Digest as _, Sha256};
use std::net::IpAddr;

/// The body of a fuzz target. Panics if a property does not hold for the input.
pub type Body = fn(&[u8]);

/// The bodies of this crate with the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("sigv4", sigv4), ("policy", policy)];

/// The access key that the corpora use.
pub const ACCESS_KEY: &str = "AKIDEXAMPLE";
/// The secret of [`ACCESS_KEY`]. No seed is signed with it, so no input is, unless a body signs it.
pub const SECRET_KEY: &str = "of the fuzz targets alone";
/// The signature in the seeds, see [`with_valid_signature`].
pub const PLACEHOLDER: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// 2026-11-21T05:00:00Z, the time of the seeds.
pub const NOW: Timestamp = Timestamp(1_795_237_200_000);

/// A request in the text form of the inputs: method, path, query (`-` for none), then one header per line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextRequest {
    /// The method.
    pub method: String,
    /// The raw path.
    pub path: String,
    /// The raw query.
    pub query: Option<String>,
    /// Names in lower case, as the head parser produces them, and trimmed values.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl TextRequest {
    /// Parses an input. Returns `None` if the head parser would not accept such a request.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut lines = data.split(|&byte| byte == b'\n');
        let mut text = || lines.next().and_then(|line| std::str::from_utf8(line).ok()).map(str::to_owned);
        let (method, path, query) = (text()?, text()?, text()?);
        let in_target = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || path.contains('?') || !in_target(&path) || !in_target(&query) {
            return None;
        }
        let mut headers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?.to_ascii_lowercase();
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let value = line[colon + 1..].trim_ascii();
            if !name.bytes().all(is_token) || value.iter().any(|byte| matches!(byte, b'\r' | 0)) {
                return None;
            }
            headers.push((name, value.to_vec()));
        }
        Some(Self { method, path, query: Some(query).filter(|query| query != "-"), headers })
    }

    /// Authenticates the request at the time [`NOW`].
    ///
    /// # Errors
    /// As [`Authenticator::authenticate`].
    pub fn authenticate(&self, authenticator: &Authenticator<RootCredential>) -> Result<(), AuthError> {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let request = SignedRequest {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &headers,
            bucket_in_host: None,
        };
        authenticator.authenticate(&request, NOW).map(drop)
    }
}

/// Makes an authenticator that knows only the credential of the corpora.
#[must_use]
pub fn authenticator() -> Authenticator<RootCredential> {
    Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY))
}

/// Replaces [`PLACEHOLDER`] with the valid signature. Returns `None` if the request is refused before its signature is
/// compared, or has another signature.
#[must_use]
pub fn with_valid_signature(request: &TextRequest) -> Option<TextRequest> {
    let Err(AuthError::SignatureMismatch(mismatch)) = request.authenticate(&authenticator()) else {
        return None;
    };
    if mismatch.signature_provided != PLACEHOLDER {
        return None;
    }
    let scope = mismatch.string_to_sign.lines().nth(2)?;
    let mut parts = scope.split('/');
    let signature = sign(SECRET_KEY, parts.next()?, parts.next()?, mismatch.string_to_sign.as_bytes());
    // If the placeholder occurs twice, the other occurrence may be part of what is signed.
    let once = |text: &str| text.matches(PLACEHOLDER).count() == 1;
    let mut signed = request.clone();
    let authorization =
        signed.headers.iter_mut().find(|(name, value)| name == "authorization" && !value.is_empty());
    if let Some((_, value)) = authorization {
        let text = String::from_utf8(value.clone()).ok().filter(|text| once(text))?;
        *value = text.replace(PLACEHOLDER, &signature).into_bytes();
    } else {
        let text = signed.query.filter(|text| once(text))?;
        signed.query = Some(text.replace(PLACEHOLDER, &signature));
    }
    Some(signed)
}

/// The credential, time and region of the examples of chunked uploads that AWS publishes.
const CHUNK_SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const CHUNK_CONTEXT: &str = "20130524T000000Z\n20130524/us-east-1/s3/aws4_request";

/// Verifies the chunks of a request with this signature, signed with the credential of the published examples.
///
/// # Panics
/// If `seed` does not have 64 digits.
#[must_use]
pub fn chunk_signatures(seed: &str) -> ChunkSignatures {
    let (date, scope) = CHUNK_CONTEXT.split_once('\n').expect("a time and a scope");
    sigv4::chunk_signatures(CHUNK_SECRET, date, scope, seed.as_bytes().try_into().expect("64 digits"))
}

/// Signs a chunk whose data has this SHA-256, after `previous`.
#[must_use]
pub fn sign_chunk(previous: &str, sha256: &[u8; 32]) -> String {
    let digests = format!("{}\n{}", hex::encode(Sha256::digest(b"")), hex::encode(sha256));
    sign_after("AWS4-HMAC-SHA256-PAYLOAD", previous, &digests)
}

/// Signs the fields of a trailer, after `previous`.
#[must_use]
pub fn sign_trailer(previous: &str, fields: &[u8]) -> String {
    sign_after("AWS4-HMAC-SHA256-TRAILER", previous, &hex::encode(Sha256::digest(fields)))
}

fn sign_after(algorithm: &str, previous: &str, digests: &str) -> String {
    let text = format!("{algorithm}\n{CHUNK_CONTEXT}\n{previous}\n{digests}");
    sign(CHUNK_SECRET, "20130524", "us-east-1", text.as_bytes())
}

/// Checks the properties of authentication for any request.
///
/// A request without a valid signature is always refused, each time with the same error, and the error never contains the
/// secret. With a valid signature it is accepted, unless a header that must be signed is not.
///
/// # Panics
/// If a property does not hold.
pub fn sigv4(data: &[u8]) {
    let Some(request) = TextRequest::parse(data) else { return };
    let authenticator = authenticator();
    let Err(refused) = request.authenticate(&authenticator) else { panic!("accepted without the secret") };
    assert_eq!(request.authenticate(&authenticator).as_ref(), Err(&refused));
    assert!((400..=501).contains(&refused.status()) && !refused.code().is_empty());
    let shown = format!("{} {:?} {refused:?}", refused.message(), refused.details());
    assert!(!shown.contains(SECRET_KEY) || contains(data, SECRET_KEY.as_bytes()));
    let Some(signed) = with_valid_signature(&request) else { return };
    // Twice: the first time the signing key is derived, the second time it comes from the cache.
    for _ in 0..2 {
        match signed.authenticate(&authenticator) {
            Ok(()) | Err(AuthError::HeadersNotSigned { .. }) => {}
            Err(error) => panic!("refused in spite of a valid signature: {error:?}"),
        }
    }
}

/// Checks the properties of policies for any document.
///
/// An invalid document is refused with a message of bounded length. A valid one round-trips through JSON, and its compiled
/// rights agree with the naive evaluator. The first line of an input is the resource to evaluate: a bucket, or a bucket and
/// a key separated by the first slash.
///
/// # Panics
/// If a property does not hold.
pub fn policy(data: &[u8]) {
    const MESSAGE_BYTES_MAX: usize = 4096;
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (resource, document) = data.split_at(end);
    let policy = match Policy::from_json(document) {
        Ok(policy) => policy,
        Err(refused) => return assert!(refused.to_string().len() <= MESSAGE_BYTES_MAX),
    };
    let written = serde_json::to_vec(&policy.to_draft()).expect("a policy can be written as JSON");
    assert_eq!(Policy::from_json(&written).as_ref(), Ok(&policy));
    let Ok(resource) = std::str::from_utf8(resource) else { return };
    let resource = match resource.split_once('/') {
        Some((bucket, key)) => Resource::Object(bucket, key),
        None => Resource::Bucket(resource),
    };
    let rights = Rights::compile([&policy]);
    let policies = [policy];
    for client in [None, Some(IpAddr::from([10, 1, 2, 3]))] {
        for action in Action::ALL {
            let decided = rights.decide(action, resource, client);
            assert_eq!(decided, naive::decide(&policies, action, resource, client));
        }
    }
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    data.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
#[path = "../../fuzz/short_run.rs"]
mod short_run;
