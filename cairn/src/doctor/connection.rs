//! Sends S3 requests as a client would. Each has a time limit, and its answer a largest size.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_http1::{encode_path, encode_strict, parse_http_date};
use ureq::http::{self, HeaderMap};
use ureq::{Agent, Error, Timeout};

use crate::client::{TrustFailure, error_text, has_no_address, trust_failure, was_not_sent};
use crate::moment::now_millis;
use crate::s3::endpoint::Endpoint;
use crate::s3::signature::{Credentials, Parts, Signer, Stamp, sha256, unsigned_chunks};
use crate::s3::xml;

/// Time limit of a request and its answer: a part of a few megabytes over a slow line.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of a request without a large body.
const SHORT_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest body that counts as small.
const SMALL_BYTES: usize = 64 << 10;
/// Largest answer.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Largest difference of the clocks at which the server accepts a signature.
pub(crate) const SKEW_SECONDS_MAX: u64 = 900;
/// Size of the chunks of chunked bodies, as SDKs send them.
const CHUNK_BYTES: usize = 64 << 10;
/// The validity of a presigned URL.
const PRESIGNED_SECONDS: u32 = 300;

/// The body of a request, and how it is signed and checked.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    /// The signature covers the body.
    Signed(&'a [u8]),
    /// `aws-chunked` with a CRC-32 after the body, as SDKs send it by default: unsigned over TLS, signed otherwise.
    Chunked(&'a [u8]),
}

impl Body<'_> {
    pub(crate) const NONE: Self = Self::Signed(b"");
}

/// A request for the S3 plane.
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    /// Not encoded.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Besides those of the signature; names in lower case.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Body<'a>,
}

impl<'a> Call<'a> {
    pub(crate) const fn new(method: &'static str, bucket: &'a str, key: &'a str) -> Self {
        Self { method, bucket, key, query: &[], headers: &[], body: Body::NONE }
    }

    pub(crate) const fn query(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    pub(crate) const fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    pub(crate) const fn body(self, body: Body<'a>) -> Self {
        Self { body, ..self }
    }
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns a header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether the request was carried out.
    pub(crate) const fn is_success(&self) -> bool {
        self.status / 100 == 2
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The S3 error code. An answer to HEAD has none.
    pub(crate) fn code(&self) -> Option<String> {
        xml::text(&self.text(), "Code").filter(|_| !self.is_success())
    }

    /// The error code in the document of a success: some operations fail after their status is sent.
    pub(crate) fn code_of_document(&self) -> Option<String> {
        let text = self.text();
        text.contains("<Error>").then(|| xml::text(&text, "Code")).flatten()
    }

    /// The request id, if an S3 server answered.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.header("x-amz-request-id")
    }

    /// The server's clock in seconds since the Unix epoch.
    pub(crate) fn date(&self) -> Option<u64> {
        self.header("date")
            .and_then(|date| parse_http_date(date.as_bytes()))
            .and_then(|date| u64::try_from(date).ok())
    }
}

/// The reason why there was no answer, and its remedy.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    pub(crate) why: String,
    pub(crate) fix: Option<String>,
}

/// A connection to an S3 plane.
pub(crate) struct Connection {
    agent: Agent,
    pub(crate) endpoint: Endpoint,
    pub(crate) region: String,
    pub(crate) credentials: Option<Credentials>,
    /// The certificate authority that is trusted, unless those of the host are.
    pub(crate) authority: Option<PathBuf>,
    /// The number of milliseconds by which the server's clock is ahead, if signatures must allow for it.
    pub(crate) clock_ahead: Cell<i64>,
    /// Set when the user wants the program to end.
    stop: Arc<AtomicBool>,
    /// Requests are sent after a stop, too.
    is_cleaning_up: Cell<bool>,
}

