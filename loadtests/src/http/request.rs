//! Builds request heads: signed, presigned or unsigned.
//!
//! Each connection has its own [`Requests`], which builds heads in a reused buffer. If there are few keys, presigned GETs are
//! built once, before the measurement ([`PreparedHeads`]).

use std::fmt::Write as _;
use std::str::FromStr;

use crate::http::signature::{
    EMPTY_SHA256, Moment, Parts, Signer, UNSIGNED_PAYLOAD, canonical_query, push_encoded_path,
};
use crate::objects::key_space::KeySpace;

/// The authentication of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auth {
    /// `Authorization` header, computed for each request.
    Header,
    /// Query parameters.
    Presigned,
    /// Not at all, for file servers.
    None,
}

impl FromStr for Auth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "header" => Ok(Self::Header),
            "presigned" => Ok(Self::Presigned),
            "none" => Ok(Self::None),
            _ => Err(format!("'{text}': write header, presigned or none")),
        }
    }
}

/// A secret key, which is never printed.
#[derive(Clone)]
pub struct Secret(pub String);

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("<redacted>")
    }
}

/// Validity of a presigned URL: longer than any run. AWS's maximum is a week.
const PRESIGNED_SECONDS: u32 = 86_400;

/// The target of requests: host and bucket, with the credentials that sign them.
#[derive(Clone, Debug)]
pub struct Target {
    /// The `Host` header: host and port as in the endpoint.
    pub host: String,
    /// Name of the bucket.
    pub bucket: String,
    /// The authentication of requests.
    pub auth: Auth,
    /// Access key, secret key.
    pub credentials: (String, Secret),
    /// Region of the signature.
    pub region: String,
}

/// Builds request heads. Reuses buffers and the signing key of the day.
#[derive(Debug)]
pub struct Requests {
    target: Target,
    signer: Signer,
    moment: Moment,
    head: String,
    path: String,
}

impl Requests {
    /// Requests to this target.
    #[must_use]
    pub fn new(target: &Target) -> Self {
        let (access_key, secret_key) = &target.credentials;
        Self {
            signer: Signer::new(access_key, &secret_key.0, &target.region),
            target: target.clone(),
            moment: Moment::now(),
            head: String::with_capacity(1024),
            path: String::with_capacity(1200),
        }
    }

    /// A request for the object `key`. `payload` is the body's digest (or `UNSIGNED-PAYLOAD`) and its length.
    pub fn object(
        &mut self,
        method: &str,
        key: &str,
        payload: Option<(&str, u64)>,
        range: Option<(u64, u64)>,
    ) -> &str {
        self.set_path(Some(key));
        self.begin(method, &[], payload.map_or(EMPTY_SHA256, |(digest, _)| digest));
        if let Some((_, length)) = payload {
            write!(self.head, "Content-Length: {length}\r\n").expect("writing to a string does not fail");
        }
        if let Some(range) = range {
            push_range(range, &mut self.head);
        }
        self.head.push_str("\r\n");
        &self.head
    }

    /// A request to copy the object `source` of the same bucket.
    pub fn copy(&mut self, source: &str, key: &str) -> &str {
        let mut header = String::from("/");
        push_encoded_path(&self.target.bucket, &mut header);
        header.push('/');
        push_encoded_path(source, &mut header);
        self.set_path(Some(key));
        self.begin_with("PUT", &[], EMPTY_SHA256, Some(("x-amz-copy-source", &header)));
        self.head.push_str("Content-Length: 0\r\n\r\n");
        &self.head
    }

    /// A multipart upload request for `key`, with these query parameters (not encoded) and a body of `length` bytes.
    pub fn in_upload(&mut self, method: &str, key: &str, query: &[(&str, &str)], length: u64) -> &str {
        self.set_path(Some(key));
        self.begin(method, query, UNSIGNED_PAYLOAD);
        write!(self.head, "Content-Length: {length}\r\n\r\n").expect("writing to a string does not fail");
        &self.head
    }

    /// A request for the bucket itself, with these query parameters (not encoded) and no body.
    pub fn bucket(&mut self, method: &str, query: &[(&str, &str)]) -> &str {
        self.set_path(None);
        self.begin(method, query, EMPTY_SHA256);
        if method == "PUT" {
            self.head.push_str("Content-Length: 0\r\n");
        }
        self.head.push_str("\r\n");
        &self.head
    }

