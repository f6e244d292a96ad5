//! AWS Signature Version 4 for S3, in headers and in presigned URLs.
//!
//! Source: AWS, "Authenticating Requests: Using the Authorization Header" and "Using Query Parameters" (S3 API reference). The
//! tests are the examples of those pages. The key of a day is derived once and cached, so a signature costs one SHA-256 over
//! the canonical request and one HMAC.

mod date;
mod encoding;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub use date::Moment;
pub use encoding::{push_encoded_path, push_encoded_value};

/// Payload hash of a body that is not covered by the signature.
pub const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// SHA-256 of nothing, for requests without a body.
pub const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Upper-case method.
    pub method: &'a str,
    /// Path, encoded by [`push_encoded_path`], as it is sent.
    pub path: &'a str,
    /// Query, encoded and sorted; empty for none.
    pub query: &'a str,
    /// Headers: names in lower case, sorted; values trimmed. `host` is among them.
    pub headers: &'a [(&'a str, &'a str)],
    /// Hex SHA-256 of the body, or [`UNSIGNED_PAYLOAD`].
    pub payload: &'a str,
}

/// Signs requests for one credential in one region. Not shared between threads, because it reuses buffers.
#[derive(Clone)]
pub struct Signer {
    access_key: String,
    secret_key: String,
    region: String,
    day: Option<Day>,
    canonical: String,
    to_sign: String,
}

/// The signing key of one day, derived once.
#[derive(Clone)]
struct Day {
    date: String,
    key: Hmac<Sha256>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Signer({}, {}, <redacted>)", self.access_key, self.region)
    }
}

impl Signer {
    /// A signer for service `s3`.
    #[must_use]
    pub fn new(access_key: &str, secret_key: &str, region: &str) -> Self {
        Self {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            region: region.to_owned(),
            day: None,
            canonical: String::with_capacity(1024),
            to_sign: String::with_capacity(256),
        }
    }

    /// Appends the value of the `Authorization` header to `out`.
    pub fn push_authorization(&mut self, parts: &Parts<'_>, at: &Moment, out: &mut String) {
        let signature = self.signature(parts, at);
        out.push_str("AWS4-HMAC-SHA256 Credential=");
        out.push_str(&self.access_key);
        out.push('/');
        self.push_scope(at, out);
        out.push_str(", SignedHeaders=");
        push_names(parts.headers, out);
        out.push_str(", Signature=");
        out.push_str(&signature);
    }

    /// Returns the query of a presigned URL: sorted and encoded, with `X-Amz-Signature` last. `query` contains the request's
    /// own parameters, not encoded. As in AWS's SDKs, only `host` is signed and the payload is not.
    pub fn presigned_query(
        &mut self,
        (method, path, host): (&str, &str, &str),
        query: &[(&str, &str)],
        at: &Moment,
        expires_seconds: u32,
    ) -> String {
        let mut credential = format!("{}/", self.access_key);
        self.push_scope(at, &mut credential);
        let expires = expires_seconds.to_string();
        let own = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", credential.as_str()),
            ("X-Amz-Date", at.stamp()),
            ("X-Amz-Expires", expires.as_str()),
            ("X-Amz-SignedHeaders", "host"),
        ];
        let mut text = canonical_query(own.iter().chain(query));
        let headers = [("host", host)];
        let parts = Parts { method, path, query: &text, headers: &headers, payload: UNSIGNED_PAYLOAD };
        let signature = self.signature(&parts, at);
        text.push_str("&X-Amz-Signature=");
        text.push_str(&signature);
        text
    }

    /// `20130524/us-east-1/s3/aws4_request`
    fn push_scope(&self, at: &Moment, out: &mut String) {
        out.push_str(at.date());
        out.push('/');
        out.push_str(&self.region);
        out.push_str("/s3/aws4_request");
    }

    fn signature(&mut self, parts: &Parts<'_>, at: &Moment) -> String {
        self.canonical.clear();
        for piece in [parts.method, "\n", parts.path, "\n", parts.query, "\n"] {
            self.canonical.push_str(piece);
        }
        for (name, value) in parts.headers {
            for piece in [*name, ":", *value, "\n"] {
                self.canonical.push_str(piece);
            }
        }
        self.canonical.push('\n');
        push_names(parts.headers, &mut self.canonical);
        self.canonical.push('\n');
        self.canonical.push_str(parts.payload);

        let mut to_sign = std::mem::take(&mut self.to_sign);
        to_sign.clear();
        for piece in ["AWS4-HMAC-SHA256\n", at.stamp(), "\n"] {
            to_sign.push_str(piece);
        }
        self.push_scope(at, &mut to_sign);
        to_sign.push('\n');
        to_sign.push_str(&hex::encode(Sha256::digest(self.canonical.as_bytes())));
        let mut mac = self.key_of(at).clone();
        mac.update(to_sign.as_bytes());
        self.to_sign = to_sign;
        hex::encode(mac.finalize().into_bytes())
    }

    fn key_of(&mut self, at: &Moment) -> &Hmac<Sha256> {
        if self.day.as_ref().is_none_or(|day| day.date != at.date()) {
            let secret = format!("AWS4{}", self.secret_key);
            let mut key = keyed(secret.as_bytes());
            for step in [at.date(), &self.region, "s3", "aws4_request"] {
                key.update(step.as_bytes());
                key = keyed(&key.finalize().into_bytes());
            }
            self.day = Some(Day { date: at.date().to_owned(), key });
        }
        &self.day.as_ref().expect("set above").key
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn push_names(headers: &[(&str, &str)], out: &mut String) {
    for (number, (name, _)) in headers.iter().enumerate() {
        if number > 0 {
            out.push(';');
        }
        out.push_str(name);
    }
}

/// Returns a query string in canonical form: strictly encoded, sorted by encoded name and value, `name=` for an empty value.
pub fn canonical_query<'a>(pairs: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    let mut encoded: Vec<(String, String)> = pairs
        .map(|(name, value)| {
            let mut pair = (String::new(), String::new());
            push_encoded_value(name, &mut pair.0);
            push_encoded_value(value, &mut pair.1);
            pair
        })
        .collect();
    encoded.sort();
    let pairs: Vec<String> = encoded.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests;
