//! Responses of another store, and errors when none arrives.

use std::io::Read;

use cairn_http1::parse_http_date;
use ureq::Body;
use ureq::http::{HeaderMap, Response};

use super::checksum::{self, Checksum};
use super::settings::{Lock, parsed_lock};
use crate::s3::xml;
use crate::terminal::plain;

/// Longest document: a page of a thousand versions, each with a key and metadata of some kilobytes.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;
/// Begins the names of headers of the user's own metadata.
const METADATA_PREFIX: &str = "x-amz-meta-";
/// The headers that are stored with an object, besides the user's own metadata.
const CONTENT_HEADERS: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
];

/// The error of a request to the source without a useful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The source does not answer, even after several attempts.
    NoAnswer(String),
    /// The source refuses the request.
    Refused { status: u16, code: String, message: String },
    /// The answer is not what S3 promises.
    Wrong(String),
    /// The user wants the command to end.
    Stopped,
}

impl Trouble {
    /// Returns the message for people, about the source of an import.
    pub(crate) fn text(&self) -> String {
        self.text_of("source")
    }

    /// Returns the message for people. `store` is what the store is called.
    pub(crate) fn text_of(&self, store: &str) -> String {
        match self {
            Self::NoAnswer(why) | Self::Wrong(why) => why.clone(),
            Self::Refused { status, code, message } if code.is_empty() => {
                format!("the {store} answers with HTTP {status} {message}").trim_end().to_owned()
            }
            Self::Refused { code, message, .. } => format!("the {store} answers {code}: {message}"),
            Self::Stopped => "the command was interrupted".to_owned(),
        }
    }

    /// Returns whether what was asked for does not exist.
    pub(crate) const fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns whether the source does not have this operation.
    pub(crate) fn is_unknown_operation(&self) -> bool {
        match self {
            Self::Refused { status: 501 | 405, .. } => true,
            Self::Refused { code, .. } => matches!(
                code.as_str(),
                "NotImplemented" | "MethodNotAllowed" | "InvalidArgument" | "InvalidRequest"
            ),
            _ => false,
        }
    }
}

/// A successful answer, whose body has not been read.
pub(crate) struct Answer {
    headers: HeaderMap,
    body: Body,
}

impl Answer {
    /// Returns a header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the length of the body.
    pub(crate) fn length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// Returns the tag without its quotes.
    pub(crate) fn etag(&self) -> Option<&str> {
        self.header("etag").map(|tag| tag.trim_matches('"'))
    }

    /// Returns the length of the whole object, also in the answer to a range.
    pub(crate) fn whole_length(&self) -> Option<u64> {
        match self.header("content-range") {
            Some(range) => range.rsplit('/').next()?.parse().ok(),
            None => self.length(),
        }
    }

    /// Returns the date of the object in milliseconds since the Unix epoch; S3 tells whole seconds.
    pub(crate) fn modified(&self) -> Option<u64> {
        let seconds = parse_http_date(self.headers.get("last-modified")?.as_bytes())?;
        u64::try_from(seconds).ok()?.checked_mul(1000)
    }

    /// Returns the first byte of a part or range within the object.
    pub(crate) fn range_start(&self) -> Option<u64> {
        self.header("content-range")?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
    }

    /// Returns the number of parts, which an answer about one part has.
    pub(crate) fn parts(&self) -> Option<u32> {
        self.header("x-amz-mp-parts-count")?.parse().ok()
    }

    /// Returns how many tags the object has.
    pub(crate) fn tag_count(&self) -> u32 {
        self.header("x-amz-tagging-count").and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns retention and legal hold.
    pub(crate) fn lock(&self) -> Lock {
        parsed_lock(|name| self.header(name))
    }

    /// Returns the headers that are stored with an object and the user's metadata, sorted by name. The error names a header
    /// that is not text.
    pub(crate) fn stored_headers(&self) -> Result<Vec<(String, String)>, String> {
        let mut stored = Vec::new();
        for (name, value) in &self.headers {
            let name = name.as_str();
            if CONTENT_HEADERS.contains(&name) || name.starts_with(METADATA_PREFIX) {
                let text = std::str::from_utf8(value.as_bytes())
                    .map_err(|_| format!("the header {} is not UTF-8", plain(name)))?;
                stored.push((name.to_owned(), text.to_owned()));
            }
        }
        stored.sort_unstable();
        Ok(stored)
    }

    /// Returns the checksums that the store declares of the version, and whether it has some of unknown algorithms.
    pub(crate) fn checksums(&self) -> (Vec<Checksum>, bool) {
        let (mut known, mut has_unknown) = (Vec::new(), false);
        for (name, value) in &self.headers {
            let Some(rest) = name.as_str().strip_prefix(checksum::PREFIX) else { continue };
            match value.to_str().ok().and_then(|value| Checksum::of_header(name.as_str(), value)) {
                Some(checksum) => known.push(checksum),
                None => has_unknown |= rest != "type",
            }
        }
        (known, has_unknown)
    }

    /// Returns whether the source says that the object has a key of its own, so that the tag is not the MD5 of the content.
    pub(crate) fn has_opaque_tag(&self) -> bool {
        self.header("x-amz-server-side-encryption").is_some_and(|kind| kind.starts_with("aws:kms"))
            || self.header("x-amz-server-side-encryption-customer-algorithm").is_some()
    }

    /// Returns the server's clock in milliseconds since the Unix epoch.
    pub(super) fn date_of(headers: &HeaderMap) -> Option<u64> {
        let seconds = parse_http_date(headers.get("date")?.as_bytes())?;
        u64::try_from(seconds).ok()?.checked_mul(1000)
    }

    /// Returns the content.
    pub(crate) fn into_reader(self) -> impl Read + 'static {
        self.body.into_reader()
    }