    /// A request from a presigned head.
    pub fn presigned(&mut self, prepared: &str, range: Option<(u64, u64)>) -> &str {
        self.head.clear();
        self.head.push_str(prepared);
        if let Some(range) = range {
            push_range(range, &mut self.head);
        }
        self.head.push_str("\r\n");
        &self.head
    }

    fn set_path(&mut self, key: Option<&str>) {
        self.path.clear();
        self.path.push('/');
        push_encoded_path(&self.target.bucket, &mut self.path);
        if let Some(key) = key {
            self.path.push('/');
            push_encoded_path(key, &mut self.path);
        }
    }

    /// Request line, host and authentication.
    fn begin(&mut self, method: &str, query: &[(&str, &str)], payload: &str) {
        self.begin_with(method, query, payload, None);
    }

    /// Like [`Self::begin`], with one more header, which is signed too. Its name must sort between those of the payload's hash
    /// and the date.
    fn begin_with(
        &mut self,
        method: &str,
        query: &[(&str, &str)],
        payload: &str,
        more: Option<(&str, &str)>,
    ) {
        self.moment.refresh();
        let host = self.target.host.as_str();
        let query = match self.target.auth {
            Auth::Presigned => self.signer.presigned_query(
                (method, &self.path, host),
                query,
                &self.moment,
                PRESIGNED_SECONDS,
            ),
            Auth::Header | Auth::None => canonical_query(query.iter()),
        };
        let head = &mut self.head;
        head.clear();
        let mark = if query.is_empty() { "" } else { "?" };
        for piece in [method, " ", &self.path, mark, &query, " HTTP/1.1\r\nHost: ", host, "\r\n"] {
            head.push_str(piece);
        }
        if self.target.auth == Auth::Header {
            let (first, digest, date) =
                (("host", host), ("x-amz-content-sha256", payload), ("x-amz-date", self.moment.stamp()));
            let (three, four) = ([first, digest, date], [first, digest, more.unwrap_or(date), date]);
            let headers = if more.is_some() { &four[..] } else { &three };
            for (name, value) in &headers[1..] {
                for piece in [*name, ": ", *value, "\r\n"] {
                    head.push_str(piece);
                }
            }
            head.push_str("Authorization: ");
            let parts = Parts { method, path: &self.path, query: &query, headers, payload };
            self.signer.push_authorization(&parts, &self.moment, head);
            head.push_str("\r\n");
        }
    }
}

/// Appends a `Range` header. It is not signed, so it can be added to a presigned head.
fn push_range((first, last): (u64, u64), head: &mut String) {
    write!(head, "Range: bytes={first}-{last}\r\n").expect("writing to a string does not fail");
}

/// URLs that are requested as they are, one for each key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Urls {
    /// Paths with their queries.
    pub paths: Vec<String>,
    /// The header `Origin`.
    pub origin: Option<String>,
}

impl Urls {
    /// Reads URLs, one a line. Scheme and host are ignored: requests go to the endpoint.
    ///
    /// # Errors
    /// A message that names the invalid line, or says that the text contains no URL.
    pub fn parse(text: &str, origin: Option<String>) -> Result<Self, String> {
        let mut paths = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let path = match line.split_once("://") {
                Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
                None => line,
            };
            if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!("'{line}' is not a URL with a path"));
            }
            paths.push(path.to_owned());
        }
        if paths.is_empty() {
            return Err("there is no URL".to_owned());
        }
        if origin.as_deref().is_some_and(|origin| !origin.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("--origin has characters that no origin has".to_owned());
        }
        Ok(Self { paths, origin })
    }
}

/// With more keys than this, presigned GETs are signed as they are sent. The heads of this many keys take about 25 MB.
pub const PREPARED_KEYS_MAX: u64 = 50_000;

/// The heads of GETs of all keys, presigned or of URLs that need no signature, without the empty line at their end.
#[derive(Debug)]
pub struct PreparedHeads {
    text: String,
    ends: Vec<usize>,
}

