//! `GET /api/v1/buckets/{bucket}/object-content/{key}[?version_id=]`: the content, as a file to keep.
//!
//! The bytes are anybody's, and the console's origin is not theirs: whatever their type, they are an attachment, are not
//! guessed at (`nosniff`, in every answer), and a browser that shows them all the same runs nothing in them (`sandbox`).

use std::ops::Range;

use cairn_engine::{Attributes, ObjectInfo};
use cairn_http1::{
    Conditions, RangeOutcome, RequestHead, Validators, Verdict, attachment, http_date, if_range_holds,
    resolve_range,
};
use http::StatusCode;

use super::headers::{content_type, stored};
use super::named::NamedObject;
use super::source;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{Record, Reply, ReplyBody};

/// How a browser is kept from running anything in an object.
pub(crate) const SANDBOX: (&str, &str) = ("content-security-policy", "sandbox");

/// What is answered, decided before a byte is read.
struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    range: Range<u64>,
}

pub(crate) async fn content(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let named = NamedObject::of(&call)?;
    let opened = call.engine()?.open_object(&named.bucket, &named.key, named.version, |info| {
        let answer = answer(call.head, &named, info);
        (answer.as_ref().map_or(0..0, |answer| answer.range.clone()), answer)
    });
    let (object, answer) = opened.map_err(|error| named.read_error(&call, error))?;
    let Answer { status, headers, range } = answer?;
    let body = if status == StatusCode::NOT_MODIFIED {
        ReplyBody::None
    } else {
        source::stream(&call, &named, object, range.end - range.start).await?
    };
    Ok(Reply { status, headers, body, record: Record::default() })
}

/// Decides on conditions and range, and writes the headers (RFC 9110 sections 13 and 14).
fn answer(head: &RequestHead, named: &NamedObject, info: &ObjectInfo) -> Result<Answer, AdminError> {
    let etag = info.etag.quoted();
    let validators = Validators { etag: &etag, last_modified_seconds: info.last_modified.seconds() };
    let verdict = Conditions::of(head).evaluate(&validators);
    let range = head.header("range").filter(|_| if_range_holds(head.header("if-range"), &validators));
    let mut headers =
        vec![("etag", etag.clone()), ("last-modified", http_date(info.last_modified.seconds()).to_string())];
    match verdict {
        Verdict::Proceed => {}
        Verdict::PreconditionFailed => return Err(AdminError::PreconditionFailed),
        Verdict::NotModified => {
            return Ok(Answer { status: StatusCode::NOT_MODIFIED, headers, range: 0..0 });
        }
    }
    headers.extend(content_headers(named, &info.attributes));
    match resolve_range(range, info.size) {
        RangeOutcome::Whole => Ok(Answer { status: StatusCode::OK, headers, range: 0..info.size }),
        RangeOutcome::Part(part) => {
            headers.push(("content-range", part.content_range()));
            Ok(Answer { status: StatusCode::PARTIAL_CONTENT, headers, range: part.as_range() })
        }
        RangeOutcome::Unsatisfiable => Err(AdminError::RangeNotSatisfiable(info.size)),
    }
}

fn content_headers(named: &NamedObject, attributes: &Attributes) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("content-type", content_type(attributes)),
        (SANDBOX.0, SANDBOX.1.to_owned()),
        ("content-disposition", attachment(&named.key.to_string())),
        ("accept-ranges", "bytes".to_owned()),
    ];
    // Without these the bytes are not what was stored.
    for name in ["content-encoding", "content-language"] {
        if let Some(value) = stored(attributes, name) {
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
    }
    headers
}
