//! `GET /api/v1/buckets/{bucket}/object-content/{key}[?version_id=]`: the content as a download.
//!
//! The content is untrusted and must not run in the console's origin. Whatever its type, it is an attachment, its type
//! is not guessed (`nosniff`, in every response), and a browser that shows it nevertheless runs nothing in it
//! (`sandbox`).

use std::ops::Range;

use cairn_engine::{Attributes, ObjectInfo};
use cairn_http1::{
    Conditions, RangeOutcome, RequestHead, Validators, Verdict, attachment, http_date, if_range_matches,
    resolve_range,
};
use http::StatusCode;

use super::headers::{content_type, stored_header};
use super::object_ref::ObjectRef;
use super::source::stream;
use crate::call::Call;
use crate::error::AdminError;
use crate::reply::{ChangeRecord, Reply, ReplyBody};

/// The header that stops browsers from running scripts in an object.
pub(crate) const SANDBOX: (&str, &str) = ("content-security-policy", "sandbox");

/// Status, headers and range of the response, decided before any byte is read.
struct ResponsePlan {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    range: Range<u64>,
}

pub(crate) async fn content(call: Call<'_, '_>) -> Result<Reply, AdminError> {
    let source = ObjectRef::of(&call)?;
    let opened = call.engine()?.open_object(&source.bucket, &source.key, source.version, |info| {
        let plan = plan_response(call.head, &source, info);
        (plan.as_ref().map_or(0..0, |plan| plan.range.clone()), plan)
    });
    let (object, plan) = opened.map_err(|error| source.read_error(&call, error))?;
    let ResponsePlan { status, headers, range } = plan?;
    let body = if status == StatusCode::NOT_MODIFIED {
        ReplyBody::None
    } else {
        stream(&call, &source, object, range.end - range.start).await?
    };
    Ok(Reply { status, headers, body, record: ChangeRecord::default() })
}

/// Evaluates conditions and range, and sets the headers (RFC 9110 sections 13 and 14).
fn plan_response(
    head: &RequestHead,
    object: &ObjectRef,
    info: &ObjectInfo,
) -> Result<ResponsePlan, AdminError> {
    let etag = info.etag.quoted();
    let validators = Validators { etag: &etag, last_modified_seconds: info.last_modified.seconds() };
    let verdict = Conditions::of(head).evaluate(&validators);
    let range = head.header("range").filter(|_| if_range_matches(head.header("if-range"), &validators));
    let mut headers =
        vec![("etag", etag.clone()), ("last-modified", http_date(info.last_modified.seconds()).to_string())];
    match verdict {
        Verdict::Proceed => {}
        Verdict::PreconditionFailed => return Err(AdminError::PreconditionFailed),
        Verdict::NotModified => {
            return Ok(ResponsePlan { status: StatusCode::NOT_MODIFIED, headers, range: 0..0 });
        }
    }
    headers.extend(content_headers(object, &info.attributes));
    match resolve_range(range, info.size) {
        RangeOutcome::Whole => Ok(ResponsePlan { status: StatusCode::OK, headers, range: 0..info.size }),
        RangeOutcome::Part(part) => {
            headers.push(("content-range", part.content_range()));
            Ok(ResponsePlan { status: StatusCode::PARTIAL_CONTENT, headers, range: part.as_range() })
        }
        RangeOutcome::Unsatisfiable => Err(AdminError::RangeNotSatisfiable(info.size)),
    }
}

fn content_headers(object: &ObjectRef, attributes: &Attributes) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("content-type", content_type(attributes)),
        (SANDBOX.0, SANDBOX.1.to_owned()),
        ("content-disposition", attachment(&object.key.to_string())),
        ("accept-ranges", "bytes".to_owned()),
    ];
    // Without these headers, clients would misinterpret the bytes.
    for name in ["content-encoding", "content-language"] {
        if let Some(value) = stored_header(attributes, name) {
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
    }
    headers
}
