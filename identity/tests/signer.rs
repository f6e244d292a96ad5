//! An independent Signature Version 4 signer for the tests.
//!
//! Plain and slow, written from the published description. It shares no code with the crate except the hash functions, so that
//! it can prove the verifier right.

use cairn_identity::{AuthError, Authentication, Authenticator, RootCredential, SignedRequest};
use cairn_model::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub(crate) const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
pub(crate) const DATE: &str = "20130524T000000Z";
/// The same instant, 24 May 2013 at midnight.
pub(crate) const NOW: Timestamp = Timestamp(1_369_353_600_000);
pub(crate) const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub(crate) fn authenticator() -> Authenticator<RootCredential> {
    Authenticator::new(RootCredential::new(ACCESS_KEY, SECRET_KEY))
}

/// A request as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str, query: &str, headers: &[(&str, &str)]) -> Self {
        Self {
            method: method.into(),
            path: path.into(),
            query: (!query.is_empty()).then(|| query.into()),
            headers: headers.iter().map(|(name, value)| ((*name).into(), value.as_bytes().into())).collect(),
        }
    }

    pub(crate) fn header(&mut self, name: &str, value: &str) -> &mut Self {
        self.headers.push((name.into(), value.as_bytes().into()));
        self
    }

    /// Replaces the value of the first header with this name.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        let slot = self.headers.iter_mut().find(|(header, _)| header == name).expect("the header exists");
        slot.1 = value.into();
        self
    }

    pub(crate) fn remove(&mut self, name: &str) -> &mut Self {
        self.headers.retain(|(header, _)| header != name);
        self
    }

    pub(crate) fn get(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(header, _)| header == name).expect("the header exists");
        String::from_utf8(found.1.clone()).expect("text")
    }

    pub(crate) fn append_query(&mut self, more: &str) -> &mut Self {
        self.query = Some(match self.query.take() {
            Some(query) => format!("{query}&{more}"),
            None => more.to_owned(),
        });
        self
    }

    pub(crate) fn authenticate<C: cairn_identity::Credentials>(
        &self,
        authenticator: &Authenticator<C>,
        now: Timestamp,
    ) -> Result<Authentication, AuthError> {
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let request = SignedRequest {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &headers,
            bucket_in_host: None,
        };
        authenticator.authenticate(&request, now)
    }

    /// Verifies the signature with a new authenticator at [`NOW`].
    pub(crate) fn verify(&self) -> Result<Authentication, AuthError> {
        self.authenticate(&authenticator(), NOW)
    }

    /// Returns the status and code of the authentication error.
    pub(crate) fn error_code(&self) -> (u16, &'static str) {
        let error = self.verify().expect_err("the request must be refused");
        (error.status(), error.code())
    }
}

/// Signs requests as a client does.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) date: String,
    pub(crate) region: String,
}

impl Default for Signer {
    fn default() -> Self {
        Self {
            access_key: ACCESS_KEY.into(),
            secret_key: SECRET_KEY.into(),
            date: DATE.into(),
            region: "us-east-1".into(),
        }
    }
}

impl Signer {
    fn scope(&self) -> String {
        format!("{}/{}/s3/aws4_request", &self.date[..8], self.region)
    }

    /// Adds an `Authorization` header that covers all headers.
    pub(crate) fn sign(&self, request: &mut Request) {
        let mut names: Vec<String> = request.headers.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        let names = names.join(";");
        self.sign_headers(request, &names);
    }

    /// Adds an `Authorization` header that covers the headers in this list.
    pub(crate) fn sign_headers(&self, request: &mut Request, names: &str) {
        let payload = request
            .headers
            .iter()
            .find(|(name, _)| name == "x-amz-content-sha256")
            .map_or(String::new(), |(_, value)| String::from_utf8_lossy(value).into_owned());
        let signature = self.signature(request, names, &payload);
        let credential = format!("{}/{}", self.access_key, self.scope());
        request.header(
            "authorization",
            &format!(
                "AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
            ),
        );
    }

    /// Adds the parameters of a presigned URL.
    pub(crate) fn presign(&self, request: &mut Request, names: &str, lifetime: &str, payload: &str) {
        let credential = encode(format!("{}/{}", self.access_key, self.scope()).as_bytes(), false);
        request.append_query(&format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={}&X-Amz-Expires={lifetime}\
             &X-Amz-SignedHeaders={}",
            self.date,
            encode(names.as_bytes(), false),
        ));
        let signature = self.signature(request, names, payload);
        request.append_query(&format!("X-Amz-Signature={signature}"));
    }

    fn signature(&self, request: &Request, names: &str, payload: &str) -> String {
        let mut key = format!("AWS4{}", self.secret_key).into_bytes();
        for part in [&self.date[..8], &self.region, "s3", "aws4_request"] {
            key = hmac(&key, part.as_bytes());
        }
        let canonical = hex::encode(Sha256::digest(canonical_request(request, names, payload)));
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{canonical}", self.date, self.scope());
        hex::encode(hmac(&key, text.as_bytes()))
    }
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key).expect("any key").chain_update(data).finalize().into_bytes().to_vec()
}

fn canonical_request(request: &Request, names: &str, payload: &str) -> Vec<u8> {
    let mut pairs: Vec<(String, String)> = request
        .query
        .iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (reencode(name, true), reencode(value, true)))
        .collect();
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut out =
        format!("{}\n{}\n{}\n", request.method, reencode(&request.path, false), query.join("&")).into_bytes();
    for name in names.split(';') {
        let values: Vec<Vec<u8>> = request
            .headers
            .iter()
            .filter(|(header, _)| header == name)
            .map(|(_, value)| {
                value
                    .split(|byte| *byte == b' ' || *byte == b'\t')
                    .filter(|word| !word.is_empty())
                    .collect::<Vec<_>>()
                    .join(&b' ')
            })
            .collect();
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        out.extend(values.join(&b','));
        out.push(b'\n');
    }
    out.extend(format!("\n{names}\n{payload}").bytes());
    out
}

fn reencode(text: &str, is_query: bool) -> String {
    let mut decoded = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next().expect("digit"), bytes.next().expect("digit")];
                u8::from_str_radix(std::str::from_utf8(&digits).expect("digits"), 16).expect("digits")
            }
            b'+' if is_query => b' ',
            other => other,
        });
    }
    encode(&decoded, !is_query)
}

fn encode(bytes: &[u8], keep_slash: bool) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keep_slash && byte == b'/');
    bytes
        .iter()
        .map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
