//! What GetObject and HeadObject have in common: conditions, ranges, parts and the headers of the answer.
//!
//! Source: API Reference, GetObject and HeadObject; RFC 9110 sections 13 and 14. Pure but for the request: nothing
//! here reads a payload.

use crate::attributes;
use crate::call::Call;
use crate::errors::{ErrorCode, S3Error, S3Result};
use crate::version;
use cairn_engine::{Bucket, ObjectInfo};
use cairn_http1::{
    Conditions, RangeOutcome, ResponseHead, StatusCode, Validators, Verdict, http_date, if_range_holds,
    resolve_range, unsatisfied_content_range,
};
use std::ops::Range;

/// Highest part number (AWS: "Multipart upload limits").
const PART_NUMBER_MAX: u32 = 10_000;

/// Which bytes of the object an answer is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// All: 200.
    Whole,
    /// A range: 206 with this `Content-Range`.
    Part { range: Range<u64>, content_range: String },
}

/// How a request for an existing object is answered.
pub(crate) enum ObjectAnswer {
    /// With this head and these bytes.
    Content { head: ResponseHead, range: Range<u64> },
    /// 304, no body.
    NotModified { head: ResponseHead },
}

/// Decides on conditions, range and part, and writes the head.
///
/// # Errors
/// `PreconditionFailed`, `InvalidRange`, `InvalidPartNumber`, `InvalidArgument`, `InvalidRequest`.
pub(crate) fn answer(call: &Call<'_>, bucket: &Bucket, info: &ObjectInfo) -> S3Result<ObjectAnswer> {
    let etag = info.etag.quoted();
    let validators = Validators { etag: &etag, last_modified_seconds: info.last_modified.seconds() };
    let part_number = call.query.get("partNumber").map(parse_part_number).transpose()?;
    let range = call.head.header("range");
    if part_number.is_some() && range.is_some() {
        let message = "Cannot specify both Range header and partNumber query parameter.";
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    match Conditions::of(call.head).evaluate(&validators) {
        Verdict::Proceed => {}
        Verdict::PreconditionFailed => return Err(ErrorCode::PreconditionFailed.into()),
        Verdict::NotModified => {
            let mut head = ResponseHead::new(StatusCode::NOT_MODIFIED);
            write_validators(&mut head, &etag, info);
            version::write_headers(&mut head, bucket, info);
            attributes::write_cache_headers(&mut head, &info.attributes);
            return Ok(ObjectAnswer::NotModified { head });
        }
    }
    let range = range.filter(|_| if_range_holds(call.head.header("if-range"), &validators));
    let extent = match part_number {
        Some(number) => part_extent(number, info.size)?,
        None => range_extent(range, info.size)?,
    };
    let (mut head, range) = match extent {
        Extent::Whole => (ResponseHead::new(StatusCode::OK), 0..info.size),
        Extent::Part { range, content_range } => {
            let mut head = ResponseHead::new(StatusCode::PARTIAL_CONTENT);
            head.header("content-range", content_range);
            (head, range)
        }
    };
    write_validators(&mut head, &etag, info);
    version::write_headers(&mut head, bucket, info);
    head.header("accept-ranges", "bytes");
    attributes::write_stored(&mut head, &info.attributes, |name| call.query.get_non_empty(name));
    if part_number.is_some() {
        head.header("x-amz-mp-parts-count", info.etag.parts.max(1).to_string());
    }
    let wants_checksum = || call.fields.amz("x-amz-checksum-mode");
    // A checksum of the whole says nothing about a part of it.
    if head.status == StatusCode::OK
        && wants_checksum().is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"))
    {
        attributes::write_checksums(&mut head, &info.attributes);
    }
    Ok(ObjectAnswer::Content { head, range })
}

fn write_validators(head: &mut ResponseHead, etag: &str, info: &ObjectInfo) {
    head.header("etag", etag);
    head.header("last-modified", http_date(info.last_modified.seconds()));
}

fn parse_part_number(text: &str) -> S3Result<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)).ok_or_else(|| {
        let message = "Part number must be an integer between 1 and 10000, inclusive.";
        S3Error::invalid_argument("partNumber", text, message)
    })
}

/// An object that was put in one request is one part. An empty one has no range that could be named: it is whole.
fn part_extent(number: u32, size: u64) -> S3Result<Extent> {
    if number > 1 {
        return Err(S3Error::new(ErrorCode::InvalidPartNumber)
            .element("ActualPartCount", "1")
            .element("PartNumberRequested", number.to_string()));
    }
    Ok(match size.checked_sub(1) {
        None => Extent::Whole,
        Some(last) => Extent::Part { range: 0..size, content_range: format!("bytes 0-{last}/{size}") },
    })
}

fn range_extent(range: Option<&[u8]>, size: u64) -> S3Result<Extent> {
    match resolve_range(range, size) {
        RangeOutcome::Whole => Ok(Extent::Whole),
        RangeOutcome::Part(part) => {
            Ok(Extent::Part { range: part.as_range(), content_range: part.content_range() })
        }
        RangeOutcome::Unsatisfiable => Err(S3Error::new(ErrorCode::InvalidRange)
            .element("RangeRequested", String::from_utf8_lossy(range.unwrap_or_default()))
            .element("ActualObjectSize", size.to_string())
            .header("content-range", unsatisfied_content_range(size))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, parse_part_number, part_extent, range_extent};

    #[test]
    fn part_one_is_the_whole_object_and_part_two_is_416() {
        let expected = Extent::Part { range: 0..5, content_range: "bytes 0-4/5".to_owned() };
        assert_eq!(part_extent(1, 5).expect("ok"), expected);
        assert_eq!(part_extent(1, 0).expect("ok"), Extent::Whole);
        let refused = part_extent(2, 5).expect_err("no such part");
        assert_eq!((refused.status(), refused.code()), (416, "InvalidPartNumber"));
        for bad in ["0", "10001", "-1", "x", "", "+1"] {
            assert_eq!(parse_part_number(bad).expect_err(bad).code(), "InvalidArgument");
        }
    }

    #[test]
    fn a_range_past_the_end_is_416_with_the_size() {
        let refused = range_extent(Some(b"bytes=5-"), 5).expect_err("past the end");
        assert_eq!((refused.status(), refused.code()), (416, "InvalidRange"));
        assert_eq!(refused.headers(), [("content-range", "bytes */5".to_owned())]);
        assert_eq!(range_extent(Some(b"bytes=0-1,3-4"), 5).expect("whole"), Extent::Whole);
    }
}