    /// Reads the body as text.
    pub(crate) fn into_text(mut self) -> Result<String, ureq::Error> {
        let bytes = self.body.with_config().limit(DOCUMENT_BYTES_MAX).read_to_vec()?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A refusal, with the headers of the answer.
pub(super) struct Refusal {
    pub(super) trouble: Trouble,
    pub(super) headers: HeaderMap,
}

/// Returns the answer, or what the document of a refusal says.
pub(super) fn answer_of(response: Response<Body>) -> Result<Answer, Box<Refusal>> {
    let (head, mut body) = response.into_parts();
    if head.status.is_success() {
        return Ok(Answer { headers: head.headers, body });
    }
    let read = body.with_config().limit(DOCUMENT_BYTES_MAX).read_to_vec().unwrap_or_default();
    let text = String::from_utf8_lossy(&read);
    let said = |name: &str| xml::text(&text, name).map(|text| plain(&text)).unwrap_or_default();
    let (mut code, message) = (said("Code"), said("Message"));
    if code.is_empty() {
        // Answers to HEAD have no body; some servers put the code into a header.
        code = head
            .headers
            .get("x-minio-error-code")
            .and_then(|code| code.to_str().ok())
            .map(plain)
            .unwrap_or_default();
    }
    let region = xml::text(&text, "Region").filter(|_| code == "AuthorizationHeaderMalformed");
    let mut headers = head.headers;
    if let Some(region) = region.and_then(|region| region.parse().ok()) {
        headers.insert("x-amz-bucket-region", region);
    }
    Err(Box::new(Refusal {
        trouble: Trouble::Refused { status: head.status.as_u16(), code, message },
        headers,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> Result<Answer, Box<Refusal>> {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        answer_of(response.body(Body::builder().data(body)).expect("a response"))
    }

    #[test]
    fn what_is_stored_with_an_object_is_taken_from_its_headers() {
        let headers = [
            ("etag", "\"900150983cd24fb0d6963f7d28e17f72\""),
            ("content-length", "3"),
            ("content-range", "bytes 7-9/10"),
            ("content-type", "text/plain"),
            ("expires", "Tue, 01 Jan 2030 00:00:00 GMT"),
            ("x-amz-meta-b", "2"),
            ("x-amz-meta-a", "é"),
            ("server", "x"),
            ("x-amz-mp-parts-count", "2"),
            ("x-amz-checksum-crc32", "AAAAAQ=="),
            ("x-amz-checksum-type", "FULL_OBJECT"),
        ];
        let Ok(answer) = answered(206, &headers, "abc") else { panic!("an answer") };
        assert_eq!(answer.etag(), Some("900150983cd24fb0d6963f7d28e17f72"));
        assert_eq!((answer.length(), answer.range_start(), answer.parts()), (Some(3), Some(7), Some(2)));
        let names: Vec<_> =
            answer.stored_headers().expect("text").into_iter().map(|(name, _)| name).collect();
        let crc32 = Checksum { algorithm: "crc32", value: "AAAAAQ==".to_owned() };
        assert_eq!(answer.checksums(), (vec![crc32], false));
        assert_eq!(names, ["content-type", "expires", "x-amz-meta-a", "x-amz-meta-b"]);
        assert_eq!(answer.into_text().ok().as_deref(), Some("abc"));
    }

    #[test]
    fn a_refusal_has_the_code_of_its_document() {
        let body = "<Error><Code>NoSuchKey</Code><Message>gone\u{1b}</Message></Error>";
        let Err(trouble) = answered(404, &[], body) else { panic!("a refusal") };
        let trouble = trouble.trouble;
        assert!(trouble.is_missing() && !trouble.is_unknown_operation());
        assert_eq!(trouble.text(), "the source answers NoSuchKey: gone");
        let Err(trouble) = answered(501, &[], "<html>") else { panic!("a refusal") };
        let trouble = trouble.trouble;
        assert!(trouble.is_unknown_operation());
        assert_eq!(trouble.text(), "the source answers with HTTP 501");
    }
}