impl Connection {
    pub(crate) fn new(
        agent: Agent,
        endpoint: Endpoint,
        region: String,
        credentials: Option<Credentials>,
        authority: Option<PathBuf>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            agent,
            endpoint,
            region,
            credentials,
            authority,
            clock_ahead: Cell::new(0),
            stop,
            is_cleaning_up: Cell::new(false),
        }
    }

    /// Returns whether the user wants the program to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends requests after a stop, too, from now on: for the removal of what was made.
    pub(crate) fn clean_up(&self) {
        self.is_cleaning_up.set(true);
    }

    fn stamp(&self) -> Stamp {
        Stamp::from_millis(now_millis().saturating_add_signed(self.clock_ahead.get()))
    }

    /// Sends a request without a signature.
    pub(crate) fn send_unsigned(&self, method: &'static str, path: &str) -> Result<Answer, NoAnswer> {
        let authority = self.endpoint.authority();
        self.send(method, &authority, path, &[], b"")
    }

    /// Sends a signed request in path style.
    pub(crate) fn call(&self, call: &Call<'_>) -> Result<Answer, NoAnswer> {
        let path = match (call.bucket, call.key) {
            ("", _) => "/".to_owned(),
            (bucket, "") => format!("/{bucket}"),
            (bucket, key) => format!("/{bucket}/{}", encode_path(key)),
        };
        self.send_signed(call, &self.endpoint.authority(), &path)
    }

    /// Sends a signed request in virtual-hosted style.
    pub(crate) fn call_virtual_hosted(&self, call: &Call<'_>) -> Result<Answer, NoAnswer> {
        let authority = self.endpoint.authority_of(&format!("{}.", call.bucket));
        self.send_signed(call, &authority, &format!("/{}", encode_path(call.key)))
    }

    fn send_signed(&self, call: &Call<'_>, authority: &str, path: &str) -> Result<Answer, NoAnswer> {
        let credentials =
            self.credentials.as_ref().expect("checks that sign come after the check of credentials");
        // The clock is read once: with a header of the next second, the signature would not be valid.
        let stamp = self.stamp();
        let signer = Signer::new(credentials, &self.region, stamp.clone());
        let mut pairs: Vec<_> =
            call.query.iter().map(|(name, value)| (encode_strict(name), encode_strict(value))).collect();
        pairs.sort();
        let query = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");

        let (Body::Signed(content) | Body::Chunked(content)) = call.body;
        let checksum = crc32_text(content);
        let length = content.len().to_string();
        let payload = match call.body {
            Body::Signed(content) => sha256(content),
            Body::Chunked(_) if self.endpoint.has_tls() => "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned(),
            Body::Chunked(_) => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER".to_owned(),
        };
        let mut headers =
            vec![("host", authority), ("x-amz-content-sha256", &payload), ("x-amz-date", stamp.text())];
        if let Body::Chunked(_) = call.body {
            headers.extend([
                ("content-encoding", "aws-chunked"),
                ("x-amz-decoded-content-length", &length),
                ("x-amz-trailer", "x-amz-checksum-crc32"),
            ]);
        }
        headers.extend_from_slice(call.headers);
        headers.sort_unstable();
        let parts = Parts { method: call.method, path, query: &query, headers: &headers, payload: &payload };
        let (authorization, signature) = signer.authorization(&parts);
        headers.push(("authorization", &authorization));
        let trailer = ("x-amz-checksum-crc32", checksum.as_str());
        let framed = match call.body {
            Body::Signed(_) => None,
            Body::Chunked(content) if self.endpoint.has_tls() => {
                Some(unsigned_chunks(content, CHUNK_BYTES, trailer))
            }
            Body::Chunked(content) => Some(signer.signed_chunks(&signature, content, CHUNK_BYTES, trailer)),
        };
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        self.send(call.method, authority, &target, &headers, framed.as_deref().unwrap_or(content))
    }

    /// Uses a presigned URL, as a client that knows no credentials does.
    pub(crate) fn use_presigned(
        &self,
        method: &'static str,
        bucket: &str,
        key: &str,
        body: &[u8],
    ) -> Result<Answer, NoAnswer> {
        let credentials =
            self.credentials.as_ref().expect("checks that sign come after the check of credentials");
        let authority = self.endpoint.authority();
        let path = format!("/{bucket}/{}", encode_path(key));
        let query = Signer::new(credentials, &self.region, self.stamp()).presigned_query(
            method,
            &authority,
            &path,
            PRESIGNED_SECONDS,
        );
        self.send(method, &authority, &format!("{path}?{query}"), &[], body)
    }

    fn send(
        &self,
        method: &'static str,
        authority: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, NoAnswer> {
        if self.is_stopped() && !self.is_cleaning_up.get() {
            return Err(NoAnswer { why: "the program was told to stop".to_owned(), fix: None });
        }
        let mut builder = http::Request::builder()
            .method(method)
            .uri(format!("{}://{authority}{target}", self.endpoint.scheme));
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let is_read = matches!(method, "GET" | "HEAD") || target.contains("uploads");
        let timeout = if body.len() <= SMALL_BYTES && !is_read { SHORT_TIMEOUT } else { TIMEOUT };
        let run = |agent: &Agent| -> Result<Answer, Error> {
            let mut response = if matches!(method, "PUT" | "POST") {
                let request = builder.body(body)?;
                agent.run(agent.configure_request(request).timeout_global(Some(timeout)).build())?
            } else {
                let request = builder.body(())?;
                agent.run(agent.configure_request(request).timeout_global(Some(timeout)).build())?
            };
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
            Ok(Answer { status, headers, body })
        };
        run(&self.agent).map_err(|error| self.no_answer(&error, authority, timeout))
    }

    /// Says in words why there is no answer.
    fn no_answer(&self, error: &Error, authority: &str, timeout: Duration) -> NoAnswer {
        let said = |why: String, fix: &str| NoAnswer { why, fix: Some(fix.to_owned()) };
        if let Some(failure) = trust_failure(error) {
            return self.not_trusted(failure, error, authority);
        }
        match error {
            _ if has_no_address(error) => said(
                format!("the name {} has no address in the DNS", host_of(authority)),
                "Check the name, or add it to the DNS or to /etc/hosts.",
            ),
            Error::Timeout(Timeout::Connect | Timeout::Resolve) => said(
                format!("{authority} did not answer in time"),
                "Check address and port, and whether a firewall is in between.",
            ),
            Error::Timeout(_) => said(
                format!("{authority} did not answer within {} s", timeout.as_secs()),
                "Look at the server's log and at the network.",
            ),
            _ if was_not_sent(error) => said(
                format!("{authority} cannot be reached: {}", error_text(error)),
                "Is the server running, and is this the address of its S3 plane (server.s3_bind, port 7600 by default)?",
            ),
            _ if !self.endpoint.has_tls() => said(
                format!("{authority} sent no complete answer: {}", error_text(error)),
                "If the server has a certificate, its address begins with https. Otherwise look at the server's log.",
            ),
            _ => said(
                format!("{authority} sent no complete answer: {}", error_text(error)),
                "Look at the server's log, and at proxies in between.",
            ),
        }
    }

    /// Says in words what is wrong with the server's TLS.
    fn not_trusted(&self, failure: TrustFailure, error: &Error, authority: &str) -> NoAnswer {
        let url = self.endpoint.url();
        let why = match failure {
            TrustFailure::WithoutTls => format!("{url} does not speak TLS"),
            TrustFailure::UnknownIssuer => {
                "no certificate authority that is trusted here signed the server's certificate".to_owned()
            }
            TrustFailure::Expired => {
                "the server's certificate has expired, or this computer's clock is wrong".to_owned()
            }
            TrustFailure::NotYetValid => {
                "the server's certificate is not valid yet, or this computer's clock is wrong".to_owned()
            }
            TrustFailure::WrongName => format!("the server's certificate is not for {authority}"),
            TrustFailure::IsAuthority => {
                "the server's certificate is that of a certificate authority".to_owned()
            }
            TrustFailure::Other => {
                format!("the server's certificate was not accepted: {}", error_text(error))
            }
        };
        let fix = match failure {
            TrustFailure::WithoutTls => {
                let plain_url = url.replacen("https", "http", 1);
                Some(format!("Use {plain_url}, or give the server a certificate (server.tls)."))
            }
            TrustFailure::UnknownIssuer => Some(
                "Name the PEM file of the authority with --ca-certificate, and give it to clients too (ca_bundle, \
                 AWS_CA_BUNDLE). `serve --dev` prints its file."
                    .to_owned(),
            ),
            other => other.remedy().map(sentence),
        };
        NoAnswer { why, fix }
    }
}

/// Returns a clause as a sentence.
fn sentence(clause: &str) -> String {
    let (first, rest) = clause.split_at(clause.len().min(1));
    format!("{}{rest}.", first.to_uppercase())
}

fn host_of(authority: &str) -> &str {
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// The CRC-32 in the form of `x-amz-checksum-crc32`.
pub(crate) fn crc32_text(content: &[u8]) -> String {
    use base64::Engine;
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, content);
    let crc = u32::try_from(crc).expect("a CRC-32 has 32 bits");
    base64::engine::general_purpose::STANDARD.encode(crc.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_the_form_of_the_header() {
        assert_eq!(crc32_text(b"123456789"), "y/Q5Jg==");
    }
}