impl PreparedHeads {
    /// Signs a GET of every key.
    #[must_use]
    pub fn of(target: &Target, keys: &KeySpace) -> Self {
        let mut requests = Requests::new(target);
        let (mut text, mut ends, mut name) = (String::new(), Vec::new(), String::new());
        for number in 0..keys.count {
            keys.write_name(number, &mut name);
            requests.set_path(Some(&name));
            requests.begin("GET", &[], EMPTY_SHA256);
            text.push_str(&requests.head);
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// A GET of each URL, without authentication.
    #[must_use]
    pub fn of_urls(target: &Target, urls: &Urls) -> Self {
        let origin = urls.origin.as_ref().map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let (mut text, mut ends) = (String::new(), Vec::new());
        for path in &urls.paths {
            for piece in ["GET ", path, " HTTP/1.1\r\nHost: ", &target.host, "\r\n", &origin] {
                text.push_str(piece);
            }
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// The head for one key.
    #[must_use]
    pub fn head(&self, number: u64) -> &str {
        let number = crate::units::index(number);
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start..self.ends[number]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::sizes::Sizes;
    use crate::units::ByteCount;

    fn target(auth: Auth) -> Target {
        Target {
            host: "localhost:9000".into(),
            bucket: "b".into(),
            auth,
            credentials: ("access".into(), Secret("secret".into())),
            region: "us-east-1".into(),
        }
    }

    #[test]
    fn an_unsigned_request_is_plain_http() {
        let mut requests = Requests::new(&target(Auth::None));
        assert_eq!(
            requests.object("GET", "a b", None, Some((5, 9))),
            "GET /b/a%20b HTTP/1.1\r\nHost: localhost:9000\r\nRange: bytes=5-9\r\n\r\n"
        );
        assert_eq!(
            requests.bucket("PUT", &[]),
            "PUT /b HTTP/1.1\r\nHost: localhost:9000\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn a_signed_put_carries_digest_date_length_and_signature() {
        let mut requests = Requests::new(&target(Auth::Header));
        let head = requests.object("PUT", "k", Some((UNSIGNED_PAYLOAD, 7)), None);
        assert!(head.starts_with(
            "PUT /b/k HTTP/1.1\r\nHost: localhost:9000\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"
        ));
        assert!(head.contains("\r\nAuthorization: AWS4-HMAC-SHA256 Credential=access/"));
        assert!(head.ends_with("\r\nContent-Length: 7\r\n\r\n"));
    }

    #[test]
    fn urls_are_requested_as_they_are() {
        let text = "https://h.example/e/abc?x=1\n\n/s/def/content\n";
        let urls = Urls::parse(text, Some("https://a.example".to_owned())).expect("URLs");
        assert_eq!(urls.paths, ["/e/abc?x=1", "/s/def/content"]);
        let heads = PreparedHeads::of_urls(&target(Auth::None), &urls);
        let rest = "HTTP/1.1\r\nHost: localhost:9000\r\nOrigin: https://a.example\r\n";
        assert_eq!(heads.head(0), format!("GET /e/abc?x=1 {rest}"));
        assert_eq!(heads.head(1), format!("GET /s/def/content {rest}"));
        for wrong in ["", "\n", "abc", "https://h.example", "/a b", "/a\r\nX: y\u{7f}"] {
            assert!(Urls::parse(wrong, None).is_err(), "{wrong:?}");
        }
        assert!(Urls::parse("/a", Some("x\r\ny".to_owned())).is_err());
    }

    #[test]
    fn prepared_heads_are_presigned_requests() {
        let target = target(Auth::Presigned);
        let keys = KeySpace {
            prefix: "p/".into(),
            count: 3,
            first: 0,
            scatter: false,
            folder_keys: 0,
            seed: 0,
            sizes: Sizes::Fixed(ByteCount(1)),
            listed: None,
        };
        let prepared = PreparedHeads::of(&target, &keys);
        for number in 0..3 {
            let head = prepared.head(number);
            assert!(head.starts_with(&format!("GET /b/p/000000000{number}?X-Amz-Algorithm=")));
            assert!(
                head.contains("&X-Amz-Signature=") && head.ends_with(" HTTP/1.1\r\nHost: localhost:9000\r\n")
            );
        }
        let mut requests = Requests::new(&target);
        assert!(requests.presigned(prepared.head(1), Some((0, 1))).ends_with("\r\nRange: bytes=0-1\r\n\r\n"));
    }
}
