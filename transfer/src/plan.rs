//! Decides how a GET or HEAD of an object is answered.
//!
//! Source: RFC 9110, sections 13 (conditional requests) and 14 (range requests).

use cairn_engine::{Attributes, ObjectInfo};
use cairn_http1::{
    Conditions, RangeOutcome, RequestHead, ResolvedRange, StatusCode, Validators, Verdict, http_date,
    if_range_matches, resolve_range,
};
use cairn_model::Timestamp;
use std::ops::Range;

/// Content type of objects that were uploaded without one.
const CONTENT_TYPE_DEFAULT: &str = "binary/octet-stream";

/// The validators of a version, as the response headers that carry them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidatorHeaders {
    /// `ETag`, with its quotes.
    pub etag: String,
    /// `Last-Modified`.
    pub last_modified: String,
}

impl ValidatorHeaders {
    /// Returns the validators of a version.
    #[must_use]
    pub fn of(info: &ObjectInfo) -> Self {
        let last_modified = http_date(info.last_modified.seconds()).to_string();
        Self { etag: info.etag.quoted(), last_modified }
    }
}

/// The plan for answering a GET or HEAD of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadPlan {
    /// 200, with all bytes.
    Whole {
        /// Bytes of the object.
        size: u64,
    },
    /// 206, with some bytes.
    Part(ResolvedRange),
    /// 304: the client's copy is current.
    NotModified,
    /// 412: the precondition in the header of this name does not hold.
    PreconditionFailed(&'static str),
    /// 416: the range is outside of the object.
    Unsatisfiable {
        /// Bytes of the object.
        size: u64,
    },
}

impl ReadPlan {
    /// Evaluates the preconditions and the range of a request.
    #[must_use]
    pub fn of(head: &RequestHead, info: &ObjectInfo, now: Timestamp) -> Self {
        let etag = info.etag.quoted();
        let validators = Validators { etag: &etag, last_modified_seconds: info.last_modified.seconds() };
        Self::with_validators(head, &validators, info.size, now)
    }

    /// Does the same as [`ReadPlan::of`] for an object of `size` bytes whose validators the caller has formatted.
    #[must_use]
    pub fn with_validators(
        head: &RequestHead,
        validators: &Validators<'_>,
        size: u64,
        now: Timestamp,
    ) -> Self {
        match Conditions::of(head).evaluate(validators, now.seconds()) {
            Verdict::Proceed => {}
            Verdict::NotModified => return Self::NotModified,
            Verdict::PreconditionFailed(name) => return Self::PreconditionFailed(name),
        }
        let range = head.header("range").filter(|_| if_range_matches(head.header("if-range"), validators));
        match resolve_range(range, size) {
            RangeOutcome::Whole => Self::Whole { size },
            RangeOutcome::Part(part) => Self::Part(part),
            RangeOutcome::Unsatisfiable => Self::Unsatisfiable { size },
        }
    }

    /// Returns the bytes to read: none unless the response has content.
    #[must_use]
    pub const fn range(&self) -> Range<u64> {
        match self {
            Self::Whole { size } => 0..*size,
            Self::Part(part) => part.as_range(),
            Self::NotModified | Self::PreconditionFailed(_) | Self::Unsatisfiable { .. } => 0..0,
        }
    }

    /// Returns the status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Whole { .. } => StatusCode::OK,
            Self::Part(_) => StatusCode::PARTIAL_CONTENT,
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::PreconditionFailed(_) => StatusCode::PRECONDITION_FAILED,
            Self::Unsatisfiable { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
        }
    }
}

/// Returns the value of a header that is stored with an object. `name` is in lower case.
#[must_use]
pub fn stored_header<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a [u8]> {
    attributes.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
}

/// Returns the content type of an object as text.
#[must_use]
pub fn stored_content_type(attributes: &Attributes) -> String {
    let sent = stored_header(attributes, "content-type");
    sent.map_or_else(|| CONTENT_TYPE_DEFAULT.to_owned(), |value| String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{ReadPlan, ValidatorHeaders, stored_content_type};
    use cairn_engine::{Attributes, ObjectInfo, ObjectLock};
    use cairn_http1::{HeadLimits, StatusCode, parse_head};
    use cairn_model::{Etag, Timestamp, VersionId};

    fn info(size: u64) -> ObjectInfo {
        ObjectInfo {
            size,
            etag: Etag::single([0xab; 16]),
            last_modified: Timestamp(784_111_777_999),
            version: VersionId(1),
            is_null: false,
            imported: None,
            attributes: Attributes::default(),
            encrypted: false,
            lock: ObjectLock::default(),
            parts: Vec::new(),
        }
    }

    fn plan(fields: &str, size: u64) -> ReadPlan {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let (head, _) = parse_head(text.as_bytes(), &HeadLimits::default()).expect("parses").expect("whole");
        ReadPlan::of(&head, &info(size), Timestamp(784_111_800_000))
    }

    #[test]
    fn conditions_come_before_ranges() {
        let etag = info(10).etag.quoted();
        for (fields, status, range) in [
            (String::new(), StatusCode::OK, 0..10),
            ("Range: bytes=2-4\r\n".to_owned(), StatusCode::PARTIAL_CONTENT, 2..5),
            ("Range: bytes=-3\r\n".to_owned(), StatusCode::PARTIAL_CONTENT, 7..10),
            ("Range: bytes=10-\r\n".to_owned(), StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
            (format!("Range: bytes=2-4\r\nIf-Range: {etag}\r\n"), StatusCode::PARTIAL_CONTENT, 2..5),
            ("Range: bytes=2-4\r\nIf-Range: \"other\"\r\n".to_owned(), StatusCode::OK, 0..10),
            (format!("If-None-Match: {etag}\r\nRange: bytes=10-\r\n"), StatusCode::NOT_MODIFIED, 0..0),
            ("If-Match: \"other\"\r\n".to_owned(), StatusCode::PRECONDITION_FAILED, 0..0),
            (
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(),
                StatusCode::NOT_MODIFIED,
                0..0,
            ),
        ] {
            let plan = plan(&fields, 10);
            assert_eq!((plan.status(), plan.range()), (status, range), "{fields}");
        }
    }

    #[test]
    fn validators_and_types_are_those_of_the_version() {
        let ValidatorHeaders { etag, last_modified } = ValidatorHeaders::of(&info(0));
        assert_eq!(etag, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(last_modified, "Sun, 06 Nov 1994 08:49:37 GMT");
        let mut attributes = Attributes::default();
        assert_eq!(stored_content_type(&attributes), "binary/octet-stream");
        attributes.headers.push(("content-type".to_owned(), b"image/png".to_vec()));
        assert_eq!(stored_content_type(&attributes), "image/png");
    }
}
