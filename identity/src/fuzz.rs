//! What must hold of authentication for any request and of policies for any document: the bodies of the fuzz targets in
//! `fuzz/`, which `cargo test` runs on the kept corpora and on mutations of them.

use crate::policy::{Action, Policy, Resource, Rights, naive};
use crate::sigv4::sign;
use crate::{AuthError, Authenticator, RootCredential, SignedRequest};
use cairn_model::Timestamp;

/// What a fuzz target calls with its input; it panics when a property does not hold.
pub type Body = fn(&[u8]);

/// The bodies of this crate, by the names of their targets.
pub const BODIES: &[(&str, Body)] = &[("sigv4", sigv4), ("policy", policy)];

/// The access key that the corpora use.
pub const ACCESS_KEY: &str = "AKIDEXAMPLE";
/// Its secret. No seed is signed with it, so no input of a fuzzer is, unless a body signs it.
pub const SECRET_KEY: &str = "of the fuzz targets alone";
/// The signature that seeds carry; see [`signed_as_asked`].
pub const PLACEHOLDER: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// 2026-11-21T05:00:00Z, the time of the seeds.
pub const NOW: Timestamp = Timestamp(1_795_237_200_000);

/// A request as inputs spell it: method, path, query (a lone `-`: none), then one header per line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextRequest {
    /// The method.
    pub method: String,
    /// The raw path.
    pub path: String,
    /// The raw query.
    pub query: Option<String>,
    /// Names, which the head's parser gives in lower case, and trimmed values.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl TextRequest {
    /// Takes an input apart; `None` when it is no request that the head's parser could have let through.
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

    /// What an authenticator says of it at [`NOW`], secret and cache included.
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
        };
        authenticator.authenticate(&request, NOW).map(drop)
    }
}

/// An authenticator that knows the one credential of the corpora.
#[must_use]
pub fn authenticator() -> Authenticator<RootCredential> {
    Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY))
}

/// Puts the right signature in place of [`PLACEHOLDER`]; `None` when the request does not get as far as being compared
/// with one, or carries another.
#[must_use]
pub fn signed_as_asked(request: &TextRequest) -> Option<TextRequest> {
    let Err(AuthError::SignatureMismatch(mismatch)) = request.authenticate(&authenticator()) else {
        return None;
    };
    if mismatch.signature_provided != PLACEHOLDER {
        return None;
    }
    let scope = mismatch.string_to_sign.lines().nth(2)?;
    let mut parts = scope.split('/');
    let signature = sign(SECRET_KEY, parts.next()?, parts.next()?, mismatch.string_to_sign.as_bytes());
    // In one place only: elsewhere the same text may be part of what is signed.
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

/// A request of a fuzzer is never let in; the same request is refused for the same reason each time; the reason never
/// tells the secret; and with the right signature it is let in, unless a header that must be signed is not.
///
/// # Panics
/// When a property does not hold.
pub fn sigv4(data: &[u8]) {
    let Some(request) = TextRequest::parse(data) else { return };
    let authenticator = authenticator();
    let Err(refused) = request.authenticate(&authenticator) else { panic!("let in without a secret") };
    assert_eq!(request.authenticate(&authenticator).as_ref(), Err(&refused));
    assert!((400..=501).contains(&refused.status()) && !refused.code().is_empty());
    let told = format!("{} {:?} {refused:?}", refused.message(), refused.details());
    assert!(!told.contains(SECRET_KEY) || contains(data, SECRET_KEY.as_bytes()));
    let Some(signed) = signed_as_asked(&request) else { return };
    // Twice: derived anew, and with the key that the first success has left in the cache.
    for _ in 0..2 {
        match signed.authenticate(&authenticator) {
            Ok(()) | Err(AuthError::HeadersNotSigned { .. }) => {}
            Err(error) => panic!("signed as the server asked, and refused: {error:?}"),
        }
    }
}

/// A document is a policy or is refused with a bounded message; a policy is written as one that reads the same, and its
/// compiled form answers as the naive evaluator does. The first line of an input is the question: a bucket, and a key behind
/// its first slash.
///
/// # Panics
/// When a property does not hold.
pub fn policy(data: &[u8]) {
    const MESSAGE_BYTES_MAX: usize = 4096;
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (question, document) = data.split_at(end);
    let read = match Policy::from_json(document) {
        Ok(read) => read,
        Err(refused) => return assert!(refused.to_string().len() <= MESSAGE_BYTES_MAX),
    };
    let written = serde_json::to_vec(&read.to_draft()).expect("a policy can be written");
    assert_eq!(Policy::from_json(&written).as_ref(), Ok(&read));
    let Ok(question) = std::str::from_utf8(question) else { return };
    let resource = match question.split_once('/') {
        Some((bucket, key)) => Resource::Object(bucket, key),
        None => Resource::Bucket(question),
    };
    let rights = Rights::compile([&read]);
    let policies = [read];
    for action in Action::ALL {
        assert_eq!(rights.decide(action, resource), naive::decide(&policies, action, resource));
    }
}

fn contains(data: &[u8], part: &[u8]) -> bool {
    data.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
#[path = "../../fuzz/slice.rs"]
mod slice;
